"""A loop that is compiled as a whole: it learns as the ordinary loop does, from the same data to the same weights."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent
from rl_coach.agents.core.compiled_sequences import played_sequences
from rl_coach.agents.core.sequences import Sequences, rows_of, sequence_rows, stored_state
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.architectures.layers import Dense, NoisyNetDense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.core_types import Batch, EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps, Transition
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_clipping_filter import ObservationClippingFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.pure import PureFilters
from rl_coach.filters.reward.reward_clipping_filter import RewardClippingFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import TrainingError
from rl_coach.vector_level_manager import VectorLevelManager
from tests.frameworks import FRAMEWORK
from tests.samples import one_in
from tests.zoo.graphs import compiled, next_phase, schedule
from tests.zoo.parameters import acer, actor_critic, clipped_ppo, dqn, pqn, recurrent_dqn, recurrent_ppo
from tests.zoo.states import differences, leaves, rows, weights_of

pytestmark = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)"
)


def ppo(**algorithm: Any) -> AgentParameters:
    parameters = clipped_ppo()
    parameters.algorithm.discount = 0.9
    parameters.algorithm.clipping_decay_schedule = LinearSchedule(1.0, 0.0, 2000)
    for name, value in algorithm.items():
        setattr(parameters.algorithm, name, value)
    return parameters


def with_lstm(length: int = 4) -> AgentParameters:
    """PPO with a recurrent network. :param length: steps of a sequence"""
    parameters = recurrent_ppo()
    network = parameters.network_wrappers["main"]
    network.batch_size, network.middleware_parameters.sequence_length = 24, length
    parameters.algorithm.discount = 0.9
    return parameters


def normalizing() -> InputFilter:
    filters = InputFilter()
    filters.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    return filters


@pytest.mark.parametrize("parameters", [ppo, dqn])
@pytest.mark.parametrize(
    "level, source",
    [
        ("nan_at_the_beginning", "the observation 'observation' that the environment gave before step 1"),
        ("nan_observation", "the observation 'observation' that the environment gave in step 3"),
        ("nan_reward", "the reward that the environment gave in step 3"),
    ],
)
def test_a_loss_that_is_not_finite_is_traced_to_the_environment(level, source, parameters, tmp_path):
    manager = compiled(parameters(), tmp_path, level)
    with pytest.raises(
        TrainingError, match=rf"the loss of network 'main' became .*: {source} of an episode of copy \d"
    ):
        manager.improve()
    manager.close()


def test_a_loss_that_is_not_finite_is_traced_to_the_input_filter(tmp_path):
    agent = ppo()
    agent.input_filter = InputFilter()
    agent.input_filter.add_reward_filter("rescale", RewardRescaleFilter(float("inf")))
    manager = compiled(agent, tmp_path)
    reason = r"the reward that the input filter computed from finite numbers in step \d+ of an"
    with pytest.raises(TrainingError, match=reason):
        manager.improve()
    manager.close()


def test_it_learns_in_exactly_the_steps_of_its_schedule(tmp_path):
    manager = compiled(ppo(), tmp_path, steps=schedule(1500, evaluate_every=500, evaluation=5))
    assert isinstance(manager.level_managers[0], CompiledLevelManager)
    manager.improve()
    counts = manager.total_steps_counters[RunPhase.TRAIN]
    assert counts[EnvironmentSteps] == 1500
    assert counts[TrainingSteps] == manager.get_agent().training_iteration == 1500 // 64
    assert manager.get_agent().optimizer_steps == 1500 // 64 * 4 * (64 // manager.get_agent().update_loop.batch_size)
    assert manager.evaluation_rewards == [1.0] * 5
    manager.close()
    written = rows(tmp_path)
    assert len(written) == counts[EnvironmentEpisodes]
    assert [int(row["Total steps"]) for row in written] == sorted(int(row["Total steps"]) for row in written)
    assert sum(bool(row["Evaluation Reward"]) for row in written) == 3
    assert 1500 - 4 * 12 <= sum(int(row["Episode Length"]) for row in written) <= 1500
    # an episode's reward is 1 or 0, and its discounted return follows from its length
    for row in written:
        if float(row["Training Reward"]) == 1.0 and float(row["Discounted Return/Stdev"] or 1) == 0.0:
            assert float(row["Discounted Return/Mean"]) == pytest.approx(0.9 ** (int(row["Episode Length"]) - 1))
    phases = [row for row in written if row["Loss/Mean"]]
    assert all(row["Values/Mean"] and row["KL Divergence/Mean"] and row["Learning Rate/Mean"] for row in phases)


@pytest.mark.parametrize("make", [ppo, with_lstm])
def test_numbers_do_not_depend_on_the_division_into_calls(make, tmp_path):
    runs = []
    for name in ("long", "short"):
        manager = compiled(make(), tmp_path / name)
        if name == "short":
            for _ in range(0, 256, 28):  # seven steps of each copy at a time
                manager.train_and_act(EnvironmentSteps(min(28, 256 - manager.get_agent().total_steps_counter)))
        else:
            manager.train_and_act(EnvironmentSteps(256))
        runs.append(
            (weights_of(manager), manager.get_agent().total_steps_counter, manager.get_current_episodes_count())
        )
        manager.close()
    assert runs[0][1:] == runs[1][1:]
    for one, other in zip(runs[0][0], runs[1][0]):
        np.testing.assert_array_equal(one, other)


_TRAINS_ON_DEVICES = """
import pathlib, sys
import numpy as np
from rl_coach.core_types import EnvironmentSteps
from tests.zoo.graphs import compiled
from tests.zoo.parameters import clipped_ppo, dqn, recurrent_ppo
from tests.zoo.states import weights_of

