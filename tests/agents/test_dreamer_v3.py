"""DreamerV3: its equations and its whole loss against float64 computations in NumPy, and how it learns."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import imageio.v3
import numpy as np
import pytest

from rl_coach.agents.rules import dreamer_v3 as rules
from rl_coach.agents.rules.advantages import lambda_returns, percentiles
from rl_coach.architectures import world_model
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import LearningBatch, NetworkView, binary_cross_entropy
from rl_coach.base_parameters import Frameworks, TaskParameters
from rl_coach.coach import DONE, main
from rl_coach.core_types import LAST_ACTION, EnvironmentSteps
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.policy import Policy
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, ImageObservationSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.agents.dreamer_in_numpy import (
    BINS,
    Model,
    decoded,
    expected_loss,
    lambda_return,
    sigmoid,
    softmax,
    symexp,
    symlog,
    two_hot,
)
from tests.frameworks import FRAMEWORK
from tests.zoo import parameters, policies
from tests.zoo.environments import Bandit, MaskedChain, Recall, Target
from tests.zoo.graphs import graph, schedule

if FRAMEWORK is Frameworks.mxnet:
    pytest.skip("on MXNet, it is refused", allow_module_level=True)
elif FRAMEWORK is Frameworks.torch:
    from rl_coach.architectures.torch_components import ops
elif FRAMEWORK is Frameworks.tensorflow:
    from rl_coach.architectures.tensorflow_components import ops
else:
    from keras import ops

TINY = parameters.DREAMER_SIZE
RNG = np.random.default_rng(0)


def test_symlog_keeps_signs_and_shrinks():
    x = np.array([-1e6, -1.0, 0.0, 0.5, 300.0])
    np.testing.assert_allclose(world_model.symlog(ops, ops.convert_to_tensor(x, "float32")), symlog(x), rtol=1e-5)
    np.testing.assert_allclose(symexp(symlog(x)), x, rtol=1e-9)


def test_the_bins_are_symmetric_and_even_after_symlog():
    assert rules.BINS.shape == (255,)
    np.testing.assert_array_equal(rules.BINS, -rules.BINS[::-1])
    np.testing.assert_allclose(symlog(rules.BINS.astype(np.float64)), np.linspace(-20, 20, 255), atol=1e-5)


def test_the_sizes_are_the_published_ones():
    assert parameters.DreamerV3AgentParameters().algorithm.size == "size1m"
    assert world_model.SIZES["size1m"] == world_model.ModelSize()
    published = {"size1m": (512, 64, 4, 64, 4), "size12m": (2048, 256, 16, 256, 16)}
    published |= {"size25m": (3072, 384, 24, 384, 24), "size50m": (4096, 512, 32, 512, 32)}
    published |= {"size100m": (6144, 768, 48, 768, 48), "size200m": (8192, 1024, 64, 1024, 64)}
    published |= {"size400m": (12288, 1536, 96, 1536, 96)}
    assert {name: world_model.ModelSize(*numbers) for name, numbers in published.items()} == world_model.SIZES


def test_two_hot_weights_the_neighbours_of_a_value():
    values = np.concatenate([[0.0, 1e12, -1e12, BINS[130]], symexp(RNG.uniform(-15, 15, 50))])
    found = np.asarray(rules.two_hot(ops, ops.convert_to_tensor(values, "float32")), np.float64)
    assert ((found > 0).sum(-1) <= 2).all()
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose((found * BINS).sum(-1), np.clip(values, BINS[0], BINS[-1]), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found, two_hot(values), atol=2e-4)


def test_equal_probabilities_decode_to_exactly_nothing():
    assert np.asarray(rules.decoded(ops, ops.zeros((1, 255))))[0] == 0.0
    logits = RNG.normal(size=(20, 255))
    found = rules.decoded(ops, ops.convert_to_tensor(logits, "float32"))
    np.testing.assert_allclose(found, decoded(logits), rtol=1e-4)


def test_binary_cross_entropy_takes_shares():
    logits, targets = RNG.normal(size=9), RNG.uniform(size=9)
    expected = -targets * np.log(sigmoid(logits)) - (1 - targets) * np.log(1 - sigmoid(logits))
    given = (ops.convert_to_tensor(one, "float32") for one in (logits, targets))
    np.testing.assert_allclose(binary_cross_entropy(ops, *given), expected, rtol=1e-5)


def test_the_uniform_share_keeps_each_category_possible():
    found = np.asarray(world_model.unimixed(ops, ops.convert_to_tensor([[0.0, 100.0, 0.0, 0.0]])))
    np.testing.assert_allclose(found, [[0.0025, 0.9925, 0.0025, 0.0025]], rtol=1e-6)


def test_categories_are_drawn_by_their_probabilities():
    probabilities = np.broadcast_to(np.float32([[[0.125, 0.5, 0.25, 0.125]]]), (16, 3, 4))
    uniform = np.repeat((np.arange(16, dtype=np.float32)[:, None] + 0.5) / 16, 3, axis=1)
    found = np.asarray(world_model.sampled(ops, ops.convert_to_tensor(probabilities), ops.convert_to_tensor(uniform)))
    np.testing.assert_array_equal(found.sum(0), np.broadcast_to([2.0, 8.0, 4.0, 2.0], (3, 4)))
    assert set(np.unique(found)) == {0.0, 1.0}
    nothing = ops.zeros((16, 3))
    best = np.asarray(world_model.sampled(ops, ops.convert_to_tensor(probabilities), nothing))
    np.testing.assert_array_equal(best, np.broadcast_to([0.0, 1.0, 0.0, 0.0], (16, 3, 4)))


def test_divergences_do_not_fall_below_the_free_nats():
    p, q = (softmax(RNG.normal(size=(6, 5, 4)) * scale) for scale in (2, 1))
    p[0] = q[0]
    expected = np.maximum((p * np.log(p / q)).sum((-1, -2)), 1.0)
    given = (ops.convert_to_tensor(one, "float32") for one in (p, q))
    for found in rules.state_divergences(ops, *given):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert expected[0] == 1.0 < expected[1:].min()


def test_lambda_returns_are_mixtures_of_n_step_returns():
    rewards, values = RNG.normal(size=(2, 7, 3))
    discounts, mixing = RNG.uniform(size=(2, 7, 3))
    mixing[3, 1] = 0.0
    given = (ops.convert_to_tensor(one, "float32") for one in (rewards, discounts, values, mixing))
    found = np.asarray(lambda_returns(ops, *given))
    for t, n in np.ndindex(7, 3):
        columns = (one[:, n] for one in (rewards, discounts, values, mixing))
        assert found[t, n] == pytest.approx(lambda_return(*columns, t), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("count", [1, 2, 41, 57])
def test_percentiles_are_interpolated(count):
    values = RNG.normal(size=count)
    found = [float(one) for one in percentiles(ops, ops.convert_to_tensor(values, "float32"))]
    np.testing.assert_allclose(found, np.percentile(values, [5, 95]), rtol=1e-5)


def weights_in_order(network: Any, group: str) -> list[np.ndarray]:
    arrays, order = network.state.arrays(group), network.state.function.order["weights"]
    return [np.array(arrays[order.index(place)]) for place in range(len(arrays))]


def views(agent: Any) -> dict[str, NetworkView]:
    found = {}
    for name, network in agent.networks.items():
        state = {
            group: [ops.convert_to_tensor(a) for a in network.state.arrays(group)] for group in ("weights", "buffers")
        }
        target = None
        if network.has_target:
            target = [ops.convert_to_tensor(a) for a in network.state.arrays("target_weights")], []
        found[name] = NetworkView(ops, network.state.function, state["weights"], state["buffers"], target)
    return found


class Lamps(Bandit):
    """The light is a lamp in a picture, and a number says how bright it is."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(1), "picture": ImageObservationSpace((48, 64, 3), 255)}

    def first_state(self) -> dict[str, np.ndarray]:
        self.light, level = int(self.rng.integers(2)), int(self.rng.integers(100, 256))
        picture = np.zeros((48, 64, 3), np.uint8)
        picture[16:32, 8 + 32 * self.light : 24 + 32 * self.light] = level
        return {"observation": np.float32([level]), "picture": picture}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = float(action == self.light)
        self.state = self.first_state()
        return reward, False, self.steps >= 10

    def get_rendered_image(self) -> np.ndarray:
        return self.state["picture"]


