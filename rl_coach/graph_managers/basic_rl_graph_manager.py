"""The graph of most presets: one agent in one environment."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Callable

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.base_parameters import (
    AgentParameters,
    PresetValidationParameters,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.graph_managers.graph_manager import GraphManager, ScheduleParameters
from rl_coach.level_manager import LevelManager
from rl_coach.remote_level_manager import RemoteLevelManager
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError, TrainingError, public_attributes, short_dynamic_import
from rl_coach.vector_level_manager import VectorLevelManager


class BasicRLGraphManager(GraphManager):
    """One agent in one environment.

    The graph works on copies of the parameters, made when it is created: two graphs made from one preset share
    nothing, and a preset may still change its parameters after it has made the graph manager.

    :param agent_params: the agent; filters that it leaves out are the environment's defaults
    :param env_params: the environment; with ``num_environments`` above 1 so many copies of it are acted in at once
    :param schedule_params: how long each part of the run is
    :param vis_params: what is shown and written
    :param preset_validation_params: what the preset must achieve in tests
    :param name: the graph's name, part of the names of its files
    """

    def __init__(
        self,
        agent_params: AgentParameters,
        env_params: Any,
        schedule_params: ScheduleParameters,
        vis_params: VisualizationParameters | None = None,
        preset_validation_params: PresetValidationParameters | None = None,
        name: str = "simple_rl_graph",
    ):
        super().__init__(name, schedule_params, vis_params)
        self.agent_params = agent_params
        self.env_params = env_params
        self.preset_validation_params = preset_validation_params or PresetValidationParameters()

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        self.env_params = copy.deepcopy(self.env_params)
        self.env_params.experiment_path = task_parameters.experiment_path
        # all seeds are drawn before anything is built, in this order, so that they do not depend on what is built when
        environment_seed, evaluation_seed, agent_seed = (self.spawn_seed() for _ in range(3))
        if self.env_params.seed is None:
            self.env_params.seed = _as_int(environment_seed)
        level_class: type[LevelManager] = LevelManager
        if not task_parameters.role.acts:
            environment, level_class = self._create_environment(self.env_params.seed), RemoteLevelManager
        elif self._num_environments == 1:
            environment = self._create_environment(self.env_params.seed)
        else:
            environment, level_class = self._create_copies(), VectorLevelManager
        agent = self._create_agent(task_parameters)
        agent.seed(agent_seed)
        level = level_class(
            name="main_level",
            agents=agent,
            environment=environment,
            evaluation_environment_factory=lambda: self._create_environment(_as_int(evaluation_seed)),
        )
        return [level], [environment]

    def _create_environment(self, seed: int) -> Any:
        return self._environment_maker(seed, self.visualization_parameters)()

    def _environment_maker(self, seed: int, visualization: VisualizationParameters) -> Callable[[], Any]:
        settings = {**public_attributes(self.env_params), "seed": seed, "visualization_parameters": visualization}
        for name in ("num_environments", "vectorization"):
            settings.pop(name, None)
        return partial(_make_environment, self.env_params.path, settings)

    @property
    def _num_environments(self) -> int:
        return getattr(self.env_params, "num_environments", 1)

    def _create_copies(self) -> Any:
        from rl_coach.environments.environment_copies import EnvironmentCopies, EnvironmentProcesses

        kinds: dict[str, type[EnvironmentCopies]] = {"sync": EnvironmentCopies, "async": EnvironmentProcesses}
        unseen = copy.copy(self.visualization_parameters)
        unseen.render = unseen.native_rendering = unseen.dump_gifs = unseen.dump_mp4 = False
        shown = [self.visualization_parameters] + [unseen] * (self._num_environments - 1)
        makers = [self._environment_maker(self.env_params.seed + i, one) for i, one in enumerate(shown)]
        return kinds[self.env_params.vectorization](makers)

    def _create_agent(self, task_parameters: TaskParameters) -> AgentInterface:
        self.agent_params = copy.deepcopy(self.agent_params)
        self.agent_params.task_parameters = task_parameters
        self.agent_params.name = "agent"
        self.agent_params.visualization = self.visualization_parameters
        if self.agent_params.input_filter is None:
            self.agent_params.input_filter = _own_filter(self.env_params.default_input_filter, NoInputFilter)
        if self.agent_params.output_filter is None:
            self.agent_params.output_filter = _own_filter(self.env_params.default_output_filter, NoOutputFilter)
        return short_dynamic_import(self.agent_params.path)(self.agent_params)

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
        """A signal's value in the current row of the agent's CSV, None if there is none."""
        return self.get_agent().agent_logger.get_signal_value(signal_name)


def _make_environment(path: str, settings: dict[str, Any]) -> Any:
    level = settings["level"]
    try:
        return short_dynamic_import(path)(**settings)
    except CoachError:
        raise
    except TrainingError as error:
        raise CoachError(str(error)) from error.__cause__
    except Exception as error:
        raise CoachError(f"environment '{level}' cannot be made: {environment_error(error)}") from error


def _as_int(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0])


def _own_filter(default: Any, none: type) -> Any:
    """A fresh filter from an environment's default: a filter, a class or function that makes one, or None."""
    if default is None:
        return none()
    return default() if callable(default) else copy.deepcopy(default)
