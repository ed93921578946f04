"""TD3 that explores without a reward: by the novelty of observations, towards its own goals, or at random.

The module keeps its name from Coach 1.0.1.
"""

from __future__ import annotations

import numpy as np

from rl_coach.agents.core.learning import NoLearning
from rl_coach.agents.curiosity import RNDNetworkParameters as RNDNetworkParameters
from rl_coach.agents.rules.curiosity import CONSTANT, PREDICTOR
from rl_coach.agents.td3_agent import TD3AgentParameters, TD3AlgorithmParameters
from rl_coach.agents.td3_exploration_agent import TD3ExplorationAgent
from rl_coach.agents.td3_goal_based_agent import TD3GoalBasedAgent as TD3GoalBasedAgent
from rl_coach.core_types import Batch
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.utilities.requirements import FRACTION, TEXT, number, optional, whole


class TD3ExplorationAlgorithmParameters(TD3AlgorithmParameters):
    """Hyperparameters of TD3 that explores without a reward.

    :ivar rnd_sample_size: number of steps between two updates of the novelty predictor, which learns from the same
        number of newest transitions
    :ivar rnd_batch_size: number of transitions in an update of the predictor
    :ivar rnd_optimization_epochs: number of the predictor's passes over these transitions
    :ivar td3_training_ratio: number of updates for each step played
    :ivar identity_goal_sample_rate: share of a batch's transitions with a goal that is already reached; only for
        ``TD3GoalBasedAgentParameters``
    :ivar env_obs_key: name of the observation whose novelty is measured
    :ivar agent_obs_key: name of an observation that actor and critic see. The agent writes ``env_obs_key`` and the goal
        into it; only for ``TD3GoalBasedAgentParameters``
    :ivar replay_buffer_save_steps: number of steps between two saves of the memory
    :ivar replay_buffer_save_path: directory for the saved memory; None does not save
    """

    constraints = {
        "rnd_sample_size": whole(1),
        "rnd_batch_size": whole(1),
        "rnd_optimization_epochs": whole(1),
        "td3_training_ratio": number(0),
        "identity_goal_sample_rate": FRACTION,
        "env_obs_key": TEXT,
        "agent_obs_key": TEXT,
        "replay_buffer_save_steps": whole(1),
        "replay_buffer_save_path": optional(TEXT),
    }

    def __init__(self) -> None:
        super().__init__()
        self.rnd_sample_size = 2000
        self.rnd_batch_size = 500
        self.rnd_optimization_epochs = 4
        self.td3_training_ratio = 1.0
        self.identity_goal_sample_rate = 0.0
        self.env_obs_key = "camera"
        self.agent_obs_key = "camera"
        self.replay_buffer_save_steps = 25000
        self.replay_buffer_save_path: str | None = None


class TD3ExplorationAgentParameters(TD3AgentParameters):
    """TD3 that also measures novelty by random network distillation."""

    path = "rl_coach.agents.td3_exp_agent:TD3ExplorationAgent"
    algorithm: TD3ExplorationAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = TD3ExplorationAlgorithmParameters()
        self.network_wrappers |= {PREDICTOR: RNDNetworkParameters(), CONSTANT: RNDNetworkParameters()}


class TD3IntrinsicRewardAgentParameters(TD3ExplorationAgentParameters):
    """TD3 with novelty as its reward."""

    path = "rl_coach.agents.td3_exp_agent:TD3IntrinsicRewardAgent"


class TD3GoalBasedAgentParameters(TD3ExplorationAgentParameters):
    """TD3 with the most novel of ``rnd_sample_size`` observations from its memory as its goal."""

    path = "rl_coach.agents.td3_exp_agent:TD3GoalBasedAgent"


class RandomAgentParameters(TD3ExplorationAgentParameters):
    """An agent that acts at random and learns no policy."""

    path = "rl_coach.agents.td3_exp_agent:RandomAgent"

    def __init__(self) -> None:
        super().__init__()
        self.exploration = EGreedyParameters()
        self.exploration.epsilon_schedule = ConstantSchedule(1.0)


class TD3IntrinsicRewardAgent(TD3ExplorationAgent):
    """TD3 that learns from novelty instead of the environment's rewards. Novelty is divided by the standard deviation
    of its discounted sum (Burda et al. 2018, section 2.4).
    """

    max_n_step = 1

    def handle_self_supervised_reward(self, batch: Batch) -> Batch:
        rewarded = Batch(batch)
        rewarded.reward_column = (self.calculate_novelty(batch) * self.rnd.scale).astype(np.float32)
        return rewarded


class RandomAgent(TD3ExplorationAgent):
    """Acts with its exploration policy, at random by default. It learns only the novelty of observations."""

    def make_learning(self) -> NoLearning:
        return NoLearning(self)