@pytest.fixture(scope="module", params=[Bandit, Target, Lamps])
def trained(tmp_path_factory, request):
    """An agent after some updates, so that no output layer is zero. Its sequences have 4 steps; or 7 steps with
    ``Target``, whose episodes have 5.

    The outer bins are made unlikely. They are as large as 5e8, and the rounding errors of their probabilities would be
    larger than the results.
    """
    settings, length = parameters.dreamer(), 7 if request.param is Target else 4
    network = settings.network_wrappers["main"]
    network.middleware_parameters.sequence_length, network.batch_size = length, 4 * length
    manager = graph(settings, request.param, tmp_path_factory.mktemp("dreamer"), schedule(24, heatup=20))
    manager.heatup(EnvironmentSteps(20))
    manager.improve()
    main = manager.get_agent().networks["main"]
    for group in ("weights", "target_weights"):
        outer = -30.0 * np.abs(np.linspace(-1, 1, 255, dtype=np.float32))
        arrays = main.state.arrays(group)
        main.state.set_arrays(group, [one + outer if one.shape == (255,) else one for one in map(np.array, arrays)])
    return manager.get_agent()


def models(agent: Any) -> list[Model]:
    """The network and its target in NumPy."""
    observations = {name: tuple(space.shape) for name, space in agent.spaces.state.sub_spaces.items()}
    action = agent.spaces.action
    actions = 2 if isinstance(action, DiscreteActionSpace) else (action.low, action.high)
    groups = (weights_in_order(agent.networks["main"], group) for group in ("weights", "target_weights"))
    return [Model(TINY, weights, observations, actions) for weights in groups]


