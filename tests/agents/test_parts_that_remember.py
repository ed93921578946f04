"""Users' parts that remember the episode: each of several copies has its own, and an evaluation leaves no trace."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.core_types import ActionInfo, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.exploration_policy import DiscreteActionExplorationPolicy, ExplorationParameters
from rl_coach.filters.action.action_filter import ActionFilter
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.reward.reward_filter import RewardFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import VectorObservationSpace
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats
from rl_coach.utils import CoachError
from tests.zoo.agents import of_class
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import dqn

COPIES = 3


class Lengths(gym.Env):
    """Observations [episode, step]; the reward is the action. Episode e of the copy with seed s has 3 + (e + s) % 4
    steps, so episodes of several copies never end together for long."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)
    episode = count = offset = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.offset = self.offset if seed is None else 100 * (seed % 97)
        self.episode, self.count = self.episode + 1, 0
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        over = self.count >= 3 + (self.episode + self.offset // 100) % 4
        return self._observation(), float(action), over, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self.offset + self.episode, self.count], np.float32)


class Before(ObservationFilter):
    """Appends the observation before; zeros at an episode's start. The statistics are of all episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None
        self.seen = NumpySharedRunningStats("seen")
        self.seen.set_params(shape=[2])

    def filter(self, observation: Any, update_internal_state: bool = True) -> Any:
        before = np.zeros_like(observation) if self.last is None else self.last
        if update_internal_state:
            self.last = observation
            self.seen.push(np.asarray(observation)[None])
        return np.concatenate([observation, before])

    def get_filtered_observation_space(self, input_observation_space: Any) -> Any:
        return VectorObservationSpace(4)

    def reset(self) -> None:
        self.last = None


class DeclaredBefore(Before):
    """The same, declared."""

    episode_attributes = ("last",)


class SuspendedBefore(Before):
    """The same, with the methods of earlier releases."""

    def suspend(self) -> Any:
        return self.last

    def resume(self, suspended: Any) -> None:
        self.last = suspended


class Summed(RewardFilter):
    """The sum of the episode's rewards so far."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0

    def filter(self, reward: Any, update_internal_state: bool = True) -> Any:
        self.total += reward
        return self.total

    def reset(self) -> None:
        self.total = 0.0


class Counted(ActionFilter):
    """The environment gets the number of the action in its episode, up to 2."""

    def __init__(self) -> None:
        super().__init__()
        self.number = -1

    def filter(self, action: Any) -> Any:
        self.number += 1
        return min(self.number, 2)

    def reset(self) -> None:
        self.number = -1


class InTurn(DiscreteActionExplorationPolicy):
    """The actions 0, 1, 2, 0, ... of each episode. The schedule and the random numbers are of all episodes."""

    def __init__(self, action_space: Any, schedule: Any):
        super().__init__(action_space)
        self.next, self.schedule = 0, schedule

    def get_action(self, action_values: Any, action_mask: Any = None) -> Any:
        action, self.next = self.next, (self.next + 1) % 3
        self.schedule.step()
        return action, np.eye(3)[action]

    def reset(self) -> None:
        self.next = 0


