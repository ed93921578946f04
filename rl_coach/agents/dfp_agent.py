"""Direct future prediction (Dosovitskiy & Koltun 2017, "Learning to act by predicting the future")."""

from __future__ import annotations

from enum import Enum
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.batches import BatchSource
from rl_coach.agents.core.episode_replay import FutureReplay
from rl_coach.agents.core.requirements import HeadRequirement, MemoryRequirement, NetworkRequirement
from rl_coach.agents.rules.future_measurements import future_measurements_rule, values_for_goal
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import MeasurementsPredictionHeadParameters
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, MiddlewareScheme, NetworkParameters
from rl_coach.core_types import Batch, EnvironmentSteps, StateType
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.spaces import SpacesDefinition, VectorObservationSpace
from rl_coach.utilities.requirements import dictionary_of, list_of, member, number, whole
from rl_coach.utils import choose_from

MEASUREMENTS, GOAL = "measurements", "goal"


class HandlingTargetsAfterEpisodeEnd(Enum):
    """Targets for offsets after the end of an episode: the measurements of the last state, or no target."""

    LastStep = 0
    NAN = 1


class DFPNetworkParameters(NetworkParameters):
    """The network of the paper's section 4: it joins image, measurements and goal, and predicts by an expectation
    stream and an action stream."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(activation_function="leaky_relu"),
            MEASUREMENTS: InputEmbedderParameters(activation_function="leaky_relu"),
            GOAL: InputEmbedderParameters(activation_function="leaky_relu"),
        }
        self.input_embedders_parameters["observation"].scheme = [
            Conv2d(32, 8, 4), Conv2d(64, 4, 2), Conv2d(64, 3, 1), Dense(512),
        ]  # fmt: skip
        for name in (MEASUREMENTS, GOAL):
            self.input_embedders_parameters[name].scheme = [Dense(128), Dense(128), Dense(128)]
        self.middleware_parameters = FCMiddlewareParameters(
            activation_function="leaky_relu", scheme=MiddlewareScheme.Empty
        )
        self.heads_parameters = [MeasurementsPredictionHeadParameters(activation_function="leaky_relu")]
        self.batch_size = 64
        self.adam_optimizer_beta1 = 0.95


class DFPMemoryParameters(EpisodicExperienceReplayParameters):
    """Episodic replay of 20,000 transitions."""

    def __init__(self) -> None:
        super().__init__()
        self.max_size = (MemoryGranularity.Transitions, 20000)
        self.shared_memory = True


class DFPAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of direct future prediction.

    :ivar num_predicted_steps_ahead: K, the number of offsets that are predicted: 1, 2, 4, ..., 2^(K - 1) steps ahead
    :ivar goal_vector: [M] the weight of each measurement in the goal, in units of the scaled targets
    :ivar future_measurements_weights: the weights of the last offsets; all earlier offsets have weight 0
    :ivar handling_targets_after_episode_end: the targets of offsets after the end of an episode
    :ivar scale_measurements_targets: dict from a measurement's name to a number. The targets of this measurement are
        divided by the number; the default is 1
    """

    constraints = {
        "num_predicted_steps_ahead": whole(1),
        "goal_vector": list_of(number(-np.inf)),
        "future_measurements_weights": list_of(number(-np.inf)),
        "handling_targets_after_episode_end": member(HandlingTargetsAfterEpisodeEnd),
        "scale_measurements_targets": dictionary_of(number(), "the measurements' names"),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_predicted_steps_ahead = 6
        self.goal_vector: list[float] = [1.0, 1.0]
        self.future_measurements_weights: list[float] = [0.5, 0.5, 1.0]
        self.handling_targets_after_episode_end = HandlingTargetsAfterEpisodeEnd.NAN
        self.scale_measurements_targets: dict[str, float] = {}
        self.num_consecutive_playing_steps = EnvironmentSteps(8)


class DFPAgentParameters(AgentParameters):
    """Direct future prediction with epsilon-greedy exploration and replay of episodes."""

    path = "rl_coach.agents.dfp_agent:DFPAgent"
    algorithm: DFPAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=DFPAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=DFPMemoryParameters(),
            networks={"main": DFPNetworkParameters()},
        )


