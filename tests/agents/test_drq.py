"""DrQ-v2: its shifts, its updates against a recomputation in float64, and the encoder that two networks share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.drq_agent import DrQv2AgentParameters, trunk
from rl_coach.agents.rules.drq import shifted
from rl_coach.architectures.layers import Conv2d, Dense, Detached
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.environments.toy_problems.pendulum_pixels import PendulumPixels
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import ImageObservationSpace
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import (
    adam_of,
    assert_equal,
    dense,
    float64,
    gradient,
    moved,
    one_update,
    recorded_columns,
)
from tests.agents.numpy_rules import ops
from tests.zoo.environments import Target
from tests.zoo.graphs import graph

SIZE, UPDATES, NOISE, CLIPPING, SHIFT = 4, 3, 0.2, 0.3, 1
CENTRE, RADIUS = 1.0, 3.0  # of the problem's actions, from -2 to 4
Weights = list[np.ndarray]


class PictureOfTarget(Target):
    """The target as a picture of 5 x 5 pixels with one channel, whose brightness and noise differ."""

    def observations(self) -> dict[str, Any]:
        return {"observation": ImageObservationSpace(np.array([5, 5, 1]), high=255)}

    def first_state(self) -> dict[str, np.ndarray]:
        self.target = float(self.rng.uniform(-1, 1))
        picture = self.rng.integers(0, 60, (5, 5, 1)) + 90 + int(80 * self.target)
        return {"observation": picture.astype(np.uint8)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = -abs(float(action[0]) - 1.0 - 2.0 * self.target)
        self.state = self.first_state()
        return reward, self.steps == 4, self.steps >= 6


def tiny() -> AgentParameters:
    agent = DrQv2AgentParameters()
    for name, network in agent.network_wrappers.items():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-3
        embedder = network.input_embedders_parameters["observation"]
        embedder.activation_function = "tanh"
        embedder.scheme = [Conv2d(2, 3, 2), *([Detached()] if name == "actor" else []), *trunk(3)]
        network.middleware_parameters.scheme = [Dense(2)]
        network.middleware_parameters.activation_function = "tanh"
    agent.algorithm.num_consecutive_training_steps = UPDATES
    agent.algorithm.rate_for_copying_weights_to_target = 0.3
    agent.algorithm.image_shift, agent.algorithm.noise_clipping = SHIFT, CLIPPING
    agent.exploration.noise_schedule = ConstantSchedule(NOISE)
    return agent


def moved_pictures(pictures: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """A border that repeats the edge, then a crop: the paper's words, not indices."""
    found = []
    for picture, (down, right) in zip(pictures, shifts.astype(int)):
        wide = np.pad(picture, ((SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)), mode="edge")
        top, left = SHIFT + down, SHIFT + right
        found.append(wide[top : top + picture.shape[0], left : left + picture.shape[1]])
    return np.stack(found)


def features(weights: Weights, pictures: np.ndarray, layers: int = 2) -> np.ndarray:
    """[B, 3]: a convolution of 3 x 3 every two pixels, then the trunk: dense, layer normalisation, tanh.

    :param layers: of the scheme before the trunk's, each of which has an activation behind it: Detached and Flatten too
    """
    kernel, bias, *rest = weights
    maps = np.zeros((len(pictures), 2, 2, 2))
    for i, j in np.ndindex(2, 2):
        window = pictures[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] / 255.0
        maps[:, i, j] = np.einsum("bhwc,hwcf->bf", window, kernel) + bias
    x = maps.reshape(len(pictures), -1)
    for _ in range(layers):
        x = np.tanh(x)
    x = x @ rest[0] + rest[1]
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return np.tanh(x * rest[2] + rest[3])


def actor_of(weights: Weights, pictures: np.ndarray) -> np.ndarray:
    x = np.tanh(dense(weights[6:], 0, features(weights, pictures, layers=3)))
    return CENTRE + RADIUS * np.tanh(dense(weights[6:], 1, x))


def critics_of(weights: Weights, pictures: np.ndarray, actions: np.ndarray) -> np.ndarray:
    joined = np.concatenate([actions, features(weights, pictures)], axis=1)
    streams = [np.tanh(dense(weights[6:], stream, joined)) for stream in range(2)]
    return np.concatenate([dense(weights[6:], 2 + stream, x) for stream, x in enumerate(streams)], axis=1)


def noisy(actions: np.ndarray, noise: np.ndarray) -> np.ndarray:
    limit = CLIPPING * RADIUS
    return np.clip(actions + np.clip(2 * RADIUS * NOISE * noise, -limit, limit), -2, 4)


