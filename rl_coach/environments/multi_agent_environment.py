"""Environments with several players. Each player has its own observations, actions and rewards."""

from __future__ import annotations

import copy
import functools
from typing import Any, Collection, Mapping, Sequence, TypeVar, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType, EnvResponse
from rl_coach.environments.environment import Environment, LevelSelection
from rl_coach.spaces import ActionSpace, CompoundActionSpace, SpacesDefinition, VectorObservationSpace, clips_actions
from rl_coach.utils import CoachError

Value = TypeVar("Value")


class PlayersResponse(EnvResponse):
    """Answer of an environment to its players.

    It is an ``EnvResponse`` with the sum of all rewards, and with the observations of all players as
    ``player/observation``.

    :param answers: the answers by player. An answer has the state for the player's next action, or its last state. In
        games with turns, a player gets its answer when it is its turn, with all rewards since its last action.
    :param to_act: the players that act next; empty if the episode is over
    :param returned: players that had left and have come back; their answer is the first answer of another episode
    :param state: [S], the central state; None without such a state
    """

    def __init__(
        self,
        answers: Mapping[str, EnvResponse],
        to_act: Sequence[str],
        returned: Collection[str] = (),
        state: np.ndarray | None = None,
    ):
        self.answers = dict(answers)
        self.state = state
        self.returned = frozenset(returned)
        self.to_act = tuple(to_act)
        states = ((player, one.next_state) for player, one in answers.items())
        super().__init__(
            next_state={f"{player}/{name}": value for player, state in states for name, value in state.items()},
            reward=sum(one.reward for one in answers.values()),
            game_over=not to_act,
            terminated=not to_act and all(one.terminated for one in answers.values()),
        )


def numbered_names(count: int) -> list[str]:
    """Names of several players or agents: ``agent``, or ``agent_0``, ``agent_1`` and so on."""
    return ["agent"] if count == 1 else [f"agent_{index}" for index in range(count)]


def by_name(values: Union[Mapping[str, Value], Sequence[Value], Value], names: Sequence[str]) -> dict[str, Value]:
    """A dict with one value for each name.

    :param values: a dict by name, a list in the order of the names, or one value for all names
    :raises CoachError: if the numbers of values and names differ
    """
    if isinstance(values, Mapping) and set(values) <= set(names) and values:
        return dict(values)
    if isinstance(values, (list, tuple)):
        if len(values) != len(names):
            raise CoachError(f"{len(values)} values are given for {len(names)} players: {', '.join(names)}")
        return dict(zip(names, values))
    return dict.fromkeys(names, values)  # type: ignore[arg-type]


