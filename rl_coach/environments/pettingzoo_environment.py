"""The environments of PettingZoo, in which several players act at once or in turn.

PettingZoo is imported when an environment is made, not with this module.
"""

from __future__ import annotations

import importlib
from typing import Any, Sequence, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType, EnvResponse
from rl_coach.environments.environment import EnvironmentParameters, LevelSelection
from rl_coach.environments.multi_agent_environment import MultiAgentEnvironment
from rl_coach.environments.observation_space_type import ObservationSpaceType
from rl_coach.installation import install_command
from rl_coach.spaces import RewardSpace
from rl_coach.utilities.requirements import FLAG, TEXT, instance, list_of, member, optional
from rl_coach.utils import CoachError


class PettingZooEnvironmentParameters(EnvironmentParameters):
    """Settings of an environment of PettingZoo.

    :param level: its module, such as ``mpe2.simple_spread_v3`` or ``pettingzoo.classic.tictactoe_v3``
    :param turns: the players act in turn (the module's ``env``); False: all at once (its ``parallel_env``); None: all
        at once where the module can
    :ivar additional_simulator_parameters: keyword arguments for the module's function
    :ivar observation_space_type: kind of the observations; None decides by their shape and dtype
    :ivar observations: the names of the observations to use, where there are several; None uses all that networks can
        read
    """

    constraints = {
        "turns": optional(FLAG),
        "additional_simulator_parameters": optional(instance(dict, "a dictionary")),
        "observation_space_type": optional(member(ObservationSpaceType)),
        "observations": optional(list_of(TEXT)),
    }

    def __init__(self, level: Union[str, LevelSelection, None] = None, turns: bool | None = None):
        super().__init__(level)
        self.turns = turns
        self.frame_skip = 1
        self.additional_simulator_parameters: dict[str, Any] = {}
        self.observation_space_type: ObservationSpaceType | None = None
        self.observations: list[str] | None = None

    @property
    def path(self) -> str:
        return "rl_coach.environments.pettingzoo_environment:PettingZooEnvironment"


