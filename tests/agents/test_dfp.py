"""Direct future prediction: its targets, its update and its choice of actions, against the paper's equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.dfp_agent import HandlingTargetsAfterEpisodeEnd
from rl_coach.agents.rules.future_measurements import future_measurements_rule, steps_ahead, values_for_goal
from rl_coach.base_parameters import AgentParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward import RewardRescaleFilter
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.spaces import ActionMaskSpace, ActionSpace, DiscreteActionSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.agents.numpy_rules import FixedNetwork, batch, run
from tests.zoo.environments import Bandit, Lottery, SmallEnvironment
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import direct_future_prediction

LAST, NAN = HandlingTargetsAfterEpisodeEnd.LastStep, HandlingTargetsAfterEpisodeEnd.NAN
K = 3  # 1, 2 and 4 steps ahead


class Larder(SmallEnvironment):
    """Seven steps, or three in every other episode. Health and food are random walks; the observation is their step."""

    episodes = 0

    def observations(self) -> dict[str, Any]:
        names = ["health", "food"]
        return {
            "observation": VectorObservationSpace(1),
            "measurements": VectorObservationSpace(2, measurements_names=names),
        }

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(3)

    def first_state(self) -> dict[str, np.ndarray]:
        self.episodes += 1
        return self._measured()

    def _measured(self) -> dict[str, np.ndarray]:
        measurements = self.rng.normal(scale=(30, 2), size=2)
        return {"observation": np.array([self.steps], np.float32), "measurements": measurements.astype(np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        self.state = self._measured()
        return float(self.rng.normal()), self.steps == (7 if self.episodes % 2 else 3), False


class MaskedLarder(Larder):
    """The last action is never allowed."""

    def observations(self) -> dict[str, Any]:
        return {**super().observations(), "mask": ActionMaskSpace(3)}

    def _measured(self) -> dict[str, np.ndarray]:
        return {**super()._measured(), "mask": np.array([1, 1, 0], np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        assert action != 2, "a masked action was taken"
        return super().outcome(action)


def predicting(goal: list[float], **algorithm: Any) -> AgentParameters:
    agent = direct_future_prediction()
    settings = {
        "goal_vector": goal,
        "future_measurements_weights": [0.5, 1.0],
        "use_accumulated_reward_as_measurement": False,
    }
    for name, value in {**settings, **algorithm}.items():
        setattr(agent.algorithm, name, value)
    return agent


def by_hand(episode: Any, scales: np.ndarray, accumulates: bool) -> tuple[np.ndarray, np.ndarray]:
    """[T, K, M] targets, NaN after the episode's end, and the same where measurements stay as they were then."""
    steps = episode.transitions
    states = [step.state["measurements"] for step in steps] + [steps[-1].next_state["measurements"]]
    measured = np.array(states, np.float64)
    if accumulates:
        assert np.allclose(np.diff(measured[:, -1]), [step.reward for step in steps], atol=1e-5)
        assert measured[0, -1] == 0
    masked, held = np.full((2, len(steps), K, len(scales)), np.nan)
    for t in range(len(steps)):
        for k, offset in enumerate((1, 2, 4)):
            held[t, k] = (measured[min(t + offset, len(steps))] - measured[t]) / scales
            if t + offset <= len(steps):
                masked[t, k] = held[t, k]
    return masked, held


