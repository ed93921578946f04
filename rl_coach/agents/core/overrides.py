"""Methods that replace what a base class of an agent says of itself."""

from __future__ import annotations

from typing import Iterable, Mapping

REQUIRED_BY: Mapping[str, tuple[str, ...]] = {
    "network_needs": ("make_update_rule", "learn_from_batch"),
    "memory_need": ("learn_from_batch", "train"),
    "rescalers": ("learn_from_batch", "learning_columns", "fill_advantages", "_advantages_and_returns", "rescaled"),
    "predicts_values": ("choose_action", "predict_states", "get_all_q_values_for_states"),
}
"""The methods that have a requirement, by the class attribute that declares it. A subclass that replaces one of them
has its own requirements: those of its base hold no longer, unless it declares them again."""


def is_overridden(agent_class: type, methods: Iterable[str], since: type) -> bool:
    """True if a class that comes before another in the method resolution order defines one of the methods.

    :param since: the other class, one of ``agent_class``'s bases or itself
    """
    order = agent_class.__mro__
    return any(method in vars(newer) for newer in order[: order.index(since)] for method in methods)
