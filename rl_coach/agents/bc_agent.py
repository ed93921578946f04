"""Behavioural cloning: supervised learning of demonstrated actions."""

from __future__ import annotations

from rl_coach.agents.imitation_agent import ImitationAgent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import PolicyHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, MiddlewareScheme, NetworkParameters
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters


class BCAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of behavioural cloning. ``num_consecutive_playing_steps`` of ``EnvironmentSteps(0)`` learns from
    demonstrations alone; otherwise the agent also plays, and learns from its own actions too."""


class BCNetworkParameters(NetworkParameters):
    """A policy network."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters()}
        self.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Medium)
        self.heads_parameters = [PolicyHeadParameters()]


class BCAgentParameters(AgentParameters):
    """Behavioural cloning of what ``memory.load_memory_from_file_path`` names, and epsilon-greedy choice of the most
    probable action."""

    path = "rl_coach.agents.bc_agent:BCAgent"

    def __init__(self) -> None:
        super().__init__(
            algorithm=BCAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=ExperienceReplayParameters(),
            networks={"main": BCNetworkParameters()},
        )


class BCAgent(ImitationAgent):
    """See the module."""
