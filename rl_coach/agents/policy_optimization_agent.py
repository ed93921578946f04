"""Base of the agents that learn a policy from whole episodes or segments of them."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.compat import Delegated
from rl_coach.agents.core.episode import SegmentedEpisode
from rl_coach.agents.core.experience import Played
from rl_coach.agents.core.policy_gradient_rescaler import PolicyGradientRescaler
from rl_coach.agents.core.segments import ReceivedSegments, SegmentStart
from rl_coach.architectures.packing import padded, padded_sequences
from rl_coach.core_types import ActionInfo, Batch, Episode, PlayUnit, RunPhase, StateType
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import TrainingError, eps


class RunningMeans:
    """The mean of all values seen at each time step, over episodes of any length."""

    def __init__(self) -> None:
        self.counts: np.ndarray = np.zeros(0)
        self.means: np.ndarray = np.zeros(0)

    def push(self, values: np.ndarray, first: int = 0) -> None:
        """Take in one episode's values [T] from step ``first`` on."""
        end = first + len(values)
        longer = end - len(self.means)
        if longer > 0:
            self.counts = np.pad(self.counts, (0, longer))
            self.means = np.pad(self.means, (0, longer))
        self.counts[first:end] += 1
        self.means[first:end] += (values - self.means[first:end]) / self.counts[first:end]


