"""The table of methods that replace other parts of an agent when a subclass overrides them. For example, a user's class
that overrides ``learn_from_batch`` learns by this method, and ignores the update rule that it inherits.
"""

from __future__ import annotations

from typing import Any, Mapping

from rl_coach.utilities.overrides import OverrideTable, overrides_after, why_not_on_fast_path

REPLACED_BY: Mapping[str, tuple[str, ...]] = {
    # the agent's own update replaces the update rule
    "make_update_rule": ("learn_from_batch",),
    # the methods of Coach 1 that decide on training phases and target updates replace their successors
    "should_train": ("_should_train", "_should_update"),
    "decides_on_targets": ("targets_due", "_should_update_online_weights_to_target"),
    # actions that are selected before the call of DQN's rule replace the actions that the rule bootstraps from
    "bootstrap_actions": ("select_actions",),
    # an update without the rule cannot use stored recurrent states. Another rule is checked when it is called
    "learns_from_stored_states": ("learn_from_batch",),
    # attributes that are set at the beginning of an episode replace the fields of the episode's class
    "episode_class": ("reset_internal_state",),
    "episode_attributes": ("reset_internal_state",),
    # a requirement ends if the code that needs it is overridden
    "network_requirements": ("make_update_rule", "learn_from_batch"),
    "memory_requirement": ("learn_from_batch", "train"),
    # if the agent itself uses rewards before the rule, these rewards lack the intrinsic part
    "supports_curiosity": ("learn_from_batch", "learning_columns", "make_update_rule", "fill_advantages"),
    "rescalers": ("learn_from_batch", "learning_columns", "fill_advantages", "_advantages_and_returns", "rescaled"),
    # the exported description of the policy is wrong once one of these methods acts in another way
    "policy_description": (
        "act",
        "choose_action",
        "get_prediction",
        "policy_outputs",
        "prepare_batch_for_inference",
        "run_pre_network_filter_for_inference",
        "get_all_q_values_for_states",
    ),
    # acting in columns is wrong once one of these methods acts or observes in another way
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
"""The methods that cancel each declaration if a later class overrides them."""

# a class that defines both learns by learn_from_batch, which may call the rule
is_replaced = OverrideTable(REPLACED_BY, replaced_beside={"make_update_rule"}).is_replaced

HOOKS = (
    "learning_scalars", "post_training_commands", "run_pre_network_filter_for_inference",
    "update_transition_before_adding_to_replay_buffer",
)  # fmt: skip
"""Methods of an agent that do nothing, unless a class overrides them or there is a pre-network filter. A step does not
call methods that do nothing."""

_CALLED_ON_ALL_PATHS = frozenset({
    "collect_savers", "connect", "create_agents", "create_networks", "fits", "get_state", "listen_to_rows",
    "make_compiled", "make_update_rule", "policy_description", "record_evaluated", "record_played", "register_signal",
    "reset_evaluation_state", "restore_checkpoint", "save_checkpoint", "seed", "set_state", "setup_logger",
    "unmet_by_actions", "unmet_by_networks", "unmet_by_settings", "why_not_compiled",
})  # fmt: skip

ALLOWED: Mapping[str, frozenset[str]] = {
    # acting in columns changes how an agent acts and stores, but learning is the same
    "columns": _CALLED_ON_ALL_PATHS | {
        "before_training", "behaviour_columns", "choose_actions", "fill_advantages", "learn_from_batch",
        "learn_from_played", "learning_columns", "learning_scalars", "make_batches", "post_training_commands",
        "should_train", "train", "train_network",
    },
    "make_compiled": _CALLED_ON_ALL_PATHS,
    # learning and bookkeeping do not change the choice of an action from the networks' outputs
    "policy_description": _CALLED_ON_ALL_PATHS | {
        "_advantages_and_returns", "_should_train", "_should_update", "_should_update_online_weights_to_target",
        "before_training", "behaviour_columns", "columns_of_networks", "count_played", "cut_episode", "discount",
        "episode_class", "estimates_of_copies", "fill_advantages", "get_general_advantage_estimation_values",
        "get_success_rate", "handle_episode_ended", "initialize_session_dependent_components", "is_on_policy",
        "learn_from_batch", "learn_from_played", "learning_columns", "learning_scalars", "load_memory_from_file",
        "log_to_screen", "make_batches", "make_learning", "observe_transition", "post_training_commands",
        "reset_internal_state", "run_off_policy_evaluation", "segment_settings", "select_actions", "should_train",
        "targets_due", "train", "train_network", "update_log", "update_step_in_episode_log",
        "update_transition_before_adding_to_replay_buffer",
    },
}  # fmt: skip
"""The methods that a user's agent may override and still use a fast path, by the name of the path."""


def override_that_excludes(agent: Any, declaration: str) -> str | None:
    """The override that prevents a fast path, as ``Class.method``; only ``Class`` if a class of Coach itself does not
    support the path. None if the agent may use the path.

    :param declaration: a key of ``ALLOWED``
    """
    if (override := why_not_on_fast_path(agent, ALLOWED[declaration], declaration)) is not None:
        return override
    is_void = is_replaced(agent, declaration) if declaration in REPLACED_BY else acts_or_learns_otherwise(type(agent))
    return type(agent).__name__ if is_void else None


def acts_or_learns_otherwise(kind: type) -> bool:
    """True if a subclass of the class with ``make_compiled`` changes how the agent acts or learns."""
    # a compiled loop does not call these two, and no compiled rule needs their columns
    allowed = ALLOWED["make_compiled"] | {"columns_of_networks", "select_actions"}
    return overrides_after(kind, "make_compiled", allowed)
