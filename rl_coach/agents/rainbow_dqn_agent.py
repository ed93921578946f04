"""Rainbow (Hessel et al. 2018, "Rainbow: combining improvements in deep reinforcement learning")."""

from __future__ import annotations

from rl_coach.agents.categorical_dqn_agent import (
    DISTRIBUTION,
    CategoricalDQNAgent,
    CategoricalDQNAgentParameters,
    CategoricalDQNAlgorithmParameters,
)
from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.ddqn_agent import greedy_by_online
from rl_coach.agents.dqn_agent import DQNNetworkParameters
from rl_coach.architectures.head_parameters import RainbowQHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme
from rl_coach.exploration_policies.parameter_noise import ParameterNoiseParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters


class RainbowDQNNetworkParameters(DQNNetworkParameters):
    """A dueling network that predicts distributions of returns."""

    def __init__(self) -> None:
        super().__init__()
        self.heads_parameters = [RainbowQHeadParameters()]
        self.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)


class RainbowDQNAlgorithmParameters(CategoricalDQNAlgorithmParameters):
    """Hyperparameters of categorical DQN, and two more for n-step returns.

    :ivar n_step: number of rewards in a target before the bootstrapped value; 1 gives one-step targets
    :ivar store_transitions_only_when_episodes_are_terminated: True stores the n-step transitions of an episode when the
        episode ends; False stores each transition when its rewards are complete
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_step = 3
        self.store_transitions_only_when_episodes_are_terminated = True


class RainbowDQNAgentParameters(CategoricalDQNAgentParameters):
    """Rainbow: a noisy dueling categorical network, double Q-learning, n-step returns, prioritized replay."""

    algorithm_names = ("Rainbow", "RainbowDQN")
    path = "rl_coach.agents.rainbow_dqn_agent:RainbowDQNAgent"
    algorithm: RainbowDQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = RainbowDQNAlgorithmParameters()
        self.network_wrappers = {"main": RainbowDQNNetworkParameters()}
        self.exploration = ParameterNoiseParameters(self)
        self.memory = PrioritizedExperienceReplayParameters()


class RainbowDQNAgent(CategoricalDQNAgent):
    """The online network chooses the next action, and the target network gives its distribution (section 3)."""

    network_requirements = {
        "main": NetworkRequirement((HeadRequirement("RainbowQHeadParameters", *DISTRIBUTION.outputs),), has_target=True)
    }
    bootstrap_actions = (greedy_by_online, True)
