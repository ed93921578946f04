"""Compiled loops: one compiled call acts, steps the environment, stores the steps and learns.

The framework compiles the loop (``jax_components/compiled_loop.py``). An agent defines acting, storing and learning as
pure functions (``CompiledAgent``). Python code outside the loop (the host) plans each call: the number of steps, and
after which steps the agent learns.
"""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Protocol, Sequence

import numpy as np

from rl_coach.architectures.update import NetworkView

Arrays = dict[str, Any]
"""Arrays by name, such as the observations."""
Networks = dict[str, NetworkView]
"""The networks of an agent by name."""
State = dict[str, Any]
"""Each network's groups of arrays, by name; see ``TrainingStep``."""


class PlayedStep(NamedTuple):
    """A step in all N copies of an environment.

    :param states: [N, ...] by name, after the input filters
    :param actions: [N] int32 or [N, D] float32, in the agent's action space
    :param rewards: [N], filtered
    :param next_states: [N, ...] by name, the states after the step; at the end of an episode, the last state of the
        episode
    :param terminated: [N] bool
    :param ended: [N] bool, terminated or truncated
    :param recurrent: [N, size] for each part of the recurrent network's state before the action; empty for none
    """

    states: Arrays
    actions: Any
    rewards: Any
    next_states: Arrays
    terminated: Any
    ended: Any
    recurrent: Arrays


class PlannedPhase(NamedTuple):
    """The host's plan of a training phase.

    :param num_updates: number of updates of the networks; the largest possible number if it depends on the data
    :param moves: [K] bool, True for updates after which the target networks move; or one bool for all updates
    :param steps: number of environment steps before the phase that the agent's counters do not include yet
    :param updates_before: number of updates before the phase that the networks' counters do not include yet
    :param training_step: the number of the phase, from 0 on
    """

    num_updates: int
    moves: Any
    steps: int
    updates_before: int
    training_step: int


class Phase(NamedTuple):
    """A training phase as arrays, the input of the compiled loop.

    :param count: [] int32, number of updates; the largest possible number if it depends on the data
    :param scalars: [K, S] float32, the scalars of each update, see ``UpdateLayout``; [1, S] if the number of updates
        depends on the data
    :param moves_targets: [] bool, True if the target networks move in this phase
    """

    count: Any
    scalars: Any
    moves_targets: Any


class Learned(NamedTuple):
    """The result of a training phase.

    :param state: the new state of the networks
    :param memory: the memory after the phase
    :param statistics: the new statistics of the pre-network filters
    :param count: [] int32, number of updates that were made
    :param outputs: [K, outputs], the outputs of the updates; see ``Learner.updates_within``
    :param shown: arrays to log, by name
    """

    state: State
    memory: Any
    statistics: Any
    count: Any
    outputs: Any
    shown: Arrays


class Plan(NamedTuple):
    """The plan of a call. Each phase plays some steps and then learns. More steps can follow the last phase.

    :param lengths: [P] int32, the steps that each copy plays in each phase before it learns; P is the largest number of
        phases
    :param phases: the phases, stacked [P, ...]
    :param num_phases: [] int32, number of phases that are used, up to P
    :param rest: [] int32, steps after the last phase
    :param levels: [S, L] float32, the L levels of exploration in each of S steps
    """

    lengths: Any
    phases: Phase
    num_phases: Any
    rest: Any
    levels: Any

    @property
    def steps(self) -> int:
        """The number of steps that each copy plays in the call."""
        return int(self.lengths[: self.num_phases].sum() + self.rest)


class Played(NamedTuple):
    """The record of a call. The arrays have unused rows at the end.

    :param ended: [S, N] bool, True where an episode ended
    :param rewards: [S, N], the total reward of each episode that ended
    :param shaped_rewards: [S, N], the total reward of this episode after the filters
    :param returns: [S, N], the discounted return of this episode after the filters
    :param lengths: [S, N] int32, the number of steps of this episode
    :param sources: [S, N] int32, 0 if all numbers of the step are finite; otherwise 1 + the position in ``sources_of``
        of the first number that is not finite
    :param counts: [P] int32, number of updates of each phase
    :param outputs: [P, K, outputs], the outputs of the updates of each phase
    :param shown: [P, ...] by name, the logged arrays of each phase
    """

    ended: Any
    rewards: Any
    shaped_rewards: Any
    returns: Any
    lengths: Any
    sources: Any
    counts: Any
    outputs: Any
    shown: Arrays