def test_the_loss_is_the_papers(trained):
    agent, length = trained, length_of_sequences(trained)
    batch = agent.batches.sample(1, 4 * length)
    columns = agent.update_loop.columns(batch)
    crosses = columns["weights"].reshape(-1, length + 1)[:, :-1].min(axis=1) == 0
    assert crosses.all() if length > 5 else not crosses.any()
    online, slow = models(agent)
    before = [float(array) for array in agent.networks["returns"].state.arrays("buffers")]
    expected, low, high, _ = expected_loss(online, slow, columns, length, 3, before)

    groups: dict[str, dict[str, Any]] = {"states": {}, "extra": {}}
    for name, column in columns.items():
        group, _, key = name.partition("/")
        if key and group in groups:
            groups[group][key] = ops.convert_to_tensor(column)
    given = LearningBatch(
        states=groups["states"], next_states={}, actions=ops.convert_to_tensor(columns["actions"]),
        rewards=ops.convert_to_tensor(columns["rewards"].astype(np.float32)),
        discounts=ops.convert_to_tensor(columns["discounts"]), weights=ops.convert_to_tensor(columns["weights"]),
        extra=groups["extra"], scalars={},
    )  # fmt: skip
    networks = views(agent)
    update = agent.make_update_rule()(ops, networks, given)
    assert float(update.losses["main"]) == pytest.approx(expected, rel=1e-5)
    kept = [float(one) for one in networks["returns"].buffers]
    np.testing.assert_allclose(kept, [low, high], rtol=1e-3)


def length_of_sequences(agent: Any) -> int:
    return agent.ap.network_wrappers["main"].middleware_parameters.sequence_length


