"""Hierarchical actor-critic swings up a pendulum and stops it there. One level sets subgoals, the other level acts."""

import numpy as np

from rl_coach.agents.hac_ddpg_agent import HACDDPGAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, EmbeddingMergerType, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.hac_graph_manager import HACGraphManager
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplayParameters,
    HindsightGoalSelectionMethod,
)
from rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay import (
    EpisodicHRLHindsightExperienceReplayParameters,
)
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.presets.tuned._networks import as_pytorch
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.spaces import GoalsSpace, ReachingGoal

time_limit = 1000
steps_for_a_subgoal = 30
thresholds = np.array([0.075, 0.75])  # of the angle (in radians) and the velocity


def distance(goal: np.ndarray, state: np.ndarray) -> np.ndarray:
    """The distances of an angle and a velocity from those of a goal. For angles, it is the shorter way around."""
    angle, velocity = np.moveaxis(np.abs(np.asarray(goal) - np.asarray(state)), -1, 0)
    return np.stack([np.minimum(angle, 2 * np.pi - angle), velocity], axis=-1)


def goals_within(distances: np.ndarray) -> GoalsSpace:
    """Goals that are reached if no distance is larger than in ``distances``."""
    reward = ReachingGoal(distances, goal_reaching_reward=0, default_reward=-1)
    return GoalsSpace("achieved_goal", reward, distance)


goals_space, subgoals = goals_within(thresholds), goals_within(np.array([0.2, 1.0]))

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(0)
schedule_params.improve_steps = EnvironmentSteps(200_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(20_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(20)


def set_level(agent: AgentParameters, noise: float, updates: int) -> None:
    """Set the settings that both levels share.

    :param noise: the standard deviation of exploration, as a share of the range
    :param updates: updates in the whole run. The learning rate falls over these updates; with a constant one, the agent
        forgets the task again
    """
    for name, inputs in (
        ("actor", ("observation", "desired_goal")),
        ("critic", ("observation", "action", "desired_goal")),
    ):
        network = agent.network_wrappers[name]
        network.input_embedders_parameters = {
            each: InputEmbedderParameters(scheme=EmbedderScheme.Empty) for each in inputs
        }
        network.middleware_parameters.scheme = [Dense(64)] * 3
        as_pytorch(network, learning_rate=LinearSchedule(0.001, 0.0001, updates), batch_size=256)
    agent.network_wrappers["critic"].embedding_merger_type = EmbeddingMergerType.Concat
    agent.memory.max_size = (MemoryGranularity.Transitions, 1_000_000)
    agent.memory.hindsight_transitions_per_regular_transition = 4
    agent.memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Future
    agent.memory.goals_space = goals_space
    agent.algorithm.time_limit = steps_for_a_subgoal
    agent.algorithm.discount = 0.98
    agent.algorithm.rate_for_copying_weights_to_target = 0.01
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    agent.exploration = EGreedyParameters()
    agent.exploration.epsilon_schedule = ConstantSchedule(0.2)
    agent.exploration.evaluation_epsilon = 0
    agent.exploration.continuous_exploration_policy_parameters.noise_schedule = ConstantSchedule(noise)
    agent.exploration.continuous_exploration_policy_parameters.evaluation_noise = 0


# Top level
top_agent_params = HACDDPGAgentParameters()
top_agent_params.memory = EpisodicHRLHindsightExperienceReplayParameters()
set_level(top_agent_params, noise=0.05, updates=20_000)
top_agent_params.algorithm.sub_goal_testing_rate = 0.3
top_agent_params.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(1)
top_agent_params.algorithm.num_consecutive_training_steps = 100

# Bottom level
bottom_agent_params = HACDDPGAgentParameters()
bottom_agent_params.memory = EpisodicHindsightExperienceReplayParameters()
set_level(bottom_agent_params, noise=0.1, updates=90_000)
bottom_agent_params.algorithm.in_action_space = bottom_agent_params.memory.goals_space = subgoals
bottom_agent_params.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(10)
bottom_agent_params.algorithm.num_consecutive_training_steps = 100

# Environment
env_params = GymVectorEnvironment(level="rl_coach.environments.mujoco.pendulum_with_goals:PendulumWithGoals")
env_params.additional_simulator_parameters = {
    "time_limit": time_limit,
    "goal_reaching_thresholds": thresholds,
    "polar_goals": True,
}
env_params.frame_skip = 10
env_params.custom_reward_threshold = -time_limit + 1

vis_params = VisualizationParameters()
vis_params.native_rendering = False

graph_manager = HACGraphManager(
    agents_params=[top_agent_params, bottom_agent_params],
    env_params=env_params,
    schedule_params=schedule_params,
    vis_params=vis_params,
    consecutive_steps_to_run_non_top_levels=EnvironmentSteps(steps_for_a_subgoal),
)
