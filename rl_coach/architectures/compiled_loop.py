"""A loop that is compiled as a whole: acting, stepping the environment, remembering and learning in one call.

A framework compiles it (``jax_components/compiled_loop.py``). An agent says how it acts, remembers and learns, as pure
functions (``CompiledAgent``). The host plans each call: how many steps, and after which of them the agent learns.
"""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Protocol, Sequence

import numpy as np

from rl_coach.architectures.update import NetworkView

Arrays = dict[str, Any]
"""Arrays of one kind by name, such as observations."""
Networks = dict[str, NetworkView]
"""The networks of an agent by name."""
State = dict[str, Any]
"""Each network's groups of arrays, by name; see ``TrainingStep``."""


class PlayedStep(NamedTuple):
    """A step in all copies of an environment.

    :param states: [N, ...] by name, as the input filters give them
    :param actions: [N] int32 or [N, D] float32, of the agent
    :param rewards: [N], filtered
    :param next_states: [N, ...], those reached, also where an episode ends
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
    """A training phase as the host plans it.

    :param num_updates: of the networks; the most that there can be, if the data decide
    :param moves: the updates after which targets move, [K] bool; or for all of them a bool
    :param steps: environment steps between the last counted one and the phase
    :param updates_before: number of updates before it that are not counted yet
    :param training_step: its number, from 0 on
    """

    num_updates: int
    moves: Any
    steps: int
    updates_before: int
    training_step: int


class Phase(NamedTuple):
    """A training phase as the compiled loop gets it.

    :param count: [] int32, number of updates; the most that there can be, if the data decide
    :param scalars: [K, S] float32, each update's numbers; see ``UpdateLayout``; [1, S] if the data decide how many
        updates there are
    :param moves_targets: [] bool, targets are updated in this phase
    """

    count: Any
    scalars: Any
    moves_targets: Any


class Learned(NamedTuple):
    """The result of a training phase.

    :param state: of the networks
    :param memory: the memory after the phase
    :param statistics: of the pre-network filters
    :param count: [] int32, number of updates that were made
    :param outputs: [K, outputs] of the updates; see ``Learner.updates_within``
    :param shown: arrays to log, by name
    """

    state: State
    memory: Any
    statistics: Any
    count: Any
    outputs: Any
    shown: Arrays


class Plan(NamedTuple):
    """The plan of a call: for each phase some steps, then learning; then some more steps.

    :param lengths: [P] int32, steps of each copy before each phase
    :param phases: those, stacked [P, ...]
    :param num_phases: [] int32, how many of the P there are
    :param rest: [] int32, steps after the last
    :param levels: [S, L] float32, how the agent explores in each step
    """

    lengths: Any
    phases: Phase
    num_phases: Any
    rest: Any
    levels: Any

    @property
    def steps(self) -> int:
        """Steps of each copy in all."""
        return int(self.lengths[: self.num_phases].sum() + self.rest)


class Played(NamedTuple):
    """The record of a call. All arrays have rows that are not used, at the end.

    :param ended: [S, N] bool, episodes that ended in each step
    :param rewards: [S, N], the total reward of each that ended
    :param shaped_rewards: [S, N], the same after the filters
    :param returns: [S, N], discounted and after the filters
    :param lengths: [S, N] int32, steps
    :param sources: [S, N] int32, the first source of a number that is not finite, as its place in ``sources_of`` plus
        one; 0 if all numbers of the step are finite
    :param counts: [P] int32, number of updates of each phase
    :param outputs: [P, K, outputs] of the updates of each phase
    :param shown: [P, ...] by name, what each phase has to log
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
    """The sources of the numbers of a step, each as text that "step 3" continues. A wrong number spreads in this
    order."""
    names = list(observations)
    given, filtered = "that the environment gave in", "that the input filter made of a finite one in"
    return [
        *(f"the observation '{name}' that the environment gave before" for name in names),
        "the action that the network chose in",
        *(f"the observation '{name}' {by}" for by in (given, filtered) for name in names),
        *(f"the reward {by}" for by in (given, filtered)),
    ]


class Evaluated(NamedTuple):
    """An episode of an evaluation, from its beginning.

    :param steps: [] int32, so far
    :param reward: [], the total reward
    :param shaped_reward: [], the same after the filters
    :param terminated: [] bool, it has come to its end
    :param truncated: [] bool, a limit has ended it
    """

    steps: Any
    reward: Any
    shaped_reward: Any
    terminated: Any
    truncated: Any


class CompiledActing(Protocol):
    """Acting in a compiled loop."""

    def act(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays, level: Any) -> tuple[Any, Arrays]:
        """The actions [N] or [N, D] in states [N, ...] as networks see them, and the recurrent state after them.

        :param key: of the framework's random numbers
        :param recurrent: [N, size] for each of ``recurrent_sizes``, before the step; zeros at the beginning of episodes
        :param level: [L], how the agent explores in this step
        """

    def evaluate(self, key: Any, networks: Networks, states: Arrays, recurrent: Arrays) -> tuple[Any, Arrays]:
        """The same as ``act``, for evaluations with one copy: N is 1."""

    def levels(self, ahead: int, steps: int) -> np.ndarray:
        """[steps, L] float32, how the agent explores in its next steps in the present phase of the run; asked on the
        host.

        :param ahead: environment steps before them that are not counted yet
        """


class CompiledAgent(CompiledActing, Protocol):
    """An agent's part in a compiled loop.

    :ivar period: environment steps between two training phases
    :ivar updates_per_phase: K, the most updates of a training phase
    :ivar recurrent_sizes: size of each part of the recurrent network's state; empty for none
    """

    period: int
    updates_per_phase: int
    recurrent_sizes: dict[str, int]

    # pure functions, which the framework traces

    def memory(self, example: PlayedStep) -> Any:
        """An empty memory, a tree of arrays [T, N, ...] and numbers. :param example: a step, for shapes and dtypes"""

    def remember(self, memory: Any, step: PlayedStep) -> Any:
        """The memory with one step more."""

    def cut(self, memory: Any) -> Any:
        """The memory with all episodes in progress cut off after the last step, because new ones begin."""

    def learn(self, key: Any, state: State, memory: Any, statistics: Any, phase: Phase) -> Learned:
        """Make the updates of a training phase."""

    # asked on the host

    def plan(self, clock: Any, steps: int, updates_before: int, most: int | None) -> PlannedPhase:
        """The next training phase.

        :param clock: a copy of the agent's ``TrainingClock``, in its state at that time; the method advances it by the
            phase
        :param steps: environment steps between the last counted one and the phase
        :param updates_before: number of updates before it that are not counted yet
        :param most: training steps that the run still wants, None for no limit
        """

    def phases(self, planned: Sequence[PlannedPhase]) -> Phase:
        """Planned phases [P, ...] as the loop gets them."""

    def record(self, phases: Phase, outputs: np.ndarray, shown: dict[str, np.ndarray]) -> None:
        """Count and log training phases that have been made, and check their losses.

        :param phases: stacked [M, ...], M of them that belong to one row of the CSV, with the updates that were made
        :param outputs: [M, K, outputs]
        :param shown: [M, ...] by name
        :raises TrainingError: a loss is not finite
        """
