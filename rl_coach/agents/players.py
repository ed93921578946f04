"""The agents that play one environment: each agent plays one player, or several players with one policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, SupportsFloat

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.agent_group import AgentGroup
from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.core.requirements import requirements_of
from rl_coach.agents.core.team import Team
from rl_coach.agents.self_play import FrozenPlayer, SelfPlay
from rl_coach.core_types import ActionInfo, ActionType, EnvResponse, RunPhase, Transition
from rl_coach.environments.multi_agent_environment import PlayersResponse
from rl_coach.spaces import SpacesDefinition, VectorObservationSpace
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError, choose_from


@dataclass
class PlayersEpisode:
    """The saved episode of all players.

    :param agents: the episodes of each agent, by name; a list if the agent plays several players
    :param over: the players that have finished their episode
    :param to_act: the players that act next
    :param frozen: a dict from players to the past policies that play them
    """

    agents: dict[str, Any]
    over: list[str]
    to_act: list[str]
    frozen: dict[str, Any]


plain_data.register(PlayersEpisode)


class Players(AgentGroup):
    """Agents that play an environment together, each with its own memory, policy and signals.

    An agent that plays several players has an episode for each player. An agent counts a step for each action of one of
    its players. The environment counts a step for each of its answers (observations and rewards). An agent that
    ``plays_team`` has one episode for all its players, and counts a step for each joint action.

    :param agents: the agents by name
    :param agent_of: a dict from each player to the name of its agent
    :param self_play: lets one of the agents play against its past policies; None if all players are played by agents
    :raises CoachError: if a named agent does not exist, has no player, or cannot act with other agents

    :ivar agent_of: a dict from each player to the name of the agent that learns from this player
    :ivar teams: a dict from the name of an agent to the team that this agent plays
    :ivar over: the players that have finished the present episode
    :ivar last_rewards: a dict from an agent to the total reward of the last finished episode of one of its players
    """

    agents: dict[str, Agent]  # type: ignore[assignment]

    def __init__(
        self, agents: Mapping[str, AgentInterface], agent_of: Mapping[str, str], self_play: SelfPlay | None = None
    ):
        super().__init__()
        self.name = self.full_name_id = "players"
        self.agents = dict(agents)  # type: ignore[arg-type]
        self.agent_of = dict(agent_of)
        self.self_play = self_play
        for name in self.agent_of.values():
            if name not in self.agents:
                raise CoachError(f"agent_of: there is no agent '{name}'{choose_from(name, self.agents)}")
        for name, agent in self.agents.items():
            if name not in self.agent_of.values():
                raise CoachError(f"agent_of: agent '{name}' plays no player: name a player for it, or remove the agent")
            if not isinstance(agent, Agent):
                raise CoachError(f"agent '{name}' cannot play with other agents: it is a {type(agent).__name__}")
        self.teams: dict[str, Team] = {}
        self._seats: dict[str, tuple[Agent, int | None]] = {}
        self._frozen: dict[str, FrozenPlayer] = {}
        self.over: list[str] = []
        self.last_rewards: dict[str, float] = {}
        self._to_act: list[str] = []

    @property
    def players(self) -> list[str]:
        """The players of the present episode."""
        return list(self.agent_of)

    def players_of(self, agent: str) -> list[str]:
        """The players that an agent may play, in the environment's order."""
        return [player for player, name in self.agent_of.items() if name == agent]

    def played_by(self, agent: str) -> list[str]:
        """The players that an agent plays in the present episode."""
        return [player for player in self.players_of(agent) if player not in self._frozen]

    @property
    def by_stream(self) -> dict[str, Any]:
        return dict(self.agents)

    def players_of_stream(self, stream: str) -> int:
        return 1 if stream in self.teams else len(self.players_of(stream))

    # building

    def create_agents(self) -> None:
        for agent in self.agents.values():
            agent.parent = self.parent

    def set_environment_parameters(
        self, spaces: Mapping[str, SpacesDefinition], central: VectorObservationSpace | None = None
    ) -> None:
        """Set the spaces of each player.

        :param central: the space of the environment's central state, for teams; None without a central state
        :raises CoachError: if players that one agent plays have different spaces
        """
        for name, agent in self.agents.items():
            first, *others = self.players_of(name)
            for other in others:
                if difference := spaces[first].difference_from(spaces[other]):
                    raise CoachError(
                        f"agent '{name}' cannot play both '{first}' and '{other}', which have different spaces "
                        f"({difference}): give each its own agent (agent_of)"
                    )
            is_learner = self.self_play is not None and self.self_play.learner == name
            if requirements_of(agent).plays_team:
                if is_learner:
                    raise CoachError(
                        f"agent '{name}' plays a team, which self-play cannot train: choose DQN or ClippedPPO"
                    )
                team = Team(name, [first, *others], spaces[first], central, agent.ap.algorithm.tells_players_apart)
                self.teams[name] = team
                agent.set_environment_parameters(team.spaces)
            else:
                agent.set_environment_parameters(spaces[first])
            if is_learner or not others or name in self.teams:
                self._seats |= dict.fromkeys([first, *others], (agent, None))
            else:
                agent.play_in_copies(1 + len(others))
                self._seats |= {player: (agent, index) for index, player in enumerate([first, *others])}
        if self.self_play is not None:
            self.self_play.connect(self.agents[self.self_play.learner])

    # an episode

    def _enter(self, player: str) -> Agent:
        """The agent that plays a player, in the episode with this player."""
        agent, index = self._seats[player]
        if index is not None:
            assert agent.parallel is not None
            agent.parallel.enter(index)
        return agent

    def reset_internal_state(self) -> None:
        self.over, self._to_act, self._frozen = [], [], {}
        if self.self_play is not None:
            if self.phase is not RunPhase.TEST:  # after an evaluation, the training game may still need them
                self.self_play.forget_oldest()
            self._frozen = self.self_play.opponents(self.players_of(self.self_play.learner), self.phase)
            for opponent in self._frozen.values():
                self.self_play.begin_episode(opponent)
        for player in self.players:
            if player not in self._frozen and self._plays_alone(player):
                self._enter(player).begin_episode()
        for name in self.teams:
            self.agents[name].begin_episode()

    def _plays_alone(self, player: str) -> bool:
        return self.agent_of[player] not in self.teams

    def _team_is_over(self, name: str) -> bool:
        """True if all players of a team have ended their episode."""
        return all(player in self.over for player in self.teams[name].players)

    def observe(self, env_response: EnvResponse) -> bool:
        """Pass the environment's answer to its players. If a player has finished, its agent closes the episode of this
        player.

        :return: True if the episode is over for all players
        """
        assert isinstance(env_response, PlayersResponse)
        for player in env_response.returned:
            begins = self._plays_alone(player) or self._team_is_over(self.agent_of[player])
            self.over.remove(player)
            if player not in self._frozen and begins:
                self._enter(player).begin_episode()
        playing = [name for name in self.teams if not self._team_is_over(name)]
        for player, answer in env_response.answers.items():
            if player in self.over:  # its agent has ended the episode, and the environment continues
                continue
            is_over = answer.game_over
            if player in self._frozen:
                self._frozen[player].state = answer.next_state
            elif self._plays_alone(player):
                agent = self._enter(player)
                is_over = agent.observe(answer) or is_over
                if is_over:
                    self._end_episode(agent)
            if is_over:
                self.over.append(player)
        for name in playing:
            self._observe_team(name, env_response)
        self._to_act = [player for player in env_response.to_act if player not in self.over]
        return set(self.over) >= self.agent_of.keys()

    def _observe_team(self, name: str, response: PlayersResponse) -> None:
        agent, team = self.agents[name], self.teams[name]
        answer = team.join(response, self.over)
        if agent.observe(answer) or answer.game_over:
            self._end_episode(agent)
            self.over += [player for player in team.players if player not in self.over]

    # steps that other processes have played

    def begin_played_episode(self) -> None:
        """Begin an episode of each agent."""
        self.over = []
        for agent in self.agents.values():
            agent.begin_episode()

    def observe_played(self, transitions: Mapping[str, Transition], is_done: Callable[[Iterable[bool]], bool]) -> bool:
        """Give each agent a step that another process has played.

        :param transitions: a dict from an agent's name to its transition; an agent may be missing if its episode is
            over
        :param is_done: ``any`` or ``all``: the episode is over if any agent, or if all agents, have ended their
            episodes
        :return: True if the episode of all agents is over
        :raises CoachError: if an agent is unknown or missing, or plays several players
        """
        for name in transitions:
            if name not in self.agents:
                raise CoachError(f"there is no agent '{name}'{choose_from(name, self.agents)}")
        for name, agent in self.agents.items():
            if agent.parallel is not None or name in self.teams:
                raise CoachError(
                    f"agent '{name}' plays several players, but its transition does not say which player acted: "
                    "give each player its own agent with agent_of"
                )
            if name in self.over:
                continue
            if name not in transitions:
                raise CoachError(f"agent '{name}' has no transition: give one for each agent")
            if agent.observe_played(transitions[name]):
                self.over.append(name)
        if not is_done(name in self.over for name in self.agents):
            return False
        for agent in self.agents.values():
            agent.handle_episode_ended()
        return True

    def _end_episode(self, agent: Agent) -> None:
        reward = self.last_rewards[agent.name] = float(np.sum(agent.episode.total_reward))
        if self.self_play is not None and agent.name == self.self_play.learner:
            self.self_play.record(reward, list(self._frozen.values()), self.phase)
        agent.handle_episode_ended()

    def act(self, action: ActionType | None = None) -> ActionInfo:
        """Choose an action for each player that acts next; each agent's networks predict once for all its players.

        :return: the chosen actions; ``action`` is a dict from each player to its action
        """
        actions: dict[str, Any] = {}
        for name, agent in self.agents.items():
            if name in self.teams:
                if not self._team_is_over(name) and (joint := agent.act()) is not None:
                    actions |= self.teams[name].split(np.asarray(joint.action))
                continue
            acting = [player for player in self._to_act if self.agent_of[player] == name and player not in self._frozen]
            for player, chosen in self._choices(agent, acting).items():
                if chosen is None:
                    raise CoachError(f"agent '{name}' chooses no actions, so it cannot play '{player}'")
                actions[player] = chosen.action
        if self.self_play is not None:
            frozen = {player: one for player, one in self._frozen.items() if player in self._to_act}
            actions |= {player: self.self_play.act(one, self.phase) for player, one in frozen.items()}
        self.last_action_info = ActionInfo({player: actions[player] for player in self._to_act})  # type: ignore[arg-type]
        return self.last_action_info

    def _choices(self, agent: Agent, players: list[str]) -> dict[str, ActionInfo | None]:
        if not players:
            return {}
        if agent.parallel is None:
            return {player: agent.act() for player in players}
        indices = {player: index for player, (_, index) in self._seats.items() if player in players}
        chosen = agent.parallel.act([index for index in indices.values() if index is not None])
        return {player: chosen[index] for player, index in indices.items() if index is not None}

    def handle_episode_ended(self) -> None:
        """Do nothing: the episode of each player was closed when it ended."""

    def put_episode_aside(self) -> PlayersEpisode:
        episodes = {
            name: agent.put_episode_aside() if agent.parallel is None else agent.parallel.put_aside()
            for name, agent in self.agents.items()
        }
        return PlayersEpisode(episodes, list(self.over), list(self._to_act), dict(self._frozen))

    def take_up_episode(self, episode: PlayersEpisode, is_restored: bool = False) -> None:
        self.over, self._to_act = list(episode.over), list(episode.to_act)
        for name, agent in self.agents.items():
            if agent.parallel is None:
                agent.take_up_episode(episode.agents[name], is_restored)
            else:
                agent.parallel.take_up(episode.agents[name], is_restored)
        self._frozen = dict(episode.frozen)

    @property
    def has_savable_episode(self) -> bool:
        """False if an opponent's policy keeps a state during the episode: checkpoints do not include this state."""
        return self.self_play is None or not self.self_play.remembers_episodes

    # learning and state

    def train(self) -> SupportsFloat:
        loss = super().train()
        if self.self_play is not None:
            self.self_play.freeze_if_due()
        return loss

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        super().seed_evaluation(seed)
        if self.self_play is not None:
            self.self_play.seed_evaluation(seed.spawn(1)[0])

    def get_state(self) -> dict[str, Any]:
        own = {} if self.self_play is None else {"self_play": self.self_play.get_state()}
        return {**super().get_state(), **own}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if self.self_play is not None:
            self.self_play.set_state(state["self_play"])


def seats_of(players: list[str], agents: list[str], agent_of: Mapping[str, str] | None) -> dict[str, str]:
    """A dict from each player to the agent that plays this player.

    :param players: the environment's players, in their order
    :param agents: the names of the agents
    :param agent_of: the user's dict from players to agents. None: one agent plays all players, or each of several
        agents plays one player, in order
    :raises CoachError: if a player is unknown or has no agent, or the numbers of players and agents do not fit
    """
    if agent_of is None:
        if len(agents) == 1:
            return dict.fromkeys(players, agents[0])
        if len(agents) != len(players):
            raise CoachError(
                f"{len(agents)} agents for {len(players)} players ({', '.join(players)}): give agent_of, a "
                f"dictionary from each player to its agent"
            )
        return dict(zip(players, agents))
    for player in agent_of:
        if player not in players:
            raise CoachError(f"agent_of: there is no player '{player}'{choose_from(player, players)}")
    missing = [player for player in players if player not in agent_of]
    if missing:
        raise CoachError(f"agent_of: no agent plays '{missing[0]}'; the players are {', '.join(players)}")
    return {player: agent_of[player] for player in players}
