"""QMIX: the value of a team is a monotonic function of its players' values, with weights from the state (Rashid et al.
2018, "QMIX: monotonic value function factorisation for deep multi-agent reinforcement learning")."""

from __future__ import annotations

from rl_coach.agents.core.requirements import MIXING, NetworkRequirement
from rl_coach.agents.rules.value_decomposition import MIXER
from rl_coach.agents.vdn_agent import VDNAgent, VDNAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import MixingHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.base_parameters import EmbedderScheme, MiddlewareScheme


class QMIXMixerNetworkParameters(FullyConnectedParameters):
    """The hypernetwork: linear functions of the central state give the weights of the mixing network."""

    def __init__(self) -> None:
        super().__init__(MixingHeadParameters())
        self.input_embedders_parameters = {"state": InputEmbedderParameters(scheme=EmbedderScheme.Empty)}
        self.middleware_parameters.scheme = MiddlewareScheme.Empty
        self.create_target_network = True
        self.clip_gradients = 10.0


class QMIXAgentParameters(VDNAgentParameters):
    """QMIX with epsilon-greedy exploration of each player and uniform replay of joint transitions."""

    path = "rl_coach.agents.qmix_agent:QMIXAgent"
    why_not_in_own_loop = "it plays several players; use it in a MultiAgentGraphManager, as the preset Spread_QMIX does"

    def __init__(self) -> None:
        super().__init__()
        self.network_wrappers[MIXER] = QMIXMixerNetworkParameters()


class QMIXAgent(VDNAgent):
    """Q-learning for a team. A mixing network computes the team's value from the players' values."""

    network_requirements = {
        **VDNAgent.network_requirements, MIXER: NetworkRequirement((MIXING,), has_target=True),
    }  # fmt: skip
