"""A level with several agents in one environment."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, Union

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.players import Players, seats_of
from rl_coach.agents.self_play import SelfPlay
from rl_coach.core_types import EnvironmentSteps, EnvResponse
from rl_coach.environments.multi_agent_environment import MultiAgentEnvironment, PlayersResponse, by_name
from rl_coach.level_manager import LevelManager
from rl_coach.saver import SaverCollection
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import CoachError, did_you_mean

DoneCondition = Callable[[Iterable[bool]], bool]
"""The function ``any`` or ``all``. Its argument tells for each player if the player's episode has ended; the result is
True if the episode of all players is over."""


class MultiAgentLevelManager(LevelManager):
    """Lets several agents act in a ``MultiAgentEnvironment``.

    In one step of the level, each player acts once. If players take turns, only the next player acts.

    :param name: the level's name
    :param agents: the agents by name; or a list of agents with different names
    :param environment: a ``MultiAgentEnvironment``
    :param real_environment: no effect, because the graph has one level
    :param steps_limit: no effect, because the graph has one level
    :param should_reset_agent_state_after_time_limit_passes: no effect, because the graph has one level
    :param spaces_definition: the spaces of each player, by the player's name or in the players' order; None uses the
        spaces of the environment
    :param evaluation_environment_factory: builds the environment for evaluation; see ``LevelManager``
    :param done_condition: ``any`` ends the episodes of all players as soon as the episode of one player ends; the
        episodes of the other players are truncated. ``all`` waits until the episodes of all players have ended
    :param agent_of: the agent's name for each player's name; None assigns all players to a single agent, or one player
        to each of several agents
    :param self_play: lets past policies of an agent play against this agent; None without self-play
    :param reward_of: the name of an agent or a player; the episode's reward is the reward of this agent or player. None
        for the sum of all rewards, or for the learner's reward in self-play
    :raises CoachError: if agents and players do not match
    """

    agent: Players
    real_environment: Any

    def __init__(
        self,
        name: str,
        agents: Union[Mapping[str, AgentInterface], list[AgentInterface], AgentInterface],
        environment: Any,
        real_environment: Any = None,
        steps_limit: EnvironmentSteps | None = None,
        should_reset_agent_state_after_time_limit_passes: bool = False,
        spaces_definition: Any = None,
        evaluation_environment_factory: Callable[[], Any] | None = None,
        done_condition: DoneCondition = any,
        agent_of: Mapping[str, str] | None = None,
        self_play: SelfPlay | None = None,
        reward_of: str | None = None,
    ):
        if not isinstance(environment, MultiAgentEnvironment):
            raise CoachError(f"level '{name}' needs a MultiAgentEnvironment, not {type(environment).__name__}")
        self.done_condition = done_condition
        self.reward_of = reward_of
        if isinstance(agents, AgentInterface):
            agents = [agents]
        named = dict(agents) if isinstance(agents, Mapping) else {agent.name: agent for agent in agents}
        players = environment.players
        seats = seats_of(players, list(named), agent_of)
        choices = [*named, *players]
        if reward_of is not None and reward_of not in choices:
            raise CoachError(f"reward_of: there is no agent or player '{reward_of}'{did_you_mean(reward_of, choices)}")
        super().__init__(
            name, Players(named, seats, self_play), environment, real_environment, steps_limit,
            should_reset_agent_state_after_time_limit_passes, spaces_definition, evaluation_environment_factory,
        )  # fmt: skip
        if self.steps_limit.num_steps > 1 or not self.has_real_environment:
            raise CoachError(f"level '{name}' has several agents: there can be no level above or below it")

    def build(self, spaces_definition: Any = None) -> None:
        environment = self.real_environment
        spaces: Mapping[str, SpacesDefinition] = environment.spaces
        if spaces_definition is not None:
            spaces = by_name(spaces_definition, environment.players)
        self.spaces_definition: Any = spaces
        self.agent.set_environment_parameters(spaces, environment.central_space)
        for name in self.agent.teams:
            if environment.takes_turns:
                raise CoachError(
                    f"agent '{name}' needs players that act at the same time, but the players of level "
                    f"'{environment.env_id}' take turns: choose DQN or ClippedPPO"
                )

    @property
    def agents(self) -> Mapping[str, AgentInterface]:
        """The agents by name."""
        return MappingProxyType(self.agent.agents)

    def fits(self) -> dict[str, str]:
        found = {f"{what} of {self.name}/{self.agent.name}": text for what, text in self.agent.fits().items()}
        for player, spaces in self.spaces_definition.items():
            found |= spaces.fits(f"{self.name}/{player}")
        return found

    def emulate_step_on_trainer(self, transition: Any) -> bool:
        """Pass to each agent its transition of a step in another process; see ``Players.observe_played``."""
        if self.episode_over:
            self.agent.begin_played_episode()
        self.episode_over = self.agent.observe_played(transition, self.done_condition)
        return self.episode_over

    def collect_savers(self, agent: str | None = None) -> SaverCollection:
        """The savers of one agent. :param agent: the agent's name; None for the savers of all agents"""
        if agent is None:
            return super().collect_savers()
        if agent not in self.agents:
            raise CoachError(f"level '{self.name}' has no agent '{agent}'{did_you_mean(agent, self.agents)}")
        return self.agents[agent].collect_savers(self.name)

    def take_in(self, response: EnvResponse) -> None:
        """Pass the environment's responses to the players. If ``done_condition`` is met, end the episode of all
        players."""
        assert isinstance(response, PlayersResponse)
        if not response.game_over:
            ended = (player for player, one in response.answers.items() if one.game_over)
            over = {*self.agent.over, *ended} - response.returned
            if self.done_condition([player in over for player in self.agent.agent_of]):
                environment: Any = self.active_environment
                response = environment.cut_off()
        super().take_in(response)

    @property
    def total_reward_in_current_episode(self) -> float:
        """The total reward of the episode in progress: the sum over all players, or the reward that ``reward_of`` or
        self-play selects."""
        environment: Any = self.active_environment
        counted = self._players_that_count()
        return float(sum(reward for player, reward in environment.total_rewards.items() if player in counted))

    def _players_that_count(self) -> list[str]:
        agent = self.reward_of
        if agent is None and self.agent.self_play is not None:
            agent = self.agent.self_play.learner
        if agent is None:
            return self.agent.players
        return self.agent.played_by(agent) if agent in self.agents else [agent]

    def _episode_state(self) -> dict[str, Any] | None:
        return super()._episode_state() if self.agent.has_savable_episode else None
