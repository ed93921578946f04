"""Base classes of the agents with a policy network. ``PolicyOptimizationAgent`` learns from segments of episodes."""

from __future__ import annotations

import contextlib
import math
from functools import cached_property
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.compat import delegated
from rl_coach.agents.core.episode import SegmentedEpisode
from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.core.segments import Segment, SegmentLearning, SegmentSettings
from rl_coach.agents.rules.advantages import PolicyGradientRescaler as PolicyGradientRescaler  # its path in Coach 1
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import ActionInfo, Batch, Episode, StateType
from rl_coach.exploration_policies.additive_noise import NoiseLevel
from rl_coach.exploration_policies.exploration_policy import deployed_choice
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.policy.drawing import allowed_probabilities
from rl_coach.spaces import DiscreteActionSpace, MultiDiscreteActionSpace
from rl_coach.utilities.requirements import FRACTION, flags, member
from rl_coach.utilities.shared_running_stats import RunningMeans
from rl_coach.utils import TrainingError, eps

ADVANTAGE_RESCALERS = (PolicyGradientRescaler.A_VALUE, PolicyGradientRescaler.GAE)
"""The values of ``policy_gradient_rescaler`` that agents with a critic support."""


class AdvantageAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of the estimates of advantages and returns.

    :ivar policy_gradient_rescaler: ``GAE``, or ``A_VALUE`` for returns minus values
    :ivar gae_lambda: lambda; 0 gives one-step advantages, 1 gives Monte Carlo returns minus values
    :ivar estimate_state_value_using_gae: True: with ``GAE``, the critic learns lambda-returns. False: it learns
        discounted returns, as with ``A_VALUE``
    """

    constraints = {
        **flags("estimate_state_value_using_gae"),
        "policy_gradient_rescaler": member(PolicyGradientRescaler, *ADVANTAGE_RESCALERS),
        "gae_lambda": FRACTION,
    }

    def __init__(self) -> None:
        super().__init__()
        self.policy_gradient_rescaler = PolicyGradientRescaler.GAE
        self.gae_lambda = 0.95
        self.estimate_state_value_using_gae = True


_CHOICES = (DiscreteActionSpace, MultiDiscreteActionSpace)


class PolicyAgent(Agent):
    """Lets the exploration policy draw actions from the outputs of a policy network.

    :cvar policy_network: the network with the policy
    """

    max_n_step = 1
    policy_network = "main"
    explores_by_parameter = False

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.entropy = self.register_signal("Entropy")

    @property
    def policy_gradient_rescaler(self) -> PolicyGradientRescaler:
        """Weight of log pi(a|s)."""
        return self.ap.algorithm.policy_gradient_rescaler

    def get_prediction(self, states: StateType | list[StateType]) -> list[np.ndarray]:
        """The network's outputs for one state or a list of states: a list with an array for each output."""
        inputs = self.prepare_batch_for_inference(states, self.policy_network)
        return self.networks[self.policy_network].online_network.predict(inputs, squeeze_output=False)

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        """The outputs of the network that decide the action, for each state."""
        outputs = self.policy_outputs(self.get_prediction(states))
        return [[output[row] for output in outputs] for row in range(len(states))]

    def policy_outputs(self, predictions: list[np.ndarray]) -> list[np.ndarray]:
        """The network's outputs from which the action is chosen."""
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

    @property
    def evaluation_deviation(self) -> Any:
        """The standard deviation of the noise of continuous actions in evaluations, a number or [D]. None if the
        exploration policy has no evaluation noise, for example for discrete actions."""
        policy = self.actor.exploration_policy
        return policy.evaluation_deviation if isinstance(policy, NoiseLevel) else None

    def policy_description(self) -> PolicyDescription | None:
        choice = deployed_choice(self.exploration_policy)
        return None if choice is None else PolicyDescription(self.policy_network, self._policy_output_names, choice)

    def _draw(self, outputs: Any, mask: np.ndarray | None) -> Any:
        """The exploration policy's choice. :raises TrainingError: if the policy has diverged"""
        policy = self.actor.exploration_policy
        with self._explaining_divergence():
            return policy.get_action(outputs) if mask is None else policy.get_action(outputs, mask)

    @contextlib.contextmanager
    def _explaining_divergence(self) -> Iterator[None]:
        """Add the network's name and the step to an error of the exploration policy."""
        try:
            yield
        except TrainingError as error:
            step, updates = self.total_steps_counter, self.training_iteration
            source = f"; {self.watch.source}" if self.watch.source else ""
            raise TrainingError(
                f"network '{self.policy_network}' at step {step}, after {updates} updates: {error}{source}"
            ) from error

    def choose_actions(self, states: StateColumns) -> np.ndarray:
        outputs, masks = self.policy_outputs(self.get_prediction(states)), self.spaces.action_mask(states)
        is_discrete, count = isinstance(self.spaces.action, _CHOICES), len(outputs[0])
        with self._explaining_divergence():
            actions = self.exploration_policy.get_actions(lambda: outputs[0] if is_discrete else outputs, count, masks)
        if is_discrete:
            probabilities = outputs[0] if masks is None else allowed_probabilities(outputs[0], masks)
            self.entropy.add_sample(-(probabilities * np.log(probabilities + eps)).reshape(count, -1).sum(axis=1))
        return actions

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        outputs, mask = self.acting_prediction(curr_state), self.spaces.action_mask(curr_state)
        if not isinstance(self.spaces.action, _CHOICES):
            return ActionInfo(np.atleast_1d(self._draw(outputs, mask)))
        action, probabilities = self._draw(outputs[0], mask)
        # a few dozen numbers at most: faster one by one than as an array
        self.entropy.add_sample(-sum(p * math.log(p + eps) for p in probabilities.ravel().tolist()))
        return ActionInfo(action, all_action_probabilities=probabilities)


