"""Environments that do nothing. With them, a benchmark measures only the time of Coach."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.multi_agent_environment import MultiAgentEnvironment
from rl_coach.spaces import DiscreteActionSpace, StateSpace, VectorObservationSpace


class NullEnvironment(gymnasium.Env):
    """An environment with observations of four zeros, two actions, and episodes of 1,000 steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self._steps = 0
        self._zeros = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        self._steps = 0
        return self._zeros, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._steps += 1
        return self._zeros, 0.0, self._steps >= 1_000, False, {}


class NullVectorEnvironment(VectorEnv):
    """Many copies of ``NullEnvironment`` that never end."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}

    def __init__(self, num_envs: int):
        self.num_envs = num_envs
        self.single_observation_space = NullEnvironment.observation_space
        self.single_action_space = NullEnvironment.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._zeros = np.zeros((num_envs, 4), np.float32)
        self._never = np.zeros(num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[np.ndarray, dict]:
        return self._zeros, {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        return self._zeros, np.zeros(self.num_envs), self._never, self._never, {}


class NullPlayers(MultiAgentEnvironment):
    """Two players, each with the spaces of ``NullEnvironment``."""

    def __init__(self, **settings: Any):
        super().__init__(num_agents=2, **settings)
        self.state_space = [StateSpace({"observation": VectorObservationSpace(4)}) for _ in range(2)]
        self.action_space = [DiscreteActionSpace(2) for _ in range(2)]
        self._steps = 0
        self.reset_internal_state(True)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self._steps = 0

    def _take_action(self, action: Any) -> None:
        self._steps += 1
        self.reward, self.done = [0.0, 0.0], [self._steps >= 1_000] * 2

    def _update_state(self) -> None:
        self.state = [{"observation": np.zeros(4, np.float32)} for _ in range(2)]


class NullPlayersParameters(EnvironmentParameters):
    """Parameters of ``NullPlayers``."""

    def __init__(self) -> None:
        super().__init__(level="NullPlayers")
        self.frame_skip = 1

    @property
    def path(self) -> str:
        return "benchmarks.null_environment:NullPlayers"
