"""``coach port``: scripts of Stable-Baselines3 become presets that run, with the settings that the scripts have."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rl_coach.coach import main
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.utilities.system import shell_command
from tests.frameworks import FRAMEWORK
from tests.samples import one_in

HEAD = """\
import gymnasium as gym
import numpy as np
import torch.nn as nn
from sb3_contrib import QRDQN, TQC, TRPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.callbacks import CallbackList, CheckpointCallback, EvalCallback
from stable_baselines3.common.callbacks import StopTrainingOnRewardThreshold
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecNormalize

def linear(first):
    def now(left):
        return left * first
    return now

"""
STEPS = "improve_steps=EnvironmentSteps(300); steps_between_evaluation_periods=EnvironmentSteps(300)"
RUN = f"{STEPS}; evaluation_steps=EnvironmentEpisodes(1); heatup_steps=EnvironmentSteps(64)"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")


def ported(script: str, *flags: str):
    """The graph manager of the preset."""
    with open("train.py", "w", encoding="utf-8") as file:
        file.write(HEAD + script)
    assert main(["port", "train.py", *flags]) == 0
    return preset_catalogue.load("train_preset.py")


def value_of(manager, path: str):
    value = manager
    for name in path.split("."):
        value = (
            value[int(name) if name.isdecimal() else name] if isinstance(value, (dict, list)) else getattr(value, name)
        )
    return value


def same(value, expected) -> bool:
    return repr(value) == repr(expected)


ALGORITHM, MAIN = "agent_params.algorithm", "agent_params.network_wrappers.main"
TARGET = f"{ALGORITHM}.num_steps_between_copying_online_weights_to_target"
PLAYED, UPDATES = f"{ALGORITHM}.num_consecutive_playing_steps", f"{ALGORITHM}.num_consecutive_training_steps"
LENGTH = "improve_steps"

# The defaults are those of Stable-Baselines3 2.8 and SB3-Contrib.
DEFAULTS = {
    ("PPO", "CartPole-v1"): {
        f"{MAIN}.learning_rate": 3e-4, f"{MAIN}.batch_size": 64, PLAYED: EnvironmentSteps(2048),
        f"{ALGORITHM}.optimization_epochs": 10, f"{ALGORITHM}.discount": 0.99, f"{ALGORITHM}.gae_lambda": 0.95,
        f"{ALGORITHM}.clip_likelihood_ratio_using_epsilon": 0.2, f"{ALGORITHM}.beta_entropy": 0.0,
        f"{MAIN}.heads_parameters.0.loss_weight": 0.5, f"{MAIN}.clip_gradients": 0.5,
        f"{MAIN}.use_separate_networks_per_head": True, f"{MAIN}.middleware_parameters.activation_function": "tanh",
        LENGTH: EnvironmentSteps(2048),
    },
    ("A2C", "CartPole-v1"): {
        f"{MAIN}.learning_rate": 7e-4, f"{ALGORITHM}.num_steps_between_gradient_updates": 5,
        f"{ALGORITHM}.gae_lambda": 1.0, f"{MAIN}.optimizer_type": "RMSProp", f"{MAIN}.rms_prop_optimizer_decay": 0.99,
        f"{MAIN}.optimizer_epsilon": 1e-5, f"{ALGORITHM}.beta_entropy": 0.0, LENGTH: EnvironmentSteps(1000),
    },
    ("TRPO", "CartPole-v1"): {
        "agent_params.network_wrappers.critic.learning_rate": 1e-3, f"{ALGORITHM}.max_kl_divergence": 0.01,
        f"{ALGORITHM}.conjugate_gradient_iterations": 15, f"{ALGORITHM}.value_epochs": 10,
        LENGTH: EnvironmentSteps(2048),
    },
    ("RecurrentPPO", "CartPole-v1"): {
        PLAYED: EnvironmentSteps(128), f"{MAIN}.batch_size": 128, LENGTH: EnvironmentSteps(1024),
        f"{MAIN}.middleware_parameters.number_of_lstm_cells": 256,
    },
    ("DQN", "CartPole-v1"): {
        f"{MAIN}.learning_rate": 1e-4, f"{MAIN}.batch_size": 32, f"{MAIN}.clip_gradients": 10.0,
        f"{MAIN}.replace_mse_with_huber_loss": True, TARGET: EnvironmentSteps(10_000), PLAYED: EnvironmentSteps(4),
        UPDATES: 1, "agent_params.exploration.epsilon_schedule": ConstantSchedule(0.05),  # after 100 steps of heatup
        f"{ALGORITHM}.rate_for_copying_weights_to_target": 1.0, "heatup_steps": EnvironmentSteps(100),
        LENGTH: EnvironmentSteps(900), f"{MAIN}.middleware_parameters.activation_function": "relu",
    },
    ("QRDQN", "CartPole-v1"): {
        f"{MAIN}.learning_rate": 5e-5, f"{ALGORITHM}.atoms": 200, f"{MAIN}.clip_gradients": None,
        f"{MAIN}.optimizer_epsilon": 0.01 / 32,
        "agent_params.exploration.epsilon_schedule": ConstantSchedule(0.01),
    },
    ("SAC", "Pendulum-v1"): {
        "agent_params.network_wrappers.policy.learning_rate": 3e-4, "agent_params.network_wrappers.q.batch_size": 256,
        "agent_params.network_wrappers.q.heads_parameters.0.network_layers_sizes": (256, 256),
        f"{ALGORITHM}.rate_for_copying_weights_to_target": 0.005, TARGET: TrainingSteps(1),
        f"{ALGORITHM}.temperature": None, PLAYED: EnvironmentSteps(1),
    },
    ("TQC", "Pendulum-v1"): {
        "agent_params.network_wrappers.q.heads_parameters.0.num_quantiles": 25, f"{ALGORITHM}.top_quantiles_to_drop": 2,
    },
    ("TD3", "Pendulum-v1"): {
        "agent_params.network_wrappers.actor.learning_rate": 1e-3,
        f"{ALGORITHM}.update_policy_every_x_episode_steps": 2,
        f"{ALGORITHM}.policy_noise": 0.2, f"{ALGORITHM}.noise_clipping": 0.5,
        f"{ALGORITHM}.rate_for_copying_weights_to_target": 0.005, f"{ALGORITHM}.act_for_full_episodes": False,
        "agent_params.exploration.noise_schedule.initial_value": 0.0,
    },
    ("DDPG", "Pendulum-v1"): {
        "agent_params.network_wrappers.critic.learning_rate": 1e-3, PLAYED: EnvironmentSteps(1),
        f"{ALGORITHM}.rate_for_copying_weights_to_target": 0.005, TARGET: TrainingSteps(1),
    },
}  # fmt: skip


@pytest.mark.parametrize("name, environment", one_in(2, list(DEFAULTS)))
def test_settings_that_a_script_leaves_out_are_those_of_the_library_and_the_preset_runs(name, environment):
    manager = ported(f'model = {name}("MlpPolicy", "{environment}")\nmodel.learn(1000)\n')
    expected = DEFAULTS[name, environment]
    assert {
        path: value_of(manager, path) for path in expected if not same(value_of(manager, path), expected[path])
    } == {}
    assert manager.env_params.level == environment
    assert main(["-p", "train_preset.py", "-f", FRAMEWORK.name, "-ns", "--seed", "1", "-cp", RUN]) == 0


def test_settings_of_a_script_are_converted(capsys):
    manager = ported("""
