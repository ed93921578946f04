"""An agent from an algorithm's name, an environment or its spaces, and settings."""

from __future__ import annotations

import logging
from typing import Any, Callable

from rl_coach.base_parameters import AgentParameters, Frameworks, TaskParameters, VisualizationParameters
from rl_coach.command_line.custom_parameters import apply_settings
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.fed_environment import FedEnvironmentParameters
from rl_coach.environments.gym_environment import Atari, GymVectorEnvironment
from rl_coach.graph_managers.schedule_parameters import SimpleScheduleWithoutEvaluation
from rl_coach.own_loop.agent import Agent
from rl_coach.own_loop.graph import OwnLoopGraphManager
from rl_coach.utilities.dynamic_import import class_path
from rl_coach.utils import CoachError, did_you_mean, short_dynamic_import

logger = logging.getLogger("rl_coach")

ALGORITHMS = {
    "A2C": "rl_coach.agents.actor_critic_agent:ActorCriticAgentParameters",
    "A3C": "rl_coach.agents.actor_critic_agent:ActorCriticAgentParameters",
    "ACER": "rl_coach.agents.acer_agent:ACERAgentParameters",
    "BootstrappedDQN": "rl_coach.agents.bootstrapped_dqn_agent:BootstrappedDQNAgentParameters",
    "C51": "rl_coach.agents.categorical_dqn_agent:CategoricalDQNAgentParameters",
    "ClippedPPO": "rl_coach.agents.clipped_ppo_agent:ClippedPPOAgentParameters",
    "DDPG": "rl_coach.agents.ddpg_agent:DDPGAgentParameters",
    "DDQN": "rl_coach.agents.ddqn_agent:DDQNAgentParameters",
    "DQN": "rl_coach.agents.dqn_agent:DQNAgentParameters",
    "MMC": "rl_coach.agents.mmc_agent:MixedMonteCarloAgentParameters",
    "NAF": "rl_coach.agents.naf_agent:NAFAgentParameters",
    "NEC": "rl_coach.agents.nec_agent:NECAgentParameters",
    "NStepQ": "rl_coach.agents.n_step_q_agent:NStepQAgentParameters",
    "PAL": "rl_coach.agents.pal_agent:PALAgentParameters",
    "PG": "rl_coach.agents.policy_gradients_agent:PolicyGradientsAgentParameters",
    "PPO": "rl_coach.agents.ppo_agent:PPOAgentParameters",
    "QRDQN": "rl_coach.agents.qr_dqn_agent:QuantileRegressionDQNAgentParameters",
    "Rainbow": "rl_coach.agents.rainbow_dqn_agent:RainbowDQNAgentParameters",
    "SAC": "rl_coach.agents.soft_actor_critic_agent:SoftActorCriticAgentParameters",
    "TD3": "rl_coach.agents.td3_agent:TD3AgentParameters",
    "Wolpertinger": "rl_coach.agents.wolpertinger_agent:WolpertingerAgentParameters",
}
"""The algorithms by the names that ``make_agent`` takes, and their parameters. PPO is the one with a penalty on the KL
divergence; ClippedPPO is what most people call PPO."""


