"""The graph of most presets: one agent in one environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.architectures.allocator import keep_freed_memory
from rl_coach.architectures.compilation_cache import keep_compiled_steps
from rl_coach.architectures.threads import set_num_threads_early
from rl_coach.base_parameters import (
    AgentParameters,
    Frameworks,
    PresetValidationParameters,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.gym_environment import GymEnvironmentParameters
from rl_coach.environments.gym_levels import is_function_level
from rl_coach.graph_managers.building import (
    agent_of_graph,
    as_int,
    environment_of_graph,
    make_agent,
    make_copies,
    make_environment,
)
from rl_coach.graph_managers.compiled_loops import why_not_compiled
from rl_coach.graph_managers.graph_manager import GraphManager, ScheduleParameters
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.remote_level_manager import RemoteLevelManager
from rl_coach.vector_level_manager import VectorLevelManager


class BasicRLGraphManager(GraphManager):
    """Graph of one agent in one environment.

    ``create_graph`` copies the parameters. A preset may therefore change its parameters after it has made the graph
    manager, and two graphs made from one preset share nothing.

    :param agent_params: the agent; an agent without filters uses the environment's default filters
    :param env_params: the environment; ``num_environments`` is the number of copies that the agent acts in at once
    :param schedule_params: the length of each part of the run
    :param vis_params: settings of rendering, videos and log files
    :param preset_validation_params: the reward that tests of the preset require
    :param name: the graph's name, part of the names of its files
    """

    def __init__(
        self,
        agent_params: AgentParameters,
        env_params: EnvironmentParameters,
        schedule_params: ScheduleParameters,
        vis_params: VisualizationParameters | None = None,
        preset_validation_params: PresetValidationParameters | None = None,
        name: str = "simple_rl_graph",
    ):
        super().__init__(name, schedule_params, vis_params)
        self.agent_params = agent_params
        self.env_params: Any = env_params
        self.preset_validation_params = preset_validation_params or PresetValidationParameters()

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        # Draw all seeds first and in this order. Otherwise the seeds would depend on the order of construction.
        environment_seed, evaluation_seed, agent_seed = self.spawn_seed(), self.spawn_seed(), self.spawn_seed()
        parameters = self.env_params = environment_of_graph(
            self.env_params, task_parameters, environment_seed, [self.agent_params]
        )
        self._prepare_early(parameters, task_parameters)
        if task_parameters.role.acts and self._may_be_compiled(parameters):
            level = self._create_compiled_level(task_parameters, evaluation_seed, agent_seed)
            if level is not None:
                return [level], [level.environment]
        level_class: type[LevelManager]
        copies = getattr(parameters, "num_environments", 1)
        if task_parameters.role.acts and copies > 1:
            level_class = VectorLevelManager
            environment = make_copies(parameters, self.visualization_parameters, self.agent_params.input_filter)
        else:
            if copies > 1:
                screen.warning(
                    f"env_params.num_environments = {copies} has no effect with -dc, because each worker acts in one "
                    f"environment: use more workers (-n)"
                )
            level_class = LevelManager if task_parameters.role.acts else RemoteLevelManager
            environment = self._create_environment(parameters.seed)
        agent = self._create_agent(task_parameters)
        agent.seed(agent_seed)
        level = level_class(
            name="main_level",
            agents=agent,
            environment=environment,
            evaluation_environment_factory=lambda: self._create_environment(as_int(evaluation_seed)),
        )
        return [level], [environment]

    def _prepare_early(self, parameters: Any, task: TaskParameters) -> None:
        """Set JAX's options before the environment is made if the environment itself may use JAX. JAX reads the options
        at its first computation, and then starts its threads."""
        networks = self.agent_params.network_wrappers
        if networks and task.framework_type is Frameworks.jax and ":" in str(getattr(parameters, "level", None)):
            set_num_threads_early(task.framework_type, task.num_threads, networks)
            keep_compiled_steps(task.framework_type)
            keep_freed_memory()

    @staticmethod
    def _may_be_compiled(parameters: Any) -> bool:
        """True if the environment consists of pure functions, so that JAX can compile it."""
        is_plain = getattr(parameters, "path", None) == GymEnvironmentParameters().path
        return is_plain and parameters.level is not None and is_function_level(str(parameters.level))

    def _create_compiled_level(self, task: TaskParameters, evaluation_seed: Any, agent_seed: Any) -> Any:
        """The level with a compiled loop. If the loop cannot be compiled: None, and a log line with the reason."""
        parameters = self.env_params
        environment, agent = self._create_environment(parameters.seed), self._create_agent(task)
        reason = why_not_compiled(agent, environment, parameters, task, self.heatup_steps.num_steps > 0)
        if reason is not None:
            environment.close()
            screen.log(f"the loop is not compiled as a whole: {reason}")
            return None
        agent.seed(agent_seed)
        copies = parameters.num_environments
        level = CompiledLevelManager(
            "main_level",
            agent,
            environment,
            copies,
            as_int(np.random.SeedSequence([parameters.seed, as_int(agent_seed)])),
            evaluation_environment_factory=lambda: self._create_environment(as_int(evaluation_seed)),
        )
        devices = f", on {level.num_devices} devices" if level.num_devices > 1 else ""
        many = "s at once" if copies > 1 else ""
        seeds = ", in one program with the other seeds" if task.seeds_program is not None else ""
        screen.log(f"the loop is compiled as a whole, in {copies} environment{many}{devices}{seeds}")
        if not task.checkpoint_memory:
            screen.warning("--no-checkpoint_memory has no effect: checkpoints of a compiled loop contain its memory")
        return level

    def _create_environment(self, seed: int) -> Any:
        return make_environment(self.env_params, seed, self.visualization_parameters)

    def _create_agent(self, task: TaskParameters) -> AgentInterface:
        self.agent_params = agent_of_graph(self.agent_params, task, self.visualization_parameters, self.env_params)
        return make_agent(self.agent_params)

    def documentation(self) -> dict[str, Any]:
        return {**super().documentation(), "agent": self.agent_params, "environment": self.env_params}

    def get_agent(self) -> Any:
        """The agent."""
        self.verify_graph_was_created()
        return self.level_managers[0].acting_agent

    def log_signal(self, signal_name: str, value: Any) -> None:
        """Set a signal in the current row of the agent's CSV."""
        self.get_agent().agent_logger.create_signal_value(signal_name, value)

    def get_signal_value(self, signal_name: str) -> Any:
        """A signal's value in the current row of the agent's CSV; None if the row does not have the signal."""
        return self.get_agent().agent_logger.get_signal_value(signal_name)
