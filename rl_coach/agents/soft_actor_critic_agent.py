"""Soft actor-critic (Haarnoja et al. 2018, "Soft Actor-Critic"): with a value network, which is Coach's, or with a
learned temperature (Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications") and what was added to that:
TQC, REDQ, DroQ and CrossQ are settings of it."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.needs import HeadNeed, NetworkNeed, V
from rl_coach.agents.soft_actor_critic_parameters import (
    SACCriticNetworkParameters,
    SACPolicyNetworkParameters,
    SACValueNetworkParameters,
    SoftActorCriticAgentParameters,
    SoftActorCriticAlgorithmParameters,
    has_value_network,
    require_consistent_settings,
)
from rl_coach.agents.soft_actor_critic_rules import (
    MaximumEntropySettings,
    maximum_entropy_rule,
    soft_actor_critic_rule,
)
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import ActionInfo, Batch, RunPhase, StateType
from rl_coach.policy.action_choice import PolicyDescription, SquashedGaussianChoice
from rl_coach.spaces import require_bounded_box

__all__ = [
    "SACCriticNetworkParameters",
    "SACPolicyNetworkParameters",
    "SACValueNetworkParameters",
    "SoftActorCriticAgent",
    "SoftActorCriticAgentParameters",
    "SoftActorCriticAlgorithmParameters",
]


class SoftActorCriticAgent(Agent):
    """See the module. Networks see actions scaled to -1 and 1; the environment gets them in its own range."""

    network_needs = {
        "policy": NetworkNeed((HeadNeed("SACPolicyHeadParameters", ("mean", "log_deviation")),)),
        "q": NetworkNeed((HeadNeed("SACQHeadParameters", ("quantiles",), ("q1", "q2")),)),
        "v": NetworkNeed((V,), has_target=True),
    }
    acting_networks = ("policy",)

    @property
    def is_on_policy(self) -> bool:
        return False

    def init_environment_dependent_modules(self) -> None:
        action = require_bounded_box(self.spaces.action, self.name)
        require_consistent_settings(self.ap)
        self._choice = SquashedGaussianChoice(
            centre=((action.high + action.low) / 2).astype(np.float32),
            radius=((action.high - action.low) / 2).astype(np.float32),
        )
        period = self.ap.algorithm.update_policy_every_x_training_steps
        names = ("policy", "temperature")
        self.learning_periods = {name: period for name in names if name in self.ap.network_wrappers}
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        if has_value_network(self.ap):
            return soft_actor_critic_rule(1.0 if algorithm.temperature is None else algorithm.temperature)
        entropy = algorithm.target_entropy
        settings = MaximumEntropySettings(
            temperature=algorithm.temperature,
            target_entropy=-float(self.spaces.action.num_elements) if entropy is None else float(entropy),
            policy_uses_mean_of_critics=algorithm.policy_uses_mean_of_critics,
            dropped_quantiles=algorithm.top_quantiles_to_drop,
            has_target=self.networks["q"].has_target,
            has_subset=algorithm.num_critics_in_target is not None,
        )
        return maximum_entropy_rule(settings)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["actions"] = (batch.action_column - self._choice.centre) / self._choice.radius
        columns["extra/noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        if not has_value_network(self.ap):
            columns["extra/next_noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        if self.ap.algorithm.num_critics_in_target is not None:
            columns["extra/critics"] = self._random_critics(len(columns["actions"]))
        return columns

    def _random_critics(self, rows: int) -> np.ndarray:
        """[rows, critics] float32, 1 for those that make the target; the same in all rows of an update."""
        critics = self.ap.network_wrappers["q"].heads_parameters[0].num_critics
        updates, rest = divmod(rows, self.update_loop.batch_size)
        ranks = self.rng.random((updates + (rest > 0), critics)).argsort(axis=1)
        chosen = (ranks < self.ap.algorithm.num_critics_in_target).astype(np.float32)
        return np.repeat(chosen, self.update_loop.batch_size, axis=0)[:rows]

    def get_prediction(self, states: StateType | list[StateType]) -> list[np.ndarray]:
        """The policy's mean and log deviation, each [B, A], before squashing."""
        return self.networks["policy"].online_network.predict(self.prepare_batch_for_inference(states, "policy"))

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        outputs = self.get_prediction(states)
        return [[output[row] for output in outputs] for row in range(len(states))]

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        outputs = self.acting_prediction(curr_state)
        if self.exploration_policy.draws_from_features and self._phase is RunPhase.TRAIN:
            mean, _, *features = outputs
            u = self.exploration_policy.get_action([mean, *features])
            return ActionInfo(self._choice.centre + self._choice.radius * np.tanh(u))
        deterministic = self._phase is RunPhase.TEST and self.ap.algorithm.use_deterministic_for_evaluation
        rows = [output[None] for output in outputs[:2]]
        return ActionInfo(self._choice.choose(rows, None, self.rng, deterministic)[0])

    def policy_description(self) -> PolicyDescription:
        return PolicyDescription("policy", self.networks["policy"].outputs_named("mean", "log_deviation"), self._choice)
