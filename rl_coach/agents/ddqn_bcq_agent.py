"""Double DQN from a fixed data set. Its targets only use familiar actions (Fujimoto, Meger and Precup 2019, "Off-Policy
Deep Reinforcement Learning without Exploration").

Without new experience, nothing corrects a value that is too high. The targets therefore use the maximum over
actions that the data contain in similar states.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.ddqn_agent import DDQNAgent
from rl_coach.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from rl_coach.agents.rules.familiarity import allowed_or_most_familiar, greedy_among_familiar, nearest_distances
from rl_coach.base_parameters import Parameters
from rl_coach.core_types import ActionInfo, Batch, EnvironmentSteps, StateType
from rl_coach.logger import screen
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.utilities.requirements import FLAG, FRACTION, instance, number, whole
from rl_coach.utils import CoachError

_FAMILIAR = "familiar_next_actions"
_ROWS_AT_ONCE = 1024


class NNImitationModelParameters(Parameters):
    """An action is familiar in a state if the network ``imitation_model`` gives it enough probability.

    :ivar imitation_model_num_epochs: passes over the training data to train this network
    :ivar mask_out_actions_threshold: the smallest probability of a familiar action; 0 makes all actions familiar
    :ivar threshold_is_relative: True: the threshold is a share of the probability of the most probable action, as in
        the authors' code of discrete BCQ and in d3rlpy, where it is 0.3; with 1, only the most probable action is
        familiar
    """

    constraints = {
        "imitation_model_num_epochs": whole(1),
        "mask_out_actions_threshold": FRACTION,
        "threshold_is_relative": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.imitation_model_num_epochs = 100
        self.mask_out_actions_threshold = 0.35
        self.threshold_is_relative = False


class KNNParameters(Parameters):
    """An action is familiar in a state if the data contain the action in a near state.

    :ivar average_dist_coefficient: a state is near if its distance is at most this number times the mean distance. For
        the mean distance, Coach computes the distance of each state of the data to the nearest state with an action,
        for each action, and takes the mean of all these distances
    :ivar knn_size: the number of newest states that are kept for each action
    :ivar use_state_embedding_instead_of_state: True compares the embeddings of the network ``reward_model`` if the
        agent has this network; otherwise states are compared
    """

    constraints = {
        "average_dist_coefficient": number(0),
        "knn_size": whole(1),
        "use_state_embedding_instead_of_state": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.average_dist_coefficient: float = 1
        self.knn_size = 50000
        self.use_state_embedding_instead_of_state = True


class DDQNBCQAlgorithmParameters(DQNAlgorithmParameters):
    """Hyperparameters of DQN, and the choice of familiar actions.

    :ivar action_drop_method_parameters: ``KNNParameters`` or ``NNImitationModelParameters``
    :ivar acts_among_familiar_actions: True: the agent only takes familiar actions, as in the paper. Its policy then
        needs two networks and cannot be exported. False: the agent chooses among all actions, as in Coach 1.0.1
    """

    constraints = {
        "action_drop_method_parameters": instance(
            (KNNParameters, NNImitationModelParameters), "KNNParameters() or NNImitationModelParameters()"
        ),
        "acts_among_familiar_actions": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.action_drop_method_parameters: KNNParameters | NNImitationModelParameters = KNNParameters()
        self.acts_among_familiar_actions = False
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(30000)


class DDQNBCQAgentParameters(DQNAgentParameters):
    """Batch-constrained double DQN. The target network is updated every 30,000 updates; other settings are DQN's."""

    algorithm_names = ("BCQ", "DDQN_BCQ")
    path = "rl_coach.agents.ddqn_bcq_agent:DDQNBCQAgent"
    algorithm: DDQNBCQAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = DDQNBCQAlgorithmParameters()


