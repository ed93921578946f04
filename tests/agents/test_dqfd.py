"""Deep Q-learning from demonstrations: its updates against the paper in NumPy, its pretraining, and what it learns."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from benchmarks.demonstrations import record
from rl_coach.agents.dqfd_agent import DQfDAgentParameters
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.presets.CartPole_DQfD import agent_params as of_the_preset
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import adam_of, assert_equal, dense, float64, gradient, one_update, recorded_columns
from tests.zoo.graphs import graph, schedule
from tests.zoo.states import weights_of

SIZE, UPDATES = 16, 4
DEMONSTRATIONS = of_the_preset.memory.load_memory_from_file_path


def demonstrated(recorded: Any = DEMONSTRATIONS, pretraining: int = UPDATES) -> AgentParameters:
    """Q-networks of 4 units with smooth activations."""
    agent = DQfDAgentParameters()
    main, algorithm = agent.network_wrappers["main"], agent.algorithm
    main.batch_size, main.learning_rate, main.optimizer_epsilon, main.l2_regularization = SIZE, 0.01, 1e-4, 0.01
    main.heads_parameters = [QHeadParameters()]
    embedder = main.input_embedders_parameters["observation"]
    embedder.scheme, embedder.activation_function = [Dense(4)], "tanh"
    main.middleware_parameters.scheme = MiddlewareScheme.Empty
    main.replace_mse_with_huber_loss = False
    algorithm.pretraining_updates, algorithm.discount = pretraining, 0.9
    algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(2)
    algorithm.n_step_weight, algorithm.supervised_weight, algorithm.margin = 0.7, 1.5, 0.4
    agent.memory.load_memory_from_file_path = recorded
    agent.memory.n_step = 5
    return agent


def built(parameters: AgentParameters, directory: Any, steps: int = 200) -> Any:
    return graph(parameters, GymVectorEnvironment(level="CartPole-v1"), directory, schedule(steps))


def q_values(weights: list[np.ndarray], states: np.ndarray) -> np.ndarray:
    return dense(weights, 1, np.tanh(dense(weights, 0, states)))


def reference(agent: Any, columns: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Hester et al. 2018, equations 1 and 2, with double Q-learning's target; the target network is copied after every
    second update."""
    algorithm, main = agent.ap.algorithm, agent.ap.network_wrappers["main"]
    weights = float64(agent.networks["main"].state.arrays("weights"))
    target, optimizer = float64(agent.networks["main"].state.arrays("target_weights")), adam_of(main, weights)
    for number in range(UPDATES):
        b = one_update(columns, number, SIZE)
        rows, actions = np.arange(SIZE), b["actions"].astype(int)
        returns = []
        for rewards, discounts, following in (
            (b["rewards"], b["discounts"], b["next_states/observation"]),
            (b["extra/rewards_ahead"], b["extra/discounts_ahead"], b["extra/state_ahead/observation"]),
        ):
            best = q_values(weights, following).argmax(axis=1)
            returns.append(rewards + discounts * q_values(target, following)[rows, best])

        def loss(w: list, b: Any = b, actions: Any = actions, returns: Any = returns, rows: Any = rows) -> float:
            q = q_values(w, b["states/observation"])
            chosen = q[rows, actions]
            one_step, n_step = ((y - chosen) ** 2 for y in returns)
            with_margin = q + algorithm.margin * (np.arange(q.shape[1]) != actions[:, None])
            supervised = (with_margin.max(axis=1) - chosen) * b["extra/is_demonstration"]
            each = one_step + algorithm.n_step_weight * n_step + algorithm.supervised_weight * supervised
            decay = sum((kernel**2).sum() for kernel in w[::2]) / 2
            return float(np.mean(b["weights"] * each) + main.l2_regularization * decay)

        weights = optimizer(weights, gradient(loss, weights))
        if number % 2:
            target = weights
    return weights


def test_several_updates_are_those_of_the_paper(tmp_path):
    agents = []
    for number in range(2):
        manager = built(demonstrated(), tmp_path / str(number))
        manager.heatup(EnvironmentSteps(300))  # own steps beside the demonstrations
        agents.append(manager.get_agent())
    agent, fresh = agents
    batches = recorded_columns(agent)
    agent.before_training()
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    assert 0.5 < columns["extra/is_demonstration"].mean() < 1 and columns["weights"].shape == (UPDATES * SIZE,)
    assert (columns["extra/discounts_ahead"] == 0).any()
    assert columns["extra/rewards_ahead"].max() == pytest.approx(1 + 0.9 + 0.81 + 0.729 + 0.6561)
    assert columns["extra/discounts_ahead"].max() == pytest.approx(0.9**5)
    assert_equal(agent.networks["main"].state.arrays("weights"), reference(fresh, columns))


def test_it_is_pretrained_on_demonstrations_alone_and_goes_on_with_its_own_steps_too(tmp_path):
    manager = built(demonstrated(pretraining=250), tmp_path)
    agent = manager.get_agent()
    batches = recorded_columns(agent)
    manager.train_and_act(EnvironmentSteps(1))
    assert agent.pretraining_done == 250 and agent.training_iteration == 250 and len(batches) == 250
    assert all(batch["extra/is_demonstration"].all() for batch in batches)
    manager.train_and_act(EnvironmentSteps(199))
    assert agent.memory.num_demonstrations == 1500 < agent.memory.length()
    assert not all(batch["extra/is_demonstration"].all() for batch in batches[250:])


class Stopped(Exception):
    pass


def test_a_run_that_is_stopped_while_it_is_pretrained_goes_on_there(tmp_path):
    def stop() -> None:
        raise Stopped

    whole, first, second = (built(demonstrated(pretraining=250), tmp_path / str(number)) for number in range(3))
    whole.train_and_act(EnvironmentSteps(1))
    first.get_agent().stop_if_asked = stop
    with pytest.raises(Stopped):
        first.get_agent().phase = RunPhase.TRAIN
        first.get_agent().train()
    assert first.get_agent().pretraining_done == 100
    second.set_state(first.get_state())
    second.train_and_act(EnvironmentSteps(1))
    assert second.get_agent().pretraining_done == 250
    assert all(np.array_equal(one, other) for one, other in zip(weights_of(whole), weights_of(second), strict=True))


def test_it_needs_demonstrations_and_a_memory_that_keeps_them(tmp_path):
    with pytest.raises(CoachError, match="has no demonstrations to begin with: set"):
        built(demonstrated(None), tmp_path).train_and_act(EnvironmentSteps(1))
    other = demonstrated()
    other.memory = PrioritizedExperienceReplayParameters()
    with pytest.raises(CoachError, match="set memory to DemonstrationReplayParameters"):
        built(other, tmp_path)


@pytest.mark.slow
def test_three_demonstrations_teach_the_cart_pole(tmp_path):
    """The preset in a short form: half of its pretraining, a tenth of its steps."""
    record(tmp_path / "three.npz", 3)
    agent = copy.deepcopy(of_the_preset)
    agent.memory.load_memory_from_file_path = str(tmp_path / "three.npz")
    agent.algorithm.pretraining_updates = 1500
    manager = graph(agent, GymVectorEnvironment(level="CartPole-v1"), tmp_path, schedule(200, evaluation=10))
    manager.improve()
    assert np.mean(manager.evaluation_rewards) >= 400
