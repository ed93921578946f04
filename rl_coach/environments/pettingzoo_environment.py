"""The environments of PettingZoo. Several players act at once or in turn.

PettingZoo is imported when an environment is made, not with this module.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Iterable, Sequence, Union

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import ActionType, EnvResponse
from rl_coach.environments.environment import EnvironmentParameters, LevelSelection
from rl_coach.environments.gym_levels import import_level
from rl_coach.environments.gym_probe import action_mask_of
from rl_coach.environments.multi_agent_environment import MultiAgentEnvironment
from rl_coach.environments.observation_space_type import ObservationSpaceType
from rl_coach.installation import install_command, missing_package
from rl_coach.space_values import one_number, truth
from rl_coach.spaces import RewardSpace, VectorObservationSpace
from rl_coach.utilities.dynamic_import import import_module
from rl_coach.utilities.requirements import FLAG, TEXT, instance, list_of, member, optional
from rl_coach.utilities.user_code import environment_error
from rl_coach.utils import CoachError, import_file


class PettingZooEnvironmentParameters(EnvironmentParameters):
    """Settings of an environment of PettingZoo.

    :param level: the module of the environment, such as ``mpe2.simple_spread_v3`` or
        ``pettingzoo.classic.tictactoe_v3``; or a user's class or function that makes the environment, ``module:make``
        or ``path/to/file.py:make``
    :param turns: True: the players act in turn (``env`` of the module). False: all players act at once
        (``parallel_env`` of the module). None acts at once if the module supports it
    :ivar additional_simulator_parameters: keyword arguments for the function or class
    :ivar observation_space_type: kind of the observations; None decides by their shape and dtype
    :ivar observations: the names of the observations to use, if there are several; None uses all that networks can read
    :ivar combines_choices: as in ``GymEnvironmentParameters``; None is False if all agents support actions of several
        parts
    """

    constraints = {
        "turns": optional(FLAG),
        "additional_simulator_parameters": optional(instance(dict, "a dictionary")),
        "observation_space_type": optional(member(ObservationSpaceType)),
        "observations": optional(list_of(TEXT)),
        "combines_choices": optional(FLAG),
    }
    path = "rl_coach.environments.pettingzoo_environment:PettingZooEnvironment"

    def __init__(self, level: Union[str, LevelSelection, None] = None, turns: bool | None = None):
        super().__init__(level)
        self.turns = turns
        self.frame_skip = 1
        self.additional_simulator_parameters: dict[str, Any] = {}
        self.observation_space_type: ObservationSpaceType | None = None
        self.observations: list[str] | None = None
        self.combines_choices: bool | None = None


class PettingZooEnvironment(MultiAgentEnvironment):
    """An environment of PettingZoo.

    Each episode has its own seed from a random stream that starts with ``seed``, so an episode can be repeated.

    :param level: this and the other settings are described in ``PettingZooEnvironmentParameters``
    :param frame_skip: must be 1; the wrappers of SuperSuit repeat actions
    :param settings: settings of ``MultiAgentEnvironment``
    :raises CoachError: if the level does not exist, a package is missing, or Coach does not support its spaces
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
        combines_choices: bool | None = None,
        **settings: Any,
    ):
        if level is None:
            raise CoachError("no level is selected: choose one with -lvl, or set env_params.level in the preset")
        if frame_skip != 1:
            raise CoachError(
                f"frame_skip of level '{level}' must be 1, not {frame_skip}: Coach does not repeat actions in "
                f"PettingZoo"
            )
        super().__init__(
            level, seed, frame_skip, human_control, custom_reward_threshold,
            visualization_parameters or VisualizationParameters(), target_success_rate, **settings,
        )  # fmt: skip
        self._rng = np.random.default_rng(seed)
        arguments, mode = additional_simulator_parameters or {}, self._render_mode()
        self.env, self.takes_turns = _make(
            self.env_id, turns, arguments if mode is None else {**arguments, "render_mode": mode}
        )
        self.players = list(self.env.possible_agents)
        self.num_agents = len(self.players)
        if not self.players or len(set(self.players)) < self.num_agents:
            raise CoachError(f"level '{level}': possible_agents is {self.players}, not a list of different names")
        self._answers: dict[str, EnvResponse] = {}
        self._names_of_ends = {
            player: [f"level '{level}': '{name}' of player '{player}'" for name in ("terminated", "truncated")]
            for player in self.players
        }
        self._read_spaces(observation_space_type, observations, combines_choices)
        self.reward_space = RewardSpace(1, reward_success_threshold=custom_reward_threshold)
        self.seed_episodes(int(self._rng.integers(2**31)) if seed is None else seed)

    def _read_spaces(
        self, kind: ObservationSpaceType | None, names: Sequence[str] | None, combines_choices: bool | None
    ) -> None:
        from rl_coach.environments import gym_spaces

        try:
            observed, infos = self._first_answers()
        except CoachError:
            raise
        except Exception as error:
            raise CoachError(f"level '{self.env_id}' cannot be made: {environment_error(error)}") from error
        self.state_space, self.action_space, self._readers, self._to_simulator = {}, {}, {}, {}
        for player in self.players:
            observations, actions = self.env.observation_space(player), self.env.action_space(player)
            self.action_space[player], self._to_simulator[player] = gym_spaces.action_space_of(
                actions, self.env_id, combines_choices=combines_choices
            )
            reader = self._readers[player] = gym_spaces.StateReader(
                observations, self.action_space[player], kind, self.env_id,
                observed.get(player, observations.sample()), infos.get(player, {}), copies=True, names=names,
                player=player,
            )  # fmt: skip
            self.state_space[player] = reader.state_space

    def _first_answers(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Observations and infos of a reset and of the first steps, by player. Any of them may have an action mask."""
        found = self.env.reset(seed=0)
        if not self.takes_turns:
            observed, infos = self._reset_answer(found)
            actions = {player: self._first_action(player, observed, infos) for player in self.env.agents}
            later = self._step_answer(self.env.step(actions))
            for player, info in later[4].items():
                infos[player] = {**info, **infos.get(player, {})}
            return {**later[0], **observed}, infos
        observed, infos = {}, {}
        while self.env.agents and self.env.agent_selection not in observed:
            player = self.env.agent_selection
            observed[player], _, terminated, truncated, info = self.env.last()
            infos[player] = self._info(player, info)
            is_over = terminated or truncated
            self.env.step(None if is_over else self._first_action(player, observed, infos))
        return observed, infos

    def _first_action(self, player: str, observed: dict[str, Any], infos: dict[str, dict[str, Any]]) -> Any:
        from rl_coach.environments import gym_spaces

        space = self.env.action_space(player)
        mask = action_mask_of(observed.get(player), infos.get(player, {}))
        if mask is None:
            return space.sample()
        return gym_spaces.allowed_action(gym_spaces.action_space_of(space, self.env_id)[0], mask)

    def _reset_answer(self, found: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Observations and infos of a reset, if all players act at once. Infos may be missing."""
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], dict)):
            raise CoachError(
                f"level '{self.env_id}': reset must return two values, observations and infos, each a dict by player; "
                f"it returned {type(found).__name__}"
            )
        return found[0], self._infos(found[0], found[1])

    def _step_answer(self, found: Any) -> tuple[dict[str, Any], ...]:
        """Observations, rewards, terminations, truncations and infos of a step, if all players act at once."""
        if not (isinstance(found, tuple) and len(found) == 5 and all(isinstance(one, dict) for one in found[:4])):
            raise CoachError(
                f"level '{self.env_id}': step must return five values, each a dict by player: observations, rewards, "
                f"terminations, truncations and infos; it returned {type(found).__name__}"
            )
        for name, values in zip(("rewards", "terminations", "truncations"), found[1:4]):
            if lost := [player for player in found[0] if player not in values]:
                raise CoachError(
                    f"level '{self.env_id}': the {name} of step have no player '{lost[0]}', but the observations do"
                )
        return (*found[:4], self._infos(found[0], found[4]))

    def _infos(self, players: Iterable[str], infos: Any) -> dict[str, dict[str, Any]]:
        if infos is not None and not isinstance(infos, dict):
            raise CoachError(f"level '{self.env_id}': the infos are a {type(infos).__name__}, not a dict by player")
        return {player: self._info(player, (infos or {}).get(player)) for player in players}

    def _info(self, player: str, info: Any) -> dict[str, Any]:
        """The info of a player; an empty dict if the info is missing or None."""
        if info is not None and not isinstance(info, dict):
            raise CoachError(
                f"level '{self.env_id}': the info of player '{player}' is a {type(info).__name__}, not a dict"
            )
        return info or {}

    def seed_episodes(self, seed: int) -> None:
        """Restart the random streams of the following episodes and of random actions."""
        self._rng = np.random.default_rng(seed)
        self._action_space.seed(seed)

    @cached_property
    def central_space(self) -> VectorObservationSpace | None:  # type: ignore[override]
        """The space of PettingZoo's ``state()`` if the state is a vector, otherwise None."""
        shape: Sequence[int] = getattr(getattr(self.env, "state_space", None), "shape", None) or ()
        return VectorObservationSpace(shape[0]) if len(shape) == 1 else None

    def central_state(self) -> np.ndarray:
        return np.asarray(self.env.state(), np.float32)

    # an episode

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        found = self.env.reset(seed=int(self._rng.integers(2**31)))
        if self.takes_turns:
            self._answers = self._tell_who_is_next()
            return
        states, infos = self._reset_answer(found)
        self._answers = {player: self._answer(player, states[player], 0.0, infos[player]) for player in states}

    def _update_state(self) -> None:
        """Do nothing: the answers are already complete."""

    def _take_actions(self, actions: dict[str, ActionType]) -> None:
        if self.takes_turns:
            (player,) = actions
            self.env.step(self._simulator_action(player, actions[player]))
            self._answers = self._tell_who_is_next()
            return
        taken = {player: self._simulator_action(player, actions.get(player)) for player in self.env.agents}
        states, rewards, terminated, truncated, infos = self._step_answer(self.env.step(taken))
        self._answers = {
            player: self._answer(player, state, rewards[player], infos[player], terminated[player], truncated[player])
            for player, state in states.items()
        }

    def _simulator_action(self, player: str, action: ActionType | None) -> Any:
        if action is None:  # the agent has ended its episode, but the simulator has not
            action = self.action_space_of(player).default_action
        convert = self._to_simulator[player]
        return action if convert is None else convert(action)

    def _answer(
        self,
        player: str,
        observation: Any,
        reward: Any,
        info: dict[str, Any],
        terminated: bool = False,
        truncated: bool = False,
    ) -> EnvResponse:
        if (fault := self._readers[player].unfit(observation)) is not None:
            raise CoachError(f"level '{self.env_id}': the observation of player '{player}': {fault.text}")
        state = self._readers[player](observation, info)
        terminated, truncated = map(truth, (terminated, truncated), self._names_of_ends[player])
        number = float(one_number(reward, f"level '{self.env_id}': the reward of player '{player}'"))
        return EnvResponse(state, number, terminated or truncated, info, None, terminated)

    def _tell_who_is_next(self) -> dict[str, EnvResponse]:
        """The answers to the players with an ended episode, and to the next player. PettingZoo needs a last step
        without an action for each ended player."""
        answers: dict[str, EnvResponse] = {}
        while self.env.agents:
            player = self.env.agent_selection
            if player in answers:
                raise CoachError(
                    f"level '{self.env_id}': player '{player}' leaves and comes back in one step: let another "
                    "player act in between"
                )
            observation, reward, terminated, truncated, info = self.env.last()
            answers[player] = self._answer(player, observation, reward, self._info(player, info), terminated, truncated)
            if not answers[player].game_over:
                break
            self.env.step(None)
        return answers

    def _read_answers(self) -> dict[str, EnvResponse]:
        return self._answers

    def _is_back(self, player: str, answer: EnvResponse) -> bool:
        return player in self.env.agents and not answer.game_over

    def _players_to_act(self) -> list[str]:
        players = [self.env.agent_selection] if self.takes_turns and self.env.agents else self.env.agents
        return [player for player in players if player not in self._left]

    def _unanswered(self) -> dict[str, EnvResponse]:
        if not self.takes_turns:
            return {}
        env, waiting = self.env, [player for player in self.env.agents if player not in self._answers]
        return {
            player: self._answer(
                player, env.observe(player), env._cumulative_rewards[player], self._info(player, env.infos.get(player))
            )
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
        return {**super().get_state(), "episodes_rng": self._rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._rng.bit_generator.state = state["episodes_rng"]

    def close(self) -> None:
        super().close()
        self.env.close()


def _make(level: str, turns: bool | None, settings: dict[str, Any]) -> tuple[Any, bool]:
    """An environment, and True if its players act in turn."""
    maker, turns = (import_level(level), turns) if ":" in level else _maker_of_module(level, turns)
    try:
        made = maker(**settings)
    except ModuleNotFoundError as error:
        raise CoachError(f"level '{level}' cannot be made: {missing_package(error)}") from error
    except CoachError:
        raise
    except Exception as error:
        raise CoachError(f"level '{level}' cannot be made: {environment_error(error)}") from error
    takes_turns = hasattr(made, "agent_iter")
    if not takes_turns and not hasattr(made, "possible_agents"):
        raise CoachError(f"level '{level}' makes a {type(made).__name__}, which is not an environment of PettingZoo")
    if turns is None or turns == takes_turns:
        return made, takes_turns
    return _converted(made, level, turns), turns


def _converted(made: Any, level: str, turns: bool) -> Any:
    """An environment in PettingZoo's other form."""
    from pettingzoo.utils.conversions import aec_to_parallel, parallel_to_aec

    if turns:
        return parallel_to_aec(made)
    if not made.metadata.get("is_parallelizable"):
        raise CoachError(f"the players of level '{level}' act in turn: set env_params.turns to True, or None")
    return aec_to_parallel(made)


def _maker_of_module(level: str, turns: bool | None) -> tuple[Any, bool]:
    try:
        module = import_file(level) if level.endswith(".py") else import_module(level)
    except ImportError as error:
        missing = error.name or ""
        if missing and (level == missing or level.startswith(f"{missing}.")):
            advice = "a level is a module, such as mpe2.simple_spread_v3, or path/to/file.py:function"
            if missing in ("pettingzoo", "mpe2"):
                advice = f"install it with: {install_command('multi-agent')}"
            raise CoachError(f"no level '{level}': there is no module '{missing}'; {advice}") from error
        why = missing_package(error) if isinstance(error, ModuleNotFoundError) else environment_error(error)
        raise CoachError(f"level '{level}' cannot be imported: {why}") from error
    makers = {False: getattr(module, "parallel_env", None), True: getattr(module, "env", None)}
    if turns is None:
        turns = makers[False] is None
    maker = makers[turns]
    if maker is None and makers[not turns] is None:
        raise CoachError(f"level '{level}' has neither parallel_env nor env: name its function, as in {level}:make")
    if maker is None:
        name = "env" if turns else "parallel_env"
        raise CoachError(f"level '{level}' has no function {name}: set env_params.turns to {not turns}, or None")
    return maker, turns
