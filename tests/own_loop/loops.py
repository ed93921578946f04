"""A preset's run, and loops of a user's own that must be equal to it."""

from __future__ import annotations

from typing import Any, Callable

import gymnasium
import numpy as np

from rl_coach import Agent, make_agent
from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.rainbow_dqn_agent import RainbowDQNAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.schedule_parameters import SimpleScheduleWithoutEvaluation
from tests.frameworks import FRAMEWORK

SEED, HEATUP = 3, 60


def small(parameters: AgentParameters) -> AgentParameters:
    """The parameters, with networks and batches that take little time."""
    for network in parameters.network_wrappers.values():
        network.batch_size = 16
        network.middleware_parameters.scheme = []
    return parameters


def clipped_ppo() -> AgentParameters:
    parameters = small(ClippedPPOAgentParameters())
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    parameters.algorithm.optimization_epochs = 2
    return parameters


def recurrent_a2c() -> AgentParameters:
    parameters = small(ActorCriticAgentParameters())
    parameters.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=8)
    return parameters


AGENTS: dict[str, tuple[Callable[[], AgentParameters], str]] = {
    "DQN": (lambda: small(DQNAgentParameters()), "CartPole-v1"),
    "Rainbow": (lambda: small(RainbowDQNAgentParameters()), "CartPole-v1"),
    "ClippedPPO": (clipped_ppo, "CartPole-v1"),
    "SAC": (lambda: small(SoftActorCriticAgentParameters()), "Pendulum-v1"),
    "recurrent A2C": (recurrent_a2c, "CartPole-v1"),
}


def preset_run(name: str, num_envs: int, steps: int) -> BasicRLGraphManager:
    """The graph of a preset after so many steps of training."""
    make, level = AGENTS[name]
    schedule = SimpleScheduleWithoutEvaluation(EnvironmentSteps(steps))
    schedule.heatup_steps = EnvironmentSteps(HEATUP)
    visualization = VisualizationParameters(dump_csv=False, dump_parameters_documentation=False)
    environment = GymVectorEnvironment(level)
    environment.num_environments = num_envs
    graph = BasicRLGraphManager(make(), environment, schedule, visualization)
    graph.create_graph(TaskParameters(framework_type=FRAMEWORK, seed=SEED))
    graph.heatup(graph.heatup_steps)
    graph.improvement.begin()
    graph.train_and_act(schedule.improve_steps)
    return graph


def own_agent(name: str, num_envs: int = 1, **arguments: Any) -> Agent:
    """The same agent for a loop, made of the spaces alone."""
    make, level = AGENTS[name]
    env = gymnasium.make(level)
    return make_agent(
        make(), observation_space=env.observation_space, action_space=env.action_space, num_envs=num_envs, seed=SEED,
        heatup_steps=HEATUP, framework=FRAMEWORK.name, **arguments,
    )  # fmt: skip


def training_steps(agent: Agent) -> int:
    return agent.graph_manager.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps]


class Loop:
    """A loop over plain Gymnasium, which can be stopped and go on.

    :param name: of ``AGENTS``
    :param is_deferred: the next state comes with the next ``act``
    """

    def __init__(self, name: str, agent: Agent, num_envs: int = 1, is_deferred: bool = False):
        self.agent = agent
        self.envs = [gymnasium.make(AGENTS[name][1]) for _ in range(num_envs)]
        self.states = [env.reset(seed=agent.environment_seed + i)[0] for i, env in enumerate(self.envs)]
        self.is_deferred = is_deferred

    def step(self) -> None:
        single, agent = len(self.envs) == 1, self.agent
        actions = [agent.act(self.states[0])] if single else agent.act(np.stack(self.states))
        answers = [env.step(action) for env, action in zip(self.envs, actions)]
        states, rewards, terminated, truncated, _ = (list(column) for column in zip(*answers))
        if not single:
            agent.observe(rewards, terminated, truncated, np.stack(states))
        elif self.is_deferred and not truncated[0]:
            agent.observe(rewards[0], terminated[0])
        else:
            agent.observe(rewards[0], terminated[0], truncated[0], states[0])
        self.states = [
            env.reset()[0] if ends else state
            for env, state, ends in zip(self.envs, states, np.logical_or(terminated, truncated))
        ]

    def run(self, steps: int) -> Agent:
        """Go on to so many steps of training."""
        while training_steps(self.agent) < steps:
            self.step()
            waits = self.agent.graph_manager.environments[0].fed.deferred is not None if self.is_deferred else False
            if waits and training_steps(self.agent) == steps - 1:
                self.agent.act(self.states[0])  # brings the last step's next state
        return self.agent


def agent_state(holder: Any) -> dict[str, Any]:
    """All that an agent learns, remembers and draws from; not the CSV's rows, which hold the time."""
    graph = getattr(holder, "graph_manager", holder)
    return {name: part for name, part in graph.get_agent().get_state().items() if name != "books"}


def assert_equal(one: Any, other: Any, path: str = "") -> None:
    """Two nested states are equal bit for bit."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for name in one:
            assert_equal(one[name], other[name], f"{path}/{name}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), path
        for index, (a, b) in enumerate(zip(one, other)):
            assert_equal(a, b, f"{path}/{index}")
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, path)
    else:
        assert one == other or (one != one and other != other), (path, one, other)
