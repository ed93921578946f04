"""Generative adversarial imitation: discriminator and rewards against the paper in NumPy, and its demonstrations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.gail_agent import GAILAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import VHeadParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, RunPhase, Transition
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.presets.CartPole_GAIL import agent_params as of_the_preset
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import adam_of, assert_equal, dense, float64, gradient
from tests.zoo.environments import Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.states import weights_of

SIZE, UPDATES = 16, 6


def small(agent: AgentParameters, recorded: Any = of_the_preset.memory.load_memory_from_file_path) -> AgentParameters:
    """Networks of 4 units with smooth activations."""
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.discount = 0.9
    agent.memory.load_memory_from_file_path = recorded
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
        network.input_embedders_parameters["observation"].scheme = [Dense(4)]
        network.middleware_parameters.scheme = MiddlewareScheme.Empty
    if isinstance(agent, GAILAgentParameters):
        agent.network_wrappers["discriminator"].heads_parameters[0].scheme = [Dense(3)]
        agent.algorithm.update_discriminator_every_x_minibatches = 2
    return agent


def built(parameters: AgentParameters, directory: Any) -> Any:
    return graph(parameters, GymVectorEnvironment(level="CartPole-v1"), directory, schedule(200))


def played(manager: Any) -> tuple[Any, Any]:
    """An agent that has played some episodes, and these."""
    manager.heatup(EnvironmentSteps(100))
    agent = manager.get_agent()
    agent.phase = RunPhase.TRAIN
    return agent, agent.memory.get_all_complete_episodes_transitions()


def logits(weights: list[np.ndarray], states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    hidden = np.tanh(dense(weights, 1, np.tanh(dense(weights, 0, states))))
    return dense(weights, 2, hidden)[np.arange(len(states)), actions.astype(int)]


def test_the_discriminator_learns_as_in_the_paper_and_the_policy_as_ppos(tmp_path):
    """Ho and Ermon 2016, algorithm 1, where D is the probability of own steps."""
    agent, batch = played(built(small(GAILAgentParameters()), tmp_path / "gail"))
    other, _ = played(built(small(ClippedPPOAgentParameters(), None), tmp_path / "ppo"))
    other.networks["main"].set_state(agent.networks["main"].get_state())
    weights = float64(agent.networks["discriminator"].state.arrays("weights"))
    optimizer = adam_of(agent.ap.network_wrappers["discriminator"], weights)
    columns = {name: column[: SIZE * UPDATES] for name, column in agent.fill_advantages(batch).items()}
    assert len(columns["weights"]) == SIZE * UPDATES
    agent.update_loop.update(columns, num_updates=UPDATES)
    of_ppo = {name: column for name, column in columns.items() if "demonstrated" not in name}
    other.update_loop.update(of_ppo, num_updates=UPDATES)
    for number in range(UPDATES):
        rows = slice(number * SIZE, (number + 1) * SIZE)
        own = columns["states/observation"][rows].astype(np.float64), columns["actions"][rows]
        demonstrated = (
            columns["extra/demonstrated_states/observation"][rows].astype(np.float64),
            columns["extra/demonstrated_actions"][rows],
        )

        def loss(w: list, own: Any = own, demonstrated: Any = demonstrated) -> float:
            d_own, d_demonstrated = (1 / (1 + np.exp(logits(w, *steps))) for steps in (own, demonstrated))
            return -float(np.mean(np.log(d_own)) + np.mean(np.log(1 - d_demonstrated)))

        if (number + 1) % 2 == 0:
            weights = optimizer(weights, gradient(loss, weights))
    assert_equal(agent.networks["discriminator"].state.arrays("weights"), weights)
    for one, same in zip(
        agent.networks["main"].state.arrays("weights"), other.networks["main"].state.arrays("weights"), strict=True
    ):
        np.testing.assert_allclose(np.asarray(one), np.asarray(same), atol=1e-6)


def test_the_environments_rewards_do_not_count(tmp_path):
    """The reward is -log D of the paper, whatever the environment gave."""
    agent, batch = played(built(small(GAILAgentParameters()), tmp_path))
    weights = float64(agent.networks["discriminator"].state.arrays("weights"))
    values = logits(weights, batch.state_columns["observation"].astype(np.float64), batch.action_column)
    np.testing.assert_allclose(agent.imitation_rewards(batch), -np.log(1 / (1 + np.exp(values))), rtol=1e-4)
    before = agent.fill_advantages(batch)
    batch.reward_column = np.arange(len(batch), dtype=np.float32)
    after = agent.fill_advantages(batch)
    np.testing.assert_array_equal(before["extra/returns"], after["extra/returns"])
    assert batch.reward_column[1] == 1


def test_demonstrations_are_drawn_from_the_file_alone_and_never_learned_from_as_own_steps(tmp_path):
    manager = built(small(GAILAgentParameters()), tmp_path)
    agent = manager.get_agent()
    assert len(agent.demonstrations) == 5000 and agent.memory.num_transitions() == 0
    columns = agent._drawn_demonstrations(300)
    rows = np.concatenate([agent.demonstrations.state_columns["observation"]])
    assert np.isin(columns["extra/demonstrated_states/observation"], rows).all()
    assert set(columns["extra/demonstrated_actions"].tolist()) == {0, 1}


def test_it_needs_demonstrations(tmp_path):
    manager = built(small(GAILAgentParameters(), None), tmp_path)
    with pytest.raises(CoachError, match="has no demonstrations to imitate"):
        manager.train_and_act(EnvironmentSteps(100))


def of_continuous_actions(directory: Any) -> AgentParameters:
    """Demonstrations of Target, whose best action is the state itself."""
    memory = ExperienceReplay((MemoryGranularity.Transitions, 1000))
    for value in np.linspace(-1, 1, 64, dtype=np.float32):
        state = {"observation": np.array([value])}
        memory.store(Transition(state, np.array([value]), 0.0, state, True))
    memory.save(directory / "target.npz")
    return small(GAILAgentParameters(), str(directory / "target.npz"))


def test_continuous_actions_are_judged_too(tmp_path):
    agent = of_continuous_actions(tmp_path)
    with pytest.raises(CoachError, match="does not support continuous actions: add an input embedder 'action'"):
        graph(agent, Target, tmp_path)
    discriminator = agent.network_wrappers["discriminator"]
    discriminator.input_embedders_parameters["action"] = InputEmbedderParameters(scheme=EmbedderScheme.Empty)
    discriminator.heads_parameters = [VHeadParameters()]
    manager = graph(agent, Target, tmp_path, schedule(200))
    before = weights_of(manager)
    manager.train_and_act(EnvironmentSteps(200))
    after = weights_of(manager)
    assert sum(not np.array_equal(one, other) for one, other in zip(before, after, strict=True)) == len(before)
