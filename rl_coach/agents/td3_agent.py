"""Twin delayed DDPG (Fujimoto et al. 2018, "Addressing function approximation error in actor-critic methods")."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np

from rl_coach.agents.ddpg_agent import DDPGAgent
from rl_coach.agents.deterministic_policy_rules import td3_rule
from rl_coach.agents.needs import ACTOR, HeadNeed, NetworkNeed
from rl_coach.agents.td3_parameters import (
    TD3ActorNetworkParameters,
    TD3AgentExplorationParameters,
    TD3AgentParameters,
    TD3AlgorithmParameters,
    TD3CriticNetworkParameters,
)
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.core_types import Batch
from rl_coach.utils import CoachError

__all__ = [
    "TD3ActorNetworkParameters",
    "TD3Agent",
    "TD3AgentExplorationParameters",
    "TD3AgentParameters",
    "TD3AlgorithmParameters",
    "TD3CriticNetworkParameters",
]

TWIN_CRITICS = HeadNeed("TD3VHeadParameters", ("critics", "q", "first"))
UPDATES_OF_A_CALL = 50


class TD3Agent(DDPGAgent):
    """See the module."""

    network_needs = {
        "actor": NetworkNeed((ACTOR,), has_target=True),
        "critic": NetworkNeed((TWIN_CRITICS,), has_target=True),
    }

    def init_environment_dependent_modules(self) -> None:
        middleware, count = self.ap.network_wrappers["critic"].middleware_parameters, self.ap.algorithm.num_q_networks
        streams = middleware.num_streams if isinstance(middleware, FCMiddlewareParameters) else count
        if streams != count:
            raise CoachError(
                f"num_q_networks of agent '{self.name}' is {self.ap.algorithm.num_q_networks}, and its critic has "
                f"{streams} streams: set num_streams of the critic's middleware_parameters likewise"
            )
        self.learning_periods = {"actor": self.ap.algorithm.update_policy_every_x_episode_steps}
        if self.ap.algorithm.act_for_full_episodes:  # whose length differs: calls are compiled once
            self.most_updates_per_call = UPDATES_OF_A_CALL
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> UpdateRule:
        algorithm, critic = self.ap.algorithm, self.ap.network_wrappers["critic"]
        return td3_rule(
            algorithm.policy_noise, algorithm.noise_clipping, self.spaces.action, algorithm.action_penalty,
            algorithm.clip_critic_targets, critic.replace_mse_with_huber_loss,
        )  # fmt: skip

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["extra/noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        return columns

    def updates_of_full_episodes(self, steps: int) -> int:
        """Number of updates that follow episodes of ``steps`` steps in all."""
        return steps

    def _steps_at_once(self) -> int:
        """Number of steps that have just ended an episode in each environment, or arrived together."""
        if self.is_played_elsewhere:
            return self.clock.steps_at_once
        return self.episode.steps * (1 if self.parallel is None else self.parallel.count)

    def train(self) -> SupportsFloat:
        if not self.ap.algorithm.act_for_full_episodes:
            return super().train()
        if not (self.can_train and self.should_train()):
            return 0.0
        # steps of the heatup are not caught up with
        played = min(self.total_steps_counter - self.clock.last_phase, self._steps_at_once())
        updates = self.updates_of_full_episodes(played)
        self.clock.start_phases(self.total_steps_counter, self.current_episode)
        loss = self.update_loop.learn(updates if self.updates_left is None else min(updates, self.updates_left))
        self.post_training_commands()
        return loss
