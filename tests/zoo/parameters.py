"""Parameters of Coach's agents, on networks so small that they learn the zoo's problems in seconds."""

from __future__ import annotations

from typing import Any, Callable

from rl_coach.agents.acer_agent import ACERAgentParameters
from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.apex_agent import ApexDQNAgentParameters
from rl_coach.agents.appo_agent import APPOAgentParameters
from rl_coach.agents.ars_agent import ARSAgentParameters
from rl_coach.agents.bootstrapped_dqn_agent import BootstrappedDQNAgentParameters
from rl_coach.agents.categorical_dqn_agent import CategoricalDQNAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.curiosity import RNDParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.decision_transformer_agent import DecisionTransformerAgentParameters
from rl_coach.agents.dfp_agent import DFPAgentParameters, HandlingTargetsAfterEpisodeEnd
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.dreamer_v3_agent import DreamerV3AgentParameters
from rl_coach.agents.impala_agent import IMPALAAgentParameters
from rl_coach.agents.mappo_agent import MAPPOAgentParameters
from rl_coach.agents.mmc_agent import MixedMonteCarloAgentParameters
from rl_coach.agents.munchausen_dqn_agent import MunchausenDQNAgentParameters
from rl_coach.agents.n_step_q_agent import NStepQAgentParameters
from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.agents.nec_agent import NECAgentParameters
from rl_coach.agents.pal_agent import PALAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.ppo_agent import PPOAgentParameters
from rl_coach.agents.pqn_agent import PQNAgentParameters
from rl_coach.agents.qmix_agent import QMIXAgentParameters
from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgentParameters
from rl_coach.agents.rainbow_dqn_agent import RainbowDQNAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.agents.trpo_agent import TRPOAgentParameters
from rl_coach.agents.vdn_agent import VDNAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.architectures.layers import Dense, LayerNorm
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.architectures.world_model import ModelSize
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.ucb import UCBParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from tests.zoo.continuous import CONTINUOUS_PROBLEMS
from tests.zoo.environments import Bandit, SmallEnvironment, Target


def shrink(
    parameters: AgentParameters,
    learning_rate: float = 0.01,
    embedders: dict[str, list[Any]] | None = None,
    middleware: Any = MiddlewareScheme.Empty,
) -> AgentParameters:
    """Small networks that learn fast.

    :param embedders: the layers for each observation; 16 units for the only one if it is None
    :param middleware: the layers behind them, in networks that have any there
    """
    for network in parameters.network_wrappers.values():
        network.learning_rate = learning_rate
        network.batch_size = 16
        activation = next(iter(network.input_embedders_parameters.values())).activation_function
        network.input_embedders_parameters = {
            name: InputEmbedderParameters(activation_function=activation, scheme=layers)
            for name, layers in (embedders or {"observation": [Dense(16)]}).items()
        }
        if network.middleware_parameters.scheme != MiddlewareScheme.Empty:
            network.middleware_parameters = FCMiddlewareParameters(scheme=middleware)
    return parameters


def with_normalized_observations(parameters: AgentParameters) -> AgentParameters:
    """The parameters, with running statistics between memory and networks."""
    parameters.pre_network_filter = InputFilter()
    parameters.pre_network_filter.add_observation_filter(
        "observation", "normalize", ObservationNormalizationFilter(name="normalize")
    )
    return parameters


def with_statistics(parameters: AgentParameters) -> AgentParameters:
    """The same, with statistics that learning updates."""
    parameters.algorithm.update_pre_network_filters_state_on_train = True
    return with_normalized_observations(parameters)


def dqn(parameters: AgentParameters | None = None) -> AgentParameters:
    agent = shrink(DQNAgentParameters() if parameters is None else parameters)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.algorithm.discount = 0.9
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    agent.exploration.evaluation_epsilon = 0.0
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


def recurrent_dqn(parameters: AgentParameters | None = None, cells: int = 8) -> AgentParameters:
    agent = DQNAgentParameters() if parameters is None else parameters
    agent.memory = EpisodicExperienceReplayParameters()
    agent = dqn(agent)
    agent.network_wrappers["main"].middleware_parameters = _with_lstm(cells)
    return agent


def _with_lstm(cells: int) -> LSTMMiddlewareParameters:
    middleware = LSTMMiddlewareParameters(number_of_lstm_cells=cells, scheme=MiddlewareScheme.Empty)
    middleware.sequence_length, middleware.burn_in = 4, 2
    return middleware


def curious(agent: AgentParameters, units: int = 16, **settings: float) -> AgentParameters:
    """The agent with intrinsic rewards. :param settings: of ``RNDParameters``"""
    agent.curiosity = RNDParameters(**settings)
    agent.curiosity.network.learning_rate = 0.01
    agent.curiosity.network.input_embedders_parameters["observation"].scheme = [Dense(units)]
    return agent


def ddqn() -> AgentParameters:
    return dqn(DDQNAgentParameters())


def dueling() -> AgentParameters:
    agent = dqn()
    agent.network_wrappers["main"].heads_parameters = [DuelingQHeadParameters()]
    agent.network_wrappers["main"].learning_rate = 0.001
    return agent