parameters = {"ppo": clipped_ppo, "dqn": dqn, "recurrent": recurrent_ppo}[sys.argv[1]]()
manager = compiled(parameters, pathlib.Path(sys.argv[2]))
for _ in range(2):
    manager.train_and_act(EnvironmentSteps(128))
loop = manager.level_managers[0]._loop
print("DEVICES", loop.num_devices, loop._compiled._cache_size())
np.savez(sys.argv[3], *weights_of(manager))
"""


@pytest.mark.parametrize(
    "algorithm", ["ppo", pytest.param("dqn", marks=pytest.mark.slow), pytest.param("recurrent", marks=pytest.mark.slow)]
)
def test_several_devices_share_the_copies_of_the_environment(algorithm, tmp_path):
    weights = []
    for devices in (1, 2):
        flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
        environment = {**os.environ, "XLA_FLAGS": flags}
        file = tmp_path / f"{devices}.npz"
        command = [sys.executable, "-c", _TRAINS_ON_DEVICES, algorithm, str(tmp_path / str(devices)), str(file)]
        root = pathlib.Path(__file__).parents[1]
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert f"DEVICES {devices} 1" in done.stdout  # compiled once
        assert (", on 2 devices" in done.stdout) is (devices == 2)
        weights.append(np.load(file))
    for name in weights[0].files:
        np.testing.assert_allclose(weights[0][name], weights[1][name], atol=1e-5)


def test_the_loop_is_compiled_once(tmp_path):
    manager = compiled(ppo(), tmp_path, steps=schedule(600, evaluate_every=100, evaluation=1))
    manager.improve()
    assert manager.level_managers[0]._loop._compiled._cache_size() == 1
    manager.close()


@pytest.mark.parametrize(
    ("level", "settings"),
    [
        ("walk", {}),
        ("walk", {"policy_gradient_rescaler": PolicyGradientRescaler.A_VALUE, "clip_value_using_epsilon": 0.2}),
        ("reach", {"estimate_state_value_using_gae": False, "gae_lambda": 0.7}),
    ],
    ids=["gae", "n-step", "gae-with-returns"],
)
def test_the_same_data_give_the_updates_of_the_ordinary_loop(level, settings, tmp_path):
    import jax

    parameters = ppo(**settings)
    parameters.pre_network_filter = normalizing()
    parameters.algorithm.update_pre_network_filters_state_on_inference = False
    parameters.network_wrappers["main"].batch_size = 24  # 64 rows: the last minibatch of an epoch is filled up
    manager = compiled(parameters, tmp_path, level)
    agent, loop = manager.get_agent(), manager.level_managers[0]
    with manager.phase_context(RunPhase.HEATUP):  # plays by the policy, and learns nothing
        manager.act(EnvironmentSteps(64))
    part, learner, carry = loop._part, agent.update_loop.learner, loop._carry
    memory = jax.device_get(carry["memory"])
    phase = next_phase(manager)._replace(moves_targets=np.bool_(True))
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    key = jax.random.key(5)
    made = jax.jit(part.learn)(key, state, carry["memory"], carry["statistics"], phase)

    batch = agent.update_loop.filtered(batch_of(memory))
    columns = agent.fill_advantages(batch)
    indices = np.asarray(part._indices(key))
    order = np.arange(64).reshape(16, 4).T.ravel()  # rows of the memory, copy by copy, as episodes follow each other
    place = np.argsort(order)
    agent.networks["main"].update_target_network()
    result = learner.train(
        columns, agent.learning_scalars(), np.where(indices < 0, -1, place[indices]).astype(np.int32), len(indices)
    )
    for name, signal in (("values", "Values"), ("advantages", "Advantages"), ("targets", "Value Targets")):
        (sampled,) = next(one for one in agent.signals.episode_signals if one.name == signal).values
        np.testing.assert_allclose(np.asarray(made.shown[name])[order], sampled, rtol=1e-5, atol=2e-6)
    for group in ("weights", "slots", "target_weights"):
        for one, other in zip(made.state["main"][group], agent.networks["main"].state.arrays(group), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(made.outputs)[:, 0], result.losses["main"], rtol=1e-4, atol=1e-5)
    statistics = agent.pre_network_filter.observation_filters["observation"]["normalize"].get_state()
    gathered = made.statistics["observation"]["normalize"]
    low, high = np.asarray(gathered["count"]).tolist()
    assert low + high * 2**30 == statistics["count"]
    np.testing.assert_allclose(gathered["mean"], statistics["mean"], rtol=1e-5)
    deviations = np.asarray(gathered["variance"]) * statistics["count"]
    np.testing.assert_allclose(deviations, statistics["squared_deviations"], rtol=1e-5)
    manager.close()


def played_with_lstm(parameters: AgentParameters, directory: Any, level: str) -> tuple[BasicRLGraphManager, Any]:
    """A manager in the second phase, just before it learns, and the memory that it learns from."""
    import jax

    manager = compiled(parameters, directory, level)
    manager.train_and_act(EnvironmentSteps(64))
    with manager.phase_context(RunPhase.HEATUP):  # plays by the policy, and learns nothing
        manager.act(EnvironmentSteps(64))
    loop = manager.level_managers[0]
    assert isinstance(loop, CompiledLevelManager)
    return manager, jax.device_get(loop._carry["memory"])


def test_a_recurrent_state_begins_at_zero_with_each_episode(tmp_path):
    manager, memory = played_with_lstm(with_lstm(), tmp_path, "walk")
    network = manager.get_agent().networks["main"].online_network
    ended, before = memory["ended"], memory["recurrent"]
    assert ended[:-1].any() and before["lstm_h"][0].any()  # the first episodes are those of the phase before
    for copy in range(4):
        network.recurrent_state = {name: column[0, copy : copy + 1] for name, column in before.items()}
        for step in range(1, 16):
            network.predict({"observation": memory["states"]["observation"][step - 1, copy : copy + 1]})
            if ended[step - 1, copy]:
                network.reset_internal_memory()
            for name, column in before.items():
                np.testing.assert_allclose(column[step, copy : copy + 1], network.recurrent_state[name], atol=1e-6)
    manager.close()


@pytest.mark.parametrize(
    ("level", "length", "settings"),
    one_in(
        3,
        [
            ("walk", 4, {}),
            ("reach", 5, {"policy_gradient_rescaler": PolicyGradientRescaler.A_VALUE, "clip_value_using_epsilon": 0.2}),
            ("walk", 1, {}),
            ("walk", 40, {"estimate_state_value_using_gae": False}),
        ],
    ),
    ids=["discrete", "continuous", "single steps", "longer than the phase"],
)
def test_the_same_sequences_give_the_updates_of_the_ordinary_loop(level, length, settings, tmp_path):
    import jax

    parameters = with_lstm(length)
    for name, value in settings.items():
        setattr(parameters.algorithm, name, value)
    parameters.pre_network_filter = normalizing()
    parameters.algorithm.update_pre_network_filters_state_on_inference = False
    manager, memory = played_with_lstm(parameters, tmp_path, level)
    agent, loop = manager.get_agent(), manager.level_managers[0]
    part, learner, carry = loop._part, agent.update_loop.learner, loop._carry
    phase, key = next_phase(manager)._replace(moves_targets=np.bool_(True)), jax.random.key(5)
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    made = jax.jit(part.learn)(key, state, carry["memory"], carry["statistics"], phase)

    columns = agent.fill_advantages(agent.update_loop.filtered(batch_of(memory)))
    sequences, size = len(columns["weights"]) // length, max(1, 24 // length)
    orders = np.asarray(part._orders_of(key, sequences))[:, :sequences]
    np.testing.assert_array_equal(np.sort(orders), np.tile(np.arange(sequences), (4, 1)))
    indices = np.pad(orders, ((0, 0), (0, -sequences % size)), constant_values=-1).reshape(-1, size)
    agent.networks["main"].update_target_network()
    result = learner.train(
        columns, agent.learning_scalars(), rows_of(indices, length), len(indices), sequence_length=length
    )
    assert made.count == len(indices)
    order = np.arange(64).reshape(16, 4).T.ravel()
    for name, signal in (("values", "Values"), ("advantages", "Advantages"), ("targets", "Value Targets")):
        sampled = next(one for one in agent.signals.episode_signals if one.name == signal).values[-1]
        np.testing.assert_allclose(np.asarray(made.shown[name])[order], sampled, rtol=1e-5, atol=2e-6)
    for group in ("weights", "slots", "target_weights"):
        for one, other in zip(made.state["main"][group], agent.networks["main"].state.arrays(group), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    losses = np.asarray(made.outputs)[: len(indices), 0]
    np.testing.assert_allclose(losses, result.losses["main"], rtol=1e-4, atol=1e-5)
    manager.close()


def test_sequences_of_copies_are_those_of_episodes():
    from keras import ops

    rng = np.random.default_rng(2)
    for length in (1, 3, 20):
        ended = rng.random((11, 3)) < 0.2
        found = played_sequences(ops, ops.convert_to_tensor(ended), length)
        is_last = ended.copy()
        is_last[-1] = True
        expected = Sequences(np.flatnonzero(is_last.T), length)
        count = int(found.count)
        assert np.asarray(found.starts).tolist() == [*expected.starts, *[33] * (33 - count)]
        assert np.flatnonzero(np.asarray(found.begins).T).tolist() == expected.starts.tolist()
        starts = found.starts[:count]
        cut, is_present = sequence_rows(ops, starts, ops.take(found.lasts, starts), length)
        np.testing.assert_array_equal(cut, expected.cut({"x": np.arange(33)})["x"])
        np.testing.assert_array_equal(np.asarray(cut)[np.asarray(is_present)], np.arange(33))


def test_ppo_with_an_lstm_remembers_what_it_saw(tmp_path):
    parameters = recurrent_ppo(16)
    algorithm, network = parameters.algorithm, parameters.network_wrappers["main"]
    algorithm.discount, algorithm.beta_entropy = 0.95, 0.005
    algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    network.batch_size, network.middleware_parameters.sequence_length = 64, 8
    manager = compiled(parameters, tmp_path, "recall", steps=schedule(6000, evaluation=40))
    assert isinstance(manager.level_managers[0], CompiledLevelManager)
    manager.improve()
    assert np.mean(manager.evaluation_rewards) > 0.9
    assert manager.get_agent().optimizer_steps == manager.get_agent().networks["main"].state.updates
    manager.close()


def q_lambda() -> AgentParameters:
    parameters = pqn()
    parameters.algorithm.discount, parameters.algorithm.num_consecutive_playing_steps = 0.9, EnvironmentSteps(64)
    parameters.network_wrappers["main"].batch_size = 24
    return parameters


def a2c() -> AgentParameters:
    parameters = actor_critic()
    algorithm = parameters.algorithm
    algorithm.discount, algorithm.learns_from_copies_together = 0.9, True
    algorithm.num_steps_between_gradient_updates = 16
    return parameters


@pytest.mark.parametrize(
    ("parameters", "updates", "signals"),
    [
        (q_lambda(), 4 * 4 * 3, ["Q Targets"]),
        (a2c(), 4, ["Values", "Advantages"]),
    ],
    ids=["pqn", "a2c"],
)
def test_a_phase_comes_after_as_many_steps_as_in_the_ordinary_loop(parameters, updates, signals, tmp_path):
    manager = compiled(parameters, tmp_path)
    manager.improve()
    assert manager.total_steps_counters[RunPhase.TRAIN][TrainingSteps] == 256 // 64
    assert manager.get_agent().optimizer_steps == updates
    manager.close()
    learned = [row for row in rows(tmp_path) if row["Loss/Mean"]]
    assert learned and all(row[f"{signal}/Mean"] for row in learned for signal in signals)


def test_pqn_makes_the_updates_of_the_ordinary_loop_from_the_same_data(tmp_path):
    import jax

    manager = compiled(q_lambda(), tmp_path)
    agent, loop = manager.get_agent(), manager.level_managers[0]
    assert isinstance(loop, CompiledLevelManager)
    with manager.phase_context(RunPhase.HEATUP):
        manager.act(EnvironmentSteps(64))
    part, learner, carry = loop._part, agent.update_loop.learner, loop._carry
    memory, key, phase = jax.device_get(carry["memory"]), jax.random.key(5), next_phase(manager)
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    made = jax.jit(part.learn)(key, state, carry["memory"], carry["statistics"], phase)

    columns = agent.learning_columns(batch_of(memory))
    indices = np.asarray(part._indices(key))
    order = np.arange(64).reshape(16, 4).T.ravel()
    rows_of_minibatches = np.where(indices < 0, -1, np.argsort(order)[indices]).astype(np.int32)
    result = learner.train(columns, agent.learning_scalars(), rows_of_minibatches, len(indices))
    np.testing.assert_allclose(np.asarray(made.shown["targets"])[order], columns["extra/returns"], rtol=1e-5, atol=1e-6)
    for group in ("weights", "slots"):
        for one, other in zip(made.state["main"][group], agent.networks["main"].state.arrays(group), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(made.outputs)[:, 0], result.losses["main"], rtol=1e-4, atol=1e-5)
    manager.close()


@pytest.mark.parametrize(
    ("level", "rescaler"),
    one_in(3, [*product(["walk", "reach"], [PolicyGradientRescaler.A_VALUE, PolicyGradientRescaler.GAE])]),
)
def test_a2c_makes_the_update_of_the_ordinary_loop_from_the_same_data(level, rescaler, tmp_path):
    import jax

    parameters = a2c()
    parameters.algorithm.policy_gradient_rescaler = rescaler
    manager = compiled(parameters, tmp_path, level)
    agent, loop = manager.get_agent(), manager.level_managers[0]
    assert isinstance(loop, CompiledLevelManager)
    with manager.phase_context(RunPhase.HEATUP):
        manager.act(EnvironmentSteps(64))
    part, learner, carry = loop._part, agent.update_loop.learner, loop._carry
    memory, phase = jax.device_get(carry["memory"]), next_phase(manager)
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    made = jax.jit(part.learn)(jax.random.key(5), state, carry["memory"], carry["statistics"], phase)

    batch = batch_of(memory)
    ends = np.flatnonzero(batch.game_over_column) + 1
    segments = [agent.learning_columns(batch[np.arange(a, b)]) for a, b in zip([0, *ends], ends)]
    columns = {name: np.concatenate([segment[name] for segment in segments]) for name in segments[0]}
    columns["weights"] = np.full(64, 1 / 64, np.float32)
    result = learner.train(columns, agent.learning_scalars())
    for group in ("weights", "slots"):
        for one, other in zip(made.state["main"][group], agent.networks["main"].state.arrays(group), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(made.outputs)[:, 0], result.losses["main"], rtol=1e-4, atol=1e-5)
    manager.close()


def recurrent_a2c() -> AgentParameters:
    parameters = a2c()
    parameters.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    return parameters


def batch_of(memory: dict[str, Any]) -> Batch:
    """Transitions of a compiled loop as the ordinary loop stores them: copy by copy, cut at the end."""
    steps, copies = memory["rewards"].shape
    transitions = []
    for index in range(copies):
        for step in range(steps):
            transitions.append(
                Transition(
                    state={"observation": memory["states"]["observation"][step, index]},
                    action=memory["actions"][step, index],
                    reward=float(memory["rewards"][step, index]),
                    next_state={"observation": memory["next_states"]["observation"][step, index]},
                    game_over=bool(memory["ended"][step, index]) or step == steps - 1,
                    terminated=bool(memory["terminated"][step, index]),
                    info={stored_state(name): column[step, index] for name, column in memory["recurrent"].items()},
                )
            )
    return Batch(transitions)


def test_an_evaluation_leaves_no_trace(tmp_path):
    runs = []
    for name, evaluation in (("with", 3), ("without", 0)):
        manager = compiled(ppo(), tmp_path / name, steps=schedule(400, evaluate_every=100, evaluation=evaluation))
        manager.improve()
        runs.append(weights_of(manager))
        manager.close()
    for one, other in zip(*runs):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("make", "cut"), [(ppo, 100), (ppo, 128), (with_lstm, 100)])
def test_it_resumes_exactly(make, cut, tmp_path):
    """Also in the middle of a phase, and with statistics of filters."""

    def agent() -> AgentParameters:
        parameters = make()
        parameters.pre_network_filter = normalizing()
        parameters.algorithm.update_pre_network_filters_state_on_inference = False
        return parameters

    whole = compiled(agent(), tmp_path / "whole", checkpoint_save_steps=10**6)
    whole.train_and_act(EnvironmentSteps(400))
    first = compiled(agent(), tmp_path / "first", checkpoint_save_steps=10**6)
    first.train_and_act(EnvironmentSteps(cut))
    path = first.save_checkpoint()
    first.close()
    second = compiled(
        agent(), tmp_path / "first", checkpoint_save_steps=10**6, checkpoint_restore_path=path, resume=True
    )
    assert isinstance(second.level_managers[0], CompiledLevelManager)
    second.train_and_act(EnvironmentSteps(400 - cut))
    one, other = (dict(leaves(manager.get_state()["levels"])) for manager in (whole, second))
    assert len(one) > 50
    assert [path for path in differences(one, other) if not path.endswith("/seconds")] == []
    whole.close(), second.close()


def test_episodes_end_the_training_where_they_are_counted(tmp_path):
    manager = compiled(ppo(), tmp_path, copies=1, steps=schedule(EnvironmentEpisodes(7)))
    manager.improve()
    assert manager.get_current_episodes_count() == 7
    manager.close()


def test_training_steps_end_the_training_where_they_are_counted(tmp_path):
    manager = compiled(ppo(), tmp_path, steps=schedule(TrainingSteps(3)))
    manager.improve()
    counts = manager.total_steps_counters[RunPhase.TRAIN]
    assert (counts[TrainingSteps], counts[EnvironmentSteps]) == (3, 192)
    manager.close()


def test_a_memory_that_is_saved_all_the_same_is_a_warning(tmp_path, capsys):
    compiled(dqn(), tmp_path, checkpoint_memory=False).close()
    assert "--no-checkpoint_memory has no effect" in capsys.readouterr().out


def test_checkpoints_are_saved_at_their_steps(tmp_path):
    manager = compiled(ppo(), tmp_path, steps=schedule(400), checkpoint_save_steps=100)
    manager.improve()
    saved = sorted(int(path.name.split("-")[1].split(".")[0]) for path in (tmp_path / "checkpoint").glob("*.ckpt"))
    assert {100, 200, 300, 400} <= set(saved)
    manager.close()


def test_filters_with_pure_forms_are_part_of_it(tmp_path):
    parameters = ppo()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "clip", ObservationClippingFilter(-0.1, 0.25))
    parameters.input_filter.add_reward_filter("rescale", RewardRescaleFilter(10.0))
    parameters.input_filter.add_reward_filter("clip", RewardClippingFilter(-1.0, 5.0))
    manager = compiled(parameters, tmp_path)
    loop = manager.level_managers[0]
    assert isinstance(loop, CompiledLevelManager)
    with manager.phase_context(RunPhase.HEATUP):
        manager.act(EnvironmentSteps(64))
    memory = loop._carry["memory"]
    assert set(np.unique(memory["rewards"])) == {0.0, 5.0}
    observations = np.asarray(memory["states"]["observation"])
    assert observations.max() == 0.25 and observations.min() == pytest.approx(-0.1)
    manager.train_and_act(EnvironmentSteps(128))
    manager.close()
    rewards = {(row["Training Reward"], row["Shaped Training Reward"]) for row in rows(tmp_path)}
    assert {("0.0", "0.0"), ("1.0", "5.0")} >= rewards - {("", "")}


def test_filters_of_an_observation_that_does_not_exist_change_nothing():
    chain = normalizing()
    pure, other = PureFilters(chain, np), {"place": np.ones((2, 3))}
    statistics = pure.state()
    assert pure.apply(statistics, other) == other
    assert pure.update_and_apply(statistics, other) == (other, statistics)


def stacking() -> InputFilter:
    filters = InputFilter()
    filters.add_observation_filter("observation", "stack", ObservationStackingFilter(2))
    return filters


class OwnActions(ClippedPPOAgent):
    """Chooses actions in a way of its own."""

    def choose_action(self, curr_state: Any) -> Any:
        return super().choose_action(curr_state)


class OffPolicy(ClippedPPOAgent):
    """Says that it may learn from an older policy's steps, so that a phase waits for the end of an episode."""

    is_on_policy = False


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: setattr(p, "input_filter", stacking()), "the filter ObservationStackingFilter"),
        (lambda p: setattr(p, "input_filter", normalizing()), "move it to agent_params.pre_network_filter"),
        (lambda p: setattr(p, "exploration", EGreedyParameters()), "EGreedyParameters"),
        (
            lambda p: setattr(p.algorithm, "num_consecutive_playing_steps", EnvironmentSteps(66)),
            "is not a multiple of num_environments (4)",
        ),
        (lambda p: setattr(p.algorithm, "num_consecutive_playing_steps", EnvironmentEpisodes(1)), "EnvironmentSteps"),
        (lambda p: setattr(p.algorithm, "target_kl_divergence", 0.1), "target_kl_divergence"),
    ],
)
def test_a_line_says_why_the_ordinary_loop_is_used(change, reason, tmp_path, capsys):
    parameters = ppo()
    change(parameters)
    manager = compiled(parameters, tmp_path, copies=4)
    assert type(manager.level_managers[0]) is VectorLevelManager
    said = capsys.readouterr().out
    assert "the loop is not compiled as a whole: " in said and reason in said
    manager.close()


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (recurrent_dqn(), "only ClippedPPO has a compiled form with a recurrent network"),
        (recurrent_a2c(), "only ClippedPPO has a compiled form with a recurrent network"),
        (actor_critic(), "learns_from_copies_together is False"),
        (acer(), "ACERAgent has no compiled form"),
    ],
    ids=["recurrent dqn", "recurrent a2c", "actor-critic", "acer"],
)
def test_agents_without_a_compiled_form_learn_in_the_ordinary_loop(parameters, reason, tmp_path, capsys):
    manager = compiled(parameters, tmp_path)
    assert reason in capsys.readouterr().out
    manager.train_and_act(EnvironmentSteps(128))
    assert manager.get_agent().training_iteration > 0
    manager.close()