def make_agent(
    algorithm: str | AgentParameters | type[AgentParameters],
    env: Any = None,
    *,
    observation_space: Any = None,
    action_space: Any = None,
    action_mask: bool = False,
    num_envs: int = 1,
    env_ids: Any = None,
    heatup_steps: int = 0,
    updates_itself: bool = True,
    seed: int | None = None,
    framework: str = "tensorflow",
    experiment_path: str | None = None,
    reward_threshold: float | None = None,
    agent_class: Callable[..., Agent] | None = None,
    **settings: Any,
) -> Agent:
    """An agent that a loop of yours drives.

    ``agent = make_agent("DQN", "CartPole-v1", seed=0, learning_rate=1e-3, discount=0.98)``

    :param algorithm: a name of ``ALGORITHMS``, as ``"DQN"``; ``"module:ParametersClass"``; or the parameters
    :param env: what ``learn`` acts in, and whose spaces the agent has: an id of Gymnasium, a Gymnasium environment, a
        function that makes one, or parameters such as ``Atari("ALE/Pong-v5")``
    :param observation_space: without ``env``, Gymnasium's space of the observations
    :param action_space: without ``env``, Gymnasium's space of the actions
    :param action_mask: each info of your environment has an ``action_mask``, [A] of 0 and 1
    :param num_envs: number of environments that your loop steps
    :param env_ids: names of these, for ``act`` and ``observe``; None counts them from 0
    :param heatup_steps: steps of random actions before training; it ends with an episode, as in a preset
    :param updates_itself: learn in ``observe``, as often as the algorithm's settings say; otherwise in ``update`` alone
    :param seed: makes the agent repeatable; None draws one
    :param framework: ``tensorflow``, ``jax`` or ``mxnet``
    :param experiment_path: directory for signals and checkpoints; None writes none
    :param reward_threshold: total reward with which an episode is a success; None takes the environment's own
    :param agent_class: a subclass of ``Agent``, or what makes one of the same arguments
    :param settings: any setting of the algorithm: by its short name (``learning_rate``), by its path from the agent's
        parameters (``**{"algorithm.discount": 0.98}``), or nested (``algorithm={"discount": 0.98}``)
    :raises CoachError: for bad input
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise CoachError(f"num_envs is the number of your environments, 1 or more, not {num_envs!r}")
    ids = list(range(num_envs)) if env_ids is None else list(env_ids)
    if len(set(ids)) != num_envs:
        raise CoachError(f"env_ids names each of the {num_envs} environments once, not {env_ids!r}")
    environment = _environment(env, observation_space, action_space, action_mask, num_envs)
    environment.num_environments, environment.custom_reward_threshold = num_envs, reward_threshold
    graph = _graph(_parameters(algorithm), environment, heatup_steps, experiment_path)
    for line in apply_settings(graph, settings):
        logger.warning("%s", line)
    graph.create_graph(_task(framework, seed, experiment_path))
    definition = {
        "algorithm": algorithm if isinstance(algorithm, str) else class_path(_class_of(algorithm)),
        "env": env,
        "observation_space": observation_space,
        "action_space": action_space,
        "num_envs": num_envs,
        "env_ids": env_ids,
        "action_mask": action_mask,
        "heatup_steps": heatup_steps,
        "updates_itself": updates_itself,
        "framework": framework,
        "reward_threshold": reward_threshold,
        "settings": settings,
    }
    return (agent_class or Agent)(graph, ids, updates_itself, definition)


def _class_of(algorithm: Any) -> type:
    return algorithm if isinstance(algorithm, type) else type(algorithm)


def _parameters(algorithm: Any) -> AgentParameters:
    if isinstance(algorithm, str):
        known = {_plain(name): path for name, path in ALGORITHMS.items()}
        path = algorithm if ":" in algorithm else known.get(_plain(algorithm))
        if path is None:
            suggestion = did_you_mean(algorithm, ALGORITHMS) or f"; there are {', '.join(ALGORITHMS)}"
            raise CoachError(f"there is no algorithm '{algorithm}'{suggestion}")
        algorithm = short_dynamic_import(path)
    made = algorithm() if isinstance(algorithm, type) else algorithm
    if not isinstance(made, AgentParameters):
        raise CoachError(f"an algorithm is a name, or AgentParameters, not {algorithm!r}")
    return made


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _environment(
    env: Any, observation_space: Any, action_space: Any, action_mask: bool, num_envs: int
) -> FedEnvironmentParameters:
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


def _graph(
    parameters: AgentParameters, environment: FedEnvironmentParameters, heatup_steps: int, experiment_path: str | None
) -> OwnLoopGraphManager:
    schedule = SimpleScheduleWithoutEvaluation()
    schedule.heatup_steps = EnvironmentSteps(heatup_steps)
    schedule.evaluation_steps = EnvironmentEpisodes(5)
    visualization = VisualizationParameters()
    visualization.dump_csv = visualization.dump_parameters_documentation = experiment_path is not None
    graph = OwnLoopGraphManager(parameters, environment, schedule, visualization)
    graph.writes_files = graph.prints_summary = experiment_path is not None
    return graph


def _task(framework: str, seed: int | None, experiment_path: str | None) -> TaskParameters:
    if framework not in Frameworks.__members__:
        suggestion = did_you_mean(framework, Frameworks.__members__)
        raise CoachError(f"there is no framework '{framework}'{suggestion}")
    task = TaskParameters(framework_type=Frameworks[framework], seed=seed)
    if experiment_path is not None:
        task.experiment_path = experiment_path
    return task
