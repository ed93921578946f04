"""Behavioural cloning: supervised learning of demonstrated actions."""

from __future__ import annotations

from rl_coach.agents.imitation_agent import ImitationAgent
from rl_coach.architectures.head_parameters import PolicyHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters


class BCAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of behavioural cloning. With ``num_consecutive_playing_steps`` of ``EnvironmentSteps(0)``, the
    agent learns only from demonstrations. Otherwise the agent also plays, and learns from its own actions too.
    """


class BCNetworkParameters(FullyConnectedParameters):
    """A policy network."""

    def __init__(self) -> None:
        super().__init__(PolicyHeadParameters())


class BCAgentParameters(AgentParameters):
    """Behavioural cloning of the demonstrations in ``memory.load_memory_from_file_path``. The agent takes the most
    probable action, or, with probability epsilon, a random action. Continuous actions are the mean plus Gaussian noise.

    Evaluations also have noise, as in Coach 1.0.1: 5 % of the discrete actions are random
    (``exploration.evaluation_epsilon``), and continuous actions have a standard deviation of 5 % of their range
    (``exploration.continuous_exploration_policy_parameters.evaluation_noise``). 0 evaluates without noise.
    """

    path = "rl_coach.agents.bc_agent:BCAgent"
    algorithm: BCAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=BCAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=ExperienceReplayParameters(),
            networks={"main": BCNetworkParameters()},
        )


class BCAgent(ImitationAgent):
    """Learns to choose the demonstrated action in each demonstrated state."""

    acts_in_parts = True
