"""Table of what an override in a user's agent replaces: a class with a ``learn_from_batch`` of its own learns by that,
whatever update rule it inherits."""

from __future__ import annotations

from typing import Mapping

from rl_coach.utilities.overrides import OverrideTable

REPLACED_BY: Mapping[str, tuple[str, ...]] = {
    # an update rule, by updates that the agent makes itself
    "make_update_rule": ("learn_from_batch",),
    # the times of training phases and of updates of target networks, by those of Coach's methods
    "should_train": ("_should_train", "_should_update"),
    "decides_on_targets": ("targets_due", "_should_update_online_weights_to_target"),
    # the actions that DQN's rule bootstraps from, by actions that are selected before the rule is called
    "bootstrap_actions": ("select_actions",),
    # learning from stored recurrent states, by updates without the rule. Another rule is checked when it is called
    "learns_from_stored_states": ("learn_from_batch",),
    # the class that holds what belongs to an episode, by attributes of the agent that are set when one begins
    "episode_class": ("reset_internal_state",),
    "episode_attributes": ("reset_internal_state",),
    # requirements, by whatever replaces the code that has them
    "network_requirements": ("make_update_rule", "learn_from_batch"),
    "memory_requirement": ("learn_from_batch", "train"),
    "rescalers": ("learn_from_batch", "learning_columns", "fill_advantages", "_advantages_and_returns", "rescaled"),
    # the description of the policy that is exported, by methods that act in another way
    "policy_description": (
        "act",
        "choose_action",
        "get_prediction",
        "policy_outputs",
        "prepare_batch_for_inference",
        "run_pre_network_filter_for_inference",
        "get_all_q_values_for_states",
    ),
    # the agent's part in a loop that is compiled as a whole, by methods that such a loop does not call
    "make_compiled": (
        "act",
        "acting_prediction",
        "before_training",
        "behaviour_columns",
        "choose_action",
        "count_played",
        "cut_episode",
        "explored_action",
        "fill_advantages",
        "get_all_q_values_for_states",
        "get_prediction",
        "handle_episode_ended",
        "initialize_session_dependent_components",
        "learn_from_batch",
        "learn_from_played",
        "learning_columns",
        "learning_scalars",
        "make_batches",
        "make_learning",
        "observe",
        "observe_transition",
        "phases",
        "policy_outputs",
        "post_training_commands",
        "predict_states",
        "reset_internal_state",
        "run_pre_network_filter_for_inference",
        "should_train",
        "targets_due",
        "train",
        "train_network",
        "update_transition_before_adding_to_replay_buffer",
        "_advantages_and_returns",
        "_should_train",
        "_should_update",
        "_should_update_online_weights_to_target",
    ),
    # one pass over many actors, by another way of acting or observing in a single episode
    "choose_actions": (
        "act",
        "acting_prediction",
        "begin_episode",
        "choose_action",
        "cut_episode",
        "explored_action",
        "handle_episode_ended",
        "observe",
        "observe_transition",
        "predict_states",
        "prepare_batch_for_inference",
        "reset_internal_state",
        "run_pre_network_filter_for_inference",
        "update_log",
        "update_transition_before_adding_to_replay_buffer",
    ),
    "predicts_values": ("choose_action", "predict_states", "get_all_q_values_for_states"),
}
"""By the name of a declaration: the methods whose later override makes it void."""

# a learn_from_batch may make use of the update rule beside it, and not the other way round
is_replaced = OverrideTable(REPLACED_BY, replaced_beside={"make_update_rule"}).is_replaced
