"""A graph for a loop of the user's own, from an algorithm's name, an environment or its spaces, and settings."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Callable, Mapping

from rl_coach.agents.algorithms import find_algorithm
from rl_coach.base_parameters import AgentParameters, Frameworks, TaskParameters, VisualizationParameters
from rl_coach.command_line.custom_parameters import apply_settings
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.fed_environment import FedEnvironmentParameters
from rl_coach.environments.gym_environment import Atari, GymVectorEnvironment
from rl_coach.graph_managers.run_seeds import kept_global_generators
from rl_coach.graph_managers.schedule_parameters import SimpleScheduleWithoutEvaluation
from rl_coach.installation import missing_package
from rl_coach.own_loop.graph import OwnLoopGraphManager
from rl_coach.utils import CoachError, did_you_mean, short_dynamic_import

logger = logging.getLogger("rl_coach")

NAMES_HERE = {
    "buffer_size": "memory={'max_size': (MemoryGranularity.Transitions, N)}",
    "clip_range": "clip_likelihood_ratio_using_epsilon",
    "clip_range_vf": "clip_value_using_epsilon",
    "ent_coef": "beta_entropy",
    "exploration_fraction": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "exploration_final_eps": "exploration={'epsilon_schedule': LinearSchedule(1, END, STEPS)}",
    "gamma": "discount",
    "gradient_steps": "num_consecutive_training_steps",
    "learning_starts": "heatup_steps",
    "max_grad_norm": "clip_gradients",
    "n_epochs": "optimization_epochs",
    "n_steps": "num_consecutive_playing_steps=EnvironmentSteps(N), for A2C num_steps_between_gradient_updates=N",
    "policy_kwargs": "middleware_parameters={'scheme': [Dense(N)]} and "
    "input_embedders_parameters={'observation': {'scheme': [Dense(N)]}}",
    "target_kl": "target_kl_divergence",
    "target_update_interval": "num_steps_between_copying_online_weights_to_target",
    "tau": "rate_for_copying_weights_to_target",
    "tensorboard_log": "experiment_path=DIRECTORY, where the signals are written as CSV",
    "train_freq": "num_consecutive_playing_steps=EnvironmentSteps(N)",
    "use_sde": "exploration of agent parameters: StateDependentNoiseParameters(agent_params)",
    "vf_coef": "network_wrappers['main'].heads_parameters[0].loss_weight",
}
"""Settings by the names that Stable-Baselines3 has for them, and what they are called here."""


def make_graph(
    parameters: AgentParameters,
    environment: FedEnvironmentParameters,
    heatup_steps: int,
    settings: Mapping[str, Any],
    task: TaskParameters,
    writes_files: bool,
) -> OwnLoopGraphManager:
    """The graph of an agent, created.

    :param parameters: of the agent
    :param settings: of the algorithm, by name
    :param writes_files: write signals and checkpoints, in the task's directory
    :raises CoachError: for bad input
    """
    schedule = SimpleScheduleWithoutEvaluation()
    schedule.heatup_steps = EnvironmentSteps(heatup_steps)
    visualization = VisualizationParameters(dump_csv=writes_files, dump_parameters_documentation=writes_files)
    graph = OwnLoopGraphManager(parameters, environment, schedule, visualization)
    graph.writes_files = graph.prints_summary = writes_files
    try:
        said = apply_settings(graph, settings)
    except CoachError as error:
        hints = [
            f"; '{name}' of Stable-Baselines3 is {NAMES_HERE[name]} here" for name in settings if name in NAMES_HERE
        ]
        raise CoachError(f"{error}{''.join(hints)}") from None
    for line in said:
        logger.warning("%s", line)
    with kept_global_generators():
        graph.create_graph(task)
    return graph


def algorithm_parameters(algorithm: Any) -> AgentParameters:
    """The parameters of an algorithm.

    :param algorithm: see ``make_agent``
    :raises CoachError: the algorithm does not exist, or its agent cannot act in a user's loop
    """
    if isinstance(algorithm, str):
        algorithm = _imported(algorithm) if ":" in algorithm else find_algorithm(algorithm).parameters
    if reason := getattr(algorithm, "why_not_in_own_loop", ""):
        name = (algorithm if isinstance(algorithm, type) else type(algorithm)).__name__
        raise CoachError(f"make_agent cannot make an agent of {name}: {reason}")
    made = algorithm() if isinstance(algorithm, type) else algorithm
    if not isinstance(made, AgentParameters):
        raise CoachError(f"an algorithm is a name, or AgentParameters, not {algorithm!r}")
    return made


def _imported(path: str) -> Any:
    try:
        return short_dynamic_import(path)
    except ModuleNotFoundError as error:
        raise CoachError(f"algorithm '{path}': {missing_package(error)}") from error


def environment_parameters(
    env: Any, observation_space: Any, action_space: Any, action_mask: bool, num_envs: int
) -> FedEnvironmentParameters:
    """Settings of the environment that ``make_agent`` was given, or its spaces.

    :raises CoachError: it is none that an agent of a loop can have
    """
    import gymnasium

    spaces = (observation_space, action_space)
    if env is None:
        for name, space in zip(("observation_space", "action_space"), spaces):
            if not isinstance(space, gymnasium.Space):
                raise CoachError(f"give env, or {name} as a space of Gymnasium, not {space!r}")
        return FedEnvironmentParameters("your environment", observation_space, action_space, action_mask)
    if spaces != (None, None):
        raise CoachError("give env, or observation_space and action_space, not both")
    if isinstance(env, str):
        return FedEnvironmentParameters.like(Atari(env) if env.startswith("ALE/") else GymVectorEnvironment(env))
    if isinstance(env, EnvironmentParameters):
        return FedEnvironmentParameters.like(env)
    if isinstance(env, gymnasium.Env):
        return _of_object(env, action_mask, num_envs)
    if callable(env):
        return FedEnvironmentParameters(getattr(env, "__name__", "your environment"), simulator=env)
    raise CoachError(f"env is an id of Gymnasium, an environment or a function that makes one, not {env!r}")


def _of_object(env: Any, action_mask: bool, num_envs: int) -> FedEnvironmentParameters:
    """Settings of an environment that exists. Others like it, for evaluations, are made where its ``spec`` says how."""
    import gymnasium

    name = type(env.unwrapped).__name__ if env.spec is None else env.spec.id
    if env.spec is None:
        if num_envs > 1:
            return FedEnvironmentParameters(name, env.observation_space, env.action_space, action_mask)
        return FedEnvironmentParameters(name, simulator=_once(env, name))
    specification = env.spec
    first = iter([env] if num_envs == 1 else [])
    return FedEnvironmentParameters(name, simulator=lambda: next(first, None) or gymnasium.make(specification))


def _once(env: Any, name: str) -> Callable[[], Any]:
    left = [env]

    def simulator() -> Any:
        if not left:
            raise CoachError(f"another '{name}' is needed, to evaluate in: give env as an id or a function")
        return left.pop()

    return simulator


def running_framework() -> str:
    """The framework that this process already runs; TensorFlow if there is none."""
    keras = sys.modules.get("keras")
    name = keras.backend.backend() if keras is not None else os.environ.get("KERAS_BACKEND", "")
    return name if name in Frameworks.__members__ else "tensorflow"


def make_task(framework: str, seed: int | None, experiment_path: str | None) -> TaskParameters:
    """
    :raises CoachError: there is no such framework
    """
    if framework not in Frameworks.__members__:
        suggestion = did_you_mean(framework, Frameworks.__members__)
        raise CoachError(f"there is no framework '{framework}'{suggestion}")
    task = TaskParameters(framework_type=Frameworks[framework], seed=seed)
    if experiment_path is not None:
        task.experiment_path = experiment_path
    return task