def straight_through(actor: Weights, start: Weights, pictures: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The noisy actions at ``start``, moved as the policy's own actions move: what is cut off has a slope too."""
    own = actor_of(start, pictures)
    return noisy(own, noise) + actor_of(actor, pictures) - own


def reference(agent: Any, columns: dict[str, np.ndarray]) -> dict[str, Weights]:
    parameters = agent.ap.network_wrappers
    weights = {name: float64(agent.networks[name].state.arrays("weights")) for name in ("actor", "critic")}
    target = float64(agent.networks["critic"].state.arrays("target_weights"))
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in weights}
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        s = moved_pictures(batch["states/observation"], batch["extra/shifts"])
        s_t = moved_pictures(batch["next_states/observation"], batch["extra/next_shifts"])
        a_t = noisy(actor_of(weights["actor"], s_t), batch["extra/next_noise"])
        y = batch["rewards"] + batch["discounts"] * critics_of(target, s_t, a_t).min(axis=1)

        def critic_loss(critic: Weights, y: Any = y, s: Any = s, a: Any = batch["actions"]) -> float:
            return float(((critics_of(critic, s, a) - y[:, None]) ** 2).sum(axis=1).mean())

        weights["critic"] = optimizers["critic"](weights["critic"], gradient(critic_loss, weights["critic"]))

        def actor_loss(
            actor: Weights, s: Any = s, noise: Any = batch["extra/noise"], start: Any = weights["actor"],
            critic: Any = weights["critic"],
        ) -> float:  # fmt: skip
            own = [*start[:2], *actor[2:]]  # nothing passes back into the encoder
            return -float(critics_of(critic, s, straight_through(own, start, s, noise)).min(axis=1).mean())

        weights["actor"] = optimizers["actor"](weights["actor"], gradient(actor_loss, weights["actor"]))
        target = moved(target, weights["critic"], agent.ap.algorithm.rate_for_copying_weights_to_target)
        weights["actor"][:2] = target[:2] = weights["critic"][:2]
    return {**weights, "target": target}


def with_absolute_noise() -> AgentParameters:
    agent = tiny()
    agent.exploration.noise_as_percentage_from_action_space = False
    agent.exploration.noise_schedule = ConstantSchedule(2 * RADIUS * NOISE)
    return agent


@pytest.mark.parametrize("make", [tiny, with_absolute_noise])
def test_several_updates_are_those_of_the_paper(make, tmp_path):
    agents = []
    for number in range(2):  # one learns, the reference begins where the other one is
        manager = graph(make(), PictureOfTarget, tmp_path / str(number))
        manager.heatup(EnvironmentSteps(60))
        agents.append(manager.get_agent())
    agent, fresh = agents
    batches = recorded_columns(agent)
    agent.phase = RunPhase.TRAIN
    float(agent.update_loop.learn(UPDATES))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    assert {tuple(row) for row in columns["extra/shifts"]} != {(0.0, 0.0)}
    assert {0.99, 0.99**3} & set(np.round(columns["discounts"], 6).tolist())  # returns of three steps
    expected = reference(fresh, columns)
    for name in ("critic", "actor"):
        assert_equal(agent.networks[name].state.arrays("weights"), expected[name])
    assert_equal(agent.networks["critic"].state.arrays("target_weights"), expected["target"])
    encoders = [
        agent.networks["critic"].state.arrays("weights"), agent.networks["critic"].state.arrays("target_weights"),
        agent.networks["actor"].state.arrays("weights"),
    ]  # fmt: skip
    for kernels in zip(*encoders):
        if kernels[0].ndim == 4:
            assert np.array_equal(kernels[0], kernels[1]) and np.array_equal(kernels[0], kernels[2])


def test_a_shift_worked_out_by_hand():
    pictures = np.arange(9, dtype=np.uint8).reshape(1, 3, 3, 1).repeat(2, axis=0)
    found = np.asarray(shifted(ops, pictures, np.array([[1.0, 0.0], [0.0, -2.0]], np.float32)))[..., 0]
    assert found.tolist() == [[[3, 4, 5], [6, 7, 8], [6, 7, 8]], [[0, 0, 0], [3, 3, 3], [6, 6, 6]]]


def test_each_row_of_a_batch_has_shifts_of_its_own_within_the_limit(tmp_path):
    manager = graph(tiny(), PictureOfTarget, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent = manager.get_agent()
    batch = agent.memory.get_all_complete_episodes_transitions()
    from rl_coach.core_types import Batch

    columns = agent.learning_columns(Batch(batch))
    for name in ("extra/shifts", "extra/next_shifts"):
        assert set(np.unique(columns[name])) == {-1.0, 0.0, 1.0}
    assert not np.array_equal(columns["extra/shifts"], columns["extra/next_shifts"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda agent: setattr(agent.algorithm, "use_target_network_for_evaluation", True),
            "because the actor has no target network",
        ),
        (
            lambda agent: setattr(agent, "exploration", OUProcessParameters()),
            "uses the exploration noise in its updates",
        ),
        (lambda agent: setattr(agent.algorithm, "image_shift", -1), "image_shift is -1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, tmp_path):
    agent = tiny()
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, PictureOfTarget, tmp_path)


def test_it_needs_images(tmp_path):
    agent = tiny()
    for network in agent.network_wrappers.values():
        network.input_embedders_parameters["observation"].scheme = [Dense(4)]
    with pytest.raises(CoachError, match="learns from images, but no input of its networks is an image"):
        graph(agent, Target, tmp_path)


def test_the_pendulum_is_drawn_where_it_is():
    environment = PendulumPixels()
    pictures = {
        name: environment.observation(np.array([np.cos(angle), np.sin(angle), 0.0]))
        for name, angle in {"up": 0.0, "left": np.pi / 2, "down": np.pi, "a little left": 0.05}.items()
    }
    assert pictures["up"].shape == environment.observation_space.shape and pictures["up"].dtype == np.uint8
    halves = {name: picture.astype(int) for name, picture in pictures.items()}
    assert halves["up"][:20].sum() > 4 * halves["up"][20:].sum()
    assert halves["down"][20:].sum() > 4 * halves["down"][:20].sum()
    assert halves["left"][:, :20].sum() > 4 * halves["left"][:, 20:].sum()
    assert np.array_equal(halves["up"], halves["up"][:, ::-1])
    assert not np.array_equal(halves["up"], halves["a little left"])
    environment.close()
