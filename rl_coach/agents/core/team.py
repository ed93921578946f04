"""A team: players that one agent plays together, with joint states, joint actions and one reward."""

from __future__ import annotations

from typing import Any, Collection, Mapping, Sequence

import numpy as np

from rl_coach.core_types import EnvResponse
from rl_coach.environments.multi_agent_environment import PlayersResponse
from rl_coach.spaces import (
    ActionMaskSpace,
    DiscreteActionSpace,
    PlanarMapsObservationSpace,
    RewardSpace,
    Space,
    SpacesDefinition,
    StateSpace,
    TeamActionSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError


class Team:
    """Joins the answers to the players of a team to one answer for their agent, and splits the agent's actions.

    The reward is the sum of the players' rewards. The joint state of N players with A actions has these observations:

    - ``observation`` [N, F]: each player's observations as one vector, then the player's number in one-hot form if
      ``tells_players_apart``; zeros in place of the observations of a player that is not in the environment
    - ``state`` [S]: the environment's central state. Without one, the observations of all players of the team.
    - ``present`` [N]: 1 for a player that acts next, 0 for a player that has left
    - ``action_mask`` [N, A]: a player that is not present has only action 0

    :param agent: the agent's name, for messages
    :param players: the players' names, in order
    :param spaces: the spaces of each player
    :param central: the space of the environment's central state; None without a central state
    :param tells_players_apart: True: add the players' numbers to their observations
    :raises CoachError: if the players have images or actions that are not discrete
    """

    def __init__(
        self,
        agent: str,
        players: Sequence[str],
        spaces: SpacesDefinition,
        central: VectorObservationSpace | None,
        tells_players_apart: bool,
    ):
        if not isinstance(spaces.action, DiscreteActionSpace):
            raise CoachError(
                f"agent '{agent}' plays a team and needs players with discrete actions, not "
                f"{type(spaces.action).__name__}: choose ClippedPPO or SAC, which treat each player separately"
            )
        self.players = list(players)
        self._mask_name = spaces.action_mask_name
        self._read = [name for name in sorted(spaces.state.sub_spaces) if name != self._mask_name]
        parts = [spaces.state[name] for name in self._read]
        if any(isinstance(part, PlanarMapsObservationSpace) for part in parts):
            raise CoachError(
                f"agent '{agent}' plays a team and needs players with vectors as observations, not images: set "
                f"env_params.observation_space_type to ObservationSpaceType.Vector, or choose ClippedPPO"
            )
        count, actions = len(self.players), spaces.action.num_actions
        self._width = sum(part.num_elements for part in parts)
        self._numbers = np.eye(count, dtype=np.float32)[:, : count if tells_players_apart else 0]
        self._absent = np.arange(actions) == 0
        observations: dict[str, Space] = {
            "observation": VectorObservationSpace(np.array([count, self._width + self._numbers.shape[1]])),
            "state": VectorObservationSpace(count * self._width) if central is None else central,
            "present": VectorObservationSpace(count, 0, 1),
            "action_mask": ActionMaskSpace([count, actions], [actions] * count),
        }
        action = TeamActionSpace([actions] * count)
        self.spaces = SpacesDefinition(StateSpace(observations), None, action, RewardSpace(1))

    def join(self, response: PlayersResponse, over: Collection[str]) -> EnvResponse:
        """The answer to the whole team. Its episode ends with the episode of its last player.

        :param response: the environment's answer to all players
        :param over: the players that have ended their episode, now or before
        """
        answers = {player: response.answers[player] for player in self.players if player in response.answers}
        is_over = response.game_over or all(player in over for player in self.players)
        # a player that a time limit stops would act next, so the bootstrapped value includes it
        present = [
            player in answers and (not answers[player].terminated if is_over else player in response.to_act)
            for player in self.players
        ]
        rows = np.zeros((len(self.players), self._width), np.float32)
        masks = np.tile(self._absent, (len(self.players), 1)).astype(np.float32)
        for number, player in enumerate(self.players):
            if player in answers:
                state = answers[player].next_state
                rows[number] = np.concatenate([np.ravel(state[name]) for name in self._read])
                if present[number]:
                    masks[number] = 1.0 if self._mask_name is None else state[self._mask_name]
        joint = {
            "observation": np.concatenate([rows, self._numbers], axis=1),
            "state": rows.ravel() if response.state is None else response.state,
            "present": np.asarray(present, np.float32),
            "action_mask": masks,
        }
        rewards = sum(answer.reward for answer in answers.values())
        terminated = is_over and all(answer.terminated for answer in answers.values())
        return EnvResponse(joint, rewards, is_over, terminated=terminated)

    def split(self, actions: np.ndarray) -> Mapping[str, Any]:
        """The action of each player by name. :param actions: [N]"""
        return {player: int(action) for player, action in zip(self.players, actions)}
