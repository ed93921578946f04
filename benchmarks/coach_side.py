"""Trains the works of ``benchmarks.works`` with Coach."""

from __future__ import annotations

import tempfile
from typing import Any, Callable

import numpy as np

from benchmarks.returns import EPISODES
from benchmarks.works import SEQUENCE, Work
from rl_coach.base_parameters import Frameworks, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import Atari, GymEnvironmentParameters, GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleScheduleWithoutEvaluation


class Training:
    """A graph for a work. Each call makes some environment steps and the training that is due."""

    def __init__(self, work: Work, framework: str):
        self.graph = graph_of(work)
        create(self.graph, framework)
        if self.graph.heatup_steps.num_steps:
            self.graph.heatup(self.graph.heatup_steps)

    def __call__(self, steps: int) -> None:
        self.graph.train_and_act(EnvironmentSteps(steps))

    def mean_return(self) -> float:
        """The mean return of ``EPISODES`` evaluation episodes."""
        self.graph.evaluate(EnvironmentEpisodes(EPISODES))
        return float(np.mean(self.graph.evaluation_rewards))


def runner(work: Work, framework: str) -> Training:
    """Begin the training of a work. ``benchmarks.versus`` also calls this function in other checkouts."""
    return Training(work, framework)


def create(graph: Any, framework: str) -> None:
    """Create the networks and the environment of a graph. The graph writes no CSV file."""
    graph.visualization_parameters = VisualizationParameters(dump_csv=False, dump_parameters_documentation=False)
    graph.create_graph(TaskParameters(framework_type=Frameworks[framework], experiment_path=tempfile.mkdtemp(), seed=1))


def graph_of(work: Work) -> BasicRLGraphManager:
    """The graph of a work. Its schedule has no evaluations."""
    schedule = SimpleScheduleWithoutEvaluation()
    if work.algorithm not in ("ppo", "a2c"):
        schedule.heatup_steps = EnvironmentSteps(max(1, work.batch_size * 4))
    return BasicRLGraphManager(AGENTS[work.algorithm](work), _environment(work), schedule)


def _environment(work: Work) -> GymEnvironmentParameters:
    level = work.level or "benchmarks.null_environment:NullEnvironment"
    parameters = Atari(level=level) if "Pong" in level else GymVectorEnvironment(level=level)
    if work.environments > 1:
        parameters.num_environments = work.environments
    return parameters


def _dqn(work: Work, parameters: Any = None) -> Any:
    from rl_coach.agents.dqn_agent import DQNAgentParameters
    from rl_coach.memories.memory import MemoryGranularity

    parameters = DQNAgentParameters() if parameters is None else parameters
    network = parameters.network_wrappers["main"]
    _layers(network, work)
    network.batch_size = work.batch_size
    network.replace_mse_with_huber_loss = False
    parameters.memory.max_size = (MemoryGranularity.Transitions, work.memory)
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(work.steps_per_update)
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
    parameters.exploration.epsilon_schedule.final_value = 0.01
    parameters.exploration.epsilon_schedule.decay_steps = 1_000
    return parameters


def _qr_dqn(work: Work) -> Any:
    from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgentParameters

    parameters = _dqn(work, QuantileRegressionDQNAgentParameters())
    parameters.algorithm.atoms = 50
    return parameters


def _layers(network: Any, work: Work) -> None:
    """Give a network the hidden layers of the work. The last layer is the middleware. With two layers, the first one is
    in each embedder. With one layer, embedders do not change.
    """
    from rl_coach.architectures.layers import Dense

    if len(work.hidden) == 2:
        for embedder in network.input_embedders_parameters.values():
            embedder.scheme = [Dense(work.hidden[0])]
    network.middleware_parameters.scheme = [Dense(work.hidden[-1])]