class PolicyOptimizationAgent(Agent):
    """Learns from the episode in progress: from segments of ``num_steps_between_gradient_updates`` steps and from the
    rest of it when it ends. Segments' gradients are summed over ``apply_gradients_every_x_episodes`` episodes.

    Weights do not change in between, so the segments themselves are kept and their sum is one update on all of them.

    :cvar policy_network: the network that has the policy
    """

    learns_from_sequences = True
    trains_asynchronously = True
    max_n_step = 1
    policy_network = "main"
    explores_by_parameter = False
    episode_class = SegmentedEpisode
    episode: SegmentedEpisode
    last_gradient_update_step_idx = Delegated("episode", "num_learned")
    counters: tuple[str, ...] = (
        *Agent.counters, "mean_discounted_return", "std_discounted_return", "_episodes_gathered",
        "_steps_since_update",
    )  # fmt: skip

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.return_means = RunningMeans()
        self.mean_discounted_return = 0.0
        self.std_discounted_return = 1.0
        self._segments: list[dict[str, np.ndarray]] = []
        self._received = ReceivedSegments()
        self._episodes_gathered = 0
        self._steps_since_update = 0
        self.entropy = self.register_signal("Entropy")

    @property
    def policy_gradient_rescaler(self) -> PolicyGradientRescaler:
        """Weight of log pi(a|s)."""
        return self.ap.algorithm.policy_gradient_rescaler

    @property
    def mean_return_over_multiple_episodes(self) -> np.ndarray:
        """[T] the mean return from each time step on, over all episodes that got there; 0 where none has been yet."""
        means = self.return_means.means
        return np.pad(means, (0, max(0, self.current_episode_buffer.length() - len(means))))

    def update_episode_statistics(self, episode: Episode) -> None:
        """Take an episode's returns into the means that returns are compared with."""
        self._push_returns(np.asarray([t.n_step_discounted_rewards for t in episode.transitions]))

    def _push_returns(self, returns: np.ndarray, first: int = 0) -> None:
        self.return_means.push(returns, first)
        self.mean_discounted_return = float(returns.mean())
        self.std_discounted_return = float(returns.std())

    @property
    def learns_from_copies_together(self) -> bool:
        """True if the segments in all copies of the environment, which then end at the same step, make one update."""
        return False

    @property
    def episodes_per_update(self) -> int:
        """Number of episodes whose segments make one update; with 1 each segment makes one."""
        return self.ap.algorithm.apply_gradients_every_x_episodes

    # segments that other processes play

    @property
    def needs_newest_policy(self) -> bool:
        return True

    @property
    def segment_steps(self) -> int | None:
        return self.ap.algorithm.num_steps_between_gradient_updates

    def left_to_play(self) -> tuple[int, PlayUnit]:
        """A segment by each process where each makes an update, or all of them make one; otherwise the episodes that
        one update sums."""
        episodes = self.episodes_per_update
        if episodes > 1 and not self.learns_from_copies_together:
            return max(0, episodes - self._received.num_complete), PlayUnit.EPISODES
        return max(0, self.num_players - len(self._received)), PlayUnit.SEGMENTS

    def take_in(self, played: Played) -> None:
        starts = self._received.starts_of(played, self.recurrent_state)
        super().take_in(played)
        if self.phase is not RunPhase.HEATUP:
            self._received.add(played, starts)

    def _train_on_received(self) -> float:
        """Learn from what other processes have played, once it is enough. :return: the loss"""
        if self.left_to_play()[0] > 0 or not len(self._received) or self.updates_left == 0:
            return 0.0
        own, loss = self.episode, 0.0
        segments = self._received.take()
        for segment, start in segments if self._sums_segments else segments[: self.updates_left]:
            loss += self._learn_received(segment, start)
        self.episode = own
        return loss + self._update_on_segments() if self._segments else loss

    def _learn_received(self, segment: Batch, start: SegmentStart) -> float:
        self.episode = self.episode_class(self.ap.algorithm)
        self.episode.num_learned, self.episode.state_before_segment = start.first, start.states
        if start.is_complete:
            self._push_returns(segment.n_step_discounted_rewards(), start.first)
        return self._learn_segment(self.update_loop.filtered(segment))

    # learning

    def train(self) -> float:
        if self.is_played_elsewhere:
            return self._train_on_received()
        algorithm, together = self.ap.algorithm, self.learns_from_copies_together
        self._steps_since_update += 1
        ends_segments = together and self._steps_since_update >= algorithm.num_steps_between_gradient_updates
        loss = 0.0
        has_segment = partial(self._has_segment, ends_segment=ends_segments)
        if self.parallel is None:
            loss += self._train_on_episode() if has_segment(self.episode) else 0.0
        else:
            loss += sum(self._train_on_episode() for _ in self.parallel.those_where(has_segment))
        if together and not ends_segments:
            return loss
        if self._segments and (together or self._episodes_gathered >= self.episodes_per_update):
            loss += self._update_on_segments()
        return loss

    def _has_segment(self, episode: SegmentedEpisode, ends_segment: bool) -> bool:
        """True if an episode's newest segment is to be learned from.

        :param ends_segment: the segment ends here, though it may not be full
        """
        passed = episode.buffer.length() - episode.num_learned
        is_full = passed >= self.ap.algorithm.num_steps_between_gradient_updates
        return passed > 0 and (is_full or ends_segment or episode.buffer.is_complete) and self.updates_left != 0

    def _train_on_episode(self) -> float:
        """Learn from the present episode's newest segment, or take it to those that are learned from together.

        :return: the loss, 0 if nothing was learned
        """
        buffer, learned = self.episode.buffer, self.last_gradient_update_step_idx
        if buffer.is_complete:
            self.update_episode_statistics(buffer)
            self._episodes_gathered += 1
        else:
            buffer.update_discounted_rewards(learned)
        loss = self._learn_segment(self.update_loop.filtered(Batch(buffer.transitions[learned:])))
        self.last_gradient_update_step_idx = buffer.length()
        self.episode.state_before_segment = dict(self.recurrent_state)
        return loss

    def _learn_segment(self, segment: Batch) -> float:
        if not self.learns_by_rule:
            loss = self.update_loop.learn_from_batch(segment)
            self.update_loop.close_phase()
            return loss
        self._segments.append(self.learning_columns(segment))
        return 0.0 if self._sums_segments else self._update_on_segments()

    @property
    def _sums_segments(self) -> bool:
        return self.episodes_per_update > 1 or self.learns_from_copies_together

    def _update_on_segments(self) -> float:
        segments = self._segments
        if self.learns_from_copies_together:
            rows = sum(len(segment["weights"]) for segment in segments)
            for segment in segments:
                segment["weights"] = np.full_like(segment["weights"], 1.0 / rows)
        self._segments, self._episodes_gathered, self._steps_since_update = [], 0, 0
        if self.is_recurrent and len(segments) > 1:
            columns, length = padded_sequences(segments)
            return self._update(columns, sequence_length=length)
        return self._update(padded({name: np.concatenate([s[name] for s in segments]) for name in segments[0]}))

    def _update(self, columns: dict[str, np.ndarray], **how: Any) -> float:
        """Make an update. :return: the loss"""
        result = self.update_loop.update(columns, **how)
        self.training_iteration += 1
        self.update_loop.close_phase()
        return float(sum(loss[0] for loss in result.losses.values()))

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns for the update rule of a segment that begins at step ``last_gradient_update_step_idx`` of its
        episode. Each row weighs 1 / T, so that a segment's rows give its mean."""
        found = {f"states/{name}": batch.state_columns[name] for name in self.update_loop.input_names}
        found["actions"] = batch.action_column
        found["weights"] = np.full(len(batch), 1.0 / len(batch), np.float32)
        if self.is_recurrent:
            before = self.episode.state_before_segment
            for name, state in self.recurrent_state.items():
                # every row has it, for columns have equal lengths; the first one's is where the network starts
                found[f"states/{name}"] = np.repeat(before.get(name, np.zeros_like(state)), len(batch), axis=0)
        return found

    def get_prediction(self, states: StateType | list[StateType]) -> list[np.ndarray]:
        """The network's outputs for one state or a list of them, a list with an array for each."""
        inputs = self.prepare_batch_for_inference(states, self.policy_network)
        return self.networks[self.policy_network].online_network.predict(inputs, squeeze_output=False)

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        """For each state those of the network's outputs that an action is chosen by."""
        outputs = self.policy_outputs(self.get_prediction(states))
        return [[output[row] for output in outputs] for row in range(len(states))]

    def policy_outputs(self, predictions: list[np.ndarray]) -> list[np.ndarray]:
        """Those of the network's outputs that an action is chosen by."""
        names = self.networks[self.policy_network].online_network.output_names
        return [value for name, value in zip(names, predictions) if name in self._acting_output_names]

    @cached_property
    def _acting_output_names(self) -> tuple[str, ...]:
        if not self.exploration_policy.draws_from_features:
            return self._policy_output_names
        return self.networks[self.policy_network].outputs_named("mean", "features", "noise_scales")

    @property
    def _policy_output_names(self) -> tuple[str, ...]:
        return self.networks[self.policy_network].outputs_named("probabilities", "mean", "standard_deviation")

    def policy_description(self) -> PolicyDescription | None:
        choice = self.exploration_policy.action_choice()
        return None if choice is None else PolicyDescription(self.policy_network, self._policy_output_names, choice)

    def _draw(self, outputs: Any, mask: np.ndarray | None) -> Any:
        """The exploration policy's choice.

        :raises TrainingError: the policy has diverged; names network and step
        """
        try:
            return self.exploration_policy.choose(outputs, mask)
        except TrainingError as error:
            step, updates = self.total_steps_counter, self.training_iteration
            raise TrainingError(
                f"network '{self.policy_network}' at step {step}, after {updates} updates: {error}"
            ) from error

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        outputs, mask = self.acting_prediction(curr_state), self.spaces.action_mask(curr_state)
        if not isinstance(self.spaces.action, DiscreteActionSpace):
            return ActionInfo(np.atleast_1d(self._draw(outputs, mask)))
        action, probabilities = self._draw(outputs[0], mask)
        # a few dozen numbers at most: faster one by one than as an array
        self.entropy.add_sample(-sum(p * math.log(p + eps) for p in probabilities.tolist()))
        return ActionInfo(action, all_action_probabilities=probabilities)

    def get_state(self) -> dict[str, Any]:
        means = self.return_means
        return {
            **super().get_state(),
            "returns": {"counts": means.counts, "means": means.means},
            "segments": {f"{i:04d}": segment for i, segment in enumerate(self._segments)},
            "received": self._received.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        returns = state["returns"]
        self.return_means.counts = returns["counts"].copy()
        self.return_means.means = returns["means"].copy()
        self._segments = [state["segments"][name] for name in sorted(state["segments"])]
        self._received.set_state(state["received"])
