"""Transport of an agent's experience from a process that plays to the trainer, and of policies in return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from rl_coach.agents.core.chunk_requirements import require_sound
from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.experience import EnvironmentProgress, ExperienceChunk
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.core_types import RunPhase
from rl_coach.memories.backend.wire import MOST_ROWS, UNREADABLE, Chunk, ChunkError
from rl_coach.memories.memory import receives_episodes
from rl_coach.utilities.sound_values import is_count, is_finite
from rl_coach.utils import Signal

FILTERS = ("input_filter", "output_filter", "pre_network_filter")
"""The names of the attributes that hold an agent's filters."""
_ABOUT = {"reports", "segment_starts", "filters", "priorities", "waited", "environment"}


@dataclass(frozen=True)
class TransportSignals:
    """Signals of an agent about the experience from other processes.

    :param policy_lag: number of updates since the acting policy was published
    :param discarded: number of steps that were discarded because an older policy had played them
    :param waiting: the share of time for which the rollout workers have waited
    """

    policy_lag: Signal
    discarded: Signal
    waiting: Signal

    @classmethod
    def of(cls, agent: Any) -> TransportSignals:
        """Create these signals for an agent."""
        return cls(*map(agent.register_signal, ("Policy Lag", "Discarded Steps", "Share of Time Waited")))


def about_played(
    reports: list[EpisodeReport],
    segment_starts: list[dict[str, Any]],
    filters: dict[str, Any],
    priorities: np.ndarray | None = None,
    environment: EnvironmentProgress | None = None,
) -> dict[str, Any]:
    """Reports and statistics that accompany the transitions of a chunk, as plain data.

    :param reports: the episodes that ended
    :param segment_starts: data about each episode that the agent needs to learn from it; see ``ExperienceChunk``
    :param filters: the statistics of the agent's filters; the keys are names in ``FILTERS``, such as ``input_filter``
    :param priorities: [N] the first priorities of the transitions; None if the trainer's memory sets them
    :param environment: progress of the environment, of all agents together; None if there is no progress
    """
    environment = environment or EnvironmentProgress()
    given = {} if priorities is None else {"priorities": np.asarray(priorities, np.float32)}
    return {
        "reports": [
            [report.phase.name, report.length, _number(report.reward), _number(report.shaped_reward), report.signals]
            for report in reports
        ],
        "segment_starts": list(segment_starts) if any(segment_starts) else [],
        "filters": filters,
        "environment": [environment.steps, np.asarray(environment.rewards, np.float64)],
        **given,
    }


def _number(reward: Any) -> Any:
    return np.asarray(reward, np.float64) if np.ndim(reward) else float(reward)


def played_in(chunk: Chunk) -> ExperienceChunk:
    """The experience in a chunk. The types of its data are checked here, and its values in ``take_in``.

    :raises ChunkError: if the chunk has unknown entries, or an entry of a wrong type
    """
    try:
        about = chunk.about
        if unknown := sorted(about.keys() - _ABOUT):
            raise ChunkError("garbage", f"it has unknown entries {unknown}")
        reports = [_report(*report) for report in _of_kind(list, about.get("reports", []))]
        filters = _of_kind(dict, about.get("filters", {}))
        # The names are used as attributes of the agent: any other name could change any attribute.
        if not set(filters) <= set(FILTERS):
            raise ChunkError("garbage", f"it has statistics of unknown filters {sorted(set(filters) - set(FILTERS))}")
        segment_starts = _of_kind(list, about.get("segment_starts", []))
        waited = about.get("waited", 0.0)
        if not (isinstance(waited, float) and 0.0 <= waited <= 1.0):
            raise ChunkError("garbage", f"the share of time waited is {str(waited)[:40]!r}, not a number from 0 to 1")
        priorities = _priorities(about["priorities"]) if "priorities" in about else None
        environment = _environment(*about["environment"]) if "environment" in about else EnvironmentProgress()
        return ExperienceChunk(
            chunk.steps, chunk.episode_lengths, chunk.columns, reports, filters, segment_starts, priorities, environment
        )
    except UNREADABLE as error:
        if isinstance(error, ChunkError):
            raise
        raise ChunkError("garbage", f"its entries are not readable: {error}") from error


def _report(phase: str, length: int, reward: Any, shaped_reward: Any, signals: dict[str, Any]) -> EpisodeReport:
    samples = {
        _of_kind(str, name): [_samples(column) for column in _of_kind(list, columns)]
        for name, columns in _of_kind(dict, signals).items()
    }
    return EpisodeReport(RunPhase[phase], length, reward, shaped_reward, samples)