def _ppo(work: Work) -> Any:
    from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters

    parameters = ClippedPPOAgentParameters()
    network, algorithm = parameters.network_wrappers["main"], parameters.algorithm
    _layers(network, work)
    network.batch_size = work.batch_size
    if work.level is not None and "Pong" in work.level:  # one network for both heads, as in the other libraries
        network.use_separate_networks_per_head = False
        for part in (*network.input_embedders_parameters.values(), network.middleware_parameters):
            part.activation_function = "relu"
    algorithm.num_consecutive_playing_steps = EnvironmentSteps(work.rollout)
    algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(work.rollout)
    algorithm.optimization_epochs = work.epochs
    return parameters


def _a2c(work: Work) -> Any:
    from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters

    parameters = ActorCriticAgentParameters()
    network = parameters.network_wrappers["main"]
    _layers(network, work)
    network.use_separate_networks_per_head = True
    # the settings of A2C in Stable-Baselines3; with Coach's learning rate, A2C does not learn CartPole in these steps
    network.optimizer_type, network.learning_rate, network.clip_gradients = "RMSProp", 7e-4, 0.5
    network.rms_prop_optimizer_decay, network.optimizer_epsilon = 0.99, 1e-5
    for part in (*network.input_embedders_parameters.values(), network.middleware_parameters):
        part.activation_function = "tanh"
    parameters.algorithm.learns_from_copies_together, parameters.algorithm.beta_entropy = True, 0.0
    parameters.algorithm.discount = 0.99
    parameters.algorithm.num_steps_between_gradient_updates = work.rollout // work.environments
    return parameters


def _ddpg(work: Work) -> Any:
    from rl_coach.agents.ddpg_agent import DDPGAgentParameters

    return _deterministic(DDPGAgentParameters(), work)


def _td3(work: Work) -> Any:
    from rl_coach.agents.td3_agent import TD3AgentParameters

    parameters = _deterministic(TD3AgentParameters(), work)
    parameters.algorithm.act_for_full_episodes = False
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    return parameters


def _deterministic(parameters: Any, work: Work) -> Any:
    from rl_coach.base_parameters import EmbedderScheme
    from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
    from rl_coach.memories.memory import MemoryGranularity
    from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters

    for network in parameters.network_wrappers.values():
        _layers(network, work)
        network.batch_size = work.batch_size
    # the action is an input of the second layer, as in the papers; in the other libraries, of the first layer
    parameters.network_wrappers["critic"].input_embedders_parameters["action"].scheme = EmbedderScheme.Empty
    parameters.memory = ExperienceReplayParameters()
    parameters.memory.max_size = (MemoryGranularity.Transitions, work.memory)
    parameters.exploration = AdditiveNoiseParameters()
    return parameters


def _sac(work: Work) -> Any:
    from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
    from rl_coach.architectures.layers import Dense

    parameters = SoftActorCriticAgentParameters()
    for name in ("v", "policy"):
        parameters.network_wrappers[name].middleware_parameters.scheme = [Dense(work.hidden[1])]
    return parameters


def _null_agent(work: Work) -> Any:
    parameters = _dqn(Work("", "", "dqn", None, (8, 8), 8, 0, 0))
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(10**12)
    parameters.exploration.epsilon_schedule.initial_value = 1.0
    parameters.exploration.epsilon_schedule.final_value = 1.0
    parameters.exploration.epsilon_schedule.current_value = 1.0
    return parameters


def _dreamer_v3(work: Work) -> Any:
    from rl_coach.agents.dreamer_v3_agent import DreamerV3AgentParameters

    parameters = DreamerV3AgentParameters()
    network = parameters.network_wrappers["main"]
    network.batch_size, network.middleware_parameters.sequence_length = work.batch_size, SEQUENCE
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(work.steps_per_update)
    return parameters


AGENTS: dict[str, Callable[[Work], Any]] = {
    "a2c": _a2c,
    "ddpg": _ddpg,
    "dreamer_v3": _dreamer_v3,
    "dqn": _dqn,
    "null": _null_agent,
    "ppo": _ppo,
    "qr_dqn": _qr_dqn,
    "sac": _sac,
    "td3": _td3,
}
