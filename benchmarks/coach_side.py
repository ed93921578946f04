"""The works in Coach."""

from __future__ import annotations

import tempfile
from typing import Any, Callable

from benchmarks.works import Work
from rl_coach.base_parameters import Frameworks, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentSteps
from rl_coach.environments.gym_environment import Atari, GymEnvironmentParameters, GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule


def runner(work: Work, framework: str) -> Callable[[int], None]:
    """A function that makes some environment steps of a work, training included."""
    agent_parameters = {"dqn": _dqn, "ppo": _ppo, "sac": _sac, "null": _null_agent}[work.algorithm](work)
    visualization = VisualizationParameters(dump_csv=False, dump_parameters_documentation=False)
    graph = BasicRLGraphManager(agent_parameters, _environment(work), SimpleSchedule(), visualization)
    task = TaskParameters(framework_type=Frameworks[framework], experiment_path=tempfile.mkdtemp(), seed=1)
    graph.create_graph(task)
    if work.algorithm != "ppo":
        graph.heatup(EnvironmentSteps(max(1, work.batch_size * 4)))
    return lambda steps: graph.train_and_act(EnvironmentSteps(steps))


def _environment(work: Work) -> GymEnvironmentParameters:
    level = work.level or "benchmarks.null_environment:NullEnvironment"
    parameters = Atari(level=level) if "Pong" in level else GymVectorEnvironment(level=level)
    if work.environments > 1:
        parameters.num_environments = work.environments
    return parameters


def _dqn(work: Work) -> Any:
    from rl_coach.agents.dqn_agent import DQNAgentParameters
    from rl_coach.architectures.layers import Dense
    from rl_coach.memories.memory import MemoryGranularity

    parameters = DQNAgentParameters()
    network = parameters.network_wrappers["main"]
    if len(work.hidden) == 2:
        network.input_embedders_parameters["observation"].scheme = [Dense(work.hidden[0])]
    network.middleware_parameters.scheme = [Dense(work.hidden[-1])]
    network.batch_size = work.batch_size
    network.replace_mse_with_huber_loss = False
    parameters.memory.max_size = (MemoryGranularity.Transitions, 40_000)
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(work.steps_per_update)
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(100)
    parameters.exploration.epsilon_schedule.final_value = 0.01
    parameters.exploration.epsilon_schedule.decay_steps = 1_000
    return parameters


def _ppo(work: Work) -> Any:
    from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
    from rl_coach.architectures.layers import Dense

    parameters = ClippedPPOAgentParameters()
    network = parameters.network_wrappers["main"]
    network.input_embedders_parameters["observation"].scheme = [Dense(work.hidden[0])]
    network.middleware_parameters.scheme = [Dense(work.hidden[1])]
    network.batch_size = work.batch_size
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(2048)
    return parameters


def _sac(work: Work) -> Any:
    from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
    from rl_coach.architectures.layers import Dense

    parameters = SoftActorCriticAgentParameters()
    for name in ("v", "policy"):
        parameters.network_wrappers[name].middleware_parameters.scheme = [Dense(work.hidden[1])]
    return parameters


def _null_agent(work: Work) -> Any:
    parameters = _dqn(Work("", "", "dqn", None, (8, 8), 8, 0, 0))
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(10**12)
    parameters.exploration.epsilon_schedule.initial_value = 1.0
    parameters.exploration.epsilon_schedule.final_value = 1.0
    parameters.exploration.epsilon_schedule.current_value = 1.0
    return parameters
