"""The problem of a run: each check with made rows, one broken run through the command, and 24 real runs (slow)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rl_coach.coach import main
from rl_coach.runs.diagnosis import Evidence, diagnose, problem_of
from tests.frameworks import FRAMEWORK

ROWS = 20
TARGET = {
    "agent.network_wrappers.main.create_target_network": True,
    "agent.algorithm.num_steps_between_copying_online_weights_to_target": "EnvironmentSteps(9)",
}
EVALUATIONS_BETWEEN = np.where(np.arange(ROWS) % 4, 10.0 * np.arange(ROWS), np.nan)
ONE_EPISODE = {"schedule.evaluation_steps": "EnvironmentEpisodes(1)"}
SLOW_EPSILON = {
    "agent.exploration.epsilon_schedule.final_value": 0.1,
    "agent.exploration.epsilon_schedule.decay_steps": 90_000,
}


def rows(**signals):
    """Rows of a healthy run, with other values of some signals; "__" stands for a slash and "_" for a space."""
    numbers = np.arange(ROWS, dtype=float)
    healthy = {
        "Training Iter": 100 * numbers, "Total steps": 100 * (numbers + 1), "In Heatup": 0.0 * numbers,
        "Training Reward": 10 * numbers, "Shaped Training Reward": 10 * numbers, "Episode Length": 10 * numbers + 1,
        "Learning Rate/Mean": np.full(ROWS, 1e-3), "Q/Mean": numbers, "Entropy/Mean": np.linspace(0.7, 0.3, ROWS),
        "Grads (unclipped)/Max": np.ones(ROWS), "KL Divergence/Mean": np.full(ROWS, 0.01),
    }  # fmt: skip
    given = {name.replace("__", "/").replace("_", " "): values for name, values in signals.items()}
    return pd.DataFrame({**healthy, **{name: np.broadcast_to(values, ROWS) for name, values in given.items()}})


def problem(settings=None, **signals):
    return problem_of(Evidence(rows(**signals), settings or {}))


def falling(first, last):
    return np.concatenate([np.full(5, first), np.full(ROWS - 5, last)])


@pytest.mark.parametrize(
    "expected, settings, signals",
    [
        ("the agent made no update in 2,000 steps", {}, {"Training_Iter": 0.0}),
        ("the learning rate was 0 in 100% of the rows", {}, {"Learning_Rate__Mean": 0.0}),
        ("every gradient was 0 in 20 rows", {}, {"Grads_(unclipped)__Max": 0.0}),
        ("the agent saw no reward in all 20 episodes", {}, {"Training_Reward": 0.0}),
        ("the agent got the same total reward, -200, in all 20 episodes", {}, {"Training_Reward": -200.0}),
        (
            "its factor L fell from 0.5 to 1e-05",
            {},
            {"L__Mean": falling(0.5, 1e-5), "Training_Reward": falling(22.0, 9.0)},
        ),
        ("Q explodes: the size of its mean is 1e+06 at the end", {}, {"Q__Mean": falling(1.0, 1e6)}),
        (
            "with the rewards of the run no return can be larger than 190",
            {"agent.algorithm.discount": 0.9},
            {
                "Q__Mean": falling(1.0, 1e6),
                "Training_Reward": EVALUATIONS_BETWEEN,
                "Shaped_Training_Reward": EVALUATIONS_BETWEEN,
            },
        ),
        ("the median KL divergence is 0.9", {}, {"KL_Divergence__Mean": 0.9}),
        (
            "the policy's entropy fell from 0.7 to 1e-06",
            {},
            {"Entropy__Mean": falling(0.7, 1e-6), "Training_Reward": falling(22.0, 9.0)},
        ),
        (
            "the policy's standard deviation fell from 1 to 0.001",
            {},
            {"Policy_Standard_Deviation__Mean": falling(1.0, 1e-3), "Training_Reward": falling(22.0, 9.0)},
        ),
        (
            "it no longer explores; lower the learning rate, or raise beta_entropy",
            {"agent.algorithm.beta_entropy": 0.01},
            {"Entropy__Mean": falling(0.7, 1e-6), "Training_Reward": falling(22.0, 9.0)},
        ),
        ("the target network was not updated in 1,900 updates", TARGET, {"Update_Target_Network": 0.0}),
        ("at the end, after 2,000 steps: its schedule needs 90,000 steps to reach 0.1", SLOW_EPSILON, {"Epsilon": 0.9}),
        ("an evaluation is one episode", ONE_EPISODE, {"Evaluation_Reward": np.tile([9.0, 200.0], ROWS // 2)}),
    ],
)
def test_a_problem_is_one_sentence_with_its_evidence(expected, settings, signals):
    found = problem(settings, **signals)
    assert found is not None and expected in found


@pytest.mark.parametrize(
    "settings, signals",
    [
        ({}, {}),
        ({}, {"Learning_Rate__Mean": np.linspace(1e-3, 0, ROWS)}),  # a schedule that ends at 0
        ({}, {"Entropy__Mean": falling(0.7, 1e-6)}),  # sure of itself, and at its best reward
        # the entropy of a density, in soft actor-critic
        ({}, {"Entropy__Mean": falling(0.7, -1.0), "Training_Reward": falling(22.0, 9.0)}),
        ({}, {"Q__Mean": 450.0}),  # the largest mean reward of a step is near 1: 1 / (1 - 0.99)
        (TARGET, {"Update_Target_Network": falling(0.0, 1.0)}),
        (TARGET, {"Training_Iter": 2000.0, "Update_Target_Network": 0.0}),  # an evaluation of a trained agent
        (SLOW_EPSILON, {"Epsilon": 0.3}),
        (SLOW_EPSILON | {"agent.exploration.architecture_num_q_heads": 10}, {"Epsilon": 7.0}),  # the number of a head
        (ONE_EPISODE, {"Evaluation_Reward": np.linspace(0.0, 200.0, ROWS)}),
        (SLOW_EPSILON, {"Epsilon": np.nan, "Evaluation_Reward": np.nan}),
    ],
)
def test_a_healthy_run_has_no_problem(settings, signals):
    assert problem(settings, **signals) is None


def test_rows_without_episodes_have_no_problem():
    assert problem_of(Evidence(pd.DataFrame({"Training Iter": [0.0, 5.0], "Total steps": [10.0, 20.0]}), {})) is None


def test_a_run_in_heatup_has_no_rows_to_judge():
    assert problem(In_Heatup=1.0, Learning_Rate__Mean=0.0) is None


_STEPS = "improve_steps=EnvironmentSteps({})"
_RATE = "agent_params.network_wrappers['main'].learning_rate={}"
_EPSILON = "agent_params.exploration.epsilon_schedule=LinearSchedule(1.0,0.1,{})"
_WEIGHT = "agent_params.network_wrappers['main'].heads_parameters[{}].loss_weight=0.0"
_CLIP = "agent_params.algorithm.clip_likelihood_ratio_using_epsilon={}"
_TARGET = "agent_params.algorithm.num_steps_between_copying_online_weights_to_target=EnvironmentSteps({})"


def train(directory, preset, *settings):
    flags = ["-p", preset, "-f", FRAMEWORK.name, "-ep", str(directory), "-e", "run", "--seed", "1"]
    assert main([*flags, "-cp", "; ".join(settings)]) == 0


def test_the_command_names_the_problem_and_exits_with_1(tmp_path, capsys):
    train(tmp_path, "tuned/CartPole_A2C", _STEPS.format(500), _RATE.format("0.0"))
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^1$"):
        main(["doctor", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1 and "the learning rate was 0 in 100% of the rows with updates" in printed
    (run,) = tmp_path.glob("run/*")
    with pytest.raises(SystemExit, match=r"^1$"):
        main(["doctor", str(run)])
    assert capsys.readouterr().out.startswith(f"{run}: the learning rate was 0")
    assert main(["doctor", str(tmp_path / "nothing")]) == 2


def problem_after(directory, preset, *settings):
    train(directory, preset, *settings)
    (found,) = diagnose(directory).values()
    return found


@pytest.mark.slow  # 24 trainings
@pytest.mark.parametrize(
    "expected, preset, settings",
    [
        ("learning rate was 0", "tuned/CartPole_DQN", [_STEPS.format(3000), _RATE.format("0.0")]),
        ("entropy fell", "tuned/CartPole_PPO", [_STEPS.format(8000), _RATE.format(0.3)]),
        ("entropy fell", "tuned/CartPole_PPO", [_STEPS.format(8000), _RATE.format(0.02), _CLIP.format(10.0)]),
        ("KL divergence", "tuned/Pendulum_PPO", [_STEPS.format(12000), _RATE.format(0.01), _CLIP.format(5.0)]),
        (
            "Q explodes",
            "CartPole_DQN",
            [_STEPS.format(4000), _RATE.format(0.05), _EPSILON.format(1000), _TARGET.format(1)],
        ),
        ("epsilon was still", "CartPole_DQN", [_STEPS.format(3000), _EPSILON.format(1_000_000)]),
        ("no reward but -200", "tuned/MountainCar_DQN", [_STEPS.format(5000)]),
        (
            "made no update",
            "CartPole_DQN",
            [
                "heatup_steps=EnvironmentSteps(3000)",
                _STEPS.format(1),
                "agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps(5000)",
            ],
        ),
        ("target network was not", "tuned/CartPole_DQN", [_STEPS.format(3000), _TARGET.format(1_000_000)]),
        ("target network was not", "ExplorationChain_Dueling_DDQN", [_STEPS.format(5000)]),
        ("every gradient was 0", "tuned/CartPole_PPO", [_STEPS.format(6000), _WEIGHT.format(0), _WEIGHT.format(1)]),
        ("an evaluation is one episode", "CartPole_DQN", [_STEPS.format(3000), _EPSILON.format(1000)]),
    ],
)
def test_a_run_that_was_broken_on_purpose_has_its_problem_named(expected, preset, settings, tmp_path):
    found = problem_after(tmp_path, preset, *settings)
    assert found is not None and expected in found


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset, steps",
    [
        ("CartPole_DQN", 20_000), ("CartPole_PPO", 30_000), ("CartPole_A2C", 40_000), ("CartPole_QR_DQN", 15_000),
        ("CartPole_C51", 15_000), ("CartPole_TRPO", 30_000), ("Pendulum_SAC", 4000), ("Pendulum_NAF", 6000),
        ("Pendulum_TD3", 5000), ("Pendulum_PPO", 30_000), ("ExplorationChain_UCB", 10_000),
        ("MountainCarContinuous_SAC", 8000),
    ],
)  # fmt: skip
def test_a_healthy_training_has_no_problem(preset, steps, tmp_path):
    assert problem_after(tmp_path, f"tuned/{preset}", _STEPS.format(steps)) is None
