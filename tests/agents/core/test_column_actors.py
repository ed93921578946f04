"""One pass over all actors does what the ordinary path does for each of them."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent
from rl_coach.agents.core.column_actors import override_that_keeps_off, why_not_in_columns
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.logger import screen
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.utils import CoachError
from tests.agents.test_overrides import plain_bytes
from tests.frameworks import agents_of_zoo, not_on_mxnet
from tests.samples import one_in
from tests.zoo.agents import of_class
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import PROBLEMS, actor_critic, clipped_ppo, dqn, soft_actor_critic

COPIES = 3
IN_COLUMNS = {
    "dqn", "ddqn", "dueling", "prioritized", "munchausen", "categorical", "quantile_regression", "pqn", "clipped_ppo",
    "trpo", "soft_actor_critic", "maximum_entropy", "redq", "droq", "tqc", "crossq", "fast_td3",
}  # fmt: skip
"""Those of ``PROBLEMS`` that act in all copies in one pass; the others act in one copy after the other."""


class OneAfterTheOther:
    """Keeps an agent on the ordinary path by an override that changes nothing."""

    def observe_transition(self, transition: Any) -> bool:
        return super().observe_transition(transition)  # type: ignore[misc]


class OrdinaryDQN(OneAfterTheOther, DQNAgent):
    """DQN on the ordinary path."""


class OrdinaryPPO(OneAfterTheOther, ClippedPPOAgent):
    """PPO on the ordinary path."""


def greedy_dqn(epsilon: float = 0.0) -> Any:
    parameters = dqn()
    parameters.exploration.epsilon_schedule = ConstantSchedule(epsilon)
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(10**9)
    return parameters


def ppo(rollout: int = 36) -> Any:
    parameters = clipped_ppo()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(rollout)
    return parameters


def stacking_ppo(rollout: int = 36) -> Any:
    parameters = ppo(rollout)
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(3))
    return parameters


def a2c() -> Any:
    parameters = actor_critic()
    parameters.algorithm.learns_from_copies_together = True
    parameters.algorithm.num_steps_between_gradient_updates = 4
    return parameters


def cart_pole(parameters: Any, directory: Any, copies: int = COPIES, seed: int = 3, **settings: Any) -> Any:
    environment = GymVectorEnvironment("CartPole-v1")
    for name, value in settings.items():
        setattr(environment, name, value)
    return graph(parameters, environment, directory, schedule(10**6), seed=seed, copies=copies)


def is_in_columns(manager: BasicRLGraphManager) -> bool:
    return bool(manager.get_agent().parallel.are_in_columns)


def rows_by_copy(transitions: Any, copies: int) -> list[list[tuple[Any, ...]]]:
    """The transitions of each copy, stored one after the other in each step."""
    rows = [
        (t.state["observation"], t.action, t.reward, t.next_state["observation"], bool(t.game_over), bool(t.terminated))
        for t in transitions
    ]
    return [rows[index::copies] for index in range(copies)]


def assert_same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> None:
    assert len(one) == len(other) > 0
    for first, second in zip(one, other):
        for value, expected in zip(first, second):
            np.testing.assert_array_equal(value, expected)


def test_the_transitions_of_three_copies_are_those_of_three_single_runs(tmp_path):
    """A greedy policy of the same weights; the copies' environments have the seeds that follow each other."""
    together = cart_pole(greedy_dqn(), tmp_path / "together")
    together.train_and_act(EnvironmentSteps(COPIES * 80))
    assert is_in_columns(together)
    by_copy = rows_by_copy(together.get_agent().memory.transitions, COPIES)
    seed = together.environments[0].copies[0].seed
    weights = together.get_agent().networks["main"].online_network.get_weights()
    for index in range(COPIES):
        alone = cart_pole(greedy_dqn(), tmp_path / str(index), copies=1)
        alone.get_agent().networks["main"].online_network.set_weights(weights)
        alone.environments[0].seed_episodes(seed + index)
        alone.train_and_act(EnvironmentSteps(80))
        (single,) = rows_by_copy(alone.get_agent().memory.transitions, 1)
        assert any(row[4] for row in single), "no episode ended"
        assert_same(by_copy[index], single)


