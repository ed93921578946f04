"""A walk towards goals, and agents for it: with hindsight, alone or in a hierarchy."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.hac_ddpg_agent import HACDDPGAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
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
from rl_coach.spaces import ActionSpace, BoxActionSpace, GoalsSpace, ReachingGoal, VectorObservationSpace
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import SmallEnvironment, SmallEnvironmentParameters
from tests.zoo.graphs import schedule

WIDTH = 0.1


def places(threshold: float = WIDTH) -> GoalsSpace:
    """Places on the line as goals. :param threshold: the largest distance at which one is reached"""
    return GoalsSpace("achieved_goal", ReachingGoal(threshold), GoalsSpace.DistanceMetric.Euclidean)


class WalkToGoal(SmallEnvironment):
    """A walk on a line from -1 to 1, in steps of at most 0.2, to a place that is drawn. Each step costs 1, and the
    arrival ends the episode, as the thirtieth step does."""

    def observations(self) -> dict[str, Any]:
        return {name: VectorObservationSpace(1, -1.0, 1.0) for name in ("observation", "achieved_goal", "desired_goal")}

    def actions(self) -> ActionSpace:
        return BoxActionSpace(1, low=np.array([-0.2]), high=np.array([0.2]))

    def first_state(self) -> dict[str, np.ndarray]:
        self.goal = self.rng.uniform(-1, 1, 1).astype(np.float32)
        return self._at(self.rng.uniform(-1, 1, 1))

    def _at(self, place: np.ndarray) -> dict[str, np.ndarray]:
        place = np.clip(place, -1, 1).astype(np.float32)
        return {"observation": place, "achieved_goal": place, "desired_goal": self.goal}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        self.state = self._at(self.state["observation"] + action)
        is_there = bool(abs(self.state["observation"] - self.goal) <= WIDTH)
        return (0.0 if is_there else -1.0), is_there, self.steps >= 30


def with_hindsight(agent: AgentParameters, memory: Any = None) -> AgentParameters:
    """Let an agent with an actor and a critic see goals, and learn from those that it reached."""
    for name, network in agent.network_wrappers.items():
        inputs = ("observation", "desired_goal", *(["action"] if name == "critic" else []))
        network.input_embedders_parameters = {
            each: InputEmbedderParameters(scheme=EmbedderScheme.Empty) for each in inputs
        }
        network.middleware_parameters.scheme = [Dense(32), Dense(32)]
        network.learning_rate, network.batch_size = 0.003, 64
    agent.memory = memory or EpisodicHindsightExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, 20_000)
    agent.memory.hindsight_transitions_per_regular_transition = 4
    agent.memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Future
    agent.memory.goals_space = places()
    agent.algorithm.discount = 0.95
    agent.algorithm.rate_for_copying_weights_to_target = 0.05
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentEpisodes(1)
    agent.algorithm.num_consecutive_training_steps = 20
    agent.exploration = AdditiveNoiseParameters()
    agent.exploration.noise_schedule = ConstantSchedule(0.2)
    agent.exploration.evaluation_noise = 0
    return agent


def levels(count: int = 2, horizon: int = 5) -> list[AgentParameters]:
    """Agents of hierarchical actor-critic. :param horizon: steps for a subgoal"""
    agents = []
    for index in range(count):
        is_bottom = index == count - 1
        memory = None if is_bottom else EpisodicHRLHindsightExperienceReplayParameters()
        agent = with_hindsight(HACDDPGAgentParameters(), memory)
        agent.algorithm.time_limit = horizon
        agent.algorithm.in_action_space = places() if index else None
        agents.append(agent)
    return agents


def hierarchy(
    directory: Any, agents: list[AgentParameters] | None = None, steps: Any = 200, horizon: int = 5, **task: Any
) -> HACGraphManager:
    """A graph of hierarchical actor-critic, created and ready; an evaluation of two episodes every 60 steps."""
    manager = HACGraphManager(
        levels(horizon=horizon) if agents is None else agents,
        SmallEnvironmentParameters(WalkToGoal),
        schedule(steps, 60, 2),
        VisualizationParameters(),
        EnvironmentSteps(horizon),
    )
    settings = {"framework_type": FRAMEWORK, "experiment_path": str(directory), "seed": 5, **task}
    manager.create_graph(TaskParameters(**settings))
    return manager