def prioritized() -> AgentParameters:
    agent = ddqn()
    agent.memory = PrioritizedExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, 512)
    return agent


def apex() -> AgentParameters:
    agent = dqn(ApexDQNAgentParameters())
    agent.network_wrappers["main"].learning_rate = 0.001
    agent.memory.max_size = (MemoryGranularity.Transitions, 512)
    return agent


def mixed_monte_carlo() -> AgentParameters:
    agent = dqn(MixedMonteCarloAgentParameters())
    agent.algorithm.discount = 0.5
    return agent


def persistent_advantage_learning() -> AgentParameters:
    agent = dqn(PALAgentParameters())
    agent.algorithm.discount = 0.5
    agent.algorithm.persistent_advantage_learning = True
    return agent


def munchausen() -> AgentParameters:
    return dqn(MunchausenDQNAgentParameters())


def direct_future_prediction() -> AgentParameters:
    agent = DFPAgentParameters()
    main, algorithm = agent.network_wrappers["main"], agent.algorithm
    for embedder in main.input_embedders_parameters.values():
        embedder.scheme = [Dense(16)]
    main.batch_size, main.learning_rate = 16, 0.003
    algorithm.use_accumulated_reward_as_measurement = True
    algorithm.goal_vector, algorithm.num_predicted_steps_ahead = [1.0], 3
    algorithm.handling_targets_after_episode_end = HandlingTargetsAfterEpisodeEnd.LastStep
    algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    return agent


def decision_transformer() -> AgentParameters:
    agent = DecisionTransformerAgentParameters()
    network, algorithm = agent.network_wrappers["main"], agent.algorithm
    network.middleware_parameters.width, network.middleware_parameters.blocks = 8, 1
    network.learning_rate, network.batch_size = 0.01, 8
    algorithm.context_length, algorithm.return_scale, algorithm.max_timestep = 3, 2.0, 6
    return agent


def categorical() -> AgentParameters:
    agent = dqn(CategoricalDQNAgentParameters())
    agent.algorithm.v_min, agent.algorithm.v_max, agent.algorithm.atoms = 0.0, 10.0, 21
    return agent


def quantile_regression() -> AgentParameters:
    agent = dqn(QuantileRegressionDQNAgentParameters())
    agent.algorithm.atoms = 8
    return agent


def rainbow() -> AgentParameters:
    agent = shrink(RainbowDQNAgentParameters(), 0.002)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.algorithm.discount = 0.5
    agent.algorithm.v_min, agent.algorithm.v_max, agent.algorithm.atoms = 0.0, 3.0, 13
    agent.memory.max_size = (MemoryGranularity.Transitions, 512)
    return agent


def n_step_q() -> AgentParameters:
    agent = shrink(NStepQAgentParameters(), 0.02)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.algorithm.discount = 0.5
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    agent.exploration.evaluation_epsilon = 0.0
    return agent


def pqn() -> AgentParameters:
    agent = shrink(PQNAgentParameters(), 0.02, {"observation": [Dense(16), LayerNorm()]})
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.discount = 0.5
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    return agent


def bootstrapped() -> AgentParameters:
    agent = dqn(BootstrappedDQNAgentParameters())
    agent.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 3
    agent.exploration.architecture_num_q_heads = 3
    agent.exploration.bootstrapped_data_sharing_probability = 0.7
    return agent


def upper_confidence_bounds() -> AgentParameters:
    parameters = BootstrappedDQNAgentParameters()
    parameters.exploration = UCBParameters()
    agent = dqn(parameters)
    agent.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 3
    agent.exploration.architecture_num_q_heads = 3
    return agent


def neural_episodic_control() -> AgentParameters:
    agent = shrink(NECAgentParameters(), 0.003)
    # problems of two states never have more entries for an action, and nothing is learned before there are so many
    agent.algorithm.dnd_size, agent.algorithm.number_of_knn, agent.algorithm.n_step = 150, 2, 4
    agent.algorithm.discount = 0.5
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    agent.exploration.evaluation_epsilon = 0.0
    return agent


def normalized_advantages() -> AgentParameters:
    agent = shrink(NAFAgentParameters(), 0.01)
    agent.algorithm.discount = 0.3
    agent.algorithm.num_consecutive_training_steps = 2
    agent.algorithm.rate_for_copying_weights_to_target = 0.1
    agent.exploration = AdditiveNoiseParameters()
    return agent


def policy_gradients() -> AgentParameters:
    agent = shrink(PolicyGradientsAgentParameters(), 0.05)
    agent.algorithm.apply_gradients_every_x_episodes = 2
    return agent


def actor_critic() -> AgentParameters:
    agent = shrink(ActorCriticAgentParameters(), 0.03)
    agent.algorithm.apply_gradients_every_x_episodes = 1
    agent.algorithm.discount = 0.5
    return agent


def impala() -> AgentParameters:
    agent = shrink(IMPALAAgentParameters(), 0.03)
    agent.algorithm.discount = 0.5
    agent.algorithm.segments_per_update = 2
    return agent