class PettingZooEnvironment(MultiAgentEnvironment):
    """An environment of PettingZoo.

    Each episode has a seed of its own, drawn from a stream that ``seed`` starts, so that an episode can be repeated.

    :param level: see ``PettingZooEnvironmentParameters``, as for the others
    :param frame_skip: 1; the wrappers of SuperSuit repeat actions
    :param settings: as for ``MultiAgentEnvironment``
    :raises CoachError: no such level, a package is missing, or its spaces have no counterpart here
    """

    repeats_episodes = True

    def __init__(
        self,
        level: Union[str, LevelSelection, None],
        seed: int | None,
        frame_skip: int = 1,
        human_control: bool = False,
        custom_reward_threshold: float | None = None,
        visualization_parameters: VisualizationParameters | None = None,
        target_success_rate: float = 1.0,
        turns: bool | None = None,
        additional_simulator_parameters: dict[str, Any] | None = None,
        observation_space_type: ObservationSpaceType | None = None,
        observations: Sequence[str] | None = None,
        **settings: Any,
    ):
        if level is None:
            raise CoachError("no level is selected: choose one with -lvl, or set env_params.level in the preset")
        if frame_skip != 1:
            raise CoachError(f"frame_skip of level '{level}' is 1, not {frame_skip}: no action is repeated here")
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold,
            visualization_parameters or VisualizationParameters(), target_success_rate, **settings,
        )  # fmt: skip
        self._rng = np.random.default_rng(seed)
        self.env, self.takes_turns = _make(
            self.env_id, turns, {**(additional_simulator_parameters or {}), **self._render_mode()}
        )
        self.players = list(self.env.possible_agents)
        self.num_agents = len(self.players)
        self._answers: dict[str, EnvResponse] = {}
        self._read_spaces(observation_space_type, observations)
        self.reward_space = RewardSpace(1, reward_success_threshold=custom_reward_threshold)
        self.seed_episodes(int(self._rng.integers(2**31)) if seed is None else seed)

    def _render_mode(self) -> dict[str, str]:
        if self.native_rendering:
            return {"render_mode": "human"}
        return {"render_mode": "rgb_array"} if self._uses_images else {}

    def _read_spaces(self, kind: ObservationSpaceType | None, names: Sequence[str] | None) -> None:
        from rl_coach.environments import gym_spaces

        self.env.reset(seed=0)
        self.state_space, self.action_space, self._readers, self._to_simulator = {}, {}, {}, {}
        for player in self.players:
            observations, actions = self.env.observation_space(player), self.env.action_space(player)
            self.action_space[player], self._to_simulator[player] = gym_spaces.action_space_of(actions, self.env_id)
            reader = self._readers[player] = gym_spaces.StateReader(
                observations, self.action_space[player], kind, self.env_id, observations.sample(),
                self._info_of(player), copies=True, names=names,
            )  # fmt: skip
            self.state_space[player] = reader.state_space

    def _info_of(self, player: str) -> dict[str, Any]:
        """An info of a player, which may have a mask."""
        return self.env.infos.get(player, {}) if hasattr(self.env, "infos") else {}

    def seed_episodes(self, seed: int) -> None:
        """Restart the random streams of the following episodes and of random actions."""
        self._rng = np.random.default_rng(seed)
        self._action_space.seed(seed)

    # an episode

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        found = self.env.reset(seed=int(self._rng.integers(2**31)))
        if self.takes_turns:
            self._answers = self._tell_who_is_next()
            return
        states, infos = found
        self._answers = {player: self._answer(player, states[player], 0.0, infos[player]) for player in states}

    def _update_state(self) -> None:
        """Do nothing: each answer is read when it is given."""

    def _take_actions(self, actions: dict[str, ActionType]) -> None:
        if self.takes_turns:
            (player,) = actions
            self.env.step(self._simulator_action(player, actions[player]))
            self._answers = self._tell_who_is_next()
            return
        taken = {player: self._simulator_action(player, actions.get(player)) for player in self.env.agents}
        states, rewards, terminated, truncated, infos = self.env.step(taken)
        self._answers = {
            player: self._answer(
                player, state, rewards[player], infos.get(player, {}), terminated[player], truncated[player]
            )
            for player, state in states.items()
        }

    def _simulator_action(self, player: str, action: ActionType | None) -> Any:
        if action is None:  # the agent has ended its episode, and the simulator goes on
            action = self.action_space_of(player).default_action
        convert, dtype = self._to_simulator[player], self.env.action_space(player).dtype
        action = action if convert is None else convert(action)
        # heatup draws 64 bits, which PettingZoo's wrappers do not find in a box of 32
        return action.astype(dtype, copy=False) if isinstance(action, np.ndarray) else action

    def _answer(
        self,
        player: str,
        observation: Any,
        reward: Any,
        info: dict[str, Any],
        terminated: bool = False,
        truncated: bool = False,
    ) -> EnvResponse:
        state = self._readers[player](observation, info)
        return EnvResponse(state, float(reward), bool(terminated or truncated), info, None, bool(terminated))

    def _tell_who_is_next(self) -> dict[str, EnvResponse]:
        """The answers to the players that are over, who take a last step of nothing each, and to the next one."""
        answers: dict[str, EnvResponse] = {}
        while self.env.agents:
            player = self.env.agent_selection
            observation, reward, terminated, truncated, info = self.env.last()
            answers[player] = self._answer(player, observation, reward, info, terminated, truncated)
            if not answers[player].game_over:
                break
            self.env.step(None)
        return answers

    def _read_answers(self) -> dict[str, EnvResponse]:
        return self._answers

    def _players_to_act(self) -> list[str]:
        players = [self.env.agent_selection] if self.takes_turns and self.env.agents else self.env.agents
        return [player for player in players if player not in self._left]

    def _unanswered(self) -> dict[str, EnvResponse]:
        if not self.takes_turns:
            return {}
        env, waiting = self.env, [player for player in self.env.agents if player not in self._answers]
        return {
            player: self._answer(player, env.observe(player), env._cumulative_rewards[player], env.infos[player])
            for player in waiting
            if player not in self._left
        }

    # the simulator

    def get_rendered_image(self) -> np.ndarray:
        image = self.env.render()
        if image is None:
            raise CoachError(f"level '{self.env_id}' returns no images: it has no render_mode 'rgb_array'")
        return np.asarray(image)

    def get_state(self) -> dict[str, Any]:
        spaces = self._action_space.sub_action_spaces
        return {
            **super().get_state(),
            "episodes_rng": self._rng.bit_generator.state,
            "action_spaces": [space.rng.bit_generator.state for space in spaces],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._rng.bit_generator.state = state["episodes_rng"]
        for space, saved in zip(self._action_space.sub_action_spaces, state["action_spaces"]):
            space.rng.bit_generator.state = saved

    def close(self) -> None:
        super().close()
        self.env.close()


def _make(level: str, turns: bool | None, settings: dict[str, Any]) -> tuple[Any, bool]:
    """An environment, and whether its players take turns."""
    try:
        module = importlib.import_module(level)
    except ImportError as error:
        missing = error.name or ""
        if missing and (level == missing or level.startswith(f"{missing}.")):
            advice = "a level is a module, such as mpe2.simple_spread_v3"
            if missing in ("pettingzoo", "mpe2"):
                advice = f"install it with: {install_command('multi-agent')}"
            raise CoachError(f"no level '{level}': there is no module '{missing}'; {advice}") from error
        raise CoachError(f"level '{level}' needs more packages: {error}") from error
    makers = {False: getattr(module, "parallel_env", None), True: getattr(module, "env", None)}
    if turns is None:
        turns = makers[False] is None
    maker = makers[turns]
    if maker is None:
        name = "env" if turns else "parallel_env"
        raise CoachError(f"level '{level}' has no function {name}: set env_params.turns to {not turns}, or None")
    return maker(**settings), turns