class InTurnParameters(ExplorationParameters):
    """See ``InTurn``."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = LinearSchedule(1.0, 0.0, 1000)

    @property
    def path(self) -> str:
        return f"{__name__}:InTurn"


def run(parameters: Any, directory: Any, copies: int = COPIES) -> Any:
    return graph(
        parameters, GymVectorEnvironment(f"{__name__}:Lengths"), directory, schedule(10**6), seed=3, copies=copies
    )


def plain() -> Any:
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(10**9)
    return parameters


def transitions(manager: Any) -> list[Any]:
    return list(manager.get_agent().memory.transitions)


def assert_right_before(manager: Any) -> None:
    found = transitions(manager)
    assert len({t.state["observation"][0] for t in found}) > COPIES
    for t in found:
        number, step, before_number, before_step = t.next_state["observation"]
        np.testing.assert_array_equal(t.state["observation"][:2], [before_number, before_step])
        assert number == before_number and step == before_step + 1
        if t.state["observation"][1] == 0:
            np.testing.assert_array_equal(t.state["observation"][2:], [0, 0])


@pytest.mark.parametrize("copies", [1, COPIES])
@pytest.mark.parametrize("kind", [Before, DeclaredBefore, SuspendedBefore])
def test_observation_filters(kind, copies, tmp_path):
    parameters, mine = plain(), kind()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "before", mine)
    manager = run(parameters, tmp_path, copies)
    manager.heatup(EnvironmentSteps(60))
    manager.train_and_act(EnvironmentSteps(30))
    manager.evaluate(EnvironmentSteps(20))
    manager.train_and_act(EnvironmentSteps(30))
    assert_right_before(manager)
    found = transitions(manager)
    firsts = sum(t.state["observation"][1] == 0 for t in found)
    seen = manager.get_agent().input_filter.observation_filters["observation"]["before"].seen
    assert len(found) + firsts <= seen.n <= len(found) + firsts + copies, "not those of the evaluation"


@pytest.mark.parametrize("copies", [1, COPIES])
def test_reward_filters(copies, tmp_path):
    parameters = plain()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_reward_filter("sum", Summed())
    parameters.exploration = InTurnParameters()
    manager = run(parameters, tmp_path, copies)
    manager.train_and_act(EnvironmentSteps(60))
    sums = [0, 1, 3, 3, 4, 6, 6]
    for t in transitions(manager):
        assert t.reward == sums[int(t.state["observation"][1])]


@pytest.mark.parametrize("copies", [1, COPIES])
def test_action_filters(copies, tmp_path):
    parameters = plain()
    parameters.output_filter = OutputFilter()
    parameters.output_filter.add_action_filter("count", Counted())
    manager = run(parameters, tmp_path, copies)
    manager.train_and_act(EnvironmentSteps(60))
    for t in transitions(manager):
        assert t.reward == min(int(t.state["observation"][1]), 2)


@pytest.mark.parametrize("copies", [1, COPIES])
def test_exploration_policies(copies, tmp_path):
    parameters = plain()
    parameters.exploration = InTurnParameters()
    manager = run(parameters, tmp_path, copies)
    manager.train_and_act(EnvironmentSteps(60))
    for t in transitions(manager):
        assert t.action == int(t.state["observation"][1]) % 3
    assert manager.get_agent().exploration_policy.schedule.num_steps == 60


class InTurnAgent(DQNAgent):
    """The actions 0, 1, 2, 0, ... of each episode, declared."""

    episode_attributes = ("next",)

    def reset_internal_state(self) -> None:
        super().reset_internal_state()
        self.next = 0

    def choose_action(self, curr_state: Any) -> Any:
        action, self.next = self.next, (self.next + 1) % 3
        return ActionInfo(action)


class UndeclaredAgent(InTurnAgent):
    """Begins its episodes in another way, and declares nothing."""

    def reset_internal_state(self) -> None:
        super().reset_internal_state()


class FromTheStartAgent(DQNAgent):
    """Keeps an attribute from its beginning, and declares nothing."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.next = 0

    def choose_action(self, curr_state: Any) -> Any:
        action, self.next = self.next, (self.next + 1) % 3
        return ActionInfo(action)


class LateAgent(DQNAgent):
    """Keeps an attribute that it makes while it acts, and declares nothing."""

    def choose_action(self, curr_state: Any) -> Any:
        self.next = (getattr(self, "next", -1) + 1) % 3
        return ActionInfo(self.next)


for one in (InTurnAgent, UndeclaredAgent, FromTheStartAgent, LateAgent):
    setattr(sys.modules[__name__], one.__name__, one)


@pytest.mark.parametrize("copies", [1, COPIES])
def test_agents(copies, tmp_path):
    manager = run(of_class(plain(), InTurnAgent), tmp_path, copies)
    manager.train_and_act(EnvironmentSteps(30))
    manager.evaluate(EnvironmentSteps(20))
    manager.train_and_act(EnvironmentSteps(30))
    for t in transitions(manager):
        assert t.action == int(t.state["observation"][1]) % 3


@pytest.mark.parametrize("kind", [UndeclaredAgent, FromTheStartAgent, LateAgent])
def test_agents_that_do_not_say_what_they_remember_are_refused(kind, tmp_path):
    with pytest.raises(CoachError, match=r"set episode_attributes \(\(\) if there are none\)") as refusal:
        run(of_class(plain(), kind), tmp_path).train_and_act(EnvironmentSteps(COPIES))
    assert "\n" not in str(refusal.value) and kind.__name__ in str(refusal.value)


def test_a_checkpoint_holds_what_is_declared(tmp_path):
    def make() -> Any:
        parameters = plain()
        parameters.input_filter = InputFilter()
        parameters.input_filter.add_observation_filter("observation", "before", DeclaredBefore())
        return run(of_class(parameters, InTurnAgent), tmp_path / "run")

    manager = make()
    manager.train_and_act(EnvironmentSteps(COPIES * 8))
    path = manager.save_checkpoint()
    resumed = make()
    resumed.restore_checkpoint(path, continue_run=True)
    resumed.train_and_act(EnvironmentSteps(COPIES * 8))
    assert_right_before(resumed)
    for t in transitions(resumed):
        assert t.action == int(t.state["observation"][1]) % 3
