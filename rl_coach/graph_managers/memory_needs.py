"""Settings that ask for more memory than the machine has, found before anything of that size is made."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass
from typing import Any, Iterable, Iterator

import numpy as np

from rl_coach.architectures.layers import Dense, NoisyNetDense
from rl_coach.base_parameters import AgentParameters, NetworkParameters
from rl_coach.core_types import EnvironmentSteps, StepMethod
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.spaces import SpacesDefinition
from rl_coach.utilities.constraints import shown
from rl_coach.utils import CoachError, public_attributes

_FLOAT = 4  # bytes
_SLOTS = {"adam": 2, "rmsprop": 1}
_COLUMNS_OF_A_ROW = 4  # at the least: action, reward, discount, weight
_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Need:
    """The least that one setting asks for.

    :param path: the setting, as ``-cp`` names it
    :param value: its value
    :param num_bytes: the memory
    """

    path: str
    value: Any
    num_bytes: int


def total_memory() -> int:
    """The bytes that this process can have: the machine's, or its control group's where that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in map(pathlib.Path, _CONTROL_GROUPS):
        text = file.read_text().strip() if file.is_file() else ""
        if text.isdigit():
            total = min(total, int(text))
    return total


def check_needs(needs: Iterable[Need], available: int) -> None:
    """Compare what settings ask for together with what there is.

    :raises CoachError: it is more; the message names the setting that asks for most
    """
    needs = list(needs)
    total = sum(need.num_bytes for need in needs)
    if total > available:
        worst = max(needs, key=lambda need: need.num_bytes)
        raise CoachError(
            f"{worst.path} is {shown(worst.value)}, which asks for {_gigabytes(worst.num_bytes)} of memory or more; "
            f"here are {_gigabytes(available)}"
        )


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:,.1f} GB"


def network_needs(agent: AgentParameters, path: str) -> Iterator[Need]:
    """The least that an agent's networks and their batches take, whatever their inputs.

    :param path: where the agent's parameters are
    """
    for name, network in agent.network_wrappers.items():
        where = f"{path}.network_wrappers[{name!r}]"
        yield from _weights(network, where)
        rows = network.batch_size
        yield Need(f"{where}.batch_size", rows, rows * _FLOAT * (_COLUMNS_OF_A_ROW + 2 * sum(_widths(network))))
        updates = agent.algorithm.num_consecutive_training_steps
        columns = updates * rows * _FLOAT * _COLUMNS_OF_A_ROW
        yield Need(f"{path}.algorithm.num_consecutive_training_steps", updates, columns)


def _weights(network: NetworkParameters, path: str) -> Iterator[Need]:
    # the weights, their gradients, the target's and the optimizer's
    copies = 2 + bool(network.create_target_network) + _SLOTS.get(network.optimizer_type.lower(), 0)
    width_before = 1
    for where, units in _fully_connected(network, path):
        yield Need(where, units, width_before * units * _FLOAT * copies)
        width_before = units
    middleware = network.middleware_parameters
    cells = getattr(middleware, "number_of_lstm_cells", 0)
    yield Need(f"{path}.middleware_parameters.number_of_lstm_cells", cells, 4 * cells * cells * _FLOAT * copies)


def _fully_connected(network: NetworkParameters, path: str) -> Iterator[tuple[str, int]]:
    """The paths and widths of the fully connected layers in a row: of one embedder, and of the middleware.

    Where there are several embedders, the others and how they are merged are left out.
    """
    embedders = network.input_embedders_parameters
    parts = [(f"{path}.input_embedders_parameters[{name!r}]", part) for name, part in embedders.items()][:1]
    parts.append((f"{path}.middleware_parameters", network.middleware_parameters))
    for where, part in parts:
        layers = getattr(part, "scheme", None)
        for index, layer in enumerate(layers if isinstance(layers, (list, tuple)) else []):
            if isinstance(layer, (Dense, NoisyNetDense)):
                yield f"{where}.scheme[{index}].units", layer.units


def _widths(network: NetworkParameters) -> list[int]:
    return [units for _, units in _fully_connected(network, "")]


def check_networks(graph: Any) -> None:
    """Compare what the networks of a graph's agents will take with what there is.

    :raises CoachError: they do not fit
    """
    for path, parameters in _agents(graph):
        check_needs(network_needs(parameters, path), total_memory())


def check_replay(graph: Any) -> None:
    """Compare what the replay memories of a graph that is built will take, once they are full, with what there is.

    :raises CoachError: they do not fit
    """
    paths = {id(parameters): path for path, parameters in _agents(graph)}
    durations = (graph.heatup_steps, graph.improve_steps)
    for level in graph.level_managers:
        for agent in level.agents.values():
            path = paths.get(id(getattr(agent, "ap", None)))
            if path is not None:
                check_needs(replay_need(agent, durations, path), total_memory())


def _agents(graph: Any) -> Iterator[tuple[str, AgentParameters]]:
    """The parameters of a graph manager's agents, and where they are."""
    for name, value in public_attributes(graph).items():
        if isinstance(value, AgentParameters):
            yield name, value
        elif isinstance(value, (list, tuple)):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value) if isinstance(item, AgentParameters))


def replay_need(agent: Any, durations: Iterable[StepMethod], path: str) -> Iterator[Need]:
    """The least that an agent's replay memory takes once it is full.

    :param agent: the agent, built
    :param durations: the parts of the run in which transitions are stored
    :param path: where the agent's parameters are
    """
    size, spaces = getattr(agent.ap.memory, "max_size", None), getattr(agent, "spaces", None)
    if spaces is None or agent.is_on_policy or not isinstance(size, (tuple, list)):
        return  # what an on-policy agent has learned from goes
    granularity, number = size
    if granularity is MemoryGranularity.Transitions:
        rows = min([number, *_steps(durations)])
        yield Need(f"{path}.memory.max_size", size, int(rows * _row_bytes(spaces)))


def _steps(durations: Iterable[StepMethod]) -> list[int]:
    """The sum of durations in environment steps as a list of one, or no bound where one counts something else."""
    durations = list(durations)
    if all(isinstance(duration, EnvironmentSteps) for duration in durations):
        return [sum(duration.num_steps for duration in durations)]
    return []


def _row_bytes(spaces: SpacesDefinition) -> int:
    return sum(_observation_bytes(space) for space in spaces.state.sub_spaces.values())


def _observation_bytes(space: Any) -> int:
    """Frames that are stacked are stored once, as bytes; the last axis may be such a stack."""
    shape = tuple(int(extent) for extent in space.shape)
    return int(np.prod(shape[:-1])) if len(shape) > 2 else int(np.prod(shape)) * _FLOAT