def appo() -> AgentParameters:
    agent = shrink(APPOAgentParameters(), 0.01)
    agent.algorithm.discount = 0.5
    agent.algorithm.segments_per_update = 2
    return agent


def ars() -> AgentParameters:
    agent = ARSAgentParameters()
    agent.algorithm.num_directions, agent.algorithm.noise = 2, 0.3
    return agent


def clipped_ppo() -> AgentParameters:
    agent = shrink(ClippedPPOAgentParameters(), 0.01)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.optimization_epochs = 4
    agent.algorithm.discount = 0.5
    return agent


def recurrent_ppo(cells: int = 8) -> AgentParameters:
    agent = clipped_ppo()
    network = agent.network_wrappers["main"]
    network.use_separate_networks_per_head = False
    network.middleware_parameters = _with_lstm(cells)
    return agent


def recurrent_penalized_ppo(cells: int = 8) -> AgentParameters:
    agent = ppo()
    agent.network_wrappers["actor"].middleware_parameters = _with_lstm(cells)
    return agent


def ppo() -> AgentParameters:
    agent = shrink(PPOAgentParameters())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    return agent


def trpo() -> AgentParameters:
    agent = shrink(TRPOAgentParameters())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.discount = 0.5
    agent.algorithm.max_kl_divergence = 0.1
    return agent


def mappo() -> AgentParameters:
    agent = MAPPOAgentParameters()
    for name, observation in (("actor", "observation"), ("critic", "state")):
        _shrink_network(agent, name, observation)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(24)
    agent.algorithm.optimization_epochs = 2
    return agent


def vdn(agent: AgentParameters | None = None) -> AgentParameters:
    agent = VDNAgentParameters() if agent is None else agent
    _shrink_network(agent, "main", "observation")
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(10)
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


def qmix() -> AgentParameters:
    return vdn(QMIXAgentParameters())


def _shrink_network(agent: AgentParameters, name: str, observation: str) -> None:
    network = agent.network_wrappers[name]
    network.batch_size = 16
    network.input_embedders_parameters[observation].scheme = [Dense(16)]
    network.middleware_parameters.scheme = MiddlewareScheme.Empty


def acer() -> AgentParameters:
    return shrink(ACERAgentParameters())


def soft_actor_critic() -> AgentParameters:
    agent = shrink(SoftActorCriticAgentParameters(), 0.01)
    agent.network_wrappers["q"].heads_parameters[0].network_layers_sizes = (16,)
    agent.algorithm.discount = 0.3
    agent.algorithm.rate_for_copying_weights_to_target = 0.1
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


DREAMER_SIZE = ModelSize(deter=16, hidden=8, classes=2, units=8, depth=2)


def dreamer() -> AgentParameters:
    agent = DreamerV3AgentParameters()
    agent.algorithm.size = DREAMER_SIZE
    agent.algorithm.imagination_horizon = 3
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    main = agent.network_wrappers["main"]
    main.middleware_parameters.sequence_length = 4
    main.batch_size = 16
    main.learning_rate = 0.01
    return agent


# the agent, the problem, the steps that it learns in, and the return that it then reaches
PROBLEMS: dict[str, tuple[Callable[[], AgentParameters], type[SmallEnvironment], int, float]] = {
    "dqn": (dqn, Bandit, 400, 9.5),
    "ddqn": (ddqn, Bandit, 400, 9.5),
    "dueling": (dueling, Bandit, 400, 9.5),
    "prioritized": (prioritized, Bandit, 400, 9.5),
    "apex": (apex, Bandit, 400, 9.5),
    "mixed_monte_carlo": (mixed_monte_carlo, Bandit, 400, 9.5),
    "persistent_advantage_learning": (persistent_advantage_learning, Bandit, 400, 9.5),
    "munchausen": (munchausen, Bandit, 400, 9.5),
    "direct_future_prediction": (direct_future_prediction, Bandit, 600, 9.5),
    "categorical": (categorical, Bandit, 400, 9.5),
    "quantile_regression": (quantile_regression, Bandit, 400, 9.5),
    "rainbow": (rainbow, Bandit, 400, 9.5),
    "n_step_q": (n_step_q, Bandit, 600, 9.5),
    "pqn": (pqn, Bandit, 640, 9.5),
    "bootstrapped": (bootstrapped, Bandit, 400, 9.5),
    "upper_confidence_bounds": (upper_confidence_bounds, Bandit, 400, 9.5),
    "neural_episodic_control": (neural_episodic_control, Bandit, 400, 9.5),
    "normalized_advantages": (normalized_advantages, Target, 400, -2.5),
    "policy_gradients": (policy_gradients, Bandit, 600, 9.5),
    "actor_critic": (actor_critic, Bandit, 600, 9.5),
    "impala": (impala, Bandit, 600, 9.5),
    "appo": (appo, Bandit, 600, 9.5),
    "clipped_ppo": (clipped_ppo, Bandit, 640, 9.5),
    "trpo": (trpo, Bandit, 640, 9.5),
    "soft_actor_critic": (soft_actor_critic, Target, 400, -2.5),
    **CONTINUOUS_PROBLEMS,
}
