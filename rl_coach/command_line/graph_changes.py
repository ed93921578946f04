"""Applies flags to the graph manager of a preset."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rl_coach.command_line import user_classes
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.graph_managers.graph_manager import GraphManager

TENSORBOARD = "tensorboard"
_STEPS_PER_SECOND = 30  # limit for a person who plays


def apply_flags(graph_manager: Any, args: argparse.Namespace) -> None:
    """Apply flags to a graph manager, before ``create_graph``.

    :raises CoachError: if a flag names an unknown level, class or parameter, or the graph manager does not support it
    """
    if args.environment_type:
        _check_has(graph_manager, "env_params", "-et")
        from rl_coach.environments.environment import EnvironmentParameters

        graph_manager.env_params = user_classes.make(args.environment_type, "-et", EnvironmentParameters, {})
    if args.level:
        _select_level(graph_manager, args.level)
    if args.exploration_policy_type:
        _check_has(graph_manager, "agent_params", "-ept")
        if len(agents := getattr(graph_manager, "agents_params", ())) > 1:
            raise CoachError(
                f"-ept changes one agent, and this preset has {len(agents)} ({', '.join(agents)}): set the exploration "
                f"of each agent in the preset"
            )
        from rl_coach.exploration_policies.exploration_policy import ExplorationParameters

        agent = graph_manager.agent_params
        kind = args.exploration_policy_type
        agent.exploration = user_classes.make(kind, "-ept", ExplorationParameters, {"agent_params": agent})
    if args.play:
        _hand_over_to_human(graph_manager)
    _set_visualization(graph_manager, args)
    if args.callback:
        graph_manager.callbacks = [*graph_manager.callbacks, *user_classes.make_callbacks(args.callback)]
    if args.track:
        _track(graph_manager, args.track)
    if args.custom_parameter:
        from rl_coach.command_line.custom_parameters import apply_custom_parameters

        apply_custom_parameters(graph_manager, args.custom_parameter)


def _check_has(graph_manager: Any, parameters: str, flag: str) -> None:
    if not hasattr(graph_manager, parameters):
        raise CoachError(f"{flag} cannot change this preset: its {type(graph_manager).__name__} has no '{parameters}'")


def _select_level(graph_manager: Any, level: str) -> None:
    """Set the level. If the preset has a list of levels, the level must be in the list."""
    from rl_coach.environments.environment import LevelSelection

    _check_has(graph_manager, "env_params", "-lvl")
    parameters = graph_manager.env_params
    if isinstance(parameters.level, LevelSelection):
        parameters.level.select(level)
    else:
        parameters.level = level


def _hand_over_to_human(graph_manager: Any) -> None:
    from rl_coach.agents.human_agent import HumanAgentParameters
    from rl_coach.base_parameters import VisualizationParameters
    from rl_coach.graph_managers.building import choose_form_of_actions
    from rl_coach.graph_managers.graph_manager import HumanPlayScheduleParameters

    _check_has(graph_manager, "agent_params", "--play")
    if hasattr(graph_manager, "agents_params"):
        raise CoachError("--play: a person cannot play one of several players: choose a preset with one player")
    trained, player = graph_manager.agent_params, HumanAgentParameters()
    # use the filters of the preset's agent, so that this agent can learn from the recorded steps
    player.input_filter, player.output_filter = trained.input_filter, trained.output_filter
    graph_manager.agent_params = player
    environment = graph_manager.env_params
    choose_form_of_actions(environment, [trained])
    environment.human_control = True
    if hasattr(environment, "num_environments"):
        environment.num_environments = 1
    graph_manager.set_schedule_params(HumanPlayScheduleParameters())
    visualization = graph_manager.visualization_parameters
    if visualization.max_fps_for_human_control == VisualizationParameters().max_fps_for_human_control:
        visualization.max_fps_for_human_control = _STEPS_PER_SECOND


def _track(graph_manager: GraphManager, text: str) -> None:
    """Add the trackers of ``--track``. If the preset already has such a tracker, its tracker is used."""
    from rl_coach.callbacks.tracking import TRACKERS

    for name in (part.strip().lower() for part in text.split(",")):
        if name == TENSORBOARD:
            graph_manager.visualization_parameters.tensorboard = True
        elif name not in TRACKERS:
            known = ", ".join((TENSORBOARD, *TRACKERS))
            raise CoachError(f"--track: there is no '{name}'; choose from {known}, separated by commas")
        elif not any(isinstance(one, TRACKERS[name]) for one in graph_manager.callbacks):
            graph_manager.callbacks = [*graph_manager.callbacks, TRACKERS[name]()]


def _set_visualization(graph_manager: GraphManager, args: argparse.Namespace) -> None:
    """Switch on the outputs that flags ask for. A flag never switches off an output of the preset."""
    from rl_coach.core_types import MaxDumpFilter

    visualization = graph_manager.visualization_parameters
    for name in ("render", "dump_gifs", "dump_mp4", "tensorboard", "print_networks_summary"):
        if getattr(args, name):
            setattr(visualization, name, True)
    visualization.render = visualization.render or args.play
    if (args.dump_gifs or args.dump_mp4) and not visualization.video_dump_filters:
        visualization.video_dump_filters = [MaxDumpFilter()]
