"""Explores by noise in the weights of the networks."""

from __future__ import annotations

from typing import Any

from rl_coach.base_parameters import AgentParameters, NetworkParameters
from rl_coach.exploration_policies.exploration_policy import ExplorationParameters
from rl_coach.exploration_policies.greedy import Greedy
from rl_coach.spaces import ActionSpace
from rl_coach.utils import CoachError, short_dynamic_import


class ParameterNoiseParameters(ExplorationParameters):
    """Noisy networks. Each update draws new noise, so the update rule of the agent must not use the probabilities of
    the policy that acted.

    :param agent_params: the agent's parameters; the networks must be set already
    :raises CoachError: if the algorithm has ``supports_parameter_noise = False``
    :ivar network_params: the networks that get noisy dense layers, by name
    """

    path = "rl_coach.exploration_policies.parameter_noise:ParameterNoise"

    def __init__(self, agent_params: AgentParameters):
        super().__init__()
        if not agent_params.algorithm.supports_parameter_noise:
            raise CoachError(
                f"ParameterNoiseParameters does not work with {type(agent_params).__name__}: choose DQN or a variant, "
                f"DDPG or TD3, or another exploration"
            )
        self.network_params = agent_params.network_wrappers


class ParameterNoise(Greedy):
    """Takes the best action of networks with learned noise in their dense layers (Fortunato et al. 2018, "Noisy
    Networks for Exploration").

    The constructor sets the dense layers in the networks' parameters, so the policy must be built before the networks.

    :param network_params: the parameters of the networks, by name
    :param action_space: discrete or a box
    """

    def __init__(self, network_params: dict[str, NetworkParameters], action_space: ActionSpace):
        super().__init__(action_space)
        self.network_params = network_params
        noisy_dense = short_dynamic_import("rl_coach.architectures.layers:NoisyNetDense")
        for network in self.network_params.values():
            parts: list[Any] = [
                *network.input_embedders_parameters.values(),
                network.middleware_parameters,
                *network.heads_parameters,
            ]
            for part in parts:
                if part is not None:
                    part.dense_layer = noisy_dense