def test_an_update_refreshes_the_states_that_sequences_begin_with(trained):
    agent, length = trained, length_of_sequences(trained)
    batch = agent.batches.sample(1, 4 * length)
    columns = agent.update_loop.columns(batch)
    before = [float(array) for array in agent.networks["returns"].state.arrays("buffers")]
    states = expected_loss(*models(agent), columns, length, 3, before)[3]
    agent.update_loop.update(columns, batch)
    rows = batch.info("transition_serial"), batch.game_over_column
    serials, is_over = (one.reshape(-1, length + 1) for one in rows)
    expected = {}
    for sequence, ends, after_each in zip(serials, is_over, states):
        for t in range(length):
            if not ends[t]:
                expected[int(sequence[t]) + 1] = after_each[t]
    assert len(expected) > 4
    after = agent.memory.sample_states(400, 5)
    found = np.concatenate([after.info(f"recurrent_state_{name}") for name in ("deter", "stoch")], axis=1)
    kept = dict(zip(after.info("transition_serial").tolist(), found))
    for serial, state in expected.items():
        np.testing.assert_allclose(kept[serial], state, rtol=1e-4, atol=1e-5)
    for serial in kept.keys() & set((serials[is_over] + 1).tolist()):  # an episode begins here, and its state is zeros
        assert not kept[serial].any()


def test_a_users_batch_may_have_any_number_of_sequences(tmp_path):
    manager = graph(parameters.dreamer(), Bandit, tmp_path, schedule(1, heatup=20))
    manager.heatup(EnvironmentSteps(20))
    agent = manager.get_agent()
    assert np.isfinite(agent.learn_from_batch(agent.memory.sample_states(1, 5))[0])


def test_the_first_steps_of_a_long_episode_do_not_wait_for_its_end(tmp_path):
    """With sequences of 2 steps, an episode of ten steps has parts of 8 and 2 steps. A cut is not a termination."""
    agent_params = parameters.dreamer()
    agent_params.network_wrappers["main"].middleware_parameters.sequence_length = 2
    manager = graph(agent_params, Bandit, tmp_path, schedule(1, heatup=20))
    manager.heatup(EnvironmentSteps(20))
    memory = manager.get_agent().memory
    assert memory.episode_lengths().tolist() == [8, 2, 8, 2]
    batch = memory.get_all_complete_episodes_transitions()
    assert [bool(one.game_over) for one in batch] == [row in (7, 9, 17, 19) for row in range(20)]
    assert not any(one.terminated for one in batch)


def test_a_video_shows_what_the_model_imagines(trained):
    """It sees the first five observations, and after them its own states and the actions. Without images, there is
    nothing to show."""
    agent = trained
    if "picture" not in agent.spaces.state.sub_spaces:
        assert agent.pictures_beside is None
        return
    (online, _), rng = models(agent), np.random.default_rng(5)
    network = agent.networks["main"].online_network
    state = {"observation": np.float32([1]), "picture": np.zeros((48, 64, 3), np.uint8)}
    agent.actor.episode.curr_state = state
    nothing = np.zeros_like(online.encode({name: seen[None] for name, seen in state.items()}))
    imagined: Any = None
    for step in range(9):
        deter, stoch = rng.normal(size=(1, TINY.deter)), np.eye(2)[rng.integers(2, size=32)].reshape(1, -1)
        action, noise = np.eye(2)[[step % 2]], rng.random((1, 32))
        parts = {"deter": deter, "stoch": stoch, LAST_ACTION: action, "noise": noise}
        network.recurrent_state = {name: part.astype(np.float32) for name, part in parts.items()}
        (picture,) = agent.pictures_beside(step)
        if step:
            deter, stoch = (deter, stoch) if step <= 5 else imagined
            deter = online.posterior(deter, stoch, action, nothing)[0]
            stoch = online.drawn(online.prior(deter), noise)
        else:  # the state before an episode, whatever the agent has kept of the episode before
            deter, stoch = np.zeros_like(deter), np.zeros_like(stoch)
        imagined = deter, stoch
        expected = 255 * online.decode(np.concatenate(imagined, axis=1))["picture"][0]
        assert picture.dtype == np.uint8
        np.testing.assert_allclose(picture, expected - 0.5, atol=0.51)
    network.reset_internal_memory()


class FirstLight(Recall):
    """The reward after the third step depends on the first observation only. The observations between are equal."""

    def first_state(self) -> dict[str, np.ndarray]:
        state = super().first_state()
        self.length = 3
        return state

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        return super().outcome(1)


