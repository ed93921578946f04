"""VDN, value decomposition networks: the value of a team is the sum of its players' values (Sunehag et al. 2018,
"Value-decomposition networks for cooperative multi-agent learning")."""

from __future__ import annotations

from rl_coach.agents.core.requirements import TEAM_Q, NetworkRequirement
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.dqn_agent import DQNAgent, DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.agents.rules.value_decomposition import value_decomposition_rule
from rl_coach.architectures.embedder_parameters import TeamEmbedderParameters
from rl_coach.architectures.head_parameters import TeamQHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.exploration_policies.e_greedy import EGreedyOfPartsParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.utilities.requirements import FLAG


class VDNNetworkParameters(FullyConnectedParameters):
    """The Q-network that all players share. Its input is the observations of one player."""

    def __init__(self) -> None:
        super().__init__(TeamQHeadParameters())
        self.input_embedders_parameters = {"observation": TeamEmbedderParameters()}
        self.create_target_network = True
        self.clip_gradients = 10.0


class VDNAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of VDN and QMIX.

    :ivar tells_players_apart: True: add each player's number to its observations, so that players with one network can
        act in different ways
    """

    constraints = {"tells_players_apart": FLAG}

    def __init__(self) -> None:
        super().__init__()
        self.tells_players_apart = True
        self.supports_parameter_noise = False


class VDNAgentParameters(DQNAgentParameters):
    """VDN with epsilon-greedy exploration of each player and uniform replay of joint transitions."""

    path = "rl_coach.agents.vdn_agent:VDNAgent"
    why_not_in_own_loop = "it plays several players; use it in a MultiAgentGraphManager, as the preset Spread_VDN does"
    algorithm: VDNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = VDNAlgorithmParameters()
        self.network_wrappers = {"main": VDNNetworkParameters()}
        self.exploration = EGreedyOfPartsParameters()
        self.exploration.epsilon_schedule = LinearSchedule(1.0, 0.05, 50000)
        self.exploration.evaluation_epsilon = 0.0


class VDNAgent(DQNAgent):
    """Double DQN for a team. The team's value is the sum of its players' values."""

    network_requirements = {"main": NetworkRequirement((TEAM_Q,), has_target=True)}
    bootstrap_actions = (greedy_by_online, True)
    acting_networks = ("main",)
    learns_from_stored_states = False
    plays_team = True

    def make_update_rule(self) -> UpdateRule:
        is_huber, mask_name, _ = self.loss_settings
        networks = self.ap.network_wrappers
        weights = {name: networks[name].heads_parameters[0].loss_weight for name in self.network_requirements}
        return value_decomposition_rule(is_huber, str(mask_name), *self.bootstrap_actions, weights)
