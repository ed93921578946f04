"""Checks for settings that need more memory than the machine has, before the memory is allocated."""

from __future__ import annotations

import os
import pathlib
from typing import Any, Iterable, Iterator, NamedTuple

import numpy as np

from rl_coach.architectures.layers import Dense, NoisyNetDense
from rl_coach.base_parameters import AgentParameters, NetworkParameters
from rl_coach.core_types import EnvironmentSteps, StepMethod
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.spaces import OneHotObservationSpace
from rl_coach.utilities.requirements import shown

_FLOAT = 4  # bytes
_SLOTS = {"adam": 2, "rmsprop": 1}
_COLUMNS_OF_A_ROW = 4  # at least: action, reward, discount, weight
_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class MemoryUse(NamedTuple):
    """A lower bound of the memory that one setting needs.

    :param path: the setting's name, as in ``-cp``
    :param value: the setting's value
    :param num_bytes: the memory in bytes
    """

    path: str
    value: Any
    num_bytes: int


def total_memory() -> int:
    """Bytes of memory available to this process: the smaller of the machine's and the control group's."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in map(pathlib.Path, _CONTROL_GROUPS):
        text = file.read_text().strip() if file.is_file() else ""
        if text.isdigit():
            total = min(total, int(text))
    return total


def unmet_by(available: int, uses: Iterable[MemoryUse]) -> Iterator[str]:
    """A message if the settings together need more memory than available. The message names the setting that needs
    most.

    :param available: the available memory in bytes
    :param uses: the memory that each setting needs
    """
    uses = list(uses)
    total = sum(use.num_bytes for use in uses)
    if total > available:
        worst = max(uses, key=lambda use: use.num_bytes)
        others = "" if worst.num_bytes > available else f", and all settings together need {_gigabytes(total)}"
        yield (
            f"{worst.path} is {shown(worst.value)}, which needs at least {_gigabytes(worst.num_bytes)} of memory"
            f"{others}; this machine has {_gigabytes(available)}"
        )


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:,.1f} GB"


def network_requirements(agent: AgentParameters, path: str) -> Iterator[MemoryUse]:
    """Lower bounds of the memory for an agent's networks and batches. The sizes of the inputs are not counted.

    :param agent: the agent's parameters
    :param path: the path of the agent's parameters, as in ``-cp``
    """
    for name, network in agent.network_wrappers.items():
        where = f"{path}.network_wrappers[{name!r}]"
        layers = list(_fully_connected(network, where))
        widths = [1, *(units for _, units in layers)]
        # weights, gradients, target weights and the optimizer's slots
        copies = 2 + bool(network.create_target_network) + _SLOTS.get(network.optimizer_type.lower(), 0)
        for (setting, units), width_before in zip(layers, widths):
            yield MemoryUse(setting, units, width_before * units * _FLOAT * copies)
        cells = getattr(network.middleware_parameters, "number_of_lstm_cells", 0)
        setting = f"{where}.middleware_parameters.number_of_lstm_cells"
        yield MemoryUse(setting, cells, 4 * cells * cells * _FLOAT * copies)
        rows, updates = network.batch_size, agent.algorithm.num_consecutive_training_steps
        yield MemoryUse(f"{where}.batch_size", rows, rows * _FLOAT * (_COLUMNS_OF_A_ROW + 2 * sum(widths[1:])))
        setting = f"{path}.algorithm.num_consecutive_training_steps"
        yield MemoryUse(setting, updates, updates * rows * _FLOAT * _COLUMNS_OF_A_ROW)


def _fully_connected(network: NetworkParameters, path: str) -> Iterator[tuple[str, int]]:
    """The paths and widths of consecutive fully connected layers in the first embedder and in the middleware.

    Other embedders and the layers that merge embedders are not counted.
    """
    embedders = network.input_embedders_parameters
    parts = [(f"{path}.input_embedders_parameters[{name!r}]", part) for name, part in embedders.items()][:1]
    parts.append((f"{path}.middleware_parameters", network.middleware_parameters))
    for where, part in parts:
        layers = getattr(part, "scheme", None)
        for index, layer in enumerate(layers if isinstance(layers, (list, tuple)) else []):
            if isinstance(layer, (Dense, NoisyNetDense)):
                yield f"{where}.scheme[{index}].units", layer.units


def replay_requirement(agent: Any, durations: Iterable[StepMethod], path: str) -> Iterator[MemoryUse]:
    """A lower bound of the memory for an agent's full replay memory.

    :param agent: the agent, with its networks
    :param durations: the lengths of the parts of the run that store transitions
    :param path: the path of the agent's parameters, as in ``-cp``
    """
    size, spaces = getattr(agent.ap.memory, "max_size", None), getattr(agent, "spaces", None)
    if spaces is None or agent.is_on_policy or not isinstance(size, (tuple, list)):
        return  # an on-policy agent deletes its transitions after learning
    rows, durations = size[1], list(durations)
    if all(isinstance(duration, EnvironmentSteps) for duration in durations):
        rows = min(rows, sum(duration.num_steps for duration in durations))
    if size[0] is MemoryGranularity.Transitions:
        row = sum(_observation_bytes(space) for space in spaces.state.sub_spaces.values())
        yield MemoryUse(f"{path}.memory.max_size", size, int(rows * row))


def _observation_bytes(space: Any) -> int:
    """The number of bytes that a memory needs for one observation. Each frame of a stack is stored only once, as bytes,
    so an image's last axis is not counted. For a one-hot vector, the memory stores only the index of its one."""
    if isinstance(space, OneHotObservationSpace):
        return len(space.counts) * _FLOAT
    shape = tuple(int(extent) for extent in space.shape)
    return int(np.prod(shape[:-1])) if len(shape) > 2 else int(np.prod(shape)) * _FLOAT
