"""``coach evaluate`` of the folder of a policy."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from rl_coach import make_agent
from rl_coach.coach import BAD_INPUT, DONE, main
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.policy import files as policy_files


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fetch", "tuned/CartPole_PPO", "-o", "policy"]) == DONE
    capsys.readouterr()
    return pathlib.Path("policy")


def said(capsys, *arguments: str, code: int = DONE) -> str:
    assert main(["evaluate", "policy", *arguments]) == code
    captured = capsys.readouterr()
    text = captured.err if code else captured.out
    assert text.count("\n") == 1
    return text


def test_the_mean_reward_and_its_interval(capsys, folder):
    line = said(capsys, "--steps", "1200", "--seed", "3")
    assert line.startswith("policy: level CartPole-v1: mean reward 500, 95% confidence interval 500 to 500; ")
    assert line.endswith(" 3 episodes\n")


def test_a_seed_repeats_an_evaluation(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["fetch", "tuned/Acrobot_DQN", "-o", "policy"]) == DONE
    capsys.readouterr()
    one, again, other = (said(capsys, "--seed", seed) for seed in ("1", "1", "2"))
    assert one == again != other
    mean, low, high = map(float, re.findall(r"reward (\S+), .* (\S+) to (\S+); ", one)[0])
    assert -500 <= low < mean < high < 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["-lvl", "Pendulum-v1"], "needs the observation 'observation' of VectorObservationSpace(shape=(4,))"),
        (["-lvl", "nowhere"], "no level 'nowhere'"),
        (["--steps", "0"], "0 is too small"),
        (["another"], "unknown argument 'another'"),
        (["--seeds", "3"], "unknown flag '--seeds'"),
    ],
)
def test_what_does_not_fit_is_refused(capsys, folder, arguments, part):
    assert part in said(capsys, *arguments, code=BAD_INPUT)


def test_other_actions_are_refused(capsys, folder):
    pathlib.Path("one.py").write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import CartPoleEnv\n\n\nclass One(CartPoleEnv):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.action_space = gymnasium.spaces.Discrete(3)\n"
    )
    assert "the environment has DiscreteActionSpace" in said(capsys, "-lvl", "one:One", code=BAD_INPUT)


def test_a_policy_of_another_preset_needs_a_level(capsys, folder):
    document, model = policy_files.read(folder)
    document["about"]["preset"] = "mine"
    for name, content in policy_files.as_files(document, model).items():
        (folder / name).write_bytes(content)
    assert "select its environment with -lvl" in said(capsys, code=BAD_INPUT)
    assert "mean reward 500" in said(capsys, "-lvl", "CartPole-v1")


@pytest.mark.parametrize("preset", ["TwoStep_VDN", "Spread_DQN"])
def test_a_policy_for_several_players_is_refused(capsys, tmp_path, monkeypatch, preset):
    for package in ("pettingzoo", "mpe2"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'rl_coach[multi-agent]'")
    monkeypatch.chdir(tmp_path)
    short = (
        "heatup_steps=EnvironmentSteps(50);improve_steps=EnvironmentSteps(50);evaluation_steps=EnvironmentEpisodes(1)"
    )
    assert main(["-p", preset, "-f", "tensorflow", "-s", "600", "-ep", "runs", "-e", "one", "-cp", short]) == DONE
    (run,) = pathlib.Path("runs/one").iterdir()
    assert main(["export", str(run), "-o", "policy"]) == DONE
    capsys.readouterr()
    assert "which has several players: give the directory of its run" in said(capsys, code=BAD_INPUT)


def test_a_damaged_policy_is_one_line(capsys, folder):
    (folder / "policy.json").write_text(json.dumps({"policy": None}))
    assert "policy.json' is damaged" in said(capsys, code=BAD_INPUT)


SKIPPING = """
import gymnasium, numpy as np


class Skipping(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])
    frameskip = 1

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(2, np.float32), float(self.frameskip), self.steps == 5, False, {}
"""


@pytest.mark.parametrize("algorithm", ["A2C", "DQN"])
def test_an_environment_is_played_as_in_the_training(capsys, tmp_path, monkeypatch, algorithm):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("levels.py").write_text(SKIPPING)
    parameters = GymVectorEnvironment(level="levels.py:Skipping")
    parameters.frame_skip = 3
    agent = make_agent(algorithm, parameters, seed=0, framework="tensorflow")
    agent.export_model("policy")
    capsys.readouterr()
    assert "levels.py:Skipping: mean reward 15" in said(capsys, "-lvl", "levels.py:Skipping", "--steps", "20")
    document = json.loads(pathlib.Path("policy/policy.json").read_text())
    assert document["policy"]["about"]["environment"]["frame_skip"] == 3
