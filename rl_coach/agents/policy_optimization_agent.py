"""What agents share that learn a policy from whole episodes or segments of them."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.architectures.packing import padded
from rl_coach.core_types import ActionInfo, Batch, Episode, StateType
from rl_coach.policy.action_choice import CategoricalChoice, GaussianChoice, PolicyDescription
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError, eps


class PolicyGradientRescaler(Enum):
    """What weighs log pi(a|s) in a policy's gradient."""

    TOTAL_RETURN = 0
    FUTURE_RETURN = 1
    FUTURE_RETURN_NORMALIZED_BY_EPISODE = 2
    FUTURE_RETURN_NORMALIZED_BY_TIMESTEP = 3
    Q_VALUE = 4
    A_VALUE = 5
    TD_RESIDUAL = 6
    DISCOUNTED_TD_RESIDUAL = 7
    GAE = 8


class RunningMeans:
    """The mean of all values seen at each time step, over episodes of any length."""

    def __init__(self) -> None:
        self.counts: np.ndarray = np.zeros(0)
        self.means: np.ndarray = np.zeros(0)

    def push(self, values: np.ndarray) -> None:
        """Take in one episode's values [T]."""
        longer = len(values) - len(self.means)
        if longer > 0:
            self.counts = np.pad(self.counts, (0, longer))
            self.means = np.pad(self.means, (0, longer))
        self.counts[: len(values)] += 1
        self.means[: len(values)] += (values - self.means[: len(values)]) / self.counts[: len(values)]