@pytest.mark.parametrize("handling", [LAST, NAN])
@pytest.mark.parametrize("accumulates", [False, True])
def test_targets_are_the_changes_of_the_measurements(handling, accumulates, tmp_path):
    goal = [1.0, 0.5, 0.25] if accumulates else [1.0, 0.5]
    agent = predicting(
        goal,
        use_accumulated_reward_as_measurement=accumulates,
        handling_targets_after_episode_end=handling,
        scale_measurements_targets={"health": 30.0},
    )
    agent.input_filter = InputFilter()
    agent.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.5))
    manager = graph(agent, Larder, tmp_path, schedule(60, heatup=40))
    manager.improve()
    dfp = manager.get_agent()
    scales = np.array([30.0, 1.0, 1.0][: len(goal)])
    expected = [by_hand(episode, scales, accumulates) for episode in dfp.memory.get_all_complete_episodes()]
    masked, held = (np.concatenate(parts) for parts in zip(*expected))
    every = dfp.memory.get_all_complete_episodes_transitions()
    of_row = {tuple(row): i for i, row in enumerate(every.state_columns["measurements"].tolist())}
    assert np.isnan(masked).any() and len(of_row) == len(every)

    drawn = dfp.batches.sample(updates=4, batch_size=64)
    rows = np.array([of_row[tuple(row)] for row in drawn.state_columns["measurements"].tolist()])
    columns = dfp.learning_columns(drawn)
    np.testing.assert_allclose(columns["extra/future_measurements"], held[rows], rtol=1e-5, atol=1e-5)
    is_known = np.ones(held.shape[:2]) if handling is LAST else ~np.isnan(masked[..., 0])
    np.testing.assert_array_equal(columns["extra/is_known"], is_known[rows])
    np.testing.assert_array_equal(columns["actions"], every.action_column[rows])
    np.testing.assert_array_equal(columns["states/goal"], np.tile(np.float32(goal), (len(rows), 1)))
    assert len(set(rows)) > 0.8 * len(every)  # steps before an episode's end and after it are drawn alike


def test_steps_ahead_end_with_their_episode():
    """Episodes of 3 and 5 steps at positions 0 to 2 and 3 to 7."""
    ahead, is_known = steps_ahead(np.array([0, 2, 3, 7]), np.array([2, 2, 7, 7]), K)
    np.testing.assert_array_equal(ahead, [[0, 1, 2], [2, 2, 2], [3, 4, 6], [7, 7, 7]])
    np.testing.assert_array_equal(is_known, [[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]])


def test_the_loss_is_the_squared_error_of_what_is_known():
    """Two rows, two actions, two offsets of two measurements. By hand: row 0 took action 1 and knows the first offset
    only, (1 - 0.5)^2 + (2 - 2.5)^2 = 0.5; row 1 took action 0, 1 + 4 + 0 + 9 = 14; loss 3 (0.5 + 14) / 2 = 21.75."""
    predictions = np.array([[[9, 9, 9, 9], [0.5, 2.5, 9, 9]], [[1, 2, 3, 4], [9, 9, 9, 9]]], np.float32)
    learned = batch(
        actions=np.array([1, 0]),
        extra={
            "future_measurements": np.array([[[1, 2], [7, 7]], [[2, 4], [3, 1]]]),
            "is_known": np.array([[1, 0], [1, 1]]),
        },
    )
    network = FixedNetwork([{"measurements": predictions}])
    assert run(future_measurements_rule(3.0), {"main": network}, learned).losses["main"] == pytest.approx(21.75)


def test_the_goal_weighs_measurements_and_the_last_offsets():
    """By hand: action 0 gives 0.5 (3 - 2 * 4) + (5 - 2 * 6) = -9.5, action 1 gives 0.5 (1 - 0) + (0 - 2) = -1.5."""
    predictions = np.array([[[1, 2, 3, 4, 5, 6], [8, 8, 1, 0, 0, 1]]], np.float32)
    values = values_for_goal(predictions, np.array([1, -2]), np.array([0.5, 1]))
    np.testing.assert_allclose(values, [[-9.5, -1.5]])