class PolicyOptimizationAgent(PolicyAgent):
    """Learns from each segment of ``num_steps_between_gradient_updates`` steps, or from all segments of
    ``apply_gradients_every_x_episodes`` episodes at once if this number is above 1.
    """

    learns_from_sequences = True
    trains_asynchronously = True
    episode_class = SegmentedEpisode
    episode: SegmentedEpisode
    last_gradient_update_step_idx = delegated("episode", "num_learned")
    counters: tuple[str, ...] = (*Agent.counters, "mean_discounted_return", "std_discounted_return")

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.return_means = RunningMeans()
        # agents that were written for Coach 1.0.1 read these two
        self.mean_discounted_return = 0.0
        self.std_discounted_return = 1.0

    @property
    def mean_return_over_multiple_episodes(self) -> np.ndarray:
        """[T], the mean return from each time step on, over all episodes that reached this step; 0 if none did."""
        means = self.return_means.means
        return np.pad(means, (0, max(0, self.current_episode_buffer.length() - len(means))))

    def update_episode_statistics(self, episode: Episode) -> None:
        """Add an episode's returns to the mean returns, the baseline of later returns."""
        self._push_returns(np.asarray([t.n_step_discounted_rewards for t in episode.transitions]))

    def _push_returns(self, returns: np.ndarray, first: int = 0) -> None:
        self.return_means.push(returns, first)
        self.mean_discounted_return = float(returns.mean())
        self.std_discounted_return = float(returns.std())

    def note_returns(self, segment: Segment) -> None:
        """Add the returns of an episode that has ended to the mean returns. If another process played the episode, add
        only the returns of its last segment."""
        if segment.copy is None:  # another process played the episode, so only its segments are here
            self._push_returns(segment.n_step_discounted_rewards(), segment.start.first)
        else:
            self.update_episode_statistics(self.episode.buffer)

    def segment_settings(self) -> SegmentSettings:
        """The settings of updates on segments."""
        algorithm = self.ap.algorithm
        return SegmentSettings(
            algorithm.num_steps_between_gradient_updates, max(1, algorithm.apply_gradients_every_x_episodes)
        )

    def make_learning(self, **parts: Any) -> SegmentLearning:
        """The object that learns from the played segments. :param parts: further arguments of ``SegmentLearning``"""
        return SegmentLearning(self, **parts)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        return Segment.of(batch).columns(self.update_loop.input_names, self.recurrent_state)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "returns": self.return_means.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.return_means.set_state(state["returns"])
