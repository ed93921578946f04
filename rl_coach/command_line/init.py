"""``coach init``: write files to begin with, an environment with a test and a preset, or a preset to edit."""

from __future__ import annotations

import pathlib
import re
from typing import Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import preset_catalogue
from rl_coach.utils import CoachError, did_you_mean

_WITHOUT_PACKAGES = ("CartPole", "Pendulum", "Acrobot", "MountainCar")
"""Beginnings of presets that need no extra, the quickest first."""

_ENVIRONMENT = '''\
"""{title}: a point on a line walks to a goal at its right end."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STEPS = 50
"""The steps of an episode, if the point does not reach the goal before."""


class {title}(gymnasium.Env[np.ndarray, np.int64]):
    """The observation is the position, from -1 to 1. Action 0 goes to the left, 1 to the right. Each step costs 1."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._position, self._steps = 0.0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._position, self._steps = float(self.np_random.uniform(-1.0, 0.5)), 0
        return self._observation(), {{}}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._steps += 1
        self._position = float(np.clip(self._position + (0.1 if action else -0.1), -1.0, 1.0))
        is_at_goal = self._position >= 0.99
        return self._observation(), -1.0, is_at_goal, self._steps >= STEPS, {{}}

    def _observation(self) -> np.ndarray:
        return np.array([self._position], np.float32)
'''

_TEST = """\
from gymnasium.utils.env_checker import check_env
from {module} import {title}


def test_the_environment_follows_gymnasium():
    check_env({title}(), skip_render_check=True)


def test_right_leads_to_the_goal():
    environment = {title}()
    environment.reset(seed=1)
    rewards, is_over = [], False
    while not is_over:
        _, reward, terminated, truncated, _ = environment.step(1)
        rewards.append(reward)
        is_over = terminated or truncated
    assert terminated and len(rewards) <= 20
"""

_PRESET = '''\
"""DQN learns {title}."""

import pathlib

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.schedules import LinearSchedule

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(500)
schedule_params.improve_steps = EnvironmentSteps(10_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(1_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = DQNAgentParameters()
agent_params.algorithm.discount = 0.99
agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
agent_params.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
agent_params.network_wrappers["main"].learning_rate = 0.001
agent_params.exploration.epsilon_schedule = LinearSchedule(1.0, 0.05, 3_000)

# Environment
env_params = GymVectorEnvironment(level=f"{{pathlib.Path(__file__).with_name('{module}.py')}}:{title}")
env_params.custom_reward_threshold = -20  # with -asc, training ends when each episode of an evaluation reaches it

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
'''

_README = """\
# {title}

| file | contents |
|---|---|
| `{module}.py` | the environment |
| `test_{module}.py` | its test |
| `{module}_preset.py` | a preset: agent, settings and schedule |

Check the environment, run its test, and train until the target reward is reached:

    coach check-env {module}.py:{title}
    python -m pytest test_{module}.py
    coach -p {module}_preset.py -asc

`coach watch` and `coach evaluate` take the directory that the training prints.
"""


def run(arguments: Sequence[str]) -> None:
    """Run ``coach init``.

    :param arguments: the arguments after ``init``
    :raises CoachError: for bad input; no file has been written then
    """
    args = command_line.get_init_parser().parse_args(arguments)
    if (args.file is None) == (args.preset is None):
        raise CoachError("give either a file for an environment, or --preset ALGORITHM (see coach init --help)")
    if args.preset is None:
        _write(_files_of_environment(pathlib.Path(args.file)))
        module = pathlib.Path(args.file).with_suffix("")
        print(f"train it with: coach -p {module}_preset.py -asc")
        return
    source = _preset_for(args.preset)
    file = pathlib.Path(f"{re.sub(r'[^a-z0-9]+', '_', args.preset.lower()).strip('_')}_preset.py")
    _write({file: (preset_catalogue.preset_directory() / f"{source}.py").read_text(encoding="utf-8")})
    print(f"it is a copy of {source}; edit it, and train with: coach -p {file}")


def _files_of_environment(file: pathlib.Path) -> dict[pathlib.Path, str]:
    module = file.stem
    if file.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", module):
        raise CoachError(f"'{file}' must be a name of small letters, digits and '_' that ends with .py, as my_env.py")
    names = {"module": module, "title": "".join(word.capitalize() for word in module.split("_"))}
    return {
        file: _ENVIRONMENT.format(**names),
        file.with_name(f"test_{module}.py"): _TEST.format(**names),
        file.with_name(f"{module}_preset.py"): _PRESET.format(**names),
        file.with_name(f"{module}_README.md"): _README.format(**names),
    }


def _preset_for(algorithm: str) -> str:
    """A preset of the algorithm: one without other packages if there is one, then a tuned one."""
    names = [*preset_catalogue.list_tuned_presets(), *preset_catalogue.list_all_presets()]
    names.sort(key=lambda name: not name.removeprefix("tuned/").startswith(_WITHOUT_PACKAGES[:2]))
    names.sort(key=lambda name: not name.removeprefix("tuned/").startswith(_WITHOUT_PACKAGES))
    known: dict[str, str] = {}
    for summary in preset_catalogue.summaries(names):
        for one in summary.algorithm.split(", "):
            known.setdefault(one, summary.name)
    found = next((name for one, name in known.items() if one.lower() == algorithm.lower()), None)
    if found is None:
        raise CoachError(f"no preset has the algorithm '{algorithm}'{did_you_mean(algorithm, known)}")
    return found


def _write(files: dict[pathlib.Path, str]) -> None:
    """Write new files.

    :raises CoachError: one of the files exists, or its directory cannot be written
    """
    for file in files:
        if file.exists():
            raise CoachError(f"'{file}' exists already: choose another name, or remove it")
    for file, text in files.items():
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CoachError(f"'{file}' cannot be written: {error.strerror}") from None
        print(f"wrote {file}")
