"""The graph of hierarchical actor-critic (Levy et al. 2019)."""

from __future__ import annotations

from rl_coach.agents.hac_ddpg_agent import HACDDPGAgent
from rl_coach.base_parameters import AgentParameters, PresetValidationParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.hrl_graph_manager import HRLGraphManager
from rl_coach.spaces import GoalsSpace
from rl_coach.utils import CoachError


class HACGraphManager(HRLGraphManager):
    """A hierarchy of agents. Each agent sets goals for the level below, and tests if the level below reaches them.

    :param agents_params: ``HACDDPGAgentParameters`` of the levels, the top level first. Each level below the top needs
        a ``GoalsSpace`` as ``algorithm.in_action_space``
    :param env_params: the environment; it must have the observation ``desired_goal``
    :param schedule_params: the length of each part of the run
    :param vis_params: settings of rendering, videos and log files
    :param consecutive_steps_to_run_non_top_levels: the largest number of actions that each level below the top may take
        to reach one goal
    :param preset_validation_params: the reward that tests of the preset require
    """

    def __init__(
        self,
        agents_params: list[AgentParameters],
        env_params: EnvironmentParameters,
        schedule_params: ScheduleParameters,
        vis_params: VisualizationParameters,
        consecutive_steps_to_run_non_top_levels: EnvironmentSteps,
        preset_validation_params: PresetValidationParameters | None = None,
    ):
        steps = [EnvironmentSteps(1), *[consecutive_steps_to_run_non_top_levels] * (len(agents_params) - 1)]
        super().__init__(
            agents_params, env_params, schedule_params, vis_params, steps, preset_validation_params, "hac_graph"
        )

    def _connect_agents(self) -> None:
        for index, agent in enumerate(self._agents):
            if not isinstance(agent, HACDDPGAgent):
                raise CoachError(f"agent_{index} is a {type(agent).__name__}; each level of HAC has a HACDDPGAgent")
            if index and not isinstance(agent.in_action_space, GoalsSpace):
                raise CoachError(f"agent_{index} receives goals: set its algorithm.in_action_space to a GoalsSpace")
        for above, below in zip(self._agents, self._agents[1:]):
            above.subgoals = below.in_action_space
