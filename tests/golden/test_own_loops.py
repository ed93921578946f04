"""Loops that were written from the references of RLgraph and TensorForce alone reach their rewards."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from rl_coach.own_loop import rlgraph, tensorforce
from tests.frameworks import FRAMEWORK

pytestmark = pytest.mark.golden

SETTINGS = {"framework": FRAMEWORK.name, "seed": 0}


def layers(size, *units, activation="tanh"):
    return [{"type": "dense", size: one, "activation": activation} for one in units]


def adam(rate):
    return {"type": "adam", "learning_rate": rate}


RLGRAPH = {
    "dqn": (
        rlgraph.DQNAgent,
        "CartPole-v1",
        {
            "network_spec": layers("units", 64, 64, activation="relu"), "double_q": True, "dueling_q": False,
            "huber_loss": True, "memory_spec": {"type": "replay", "capacity": 20_000}, "optimizer_spec": adam(1e-3),
            "exploration_spec": {"epsilon_spec": {"decay_spec": {
                "type": "linear-decay", "from": 1.0, "to": 0.02, "num_timesteps": 4000}}},
            "update_spec": {"batch_size": 64, "sync_interval": 200, "update_interval": 1},
        },
        (195, 40_000),
    ),
    "ppo": (
        rlgraph.PPOAgent,
        "CartPole-v1",
        {
            "network_spec": layers("units", 64, 64), "value_function_spec": layers("units", 64, 64), "clip_ratio": 0.2,
            "gae_lambda": 0.95, "discount": 0.99, "optimizer_spec": adam(3e-4), "weight_entropy": 0.01,
            "update_spec": {"update_mode": "time_steps", "batch_size": 1024, "sample_size": 64, "num_iterations": 160},
        },
        (195, 150_000),
    ),
    "sac": (
        rlgraph.SACAgent,
        "Pendulum-v1",
        {
            "network_spec": layers("units", 128, 128, activation="relu"), "discount": 0.99, "initial_alpha": 1.0,
            "value_function_spec": layers("units", 128, 128, activation="relu"), "optimizer_spec": adam(1e-3),
            "memory_spec": {"type": "replay", "capacity": 50_000},
            "update_spec": {"batch_size": 128, "sync_interval": 1, "sync_tau": 0.005, "update_interval": 1},
        },
        (-200, 20_000),
    ),
}  # fmt: skip
TENSORFORCE = {
    "dqn": (
        tensorforce.DQNAgent,
        "CartPole-v1",
        {
            "network": layers("size", 64, 64, activation="relu"), "optimizer": adam(1e-3), "discount": 0.99,
            "update_mode": {"unit": "timesteps", "batch_size": 64, "frequency": 1}, "double_q_model": True,
            "memory": {"type": "replay", "capacity": 20_000, "include_next_states": True}, "huber_loss": 1.0,
            "target_sync_frequency": 200, "actions_exploration": {
                "type": "epsilon_anneal", "initial_epsilon": 1.0, "final_epsilon": 0.02, "timesteps": 4000},
        },
        (195, 40_000),
    ),
    "ppo": (
        tensorforce.PPOAgent,
        "CartPole-v1",
        {
            "network": layers("size", 64, 64), "baseline_mode": "states", "gae_lambda": 0.95, "discount": 0.99,
            "baseline": {"type": "mlp", "sizes": [64, 64]}, "step_optimizer": adam(3e-4),
            "update_mode": {"unit": "timesteps", "batch_size": 1024}, "subsampling_fraction": 0.0625,
            "optimization_steps": 160, "likelihood_ratio_clipping": 0.2, "entropy_regularization": 0.01,
        },
        (195, 150_000),
    ),
    "naf": (
        tensorforce.NAFAgent,
        "Pendulum-v1",
        {
            "network": layers("size", 128, 128, activation="relu"), "optimizer": adam(1e-3), "discount": 0.98,
            "update_mode": {"unit": "timesteps", "batch_size": 128, "frequency": 1}, "repeat_update": 1,
            "memory": {"type": "replay", "capacity": 50_000}, "target_sync_frequency": 1,
            "target_update_weight": 0.005, "reward_preprocessing": [{"type": "divide", "scale": 10.0}],
            "actions_exploration": {"type": "ornstein_uhlenbeck_process", "sigma": 0.1},
        },
        (-200, 40_000),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RLGRAPH)
def test_a_loop_of_rlgraph_reaches_its_reward(name):
    kind, level, spec, (wanted, most) = RLGRAPH[name]
    env = rlgraph.OpenAIGymEnv(level)
    agent = kind(env.state_space, env.action_space, **spec, **SETTINGS)
    env.seed(agent.environment_seed)
    rewards = deque(maxlen=20)
    while agent.timesteps < most and not (len(rewards) == 20 and np.mean(rewards) >= wanted):
        state, total, terminal = env.reset(), 0.0, False
        while not terminal:
            action, preprocessed = agent.get_action(state, extra_returns="preprocessed_states")
            state, reward, terminal, _ = env.step(action)
            agent.observe(preprocessed, action, [], reward, state, terminal)
            agent.update()
            total += reward
        rewards.append(total)
    print(f"{name}: {np.mean(rewards):.1f} after {agent.timesteps} steps")
    assert np.mean(rewards) >= wanted


@pytest.mark.parametrize("name", TENSORFORCE)
def test_a_loop_of_tensorforce_reaches_its_reward(name):
    kind, level, spec, (wanted, most) = TENSORFORCE[name]
    environment = tensorforce.OpenAIGym(level)
    agent = kind(environment.states, environment.actions, **spec, **SETTINGS)
    runner = tensorforce.Runner(agent=agent, environment=environment)

    def episode_finished(r):
        return r.timestep < most and not (r.episode >= 20 and np.mean(r.episode_rewards[-20:]) >= wanted)

    runner.run(episode_finished=episode_finished)
    print(f"{name}: {np.mean(runner.episode_rewards[-20:]):.1f} after {runner.timestep} steps")
    assert np.mean(runner.episode_rewards[-20:]) >= wanted
