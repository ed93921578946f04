"""Graphs of one of the zoo's agents in one of its environments, created and ready."""

from __future__ import annotations

import copy
from typing import Any, Union

from rl_coach.base_parameters import AgentParameters, Frameworks, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.utilities.requirements import settings_below
from tests.frameworks import FRAMEWORK
from tests.zoo.agents import CountingAgentParameters
from tests.zoo.environments import CountingEnvironmentParameters, SmallEnvironment, SmallEnvironmentParameters

Steps = Union[int, EnvironmentSteps, EnvironmentEpisodes, TrainingSteps]


def schedule(
    improve: Steps, evaluate_every: Steps | None = None, evaluation: Any = None, heatup: Steps = 0
) -> ScheduleParameters:
    """A schedule; numbers are environment steps, those of ``evaluation`` episodes.

    :param improve: the training
    :param evaluate_every: None evaluates at the end only
    :param evaluation: None evaluates nothing
    """
    parameters = ScheduleParameters()
    parameters.heatup_steps = _steps(heatup)
    parameters.improve_steps = _steps(improve)
    parameters.steps_between_evaluation_periods = _steps(evaluate_every or TrainingSteps(10**10))
    parameters.evaluation_steps = _steps(evaluation or 0, EnvironmentEpisodes)
    return parameters


def _steps(number: Any, unit: Any = EnvironmentSteps) -> Any:
    return unit(number) if isinstance(number, int) else number


def graph(
    agent: AgentParameters,
    environment: type[SmallEnvironment] | EnvironmentParameters,
    directory: Any,
    schedule_parameters: ScheduleParameters | None = None,
    seed: int = 1,
    framework: Frameworks = FRAMEWORK,
    copies: int = 1,
    writes_csv: bool = False,
    **task: Any,
) -> BasicRLGraphManager:
    """A graph that writes to a directory.

    :param schedule_parameters: None trains for 100 steps after a heatup of 40
    :param copies: of the environment
    :param task: more of the task's parameters
    """
    environment_parameters = SmallEnvironmentParameters(environment) if isinstance(environment, type) else environment
    environment_parameters.num_environments = copies
    visualization = VisualizationParameters(dump_parameters_documentation=False, dump_csv=writes_csv)
    manager = BasicRLGraphManager(
        agent, environment_parameters, schedule_parameters or schedule(100, heatup=40), visualization
    )
    return manager.create_graph(TaskParameters(framework, experiment_path=str(directory), seed=seed, **task))


def compiled(
    agent: AgentParameters,
    directory: Any,
    level: str = "walk",
    copies: int = 4,
    steps: ScheduleParameters | None = None,
    **task: Any,
) -> BasicRLGraphManager:
    """A graph in an environment of ``function_environments``, whose loop is compiled if the agent's can be.

    :param steps: None trains for 256 steps
    """
    environment = GymVectorEnvironment(f"tests.zoo.function_environments:{level}")
    return graph(agent, environment, directory, steps or schedule(256), 3, copies=copies, writes_csv=True, **task)


def next_phase(manager: BasicRLGraphManager) -> Any:
    """The next training phase of a compiled loop, as its agent gets it."""
    part: Any = manager.level_managers[0]._part
    phases = part.phases([part.plan(copy.copy(manager.get_agent().clock), 0, 0, None)])
    return phases._make(rows[0] for rows in phases)


def agents_parameters(manager: Any) -> list[AgentParameters]:
    """Those of all agents of a graph that may not have been created: one, levels, or several by name."""
    return [one for _, one in settings_below(manager) if isinstance(one, AgentParameters)]


def counting_graph(directory: Any, schedule_parameters: ScheduleParameters, **settings: Any) -> BasicRLGraphManager:
    """A graph of the counting agent in the counting environment.

    :param settings: for the algorithm, the environment or the task, whichever knows them
    """
    agent, environment = CountingAgentParameters(), CountingEnvironmentParameters()
    task = TaskParameters(experiment_path=str(directory), seed=7)
    for name, value in settings.items():
        target = next(holder for holder in (agent.algorithm, environment, task) if hasattr(holder, name))
        setattr(target, name, value)
    manager = BasicRLGraphManager(agent, environment, schedule_parameters, VisualizationParameters())
    return manager.create_graph(task)