N = 4
SETTINGS = {"gamma": 0.98, "gae_lambda": 0.8, "n_epochs": 2 * N, "ent_coef": 0.01, "max_grad_norm": 1.0}

def main():
    env = make_vec_env("CartPole-v1", n_envs=N, vec_env_cls=SubprocVecEnv, env_kwargs=dict(sutton_barto_reward=True))
    env = VecNormalize(env, norm_reward=False)
    stop = StopTrainingOnRewardThreshold(reward_threshold=450)
    watch = EvalCallback(env, callback_on_new_best=stop, eval_freq=500, n_eval_episodes=7)
    model = PPO("MlpPolicy", env, linear(1e-3), n_steps=32, batch_size=128, clip_range=lambda left: 0.3 * left,
                policy_kwargs=dict(net_arch=dict(pi=[32, 16], vf=[32, 16]), activation_fn=nn.ReLU, ortho_init=False),
                seed=3, device="cpu", tensorboard_log="logs", verbose=1, use_sde=True, **SETTINGS)
    model.learn(total_timesteps=int(1e4), callback=CallbackList([watch, CheckpointCallback(save_freq=1000)]))
    model.save("model")

if __name__ == "__main__":
    main()
""")
    algorithm, network = manager.agent_params.algorithm, manager.agent_params.network_wrappers["main"]
    assert (algorithm.discount, algorithm.gae_lambda, algorithm.optimization_epochs) == (0.98, 0.8, 8)
    assert (algorithm.beta_entropy, network.clip_gradients, network.batch_size) == (0.01, 1.0, 128)
    assert algorithm.num_consecutive_playing_steps == EnvironmentSteps(4 * 32)
    assert same(network.learning_rate, LinearSchedule(1e-3, 0.0, 79)) and manager.improve_steps.num_steps == 79 * 128
    assert algorithm.clip_likelihood_ratio_using_epsilon == 0.3
    assert same(algorithm.clipping_decay_schedule, LinearSchedule(1.0, 0.0, 79 * 128))
    assert [layer.units for layer in network.middleware_parameters.scheme] == [32, 16]
    assert network.middleware_parameters.activation_function == "relu" and network.initial_weights == "kaiming_uniform"
    (normalize,) = manager.agent_params.pre_network_filter.observation_filters["observation"].values()
    assert (normalize.clip_min, normalize.clip_max) == (-10.0, 10.0)
    environment = manager.env_params
    assert (environment.num_environments, environment.vectorization) == (4, "async")
    assert environment.additional_simulator_parameters == {"sutton_barto_reward": True}
    assert manager.steps_between_evaluation_periods == EnvironmentSteps(2000)
    assert manager.evaluation_steps == EnvironmentEpisodes(7)
    assert [type(one).__name__ for one in manager.callbacks] == ["StopOnReward", "SaveEvery"]
    assert manager.callbacks[1].steps == 4000
    said = capsys.readouterr().out
    assert said.endswith(f"train with: {shell_command('coach', '-p', 'train_preset.py')} --seed 3 -c -tb\n")
    assert "not converted: train.py:28: use_sde of PPO" in said


def test_values_of_off_policy_scripts_are_converted():
    manager = ported("""
