"""Small runs to interrupt and resume, and how to compare two of them to the last bit."""

from __future__ import annotations

import csv
import pathlib
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.bootstrapped_dqn_agent import BootstrappedDQNAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.n_step_q_agent import NStepQAgentParameters
from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.agents.nec_agent import NECAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.rainbow_dqn_agent import RainbowDQNAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, TaskParameters, VisualizationParameters
from rl_coach.checkpoint import find_checkpoint, load_checkpoint
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import Atari, GymVectorEnvironment
from rl_coach.exploration_policies.parameter_noise import ParameterNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from tests.frameworks import FRAMEWORK


def _dqn() -> AgentParameters:
    parameters = DQNAgentParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, 300)
    parameters.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 400)
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(70)
    return parameters


def _prioritized_dqn() -> AgentParameters:
    parameters = _dqn()
    parameters.memory = PrioritizedExperienceReplayParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, 256)
    parameters.memory.beta = LinearSchedule(0.4, 1, 500)
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    return parameters


def _policy_gradients() -> AgentParameters:
    parameters = PolicyGradientsAgentParameters()
    parameters.algorithm.apply_gradients_every_x_episodes = 3
    parameters.algorithm.num_steps_between_gradient_updates = 25
    return parameters


def _clipped_ppo() -> AgentParameters:
    parameters = ClippedPPOAgentParameters()
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    parameters.algorithm.optimization_epochs = 3
    parameters.algorithm.clipping_decay_schedule = LinearSchedule(1.0, 0.0, 1000)
    parameters.pre_network_filter = InputFilter()
    parameters.pre_network_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    return parameters


def _soft_actor_critic() -> AgentParameters:
    parameters = SoftActorCriticAgentParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, 300)
    return parameters


def _ddqn() -> AgentParameters:
    parameters = DDQNAgentParameters()
    parameters.exploration = ParameterNoiseParameters(parameters)
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(10)
    return parameters


def _actor_critic() -> AgentParameters:
    parameters = ActorCriticAgentParameters()
    parameters.algorithm.apply_gradients_every_x_episodes = 1
    parameters.algorithm.num_steps_between_gradient_updates = 25
    parameters.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    return parameters


def _rainbow() -> AgentParameters:
    parameters = RainbowDQNAgentParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, 256)
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(70)
    return parameters


def _bootstrapped() -> AgentParameters:
    parameters = BootstrappedDQNAgentParameters()
    parameters.exploration.bootstrapped_data_sharing_probability = 0.5
    parameters.memory.max_size = (MemoryGranularity.Transitions, 300)
    return parameters


def _neural_episodic_control() -> AgentParameters:
    parameters = NECAgentParameters()
    parameters.algorithm.dnd_size, parameters.algorithm.number_of_knn = 120, 5
    parameters.algorithm.propagate_updates_to_DND = True
    parameters.algorithm.n_step = 10
    return parameters


AGENTS = {
    "DQN": (_dqn, "CartPole-v1"),
    "DQN with prioritized replay": (_prioritized_dqn, "CartPole-v1"),
    "PG": (_policy_gradients, "CartPole-v1"),
    "ClippedPPO": (_clipped_ppo, "CartPole-v1"),
    "DDQN with noisy layers": (_ddqn, "CartPole-v1"),
    "actor-critic with an LSTM": (_actor_critic, "CartPole-v1"),
    "Rainbow": (_rainbow, "CartPole-v1"),
    "bootstrapped DQN": (_bootstrapped, "CartPole-v1"),
    "N-step Q": (NStepQAgentParameters, "CartPole-v1"),
    "NEC": (_neural_episodic_control, "CartPole-v1"),
    "NAF": (NAFAgentParameters, "Pendulum-v1"),
    "SAC": (_soft_actor_critic, "Pendulum-v1"),
    "DQN in several environments": (_prioritized_dqn, "CartPole-v1"),
    "ClippedPPO in several environments": (_clipped_ppo, "CartPole-v1"),
    "bootstrapped DQN in several environments": (_bootstrapped, "CartPole-v1"),
    "NEC in several environments": (_neural_episodic_control, "CartPole-v1"),
}