def test_an_update_descends_the_loss_of_the_equations(tmp_path):
    """The change of each weight by gradient descent, along a random direction, is that of the loss in float64."""
    agent = predicting([1.0, 0.5], handling_targets_after_episode_end=NAN)
    agent.network_wrappers["main"].optimizer_type, rate = "SGD", 1e-4
    agent.network_wrappers["main"].learning_rate = rate
    manager = graph(agent, Larder, tmp_path, schedule(1, heatup=60))
    manager.improve()
    dfp = manager.get_agent()
    learned = dfp.batches.sample(1, 16)
    columns = dfp.learning_columns(learned)
    network, names = dfp.networks["main"].online_network, dfp.update_loop.input_names
    inputs = {name: columns[f"states/{name}"] for name in names}

    def loss() -> float:
        predicted = network.predict(inputs).astype(np.float64)[np.arange(16), learned.actions()].reshape(16, K, 2)
        errors = (columns["extra/future_measurements"] - predicted)[columns["extra/is_known"] > 0]
        return float((errors**2).sum() / 16)

    before, weights = loss(), [w.astype(np.float64) for w in network.get_weights()]
    found = dfp.learn_from_batch(learned)[0]
    assert found == pytest.approx(before, rel=1e-4)
    gradients = [(w - new) / rate for w, new in zip(weights, network.get_weights())]
    direction = [g / np.sqrt(sum((one**2).sum() for one in gradients)) for g in gradients]
    width, sides = 1e-3, []
    for sign in (1, -1):
        network.set_weights([(w + sign * width * d).astype(np.float32) for w, d in zip(weights, direction)])
        sides.append(loss())
    slope = (sides[0] - sides[1]) / (2 * width)
    assert slope == pytest.approx(sum((g * d).sum() for g, d in zip(gradients, direction)), rel=0.02)


def test_it_acts_for_its_goal(tmp_path):
    agent = predicting([1.0, -0.5])
    dfp = graph(agent, Larder, tmp_path).get_agent()
    states = [
        {"observation": np.array([i], np.float32), "measurements": np.array([i, 1], np.float32)} for i in range(5)
    ]
    inputs = {
        "observation": np.arange(5, dtype=np.float32)[:, None],
        "measurements": np.stack([np.arange(5), np.ones(5)], axis=1).astype(np.float32),
        "goal": np.tile(np.float32([1, -0.5]), (5, 1)),
    }
    predicted = dfp.networks["main"].online_network.predict(inputs).astype(np.float64).reshape(5, 3, K, 2)
    objective = predicted[..., 0] - 0.5 * predicted[..., 1]
    np.testing.assert_allclose(
        dfp.get_all_q_values_for_states(states), 0.5 * objective[..., 1] + objective[..., 2], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(dfp.get_prediction(states), predicted.reshape(5, 3, 2 * K), rtol=1e-5)


@pytest.mark.parametrize("copies", [1, 2])
def test_it_learns_which_light_is_on_from_the_reward_so_far(copies, tmp_path):
    agent = predicting([1.0], use_accumulated_reward_as_measurement=True, handling_targets_after_episode_end=LAST)
    manager = graph(agent, Bandit, tmp_path, schedule(600, evaluation=20, heatup=100), copies=copies)
    manager.improve()
    assert np.mean(manager.evaluation_rewards) >= 9.5


def test_it_never_takes_a_masked_action(tmp_path):
    manager = graph(predicting([1.0, 0.5]), MaskedLarder, tmp_path, schedule(60, evaluation=5, heatup=40))
    manager.improve()
    assert manager.get_agent().training_iteration > 0


def without_scale(agent: Any) -> None:
    agent.algorithm.scale_measurements_targets = {"helth": 2.0}


def with_wrong_scale(agent: Any) -> None:
    agent.algorithm.scale_measurements_targets = {"food": 0}


def with_wrong_goal(agent: Any) -> None:
    agent.algorithm.goal_vector = [1.0]


def with_many_weights(agent: Any) -> None:
    agent.algorithm.future_measurements_weights = [1.0] * 4


def with_single_transitions(agent: Any) -> None:
    agent.memory = ExperienceReplayParameters()


@pytest.mark.parametrize(
    "change, environment, message",
    [
        (without_scale, Larder, "names 'helth', which is not a measurement; did you mean 'health'"),
        (with_wrong_scale, Larder, r"scale_measurements_targets\['food'\] is 0; it must be a number above 0"),
        (with_wrong_goal, Larder, r"goal_vector is 1, and the number of measurements is 2 \(health, food\)"),
        (with_many_weights, Larder, "future_measurements_weights has 4 numbers, and num_predicted_steps_ahead is 3"),
        (with_single_transitions, Larder, "learns from complete episodes, and its memory, ExperienceReplay, does"),
        (lambda agent: None, Lottery, "predicts the observation 'measurements', which the environment does not have"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, environment, message, tmp_path):
    agent = predicting([1.0, 0.5])
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, environment, tmp_path)
