"""Table of what an override in a user's agent replaces: a class with a ``learn_from_batch`` of its own learns by that,
whatever update rule it inherits."""

from __future__ import annotations

from typing import Any, Mapping

from rl_coach.utilities.overrides import OverrideTable, overrides_after, why_not_on_fast_path

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
    # the description of the policy that is exported, by the methods in which one of Coach's agents acts in another way
    "policy_description": (
        "act",
        "choose_action",
        "get_prediction",
        "policy_outputs",
        "prepare_batch_for_inference",
        "run_pre_network_filter_for_inference",
        "get_all_q_values_for_states",
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

_CALLED_ON_ALL_PATHS = frozenset({
    "collect_savers", "connect", "create_agents", "create_networks", "fits", "get_state", "listen_to_rows",
    "make_compiled", "make_update_rule", "policy_description", "record_evaluated", "record_played", "register_signal",
    "reset_evaluation_state", "restore_checkpoint", "save_checkpoint", "seed", "set_state", "setup_logger",
    "unmet_by_networks", "unmet_by_settings", "why_not_compiled",
})  # fmt: skip

ALLOWED: Mapping[str, frozenset[str]] = {
    # acting in columns changes how an agent acts and stores; it learns as on the ordinary path
    "columns": _CALLED_ON_ALL_PATHS | {
        "before_training", "behaviour_columns", "choose_actions", "fill_advantages", "learn_from_batch",
        "learn_from_played", "learning_columns", "learning_scalars", "make_batches", "post_training_commands",
        "should_train", "train", "train_network",
    },
    "make_compiled": _CALLED_ON_ALL_PATHS,
    # learning and bookkeeping do not change which action the networks' outputs lead to
    "policy_description": _CALLED_ON_ALL_PATHS | {
        "_advantages_and_returns", "_should_train", "_should_update", "_should_update_online_weights_to_target",
        "before_training", "behaviour_columns", "columns_of_networks", "count_played", "cut_episode", "discount",
        "episode_class", "estimates_of_copies", "fill_advantages", "get_general_advantage_estimation_values",
        "get_success_rate", "handle_episode_ended", "initialize_session_dependent_components", "is_on_policy",
        "learn_from_batch", "learn_from_played", "learning_columns", "learning_scalars", "load_memory_from_file",
        "log_to_screen", "make_batches", "make_learning", "observe_transition", "phases", "post_training_commands",
        "reset_internal_state", "run_off_policy_evaluation", "segment_settings", "select_actions", "should_train",
        "targets_due", "train", "train_network", "update_log", "update_step_in_episode_log",
        "update_transition_before_adding_to_replay_buffer",
    },
}  # fmt: skip
"""By the declaration of a fast path: the methods of an agent that a user may override and still take the path."""


def override_that_excludes(agent: Any, declaration: str) -> str | None:
    """The override that keeps an agent off a fast path, ``Class.method``; the class alone if it is one of Coach's,
    which acts or learns in a way of its own. None if the agent may take the path.

    :param declaration: a key of ``ALLOWED``
    """
    if (override := why_not_on_fast_path(agent, ALLOWED[declaration], declaration)) is not None:
        return override
    is_void = is_replaced(agent, declaration) if declaration in REPLACED_BY else acts_or_learns_otherwise(type(agent))
    return type(agent).__name__ if is_void else None


def acts_or_learns_otherwise(kind: type) -> bool:
    """True if a class of an agent changes how it acts or learns after the class that has ``make_compiled``."""
    # a compiled loop calls neither of these two, and no compiled rule needs their columns
    allowed = ALLOWED["make_compiled"] | {"columns_of_networks", "select_actions"}
    return overrides_after(kind, "make_compiled", allowed)
