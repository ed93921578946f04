"""Hierarchical actor-critic swings up a pendulum and holds it, with two levels: the upper level sets subgoals, the
lower level acts.

Levy et al., Learning Multi-Level Hierarchies with Hindsight, 2019.
"""

import numpy as np

from rl_coach.agents.hac_ddpg_agent import HACDDPGAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, EmbeddingMergerType, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.ou_process import OUProcessParameters
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
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import GoalsSpace, ReachingGoal

time_limit = 1000  # in steps of the simulator, which makes ten for each action
polar_coordinates = False
distance_from_goal_threshold = np.array([0.075, 0.75]) if polar_coordinates else np.array([0.075, 0.075, 0.75])
goals_space = GoalsSpace(
    "achieved_goal",
    ReachingGoal(default_reward=-1, goal_reaching_reward=0, distance_from_goal_threshold=distance_from_goal_threshold),
    lambda goal, state: np.abs(goal - state),
)

# Schedule
schedule_params = ScheduleParameters()
schedule_params.improve_steps = EnvironmentEpisodes(40 * 4 * 64)
schedule_params.steps_between_evaluation_periods = EnvironmentEpisodes(4 * 64)
schedule_params.evaluation_steps = EnvironmentEpisodes(64)
schedule_params.heatup_steps = EnvironmentSteps(0)


def set_networks(agent: AgentParameters) -> None:
    """Set the networks: three layers of 64 units each, large batches, and the goal as an input."""
    for name, inputs in (
        ("actor", ("observation", "desired_goal")),
        ("critic", ("observation", "action", "desired_goal")),
    ):
        network = agent.network_wrappers[name]
        network.input_embedders_parameters = {
            each: InputEmbedderParameters(scheme=EmbedderScheme.Empty) for each in inputs
        }
        network.middleware_parameters.scheme = [Dense(64)] * 3
        network.learning_rate = 0.001
        network.batch_size = 4096
    agent.network_wrappers["critic"].embedding_merger_type = EmbeddingMergerType.Concat


# Top level
top_agent_params = HACDDPGAgentParameters()
set_networks(top_agent_params)
top_agent_params.memory = EpisodicHRLHindsightExperienceReplayParameters()
top_agent_params.memory.max_size = (MemoryGranularity.Transitions, 10000000)
top_agent_params.memory.hindsight_transitions_per_regular_transition = 3
top_agent_params.memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Future
top_agent_params.memory.goals_space = goals_space
top_agent_params.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(32)
top_agent_params.algorithm.num_consecutive_training_steps = 40
top_agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(40)
top_agent_params.exploration = OUProcessParameters()
top_agent_params.exploration.theta = 0.1

# Bottom level
bottom_agent_params = HACDDPGAgentParameters()
set_networks(bottom_agent_params)
bottom_agent_params.algorithm.in_action_space = goals_space
bottom_agent_params.memory = EpisodicHindsightExperienceReplayParameters()
bottom_agent_params.memory.max_size = (MemoryGranularity.Transitions, 12000000)
bottom_agent_params.memory.hindsight_transitions_per_regular_transition = 4
bottom_agent_params.memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Future
bottom_agent_params.memory.goals_space = goals_space
bottom_agent_params.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(16 * 25)
bottom_agent_params.algorithm.num_consecutive_training_steps = 40
bottom_agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(40)
bottom_agent_params.exploration = EGreedyParameters()
bottom_agent_params.exploration.epsilon_schedule = ConstantSchedule(0.2)
bottom_agent_params.exploration.evaluation_epsilon = 0
bottom_agent_params.exploration.continuous_exploration_policy_parameters = OUProcessParameters()
bottom_agent_params.exploration.continuous_exploration_policy_parameters.theta = 0.1

# Environment
env_params = GymVectorEnvironment(level="rl_coach.environments.mujoco.pendulum_with_goals:PendulumWithGoals")
env_params.additional_simulator_parameters = {
    "time_limit": time_limit,
    "random_goals_instead_of_standing_goal": False,
    "polar_coordinates": polar_coordinates,
    "goal_reaching_thresholds": distance_from_goal_threshold,
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
    consecutive_steps_to_run_non_top_levels=EnvironmentSteps(40),
)