class DFPAgent(ValueOptimizationAgent):
    """Predicts how each action will change the measurements, and chooses the action with the best changes for the
    goal."""

    memory_requirement = MemoryRequirement.EPISODES
    network_requirements = {
        "main": NetworkRequirement((HeadRequirement("MeasurementsPredictionHeadParameters", ("measurements",)),))
    }
    max_n_step = 1
    predicts_values = True

    def set_environment_parameters(self, spaces: SpacesDefinition) -> None:
        goal = VectorObservationSpace(len(self.ap.algorithm.goal_vector))
        super().set_environment_parameters(SpacesDefinition(spaces.state, goal, spaces.action, spaces.reward))

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if self.ap.is_batch_rl_training:
            yield f"agent '{self.name}' cannot be used in batch reinforcement learning: choose another agent"
        if MEASUREMENTS not in self.spaces.state:
            yield (
                f"agent '{self.name}' predicts the observation '{MEASUREMENTS}', which the environment does not have: "
                f"set algorithm.use_accumulated_reward_as_measurement to True and algorithm.goal_vector to [1.0], or "
                f"choose another agent or environment"
            )
            return
        yield from self._unmet_by_measurements(self.spaces.state[MEASUREMENTS])

    def _unmet_by_measurements(self, space: Any) -> Iterator[str]:
        algorithm, count, names = self.ap.algorithm, int(np.prod(space.shape)), space.measurements_names
        if len(algorithm.goal_vector) != count:
            yield (
                f"the length of algorithm.goal_vector is {len(algorithm.goal_vector)}, and the number of measurements "
                f"is {count} ({', '.join(names) or 'without names'}): give one number for each measurement"
            )
        if not 0 < len(algorithm.future_measurements_weights) <= algorithm.num_predicted_steps_ahead:
            yield (
                f"algorithm.future_measurements_weights has {len(algorithm.future_measurements_weights)} numbers, and "
                f"num_predicted_steps_ahead is {algorithm.num_predicted_steps_ahead}: give at least 1 and at most "
                f"{algorithm.num_predicted_steps_ahead} numbers"
            )
        for name, scale in algorithm.scale_measurements_targets.items():
            if name not in names:
                suggestion = choose_from(name, names)
                yield f"algorithm.scale_measurements_targets names '{name}', which is not a measurement{suggestion}"
            elif not scale > 0:
                yield f"algorithm.scale_measurements_targets['{name}'] is {scale}; it must be a number above 0"

    def create_networks(self) -> dict[str, NetworkWrapper]:
        for head in self.ap.network_wrappers["main"].heads_parameters:
            if isinstance(head, MeasurementsPredictionHeadParameters):
                head.num_predicted_steps_ahead = self.ap.algorithm.num_predicted_steps_ahead
        return super().create_networks()

    def make_batches(self) -> BatchSource:
        algorithm, space = self.ap.algorithm, self.memory_spaces.state[MEASUREMENTS]
        scales = np.ones(int(np.prod(space.shape)))
        for index, name in enumerate(space.measurements_names):
            scales[index] = algorithm.scale_measurements_targets.get(name, 1.0)
        return FutureReplay(self.memory, MEASUREMENTS, algorithm.num_predicted_steps_ahead, scales)

    def make_update_rule(self) -> UpdateRule:
        return future_measurements_rule(self.ap.network_wrappers["main"].heads_parameters[0].loss_weight)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        handling, is_known = self.ap.algorithm.handling_targets_after_episode_end, batch.info("is_known")
        if handling is HandlingTargetsAfterEpisodeEnd.LastStep:
            is_known = np.ones_like(is_known)
        states = self._with_goal(batch.state_columns, (len(batch),))
        return {
            **{f"states/{name}": states[name] for name in self.update_loop.input_names},
            "actions": batch.action_column,
            "extra/future_measurements": batch.info("future_measurements"),
            "extra/is_known": is_known.astype(np.float32),
            "weights": np.ones(len(batch), np.float32),
        }

    def _with_goal(self, state: StateType, leading: tuple[int, ...] = ()) -> StateType:
        goal = np.asarray(self.ap.algorithm.goal_vector, np.float32)
        return {**state, GOAL: np.broadcast_to(goal, (*leading, len(goal)))}

    def get_all_q_values_for_states(self, states: StateType | list[StateType]) -> np.ndarray:
        """[B, A], the weighted sum of the predicted changes for each action, for one state or a list of states."""
        algorithm = self.ap.algorithm
        return values_for_goal(
            np.asarray(self.get_prediction(states)),
            np.asarray(algorithm.goal_vector, np.float32),
            np.asarray(algorithm.future_measurements_weights, np.float32),
        )

    def get_prediction(self, states: StateType | list[StateType], outputs: list[str] | None = None) -> Any:
        """[B, A, K * M], the predicted changes of the measurements, for one state or a list of states."""
        states = states if isinstance(states, list) else [states]
        return super().get_prediction([self._with_goal(state) for state in states], outputs)

    def policy_description(self) -> PolicyDescription | None:
        # the choice depends on the goal, and on the rewards of the episode so far if they count as a measurement
        return None
