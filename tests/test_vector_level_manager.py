"""One agent in several copies of an environment: what each copy's episodes give is what one environment would give."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.environments.environment import Environment
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.utils import CoachError
from tests.zoo.environments import Bandit, SmallEnvironmentParameters, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import (
    PROBLEMS,
    actor_critic,
    clipped_ppo,
    dqn,
    policy_gradients,
    prioritized,
    soft_actor_critic,
)
from tests.zoo.states import weights_of


def vector_graph(
    agent: AgentParameters, environment: Any, directory: Any, copies: int, steps: Any = None, **settings: Any
) -> BasicRLGraphManager:
    """A graph in several copies; ``settings`` go to the environment."""
    parameters = SmallEnvironmentParameters(environment) if isinstance(environment, type) else environment
    for name, value in settings.items():
        setattr(parameters, name, value)
    return graph(agent, parameters, directory, steps, seed=3, copies=copies, writes_csv=True)


def rows_of(directory: Any) -> list[dict[str, str]]:
    (path,) = directory.glob("*.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("copies", [2, 5])
def test_steps_and_episodes_are_counted_in_every_copy(copies, tmp_path):
    """CartPole gives 1 for each step: a row's reward is its episode's length, and lengths add up to the steps."""
    manager = vector_graph(dqn(), GymVectorEnvironment("CartPole-v1"), tmp_path, copies)
    manager.train_and_act(EnvironmentSteps(400))
    agent = manager.get_agent()
    assert agent.total_steps_counter == manager.level_managers[0].environment_steps == 400
    open_steps = [agent.current_episode_steps_counter for _ in agent.parallel]
    ended = manager.get_current_episodes_count()
    manager.close()
    rows = rows_of(tmp_path)
    assert len(rows) == ended == agent.current_episode > copies
    assert [float(row["Training Reward"]) for row in rows] == [float(row["Episode Length"]) for row in rows]
    ended_steps = sum(int(float(row["Episode Length"])) for row in rows)
    # an episode that ended in the last step still stands in its lane
    assert ended_steps <= 400 <= ended_steps + sum(open_steps)
    assert agent.memory.num_transitions() == 400


@pytest.mark.parametrize(("copies", "playing"), [(4, 1), (4, 2), (4, 4), (3, 2), (2, 4)])
def test_updates_for_each_step_stay_the_same(copies, playing, tmp_path):
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(playing)
    manager = vector_graph(parameters, Bandit, tmp_path, copies)
    manager.train_and_act(EnvironmentSteps(60 * copies))
    assert manager.get_agent().training_iteration == 60 * copies // playing


def test_a_heatup_is_not_caught_up_with(tmp_path):
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    manager = vector_graph(parameters, Bandit, tmp_path, 4)
    manager.heatup(EnvironmentSteps(40))
    manager.train_and_act(EnvironmentSteps(4))
    assert 1 <= manager.get_agent().training_iteration <= 4


def test_one_call_of_the_network_gives_what_single_calls_give(tmp_path, monkeypatch):
    parameters = dqn()
    parameters.exploration.epsilon_schedule.current_value = 0.0
    manager = vector_graph(parameters, Bandit, tmp_path, 6)
    manager.train_and_act(EnvironmentSteps(30))
    agent = manager.get_agent()
    sizes, together, alone = [], [], []
    predict = DQNAgent.get_all_q_values_for_states

    def recorded(self, states):
        values = predict(self, states)
        sizes.append(len(values))
        if len(values) > 1:
            together.extend(values)
            rows = [{name: column[row] for name, column in states.items()} for row in range(len(values))]
            alone.extend(predict(self, [state])[0] for state in rows)
        return values

    monkeypatch.setattr(DQNAgent, "get_all_q_values_for_states", recorded)
    with manager.phase_context(RunPhase.TRAIN):
        agent.exploration_policy.current_random_value = 1.0
        manager.act(EnvironmentSteps(6))
    assert 6 in sizes
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)


def test_each_copy_stacks_its_own_frames(tmp_path):
    parameters = dqn()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(3))
    manager = vector_graph(parameters, Bandit, tmp_path, 3)
    seen: dict[int, list[np.ndarray]] = {}
    step = manager.environments[0].step_all

    def step_all(actions: Any) -> Any:
        responses = step(actions)
        for index, response in enumerate(responses):
            seen.setdefault(index, []).append(np.array(response.next_state["observation"]))
        return responses

    manager.environments[0].step_all = step_all
    manager.train_and_act(EnvironmentSteps(9))
    agent = manager.get_agent()
    for index in agent.parallel:
        np.testing.assert_array_equal(
            np.asarray(agent.curr_state["observation"]), np.stack(seen[index], axis=-1).ravel()
        )


def test_noise_of_an_episode_stays_in_its_copy(tmp_path):
    parameters = soft_actor_critic()
    parameters.exploration = OUProcessParameters()
    manager = vector_graph(parameters, Target, tmp_path, 2)
    manager.train_and_act(EnvironmentSteps(4))
    agent = manager.get_agent()
    for index in agent.parallel:
        agent.exploration_policy.state = np.array([float(index)])
    assert [agent.exploration_policy.state.tolist() for _ in agent.parallel] == [[0.0], [1.0]]


def test_ppo_learns_from_what_was_played_of_every_episode(tmp_path, monkeypatch):
    """Four copies, 64 steps: 16 steps of each, cut where the episodes go on, and the values beyond the cut count."""
    batches: list[Batch] = []
    fill = ClippedPPOAgent.fill_advantages

    def recorded(self, batch):
        batches.append(batch)
        return fill(self, batch)

    monkeypatch.setattr(ClippedPPOAgent, "fill_advantages", recorded)
    manager = vector_graph(clipped_ppo(), GymVectorEnvironment("CartPole-v1"), tmp_path, 4)
    manager.train_and_act(EnvironmentSteps(192))
    assert [len(batch) for batch in batches] == [64, 64, 64]
    for batch in batches:
        ends = np.flatnonzero(batch.game_overs())
        assert ends[-1] == 63 and len(ends) >= 4
        cut = ends[~batch.terminateds()[ends]]
        assert len(cut) >= 1
        inside = np.setdiff1d(np.arange(63), ends)
        # rows follow each other within an episode
        np.testing.assert_array_equal(
            batch.next_state_columns["observation"][inside], batch.state_columns["observation"][inside + 1]
        )


def test_the_return_of_an_episode_that_was_cut_is_that_of_all_of_it(tmp_path):
    parameters = clipped_ppo()
    parameters.algorithm.discount = 0.9
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(8)
    manager = vector_graph(parameters, GymVectorEnvironment("CartPole-v1"), tmp_path, 2)
    manager.train_and_act(EnvironmentSteps(300))
    manager.close()
    rows = rows_of(tmp_path)
    assert max(float(row["Episode Length"]) for row in rows) > 16
    for row in rows:
        length = float(row["Episode Length"])
        if row["Discounted Return/Min"] == row["Discounted Return/Max"]:  # no other episode ended in the same step
            assert float(row["Discounted Return/Mean"]) == pytest.approx((1 - 0.9**length) / 0.1, rel=1e-4)


def test_evaluation_takes_place_in_one_environment_and_changes_nothing(tmp_path):
    with_evaluations = schedule(200, evaluate_every=50, evaluation=2, heatup=40)
    runs = [
        vector_graph(dqn(), Bandit, tmp_path / str(i), 4, steps)
        for i, steps in enumerate((schedule(200, heatup=40), with_evaluations))
    ]
    for manager in runs:
        manager.improve()
    assert runs[1].total_steps_counters[RunPhase.TEST][EnvironmentEpisodes] == 8
    for a, b in zip(weights_of(runs[0]), weights_of(runs[1])):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("agent", [dqn, prioritized, actor_critic, policy_gradients, clipped_ppo])
def test_one_seed_gives_equal_weights(agent, tmp_path):
    first, second = (vector_graph(agent(), Bandit, tmp_path / str(i), 3) for i in range(2))
    for manager in (first, second):
        manager.heatup(EnvironmentSteps(30))
        manager.train_and_act(EnvironmentSteps(300))
    assert first.get_agent().training_iteration > 1
    for a, b in zip(weights_of(first), weights_of(second)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["dqn", "policy_gradients", "actor_critic", "clipped_ppo", "pqn", "soft_actor_critic"])
def test_agents_learn(name, tmp_path):
    agent, problem, steps, reward = PROBLEMS[name]
    plan = schedule(2 * steps, evaluate_every=2 * steps, evaluation=20, heatup=40)
    manager = vector_graph(agent(), problem, tmp_path, 4, plan)
    manager.improve()
    assert manager.progress.last_evaluation >= reward


@pytest.mark.parametrize("vectorization", ["async", "native"])
def test_other_ways_of_stepping_do_what_copies_in_this_process_do(vectorization, tmp_path):
    managers = [
        vector_graph(dqn(), GymVectorEnvironment("CartPole-v1"), tmp_path / way, 2, vectorization=way)
        for way in ("sync", vectorization)
    ]
    try:
        for manager in managers:
            manager.heatup(EnvironmentSteps(20))
            manager.train_and_act(EnvironmentSteps(100))
        states = [manager.get_state()["levels"]["main_level"] for manager in managers]
        assert states[0]["agent"]["clock"] == states[1]["agent"]["clock"]
        if vectorization == "async":
            assert states[0]["environments"]["training"]["1"] == states[1]["environments"]["training"]["1"]
        for a, b in zip(*map(weights_of, managers)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    finally:
        for manager in managers:
            manager.close()


@pytest.mark.parametrize("agent", [dqn, clipped_ppo])
def test_a_vector_environments_run_is_resumed_exactly(agent, tmp_path):
    managers = [
        vector_graph(agent(), GymVectorEnvironment("CartPole-v1"), tmp_path / name, 3, vectorization="native")
        for name in ("through", "first", "second")
    ]
    through, first, second = managers
    through.train_and_act(EnvironmentSteps(390))
    first.train_and_act(EnvironmentSteps(201))
    second.restore_checkpoint(first.save_checkpoint(), continue_run=True)
    second.train_and_act(EnvironmentSteps(189))
    assert through.get_agent().training_iteration == second.get_agent().training_iteration > 1
    for a, b in zip(weights_of(through), weights_of(second)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("agent", "copies", "vectorization"),
    [
        (dqn, (3, 5), "sync"), (dqn, (3, 1), "sync"), (dqn, (1, 3), "sync"), (dqn, (5, 3), "native"),
        (clipped_ppo, (3, 5), "sync"), (clipped_ppo, (5, 3), "native"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("resumes", [False, True])
def test_a_checkpoint_can_be_gone_on_from_in_another_number_of_copies(agent, copies, vectorization, resumes, tmp_path):
    first, second = (
        vector_graph(
            agent(), GymVectorEnvironment("CartPole-v1"), tmp_path / str(count), count, vectorization=vectorization
        )
        for count in copies
    )
    first.train_and_act(EnvironmentSteps(100))
    second.restore_checkpoint(first.save_checkpoint(), continue_run=resumes)
    for one, other in zip(weights_of(first), weights_of(second)):
        np.testing.assert_array_equal(one, other)
    second.train_and_act(EnvironmentSteps(150))
    assert second.get_agent().training_iteration > first.get_agent().training_iteration > 0


def test_bad_settings_say_so(tmp_path):
    with pytest.raises(CoachError, match="num_environments is 0; it must be a whole number from 1"):
        vector_graph(dqn(), Bandit, tmp_path, 0)
    with pytest.raises(CoachError, match="vectorization is 'threads'; it must be auto, sync, async or native"):
        vector_graph(dqn(), Bandit, tmp_path, 2, vectorization="threads")
    imitating = dqn()
    imitating.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    manager = vector_graph(imitating, Bandit, tmp_path, 2)
    with pytest.raises(CoachError, match=r"chose no action .* need env_params.num_environments = 1"):
        manager.train_and_act(EnvironmentSteps(2))


def test_only_the_first_copy_is_shown(tmp_path):
    manager = vector_graph(dqn(), Bandit, tmp_path, 3)
    shown: list[Environment] = manager.environments[0].copies
    assert shown[0].visualization_parameters is manager.visualization_parameters
    assert [copy.seed for copy in shown] == [shown[0].seed + i for i in range(3)]