@pytest.mark.parametrize(("between", "is_compiled"), [(1, True), (8, False)])
def test_noisy_networks_are_compiled_if_each_step_draws_new_noise(between, is_compiled, tmp_path, capsys):
    parameters = dqn()
    parameters.network_wrappers["main"].heads_parameters[0].dense_layer = NoisyNetDense
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(between)
    manager = compiled(parameters, tmp_path, copies=1)
    assert ("NoisyNet draws new noise in each step" in capsys.readouterr().out) is not is_compiled
    assert isinstance(manager.level_managers[0], CompiledLevelManager) is is_compiled
    manager.close()


@pytest.mark.parametrize(
    "embedder", [[NoisyNetDense(8)], [Dense(8)]], ids=["a layer of the scheme", "a subclass as dense_layer"]
)
def test_noisy_layers_are_found_wherever_they_are(embedder, tmp_path, capsys):
    parameters = dqn()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(8)
    network = parameters.network_wrappers["main"]
    network.input_embedders_parameters["observation"].scheme = embedder
    if not isinstance(embedder[0], NoisyNetDense):
        network.heads_parameters[0].dense_layer = OwnNoise
    compiled(parameters, tmp_path, copies=1).close()
    assert "NoisyNet draws new noise in each step" in capsys.readouterr().out