@pytest.mark.parametrize("vectorization", ["sync", "native"])
def test_the_ordinary_path_plays_the_same_episodes(vectorization, tmp_path):
    found = []
    for kind in (DQNAgent, OrdinaryDQN):
        parameters = of_class(greedy_dqn(), kind)
        manager = cart_pole(parameters, tmp_path / kind.__name__, vectorization=vectorization)
        manager.train_and_act(EnvironmentSteps(COPIES * 60))
        agent = manager.get_agent()
        assert is_in_columns(manager) == (kind is DQNAgent)
        episodes = [(one.steps, one.total_reward, one.total_shaped_reward) for one in agent.parallel.episodes]
        found.append((rows_by_copy(agent.memory.transitions, 1)[0], episodes, agent.total_steps_counter))
    assert_same(found[0][0], found[1][0])
    assert found[0][1:] == found[1][1:]


def test_filters_and_probabilities_are_those_of_the_ordinary_path(tmp_path):
    """PPO draws with the same random numbers, so both paths play and learn the same, up to rounding."""
    found = []
    for kind in (ClippedPPOAgent, OrdinaryPPO):
        parameters = of_class(ppo(), kind)
        parameters.input_filter = InputFilter()
        parameters.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.1))
        manager = cart_pole(parameters, tmp_path / kind.__name__)
        batches: list[Any] = []
        agent = manager.get_agent()
        fill = agent.fill_advantages
        agent.learning._columns = lambda batch, batches=batches, fill=fill: batches.append(fill(batch)) or batches[-1]
        manager.train_and_act(EnvironmentSteps(36))
        assert agent.training_iteration == 1
        (columns,) = batches
        order = np.lexsort(columns["states/observation"].T)
        found.append({name: column[order] for name, column in columns.items()})
    for name in found[1]:
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=2e-5, atol=2e-5, err_msg=name)


def test_a2c_learns_from_all_copies_together(tmp_path):
    manager = cart_pole(a2c(), tmp_path)
    manager.train_and_act(EnvironmentSteps(COPIES * 12))
    assert is_in_columns(manager) and manager.get_agent().training_iteration == 3


@pytest.mark.parametrize("make", [greedy_dqn, ppo, stacking_ppo, a2c], ids=["dqn", "ppo", "stacks", "a2c"])
def test_a_run_continues_exactly(make, tmp_path):
    """Also in the middle of a rollout."""
    whole = cart_pole(make(), tmp_path / "whole")
    whole.train_and_act(EnvironmentSteps(COPIES * 17))
    path = whole.save_checkpoint()
    whole.train_and_act(EnvironmentSteps(COPIES * 20))
    resumed = cart_pole(make(), tmp_path / "resumed")
    resumed.restore_checkpoint(path, continue_run=True)
    resumed.train_and_act(EnvironmentSteps(COPIES * 20))
    assert plain_bytes(whole) == plain_bytes(resumed)


@pytest.mark.parametrize("make", [ppo, stacking_ppo], ids=["ppo", "stacks"])
def test_an_evaluation_in_between_leaves_no_trace(make, tmp_path):
    found = []
    for evaluates in (False, True):
        manager = cart_pole(make(), tmp_path / str(evaluates))
        manager.train_and_act(EnvironmentSteps(COPIES * 17))
        if evaluates:
            manager.evaluate(EnvironmentSteps(30))
        manager.train_and_act(EnvironmentSteps(COPIES * 20))
        found.append(manager.get_agent().networks["main"].online_network.get_weights())
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_stacks_and_returns_go_on_where_another_path_plays_in_between(tmp_path):
    """Who asks for the episodes gets objects; the columns begin again with them."""
    found = []
    for is_interrupted in (False, True):
        manager = cart_pole(stacking_ppo(COPIES * 25), tmp_path / str(is_interrupted))
        agent = manager.get_agent()
        for _ in range(40):
            manager.train_and_act(EnvironmentSteps(COPIES))
            if is_interrupted:
                for index in agent.parallel:
                    agent.parallel.enter(index)
        assert agent.current_episode > 0 and agent.training_iteration == 1
        episodes = agent.parallel.episodes
        found.append([(one.steps, one.return_before, one.discount_before) for one in episodes])
        found.append(agent.networks["main"].online_network.get_weights())
        for one in episodes:
            powers = agent.ap.algorithm.discount ** np.arange(one.steps + 1)
            np.testing.assert_allclose([one.return_before, one.discount_before], [powers[:-1].sum(), powers[-1]])
    assert found[0] == found[2] and len({steps for steps, _, _ in found[0]}) > 1
    for one, other in zip(found[1], found[3]):
        np.testing.assert_array_equal(one, other)