def sources_of(observations: Iterable[str]) -> list[str]:
    """Texts that name the sources of the numbers of a step, for messages. The message adds "step 3" to the text. A
    number that is not finite spreads from the earlier sources to the later sources.
    """
    names = list(observations)
    given, filtered = "that the environment gave in", "that the input filter computed from finite numbers in"
    return [
        *(f"the observation '{name}' that the environment gave before" for name in names),
        "the action that the network chose in",
        *(f"the observation '{name}' {by}" for by in (given, filtered) for name in names),
        *(f"the reward {by}" for by in (given, filtered)),
    ]


class Evaluated(NamedTuple):
    """The progress of an evaluation's episode.

    :param steps: [] int32, the number of steps so far
    :param reward: [], the total reward
    :param shaped_reward: [], the total reward after the filters
    :param terminated: [] bool, the episode has reached a terminal state
    :param truncated: [] bool, a limit has ended the episode
    """

    steps: Any
    reward: Any
    shaped_reward: Any
    terminated: Any
    truncated: Any


class CompiledActing(Protocol):
    """The functions with which an agent acts in a compiled loop."""

    def act(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays, level: Any) -> tuple[Any, Arrays]:
        """Choose the actions [N] or [N, D]. Return them with the recurrent state after the step.

        :param key: the key of the framework's random numbers
        :param states: [N, ...] by name, after all filters
        :param recurrent: [N, size] for each of ``recurrent_sizes``, before the step; zeros at the beginning of an
            episode
        :param level: [L], the levels of exploration in this step
        """

    def evaluate(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays) -> tuple[Any, Arrays]:
        """The same as ``act``, but for evaluations. There is one copy of the environment: N is 1."""

    def levels(self, ahead: int, steps: int) -> np.ndarray:
        """[steps, L] float32, the levels of exploration (such as epsilon) in the next steps. The host calls this
        method.

        :param ahead: number of environment steps before these steps that the agent's counters do not include yet
        """


class CompiledAgent(CompiledActing, Protocol):
    """An agent in a compiled loop.

    :ivar period: environment steps between two training phases
    :ivar updates_per_phase: K, the largest number of updates in a training phase
    :ivar recurrent_sizes: size of each part of the recurrent network's state; empty for none
    """

    period: int
    updates_per_phase: int
    recurrent_sizes: dict[str, int]

    # these methods are pure functions, which the framework traces

    def memory(self, example: PlayedStep) -> Any:
        """An empty memory: nested dicts of arrays [T, N, ...] and numbers.

        :param example: a step, for shapes and dtypes
        """

    def remember(self, memory: Any, step: PlayedStep) -> Any:
        """Return the memory with one more step."""

    def cut(self, memory: Any) -> Any:
        """Return the memory with all episodes in progress cut off at the last step. New episodes begin then."""

    def learn(self, key: Any, state: State, memory: Any, statistics: Any, phase: Phase) -> Learned:
        """Make the updates of a training phase."""

    # the host calls these methods

    def plan(self, clock: Any, steps: int, updates_before: int, most: int | None) -> PlannedPhase:
        """Plan the next training phase.

        :param clock: a copy of the agent's ``TrainingClock`` before the phase; the method advances it to the end of the
            phase
        :param steps: number of environment steps before the phase that the agent's counters do not include yet
        :param updates_before: number of updates before the phase that the networks' counters do not include yet
        :param most: the largest number of training steps that the run may still make; None for no limit
        """

    def phases(self, planned: Sequence[PlannedPhase]) -> Phase:
        """The planned phases as arrays [P, ...], the input of the loop."""

    def record(self, phases: Phase, outputs: np.ndarray, shown: dict[str, np.ndarray]) -> None:
        """Count and log finished training phases, and check their losses.

        :param phases: the M phases of one row of the CSV, stacked [M, ...], with their actual numbers of updates
        :param outputs: [M, K, outputs]
        :param shown: [M, ...] by name
        :raises TrainingError: if a loss is not finite
        """
