"""Coach's off-policy evaluation, of recorded transitions and of networks."""

from __future__ import annotations

import csv
import pathlib

import gymnasium
import numpy as np
import pytest

from rl_coach import make_agent
from rl_coach.core_types import CsvDataset, Episode, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.off_policy_evaluators.bandits.doubly_robust import DoublyRobust
from rl_coach.off_policy_evaluators.ope_manager import OpeEstimation, OpeManager, OpeSharedStats
from rl_coach.off_policy_evaluators.rl.sequential_doubly_robust import SequentialDoublyRobust
from rl_coach.off_policy_evaluators.rl.weighted_importance_sampling import WeightedImportanceSampling
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

FEATURES = [f"state_feature_{i}" for i in range(4)]


class Table:
    """Stands for a network: the outputs for states 0, 1, …"""

    def __init__(self, rows: list[list[float]]):
        self.rows = np.array(rows, np.float32)

    def predict(self, states: dict[str, np.ndarray]) -> np.ndarray:
        assert len(states["observation"]) <= 2
        return self.rows[states["observation"][:, 0].astype(int)]


# values of state 0, 1 and 2; with temperature 1 / log(3) the better action has probability 3/4 where it is better by 1
Q = Table([[2.0, 1.0], [0.0, 1.0], [4.0, 4.0]])
REWARDS = Table([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])


def step(state: int, action: int, reward: float, next_state: int, over: bool = False, terminated: bool = False):
    return Transition(
        {"observation": np.array([state], np.float32)}, action, reward, {"observation": np.array([next_state])}, over,
        {"all_action_probabilities": np.array([0.5, 0.5])}, terminated,
    )  # fmt: skip


def data_set() -> tuple[list[Episode], list[Transition]]:
    """One episode that terminates after two steps, and one that is cut off after one, in state 2."""
    episodes = [Episode(discount=0.5), Episode(discount=0.5)]
    for episode, transition in (
        (0, step(0, 0, 1.0, 1)), (0, step(1, 0, 3.0, 2, True, True)), (1, step(0, 1, 2.0, 2, True)),
    ):  # fmt: skip
        episodes[episode].insert(transition)
    return episodes, [transition for episode in episodes for transition in episode]


def evaluated(temperature: float) -> tuple[OpeEstimation, list[Episode]]:
    episodes, transitions = data_set()
    manager = OpeManager(temperature)
    manager.gather_static_shared_stats(transitions, 2, REWARDS, ["observation"])
    return manager.evaluate(episodes, transitions, 2, 0.5, Q, ["observation"]), episodes


def test_estimates_by_hand():
    found, episodes = evaluated(1 / np.log(3))
    # ratios 1.5, 0.5 and 0.5; the policy takes action 0 with 3/4, 1/4, 3/4
    assert found.ips == pytest.approx((1.5 * 1 + 0.5 * 3 + 0.5 * 2) / 3)
    assert found.dm == pytest.approx((0.75 + 1.5 + 0.75) / 3)
    assert found.dr == pytest.approx(1.0 + (1.5 * (1 - 1) + 0.5 * (3 - 0) + 0.5 * (2 - 0)) / 3)
    # returns 1 + 0.5 * 3 = 2.5 and 2 + 0.5 * 4 = 4 (the last state's value), weights 0.75 and 0.5
    assert found.wis == pytest.approx((0.75 * 2.5 + 0.5 * 4) / 1.25)
    # v is 1.75, 0.75, 1.75: second step 0.75 + 0.5 (3 - 0) = 2.25, first 1.75 + 1.5 (1 + 0.5 * 2.25 - 2) = 1.9375;
    # the other episode 1.75 + 0.5 (4 - 1) = 3.25
    assert found.seq_dr == pytest.approx((1.9375 + 3.25) / 2)
    assert SequentialDoublyRobust.evaluate(episodes, 0.5) == found.seq_dr
    assert WeightedImportanceSampling.evaluate(episodes) == found.wis


def test_the_deployed_policy_is_greedy():
    found, _ = evaluated(0)
    # it takes action 0 in state 0 and 1 in state 1, so no recorded episode is its own
    assert found.ips == pytest.approx((2 * 1 + 0 + 0) / 3) and found.dm == pytest.approx((1 + 2 + 1) / 3)
    assert np.isnan(found.wis)
    stats = OpeSharedStats(REWARDS.rows, REWARDS.rows * 0 + 0.5, None, np.ones(3), np.zeros(3, int), *[np.ones(3)] * 3)
    assert DoublyRobust.evaluate(stats)[0] == 1


