"""Parameters of agents for continuous actions, on networks so small that they learn the zoo's problems in seconds."""

from __future__ import annotations

from typing import Any, Callable

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.agents.drq_agent import ENCODER, DrQv2AgentParameters, trunk
from rl_coach.agents.fast_td3_agent import FastTD3AgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.agents.td3_bc_agent import TD3BCAgentParameters
from rl_coach.agents.wolpertinger_agent import WolpertingerAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.hypersphere import LerpBlock, SphereEmbedding, SphereOutput
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoiseParameters
from rl_coach.filters.action import BoxDiscretization
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.observation_squeeze_filter import ObservationSqueezeFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.filters.reward.reward_return_scaling_filter import RewardReturnScalingFilter
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.schedules import ConstantSchedule
from tests.zoo.environments import SmallEnvironment, Target


def deterministic(agent: AgentParameters) -> AgentParameters:
    """An agent with an actor and critics of few units."""
    for network in agent.network_wrappers.values():
        network.learning_rate, network.batch_size = 0.01, 16
        network.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=[Dense(16)])}
        network.middleware_parameters.scheme = [Dense(16)]
    critic = agent.network_wrappers["critic"]
    critic.input_embedders_parameters["action"] = InputEmbedderParameters(scheme=EmbedderScheme.Empty)
    agent.algorithm.discount = 0.3
    agent.algorithm.rate_for_copying_weights_to_target = 0.1
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


def ddpg() -> AgentParameters:
    agent = deterministic(DDPGAgentParameters())
    agent.exploration.sigma, agent.exploration.dt = 1.0, 1.0
    return agent


def td3() -> AgentParameters:
    agent = deterministic(TD3AgentParameters())
    agent.exploration.noise_schedule = ConstantSchedule(0.5)
    return agent


def fast_td3() -> AgentParameters:
    agent = deterministic(FastTD3AgentParameters())
    del agent.network_wrappers["critic"].input_embedders_parameters["action"]
    agent.network_wrappers["critic"].heads_parameters[0].network_layers_sizes = (16,)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    agent.algorithm.v_min, agent.algorithm.v_max, agent.algorithm.atoms = -8.0, 0.0, 33
    return agent


def exploring(make: Callable[[], AgentParameters], seen: str = "observation") -> AgentParameters:
    """A TD3 agent that explores without reward. :param seen: the observation that its policy sees"""
    agent = make()
    novelty = {name: agent.network_wrappers.pop(name) for name in ("predictor", "constant")}
    deterministic(agent)
    for name in ("actor", "critic"):
        embedders = agent.network_wrappers[name].input_embedders_parameters
        embedders[seen] = embedders.pop("observation")
        embedders[seen].scheme = [Dense(16)]
    for network in novelty.values():
        network.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=EmbedderScheme.Empty)}
    agent.network_wrappers.update(novelty)
    algorithm = agent.algorithm
    algorithm.env_obs_key, algorithm.agent_obs_key = "observation", seen
    algorithm.rnd_sample_size, algorithm.rnd_batch_size, algorithm.rnd_optimization_epochs = 40, 20, 4
    return agent


def wolpertinger(k: int = 3) -> AgentParameters:
    agent = deterministic(WolpertingerAgentParameters())
    agent.algorithm.k = k
    agent.exploration.sigma, agent.exploration.dt = 0.5, 1.0
    agent.output_filter = OutputFilter()
    agent.output_filter.add_action_filter("discretization", BoxDiscretization(61))
    return agent


def maximum_entropy(**of_the_head: Any) -> AgentParameters:
    """Soft actor-critic with a learned temperature. :param of_the_head: settings of the critics' head"""
    agent = SoftActorCriticAgentParameters(use_value_network=False)
    agent.network_wrappers["temperature"].learning_rate = 0.01
    for name in ("policy", "q"):
        network = agent.network_wrappers[name]
        network.learning_rate, network.batch_size = 0.01, 16
    policy = agent.network_wrappers["policy"]
    policy.input_embedders_parameters["observation"].scheme = [Dense(16)]
    policy.middleware_parameters.scheme = MiddlewareScheme.Empty
    head = agent.network_wrappers["q"].heads_parameters[0]
    head.network_layers_sizes = (16,)
    for name, value in of_the_head.items():
        setattr(head, name, value)
    agent.algorithm.discount = 0.3
    agent.algorithm.rate_for_copying_weights_to_target = 0.1
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


