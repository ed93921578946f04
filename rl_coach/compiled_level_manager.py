"""A level with a compiled loop: one call acts in the environment, fills the memory and learns for many steps."""

from __future__ import annotations

import contextlib
import copy
import os
import time
from typing import Any, NamedTuple, cast

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.finite_watch import ADVICE
from rl_coach.agents.core.overrides import override_that_excludes
from rl_coach.architectures.compiled_loop import Phase, Plan, PlannedPhase, Played, sources_of
from rl_coach.architectures.loop_of_seeds import LoopOfSeeds
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, EnvResponse, RunPhase, StepMethod, TrainingSteps
from rl_coach.environments.gym_environment import GymEnvironment
from rl_coach.filters.pure import PureFilters, without_pure_form
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.spaces import BoxActionSpace
from rl_coach.utilities import plain_data
from rl_coach.utilities.overrides import why_not_on_fast_path
from rl_coach.utilities.requirements import settings_below
from rl_coach.utils import CoachError, public_attributes

_STEPS_PER_CALL = 4096  # sum over all copies: a small overhead for each call, and bounded memory for its records
_SECONDS_PER_STEP = 0.2  # after this time the display is updated and signals are checked
_FIRST_STEPS = 100  # steps in the first call of an evaluation, before the time of a step is known
_COMPILED = {"compiled": True}
_PLAIN = (bool, int, float, str, type(None), StepMethod)
_READ_AT_EACH_CALL = {
    "learning_rate", "learning_rate_decay_rate", "learning_rate_decay_steps",
    "num_steps_between_copying_online_weights_to_target",
}  # fmt: skip


class _Call(NamedTuple):
    """A compiled call that has begun.

    :param plan: the steps and training phases of the call
    :param clock: the agent's clock after the call
    :param played: the results of the call; code that reads them waits for the end of the call
    :param updates: number of updates of the networks
    """

    plan: Plan
    clock: TrainingClock
    played: Played
    updates: int


