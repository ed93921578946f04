"""A table of what an override in a user's class replaces, and the one place that reads it.

Two changes of an agent can exclude each other: a class with a ``learn_from_batch`` of its own learns by that, whatever
update rule it inherits. The later definition counts, in the order in which Python looks names up: the instance first,
then its class, mixins and bases.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Mapping

REPLACED_BY: Mapping[str, tuple[str, ...]] = {
    # an update rule, by updates that the agent makes itself
    "make_update_rule": ("learn_from_batch",),
    # the actions that DQN's rule bootstraps from, by actions that are selected before the rule is called
    "bootstrap_actions": ("select_actions",),
    # the promise that a rule can learn from stored recurrent states, by another rule
    "learns_from_stored_states": ("make_update_rule", "learn_from_batch"),
    # the class that holds what belongs to an episode, by attributes of the agent that are set when one begins
    "episode_class": ("reset_internal_state",),
    # requirements, by whatever replaces the code that has them
    "network_requirements": ("make_update_rule", "learn_from_batch"),
    "memory_requirement": ("learn_from_batch", "train"),
    "rescalers": ("learn_from_batch", "learning_columns", "fill_advantages", "_advantages_and_returns", "rescaled"),
    "predicts_values": ("choose_action", "predict_states", "get_all_q_values_for_states"),
}
"""By the name of a declaration: the methods whose later override makes it void."""


def is_replaced(agent: Any, name: str) -> bool:
    """True if one of the methods that replace ``name`` was overridden later than ``name`` was declared.

    A class that has both means what it declares, with one exception: a ``learn_from_batch`` may make use of the update
    rule beside it, and not the other way round.

    :param agent: an agent, or a class of agents
    :param name: a key of ``REPLACED_BY``
    """
    is_class = isinstance(agent, type)
    kind: Any = agent if is_class else type(agent)
    own = () if is_class else tuple(known for known in (name, *REPLACED_BY[name]) if known in vars(agent))
    return _is_replaced(kind, own, name)


@cache
def _is_replaced(agent_class: Any, on_instance: tuple[str, ...], name: str) -> bool:
    definers = [on_instance, *map(vars, agent_class.__mro__)]

    def first(one: str) -> int:
        return next((place for place, names in enumerate(definers) if one in names), len(definers))

    declared = first(name)
    is_overridden = any(name in names for names in definers[declared + 1 :])
    wins_where_both_are = name == "make_update_rule" and is_overridden
    return any(first(method) < declared + wins_where_both_are for method in REPLACED_BY[name])