env = gym.make("Pendulum-v1", g=9.0)
noise = NormalActionNoise(mean=np.zeros(1), sigma=0.2 * np.ones(1))
model = TD3("MlpPolicy", env, action_noise=noise, train_freq=(1, "episode"), gradient_steps=-1, buffer_size=5000,
            learning_starts=200, policy_kwargs=dict(net_arch=dict(pi=[32], qf=[64, 64])))
model.learn(2000)
""")
    agent = manager.agent_params
    assert agent.exploration.noise_schedule.initial_value == 0.1 and agent.memory.max_size[1] == 5000
    assert agent.algorithm.num_consecutive_playing_steps == EnvironmentEpisodes(1)
    assert [one.units for one in agent.network_wrappers["actor"].middleware_parameters.scheme] == [32]
    assert [one.units for one in agent.network_wrappers["critic"].middleware_parameters.scheme] == [64, 64]
    assert manager.env_params.additional_simulator_parameters == {"g": 9.0}
    assert (manager.heatup_steps.num_steps, manager.improve_steps.num_steps) == (200, 1800)


@pytest.mark.parametrize(
    "name, updates, expected",
    [
        ("SAC", -1, (EnvironmentSteps(1), 1, False)),
        ("SAC", 8, (EnvironmentEpisodes(1), 8, False)),
        ("TD3", -1, (EnvironmentEpisodes(1), 1, True)),
        ("TD3", 8, (EnvironmentEpisodes(1), 8, False)),
    ],
)
def test_updates_after_episodes_are_as_many_as_in_the_script(name, updates, expected, capsys):
    manager = ported(f"""
model = {name}("MlpPolicy", "Pendulum-v1", train_freq=(1, "episode"), gradient_steps={updates})
model.learn(2000)
""")
    algorithm = manager.agent_params.algorithm
    made = algorithm.num_consecutive_playing_steps, algorithm.num_consecutive_training_steps
    assert (*made, algorithm.act_for_full_episodes) == expected
    assert ("train_freq in episodes: updates follow" in capsys.readouterr().out) == (name == "SAC" and updates == -1)


def test_values_that_a_script_assigns_in_several_ways_are_found(capsys):
    manager = ported("""
kind: str = "MlpPolicy"
steps = 1000
steps *= 3
rate = get_linear_fn(end=0.0, start=1e-3, end_fraction=0.5)
model = DQN(kind, "CartPole-v1", rate, learning_starts=0, train_freq=1)
model.learn(steps)
""")
    assert manager.improve_steps == EnvironmentSteps(3000)
    assert same(value_of(manager, f"{MAIN}.learning_rate"), LinearSchedule(1e-3, 0.0, 1500))
    assert "not converted" not in capsys.readouterr().out


def test_layers_in_the_form_of_old_versions_are_named(capsys):
    script = 'model = A2C("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": [32, {"pi": [8]}]})\nmodel.learn(9)\n'
    network = ported(script).agent_params.network_wrappers["main"]
    assert [one.units for one in network.middleware_parameters.scheme] == [64, 64]
    assert "net_arch [32, {'pi': [8]}]: it has the layers [64, 64]" in capsys.readouterr().out


def test_values_change_in_the_heatup_of_a_script():
    script = 'model = DQN("MlpPolicy", "CartPole-v1", linear(1e-3), learning_starts=100, train_freq=1)'
    manager = ported(f"{script}\nmodel.learn(2000)\n")
    epsilon, rate = manager.agent_params.exploration.epsilon_schedule, value_of(manager, f"{MAIN}.learning_rate")
    assert (epsilon.final_value, epsilon.decay_steps) == (0.05, 100)
    assert epsilon.initial_value == pytest.approx(1 - 0.95 * 100 / 200)
    assert (rate.final_value, rate.decay_steps) == (0.0, 1900) and rate.initial_value == pytest.approx(0.95e-3)


def test_the_targets_of_td3_move_with_the_policy():
    manager = ported('model = TD3("MlpPolicy", "Pendulum-v1", policy_delay=3)\nmodel.learn(2000)\n')
    assert value_of(manager, TARGET) == TrainingSteps(3)


def test_the_layer_after_an_image_has_relu(capsys):
    manager = ported("""