def _environment(steps: Any, rewards: Any) -> EnvironmentProgress:
    is_sound = np.ndim(_of_kind(np.ndarray, rewards)) == 1 and is_finite(rewards)
    if not (is_sound and is_count(steps) and len(rewards) <= steps <= MOST_ROWS):
        raise ChunkError(
            "garbage",
            f"the environment's progress is not valid: {str(steps)[:40]} steps and the rewards {str(rewards)[:40]}",
        )
    return EnvironmentProgress(steps, rewards.astype(np.float64).tolist())


def _samples(column: Any) -> np.ndarray:
    if np.ndim(_of_kind(np.ndarray, column)) != 1:
        raise ChunkError("garbage", f"a signal's samples have the shape {np.shape(column)}, not one dimension")
    return column.astype(np.float64)


def _priorities(values: Any) -> np.ndarray:
    # One priority that is too large would always be sampled, and NaN would spoil the sum over all priorities.
    if np.ndim(_of_kind(np.ndarray, values)) != 1 or not is_finite(values) or values.min(initial=0) < 0:
        raise ChunkError("garbage", f"the priorities are not finite numbers of at least 0: {str(values)[:40]}")
    return values.astype(np.float64)


def _of_kind(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ChunkError("garbage", f"{str(value)[:40]!r} is not of type {kind.__name__}")
    return value


def take_in(agent: Any, played: ExperienceChunk) -> None:
    """Store and count experience of another process as if the agent had played it in this process.

    :raises CoachError: if the experience is inconsistent, or does not fit the agent's spaces or memory; the agent is
        unchanged then
    """
    # all checks come first, so that a message is either used completely or not at all
    experience, clock = agent.experience, agent.clock
    require_sound(
        played, agent.memory_spaces, receives_episodes(agent.memory), experience.most_steps_ahead,
        has_priorities=experience.prioritize is not None,
    )  # fmt: skip
    agent.learning.require_fitting(played)
    # before any count changes, because the memory may still refuse the columns
    experience.store_played(played, agent.filters)
    clock.steps_at_once = max(clock.steps_at_once, played.steps)  # never smaller, as the compiled step depends on it
    agent.count_played(played.steps)
    agent.exploration_policy.advance(played.steps)
    for report in played.reports:
        clock.episodes += 1
        agent.signals.begin_episode(clock.episodes, agent.writes_steps)
        agent.recorder.report(report)
    if agent.phase is not RunPhase.HEATUP:
        agent.learning.take_in(played)


def policy_of(agent: Any) -> dict[str, Any]:
    """The policy that another process needs to act as an agent: the newest weights of the networks that act, the
    statistics of filters, the schedules of exploration, and the number of updates so far."""
    networks = agent.networks
    names = agent.acting_networks or tuple(name for name, network in networks.items() if network.input_names)
    return {
        "networks": {name: _weights(networks[name].state, agent.acts_by_targets) for name in names},
        "filters": {name: one.get_state() for name, one in agent.filters.items()},
        "exploration": agent.exploration_policy.get_schedules(),
        "updates": agent.clock.updates,
    }


def _weights(state: Any, with_targets: bool) -> dict[str, list[np.ndarray]]:
    groups = ("weights", "buffers", *(("target_weights", "target_buffers") if with_targets else ()))
    # other arrays hold the state of random generators, which only learning uses
    return {group: [array for array in state.arrays(group) if array.dtype == np.float32] for group in groups}


def take_policy(agent: Any, policy: dict[str, Any]) -> None:
    """Set the policy of an agent that only acts, from the result of ``policy_of``. Its episode continues."""
    for name, groups in policy["networks"].items():
        for group, arrays in groups.items():
            agent.networks[name].state.set_arrays(group, arrays)
    for name, state in policy["filters"].items():
        # the state also contains the other process's episode, such as its stacked frames
        episode = agent.filters[name].episode_state()
        agent.filters[name].set_state(state)
        agent.filters[name].set_episode_state(episode)
    agent.exploration_policy.take_schedules(policy["exploration"])
    agent.clock.updates = policy["updates"]


def blueprints_of(networks: Mapping[str, NetworkWrapper]) -> dict[str, Any]:
    """The blueprints of networks by name, as plain data: another process can build the networks from them."""
    return {name: network.blueprint().plain() for name, network in networks.items() if network.input_names}
