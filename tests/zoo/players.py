"""Environments of several players that can be predicted, in the form of lists by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.multi_agent_environment import MultiAgentEnvironment
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager
from rl_coach.spaces import DiscreteActionSpace, StateSpace, VectorObservationSpace
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit
from tests.zoo.graphs import schedule


class SideBySide(MultiAgentEnvironment):
    """Two bandits that know nothing of each other."""

    def __init__(self, **settings: Any):
        super().__init__(num_agents=2, **settings)
        self.parts = [self._part(index) for index in range(2)]
        self.state_space = [part.state_space for part in self.parts]
        self.action_space = [part.action_space for part in self.parts]

    def _part(self, index: int) -> Bandit:
        return Bandit(
            level="Bandit", seed=self.seed + index, frame_skip=1, human_control=False, custom_reward_threshold=None,
            visualization_parameters=VisualizationParameters(),
        )  # fmt: skip

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        for part in self.parts:
            part.reset_internal_state(force_environment_reset)

    def _take_action(self, action: Any) -> None:
        answers = [part.step(one) for part, one in zip(self.parts, action)]
        self.reward = [answer.reward for answer in answers]
        self.done = [answer.game_over for answer in answers]
        self.truncated = [answer.game_over and not answer.terminated for answer in answers]

    def _update_state(self) -> None:
        self.state = [part.state for part in self.parts]


class Leaving(MultiAgentEnvironment):
    """Players that leave one after the other: player i after ``lengths[i]`` steps. A step's reward is 1 for player 0,
    10 for player 1, 100 for player 2; the observation is the number of steps so far, the same for all."""

    lengths = (2, 5, 3)

    def __init__(self, **settings: Any):
        super().__init__(num_agents=len(self.lengths), **settings)
        self.steps = 0
        self.state_space = StateSpace({"observation": VectorObservationSpace(1)})
        self.action_space = [DiscreteActionSpace(2) for _ in self.lengths]
        self.reset_internal_state(True)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.steps = 0

    def _take_action(self, action: Any) -> None:
        self.steps += 1
        self.reward = [10.0**index for index in range(len(self.lengths))]
        self.done = [self.steps >= length for length in self.lengths]

    def _update_state(self) -> None:
        self.state = {"observation": np.array([self.steps], np.float32)}


class PlayersParameters(EnvironmentParameters):
    """
    :param kind: the class of the environment
    """

    def __init__(self, kind: type[MultiAgentEnvironment]):
        super().__init__(level=kind.__name__)
        self.frame_skip = 1
        self._kind = kind

    @property
    def path(self) -> str:
        return f"{self._kind.__module__}:{self._kind.__name__}"


def players_graph(
    agents: Any,
    environment: type[MultiAgentEnvironment] | EnvironmentParameters,
    directory: Any,
    schedule_parameters: Any = None,
    seed: int = 1,
    create: bool = True,
    restore: str | None = None,
    **settings: Any,
) -> MultiAgentGraphManager:
    """A graph of several agents. :param settings: as for ``MultiAgentGraphManager``"""
    parameters = PlayersParameters(environment) if isinstance(environment, type) else environment
    visualization = VisualizationParameters(dump_parameters_documentation=False)
    agents = [agents] if isinstance(agents, AgentParameters) else agents
    manager = MultiAgentGraphManager(
        agents, parameters, schedule_parameters or schedule(100, heatup=40), visualization, **settings
    )
    if create:
        task = TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=seed, checkpoint_restore_path=restore)
        task.resume = restore is not None
        manager.create_graph(task)
    return manager
