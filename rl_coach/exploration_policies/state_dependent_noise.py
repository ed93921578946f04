"""Explores with noise that is a function of the state. The function stays the same for several steps, so actions are
smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.base_parameters import AgentParameters, NetworkParameters
from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.exploration_policy import ContinuousActionExplorationPolicy, ExplorationParameters
from rl_coach.policy.action_choice import GaussianChoice
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import number, optional, whole
from rl_coach.utils import CoachError


class StateDependentNoiseParameters(ExplorationParameters):
    """Generalised state-dependent exploration (gSDE), for PPO, actor-critic, soft actor-critic, TD3 and DDPG.

    :param agent_params: the agent's parameters; the networks must be set already
    :ivar steps_between_draws: number of steps between two draws of the noise function; 1 gives independent noise, None
        draws once for each episode
    :ivar scale: standard deviation of the function's weights, in units of the action; 0 for no exploration. It is not
        used if the agent learns the standard deviation: only TD3 and DDPG use it
    :ivar network_params: the networks; the noise depends on the features of the policy network
    """

    constraints = {"steps_between_draws": optional(whole(1)), "scale": number(0)}
    path = "rl_coach.exploration_policies.state_dependent_noise:StateDependentNoise"

    def __init__(self, agent_params: AgentParameters):
        super().__init__()
        self.steps_between_draws: int | None = None
        self.scale = 0.1
        self.network_params = agent_params.network_wrappers


class StateDependentNoise(ContinuousActionExplorationPolicy):
    """In training, chooses the mean plus the noise z(s) E. z are the features of the policy's last layer, and E [F, A]
    is drawn from N(0, scales^2) (Raffin et al. 2022, "Smooth exploration for robotic reinforcement learning", equation
    5).

    The constructor sets ``state_dependent_noise`` in the parameters of the heads, so the policy must be built before
    the networks.

    :param action_space: a box
    :param steps_between_draws: steps until E is drawn again; None draws it for each episode
    :param scale: standard deviation of E's elements if the head does not learn it
    """

    episode_attributes = ("_draw", "_steps")

    draws_from_features = True
    own_state: tuple[str, ...] = (*ContinuousActionExplorationPolicy.own_state, "draw", "steps")

    def __init__(
        self,
        action_space: ActionSpace,
        steps_between_draws: int | None,
        scale: float,
        network_params: dict[str, NetworkParameters],
    ):
        super().__init__(action_space)
        self.steps_between_draws = steps_between_draws
        self.scale = scale
        self._draw: np.ndarray | None = None
        self._steps = 0
        self._last_size = 0.0
        heads = [head for network in network_params.values() for head in network.heads_parameters]
        able = [head for head in heads if hasattr(head, "state_dependent_noise")]
        if not able:
            raise CoachError(
                "state-dependent noise needs a policy head with state_dependent_noise, as in PPO, "
                "actor-critic, soft actor-critic, TD3 and DDPG: choose one of these agents, or another exploration"
            )
        for head in able:
            head.state_dependent_noise = True

    def reset(self) -> None:
        self._draw, self._steps = None, 0

    def get_action(self, action_values: Any, action_mask: np.ndarray | None = None) -> np.ndarray:
        """Choose an action.

        :param action_values: the mean [A], the features [F], and the learned scales [F * A], if there are any
        """
        mean, features, *scales = (np.asarray(value, np.float32) for value in action_values)
        mean = mean.astype(np.float64)  # a memory also stores the actions of heatup, which are float64
        if self.phase != RunPhase.TRAIN:
            return mean
        is_over = self.steps_between_draws is not None and self._steps >= self.steps_between_draws
        if self._draw is None or is_over:
            self._draw, self._steps = self.rng.standard_normal((features.size, mean.size), np.float32), 0
        self._steps += 1
        scale = scales[0].reshape(self._draw.shape) if scales else np.float32(self.scale)
        noise = features @ (scale * self._draw)
        self._last_size = float(np.abs(noise).mean())
        return mean + noise.reshape(mean.shape)

    def action_choice(self) -> GaussianChoice:
        """The rule of a deployed policy: it uses the mean and the standard deviation."""
        return GaussianChoice()

    def get_control_param(self) -> float:
        """The mean absolute noise of the last action."""
        return self._last_size if self.phase == RunPhase.TRAIN else 0.0

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "draw": self._draw, "steps": self._steps}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._draw, self._steps = state["draw"], state["steps"]
