"""A policy takes what the environment gives, for every kind of observation that Coach turns into another form."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, EnvResponse, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.policy import Policy
from rl_coach.utils import CoachError

MY_ENVIRONMENT = '''
import gymnasium
import numpy as np
from gymnasium import spaces

OBSERVATIONS = {
    "numbers": spaces.MultiDiscrete([2, 3, 4], start=[0, -1, 5]),
    "grid": spaces.MultiDiscrete([[2, 3], [4, 2]]),
    "number": spaces.Discrete(5, start=-2),
    "switches": spaces.MultiBinary((2, 2)),
    "picture": spaces.Box(0, 255, (6, 5), np.uint8),
    "scalar": spaces.Box(-1, 1, ()),
}
ACTIONS = {"from five": spaces.Discrete(3, start=5), "two": spaces.MultiDiscrete([2, 3], start=[1, -1])}


class Random(gymnasium.Env):
    """Observes at random."""

    action_space = spaces.Discrete(4)

    def __init__(self, kind, actions=None):
        if actions is not None:
            self.action_space = ACTIONS[actions]
        if kind in OBSERVATIONS:
            self.observation_space = OBSERVATIONS[kind]
        elif kind == "dict":
            several = {"number": OBSERVATIONS["number"], "numbers": OBSERVATIONS["numbers"]}
            self.observation_space = spaces.Dict(several)
        else:
            self.observation_space = spaces.Dict({"body": spaces.Dict({"number": OBSERVATIONS["number"]})})

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), float(self.np_random.random()), False, self.steps == 20, {}
'''


def trained(tmp_path, level, inputs=("observation",), **simulator):
    """A DQN agent after a few updates."""
    agent = DQNAgentParameters()
    network = agent.network_wrappers["main"]
    network.input_embedders_parameters = {name: InputEmbedderParameters(scheme=[Dense(16)]) for name in inputs}
    network.middleware_parameters.scheme = [Dense(16)]
    network.learning_rate = 0.01
    agent.exploration.evaluation_epsilon = 0.0
    environment = GymVectorEnvironment(level)
    environment.additional_simulator_parameters = simulator
    schedule = ScheduleParameters()
    schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(60), EnvironmentSteps(60)
    schedule.steps_between_evaluation_periods, schedule.evaluation_steps = EnvironmentSteps(60), EnvironmentEpisodes(0)
    graph = BasicRLGraphManager(agent, environment, schedule)
    graph.create_graph(TaskParameters(experiment_path=str(tmp_path / "run"), seed=1))
    graph.heatup(EnvironmentSteps(60))
    graph.train_and_act(EnvironmentSteps(60))
    network, rng = graph.get_agent().networks["main"].online_network, np.random.default_rng(1)
    # so much has hardly been learned that it tells the states apart
    network.set_weights([weights + rng.normal(size=weights.shape) for weights in network.get_weights()])
    return graph


def evaluation(graph, steps=40):
    """What the environment gave, with its mask if it has one, and what the agent would have done, while it is evaluated
    in random states."""
    agent, environment = graph.get_agent(), graph.environments[0]
    simulator = environment.env
    given, chosen = [], []
    with graph.phase_context(RunPhase.TEST):
        simulator.action_space.seed(0)
        observation, info = simulator.reset(seed=3)
        agent.reset_internal_state()
        for _ in range(steps):
            agent.observe(EnvResponse(environment._read_state(observation, info), 0.0, False))
            masked = {"observation": observation, "action_mask": info.get("action_mask")}
            given.append(observation if masked["action_mask"] is None else masked)
            chosen.append(agent.act().action)
            observation, _, terminated, truncated, info = simulator.step(simulator.action_space.sample())
            if terminated or truncated:
                observation, info = simulator.reset()
    return given, chosen


def batch_of(observations):
    """[B, ...], likewise in nested dicts."""
    if isinstance(observations[0], dict):
        return {name: batch_of([one[name] for one in observations]) for name in observations[0]}
    return np.stack(observations)


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "my_environment.py"
    file.write_text(MY_ENVIRONMENT)
    return f"{file}:Random"


def assert_acts_alike(graph):
    policy = Policy.load(graph.save_checkpoint())
    given, chosen = evaluation(graph)
    assert len(set(chosen)) > 1
    assert [policy.act(observation) for observation in given] == chosen
    assert policy.act_batch(batch_of(given)).tolist() == chosen
    return policy


@pytest.mark.parametrize("level", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_toy_text(tmp_path, level):
    policy = assert_acts_alike(trained(tmp_path, level))
    assert policy.observation_shapes["observation"] == ()


@pytest.mark.parametrize("kind", ["numbers", "grid", "number", "switches", "picture", "scalar"])
def test_an_observation_of_each_kind(tmp_path, mine, kind):
    assert_acts_alike(trained(tmp_path, mine, kind=kind))


@pytest.mark.parametrize(("kind", "inputs"), [("dict", ("number", "numbers")), ("nested", ("body/number",))])
def test_several_observations(tmp_path, mine, kind, inputs):
    assert_acts_alike(trained(tmp_path, mine, inputs, kind=kind))


@pytest.mark.parametrize("actions", ["from five", "two"])
def test_actions_are_the_environments_own(tmp_path, mine, actions):
    graph = trained(tmp_path, mine, kind="number", actions=actions)
    space = graph.environments[0].env.action_space
    policy = Policy.load(graph.save_checkpoint())
    given, chosen = evaluation(graph)
    taken = [policy.act(observation) for observation in given]
    assert all(space.contains(action) for action in taken) and len(set(chosen)) > 1
    expected = [graph.environments[0].action_space.to_raw(action) for action in chosen]
    np.testing.assert_array_equal(taken, expected)
    np.testing.assert_array_equal(policy.act_batch(batch_of(given)), expected)


def test_numbers_that_the_training_did_not_know_are_errors(tmp_path, mine):
    policy = Policy.load(trained(tmp_path, mine, kind="numbers").save_checkpoint())
    for numbers in ([0, 2, 5], [2, 0, 5], [0, 0, 4], [0.5, 0, 5]):
        with pytest.raises(CoachError, match=r"'observation' is \[.*\], .* numbers from \[0, -1, 5\] to \[1, 1, 8\]"):
            policy.act(numbers)
    with pytest.raises(CoachError, match=r"shape \(2,\)"):
        policy.act([0, 0])


def test_it_needs_no_gymnasium(tmp_path):
    folder = trained(tmp_path, "FrozenLake-v1").save_checkpoint()
    program = (
        "import sys; from rl_coach.policy import Policy; print(Policy.load(sys.argv[1]).act(3) in range(4), "
        "[name for name in ('gymnasium', 'tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"
