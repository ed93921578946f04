"""Policy gradients (Williams 1992, "Simple statistical gradient-following algorithms", REINFORCE)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.requirements import POLICY, NetworkRequirement, unknown_rescaler
from rl_coach.agents.core.segments import Segment
from rl_coach.agents.policy_optimization_agent import PolicyOptimizationAgent
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.architectures.head_parameters import PolicyHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.policies import entropy, log_probability, mask_of, masked
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import Batch
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import categorical_or
from rl_coach.memories.episodic.single_episode_buffer import SingleEpisodeBufferParameters
from rl_coach.utilities.requirements import member, number, whole
from rl_coach.utils import CoachError

_RESCALERS = (
    PolicyGradientRescaler.TOTAL_RETURN,
    PolicyGradientRescaler.FUTURE_RETURN,
    PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_EPISODE,
    PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_TIMESTEP,
)


class PolicyGradientNetworkParameters(FullyConnectedParameters):
    """The policy network."""

    def __init__(self) -> None:
        super().__init__(PolicyHeadParameters())
        self.async_training = True


class PolicyGradientAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of policy gradients.

    :ivar policy_gradient_rescaler: the factor of log pi(a|s) in the loss, such as the return
    :ivar apply_gradients_every_x_episodes: number of episodes in one update; their gradients are added
    :ivar beta_entropy: weight of the entropy bonus in the policy's loss; 0 removes the bonus
    :ivar num_steps_between_gradient_updates: the largest number of steps in a segment
    """

    constraints = {
        "policy_gradient_rescaler": member(PolicyGradientRescaler, *_RESCALERS),
        "beta_entropy": number(),
        "num_steps_between_gradient_updates": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.policy_gradient_rescaler = PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_TIMESTEP
        self.apply_gradients_every_x_episodes = 5
        self.beta_entropy: float = 0
        self.num_steps_between_gradient_updates = 20000


class PolicyGradientsAgentParameters(AgentParameters):
    """Policy gradients that sample from the policy."""

    algorithm_names = ("PG", "PolicyGradients", "REINFORCE")
    path = "rl_coach.agents.policy_gradients_agent:PolicyGradientsAgent"
    algorithm: PolicyGradientAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=PolicyGradientAlgorithmParameters(),
            exploration=categorical_or(AdditiveNoiseParameters()),
            memory=SingleEpisodeBufferParameters(),
            networks={"main": PolicyGradientNetworkParameters()},
        )


def policy_gradient_rule(beta_entropy: float, mask_name: str | None, loss_weight: float = 1.0) -> UpdateRule:
    """The loss -sum_t w_t (loss_weight log pi(a_t|s_t) A_t + beta H(pi(.|s_t))), with A_t from ``extra['advantages']``
    [B].
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, weights=batch.weights, advantages=batch.extra.get("advantages"))
        policy = masked(ops, networks["main"].online(batch.states)[0], mask_of(batch, mask_name))
        log_prob = log_probability(ops, policy, batch.actions)
        loss = -loss_weight * ops.sum(batch.weights * log_prob * batch.extra["advantages"])
        if beta_entropy:
            loss = loss - beta_entropy * ops.sum(batch.weights * entropy(ops, policy))
        return Update({"main": loss})

    return rule


class PolicyGradientsAgent(PolicyOptimizationAgent):
    """REINFORCE: learns from the returns of whole episodes, without a critic."""

    max_n_step = 0
    network_requirements = {"main": NetworkRequirement((POLICY,))}
    acts_in_parts = True
    rescalers = _RESCALERS
    is_on_policy = True

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.returns_mean = self.register_signal("Returns Mean")
        self.returns_variance = self.register_signal("Returns Variance")

    def make_update_rule(self) -> UpdateRule:
        policy = self.ap.network_wrappers["main"].heads_parameters[0]
        return policy_gradient_rule(self.ap.algorithm.beta_entropy, self.spaces.action_mask_name, policy.loss_weight)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        segment = Segment.of(batch)
        returns = segment.n_step_discounted_rewards()
        advantages = self.rescaled(returns, segment.start.first)
        self.returns_mean.add_sample(returns.mean())
        self.returns_variance.add_sample(returns.std())
        return {**super().learning_columns(segment), "extra/advantages": advantages.astype(np.float32)}

    def rescaled(self, returns: np.ndarray, first: int) -> np.ndarray:
        """[T], the factor of log pi(a|s) in each step. ``returns`` [T] begin at step ``first`` of the episode."""
        rescaler = self.policy_gradient_rescaler
        if rescaler == PolicyGradientRescaler.TOTAL_RETURN:
            return np.full_like(returns, returns[0])
        if rescaler == PolicyGradientRescaler.FUTURE_RETURN:
            return returns
        if rescaler == PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_EPISODE:
            # not the statistics of the last episode: a part of an episode is learned from before the episode ends
            deviation = returns.std()
            return (returns - returns.mean()) / deviation if deviation else np.zeros_like(returns)
        if rescaler == PolicyGradientRescaler.FUTURE_RETURN_NORMALIZED_BY_TIMESTEP:
            means = self.return_means.means[first : first + len(returns)]
            return returns - np.pad(means, (0, len(returns) - len(means)))
        raise CoachError(unknown_rescaler(self.name, rescaler, self.rescalers))