def test_the_policy_never_takes_a_masked_action():
    """With a third action that is the best and forbidden, all estimates are those of the other two."""
    q, model = (Table(np.column_stack([table.rows, [9.0, 9.0, 9.0]]).tolist()) for table in (Q, REWARDS))
    for temperature in (1 / np.log(3), 0):
        episodes, transitions = data_set()
        for transition in transitions:
            transition.state = {**transition.state, "mask": np.array([1, 1, 0])}
            # after its end, an episode may allow no action
            transition.next_state = {**transition.next_state, "mask": np.array([1, 1, 0]) * (not transition.terminated)}
            transition.info["all_action_probabilities"] = np.array([0.5, 0.5, 0.0])
        manager = OpeManager(temperature, mask_name="mask")
        manager.gather_static_shared_stats(transitions, 2, model, ["observation"])
        found = manager.evaluate(episodes, transitions, 2, 0.5, q, ["observation"])
        np.testing.assert_allclose(found, evaluated(temperature)[0])


def test_bad_data_is_refused_in_one_line():
    episodes, transitions = data_set()
    manager = OpeManager()
    with pytest.raises(CoachError, match="call gather_static_shared_stats with this data set before evaluate"):
        manager.evaluate(episodes, transitions, 2, 0.5, Q, ["observation"])
    with pytest.raises(CoachError, match="there is no recorded step"):
        manager.gather_static_shared_stats([], 2, REWARDS, ["observation"])
    manager.gather_static_shared_stats(transitions, 2, REWARDS, ["observation"])
    transitions[0].n_steps = 3
    with pytest.raises(CoachError, match="needs the reward of each step"):
        manager.evaluate(episodes, transitions, 2, 0.5, Q, ["observation"])
    del transitions[0].info["all_action_probabilities"]
    with pytest.raises(CoachError, match="all_action_probabilities"):
        manager.gather_static_shared_stats(transitions, 2, REWARDS, ["observation"])
    with pytest.raises(CoachError, match="temperature"):
        OpeManager(-1)


@pytest.mark.parametrize("empty", [[], [Episode()]])
@pytest.mark.parametrize("discount", [None, 0.5])
def test_data_without_a_step_is_one_line(empty, discount):
    with pytest.raises(CoachError, match="there is no recorded episode to evaluate a policy with"):
        WeightedImportanceSampling.evaluate(empty, discount)
    with pytest.raises(CoachError, match="there is no recorded episode to evaluate a policy with"):
        SequentialDoublyRobust.evaluate(empty, 0.5)
    none = np.zeros(0)
    with pytest.raises(CoachError, match="there is no recorded step to evaluate a policy with"):
        DoublyRobust.evaluate(OpeSharedStats(np.zeros((0, 2)), np.zeros((0, 2)), none, none, none, none, none, none))


def record_random_play(path: pathlib.Path) -> None:
    """Five episodes of CartPole in Coach's layout."""
    environment = gymnasium.make("CartPole-v1")
    environment.action_space.seed(0)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["episode_id", "action", "reward", "all_action_probabilities", *FEATURES])
        for episode in range(5):
            state, over = environment.reset(seed=episode)[0], False
            while not over:
                action = environment.action_space.sample()
                rows.writerow([episode, action, 1.0, [0.5, 0.5], *state])
                state, _, terminated, truncated, _ = environment.step(action)
                over = terminated or truncated


def test_an_agent_is_evaluated_on_a_recorded_file(tmp_path):
    record_random_play(tmp_path / "played.csv")
    memory = EpisodicExperienceReplayParameters()
    memory.train_to_eval_ratio = 0.5
    agent = make_agent("DQN", "CartPole-v1", seed=0, framework=FRAMEWORK.name, memory=memory)
    held = agent.graph_manager.level_managers[0].agents["agent"]
    held.memory.load_csv(CsvDataset(str(tmp_path / "played.csv")), None)
    held.memory.prepare_evaluation_dataset()
    episodes, steps = held.memory.evaluation_dataset_as_episodes, held.memory.evaluation_dataset_as_transitions
    network = held.networks["main"].online_network
    manager = OpeManager()
    manager.gather_static_shared_stats(steps, 64, network, ["observation"])
    found = manager.evaluate(episodes, steps, 64, 0.99, network, ["observation"])
    values = network.predict({"observation": np.stack([step.state["observation"] for step in steps])})
    policy = np.exp(values / 0.2) / np.exp(values / 0.2).sum(axis=1, keepdims=True)
    ratios = policy[np.arange(len(steps)), [step.action for step in steps]] / 0.5
    assert len(episodes) == 2 and found.ips == pytest.approx(ratios.mean(), rel=1e-5)
    assert found.dm == pytest.approx((policy * values).sum(axis=1).mean(), rel=1e-5, abs=1e-7)
    returns = [(1 - 0.99 ** len(episode)) / 0.01 for episode in episodes]
    weights = [chosen.prod() for chosen in np.split(ratios, [len(episodes[0])])]
    assert found.wis == pytest.approx(np.average(returns, weights=weights), rel=1e-4)