@pytest.mark.slow
def test_the_model_remembers_an_observation_for_three_steps(tmp_path):
    settings, size = parameters.dreamer(), world_model.ModelSize(deter=64, hidden=32, classes=4, units=32)
    settings.algorithm.size, settings.algorithm.imagination_horizon = size, 1
    settings.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    settings.memory.max_size = (MemoryGranularity.Transitions, 5000)
    main = settings.network_wrappers["main"]
    main.middleware_parameters.sequence_length, main.batch_size, main.learning_rate = 8, 128, 1e-3
    manager = graph(settings, FirstLight, tmp_path, schedule(3500, heatup=1000))
    manager.heatup(EnvironmentSteps(1000))
    manager.improve()
    weights = weights_in_order(manager.get_agent().networks["main"], "weights")
    model, rng = Model(size, weights, {"observation": (3,)}, 2), np.random.default_rng(1)
    for light, reward in enumerate((-1.0, 1.0)):
        deter, stoch, action = np.zeros((50, size.deter)), np.zeros((50, size.stoch)), np.zeros((50, 2))
        for seen in (np.eye(3)[light], [0, 0, 0], [0, 0, 1], [0, 0, 0]):
            embedding = model.encode({"observation": np.tile(seen, (50, 1))})
            deter, posterior = model.posterior(deter, stoch, action, embedding)
            stoch, action = model.drawn(posterior, rng.random((50, 32))), np.eye(2)[rng.integers(2, size=50)]
        predicted = decoded(model.outcome(np.concatenate([deter, stoch], axis=1))[0])
        assert np.median(predicted) == pytest.approx(reward, abs=0.2)


LAMPS = """
from tests.agents.test_dreamer_v3 import Lamps
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from tests.zoo import parameters
from tests.zoo.environments import SmallEnvironmentParameters
from tests.zoo.graphs import schedule

graph_manager = BasicRLGraphManager(parameters.dreamer(), SmallEnvironmentParameters(Lamps), schedule(1, heatup=1))
"""


def test_an_evaluation_films_imagined_frames_next_to_the_real_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preset = tmp_path / "lamps.py"
    preset.write_text(LAMPS)
    started = ["-f", FRAMEWORK.name, "-ns", "-ep", str(tmp_path), "-e", "run", "-s", "600"]
    assert main(["-p", str(preset), *started]) == DONE
    (run,) = (tmp_path / "run").iterdir()
    assert main(["evaluate", str(run), "--steps", "10", "-dm"]) == DONE
    (video,) = tmp_path.rglob("*.mp4")
    real, imagined = np.split(imageio.v3.imread(video), 2, axis=2)
    assert real.shape[1:] == (48, 64, 3)
    # a lamp is a small square in the dark, and the decoder of a new model gives grey
    assert real.max() > 90 and real.mean() < 40 and 45 < imagined.mean() < 210


def test_each_copy_of_the_environment_has_its_own_state(tmp_path):
    manager = graph(parameters.dreamer(), Bandit, tmp_path, schedule(90, heatup=30), copies=3)
    manager.heatup(EnvironmentSteps(30))
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration > 10
    assert agent.memory.num_complete_episodes() >= 9
    for episode in agent.memory.get_all_complete_episodes():
        check_stored_states(episode.transitions)


def test_stored_states_hold_the_last_action_of_each_step(trained):
    """Also the random actions of the heatup, and nothing before the first action of an episode."""
    check_stored_states(trained.memory.get_all_complete_episodes()[0].transitions)


def check_stored_states(episode: list[Any]) -> None:
    before = [transition.info[f"recurrent_state_{LAST_ACTION}"] for transition in episode]
    actions = np.array([transition.action for transition in episode[:-1]])
    expected = np.eye(2)[actions] if actions.ndim == 1 else (actions - 1) / 3  # from -2 to 4
    np.testing.assert_array_equal(before[0], np.zeros(expected.shape[1]))
    np.testing.assert_allclose(before[1:], expected, atol=1e-6)
    categories = np.stack([transition.info["recurrent_state_stoch"] for transition in episode])
    np.testing.assert_array_equal(categories.sum(axis=1), [0] + [world_model.VARIABLES] * (len(episode) - 1))


