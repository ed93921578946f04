"""The base of the parts of agents in compiled loops, and the columns of steps that they keep."""

from __future__ import annotations

from typing import Any, Iterable

from rl_coach.architectures.compiled_loop import CompiledActing, PlayedStep
from rl_coach.architectures.middlewares import make_middleware
from rl_coach.base_parameters import AgentParameters
from rl_coach.filters.pure import PureFilters

Columns = dict[str, Any]
"""By the name of a ``PlayedStep``'s field, [T, ...] each; those of states by the names of observations, those of the
recurrent state by the names of its parts."""
_OF_OBSERVATIONS = ("states", "next_states")


class CompiledPart:
    """Base of the parts of agents in compiled loops.

    :param agent: the agent, which has its networks
    :param random: the framework's random numbers, with the names of ``jax.random``
    :param num_copies: N, of the environment
    :param acting: how the agent acts
    """

    def __init__(self, agent: Any, random: Any, num_copies: int, acting: CompiledActing):
        self.act, self.levels, self.evaluate = acting.act, acting.levels, acting.evaluate
        self._random, self._num_copies = random, num_copies
        self._update_loop, self._clock = agent.update_loop, agent.clock
        self._learner = self._update_loop.learner
        self._ops, self._stages = self._learner.ops, self._learner.step.stages
        self._filters = PureFilters(agent.pre_network_filter, self._ops)
        self._target_rate = agent.ap.algorithm.rate_for_copying_weights_to_target
        self.recurrent_sizes: dict[str, int] = {}


def empty_columns(ops: Any, example: PlayedStep, length: int, fields: Iterable[str], inputs: Iterable[str]) -> Columns:
    """Columns of zeros.

    :param ops: array operations with the names of ``keras.ops``
    :param example: a step, for shapes and dtypes
    :param length: T, steps of each copy of the environment
    :param fields: those that are kept
    :param inputs: the observations that are kept of states
    """

    def column(array: Any) -> Any:
        return ops.zeros((length, *array.shape), dtype=array.dtype)

    columns: Columns = {}
    for field in fields:
        part = getattr(example, field)
        names = inputs if field in _OF_OBSERVATIONS else part
        columns[field] = {name: column(part[name]) for name in names} if isinstance(part, dict) else column(part)
    return columns


def with_step(ops: Any, columns: Columns, step: PlayedStep, position: Any) -> Columns:
    """The columns with a step written over their rows at ``position``. :param columns: others are left out"""

    def written(column: Any, row: Any) -> Any:
        return ops.slice_update(column, (position, *[0] * len(row.shape)), row[None])

    found: Columns = {}
    for field, part in step._asdict().items():
        if field in columns:
            own = columns[field]
            found[field] = {n: written(own[n], part[n]) for n in own} if isinstance(own, dict) else written(own, part)
    return found


def why_recurrent_networks_are_not_compiled(parameters: AgentParameters) -> str | None:
    """The reason why an agent that learns from single steps has no compiled loop, if a network of it is recurrent."""
    parts = [network.middleware_parameters for network in parameters.network_wrappers.values()]
    is_recurrent = any(make_middleware(part).recurrent_sizes for part in parts if part is not None)
    return "its network is recurrent, which only ClippedPPO's can be" if is_recurrent else None