class CompiledLevelManager(LevelManager):
    """Makes many steps in all copies of an environment, and the updates of the networks, in one compiled call.

    In heatup and training, ``step`` makes calls for about ``_SECONDS_PER_STEP`` seconds. While the device computes a
    call, Python plans the next call and records the results of the previous call. Calls do not exceed the limit
    ``left``. So evaluations, checkpoints and the end of the run come after the same steps as in other levels.
    Evaluations run in a separate environment. They use compiled calls too, unless a picture of each step is needed.

    :param name: the level's name
    :param agents: the agent
    :param environment: the environment, which supplies its spaces and its pure functions
    :param num_copies: N, the number of copies of the environment
    :param seed: seed of all random numbers in the loop
    :param settings: further parameters of ``LevelManager``
    """

    agent: Agent
    trains_in_one_episode = False

    def __init__(
        self, name: str, agents: Any, environment: GymEnvironment, num_copies: int, seed: int, **settings: Any
    ):
        super().__init__(name, agents, environment, **settings)
        agent, functions = self.agent, environment.functions
        assert functions is not None and self._simulator is not None
        self._seed, self._num_copies = seed, num_copies
        agent.clock.steps_at_once = num_copies
        framework = next(iter(agent.networks.values())).framework
        part, learner = agent.make_compiled(framework.compiled_loop.random, num_copies), agent.update_loop.learner
        self._steps_per_phase = max(1, part.period // num_copies)
        self._most_steps = max(self._steps_per_phase, _STEPS_PER_CALL // num_copies)
        self._most_phases = self._most_steps // self._steps_per_phase + 1
        self._part, self._settings = part, _settings_of(agent)
        task, filters = agent.ap.task_parameters, PureFilters(agent.pre_network_filter, learner.ops)
        actions = environment.action_space
        shapes = {name: tuple(map(int, space.shape)) for name, space in environment.state_space.sub_spaces.items()}
        self._sources = sources_of(shapes)
        bounds = (actions.low, actions.high) if isinstance(actions, BoxActionSpace) else None
        input_filters = PureFilters(agent.input_filter, learner.ops)
        self._evaluation = framework.compiled_evaluation(
            functions, shapes, bounds, part, part.recurrent_sizes, learner, input_filters, filters
        )
        self._loop: Any
        if task is not None and task.seeds_program is not None:
            name = os.path.basename(task.experiment_path)
            self._loop = LoopOfSeeds(task.seeds_program, name, learner, filters)
        else:
            self._loop = framework.compiled_loop(
                functions, shapes, bounds, part, learner, input_filters, filters, agent.ap.algorithm.discount,
                num_copies, self._most_steps, self._most_phases,
            )  # fmt: skip
        self._carry: Any = None
        self._evaluated: Any = None
        self._seconds_per_step: dict[RunPhase, float] = {}  # heatup is faster: it does not learn
        self._has_compiled = False
        self._updates_made = 0
        self._num_steps = 0
        self._row_step = -1
        self._counted = 0

    @property
    def num_devices(self) -> int:
        """Number of devices that share the copies."""
        return self._loop.num_devices

    def for_seeds(self, num_seeds: int) -> Any:
        """The loops of several seeds in one program; see ``JaxCompiledSeeds``. :param num_seeds: number of seeds"""
        return next(iter(self.agent.networks.values())).framework.compiled_seeds(self._loop, num_seeds)

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        super().reset_environment(force_environment_reset)
        if self.has_one_episode:
            return
        if self._carry is None:
            self._carry = self._loop.begin(self._seed)
        else:
            self._carry = self._loop.begin_episodes(self._carry)

    def step(self, action: Any) -> EnvResponse:
        """Act in all copies, and learn when training is due, for about ``_SECONDS_PER_STEP`` seconds and within the
        limit ``left``. The argument has no effect, because there is no level above.

        :return: the environment's last response
        :raises CoachError: if a method was replaced, or a setting was changed, after the loop was compiled
        """
        self._require_compiled_methods()
        if self.has_one_episode and self._evaluates_by_steps:
            return super().step(action)
        self._require_compiled_settings()
        if self.has_one_episode:
            return self._evaluate()
        self.agent.begin_training_if_due()
        first, started = self.environment_steps, time.perf_counter()
        with contextlib.nullcontext() if self._has_compiled else screen.waiting_for("compiling the loop"):
            call = self._begin_call(None, 0)
            while call is not None:
                done = (self.environment_steps - first) // self._num_copies + call.plan.steps
                following = self._begin_call(call, done) if self._goes_on(call, started) else None
                self._record(call.plan, self._loop.read(call.played))
                self.agent.clock.take_phases(call.clock)
                call = following
        if self._has_compiled:
            self._seconds_per_step[self._phase] = (time.perf_counter() - started) / done
        self._has_compiled = True
        self._loop.take_results(self._carry)
        return self._last_answer()

    def _require_compiled_methods(self) -> None:
        agent = self.agent
        chains = (agent.input_filter, agent.pre_network_filter)
        override = (
            uncalled_override(agent)
            or why_not_on_fast_path(agent.exploration_policy, ())
            or next(filter(None, map(without_pure_form, chains)), None)
        )
        if override is not None:
            raise CoachError(
                f"{override} was replaced after the loop was compiled, so it would not be called: override it in a "
                f"subclass instead, and Coach uses the ordinary loop"
            )

    def _require_compiled_settings(self) -> None:
        before = self._settings
        for path, value in _settings_of(self.agent).items():
            if path in before and before[path] != value:
                raise CoachError(
                    f"{path} was {before[path]} when the loop was compiled, and {value} would have no effect: change "
                    f"settings before the run, for example in on_creation of a callback"
                )

    @property
    def _evaluates_by_steps(self) -> bool:
        """True if an evaluation must make one step at a time."""
        return self.agent.evaluates_only or cast(GymEnvironment, self.active_environment).shows_steps

    def _evaluate(self) -> EnvResponse:
        """Continue an evaluation's episode by about ``_SECONDS_PER_STEP`` seconds. :return: the environment's
        response"""
        agent, environment = self.agent, cast(GymEnvironment, self.active_environment)
        if self._observation_due:
            self.look()
            self._evaluated = self._evaluation.begin(environment.beginning, int(agent.rng.integers(2**31)))
        expected = self._seconds_per_step.get(RunPhase.TEST)
        if expected is None:
            with screen.waiting_for("compiling the evaluation"):
                self._evaluation.play(self._evaluated, 0)
        started = time.perf_counter()
        most_steps = _FIRST_STEPS if expected is None else int(_SECONDS_PER_STEP / expected) + 1
        self._evaluated, played = self._evaluation.play(self._evaluated, most_steps)
        steps, reward = int(played.steps), float(played.reward)
        new = steps - environment.current_episode_steps_counter
        self._seconds_per_step[RunPhase.TEST] = (time.perf_counter() - started) / new
        self.environment_steps += new
        agent.record_evaluated(steps, reward, float(played.shaped_reward))
        response = environment.take_played(steps, reward, bool(played.terminated), bool(played.truncated))
        self.episode_over = response.game_over
        return response

    def _goes_on(self, call: _Call, started: float) -> bool:
        """True if another call may begin before the last one ends: time is left, and no limit of episodes applies."""
        expected = time.perf_counter() - started + self._seconds_per_step.get(self._phase, 0.0) * call.plan.steps
        return self._has_compiled and expected < _SECONDS_PER_STEP and self.left(EnvironmentEpisodes) is None

    def _begin_call(self, before: _Call | None, done: int) -> _Call | None:
        """Plan and begin a call; None if the limits are reached.

        :param before: the call that has begun and is not recorded; None without such a call
        :param done: steps of each copy in this ``step``, including the steps of ``before``
        """
        agent = self.agent
        clock = copy.copy(agent.clock if before is None else before.clock)
        steps, updates = self._steps_of_call(done, clock.updates - agent.clock.updates)
        if steps <= 0 or (updates is not None and updates <= 0):
            return None
        ahead = (0, 0) if before is None else (before.plan.steps * self._num_copies, before.updates)
        steps = self._loop.agreed_steps(steps, clock.steps // self._num_copies)
        plan, num_updates = self._plan(clock, steps, updates, *ahead)
        self._carry, played = self._loop.run(self._carry, plan)
        return _Call(plan, clock, played, num_updates)

    def _plan(
        self, clock: TrainingClock, steps: int, most_updates: int | None, ahead: int, updates_ahead: int
    ) -> tuple[Plan, int]:
        """The steps and training phases of a call.

        :param clock: the agent's clock at the call's start; it is advanced by the call
        :param steps: the largest number of steps of each copy
        :param most_updates: training steps left in the run; None for no limit
        :param ahead: environment steps before the call that are not counted yet
        :param updates_ahead: updates of the networks before the call that are not counted yet
        :return: the plan, and the number of updates of the networks
        """
        lengths = np.zeros(self._most_phases, np.int32)
        phases: list[PlannedPhase] = []
        rest, updates, before, left = steps, 0, clock.updates, most_updates
        while self._phase is RunPhase.TRAIN and rest:
            length = max(1, -(-(self._part.period - (clock.steps - clock.last_phase)) // self._num_copies))
            if length > rest:
                break
            lengths[len(phases)], rest = length, rest - length
            clock.steps += length * self._num_copies
            steps_until = ahead + (steps - rest) * self._num_copies
            phases.append(self._part.plan(clock, steps_until, updates_ahead + updates, left))
            updates += phases[-1].num_updates
            if most_updates is not None:
                left = most_updates - (clock.updates - before)
                if left <= 0:
                    steps, rest = steps - rest, 0
        levels = self._part.levels(ahead, steps)
        padded = np.zeros((self._most_steps, levels.shape[1]), np.float32)
        padded[:steps] = levels
        none = phases[-1] if phases else self._part.plan(copy.copy(clock), 0, 0, None)
        padded_phases = self._part.phases(phases + [none] * (self._most_phases - len(phases)))
        clock.steps += rest * self._num_copies
        return Plan(lengths, padded_phases, np.int32(len(phases)), np.int32(rest), padded), updates

    def _steps_of_call(self, done: int, updates: int) -> tuple[int, int | None]:
        """The limits of the next call: the steps of each copy, and the training steps (None for no limit).

        :param done: steps of each copy in this ``step``, which the graph has not counted yet
        :param updates: training steps of the call that is not recorded
        """
        least = 0 if done else 1  # each ``step`` takes at least one step in each copy
        expected = self._seconds_per_step.get(self._phase)
        steps = self._steps_per_phase if expected is None else int(_SECONDS_PER_STEP / expected) + 1
        steps = min(steps, self._most_steps)
        # in one step, an episode may end in each copy
        for unit, taken in ((EnvironmentSteps, done), (EnvironmentEpisodes, 0)):
            if (left := self.left(unit)) is not None:
                steps = min(steps, max(least, -(-left // self._num_copies)) - taken)
        left = self.left(TrainingSteps)
        return steps, None if left is None else max(least, left - self._updates_made - updates)

    def _record(self, plan: Plan, played: Played) -> None:
        """Count and record the steps and updates of a call in their order. Phases before the step that ends an episode,
        and right after it, belong to one row of the CSV and are recorded together."""
        ends = np.cumsum(plan.lengths[: plan.num_phases])
        steps, copies = np.nonzero(played.ended[: plan.steps])
        self._counted = done = 0
        for step in np.unique(steps).tolist():
            done = self._record_phases(plan, played, ends, done, int(np.searchsorted(ends, step, "right")))
            self._count(played, step + 1)
            self._close_row_before(step)
            for index in copies[steps == step].tolist():
                self._record_episode(played, step, index)
            done = self._record_phases(plan, played, ends, done, int(np.searchsorted(ends, step + 1, "right")))
        self._record_phases(plan, played, ends, done, len(ends))
        self._count(played, plan.steps)
        self._num_steps += plan.steps

    def _record_phases(self, plan: Plan, played: Played, ends: np.ndarray, first: int, last: int) -> int:
        """Record the training phases ``first`` to ``last - 1`` of a call. :return: ``last``"""
        if last > first:
            self._count(played, int(ends[last - 1]))
            self._close_row_before(int(ends[first]) - 1)
            before, rows = self.agent.training_iteration, slice(first, last)
            shown = {name: column[rows] for name, column in played.shown.items()}
            made = Phase(*(column[rows] for column in plan.phases))._replace(count=played.counts[rows])
            self._part.record(made, played.outputs[rows], shown)
            self._updates_made += self.agent.training_iteration - before
        return last

    def _record_episode(self, played: Played, step: int, index: int) -> None:
        report = EpisodeReport(
            self._phase,
            int(played.lengths[step, index]),
            float(played.rewards[step, index]),
            float(played.shaped_rewards[step, index]),
        )
        self.agent.record_played(report, float(played.returns[step, index]))
        self.ended_rewards.append(report.reward)
        self._row_step = self._num_steps + step

    def _count(self, played: Played, steps: int) -> None:
        """Count the steps of a call up to a step that is not counted yet. :param steps: the number of this step"""
        self._watch(played, self._counted, steps)
        new, self._counted = (steps - self._counted) * self._num_copies, steps
        self.environment_steps += new
        self.agent.count_played(new)
        self.agent.exploration_policy.advance(new)

    def _watch(self, played: Played, first: int, end: int) -> None:
        """Record the source of the first number that is not finite. An error about the loss names this source."""
        sources = played.sources[first:end]
        if self.agent.watch.source is None and sources.any():
            step, index = np.argwhere(sources)[0]
            source = self._sources[sources[step, index] - 1]
            when = f"step {played.lengths[first + step, index]} of an episode of copy {index}"
            advice = f": {ADVICE}" if source.startswith("the action") else ""
            self.agent.watch.source = f"{source} {when} is not finite{advice}"

    def _close_row_before(self, step: int) -> None:
        """Begin the next row of the CSV if episodes ended before this step of the call."""
        if self._row_step >= 0 and self._row_step != self._num_steps + step:
            self._row_step = -1
            self.agent.signals.begin_episode(self.agent.clock.episodes)

    def should_train(self) -> bool:
        """False, because the compiled calls of ``step`` learn."""
        return False

    def train(self, at_most: int | None = None) -> int:
        """The number of training steps in the compiled calls since the last ``train``. This method does not learn.

        :param at_most: no effect
        """
        made, self._updates_made = self._updates_made, 0
        return made

    def get_state(self) -> dict[str, Any]:
        if self._carry is None:
            return {**super().get_state(), "loop": None}
        arrays = plain_data.numbered(self._loop.leaves(self._carry))
        loop = {
            "arrays": arrays, "num_steps": self._num_steps, "row_step": self._row_step, "copies": self._num_copies,
        }  # fmt: skip
        return {**super().get_state(), "loop": loop}

    def _episode_state(self) -> dict[str, Any] | None:
        """A mark that the loop's state contains the episodes of all copies."""
        return None if self._carry is None or self._phase is RunPhase.TEST else dict(_COMPILED)

    def set_state(self, state: dict[str, Any]) -> None:
        # the training environment only supplies its spaces, so its state is not restored
        assert self._simulator is not None
        environments = {**state["environments"], "training": self._simulator.get_state()}
        super().set_state({**state, "environments": environments})
        if self.agent.evaluates_only:
            return
        loop = state.get("loop")
        self._carry = self._loop.begin(self._seed)
        if loop is None or not self._fits(loop):  # its steps since the last phase are not here
            self.agent.clock.last_phase = self.agent.clock.steps
            return
        self._carry = self._loop.with_leaves(self._carry, plain_data.in_order(loop["arrays"]))
        self._num_steps, self._row_step = loop["num_steps"], loop["row_step"]

    def _fits(self, loop: dict[str, Any] | None) -> bool:
        """True if a saved state is the state of a compiled loop with the same number of copies."""
        return loop is not None and loop.get("copies", self._num_copies) == self._num_copies

    def resume_saved_episode(self, state: dict[str, Any]) -> bool:
        """Continue the episodes of all copies. Call ``set_state`` before.

        :return: False if the state was saved without a compiled loop, or with another number of copies
        """
        if state["episode"] != _COMPILED or not self._fits(state.get("loop")):
            return False
        self.episode_over = False
        return True


def _settings_of(agent: Agent) -> dict[str, Any]:
    """The plain values that a compiled loop reads only once, by path, and the exploration policy's attributes."""
    found: dict[str, Any] = {}
    policy = agent.exploration_policy
    for part in ("algorithm", "exploration", "network_wrappers"):
        for path, holder in settings_below(getattr(agent.ap, part), part):
            for name, value in public_attributes(holder).items():
                if isinstance(value, _PLAIN) and name not in _READ_AT_EACH_CALL:
                    found[f"{path}.{name}"] = str(value) if isinstance(value, StepMethod) else value
                    if part == "exploration" and hasattr(policy, name):
                        found[f"exploration_policy.{name}"] = getattr(policy, name)
    return found


def uncalled_override(agent: Agent) -> str | None:
    """A user's override (``Class.method``) or part (``Class``) that a compiled loop would not use; None without one.

    Filters and exploration policies are checked elsewhere: some filters have a pure form, and the agent's method
    ``why_not_compiled`` checks the parameters of exploration policies.
    """
    if (override := override_that_excludes(agent, "make_compiled")) is not None:
        return override
    return next(filter(None, (why_not_on_fast_path(part, ()) for part in (agent.memory, agent.output_filter))), None)
