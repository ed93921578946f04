"""The algorithms by name: the list is complete. Each algorithm acts and learns in a user's loop, or says why not."""

from __future__ import annotations

import importlib
import pathlib
import sys

import gymnasium
import numpy as np
import pytest

import rl_coach.agents
from rl_coach import make_agent
from rl_coach.agents.algorithms import find_algorithm, known_algorithms, plain_name
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ppo_agent import PPOAgentParameters
from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.coach import main
from rl_coach.core_types import EnvironmentSteps
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.samples import one_in
from tests.terminal import terminal
from tests.zoo.parameters import DREAMER_SIZE

DIRECTORY = pathlib.Path(rl_coach.agents.__file__).parent
STATES = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
ACTIONS = (gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(-1, 1, (2,), np.float32))
SEEN = {"env_obs_key": "observation", "agent_obs_key": "observation"}
ROLLOUT = {"num_consecutive_playing_steps": EnvironmentSteps(10)}
SMALL = {"network_wrappers['main'].batch_size": 8}
SETTINGS = {
    "A2C": {"apply_gradients_every_x_episodes": 1},
    "AdaptivePPO": ROLLOUT,
    "ARS": {"num_directions": 1},
    "ApexDQN": SMALL,
    "DFP": {
        "use_accumulated_reward_as_measurement": True,
        "goal_vector": [1.0],
        "input_embedders_parameters": {"observation": {"scheme": []}},
    },
    "DecisionTransformer": {
        "context_length": 3,
        "network_wrappers['main'].batch_size": 8,
        "network_wrappers['main'].middleware_parameters.width": 8,
    },
    "DreamerV3": {
        "algorithm.size": DREAMER_SIZE,
        "imagination_horizon": 3,
        "network_wrappers['main'].batch_size": 16,
        "network_wrappers['main'].middleware_parameters.sequence_length": 4,
    },
    "FastTD3": {**ROLLOUT, "network_wrappers['actor'].batch_size": 8, "network_wrappers['critic'].batch_size": 8},
    "NEC": {"number_of_knn": 2},
    "PG": {"apply_gradients_every_x_episodes": 1},
    "PPO": ROLLOUT,
    "PQN": ROLLOUT,
    "Rainbow": SMALL,
    "Random": SEEN,
    "TD3Exploration": SEEN,
    "TD3IntrinsicReward": SEEN,
    "TRPO": ROLLOUT,
}
WITHOUT_WAY = {
    "AWAC": "learns from a fixed data set",
    "BCQ": "learns from a fixed data set",
    "CIL": "num_classes",
    "Composite": "give a CompositeAgent to a LevelManager",
    "DQfD": "set memory.load_memory_from_file_path",
    "DrQv2": "learns from images",
    "GAIL": "set memory.load_memory_from_file_path",
    "HAC": "HACGraphManager, such as Pendulum_HAC",
    "Human": "coach -p PRESET --play",
    "IQL": "learns from a fixed data set",
    "MAPPO": "MultiAgentGraphManager, as the preset Spread_MAPPO",
    "QMIX": "MultiAgentGraphManager, as the preset Spread_QMIX",
    "TD3GoalBased": "env_obs_key",
    "VDN": "MultiAgentGraphManager, as the preset Spread_VDN",
}
"""Algorithms that need more than an environment and small settings, and a part of the line that says so."""
if FRAMEWORK is Frameworks.mxnet:
    WITHOUT_WAY |= dict.fromkeys(("DecisionTransformer", "DreamerV3", "TRPO"), "learns only on")


def test_each_class_of_parameters_has_a_name():
    modules = [importlib.import_module(f"rl_coach.agents.{path.stem}") for path in DIRECTORY.glob("*_agent.py")]
    classes = {
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, AgentParameters) and one.__module__ == module.__name__
    }
    listed = {algorithm.parameters for algorithm in known_algorithms()}
    assert len(classes) >= 43 and classes <= listed