class OwnNoise(NoisyNetDense):
    """A user's layer."""


class Halving(LinearSchedule):
    """Falls to a half in each step, as Coach 1 lets schedules do."""

    def step(self) -> None:
        self.current_value /= 2


@pytest.mark.parametrize("is_in_algorithm", [True, False])
def test_a_schedule_with_steps_of_its_own_is_followed(is_in_algorithm, tmp_path, capsys):
    parameters, schedule_of_user = (ppo() if is_in_algorithm else dqn()), Halving(1.0, 0.0, 100)
    if is_in_algorithm:
        parameters.algorithm.clipping_decay_schedule = schedule_of_user
    else:
        parameters.exploration.epsilon_schedule = schedule_of_user
    compiled(parameters, tmp_path).close()
    assert "a compiled loop would not call Halving.step\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (OwnActions, "a compiled loop would not call OwnActions.choose_action"),
        (OffPolicy, "training phases wait for the end of an episode"),
    ],
)
def test_an_agent_that_acts_or_waits_in_a_way_of_its_own_does(kind, reason, tmp_path, capsys, monkeypatch):
    parameters = ppo()
    monkeypatch.setattr(type(parameters), "path", property(lambda self: f"{__name__}:{kind.__name__}"))
    monkeypatch.setattr(
        "rl_coach.graph_managers.building.short_dynamic_import",
        lambda path: kind if path.endswith(kind.__name__) else _imported(path),
    )
    manager = compiled(parameters, tmp_path)
    assert reason in capsys.readouterr().out
    manager.close()