class MultiAgentEnvironment(Environment):
    """Base of environments with several players.

    A subclass sets ``state_space``, ``action_space`` and, if there are goals, ``goal_space``: each is a list with a
    space for each player, or one space for all players. The subclass defines the same methods as a subclass of
    ``Environment``. ``_take_action(actions)`` gets a list of actions, and sets ``state``, ``reward``, ``done`` and
    ``info``, each a list in the order of the players, or one value for all players. A player that is done does not act
    any more; the list of actions then contains the ``default_action`` of its action space.

    :param num_agents: number of players
    :param settings: settings of ``Environment``
    :raises CoachError: if ``human_control`` is set, which is possible with one player only

    :cvar takes_turns: the players act one after the other, not all at once
    :cvar central_space: the space of ``central_state``; None without such a state
    :ivar tells_central_state: each response contains ``central_state``
    :ivar players: the names of all players
    :ivar total_rewards: the sum of each player's rewards in the current episode
    """

    takes_turns: bool = False
    central_space: VectorObservationSpace | None = None
    tells_central_state = False

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        seed: int | None,
        frame_skip: int,
        human_control: bool,
        custom_reward_threshold: float | None,
        visualization_parameters: VisualizationParameters,
        target_success_rate: float = 1.0,
        num_agents: int = 1,
        **settings: Any,
    ):
        if human_control:
            raise CoachError("--play works only in single-player environments: leave it out")
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold, visualization_parameters,
            target_success_rate, **settings,
        )  # fmt: skip
        self.num_agents = num_agents
        self.players = numbered_names(num_agents)
        self.total_rewards = dict.fromkeys(self.players, 0.0)
        self._left: set[str] = set()  # players without an episode in progress
        self.state_space: Any = [None] * num_agents
        self.goal_space: Any = None
        self._spaces_of_actions: Any = [None] * num_agents

    @property
    def action_space(self) -> Any:
        """The action spaces of the players, as the subclass has set them."""
        return self._spaces_of_actions

    @action_space.setter
    def action_space(self, spaces: Any) -> None:
        self._spaces_of_actions = spaces

    @functools.cached_property
    def _action_space(self) -> CompoundActionSpace:
        """The action spaces of all players as one compound space."""
        spaces = by_name(self._spaces_of_actions, self.players)
        return CompoundActionSpace([spaces[player] for player in self.players])

    @functools.cached_property
    def spaces(self) -> dict[str, SpacesDefinition]:
        """The spaces of each player."""
        states, goals, actions, rewards = (
            by_name(found, self.players)
            for found in (self.state_space, self.goal_space, self._spaces_of_actions, self.reward_space)
        )
        return {
            player: SpacesDefinition(states[player], goals[player], actions[player], rewards[player])
            for player in self.players
        }

    def action_space_of(self, player: str) -> ActionSpace:
        """The actions of one player."""
        return self.spaces[player].action

    # an episode

    @functools.cached_property
    def _clips(self) -> bool:
        """True if an action of a player may lie outside of its space."""
        return any(clips_actions(spaces.action) for spaces in self.spaces.values())

    def _play(self, action: Mapping[str, ActionType]) -> None:
        taken = dict(action)
        if self._clips:
            taken = {player: self.action_space_of(player).clip_action_to_space(one) for player, one in taken.items()}
        self._take_actions(taken)

    def _take_actions(self, actions: dict[str, ActionType]) -> None:
        """Do the actions of the players in the simulator. :param actions: by player"""
        defaults = ((player, self.action_space_of(player).default_action) for player in self.players)
        self._take_action([actions.get(player, default) for player, default in defaults])
        self._update_state()

    def reset_internal_state(self, force_environment_reset: bool = False) -> PlayersResponse:
        self.total_rewards = dict.fromkeys(self.players, 0.0)
        self._left = set()
        response = super().reset_internal_state(force_environment_reset)
        assert isinstance(response, PlayersResponse)
        return response

    def _read_answers(self) -> dict[str, EnvResponse]:
        """The answers after this step, by player. Some players may get no answer."""
        states, rewards, over, goals = (
            by_name(found, self.players) for found in (self.state, self.reward, self.done, self.goal)
        )
        truncated, infos = by_name(self.truncated, self.players), by_name(self.info, self.players)
        return {
            player: EnvResponse(
                states[player], rewards[player], bool(over[player]), infos[player], goals[player],
                bool(over[player] and not truncated[player]),
            )
            for player in self.players
            if player not in self._left
        }  # fmt: skip

    def _players_to_act(self) -> list[str]:
        """The players that act next."""
        return [player for player in self.players if player not in self._left]

    def _respond(self) -> PlayersResponse:
        answers = self._read_answers()
        returned = {player for player in answers if player in self._left and self._is_back(player, answers[player])}
        self._left -= returned
        answers = {player: answer for player, answer in answers.items() if player not in self._left}
        for player, answer in answers.items():
            self.total_rewards[player] += float(answer.reward)
        self.total_reward_in_current_episode = sum(self.total_rewards.values())
        self._left |= {player for player, answer in answers.items() if answer.game_over}
        state = self.central_state() if self.tells_central_state and self.central_space is not None else None
        response = PlayersResponse(answers, self._players_to_act(), returned, state)
        self.last_env_response = response
        return response

    def central_state(self) -> np.ndarray:
        """[S], the state of the whole environment, for critics that may see more than a single player. A subclass with
        a ``central_space`` defines this method."""
        raise NotImplementedError(f"{type(self).__name__} has no central state")

    def _is_back(self, player: str, answer: EnvResponse) -> bool:
        """True if a player that has left is in the environment again, and ``answer`` begins another episode of this
        player."""
        return False

    def cut_off(self) -> PlayersResponse:
        """End the episode for the players that are still in it. Their last answers become truncated.

        :return: the last response with these answers; it replaces ``last_env_response``
        """
        response = self.last_env_response
        assert isinstance(response, PlayersResponse)
        answers = {**response.answers, **self._unanswered()}
        for player, answer in answers.items():
            if not answer.game_over:
                answers[player] = copy.copy(answer)
                answers[player].game_over, answers[player].terminated = True, False
        self._left = set(self.players)
        self.last_env_response = cut = PlayersResponse(answers, [], state=response.state)
        return cut

    def _unanswered(self) -> dict[str, EnvResponse]:
        """Answers to the players that have had no answer to their last action. Empty if all players act at once."""
        return {}

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), **self._random_actions()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._restore_random_actions(state)

    def get_episode_state(self) -> dict[str, Any] | None:
        state = super().get_episode_state()
        return None if state is None else {**state, **self._random_actions()}

    def set_episode_state(self, state: dict[str, Any]) -> bool:
        is_same = super().set_episode_state(state)
        self._restore_random_actions(state)
        return is_same

    def _random_actions(self) -> dict[str, Any]:
        """The random streams of the players' spaces, from which agents draw random actions."""
        return {"action_spaces": [space.rng.bit_generator.state for space in self._action_space.sub_action_spaces]}

    def _restore_random_actions(self, state: dict[str, Any]) -> None:
        # older checkpoints may not have them
        for space, saved in zip(self._action_space.sub_action_spaces, state.get("action_spaces", ())):
            space.rng.bit_generator.state = saved

    # The whole episode, for callers that know only one player

    def get_random_action(self) -> dict[str, ActionType]:  # type: ignore[override]
        """A random action for each player that acts next, one that the player's state allows."""
        answers: dict[str, EnvResponse] = getattr(self.last_env_response, "answers", {})
        return {player: self._random_action(player, answers.get(player)) for player in self._players_to_act()}

    def _random_action(self, player: str, answer: EnvResponse | None) -> ActionType:
        spaces = self.spaces[player]
        mask = None if answer is None else spaces.action_mask(answer.next_state)
        return spaces.action.sample() if mask is None else spaces.action.sample_with_info(mask).action
