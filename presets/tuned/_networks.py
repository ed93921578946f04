"""Settings that several presets use: networks, replay buffers and noise as in other libraries, the settings of all
MuJoCo presets, and the small model of DreamerV3.
"""

from __future__ import annotations

import math
from typing import Any

from rl_coach.architectures.hypersphere import LerpBlock, SphereEmbedding, SphereOutput
from rl_coach.architectures.initializers import Orthogonal
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.world_model import ModelSize
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, NetworkParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule, LinearSchedule


def two_layers(network: NetworkParameters, units: tuple[int, int], activation: str = "relu") -> None:
    """Make a network of two layers: one in the embedder of each observation, one in the middleware."""
    for embedder in network.input_embedders_parameters.values():
        embedder.scheme, embedder.activation_function = [Dense(units[0])], activation
    network.middleware_parameters.scheme = [Dense(units[1])]
    network.middleware_parameters.activation_function = activation


def as_pytorch(network: NetworkParameters, learning_rate: Any, batch_size: int) -> None:
    """Use PyTorch's defaults for Adam and the initial weights."""
    network.learning_rate, network.batch_size = learning_rate, batch_size
    network.adam_optimizer_beta2, network.optimizer_epsilon = 0.999, 1e-8
    network.initial_weights = "kaiming_uniform"


def as_dqn(network: NetworkParameters, learning_rate: Any, batch_size: int) -> None:
    """Set two layers of 256 units, Huber's loss and gradients of norm 10 at most. Otherwise use PyTorch's defaults."""
    two_layers(network, (256, 256))
    as_pytorch(network, learning_rate, batch_size)
    network.replace_mse_with_huber_loss, network.clip_gradients = True, 10.0


def as_small_dreamer(agent: AgentParameters) -> None:
    """Set a model that is smaller than the smallest of the paper, 16 sequences of 16 steps, and an update after every 4
    steps."""
    agent.algorithm.size = ModelSize(deter=128, hidden=64, classes=4, units=64)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(4)
    network = agent.network_wrappers["main"]
    network.middleware_parameters.sequence_length, network.batch_size = 16, 256
    network.learning_rate = LinearSchedule(0.0, 0.001, 100)


def value_and_policy(network: NetworkParameters, learning_rate: Any, batch_size: int = 64) -> None:
    """Set two towers of 64 x 64 tanh units with orthogonal weights, and gradients of norm 0.5 at most."""
    two_layers(network, (64, 64), "tanh")
    network.use_separate_networks_per_head = True
    as_ppo(network, learning_rate, batch_size)


def as_ppo(network: NetworkParameters, learning_rate: Any, batch_size: int) -> None:
    """Set Adam, orthogonal weights, gradients of norm 0.5 at most, and the weight 0.5 for the value's loss."""
    network.learning_rate, network.batch_size = learning_rate, batch_size
    network.adam_optimizer_beta2, network.optimizer_epsilon = 0.999, 1e-5
    network.clip_gradients, network.initial_weights = 0.5, Orthogonal(gain=math.sqrt(2))
    value, policy = network.heads_parameters
    value.loss_weight, value.initial_weights = 0.5, Orthogonal(gain=1.0)
    policy.initial_weights = Orthogonal(gain=0.01)


def critic_and_actor(agent: AgentParameters, learning_rate: float, batch_size: int) -> None:
    """Set two networks of 64 x 64 tanh units with orthogonal weights. Adam trains the critic."""
    critic, actor = agent.network_wrappers["critic"], agent.network_wrappers["actor"]
    for network, gain in ((critic, 1.0), (actor, 0.01)):
        two_layers(network, (64, 64), "tanh")
        network.initial_weights = Orthogonal(gain=math.sqrt(2))
        network.heads_parameters[0].initial_weights = Orthogonal(gain=gain)
    critic.learning_rate, critic.batch_size = learning_rate, batch_size
    critic.adam_optimizer_beta2, critic.optimizer_epsilon = 0.999, 1e-5


def as_soft_actor_critic(agent: AgentParameters, learning_rate: float) -> None:
    """Set a policy and critics of 256 x 256 units with PyTorch's defaults, and replay of a million steps."""
    two_layers(agent.network_wrappers["policy"], (256, 256))
    for name in ("policy", "q"):
        as_pytorch(agent.network_wrappers[name], learning_rate, batch_size=256)
    agent.network_wrappers["temperature"].learning_rate = learning_rate
    agent.memory.max_size = (MemoryGranularity.Transitions, 1_000_000)


def as_deterministic_policy(agent: AgentParameters, replay_size: int) -> None:
    """Set an actor and a critic of 400 x 300 units with PyTorch's defaults, a replay buffer and Gaussian noise."""
    two_layers(agent.network_wrappers["actor"], (400, 300))
    two_layers(agent.network_wrappers["critic"], (400, 300))
    agent.network_wrappers["critic"].input_embedders_parameters["action"].scheme = EmbedderScheme.Empty
    for name in ("actor", "critic"):
        as_pytorch(agent.network_wrappers[name], learning_rate=0.001, batch_size=256)
    agent.memory = ExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, replay_size)
    agent.algorithm.rate_for_copying_weights_to_target = 0.005
    agent.exploration = AdditiveNoiseParameters()
    agent.exploration.noise_schedule = ConstantSchedule(0.05)  # of the range: 0.1 if actions are from -1 to 1
    agent.exploration.evaluation_noise = 0.0


def as_td3_of_mujoco(agent: AgentParameters) -> None:
    """Set the published settings of TD3, with one update in each step, for actions from -1 to 1."""
    as_deterministic_policy(agent, replay_size=1_000_000)
    agent.algorithm.discount = 0.99
    agent.algorithm.policy_noise, agent.algorithm.noise_clipping = 0.2, 0.5
    agent.algorithm.act_for_full_episodes = False
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)


def a_million_steps() -> ScheduleParameters:
    """A schedule of a million steps of the environment with twenty evaluations. The first 10,000 steps are random."""
    schedule = ScheduleParameters()
    schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(10_000), EnvironmentSteps(990_000)
    schedule.steps_between_evaluation_periods = EnvironmentSteps(49_500)
    schedule.evaluation_steps = EnvironmentEpisodes(5)
    return schedule


def on_spheres(agent: AgentParameters, policy_units: int, critic_units: int, depth: int) -> None:
    """Set SimbaV2's networks for soft actor-critic. The critics predict distributions over 101 returns from -5 to 5.

    :param depth: number of blocks in each network
    """
    policy, head = agent.network_wrappers["policy"], agent.network_wrappers["q"].heads_parameters[0]
    policy.input_embedders_parameters["observation"].scheme = EmbedderScheme.Empty
    policy.middleware_parameters.scheme = [SphereEmbedding(policy_units), *[LerpBlock(depth)] * depth]
    policy.middleware_parameters.activation_function = "none"
    policy.heads_parameters[0].dense_layer = SphereOutput
    head.scheme, head.dense_layer = [SphereEmbedding(critic_units), *[LerpBlock(depth)] * depth], SphereOutput
    head.num_atoms, head.v_min, head.v_max = 101, -5.0, 5.0


def normalize_observations(agent: AgentParameters) -> None:
    """Normalise the observations that the networks see, by their mean and standard deviation."""
    agent.pre_network_filter = InputFilter()
    agent.pre_network_filter.add_observation_filter(
        "observation", "normalize_observation", ObservationNormalizationFilter(name="normalize_observation")
    )