def test_stacks_are_those_of_the_ordinary_path(tmp_path):
    """Also the two stacks after the start of an episode, which have frames from before."""
    found: list[list[Any]] = [[], []]
    for is_ordinary, rows in zip((False, True), found):
        manager = cart_pole(stacking_ppo(10**6), tmp_path / str(is_ordinary))
        agent = manager.get_agent()
        if is_ordinary:
            agent.update_log = agent.update_log
        for _ in range(40):
            manager.train_and_act(EnvironmentSteps(COPIES))
            assert is_in_columns(manager) != is_ordinary
            rows += [(one.steps, one.curr_state["observation"]) for one in agent.parallel.episodes]
        assert agent.current_episode > 0
    assert_same(*found)


def test_no_step_of_a_rollout_leads_into_the_next_episode(tmp_path):
    """The first state of an episode does not overwrite the last one of the episode before."""
    manager = telling(ppo(10**6), tmp_path)
    manager.train_and_act(EnvironmentSteps(COPIES * 11))
    batch = manager.get_agent().experience.rollout.take()
    states, next_states = (columns["observation"] for columns in (batch.state_columns, batch.next_state_columns))
    assert len(states) == COPIES * 11 and np.count_nonzero(batch.game_over_column) > COPIES
    np.testing.assert_array_equal(next_states, states + 1)


def test_an_episode_that_is_left_is_truncated_in_the_rollout(tmp_path):
    """A run from a checkpoint begins new episodes in the middle of a rollout."""
    first = cart_pole(ppo(10**6), tmp_path / "first")
    first.train_and_act(EnvironmentSteps(COPIES * 5))
    path = first.save_checkpoint()
    manager = cart_pole(ppo(10**6), tmp_path / "second")
    manager.restore_checkpoint(path)
    manager.train_and_act(EnvironmentSteps(COPIES * 5))
    batch = manager.get_agent().experience.rollout.take()
    states, next_states = (columns["observation"] for columns in (batch.state_columns, batch.next_state_columns))
    assert len(states) == COPIES * 10 and np.count_nonzero(batch.game_over_column) == 2 * COPIES
    assert not batch.terminated_column.any()
    continues = ~batch.game_over_column[:-1]
    np.testing.assert_array_equal(next_states[:-1][continues], states[1:][continues])


def test_an_evaluation_between_two_episodes_leaves_no_trace(tmp_path):
    """Some copies have ended their episode when the evaluation begins, and begin the next one after it."""
    found, num_due = [], 0
    for evaluates in (False, True):
        manager = telling(greedy_dqn(), tmp_path / str(evaluates))
        for _ in range(11):
            manager.train_and_act(EnvironmentSteps(COPIES))
            num_due += len(manager.level_managers[0].due)
            if evaluates:
                manager.evaluate(EnvironmentSteps(1))
        found.append(rows_by_copy(manager.get_agent().memory.transitions, 1)[0])
    assert num_due > 0
    assert_same(*found)


