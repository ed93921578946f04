"""MAPPO, PPO for a team with a central critic (Yu et al. 2022, "The surprising effectiveness of PPO in cooperative
multi-agent games")."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent, ClippedPPOAgentParameters, ClippedPPOAlgorithmParameters
from rl_coach.agents.core.requirements import TEAM_POLICY, NetworkRequirement, V
from rl_coach.agents.rules.mappo import mappo_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters, TeamEmbedderParameters
from rl_coach.architectures.head_parameters import TeamPolicyHeadParameters, VHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.utilities.requirements import FLAG


class MAPPOActorNetworkParameters(FullyConnectedParameters):
    """The policy network that all players share. Its input is the observations of one player."""

    def __init__(self) -> None:
        super().__init__(TeamPolicyHeadParameters(), activation_function="tanh")
        self.input_embedders_parameters = {"observation": TeamEmbedderParameters("tanh")}
        self.batch_size = 512


class MAPPOCriticNetworkParameters(FullyConnectedParameters):
    """The critic network: V(s) of the central state."""

    def __init__(self) -> None:
        super().__init__(VHeadParameters(), activation_function="tanh")
        self.input_embedders_parameters = {"state": InputEmbedderParameters("tanh")}
        self.batch_size = 512


class MAPPOAlgorithmParameters(ClippedPPOAlgorithmParameters):
    """Hyperparameters of MAPPO.

    :ivar tells_players_apart: True: add each player's number to its observations, so that players with one policy can
        act in different ways
    """

    constraints = {"tells_players_apart": FLAG}

    def __init__(self) -> None:
        super().__init__()
        self.tells_players_apart = True


class MAPPOAgentParameters(ClippedPPOAgentParameters):
    """MAPPO with one policy for all players."""

    path = "rl_coach.agents.mappo_agent:MAPPOAgent"
    why_not_in_own_loop = (
        "it plays several players; use it in a MultiAgentGraphManager, as the preset Spread_MAPPO does"
    )
    algorithm: MAPPOAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = MAPPOAlgorithmParameters()
        self.exploration = CategoricalParameters()
        self.network_wrappers = {"actor": MAPPOActorNetworkParameters(), "critic": MAPPOCriticNetworkParameters()}


class MAPPOAgent(ClippedPPOAgent):
    """PPO for a team of players with one policy and a critic that sees the central state."""

    network_requirements = {"actor": NetworkRequirement((TEAM_POLICY,)), "critic": NetworkRequirement((V,))}
    batch_network = "actor"
    acting_networks = ("actor",)
    policy_network, value_network = "actor", "critic"
    learns_from_stored_states = False
    acts_in_parts = False
    plays_team = True

    def make_update_rule(self) -> UpdateRule:
        algorithm, networks = self.ap.algorithm, self.ap.network_wrappers
        policy, value = networks["actor"].heads_parameters[0], networks["critic"].heads_parameters[0]
        return mappo_rule(
            algorithm.clip_likelihood_ratio_using_epsilon, algorithm.beta_entropy, policy.loss_weight,
            value.loss_weight, self.spaces.action_mask_name, algorithm.clip_value_using_epsilon,
        )  # fmt: skip

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        columns = super().behaviour_columns(values, log_probs, policy)
        del columns["extra/behaviour_log_probs"]  # these are of joint actions, but the rule needs each player's
        return {**columns, "extra/behaviour_probabilities": policy[0]}
