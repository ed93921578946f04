"""The parameters of a cell: small agents, memories and filters, among them a memory and a filter of a user."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.algorithms import find_algorithm
from rl_coach.agents.drq_agent import ENCODER, trunk
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.architectures.world_model import ModelSize
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplayParameters,
    HindsightGoalSelectionMethod,
)
from rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay import (
    EpisodicHRLHindsightExperienceReplayParameters,
)
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBufferParameters
from rl_coach.memories.memory import Memory, MemoryGranularity, MemoryParameters
from rl_coach.memories.non_episodic.balanced_experience_replay import BalancedExperienceReplayParameters
from rl_coach.memories.non_episodic.demonstration_replay import DemonstrationReplayParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import GoalsSpace, ReachingGoal
from tests.conformance.axes import Cell

STACK = 3
_SPECIAL = ("DFP", "CIL", "TD3GoalBased", "TD3Exploration", "TD3IntrinsicReward", "Random", "DreamerV3")


class ListMemory(Memory):
    """The memory of docs/memories.md."""

    def __init__(self, max_size: Any):
        super().__init__(max_size)
        self.transitions = []

    def store(self, transition: Any) -> None:
        super().store(transition)
        self.transitions.append(transition)

    def sample(self, size: int) -> list[Any]:
        return [self.transitions[row] for row in self.rng.integers(0, self.length(), size)]

    def length(self) -> int:
        return len(self.transitions)

    def clean(self) -> None:
        self.transitions = []


class ListMemoryParameters(MemoryParameters):
    """Parameters of ``ListMemory``."""

    @property
    def path(self) -> str:
        return "tests.conformance.parts:ListMemory"


class MeanFilter(ObservationFilter):
    """The mean of an observation and the one before it. It declares nothing, like the filters of users."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None

    def filter(self, observation: Any, update_internal_state: bool = True) -> np.ndarray:
        observation = np.asarray(observation, np.float32)
        mean = observation if self.last is None else (observation + self.last) / 2
        if update_internal_state:
            self.last = observation
        return mean

    def get_filtered_observation_space(self, input_observation_space: Any) -> Any:
        return input_observation_space

    def reset(self) -> None:
        self.last = None


_MEMORIES: dict[str, type[MemoryParameters]] = {
    "ExperienceReplay": ExperienceReplayParameters,
    "PrioritizedExperienceReplay": PrioritizedExperienceReplayParameters,
    "DemonstrationReplay": DemonstrationReplayParameters,
    "BalancedExperienceReplay": BalancedExperienceReplayParameters,
    "EpisodicExperienceReplay": EpisodicExperienceReplayParameters,
    "EpisodicHindsightExperienceReplay": EpisodicHindsightExperienceReplayParameters,
    "EpisodicHRLHindsightExperienceReplay": EpisodicHRLHindsightExperienceReplayParameters,
    "SingleEpisodeBuffer": SingleEpisodeBufferParameters,
    "list": ListMemoryParameters,
}


def agent_parameters(cell: Cell) -> AgentParameters:
    """The agent of a cell, so small that it learns in a second."""
    parameters = find_algorithm(cell.agent).parameters()
    for network in parameters.network_wrappers.values():
        _shrink(network, cell)
    _shorten(parameters.algorithm)
    if cell.memory != "own":
        parameters.memory = _MEMORIES[cell.memory]()
    _set_memory(parameters.memory)
    if cell.filters != "none":
        parameters.input_filter = _input_filter(cell)
    # a batch is compared with what the input filter gives: FastTD3 and ARS normalise it once more
    parameters.pre_network_filter = InputFilter()
    if cell.agent == "BootstrappedDQN":
        parameters.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 3
        parameters.exploration.architecture_num_q_heads = 3
    if cell.agent == "DreamerV3":
        parameters.algorithm.size = ModelSize(deter=16, hidden=8, classes=2, units=8, depth=2)
        parameters.algorithm.imagination_horizon = 2
        parameters.network_wrappers["main"].middleware_parameters.sequence_length = 4
    if cell.agent == "NEC":  # it learns when its dictionary has entries of every action
        parameters.exploration.epsilon_schedule = ConstantSchedule(1)
    if cell.agent == "DFP" and cell.observations != "Dict":
        parameters.algorithm.use_accumulated_reward_as_measurement = True
        parameters.algorithm.goal_vector = [1.0]
    if cell.agent == "DecisionTransformer":
        middleware = parameters.network_wrappers["main"].middleware_parameters
        middleware.width, middleware.blocks, parameters.algorithm.context_length = 8, 1, 3
    if cell.agent == "CIL":
        parameters.algorithm.state_key_with_the_class_index = "command"
        parameters.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 2
    if hasattr(parameters.algorithm, "env_obs_key"):
        _set_novelty(parameters, "obs-goal" if cell.agent == "TD3GoalBased" else "observation")
    return parameters


