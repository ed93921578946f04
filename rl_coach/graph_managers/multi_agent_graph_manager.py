"""The graph of several agents in one environment."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Union

from rl_coach.agents.core.requirements import requirements_of
from rl_coach.agents.players import Players
from rl_coach.agents.self_play import SelfPlay, SelfPlayParameters
from rl_coach.base_parameters import (
    AgentParameters,
    PresetValidationParameters,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.multi_agent_environment import numbered_names
from rl_coach.graph_managers.agents_alone import agents_alone_in, restore_agent, save_agent
from rl_coach.graph_managers.building import agent_of_graph, as_int, environment_of_graph, make_agent, make_environment
from rl_coach.graph_managers.compat import take_deprecated_names
from rl_coach.graph_managers.graph_manager import GraphManager, ScheduleParameters
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.multi_agent_level_manager import DoneCondition, MultiAgentLevelManager
from rl_coach.remote_level_manager import RemoteMultiAgentLevelManager
from rl_coach.runs.live_region import Fields
from rl_coach.saver import SaverCollection
from rl_coach.utils import CoachError, did_you_mean, short_dynamic_import


def fields_of(players: Players) -> Fields:
    """Fields for the display: the last reward of each agent if there are several agents, and the Elo rating in
    self-play."""
    rewards = [(name, f"{reward:.4g}") for name, reward in players.last_rewards.items() if len(players.agents) > 1]
    return rewards if players.self_play is None else [*rewards, ("Elo", f"{players.self_play.rating:.0f}")]


class MultiAgentGraphManager(GraphManager):
    """Graph of several agents in one environment.

    The graph counts steps of the environment; each agent counts the steps of its players. The run's reward is the sum
    over all players, or in self-play the learner's reward. ``reward_of`` selects another reward.

    :param agents_params: the agents by name, or a list; a list gets the names ``agent_0``, ``agent_1`` and so on, or
        ``agent`` if it has one entry (``agent_0`` in self-play)
    :param env_params: parameters of a ``MultiAgentEnvironment``, such as ``PettingZooEnvironmentParameters``
    :param schedule_params: the length of each part of the run
    :param vis_params: settings of rendering, videos and log files
    :param preset_validation_params: the reward that tests of the preset require
    :param done_condition: ``any`` or ``all``; see ``MultiAgentLevelManager``
    :param agent_of: the agent's name for each player's name; None assigns all players to a single agent, or one player
        to each of several agents
    :param self_play: settings of self-play, in which an agent plays against its past policies; None without self-play
    :param reward_of: the name of an agent or player; the run's reward is the reward of this agent or player
    :param name: the graph's name, part of the names of its files
    """

    def __init__(
        self,
        agents_params: Union[list[AgentParameters], Mapping[str, AgentParameters]],
        env_params: EnvironmentParameters,
        schedule_params: ScheduleParameters,
        vis_params: VisualizationParameters | None = None,
        preset_validation_params: PresetValidationParameters | None = None,
        done_condition: DoneCondition = any,
        agent_of: Mapping[str, str] | None = None,
        self_play: SelfPlayParameters | None = None,
        reward_of: str | None = None,
        name: str = "multi_agent_graph",
    ):
        super().__init__(name, schedule_params, vis_params)
        if not isinstance(agents_params, Mapping):
            names = ["agent_0"] if self_play is not None and len(agents_params) == 1 else None
            agents_params = dict(zip(names or numbered_names(len(agents_params)), agents_params))
        self.agents_params = dict(agents_params)
        self.env_params: Any = env_params
        self.preset_validation_params = preset_validation_params or PresetValidationParameters()
        self.done_condition = done_condition
        self.agent_of = None if agent_of is None else dict(agent_of)
        self.self_play = self_play
        self.reward_of = reward_of

    @property
    def agent_params(self) -> AgentParameters:
        """The parameters of the first agent."""
        return next(iter(self.agents_params.values()))

    def create_graph(
        self,
        task_parameters: TaskParameters | None = None,
        stop_physics: Callable[[Any], Any] | None = None,
        start_physics: Callable[[Any], Any] | None = None,
        empty_service_call: Callable[[], Any] | None = None,
    ) -> MultiAgentGraphManager:
        """Build the levels, as ``GraphManager`` does. If the construction needs a running simulator, ``start_physics``
        starts the simulator before, and ``stop_physics`` stops the simulator afterwards.

        :param task_parameters: settings of this run; None for the defaults

        :param stop_physics: stops the simulator; called with the result of ``empty_service_call()``
        :param start_physics: starts the simulator
        :param empty_service_call: makes the argument of the other two functions
        :raises CoachError: if one of the functions is given without ``empty_service_call``
        """
        if empty_service_call is None and (stop_physics is not None or start_physics is not None):
            raise CoachError("start_physics and stop_physics need empty_service_call, which makes their argument")
        if start_physics is not None and empty_service_call is not None:
            start_physics(empty_service_call())
        try:
            super().create_graph(task_parameters)
        finally:
            if stop_physics is not None and empty_service_call is not None:
                stop_physics(empty_service_call())
        return self

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        task = task_parameters
        if self.self_play is not None and not (task.role.acts and task.role.trains):
            raise CoachError("self-play cannot be split into trainer and workers: leave out -dc and -n")
        if self.env_params.num_environments > 1:
            raise CoachError("several agents act in one copy of an environment: set env_params.num_environments to 1")
        # Draw all seeds first and in this order. Otherwise the seeds would depend on the order of construction.
        environment_seed, evaluation_seed = self.spawn_seed(), self.spawn_seed()
        agent_seeds = {name: self.spawn_seed() for name in self.agents_params}
        parameters = self.env_params = environment_of_graph(
            self.env_params, task, environment_seed, self.agents_params.values()
        )
        environment = self._create_environment(parameters.seed)
        for name, agent in self.agents_params.items():
            self.agents_params[name] = agent_of_graph(agent, task, self.visualization_parameters, parameters, name)
        level_class = MultiAgentLevelManager if task.role.acts else RemoteMultiAgentLevelManager
        level = level_class(
            name="main_level",
            agents={name: make_agent(agent, agent_seeds[name]) for name, agent in self.agents_params.items()},
            environment=environment,
            evaluation_environment_factory=lambda: self._create_environment(as_int(evaluation_seed)),
            done_condition=self.done_condition,
            agent_of=self.agent_of,
            self_play=self._make_self_play(),
            reward_of=self.reward_of,
        )
        self.other_fields = lambda: fields_of(level.agent)
        return [level], [environment]

    def _create_environment(self, seed: int) -> Any:
        environment = make_environment(self.env_params, seed, self.visualization_parameters)
        kinds = (short_dynamic_import(agent.path) for agent in self.agents_params.values())
        environment.tells_central_state = any(requirements_of(kind).plays_team for kind in kinds)
        return environment

    def _make_self_play(self) -> SelfPlay | None:
        if self.self_play is None:
            return None
        learner = self.self_play.learner
        if learner not in self.agents_params:
            raise CoachError(f"self_play.learner: no agent '{learner}'{did_you_mean(learner, self.agents_params)}")
        return SelfPlay(self.self_play, self.spawn_seed())

    def _reward_of_success(self) -> None:
        """None, because the environment's threshold is for the reward of one agent, not for the reward of the run."""

    def documentation(self) -> dict[str, Any]:
        more = {"agents": self.agents_params, "agent_of": self.agent_of, "self_play": self.self_play}
        return {**super().documentation(), **more, "environment": self.env_params}

    @property
    def parameters_by_stream(self) -> dict[str, AgentParameters]:
        return self.agents_params

    def get_agents(self) -> dict[str, Any]:
        """The agents by name."""
        self.verify_graph_was_created()
        return dict(self.level_managers[0].agents)

    # one agent of several

    def collect_savers(self, agent: str) -> SaverCollection:
        """The savers of one agent's networks. :param agent: the name of the agent"""
        self.verify_graph_was_created()
        savers = SaverCollection()
        for level in self.level_managers:
            savers.update(level.collect_savers(agent))  # type: ignore[call-arg]
        return savers

    @property
    def checkpoint_saver(self) -> dict[str, SaverCollection]:
        """The savers of each agent's networks, by the agent's name."""
        return {name: self.collect_savers(name) for name in self.agents_params}

    def _checkpoint_saved(self, path: str, state: dict[str, Any]) -> None:
        super()._checkpoint_saved(path, state)
        if len(self.agents_params) == 1:
            return
        directory, name = os.path.split(path)
        states = state["levels"]["main_level"]["agent"]["agents"]
        try:
            for one, agent in self.get_agents().items():
                save_agent(directory, name, agent, states[one], self._framework, self.checkpoints_to_keep)
        except OSError as error:
            screen.warning(f"no checkpoints of single agents were saved in '{directory}': {error.strerror}")

    def restore_agent(self, agent: str, path: str) -> None:
        """Restore one agent. The other agents do not change.

        :param agent: the name of the agent
        :param path: a checkpoint of the agent, or a directory of checkpoints such as ``checkpoint/hunters``
        :raises CoachError: if there is no agent of this name or no checkpoint, or the checkpoint does not fit
        """
        agents = self.get_agents()
        if agent not in agents:
            raise CoachError(f"there is no agent '{agent}'{did_you_mean(agent, agents)}")
        found = restore_agent(path, agents[agent], self._framework)
        screen.log(f"agent '{agent}' continues from {found}")

    def restore_checkpoint(self, path: str | None = None, continue_run: bool = False) -> None:
        """Restore a checkpoint, as ``GraphManager`` does. If the directory contains only checkpoints of single agents,
        restore these agents; the other agents start without training."""
        self.verify_graph_was_created()
        take_deprecated_names(self.task_parameters)
        chosen = path or self.task_parameters.checkpoint_restore_path
        alone = agents_alone_in(chosen, self.agents_params) if chosen is not None else {}
        for name, place in alone.items():
            self.restore_agent(name, place)
        if not alone:
            super().restore_checkpoint(path, continue_run)
        elif others := [name for name in self.agents_params if name not in alone]:
            screen.warning(f"'{chosen}' has no checkpoint of {', '.join(others)}: these agents start without training")

    @property
    def _framework(self) -> str:
        return self.task_parameters.framework_type.name
