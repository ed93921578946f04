"""All estimates of one policy from recorded episodes."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Mapping, Sequence

import numpy as np

from rl_coach.architectures.policies import allows
from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.off_policy_evaluators.bandits.doubly_robust import DoublyRobust
from rl_coach.off_policy_evaluators.recorded_episodes import ACTION_VALUES, BEHAVIOUR, LAST_VALUE, TARGET, VALUE
from rl_coach.off_policy_evaluators.rl.sequential_doubly_robust import SequentialDoublyRobust
from rl_coach.off_policy_evaluators.rl.weighted_importance_sampling import WeightedImportanceSampling
from rl_coach.utils import CoachError

OpeSharedStats = namedtuple(
    "OpeSharedStats",
    [
        "all_reward_model_rewards",
        "all_policy_probs",
        "all_v_values_reward_model_based",
        "all_rewards",
        "all_actions",
        "all_old_policy_probs",
        "new_policy_prob",
        "rho_all_dataset",
    ],
)
OpeEstimation = namedtuple("OpeEstimation", ["ips", "dm", "dr", "seq_dr", "wis"])


class OpeManager:
    """Estimates the value of the policy of a Q network, from episodes of another policy.

    :param temperature: the target policy is softmax(Q / temperature). Intel's Coach uses 0.2. With 0, the policy is
        greedy, like a deployed agent
    :param mask_name: the observation that masks actions. The target policy never takes a masked action; None allows all
    """

    def __init__(self, temperature: float = 0.2, mask_name: str | None = None):
        if not temperature >= 0:
            raise CoachError(f"the temperature of a softmax policy must be a number of at least 0, not {temperature}")
        self.temperature = temperature
        self.mask_name = mask_name
        self.all_reward_model_rewards: np.ndarray | None = None

    def gather_static_shared_stats(
        self,
        evaluation_dataset_as_transitions: Sequence[Transition],
        batch_size: int,
        reward_model: Any,
        network_keys: Sequence[str],
    ) -> None:
        """Predict the rewards of the data set once. The predicted rewards do not change while the policy learns.

        :param batch_size: number of rows in one prediction
        :param reward_model: a network with the reward of each action
        :param network_keys: names of the network's observations
        :raises CoachError: if the data set is empty, or has steps without the probabilities of their actions
        """
        if not evaluation_dataset_as_transitions:
            raise CoachError("there is no recorded step to evaluate a policy with: use a data set that is not empty")
        if any(BEHAVIOUR not in transition.info for transition in evaluation_dataset_as_transitions):
            raise CoachError(
                f"off-policy evaluation needs info['{BEHAVIOUR}'] of each recorded step: "
                f"use data with the probabilities of all actions"
            )
        data = Batch(evaluation_dataset_as_transitions)
        self.all_reward_model_rewards = predictions(reward_model, data.states(network_keys), batch_size)
        self.all_rewards = np.asarray(data.rewards(), np.float64)
        self.all_actions = np.asarray(data.actions())
        self.all_old_policy_probs = data.info(BEHAVIOUR)[np.arange(len(data)), self.all_actions]

    def evaluate(
        self,
        evaluation_dataset_as_episodes: Sequence[Episode],
        evaluation_dataset_as_transitions: Sequence[Transition],
        batch_size: int,
        discount_factor: float,
        q_network: Any,
        network_keys: Sequence[str],
    ) -> OpeEstimation:
        """Estimate the value of the policy of ``q_network``.

        Values and probabilities are written into the ``info`` of the transitions, so the episodes must consist of these
        transitions.

        :param q_network: a network with the value of each action
        :return: estimates of the reward per step: ``ips`` (inverse propensity score), ``dm`` (direct method) and ``dr``
            (doubly robust). Estimates of the discounted return per episode: ``seq_dr`` (sequential doubly robust) and
            ``wis`` (weighted importance sampling; NaN if the policy has probability 0 for each recorded episode)
        :raises CoachError: if ``gather_static_shared_stats`` was not called before with these transitions
        """
        model, transitions = self.all_reward_model_rewards, evaluation_dataset_as_transitions
        if model is None or len(model) != len(transitions):
            raise CoachError("call gather_static_shared_stats with this data set before evaluate")
        data = Batch(transitions)
        values = predictions(q_network, data.states(network_keys), batch_size)
        policy = self.policy(values, data.state_columns)
        for transition, q, probabilities in zip(transitions, values, policy):
            transition.update_info({ACTION_VALUES: q, TARGET: probabilities, VALUE: float(probabilities @ q)})
        self._value_last_states(evaluation_dataset_as_episodes, q_network, network_keys, batch_size)
        chosen = policy[np.arange(len(data)), self.all_actions]
        stats = OpeSharedStats(
            model,
            policy,
            np.sum(policy * model, axis=1),
            self.all_rewards,
            self.all_actions,
            self.all_old_policy_probs,
            chosen,
            chosen / self.all_old_policy_probs,
        )
        return OpeEstimation(
            *DoublyRobust.evaluate(stats),
            SequentialDoublyRobust.evaluate(evaluation_dataset_as_episodes, discount_factor),
            WeightedImportanceSampling.evaluate(evaluation_dataset_as_episodes, discount_factor),
        )

    def _value_last_states(
        self, episodes: Sequence[Episode], q_network: Any, network_keys: Sequence[str], batch_size: int
    ) -> None:
        ends = [episode[-1] for episode in episodes if len(episode) and not episode[-1].terminated]
        if not ends:
            return
        data = Batch(ends)
        values = predictions(q_network, data.next_states(network_keys), batch_size)
        for end, value in zip(ends, np.sum(self.policy(values, data.next_state_columns) * values, axis=1)):
            end.update_info({LAST_VALUE: float(value)})

    def policy(self, values: np.ndarray, states: Mapping[str, np.ndarray]) -> np.ndarray:
        """[N, A] probabilities of the target policy. With temperature 0, the best actions have equal probabilities.

        :param values: [N, A]
        :param states: [N, ...] by name, with the masks
        """
        if self.mask_name is not None:
            values = np.where(allows(np, states[self.mask_name]), values, -np.inf)
        advantages = values - values.max(axis=1, keepdims=True)
        weights = np.exp(advantages / self.temperature) if self.temperature else (advantages == 0).astype(np.float64)
        return weights / weights.sum(axis=1, keepdims=True)


def predictions(network: Any, states: dict[str, np.ndarray], batch_size: int) -> np.ndarray:
    """[N, A] float64 predictions of a network, ``batch_size`` rows at a time.

    :raises CoachError: if the network does not predict a value for each action
    """
    num_rows = len(next(iter(states.values())))
    parts = [
        network.predict({name: column[first : first + batch_size] for name, column in states.items()})
        for first in range(0, num_rows, batch_size)
    ]
    predicted = np.concatenate(parts).astype(np.float64)
    if predicted.ndim != 2:
        raise CoachError(f"off-policy evaluation needs one value for each action, not {predicted.shape[1:]} numbers")
    return predicted