BOX = BoxActionSpace(2, low=np.array([-2.0, 0.0]), high=np.array([4.0, 0.5]))


VECTOR = {"observation": VectorObservationSpace(3)}
PICTURE = {"picture": ImageObservationSpace(np.array([48, 64, 3]), 255)}


@pytest.mark.parametrize(
    ("observations", "action"), [(VECTOR, DiscreteActionSpace(3)), (VECTOR, BOX), ({**VECTOR, **PICTURE}, BOX)],
    ids=["discrete", "box", "picture"],
)  # fmt: skip
def test_an_exported_policy_remembers_its_actions(observations, action, tmp_path):
    settings = parameters.dreamer()
    settings.task_parameters = TaskParameters(FRAMEWORK, experiment_path=str(tmp_path))
    agent = policies.build(settings, observations, action)
    network, rng = agent.networks["main"].online_network, np.random.default_rng(3)
    # the actions hardly change the state of a new model
    network.set_weights([weight + rng.normal(size=weight.shape) for weight in network.get_weights()])
    policy = Policy.load(policies.write(agent, tmp_path / "policy"))
    for _ in range(8):
        state = policies.draw(observations, rng)
        outputs = network.predict({name: seen[None] for name, seen in state.items()}, squeeze_output=False)
        chosen = policy.act(state)
        if action is BOX:
            np.testing.assert_allclose(chosen, outputs[0][0], rtol=1e-4)
            encoded = (chosen - [1.0, 0.25]) / [3.0, 0.25]
        else:
            assert chosen == outputs[0][0].argmax()
            encoded = np.eye(3)[chosen]
        # the deterministic state depends on all actions before
        np.testing.assert_allclose(policy._recurrent["deter"], network.recurrent_state["deter"], rtol=1e-4, atol=1e-5)
        network.recurrent_state = {**network.recurrent_state, LAST_ACTION: np.float32([encoded])}


class Picture(Bandit):
    def observations(self) -> dict[str, Any]:
        return {"picture": ImageObservationSpace((64, 84, 3), 255)}


class Unbounded(Target):
    def actions(self) -> Any:
        return BoxActionSpace(1, low=np.array([-2.0]))


def with_memory_of_steps() -> Any:
    settings = parameters.dreamer()
    settings.memory = ExperienceReplayParameters()
    return settings


def with_another_middleware() -> Any:
    settings = parameters.dreamer()
    settings.network_wrappers["main"].middleware_parameters = FCMiddlewareParameters()
    return settings


def of_size(**numbers: int) -> Any:
    settings = parameters.dreamer()
    settings.algorithm.size = world_model.ModelSize(**numbers)
    return settings


@pytest.mark.parametrize(
    ("make", "problem", "reason"),
    [
        (parameters.dreamer, MaskedChain, "does not support action masks"),
        (parameters.dreamer, Picture, "'picture' is 64 x 84: add an ObservationRescaleToSizeFilter"),
        (lambda: of_size(depth=3), Lamps, "needs an even depth of algorithm.size for images, not 3"),
        (parameters.dreamer, Unbounded, "needs actions with bounds"),
        (lambda: of_size(deter=100), Bandit, "set deter of algorithm.size to a multiple of 8"),
        (
            with_another_middleware,
            Bandit,
            "FCMiddlewareParameters cannot be a part of a world model: keep the default",
        ),
        (with_memory_of_steps, Bandit, "learns from sequences of whole episodes: set memory to Episodic"),
    ],
)
def test_what_it_cannot_model_is_refused(make, problem, reason, tmp_path):
    with pytest.raises(CoachError, match=reason):
        graph(make(), problem, tmp_path)


def test_the_command_refuses_mxnet(tmp_path):
    command = [sys.executable, "-m", "rl_coach", "-p", "CartPole_DreamerV3", "-f", "mxnet"]
    environment = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 2 and "and this run is on MXNet: use -f jax" in done.stderr, done.stderr
    assert done.stderr.count("coach: ") == 1 and "Traceback" not in done.stderr
    assert not any(tmp_path.rglob("*.csv"))