def redq() -> AgentParameters:
    agent = maximum_entropy(num_critics=4)
    agent.algorithm.num_consecutive_training_steps = 2
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    agent.algorithm.update_policy_every_x_training_steps = 2
    agent.algorithm.num_critics_in_target = 2
    agent.algorithm.policy_uses_mean_of_critics = True
    return agent


def droq() -> AgentParameters:
    agent = redq()
    head = agent.network_wrappers["q"].heads_parameters[0]
    head.num_critics, head.dropout_rate, head.layernorm = 2, 0.01, True
    return agent


def tqc() -> AgentParameters:
    agent = maximum_entropy(num_critics=3, num_quantiles=5)
    agent.algorithm.top_quantiles_to_drop = 1
    return agent


def crossq() -> AgentParameters:
    agent = maximum_entropy(batchnorm=True)
    agent.network_wrappers["q"].create_target_network = False
    return agent


def simba_v2(units: int = 16) -> AgentParameters:
    agent = maximum_entropy(num_atoms=31, scheme=[SphereEmbedding(units), LerpBlock()], dense_layer=SphereOutput)
    policy = agent.network_wrappers["policy"]
    policy.input_embedders_parameters["observation"].scheme = EmbedderScheme.Empty
    policy.middleware_parameters.scheme = [SphereEmbedding(units), LerpBlock()]
    policy.middleware_parameters.activation_function = "none"
    policy.heads_parameters[0].dense_layer = SphereOutput
    agent.input_filter = InputFilter()
    agent.input_filter.add_reward_filter("scale", RewardReturnScalingFilter(discount=agent.algorithm.discount))
    return agent


def drq() -> AgentParameters:
    """DrQ-v2 for small pictures in stacks."""
    agent = DrQv2AgentParameters()
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate = 8, 0.001
        embedder = network.input_embedders_parameters["observation"]
        rest = embedder.scheme[len(ENCODER) : -len(trunk(1))]
        embedder.scheme = [Conv2d(4, 3, 2), Conv2d(4, 3, 2), *rest, *trunk(8)]
        network.middleware_parameters.scheme = [Dense(16)]
    agent.algorithm.image_shift = 2
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    agent.input_filter = InputFilter()
    agent.input_filter.add_observation_filter("observation", "squeeze", ObservationSqueezeFilter())
    agent.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(3))
    return agent


def with_state_dependent_noise(agent: AgentParameters, scale: float = 0.3) -> AgentParameters:
    agent.exploration = StateDependentNoiseParameters(agent)
    agent.exploration.scale = scale
    return agent


# as ``PROBLEMS``
CONTINUOUS_PROBLEMS: dict[str, tuple[Callable[[], AgentParameters], type[SmallEnvironment], int, float]] = {
    "ddpg": (ddpg, Target, 400, -2.5),
    "td3": (td3, Target, 400, -2.5),
    "fast_td3": (fast_td3, Target, 400, -2.5),
    "td3 with cloning": (lambda: deterministic(TD3BCAgentParameters()), Target, 400, -2.5),
    "td3 with gSDE": (lambda: with_state_dependent_noise(td3()), Target, 400, -2.5),
    "wolpertinger": (wolpertinger, Target, 400, -2.5),
    "maximum_entropy": (maximum_entropy, Target, 400, -2.5),
    "maximum_entropy with gSDE": (lambda: with_state_dependent_noise(maximum_entropy()), Target, 400, -2.5),
    "redq": (redq, Target, 400, -2.5),
    "droq": (droq, Target, 400, -2.5),
    "tqc": (tqc, Target, 400, -2.5),
    "crossq": (crossq, Target, 400, -2.5),
    "simba_v2": (simba_v2, Target, 400, -2.5),
}
