"""The graph of a hierarchy: each level's agent sets the goals of the level below."""

from __future__ import annotations

from typing import Any, Union

from rl_coach.base_parameters import (
    AgentParameters,
    PresetValidationParameters,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.filters.filter import NoOutputFilter
from rl_coach.graph_managers.building import agent_of_graph, as_int, environment_of_graph, make_agent, make_environment
from rl_coach.graph_managers.graph_manager import GraphManager, ScheduleParameters
from rl_coach.level_manager import LevelManager
from rl_coach.utils import CoachError


class HRLGraphManager(GraphManager):
    """Graph of several levels with one agent each. The action of an agent is a goal for the level below, and the agent
    of the bottom level acts in the environment. Each new goal begins an episode for the agent that receives it.

    The levels are called ``level_0`` (the top), ``level_1`` and so on. Their agents are called ``agent_0``, ``agent_1``
    and so on. The graph counts steps and episodes of the environment; each agent counts its own steps and episodes.

    :param agents_params: the agents of the levels, the top level first. Each level below the top needs an
        ``algorithm.in_action_space``
    :param env_params: the environment
    :param schedule_params: the length of each part of the run
    :param vis_params: settings of rendering, videos and log files
    :param consecutive_steps_to_run_each_level: the largest number of actions of a level within one action of the level
        above, or for the top level within one step of the graph. One number for all levels, or a list with a number for
        each level
    :param preset_validation_params: the reward that tests of the preset require
    :param name: the graph's name, part of the names of its files
    :raises CoachError: if there is no agent, or the numbers of steps and agents differ
    """

    def __init__(
        self,
        agents_params: list[AgentParameters],
        env_params: EnvironmentParameters,
        schedule_params: ScheduleParameters,
        vis_params: VisualizationParameters,
        consecutive_steps_to_run_each_level: Union[EnvironmentSteps, list[EnvironmentSteps]],
        preset_validation_params: PresetValidationParameters | None = None,
        name: str = "hrl_graph",
    ):
        super().__init__(name, schedule_params, vis_params)
        self.agents_params = list(agents_params)
        self.env_params: Any = env_params
        self.preset_validation_params = preset_validation_params or PresetValidationParameters()
        steps = consecutive_steps_to_run_each_level
        self.consecutive_steps_to_run_each_level = (
            list(steps) if isinstance(steps, list) else [steps] * len(agents_params)
        )
        levels, given = len(self.agents_params), len(self.consecutive_steps_to_run_each_level)
        if not levels or levels != given:
            raise CoachError(
                f"graph '{name}' has {levels} agents: consecutive_steps_to_run_each_level needs one number for each "
                f"agent, not {given}"
            )

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        task, visualization = task_parameters, self.visualization_parameters
        if not (task.role.acts and task.role.trains):
            raise CoachError("a hierarchy cannot be split into trainer and workers: leave out -dc and -n")
        if self.env_params.num_environments > 1:
            raise CoachError("a hierarchy acts in one copy of an environment: set env_params.num_environments to 1")
        # Draw all seeds first and in this order. Otherwise the seeds would depend on the order of construction.
        environment_seed, evaluation_seed = self.spawn_seed(), self.spawn_seed()
        agent_seeds = [self.spawn_seed() for _ in self.agents_params]
        self.env_params = environment_of_graph(self.env_params, task, environment_seed, self.agents_params[-1:])
        environment = make_environment(self.env_params, self.env_params.seed, visualization)
        self.agents_params = [
            self._agent_of_level(index, parameters, task) for index, parameters in enumerate(self.agents_params)
        ]
        self._agents = [make_agent(*each) for each in zip(self.agents_params, agent_seeds)]
        self._connect_agents()
        below: Any = environment
        levels: list[LevelManager] = []
        # from the bottom up: the actions of a level are the goals of the level below
        for index in reversed(range(len(self._agents))):
            below = LevelManager(
                name=f"level_{index}",
                agents=self._agents[index],
                environment=below,
                real_environment=environment,
                steps_limit=self.consecutive_steps_to_run_each_level[index],
                should_reset_agent_state_after_time_limit_passes=index > 0,
                evaluation_environment_factory=None if levels else lambda: make_environment(
                    self.env_params, as_int(evaluation_seed), visualization
                ),
            )  # fmt: skip
            levels.insert(0, below)
        return levels, [environment]

    def _agent_of_level(self, index: int, parameters: AgentParameters, task: TaskParameters) -> AgentParameters:
        has_filter = parameters.output_filter is not None
        own = agent_of_graph(parameters, task, self.visualization_parameters, self.env_params, f"agent_{index}")
        own.is_a_highest_level_agent, own.is_a_lowest_level_agent = index == 0, index == len(self.agents_params) - 1
        if not own.is_a_lowest_level_agent and not has_filter:
            own.output_filter = NoOutputFilter()  # the default filter is for the environment's actions
        return own

    def _connect_agents(self) -> None:
        """Connect the agents before their networks are made. The method of this class does nothing."""

    def documentation(self) -> dict[str, Any]:
        return {**super().documentation(), "agents": self.agents_params, "environment": self.env_params}

    def get_agents(self) -> list[Any]:
        """The agents of the levels, the top level first."""
        self.verify_graph_was_created()
        return [level.agent for level in self.level_managers]
