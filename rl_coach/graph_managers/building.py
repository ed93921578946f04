"""Functions that build the environments and agents of graph managers."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Callable, Iterable

import numpy as np

from rl_coach.agents.core.requirements import requirements_of
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.filters.filter import NoInputFilter, NoOutputFilter
from rl_coach.logger import screen
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError, TrainingError, public_attributes, short_dynamic_import


def as_int(seed: np.random.SeedSequence) -> int:
    """The seed as one number, for components that do not accept a ``SeedSequence``."""
    return int(seed.generate_state(1)[0])


def environment_of_graph(
    parameters: Any, task: TaskParameters, seed: np.random.SeedSequence, agents: Iterable[AgentParameters] = ()
) -> Any:
    """A graph's own copy of environment parameters, with the directory for videos and a seed.

    :param parameters: the preset's environment parameters; they are not changed
    :param task: the task parameters, with the experiment directory
    :param seed: the seed of the copy if the parameters have no seed
    :param agents: parameters of the agents that act in the environment; see ``choose_form_of_actions``
    """
    parameters = copy.deepcopy(parameters)
    parameters.experiment_path = task.experiment_path
    if parameters.seed is None:
        parameters.seed = as_int(seed)
    choose_form_of_actions(parameters, agents)
    return parameters


def choose_form_of_actions(parameters: Any, agents: Iterable[AgentParameters]) -> None:
    """Set ``combines_choices`` of an environment's parameters if it is None: to False if all agents support actions
    with several parts, else to True.

    :param parameters: the environment's parameters
    :param agents: parameters of the agents that act in the environment
    """
    if getattr(parameters, "combines_choices", True) is None:
        act_in_parts = [requirements_of(short_dynamic_import(agent.path)).acts_in_parts for agent in agents]
        parameters.combines_choices = not act_in_parts or not all(act_in_parts)


def make_environment(parameters: Any, seed: int, visualization: VisualizationParameters) -> Any:
    """Make one environment.

    :param seed: the environment's seed; the seed in the parameters is ignored
    :raises CoachError: if the environment cannot be made
    """
    return _environment_maker(parameters, seed, visualization)()


def make_copies(parameters: Any, visualization: VisualizationParameters, input_filter: Any = None) -> Any:
    """Make ``num_environments`` copies of an environment that are stepped together. Only the first copy is rendered.

    :param input_filter: the agent's filter; None uses the environment's default
    :raises CoachError: if the copies cannot be stepped together, or cannot be shown
    """
    from rl_coach.environments.native_levels import is_vector_level, plays_the_same

    kind = parameters.vectorization
    if kind == "auto":
        kind = "native" if plays_the_same(parameters) and not _is_shown(visualization) else "sync"
    if kind == "native" or is_vector_level(parameters):
        default = getattr(parameters, "default_input_filter", None)
        own_filter = _own_filter(default if input_filter is None else input_filter, NoInputFilter)
        return _make_native_copies(parameters, visualization, own_filter)
    from rl_coach.environments.environment_copies import EnvironmentCopies, EnvironmentProcesses

    kinds: dict[str, type[EnvironmentCopies]] = {"sync": EnvironmentCopies, "async": EnvironmentProcesses}
    shown = [visualization] + [_unseen(visualization)] * (parameters.num_environments - 1)
    makers = [_environment_maker(parameters, parameters.seed + i, one) for i, one in enumerate(shown)]
    return kinds[kind](makers)


def _make_native_copies(parameters: Any, visualization: VisualizationParameters, input_filter: Any) -> Any:
    from rl_coach.environments.native_levels import make_native_copies

    if visualization.render or visualization.add_rendered_image_to_env_response:
        raise CoachError(
            "the copies of env_params.vectorization 'native' cannot be drawn: leave out --render and "
            "add_rendered_image_to_env_response, or set env_params.vectorization to 'sync' or 'async'"
        )
    make = _environment_maker(parameters, parameters.seed, _unseen(visualization))
    return make_native_copies(parameters, make, input_filter)


def _is_shown(visualization: VisualizationParameters) -> bool:
    shown = ("render", "native_rendering", "dump_gifs", "dump_mp4", "add_rendered_image_to_env_response")
    return any(getattr(visualization, name) for name in shown)


def _unseen(visualization: VisualizationParameters) -> VisualizationParameters:
    """A copy of the settings for an environment that is not rendered or recorded."""
    unseen = copy.copy(visualization)
    unseen.render = unseen.native_rendering = unseen.dump_gifs = unseen.dump_mp4 = False
    return unseen


def _environment_maker(parameters: Any, seed: int, visualization: VisualizationParameters) -> Callable[[], Any]:
    settings = {**public_attributes(parameters), "seed": seed, "visualization_parameters": visualization}
    for name in ("num_environments", "vectorization"):
        settings.pop(name, None)
    return partial(_make_environment, parameters.path, settings)


def _make_environment(path: str, settings: dict[str, Any]) -> Any:
    level = settings["level"]
    try:
        return short_dynamic_import(path)(**settings)
    # the message of a CoachError is complete: do not wrap it in the general message below
    except CoachError:
        raise
    except TrainingError as error:
        raise CoachError(str(error)) from error.__cause__
    except Exception as error:
        raise CoachError(f"environment '{level}' cannot be made: {environment_error(error)}") from error


def agent_of_graph(
    parameters: AgentParameters,
    task: TaskParameters,
    visualization: VisualizationParameters,
    environment: Any,
    name: str = "agent",
) -> AgentParameters:
    """A graph's own copy of agent parameters.

    :param parameters: the preset's agent parameters; they are not changed
    :param task: the task parameters of the copy
    :param visualization: the settings of rendering, videos and log files
    :param environment: the environment's parameters, with default filters for an agent without filters; None if there
        is no environment
    :param name: the agent's name
    """
    parameters = copy.deepcopy(parameters)
    parameters.task_parameters = task
    if parameters.name not in (None, name):
        screen.warning(f"the agent's name {parameters.name!r} has no effect: the graph calls this agent '{name}'")
    parameters.name = name
    parameters.visualization = visualization
    if parameters.input_filter is None:
        parameters.input_filter = _own_filter(getattr(environment, "default_input_filter", None), NoInputFilter)
    if parameters.output_filter is None:
        parameters.output_filter = _own_filter(getattr(environment, "default_output_filter", None), NoOutputFilter)
    return parameters


def _own_filter(default: Any, none: type) -> Any:
    """A new filter made from an environment's default.

    :param default: a filter, which is copied; a class or function that makes a filter; or None
    :param none: the class of the filter for the default None
    """
    if default is None:
        return none()
    return default() if callable(default) else copy.deepcopy(default)


def make_agent(parameters: AgentParameters, seed: np.random.SeedSequence | None = None) -> Any:
    """Make the agent of the given parameters. :param seed: the seed of the agent's random streams; None sets no seed"""
    agent = short_dynamic_import(parameters.path)(parameters)
    if seed is not None:
        agent.seed(seed)
    return agent