# those that between them have every kind of memory, filter, network state and several environments
_IN_EVERY_RUN = ("DQN with prioritized replay", "PG", "actor-critic with an LSTM", "ClippedPPO in several environments")


def agents(*quick: str) -> list[Any]:
    """All agents as parameters of a test; all but some are left to ``make soak``.

    :param quick: those that belong to every run of the tests
    """
    chosen = quick or _IN_EVERY_RUN
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.slow) for name in AGENTS]


def _breakout() -> AgentParameters:
    parameters = DQNAgentParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, 150)
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(25)
    return parameters


def _schedule(steps: int) -> ScheduleParameters:
    plan = ScheduleParameters()
    plan.heatup_steps = EnvironmentSteps(60)
    plan.evaluation_steps = EnvironmentEpisodes(2)
    plan.steps_between_evaluation_periods = EnvironmentSteps(100)
    plan.improve_steps = EnvironmentSteps(steps)
    return plan


def plan_of(name: str, steps: int) -> BasicRLGraphManager:
    """A graph that wants ``steps`` steps of training; an evaluation of two episodes every 100."""
    if name == "DQN on Breakout":
        environment: Any = Atari(level="BreakoutDeterministic-v4")
        return BasicRLGraphManager(_breakout(), environment, _schedule(steps), VisualizationParameters())
    agent, level = AGENTS[name][0](), AGENTS[name][1]
    for network in agent.network_wrappers.values():
        network.batch_size = min(network.batch_size, 32)
        network.middleware_parameters.scheme = [Dense(16)]
        for embedder in network.input_embedders_parameters.values():
            embedder.scheme = EmbedderScheme.Empty
    environment = GymVectorEnvironment(level=level)
    environment.num_environments = 3 if "several" in name else 1
    return BasicRLGraphManager(agent, environment, _schedule(steps), VisualizationParameters())


def make(name: str, steps: int, directory: pathlib.Path, **task: Any) -> BasicRLGraphManager:
    """A graph that is created and writes to ``directory``."""
    graph = plan_of(name, steps)
    settings = {"framework_type": FRAMEWORK, "experiment_path": str(directory), "seed": 5, **task}
    graph.create_graph(TaskParameters(**settings))
    return graph


def resume(name: str, steps: int, directory: pathlib.Path, **task: Any) -> BasicRLGraphManager:
    """A new graph that goes on with the run in ``directory``."""
    return make(name, steps, directory, resume=True, checkpoint_restore_path=str(directory), **task)


def final_state(directory: pathlib.Path) -> dict[str, Any]:
    """What the newest checkpoint holds: paths of leaves to leaves, without the clock."""
    state = load_checkpoint(find_checkpoint(directory))[0]
    # Python's own generator is seeded for the user's code, but libraries draw from it while they compile
    del state["python_random"]
    return {path: leaf for path, leaf in leaves(state) if not path.endswith("/seconds")}


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Each leaf of nested dicts and lists with its path; in the open rows of a CSV, not the time of day."""
    if isinstance(value, dict):
        if "names" in value and "values" in value:
            value = {n: v for n, v in zip(value["names"], value["values"]) if n != "Wall-Clock Time"}
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}/{key}")]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, f"{path}/{index}")]
    return [(path, value)]


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The paths of leaves that are not equal in type and to the last bit."""
    return [path for path in sorted({*one, *other}) if not _same(one.get(path, "absent"), other.get(path, "absent"))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and repr(one) == repr(other)


def rows(directory: pathlib.Path) -> list[dict[str, str]]:
    """The agent's CSV without the wall clock."""
    (path,) = directory.glob("*.csv")
    with open(path, encoding="utf-8", newline="") as file:
        return [{name: cell for name, cell in row.items() if name != "Wall-Clock Time"} for row in csv.DictReader(file)]