def test_an_override_keeps_an_agent_off_and_a_line_says_so(tmp_path, monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(screen, "warning", lines.append)
    manager = cart_pole(greedy_dqn(), tmp_path)
    agent = manager.get_agent()
    agent.observe = agent.observe
    manager.train_and_act(EnvironmentSteps(COPIES * 2))
    assert not is_in_columns(manager)
    assert [line for line in lines if "because of the override DQNAgent.observe, the copies" in line]


def test_an_override_of_an_instance_keeps_it_off(tmp_path):
    manager = cart_pole(greedy_dqn(), tmp_path)
    agent = manager.get_agent()
    assert override_that_keeps_off(agent) is None
    agent.update_log = lambda: None
    assert override_that_keeps_off(agent) == "DQNAgent.update_log"


class WithARule(DQNAgent):
    """Overrides what the pass calls as the ordinary path does, and has a new method."""

    def make_update_rule(self) -> Any:
        return super().make_update_rule()

    def choose_actions(self, states: Any) -> Any:
        WithARule.calls += 1
        return super().choose_actions(states)

    def helper(self) -> None:
        """A new method does not count."""

    calls = 0


def test_allowed_overrides_are_called(tmp_path):
    sys.modules[__name__].WithARule = WithARule
    manager = cart_pole(of_class(greedy_dqn(), WithARule), tmp_path)
    before = WithARule.calls
    manager.train_and_act(EnvironmentSteps(COPIES * 5))
    assert is_in_columns(manager) and WithARule.calls == before + 5


def test_segments_of_episodes_are_learned_from_whatever_the_memory_keeps(tmp_path):
    parameters = actor_critic()
    parameters.memory = ExperienceReplayParameters()
    parameters.algorithm.num_steps_between_gradient_updates = 4
    parameters.algorithm.apply_gradients_every_x_episodes = 1
    manager = cart_pole(parameters, tmp_path)
    agent = manager.get_agent()
    assert "segments of each episode" in why_not_in_columns(agent)
    manager.train_and_act(EnvironmentSteps(COPIES * 8))
    assert agent.training_iteration > 0


def test_what_has_no_columns_is_played_one_after_the_other(tmp_path):
    noisy, n_steps, waiting, delayed = soft_actor_critic(), greedy_dqn(), greedy_dqn(), ppo()
    noisy.exploration = OUProcessParameters()
    n_steps.algorithm.n_step = 3
    waiting.algorithm.act_for_full_episodes = True
    delayed.algorithm.override_episode_rewards_with_the_last_transition_reward = True
    for number, (parameters, level, reason) in enumerate(
        [
            (noisy, "Pendulum-v1", "OUProcess chooses one action at a time"),
            (n_steps, "CartPole-v1", "sums several rewards"),
            (waiting, "CartPole-v1", "wait for the end of an episode"),
            (delayed, "CartPole-v1", "rewards are known at the end of the episode"),
        ]
    ):
        manager = graph(parameters, GymVectorEnvironment(level), tmp_path / str(number), schedule(100), copies=COPIES)
        assert reason in why_not_in_columns(manager.get_agent())
        manager.train_and_act(EnvironmentSteps(COPIES * 3))
        assert not is_in_columns(manager)


def test_rewards_of_the_last_step_need_whole_episodes(tmp_path):
    parameters = ppo()
    parameters.algorithm.override_episode_rewards_with_the_last_transition_reward = True
    manager = graph(parameters, GymVectorEnvironment("CartPole-v1"), tmp_path, schedule(100), copies=COPIES)
    with pytest.raises(CoachError, match="last_transition_reward needs the end of each episode"):
        manager.train_and_act(EnvironmentSteps(1000))


class Telling(gym.Env):
    """Tells the number of the step, and at an episode's end its length. Episodes have three or four steps."""

    observation_space = gym.spaces.Box(-10, 10, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    episodes = count = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.episodes, self.count = self.episodes + 1, 0
        return np.zeros(2, np.float32), {"count": 0}

    def step(self, action: Any) -> Any:
        self.count += 1
        has_ended = self.count >= 3 + self.episodes % 2
        info = {"count": self.count, **({"length": self.count} if has_ended else {})}
        return np.full(2, self.count, np.float32), 1.0, has_ended and self.episodes % 3 > 0, has_ended, info


class TellingBySeed(Telling):
    """The seed decides how long the first episode is, so that the copies do not end their episodes together."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.episodes = self.episodes if seed is None else seed % 6
        return super().reset(seed=seed, options=options)


def telling(parameters: Any, directory: Any) -> Any:
    environment = GymVectorEnvironment(f"{__name__}:TellingBySeed")
    return graph(parameters, environment, directory, schedule(10**6), seed=3, copies=COPIES)


@pytest.mark.parametrize("make", [greedy_dqn, ppo, a2c], ids=["dqn", "ppo", "a2c"])
def test_infos_are_stored_as_on_the_ordinary_path(make, tmp_path):
    """Also those that only some steps have."""
    found = []
    for is_ordinary in (False, True):
        manager = telling(make(), tmp_path / str(is_ordinary))
        agent = manager.get_agent()
        if is_ordinary:
            agent.update_log = agent.update_log
        manager.train_and_act(EnvironmentSteps(COPIES * 11))
        assert is_in_columns(manager) != is_ordinary
        found.append([dict(transition.info) for transition in agent.memory.transitions] if make is greedy_dqn else [])
    assert found[0] == found[1]
    assert make is not greedy_dqn or any("length" in info for info in found[0])


class Weighing(Telling):
    """The environment has a weight, too."""

    def step(self, action: Any) -> Any:
        *answer, info = super().step(action)
        return *answer, {**info, "weight": 100.0}


@pytest.mark.parametrize("copies", [1, COPIES])
def test_an_environments_weight_is_no_importance_weight(copies, tmp_path):
    environment = GymVectorEnvironment(f"{__name__}:Weighing")
    manager = graph(greedy_dqn(), environment, tmp_path, schedule(10**6), seed=3, copies=copies)
    manager.train_and_act(EnvironmentSteps(copies * 11))
    agent = manager.get_agent()
    batch = agent.batches.sample(1, 8)
    assert "length" in batch.info_columns and (copies == 1 or is_in_columns(manager))
    np.testing.assert_array_equal(agent.learning_columns(batch)["weights"], np.ones(8))


def test_statistics_of_a_filter_take_in_every_copy(tmp_path):
    parameters = greedy_dqn(epsilon=1.0)
    parameters.pre_network_filter = InputFilter()
    parameters.pre_network_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    parameters.algorithm.update_pre_network_filters_state_on_inference = True
    manager = cart_pole(parameters, tmp_path)
    manager.train_and_act(EnvironmentSteps(COPIES * 10))
    filters = manager.get_agent().pre_network_filter.observation_filters["observation"]
    assert filters["normalize"].running_observation_stats.n == COPIES * 10


COMPARED = agents_of_zoo(sorted(name for name in PROBLEMS if name not in ("clipped_ppo", "direct_future_prediction")))
ROUNDS = not_on_mxnet("NumPy is older than 2, and sums the advantages of one copy in another precision")
COMPARED.append(pytest.param("clipped_ppo", marks=ROUNDS))


@pytest.mark.parametrize("name", one_in(3, COMPARED))
def test_every_agent_learns_the_same_on_both_paths(name, tmp_path):
    """Bit for bit, whichever agents act in columns: the random numbers are drawn in the same order."""
    found = []
    for is_ordinary in (False, True):
        make, environment = PROBLEMS[name][:2]
        parameters = make()
        manager = graph(parameters, environment, tmp_path / str(is_ordinary), schedule(10**6), seed=3, copies=COPIES)
        agent = manager.get_agent()
        if is_ordinary:
            agent.update_log = agent.update_log
        manager.heatup(EnvironmentSteps(30))
        manager.train_and_act(EnvironmentSteps(COPIES * 20))
        found.append((is_in_columns(manager), plain_bytes(manager), agent.total_steps_counter, agent.current_episode))
    assert (found[0][0], found[1][0]) == (name in IN_COLUMNS, False)
    assert found[0][1:] == found[1][1:], f"in columns: {found[0][0]}"