@pytest.mark.parametrize("is_of_class", [True, False], ids=["class", "instance"])
def test_what_an_agent_of_a_user_does_with_a_played_episode_is_done(is_of_class, tmp_path, monkeypatch):
    manager = compiled(ppo(), tmp_path)
    agent, seen = manager.get_agent(), []
    recorded = ClippedPPOAgent.record_played

    def record_played(self: Any, report: Any, discounted_return: float) -> None:
        seen.append(report.length)
        recorded(self, report, discounted_return)

    if is_of_class:
        monkeypatch.setattr(ClippedPPOAgent, "record_played", record_played)
    else:
        agent.record_played = record_played.__get__(agent)
    manager.train_and_act(EnvironmentSteps(256))
    assert len(seen) == manager.get_current_episodes_count() > 0


def _imported(path: str) -> Any:
    from rl_coach.utils import short_dynamic_import

    return short_dynamic_import(path)


def test_a_checkpoint_of_the_ordinary_loop_can_be_gone_on_from(tmp_path, monkeypatch):
    monkeypatch.setattr("rl_coach.graph_managers.basic_rl_graph_manager.why_not_compiled", lambda *_: "of a test")
    ordinary = compiled(ppo(), tmp_path / "ordinary", checkpoint_save_steps=10**6)
    assert type(ordinary.level_managers[0]) is VectorLevelManager
    ordinary.train_and_act(EnvironmentSteps(100))
    path, weights = ordinary.save_checkpoint(), ordinary.get_agent().networks["main"].state.arrays("weights")
    monkeypatch.undo()
    manager = compiled(ppo(), tmp_path / "compiled", checkpoint_restore_path=path)
    assert isinstance(manager.level_managers[0], CompiledLevelManager)
    for one, other in zip(manager.get_agent().networks["main"].state.arrays("weights"), weights):
        np.testing.assert_array_equal(one, other)
    manager.train_and_act(EnvironmentSteps(128))
    assert manager.get_agent().training_iteration == 3
    manager.close()
    ordinary.close()


