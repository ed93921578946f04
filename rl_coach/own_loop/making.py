"""Creates a graph for the user's own loop from an algorithm's name, an environment and settings."""

from __future__ import annotations

import logging
from typing import Any, Mapping

from rl_coach.agents.algorithms import find_algorithm
from rl_coach.base_parameters import AgentParameters, Frameworks, TaskParameters, VisualizationParameters
from rl_coach.command_line.custom_parameters import apply_settings
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.fed_environment import FedEnvironmentParameters
from rl_coach.graph_managers.own_loop_graph_manager import OwnLoopGraphManager
from rl_coach.graph_managers.run_seeds import kept_global_generators
from rl_coach.graph_managers.schedule_parameters import SimpleScheduleWithoutEvaluation
from rl_coach.installation import missing_package
from rl_coach.utils import CoachError, choose_from, short_dynamic_import

logger = logging.getLogger("rl_coach")


def make_graph(
    parameters: AgentParameters,
    environment: FedEnvironmentParameters,
    heatup_steps: int,
    settings: Mapping[str, Any],
    task: TaskParameters,
    writes_files: bool,
) -> OwnLoopGraphManager:
    """Create the graph of an agent.

    :param parameters: the parameters of the agent
    :param settings: settings of the algorithm, by name
    :param writes_files: write signals and checkpoints, in the task's directory
    :raises CoachError: if an argument is wrong
    """
    schedule = SimpleScheduleWithoutEvaluation()
    schedule.heatup_steps = EnvironmentSteps(heatup_steps)
    visualization = VisualizationParameters(dump_csv=writes_files, dump_parameters_documentation=writes_files)
    graph = OwnLoopGraphManager(parameters, environment, schedule, visualization)
    graph.writes_files = graph.prints_summary = writes_files
    for line in apply_settings(graph, settings):
        logger.warning("%s", line)
    with kept_global_generators():
        graph.create_graph(task)
    return graph


def algorithm_parameters(algorithm: Any) -> AgentParameters:
    """The parameters of an algorithm.

    :param algorithm: see ``make_agent``
    :raises CoachError: if the algorithm does not exist, or its agent cannot act in a user's loop
    """
    if isinstance(algorithm, str):
        algorithm = _imported(algorithm) if ":" in algorithm else find_algorithm(algorithm).parameters
    if reason := getattr(algorithm, "why_not_in_own_loop", ""):
        name = (algorithm if isinstance(algorithm, type) else type(algorithm)).__name__
        raise CoachError(f"make_agent cannot make an agent of {name}: {reason}")
    is_class = isinstance(algorithm, type) and issubclass(algorithm, AgentParameters)
    made = algorithm() if is_class else algorithm
    if not isinstance(made, AgentParameters):
        raise CoachError(f"an algorithm must be a name or AgentParameters, not {algorithm!r}")
    return made


def _imported(path: str) -> Any:
    try:
        return short_dynamic_import(path)
    except ModuleNotFoundError as error:
        raise CoachError(f"algorithm '{path}': {missing_package(error)}") from error


def make_task(framework: str, seed: int | None, num_devices: int | None, experiment_path: str | None) -> TaskParameters:
    """The task parameters of an own loop.

    :raises CoachError: if the framework does not exist
    """
    if framework not in Frameworks.__members__:
        known = [name for name in Frameworks.__members__ if name != Frameworks.acting.name]
        raise CoachError(f"there is no framework '{framework}'{choose_from(framework, known)}")
    task = TaskParameters(framework_type=Frameworks[framework], seed=seed, num_devices=num_devices)
    if experiment_path is not None:
        task.experiment_path = experiment_path
    return task