class PolicyOptimizationAgent(Agent):
    """Learns from the episode in progress: from segments of ``num_steps_between_gradient_updates`` steps and from the
    rest of it when it ends. Segments' gradients are summed over ``apply_gradients_every_x_episodes`` episodes.

    Weights do not change in between, so the segments themselves are kept and their sum is one update on all of them.
    """

    learns_from_sequences = True

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.last_gradient_update_step_idx = 0
        self.return_means = RunningMeans()
        self.mean_discounted_return = 0.0
        self.std_discounted_return = 1.0
        self._segments: list[dict[str, np.ndarray]] = []
        self.entropy = self.register_signal("Entropy")

    @property
    def policy_gradient_rescaler(self) -> PolicyGradientRescaler:
        """What weighs log pi(a|s)."""
        return self.ap.algorithm.policy_gradient_rescaler

    @property
    def mean_return_over_multiple_episodes(self) -> np.ndarray:
        """[T] the mean return from each time step on, over all episodes that got there; 0 where none has been yet."""
        means = self.return_means.means
        return np.pad(means, (0, max(0, self.current_episode_buffer.length() - len(means))))

    def reset_internal_state(self) -> None:
        super().reset_internal_state()
        self.last_gradient_update_step_idx = 0

    def update_episode_statistics(self, episode: Episode) -> None:
        """Take an episode's returns into the means that returns are compared with."""
        returns = np.asarray([t.n_step_discounted_rewards for t in episode.transitions])
        self.return_means.push(returns)
        self.mean_discounted_return = float(returns.mean())
        self.std_discounted_return = float(returns.std())

    def train(self) -> float:
        if self.lanes is None:
            return self._train_on_episode()
        return sum(self._train_on_episode() for _ in self.lanes)

    def _train_on_episode(self) -> float:
        episode = self.current_episode_buffer
        passed = episode.length() - self.last_gradient_update_step_idx
        is_segment_full = passed >= self.ap.algorithm.num_steps_between_gradient_updates
        if passed <= 0 or not (is_segment_full or episode.is_complete):
            return 0.0
        if self.updates_left == 0:
            return 0.0
        if episode.is_complete:
            self.update_episode_statistics(episode)
        else:
            episode.update_discounted_rewards()
        loss = self._learn_segment(Batch(episode.transitions[self.last_gradient_update_step_idx :]))
        self.last_gradient_update_step_idx = episode.length()
        return loss

    def _learn_segment(self, segment: Batch) -> float:
        segment = self.run_pre_network_filter(segment)
        if type(self).learn_from_batch is not PolicyOptimizationAgent.learn_from_batch:
            result = self.learn_from_batch(segment)
        else:
            self._segments.append(self.segment_columns(segment))
            if self._sums_segments and self.current_episode % self.ap.algorithm.apply_gradients_every_x_episodes:
                return 0.0
            result = self._apply()
        loss, _, gradients = result[:3]
        self.training_iteration += 1
        self.loss.add_sample(loss)
        self.unclipped_grads.add_sample(gradients)
        self._log_training()
        return float(loss)

    @property
    def _sums_segments(self) -> bool:
        if self.ap.algorithm.apply_gradients_every_x_episodes <= 1:
            return False
        if any(network.is_recurrent for network in self.networks.values()):
            raise CoachError(
                f"agent '{self.name}' has a recurrent network, which learns one sequence at a time: "
                f"set apply_gradients_every_x_episodes to 1"
            )
        return True

    def _apply(self) -> tuple[float, list[float], float]:
        columns = {name: np.concatenate([s[name] for s in self._segments]) for name in self._segments[0]}
        self._segments = []
        result = self.learner.train(padded(columns), self.learning_scalars())
        self._log_rule_signals(result)
        losses = [float(loss[0]) for loss in result.losses.values()]
        return sum(losses), losses, float(next(iter(result.gradient_norms.values()))[0])

    def learn_from_batch(self, batch: Batch) -> tuple[float, list[float], float]:
        """One update on one segment, which the pre-network filters have passed already.

        Overridden by agents that compute their targets themselves; then each segment is an update of its own.

        :return: the loss, each network's loss, and the gradients' norm before clipping
        """
        self._segments.append(self.segment_columns(batch))
        return self._apply()

    def segment_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns for the update rule of a segment that begins at step ``last_gradient_update_step_idx`` of its
        episode. Each row weighs 1 / T, so that a segment's rows give its mean."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it learns from a segment")

    def _common_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        found = {f"states/{name}": batch.state_columns[name] for name in self._learning_inputs}
        found["actions"] = batch.action_column
        found["weights"] = np.full(len(batch), 1.0 / len(batch), np.float32)
        return found

    def get_prediction(self, states: StateType | list[StateType]) -> list[np.ndarray]:
        """The network's outputs for one state or a list of them, a list with an array for each."""
        inputs = self.prepare_batch_for_inference(states, "main")
        return self.networks["main"].online_network.predict(inputs, squeeze_output=False)

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        """For each state those of the network's outputs that make the policy."""
        outputs = self.policy_outputs(self.get_prediction(states))
        return [[output[row] for output in outputs] for row in range(len(states))]

    def policy_outputs(self, predictions: list[np.ndarray]) -> list[np.ndarray]:
        """Those of the network's outputs that make the policy."""
        names = self.networks["main"].online_network.output_names
        chosen = self._policy_output_names
        return [value for name, value in zip(names, predictions) if name in chosen]

    @property
    def _policy_output_names(self) -> tuple[str, ...]:
        return self._outputs_named("main", "probabilities", "mean", "standard_deviation")

    def policy_description(self) -> PolicyDescription | None:
        is_discrete = isinstance(self.spaces.action, DiscreteActionSpace)
        choice = CategoricalChoice() if is_discrete else GaussianChoice()
        return PolicyDescription("main", self._policy_output_names, choice)

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        outputs = self.acting_prediction(curr_state)
        if not isinstance(self.spaces.action, DiscreteActionSpace):
            return ActionInfo(np.atleast_1d(self._explore(outputs, curr_state)))
        action, probabilities = self._explore(outputs[0], curr_state)
        # a few dozen numbers at most: faster one by one than as an array
        self.entropy.add_sample(-sum(p * math.log(p + eps) for p in probabilities.tolist()))
        return ActionInfo(action, all_action_probabilities=probabilities)

    _episode_fields: tuple[str, ...] = (*Agent._episode_fields, "last_gradient_update_step_idx")
    _counters: tuple[str, ...] = (*Agent._counters, "mean_discounted_return", "std_discounted_return")

    def get_state(self) -> dict[str, Any]:
        means = self.return_means
        return {
            **super().get_state(),
            "returns": {"counts": means.counts, "means": means.means},
            "segments": {f"{i:04d}": segment for i, segment in enumerate(self._segments)},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        returns = state["returns"]
        self.return_means.counts = returns["counts"].copy()
        self.return_means.means = returns["means"].copy()
        self._segments = [state["segments"][name] for name in sorted(state["segments"])]
