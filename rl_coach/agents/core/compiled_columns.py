"""The base class of agents' parts in compiled loops, and the columns of steps that these parts keep."""

from __future__ import annotations

from typing import Any, Iterable

from rl_coach.architectures.compiled_loop import CompiledActing, PlayedStep
from rl_coach.architectures.middlewares import make_middleware
from rl_coach.base_parameters import AgentParameters
from rl_coach.filters.pure import PureFilters

Columns = dict[str, Any]
"""Columns [T, ...] by the name of a field of ``PlayedStep``. States are dicts of columns by the observation's name. The
recurrent state is a dict by the name of its part."""
_OF_OBSERVATIONS = ("states", "next_states")


class CompiledPart:
    """Base class of agents' parts in compiled loops.

    :param agent: the agent; its networks exist already
    :param random: the framework's random functions, with the names of ``jax.random``
    :param num_copies: N, the number of copies of the environment
    :param acting: chooses the actions
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
    """Columns of zeros. They are allocated once, because a compiled loop cannot change the shape of an array.

    :param ops: array operations with the names of ``keras.ops``
    :param example: a step, for shapes and dtypes
    :param length: T, steps of each copy of the environment
    :param fields: the fields of ``PlayedStep`` to keep
    :param inputs: the observations to keep from each state
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
    """The columns with a step written to their rows at ``position``.

    :param columns: the columns before the step. Only columns with the name of a field of ``PlayedStep`` are written and
        returned
    """

    def written(column: Any, row: Any) -> Any:
        return ops.slice_update(column, (position, *[0] * len(row.shape)), row[None])

    found: Columns = {}
    for field, part in step._asdict().items():
        if field in columns:
            own = columns[field]
            found[field] = {n: written(own[n], part[n]) for n in own} if isinstance(own, dict) else written(own, part)
    return found


def why_recurrent_networks_are_not_compiled(parameters: AgentParameters) -> str | None:
    """A message if an agent that learns from single steps has a recurrent network and thus no compiled loop; otherwise
    None."""
    parts = [network.middleware_parameters for network in parameters.network_wrappers.values()]
    is_recurrent = any(make_middleware(part).recurrent_sizes for part in parts if part is not None)
    return "only ClippedPPO has a compiled form with a recurrent network" if is_recurrent else None