class DDQNBCQAgent(DDQNAgent):
    """Double DQN with targets from familiar next actions, which are found once and stored with the data."""

    predicts_values = True  # also among familiar actions

    bootstrap_actions = (greedy_among_familiar, True)

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not self.ap.is_batch_rl_training:
            yield (
                f"agent '{self.name}' learns from a fixed data set: use it in a BatchRLGraphManager, as the preset "
                f"CartPole_DDQN_BCQ_BatchRL does"
            )
        if self._imitates and "imitation_model" not in self.ap.network_wrappers:
            yield (
                f"agent '{self.name}' needs a network 'imitation_model' with a ClassificationHeadParameters: add it, "
                f"or set algorithm.action_drop_method_parameters to KNNParameters()"
            )

    @property
    def _imitates(self) -> bool:
        return isinstance(self.ap.algorithm.action_drop_method_parameters, NNImitationModelParameters)

    def before_training(self) -> None:
        """Learn which actions are familiar in the next states of the data."""
        if self._imitates:
            epochs = self.ap.algorithm.action_drop_method_parameters.imitation_model_num_epochs
            self._fit_to_memory("imitation_model", epochs, self._learn_to_imitate)
        self._annotate()

    def _learn_to_imitate(self, batch: Batch) -> float:
        network = self.networks["imitation_model"]
        return network.train_and_sync_networks(batch.states(network.input_names), batch.actions())[0]

    def _annotate(self) -> None:
        with screen.waiting_for("looking for familiar actions"):
            data = self.memory.transitions_at(np.arange(self.memory.num_transitions()))
            parts = [self.familiar_actions(rows.next_state_columns) for rows in self._parts(data)]
        self.memory.annotate(_FAMILIAR, np.concatenate(parts).astype(np.float32))

    def _parts(self, data: Batch) -> Iterator[Batch]:
        """Stored steps after the agent's filters, in parts."""
        for start in range(0, len(data), _ROWS_AT_ONCE):
            yield self.update_loop.filtered(data[start : start + _ROWS_AT_ONCE], may_update=False)

    def familiar_actions(self, states: dict[str, np.ndarray]) -> np.ndarray:
        """[B, A], True for the actions that are familiar in states [B, ...]. Each state has at least one familiar
        action.

        If no action is familiar enough, the most familiar action that the environment allows counts.

        :param states: states after the agent's filters
        """
        parameters = self.ap.algorithm.action_drop_method_parameters
        if isinstance(parameters, NNImitationModelParameters):
            network = self.networks["imitation_model"]
            inputs = {name: states[name] for name in network.input_names}
            familiarity, threshold = network.online_network.predict(inputs), parameters.mask_out_actions_threshold
        else:
            distances = nearest_distances(self._embedded(states), self._known_states)
            familiarity, threshold = -distances, -parameters.average_dist_coefficient * self._mean_distance
        mask_name = self.spaces.action_mask_name
        possible = np.ones(familiarity.shape, bool) if mask_name is None else states[mask_name] > 0
        if isinstance(parameters, NNImitationModelParameters) and parameters.threshold_is_relative:
            familiarity = familiarity / np.where(possible, familiarity, 0).max(axis=1, keepdims=True)
        return allowed_or_most_familiar(familiarity, threshold, possible)

    def _embedded(self, states: dict[str, np.ndarray]) -> np.ndarray:
        """[B, D], the embeddings or the flat states. Distances between states are distances between these vectors."""
        model = self.networks.get("reward_model")
        if model is not None and self.ap.algorithm.action_drop_method_parameters.use_state_embedding_instead_of_state:
            return model.embedding({name: states[name] for name in model.input_names})
        names = self.update_loop.input_names
        return np.concatenate([np.reshape(states[name], (len(states[name]), -1)) for name in names], axis=1)

    @cached_property
    def _training_states(self) -> tuple[np.ndarray, np.ndarray]:
        data = self.memory.transitions_at(np.arange(self.memory.num_training_transitions()))
        return np.concatenate([self._embedded(rows.state_columns) for rows in self._parts(data)]), data.action_column

    @cached_property
    def _known_states(self) -> list[np.ndarray]:
        """The states [N, D] of training steps with each action, in the order of the actions."""
        points, actions = self._training_states
        size = self.ap.algorithm.action_drop_method_parameters.knn_size
        return [points[actions == action][-size:] for action in range(self.spaces.action.num_actions)]

    @cached_property
    def _mean_distance(self) -> float:
        """The mean distance to the nearest state with an action, over all states of the data and all actions."""
        points, _ = self._training_states
        starts = range(0, len(points), _ROWS_AT_ONCE)
        parts = [nearest_distances(points[start : start + _ROWS_AT_ONCE], self._known_states) for start in starts]
        distances = np.concatenate(parts)
        return float(distances[np.isfinite(distances)].mean())

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        if not (self.ap.algorithm.acts_among_familiar_actions and self.training_has_begun):
            return super().choose_action(curr_state)
        if not self._imitates and not self.memory.num_transitions():
            raise CoachError(
                f"agent '{self.name}' only takes actions that are familiar from its data, but it has no data: set "
                f"agent_params.memory.load_memory_from_file_path"
            )
        familiar = self.familiar_actions({name: np.asarray(value)[None] for name, value in curr_state.items()})[0]
        values = self.acting_prediction(curr_state)
        self.q_values.add_sample(values)
        action, probabilities = self.exploration_policy.get_action(values, familiar)
        return ActionInfo(
            action,
            all_action_probabilities=probabilities,
            action_value=float(values[action]),
            max_action_value=float(values.max()),
        )

    def policy_description(self) -> PolicyDescription | None:
        return None if self.ap.algorithm.acts_among_familiar_actions else super().policy_description()

    def select_actions(self, next_states: dict[str, np.ndarray], q_st_plus_1: np.ndarray) -> np.ndarray:
        values = self.networks["main"].online_network.predict(next_states)
        return np.argmax(np.where(self.familiar_actions(next_states), values, -np.inf), axis=1)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        return {**super().learning_columns(batch), "extra/familiar": batch.info(_FAMILIAR)}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        for name in ("_training_states", "_known_states", "_mean_distance"):
            vars(self).pop(name, None)
        if state["memory"] is None and self.training_has_begun and not self.evaluates_only:
            self._annotate()  # the checkpoint has no memory: the data were loaded from their file again