def _set_novelty(parameters: AgentParameters, seen: str) -> None:
    algorithm = parameters.algorithm
    algorithm.rnd_sample_size, algorithm.rnd_batch_size, algorithm.rnd_optimization_epochs = 12, 6, 1
    algorithm.env_obs_key, algorithm.agent_obs_key = "observation", seen
    for name in {"actor", "critic"} & parameters.network_wrappers.keys():
        embedders = parameters.network_wrappers[name].input_embedders_parameters
        embedders[seen] = embedders.pop("observation")


def _shrink(network: Any, cell: Cell) -> None:
    network.batch_size = 4
    embedders = network.input_embedders_parameters
    for name, embedder in embedders.items():
        if name != "action" and cell.agent != "DrQv2":
            embedder.scheme = EmbedderScheme.Shallow if "observation" in name else EmbedderScheme.Empty
    if cell.observations == "Dict" and "observation" in embedders and cell.agent not in _SPECIAL:
        embedders["desired_goal"] = InputEmbedderParameters(scheme=EmbedderScheme.Empty)
    if isinstance(getattr(network.middleware_parameters, "scheme", None), MiddlewareScheme):
        network.middleware_parameters.scheme = MiddlewareScheme.Empty
    if cell.agent == "DrQv2":
        first, rest = embedders["observation"], embedders["observation"].scheme[len(ENCODER) : -len(trunk(1))]
        first.scheme = [Conv2d(4, 3, 2), *rest, *trunk(8)]
        network.middleware_parameters.scheme = [Dense(8)]
    for head in network.heads_parameters:
        if hasattr(head, "network_layers_sizes"):
            head.network_layers_sizes = (8,)


def _shorten(algorithm: Any) -> None:
    """Let periods end within sixty steps."""
    playing = algorithm.num_consecutive_playing_steps
    if isinstance(playing, EnvironmentSteps) and playing.num_steps > 12:
        algorithm.num_consecutive_playing_steps = EnvironmentSteps(12)
    period = algorithm.num_steps_between_copying_online_weights_to_target
    if isinstance(period, (EnvironmentSteps, TrainingSteps)) and period.num_steps > 20:
        algorithm.num_steps_between_copying_online_weights_to_target = type(period)(20)
    settings = {
        "optimization_epochs": 2, "num_steps_between_gradient_updates": 6, "apply_gradients_every_x_episodes": 1,
        "dnd_size": 60, "number_of_knn": 1, "pretraining_updates": 2, "num_transitions_to_start_replay": 10, "atoms": 5,
        "num_directions": 2,
        "num_consecutive_training_steps": min(2, algorithm.num_consecutive_training_steps),
    }  # fmt: skip
    for name, value in settings.items():
        if hasattr(algorithm, name):
            setattr(algorithm, name, value)


def _set_memory(memory: Any) -> None:
    if getattr(memory, "max_size", None) and memory.max_size[0] is MemoryGranularity.Transitions:
        memory.max_size = (MemoryGranularity.Transitions, 256)
    if isinstance(memory, BalancedExperienceReplayParameters):
        memory.num_classes, memory.state_key_with_the_class_index = 2, "command"
    if isinstance(memory, EpisodicHindsightExperienceReplayParameters):
        memory.hindsight_transitions_per_regular_transition = 1
        memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Final
        memory.goals_space = GoalsSpace("achieved_goal", ReachingGoal(0.1), GoalsSpace.DistanceMetric.Euclidean)


def _input_filter(cell: Cell) -> InputFilter:
    made = {
        "normalisation": lambda: ObservationNormalizationFilter(name="normalize"),
        "stack": lambda: ObservationStackingFilter(STACK),
        "with state": MeanFilter,
    }[cell.filters]
    chain = InputFilter()
    chain.add_observation_filter("observation", "of the cell", made())
    return chain