def test_no_name_has_two_meanings():
    names = [plain_name(name) for algorithm in known_algorithms() for name in algorithm.names]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["PPO", "ppo", "Clipped-PPO", "clipped_ppo", "ClippedPPO"])
def test_case_hyphens_and_underscores_do_not_count(name):
    assert find_algorithm(name).parameters is ClippedPPOAgentParameters


def test_the_algorithm_with_a_penalty_has_another_name():
    assert find_algorithm("adaptive_ppo").parameters is PPOAgentParameters


@pytest.mark.parametrize("name", ["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3", "QRDQN", "TRPO"])
def test_the_names_of_stable_baselines3_are_names_here(name):
    assert find_algorithm(name).parameters


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("DQM", "there is no algorithm 'DQM'; did you mean 'DrQ' or 'DQN'"),
        ("TD_4", "did you mean 'TD3'"),
        ("zzz", r"there is no algorithm 'zzz' \('coach algorithms' lists all names\)"),
        ("RecurrentPPO", "'PPO' with an LSTM"),
        ("Maskable-PPO", "'PPO' with action_mask=True"),
        ("HER", "a memory with hindsight"),
    ],
)
def test_an_unknown_name_gets_advice(name, reason):
    with pytest.raises(CoachError, match=reason):
        make_agent(name, "CartPole-v1")


def test_a_new_file_is_on_the_list(tmp_path, monkeypatch):
    (tmp_path / "my_new_agent.py").write_text(
        '"""My algorithm."""\n'
        "from rl_coach.agents.dqn_agent import DQNAgentParameters\n"
        "class MyNewAgentParameters(DQNAgentParameters):\n"
        "    pass\n"
    )
    monkeypatch.setattr(rl_coach.agents, "__path__", [*rl_coach.agents.__path__, str(tmp_path)])
    known_algorithms.cache_clear()
    try:
        assert find_algorithm("my-new").about == "My algorithm."
    finally:
        known_algorithms.cache_clear()


def test_the_table_fits_the_terminal(tmp_path):
    with terminal([sys.executable, "-m", "rl_coach", "algorithms"], 80, tmp_path) as program:
        assert program.watch(60)
    lines = [line.split("  ", 1) for line in program.lines() if not line.startswith(" ")]
    assert len(lines) > 10 and all(about.strip()[0].isupper() for _, about in lines)  # no name is a wrapped text


def test_the_command_lists_names(capsys):
    assert main(["algorithms", "adaptive"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["names", "AdaptivePPO"]
    assert main(["algorithms", "zzz"]) == 2
    assert capsys.readouterr().err == "coach: no algorithm contains 'zzz' ('coach algorithms' lists all names)\n"


@pytest.mark.parametrize("name", one_in(3, [algorithm.names[0] for algorithm in known_algorithms()]))
def test_an_algorithm_acts_and_learns_or_says_why_not(name):
    refusals = []
    for actions in ACTIONS:
        try:
            act_and_learn(name, actions)
        except CoachError as error:
            refusals.append(str(error))
    assert all(len(line.splitlines()) == 1 for line in refusals)
    if name in WITHOUT_WAY:
        assert len(refusals) == 2 and any(WITHOUT_WAY[name] in line for line in refusals)
    else:
        assert len(refusals) < 2, refusals


def act_and_learn(name: str, actions: gymnasium.Space) -> None:
    """Play episodes of ten steps, and learn from them.

    :raises CoachError: the algorithm needs something else
    """
    agent = make_agent(
        name, observation_space=STATES, action_space=actions, framework=FRAMEWORK.name, seed=0, heatup_steps=10,
        **SETTINGS.get(name, {}),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, (41, 4)).astype(np.float32)
    for step in range(40):
        assert actions.contains(np.asarray(agent.act(states[step]), actions.dtype))
        agent.observe(1.0, step % 10 == 9, next_states=states[step + 1])
    assert np.isfinite(agent.update())
    assert name == "Random" or agent.graph_manager.get_agent().training_iteration > 0
    agent.close()