env = VecFrameStack(make_atari_env("PongNoFrameskip-v4"), n_stack=2)
model = PPO("CnnPolicy", env)
model.learn(10_000)
""")
    assert value_of(manager, f"{MAIN}.middleware_parameters.activation_function") == "relu"
    assert "2 frames in an observation: it has 4 frames" in capsys.readouterr().out
    ported(
        'model = PPO("CnnPolicy", "CarRacing-v3", policy_kwargs={"net_arch": [64]})\nmodel.learn(100)\n', "-o", "b.py"
    )
    assert "relu after the layer with 512 units: it has tanh" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_atari_becomes_the_environment_with_its_filters(name):
    manager = ported(f"""
env = VecFrameStack(make_atari_env("PongNoFrameskip-v4", n_envs=8, seed=0), n_stack=4)
model = {name}("CnnPolicy", env)
model.learn(10_000)
""")
    assert type(manager.env_params).__name__ == "Atari" and manager.env_params.num_environments == 8
    network = manager.agent_params.network_wrappers["main"]
    assert [one.units for one in network.middleware_parameters.scheme] == [512]
    assert not network.use_separate_networks_per_head


@pytest.mark.parametrize(
    "script, level, copies, said",
    [
        ("env = SubprocVecEnv([make(NAME, i) for i in range(3)])", "Acrobot-v1", 3, ""),
        ("env = DummyVecEnv([lambda: gym.make('Acrobot-v1')] * 2)", "Acrobot-v1", 2, ""),
        ("env = gym.wrappers.TimeLimit(gym.make(NAME), 50)", "Acrobot-v1", 1, "train.py:26: the wrapper TimeLimit"),
        ("from my_env import Mine\nenv = Mine(size=4)", "my_env:Mine", 1, ""),
        ("class Mine(gym.Env):\n    pass\nenv = Mine()", "train.py:Mine", 1, "move it to a separate file"),
    ],
)
def test_environments_of_several_forms(script, level, copies, said, capsys):
    manager = ported(f"""
NAME = "Acrobot-v1"

def make(env_id, rank, seed=0):
    def begin():
        env = gym.make(env_id, render_mode="rgb_array")
        return env
    return begin

{script}
model = A2C("MlpPolicy", env)
model.learn(100)
""")
    assert (manager.env_params.level, manager.env_params.num_environments) == (level, copies)
    assert said in capsys.readouterr().out
    assert manager.env_params.additional_simulator_parameters == ({"size": 4} if "size" in script else {})


def test_a_library_script_trains(capsys):
    with open("train.py", "w", encoding="utf-8") as file:
        file.write(HEAD + 'model = A2C("MlpPolicy", make_vec_env("CartPole-v1", 2), seed=1)\nmodel.learn(200)\n')
    assert main(["port", "train.py", "--library", "-o", "own loop.py"]) == 0
    assert capsys.readouterr().out.endswith(f"train with: {shell_command('python', 'own loop.py')}\n")
    for command in (["own loop.py"], ["-c", "from rl_coach import Agent; Agent.load('a2c_agent')"]):
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "script, said",
    [
        ("x = (\n", "train.py:"),
        ("print(1)\n", "makes no model that Coach can convert; Coach converts PPO, "),
        ('PPO("MlpPolicy", "CartPole-v1")\n', "the script never calls learn"),
    ],
)
def test_a_script_that_trains_nothing_is_one_line(script, said, capsys, tmp_path):
    (tmp_path / "train.py").write_text(script if "x" in script else HEAD + script)
    assert main(["port", "train.py"]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["train.py"]


def test_a_file_that_exists_or_is_missing_is_one_line(capsys, tmp_path):
    assert main(["port", "nowhere.py"]) == 2
    assert "no file 'nowhere.py'" in capsys.readouterr().err
    (tmp_path / "train.py").write_text(f'{HEAD}\nPPO("MlpPolicy", "CartPole-v1").learn(1000)\n')
    (tmp_path / "train_preset.py").write_text("mine")
    assert main(["port", "train.py"]) == 2
    assert "'train_preset.py' exists already" in capsys.readouterr().err
    assert (tmp_path / "train_preset.py").read_text() == "mine"
