"""``coach evaluate`` for the folder of a policy, such as a folder that ``coach fetch`` has written."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Sequence

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import RunPhase
from rl_coach.environments.gym_environment import Atari, GymVectorEnvironment
from rl_coach.environments.multi_agent_environment import MultiAgentEnvironment
from rl_coach.environments.reward_ranges import range_of_episodes
from rl_coach.graph_managers.building import make_environment
from rl_coach.policy import Policy
from rl_coach.runs.evaluation import EvaluationStatistics
from rl_coach.spaces import MultiDiscreteActionSpace
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError


def evaluate(folder: str, arguments: Sequence[str]) -> None:
    """Play with a policy's best actions, and print the mean reward with its confidence interval.

    :param folder: the policy's folder, with ``policy.json``
    :param arguments: the arguments of ``coach evaluate`` after the folder
    :raises CoachError: if the policy is damaged, or does not fit the level
    """
    args = command_line.parser_of("evaluate POLICY").parse_args(arguments)
    rewards: list[float] = []
    with playing(folder, args.level, args.seed, VisualizationParameters(render=args.render)) as (play, environment):
        while not rewards or environment.total_steps_counter < args.steps:
            rewards.append(play())
        outcome = EvaluationStatistics.of(rewards, range_of_episodes(environment))
        print(f"{folder}: level {environment.env_id}: {outcome}")


@contextlib.contextmanager
def playing(
    folder: str,
    level: str | None,
    seed: int,
    visualization: VisualizationParameters,
    videos: str | None = None,
) -> Iterator[tuple[Callable[[], float], Any]]:
    """A context with the environment of a policy, which is closed at the end.

    :param level: the environment's level; None for the level of the policy's preset
    :param seed: the seed of the environment
    :param visualization: settings of rendering and videos
    :param videos: the directory of videos; None for no videos
    :return: a function that plays an episode and returns its total reward, and the environment
    :raises CoachError: if the policy is damaged, does not fit the level, or the level has several players
    """
    policy = Policy.load(folder)
    parameters = _environment_parameters(folder, policy, level)
    parameters.experiment_path = videos
    environment = make_environment(parameters, seed, visualization)
    environment.phase = RunPhase.TEST
    try:
        if isinstance(environment, MultiAgentEnvironment):
            raise CoachError(
                f"the policy in '{folder}' is for {environment.env_id}, which has several players: give the directory "
                "of its run"
            )
        spaces = environment.state_space, environment.action_space
        refuse(f"the policy in '{folder}' {unmet}" for unmet in policy.unmet_by(*spaces))
        yield lambda: _play(policy, environment), environment
    finally:
        environment.close()


def _environment_parameters(folder: str, policy: Policy, level: str | None) -> Any:
    """The environment's parameters from the policy's preset, with the settings of the policy's training. Only presets
    that come with Coach are loaded, because a preset is a program.

    :param level: the environment's level; None for the level of the preset
    :raises CoachError: if the environment is unknown, or does not have the settings of the training
    """
    presets = (*preset_catalogue.list_all_presets(), *preset_catalogue.list_tuned_presets())
    preset = next((one for one in presets if preset_catalogue.name_of(one) == policy.about.get("preset")), None)
    if preset is None and level is None:
        raise CoachError(f"the policy in '{folder}' is not from a preset of Coach: select its environment with -lvl")
    graph: Any = preset and preset_catalogue.load(preset)
    if graph is not None:
        parameters = graph.env_params
    else:  # policies of older versions do not contain the settings of an arcade game
        parameters = Atari() if str(level).startswith("ALE/") else GymVectorEnvironment()
    recorded = policy.about.get("environment")
    if recorded is not None and hasattr(parameters, "see_as"):
        parameters.see_as(recorded)
    if level is not None:
        parameters.level = level
    if getattr(parameters, "combines_choices", True) is None:
        parameters.combines_choices = not isinstance(policy.action_space, MultiDiscreteActionSpace)
    return parameters


def _play(policy: Policy, environment: Any) -> float:
    """Play an episode. :return: the total reward"""
    policy.reset()
    answer = environment.reset_internal_state(force_environment_reset=True)
    while not answer.game_over:
        stop_signals.stop_if_asked()
        action = policy.act_in(answer.next_state)
        answer = environment.step(environment.action_space.from_raw(action))
    return float(environment.total_reward_in_current_episode)
