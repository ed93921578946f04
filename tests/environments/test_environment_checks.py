"""What is said of environments with mistakes: by ``coach check-env``, and in the first steps of a run."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.base_parameters import TaskParameters
from rl_coach.coach import DONE, FOUND, main
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.environments import environment_checks
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers import graph_manager as graph_manager_module
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule
from rl_coach.utils import CoachError, TrainingError

LEVEL = """\
    import gymnasium as gym
    import numpy as np

    class Walk(gym.Env):
        observation_space = gym.spaces.Box(-10, 10, (2,), np.float32)
        action_space = gym.spaces.Discrete(3)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.steps = 0
            return self.seen(), {}

        def step(self, action):
            self.steps += 1
            return self.seen(), self.reward(), self.steps >= 20, False, {}

        def seen(self):
            return np.full(2, self.steps / 10, np.float32)

        def reward(self):
            return 1.0

    class Nan(Walk):
        def seen(self):
            return np.array([0, np.nan if self.steps == 3 else 0], np.float32)

    class Infinite(Walk):
        def reward(self):
            return float("inf") if self.steps == 4 else 0.0

    class Shape(Walk):
        def seen(self):
            return np.zeros(3 if self.steps == 5 else 2, np.float32)

    class Ragged(Walk):
        def seen(self):
            return [[0], [0, 0]] if self.steps == 5 else np.zeros(2, np.float32)

    class Dtype(Walk):
        def seen(self):
            return np.zeros(2)

    class Bounds(Walk):
        def seen(self):
            return np.full(2, self.steps, np.float32)

    class Parts(Walk):
        observation_space = gym.spaces.Dict({
            "gear": gym.spaces.Discrete(2), "inner": gym.spaces.Dict({"speed": gym.spaces.Box(0, 1, (), np.float32)}),
        })

        def seen(self):
            return {"gear": self.steps % 3, "inner": {"speed": np.float32(0)}}

    class Masked(Walk):
        def step(self, action):
            observation, reward, terminated, truncated, info = super().step(action)
            return observation, reward, terminated, truncated, {"action_mask": np.ones(3, np.int8) * (self.steps != 6)}

    class Asserts(Walk):
        joined = staticmethod(np.concatenate)
        spaces = {
            "Discrete": gym.spaces.Discrete(3, start=2), "MultiDiscrete": gym.spaces.MultiDiscrete([2, 3]),
            "large": gym.spaces.MultiDiscrete([9, 9, 9, 9]),
        }

        def __init__(self):
            self.action_space = self.spaces["{space}"]

        def mask(self):
            parts = getattr(self.action_space, "nvec", [getattr(self.action_space, "n", 0)])
            return [np.arange(n) == self.steps % n for n in parts]

        def reset(self, *, seed=None, options=None):
            observation, _ = super().reset(seed=seed)
            return observation, {"action_mask": self.joined(self.mask())}

        def step(self, action):
            chosen = np.atleast_1d(action - getattr(self.action_space, "start", 0))
            assert all(mask[one] for mask, one in zip(self.mask(), chosen)), f"{action} is forbidden"
            return (*super().step(action)[:4], {"action_mask": self.joined(self.mask())})

    class Endless(Walk):
        def step(self, action):
            return self.seen() * 0, 0.0, False, False, {}

    class Flags(Walk):
        def step(self, action):
            return (*super().step(action)[:2], 0, "no", {})

    class Raises(Walk):
        def reward(self):
            return 1 / (self.steps - 7)

    class Fails(Walk):
        def __init__(self):
            raise KeyError("no map")

    class NoAnswer(Walk):
        def step(self, action):
            return None

    class Text(Walk):
        def reward(self):
            return "much" if self.steps == 2 else 0.0

    class Array(Walk):
        def reward(self):
            return np.array([0.5])

    class Several(Walk):
        def reward(self):
            return np.array([0.5, 2.0])

    class OldStep(Walk):
        def step(self, action):
            observation, reward, terminated, _, info = super().step(action)
            return observation, reward, terminated, info
    """

RAISING_LINE = LEVEL[: LEVEL.index("1 / (self.steps")].count("\n") + 1


@pytest.fixture
def level(level_file):
    environment_checks._said.clear()  # what other tests of this process heard
    return lambda class_name: level_file(textwrap.dedent(LEVEL), class_name)


FINDINGS = [
    ("Nan", ", step 3: 'observation' is NaN or infinite in 1 of 2 elements"),
    ("Infinite", ", step 4: the reward is inf"),
    ("Shape", ", step 5: 'observation' has the shape (3,), its space says (2,)"),
    ("Dtype", ", reset: 'observation' has the dtype float64, its space says float32"),
    ("Bounds", ", step 11: 'observation' is outside its space in 2 of 2 elements"),
    ("Flags", ", step 1: terminated is 0, not True or False"),
    ("OldStep", ": step returns four values, as in the older gym"),
]


def checked(capsys, *arguments: str) -> tuple[int, list[str]]:
    with pytest.raises(SystemExit) as exit_code:
        main(["check-env", *arguments])
    return exit_code.value.code, capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *FINDINGS,
        ("Parts", ", step 2: 'gear' is 2, which is not in its space Discrete(2)"),
        ("Ragged", ", step 5: 'observation' is [[0], [0, 0]], which is not an array of numbers"),
        ("Masked", ", step 6: the action mask allows no action, so it has no effect"),
        ("Raises", ", step 7: raised an error: {file}:{line}: ZeroDivisionError: division by zero"),
        (
            "NoAnswer",
            ", step 1: raised an error: TypeError: cannot unpack NoneType, which step() returned; step() returns",
        ),
        ("Text", ", step 2: the reward is 'much', which is not a number"),
        ("Array", ", step 1: the reward is array([0.5]), an array: return a number"),
        ("Several", ", step 1: the reward is array([0.5, 2. ]), an array: return a number"),
        ("Endless", ", step 300: the episode has not ended within 300 steps: give it a limit"),
    ],
)
def test_the_program_names_environment_and_step(capsys, level, name, text):
    code, lines = checked(capsys, level(name), "--steps", "300")
    assert code == FOUND
    text = text.format(file=level(name).rpartition(":")[0], line=RAISING_LINE)
    assert sum(line.startswith(f"level '{level(name)}'{text}") for line in lines) == 1, lines


@pytest.mark.parametrize(
    "space, joined",
    [
        ("Discrete", "np.concatenate"),
        ("MultiDiscrete", "np.concatenate"),
        ("large", "np.concatenate"),
        ("MultiDiscrete", "tuple"),
        ("MultiDiscrete", "list"),
    ],
)
def test_an_environment_may_refuse_what_its_mask_forbids(capsys, tmp_path, monkeypatch, space, joined):
    monkeypatch.chdir(tmp_path)
    source = textwrap.dedent(LEVEL).replace("{space}", space).replace("(np.concatenate)", f"({joined})")
    (tmp_path / "masks.py").write_text(source)
    code, lines = checked(capsys, "masks.py:Asserts")
    assert (code, lines[-1]) == (DONE, "level 'masks.py:Asserts': no problems in 100 steps, 5 episodes")


def test_nothing_is_found_where_nothing_is_wrong(capsys, level):
    code, lines = checked(capsys, level("Walk"))
    assert (code, lines[-1]) == (DONE, f"level '{level('Walk')}': no problems in 100 steps, 5 episodes")
    code, lines = checked(capsys, "CartPole-v1")
    assert code == DONE and "advice of Gymnasium's checker" in lines[0]


def test_what_gymnasiums_checker_finds_is_said_too(capsys, level_file):
    source = textwrap.dedent(LEVEL) + textwrap.dedent("""
    class Unseeded(Walk):
        def reset(self, *, seed=None, options=None):
            self.steps = 0
            return np.random.default_rng().random(2).astype(np.float32), {}
    """)
    code, lines = checked(capsys, level_file(source, "Unseeded"))
    assert code == FOUND and any("Gymnasium's checker: AssertionError" in line for line in lines), lines


def test_an_environment_that_there_is_not(capsys):
    assert main(["check-env", "CartPol-v1"]) == 2
    assert "no level 'CartPol-v1'; did you mean 'CartPole-v1'" in capsys.readouterr().err


def test_an_environment_that_cannot_be_made_is_one_line(capsys, level):
    assert main(["check-env", level("Fails")]) == 2
    error = capsys.readouterr().err
    assert "cannot be made: " in error and "KeyError: 'no map'" in error and error.count("\n") == 1


def test_a_reward_that_is_no_number_ends_a_run(level, make_environment):
    environment = make_environment(level("Text"))
    environment.step(0)
    with pytest.raises(CoachError, match="step 2: the reward is 'much', which is not a number"):
        environment.step(0)


def test_several_rewards_of_a_step_end_a_run_in_one_line(capsys, level, tmp_path):
    assert main(["-p", "CartPole_DQN", "-lvl", level("Several"), "-ep", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "coach: the reward of a step is an array of 2 numbers, but agents learn from one" in error
    assert "Traceback" not in error


def test_a_reward_that_is_no_number_later_is_one_line(level, make_environment, monkeypatch):
    environment = make_environment(level("Walk"))
    for _ in range(environment_checks.CHECKED_STEPS):
        if environment.step(0).game_over:
            environment.reset_internal_state()
    monkeypatch.setattr(environment, "_step_simulator", lambda action: (np.zeros(2), None, False, False, {}))
    with pytest.raises(TrainingError, match=r"failed in step 1 of episode \d: .*NoneType"):
        environment.step(0)


def test_an_array_of_one_reward_is_that_reward(level, make_environment):
    environment = make_environment(level("Array"))
    assert [environment.step(0).reward for _ in range(3)] == [0.5] * 3
    assert environment.total_reward_in_current_episode == 1.5


def test_several_rewards_are_left_to_the_filters(level, make_environment):
    environment = make_environment(level("Several"))
    assert [environment.step(0).reward.tolist() for _ in range(2)] == [[0.5, 2.0]] * 2
    assert environment.total_reward_in_current_episode.tolist() == [1.0, 4.0]


@pytest.mark.parametrize(("name", "text"), FINDINGS)
def test_a_run_says_it_once(caplog, level, make_environment, name, text):
    environments = [make_environment(level(name)), make_environment(level(name))]
    for environment in environments:
        for _ in range(40):
            if environment.step(0).game_over:
                environment.reset_internal_state()
    lines = [record.getMessage() for record in caplog.records]
    assert sum(text in line for line in lines) == 1, lines


def test_a_mask_that_allows_nothing_masks_nothing_and_says_so(level, make_environment, caplog):
    environment = make_environment(level("Masked"))
    masks = [environment.step(0).next_state["action_mask"].tolist() for _ in range(10)]
    assert masks == [[1, 1, 1]] * 10
    assert "step 6: the action mask allows no action, so it has no effect" in caplog.text


def test_later_steps_are_the_environments_own(level, make_environment):
    environment = make_environment(level("Walk"))
    for _ in range(environment_checks.CHECKED_STEPS):
        assert isinstance(environment._step_simulator, environment_checks.FirstSteps)
        environment.step(0)
    assert environment._step_simulator == environment.env.step


def test_a_sound_environment_is_not_spoken_of(caplog, level, make_environment):
    for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1", level("Walk")):
        environment = make_environment(name)
        for _ in range(50):
            if environment.step(environment.action_space.sample()).game_over:
                environment.reset_internal_state()
    assert caplog.records == []


def test_heatup_does_not_wait_for_ever(capsys, monkeypatch, tmp_path, level):
    monkeypatch.setattr(graph_manager_module, "ENDLESS_EPISODE", 60)
    monkeypatch.setattr(graph_manager_module, "SECONDS_BETWEEN_REDRAWS", 0)
    schedule = SimpleSchedule(EnvironmentSteps(10), EnvironmentEpisodes(5), EnvironmentEpisodes(0))
    schedule.heatup_steps = EnvironmentSteps(20)
    manager = BasicRLGraphManager(DQNAgentParameters(), GymVectorEnvironment(level("Endless")), schedule)
    manager.create_graph(TaskParameters(experiment_path=str(tmp_path), seed=0))
    manager.improve()
    assert manager.total_steps_counters[RunPhase.HEATUP][EnvironmentSteps] == 60
    assert manager.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] == 10
    said = " ".join(capsys.readouterr().out.split())
    assert said.count(f"level '{level('Endless')}', step 60: the episode has not ended") == 1