@pytest.mark.parametrize("resumes", [False, True])
def test_a_checkpoint_can_be_gone_on_from_in_another_number_of_copies(resumes, tmp_path):
    first, second = (compiled(ppo(), tmp_path / str(copies), copies=copies) for copies in (4, 8))
    first.train_and_act(EnvironmentSteps(100))
    second.restore_checkpoint(first.save_checkpoint(), continue_run=resumes)
    for one, other in zip(weights_of(first), weights_of(second)):
        np.testing.assert_array_equal(one, other)
    second.train_and_act(EnvironmentSteps(128))
    assert second.get_agent().training_iteration == 3
    second.close(), first.close()


def test_the_loop_is_kept_compiled_for_later_runs(tmp_path):
    kept = tmp_path / "compiled"
    command = [sys.executable, "-m", "rl_coach", "-p", "CartPole_ClippedPPO", "-f", "jax"]
    command += ["-lvl", "tests.zoo.function_environments:walk", "-cp", "improve_steps=EnvironmentSteps(1)"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment["COACH_COMPILATION_CACHE"] = str(kept)
    subprocess.run([*command, "-ep", str(tmp_path)], env=environment, check=True, capture_output=True)
    assert any(file.name.startswith("jit_compute") for file in kept.glob("jax-*/*"))
