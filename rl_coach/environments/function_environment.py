"""Environments that are pure functions on JAX: gymnax, MuJoCo Playground, Brax, pgx, and users' environments.

A compiled loop steps a ``FunctionEnvironment``. ``FunctionSimulator`` is the same environment in Gymnasium's form, for
evaluations and for agents without a compiled loop.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Callable, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from rl_coach.architectures.native_messages import quiet_native_code
from rl_coach.environments.gym_probe import ACTION_MASK
from rl_coach.installation import install_command
from rl_coach.utilities.dynamic_import import imported_at_first_use
from rl_coach.utilities.errors import CoachError, nearest, suggested

_EPISODE_LENGTH = 1000  # of Brax: the default of its episode wrapper, which is not used here


class Outcome(NamedTuple):
    """The answer of an environment to an action.

    :param observation: an array, or a dict of them
    :param state: the state of the environment, any tree of arrays
    :param reward: [] float
    :param terminated: [] bool, the environment itself ended the episode
    :param truncated: [] bool, a limit on the length ended the episode
    """

    observation: Any
    state: Any
    reward: Any
    terminated: Any
    truncated: Any


class FunctionEnvironment:
    """An environment as two pure functions. The function ``step`` never begins a new episode.

    :param name: the environment's name, for messages
    :param observation_space: Gymnasium's space, a ``Box`` or a ``Dict`` of them
    :param action_space: Gymnasium's space
    """

    def __init__(self, name: str, observation_space: gymnasium.Space, action_space: gymnasium.Space):
        self.name = name
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(self, key: Any) -> tuple[Any, Any]:
        """The first observation and state of an episode. :param key: a key of ``jax.random``"""
        raise NotImplementedError(f"{type(self).__name__} begins no episodes")

    def step(self, key: Any, state: Any, action: Any) -> Outcome:
        """Act once. The observation belongs to the state after the action, also at the end of an episode."""
        raise NotImplementedError(f"{type(self).__name__} does not step")

    def step_number(self, number: Any, key: Any, state: Any, action: Any) -> Outcome:
        """Act once, in step ``number`` of an episode (from 1). :param key: the data of the episode's key, an array"""
        return self.step(jax.random.fold_in(jax.random.wrap_key_data(key), number), state, action)


class KeyedEnvironment(FunctionEnvironment):
    """An environment with the signatures of gymnax: ``reset(key, params)`` returns observation and state,
    ``step(key, state, action, params)`` returns observation, state, reward, terminated, truncated and info.

    A ``step`` may begin the next episode itself, as in gymnax. Its info must then have the ``final_observation``.

    :param environment: object with ``reset``, ``step``, ``observation_space(params)`` and ``action_space(params)``;
        ``default_params`` is optional
    :raises CoachError: if a space is of an unknown kind
    """

    def __init__(self, name: str, environment: Any, params: Any):
        self._environment, self._params = environment, params
        super().__init__(
            name,
            _gymnasium_space(environment.observation_space(params), name),
            _gymnasium_space(environment.action_space(params), name),
        )
        observations = self.observation_space
        self._names = list(observations) if isinstance(observations, gymnasium.spaces.Dict) else []

    def reset(self, key: Any) -> tuple[Any, Any]:
        answer = self._environment.reset(key, self._params)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise CoachError(f"level '{self.name}': reset must return two values, observation and state")
        observation, state = answer
        return _arrays(observation), state

    def step(self, key: Any, state: Any, action: Any) -> Outcome:
        answer = self._environment.step(key, state, action, self._params)
        is_sequence = isinstance(answer, (tuple, list))
        if not is_sequence or len(answer) != 6:
            found = f"{len(answer)} values" if is_sequence else f"a {type(answer).__name__}"
            raise CoachError(
                f"level '{self.name}': step returned {found}, but six are needed: observation, state, "
                f"reward, terminated, truncated, info"
            )
        observation, state, reward, terminated, truncated, info = answer
        reads_mask = isinstance(self.action_space, gymnasium.spaces.Box) or ACTION_MASK in self._names
        if ACTION_MASK in (info or {}) and not reads_mask:
            raise CoachError(
                f"level '{self.name}': the '{ACTION_MASK}' of an info is not read: return Dict observations with an "
                f"entry '{ACTION_MASK}'"
            )
        return Outcome(
            _arrays((info or {}).get("final_observation", observation)), state,
            self._single("reward", reward, jnp.float32), self._single("terminated", terminated, bool),
            self._single("truncated", truncated, bool),
        )  # fmt: skip

    def _single(self, name: str, value: Any, dtype: Any) -> Any:
        array = jnp.asarray(value, dtype)
        if array.size != 1:
            raise CoachError(f"level '{self.name}': {name} has the shape {array.shape}, but must be one number")
        return array.reshape(())


class GymnaxEnvironment(KeyedEnvironment):
    """An environment of gymnax. The ``step`` of gymnax computes a reset in each step. This class calls only the parts
    of ``step`` without the reset.
    """

    def step(self, key: Any, state: Any, action: Any) -> Outcome:
        observation, state, reward, terminated, _ = self._environment.step_env(key, state, action, self._params)
        return Outcome(observation, state, reward, terminated, self._environment.is_truncated(state, self._params))


class PhysicsEnvironment(FunctionEnvironment):
    """An environment of MuJoCo Playground or Brax, with a limit on the length of episodes.

    :param environment: object with ``reset(key)`` and ``step(state, action)``; both return a state with ``obs``,
        ``reward`` and ``done``
    :param episode_length: number of steps; longer episodes are truncated
    """

    def __init__(self, name: str, environment: Any, episode_length: int):
        self._environment, self._episode_length = environment, episode_length
        sizes = environment.observation_size
        if isinstance(sizes, dict):
            observations: gymnasium.Space = gymnasium.spaces.Dict(
                {part: _unbounded(np.atleast_1d(size)) for part, size in sizes.items()}
            )
        else:
            observations = _unbounded(np.atleast_1d(sizes))
        super().__init__(name, observations, gymnasium.spaces.Box(-1.0, 1.0, (environment.action_size,), np.float32))

    def reset(self, key: Any) -> tuple[Any, Any]:
        state = self._environment.reset(key)
        return state.obs, (state, jnp.int32(0))

    def step(self, key: Any, state: Any, action: Any) -> Outcome:
        simulation, steps = state
        simulation = self._environment.step(simulation, action)
        state = simulation, steps + 1
        is_over = simulation.done > 0.5
        return Outcome(simulation.obs, state, simulation.reward, is_over, steps + 1 >= self._episode_length)


class BoardGame(FunctionEnvironment):
    """A game of pgx. The agent is player 0, and all other players make random legal moves.

    Observations are ``observation`` and ``action_mask``. The reward is the sum of player 0's rewards for its move and
    for the following moves of the other players.

    :param game: a game from ``pgx.make``
    """

    def __init__(self, name: str, game: Any):
        self._game = game
        shape, actions = tuple(game.observation_shape), int(game.num_actions)
        observations: dict[str, gymnasium.Space] = {
            "observation": gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32),
            ACTION_MASK: gymnasium.spaces.Box(0, 1, (actions,), np.int8),
        }
        super().__init__(name, gymnasium.spaces.Dict(observations), gymnasium.spaces.Discrete(actions))

    def reset(self, key: Any) -> tuple[Any, Any]:
        begin, moves = jax.random.split(key)
        state, _ = self._let_others_move(moves, self._game.init(begin), jnp.float32(0))
        return self._observation(state), state

    def step(self, key: Any, state: Any, action: Any) -> Outcome:
        first, moves = jax.random.split(key)
        state = self._game.step(state, action, first)
        state, reward = self._let_others_move(moves, state, state.rewards[0])
        return Outcome(self._observation(state), state, reward, state.terminated, state.truncated)

    def _let_others_move(self, key: Any, state: Any, reward: Any) -> tuple[Any, Any]:
        def is_their_turn(carried: tuple) -> Any:
            state = carried[1]
            return (state.current_player != 0) & ~(state.terminated | state.truncated)

        def move(carried: tuple) -> tuple:
            key, state, reward = carried
            key, choice, step = jax.random.split(key, 3)
            logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
            state = self._game.step(state, jax.random.categorical(choice, logits), step)
            return key, state, reward + state.rewards[0]

        _, state, reward = jax.lax.while_loop(is_their_turn, move, (key, state, reward))
        return state, reward

    def _observation(self, state: Any) -> dict[str, Any]:
        observation = jnp.asarray(self._game.observe(state, 0), jnp.float32)
        # After the end of a game, all actions are allowed, as in pgx.
        return {"observation": observation, ACTION_MASK: state.legal_action_mask.astype(jnp.int8)}


class Beginning(NamedTuple):
    """The beginning of an episode of a ``FunctionSimulator``.

    :param observation: the first observation
    :param state: the first state of the environment
    :param key: the data of the key for the episode's steps; see ``FunctionEnvironment.step_number``
    """

    observation: Any
    state: Any
    key: Any


class FunctionSimulator(gymnasium.Env):
    """A ``FunctionEnvironment`` in Gymnasium's form. This object stores the state, and can be seeded.

    :ivar functions: the environment as pure functions
    :ivar beginning: the beginning of the current episode; None before the first episode
    """

    def __init__(self, functions: FunctionEnvironment):
        self.functions = functions
        self.observation_space, self.action_space = functions.observation_space, functions.action_space
        # A level of gymnax with a Gymnasium name has the same reward threshold.
        self.spec = gymnasium.registry.get(functions.name.partition(":")[2])
        self._begin, self._step = jax.jit(self._begin_once), jax.jit(self._step_once)
        self.beginning: Beginning | None = None
        self._state: Any = None
        self._steps = 0

    def _begin_once(self, seed: Any) -> Beginning:
        begin, key = jax.random.split(jax.random.key(seed))
        return Beginning(*self.functions.reset(begin), jax.random.key_data(key))

    def _step_once(self, key: Any, number: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
        """The state, the observation, and one array of reward, terminated and truncated. The last three share an array,
        because reading an array takes as long as the step."""
        outcome = self.functions.step_number(number, key, state, action)
        numbers = [jnp.asarray(one, jnp.float32) for one in (outcome.reward, outcome.terminated, outcome.truncated)]
        return outcome.state, outcome.observation, jnp.stack(numbers)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. All its random numbers are derived from ``np_random``."""
        super().reset(seed=seed)
        self._steps = 0
        self.beginning = self._begin(int(self.np_random.integers(2**31)))
        self._state = self.beginning.state
        return _as_numpy(self.beginning.observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.beginning is None:
            raise gymnasium.error.ResetNeeded("an episode begins with reset()")
        self._steps += 1
        self._state, observation, numbers = self._step(self.beginning.key, self._steps, self._state, action)
        reward, terminated, truncated = np.asarray(numbers).tolist()
        return _as_numpy(observation), reward, bool(terminated), bool(truncated), {}

    def render(self) -> None:
        """Do nothing: these environments have no pictures."""


def _as_numpy(observation: Any) -> Any:
    # The tree functions of JAX take a quarter of a step; a single array does not need them.
    return np.asarray(observation) if isinstance(observation, jax.Array) else jax.tree.map(np.asarray, observation)


def _arrays(observation: Any) -> Any:
    """An observation as an array, or as a dict or tuple of arrays. A list of numbers becomes an array."""
    return jax.tree.map(jnp.asarray, observation, is_leaf=lambda part: isinstance(part, list))


def _unbounded(shape: Any) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-np.inf, np.inf, tuple(int(length) for length in shape), np.float32)


def _gymnasium_space(space: Any, level: str) -> gymnasium.Space:
    """Gymnasium's space for a space of gymnax, found by the name of its class. Gymnasium's spaces are not changed."""
    if isinstance(space, gymnasium.Space):
        return space
    kind = type(space).__name__
    if kind == "Discrete":
        return gymnasium.spaces.Discrete(int(space.n))
    if kind == "Box":
        dtype = np.dtype(space.dtype).type
        low, high = (np.broadcast_to(np.asarray(bound, dtype), space.shape) for bound in (space.low, space.high))
        return gymnasium.spaces.Box(low, high, tuple(space.shape), dtype)
    if kind == "Dict":
        return gymnasium.spaces.Dict({name: _gymnasium_space(part, level) for name, part in space.spaces.items()})
    raise CoachError(f"level '{level}' has a space of the kind {kind}; Discrete, Box and Dict are supported")


def _make_gymnax(level: str, name: str, parameters: dict[str, Any]) -> FunctionEnvironment:
    with imported_at_first_use("matplotlib.pyplot", "seaborn"):  # only pictures need them; slow to import
        gymnax = importlib.import_module("gymnax")
    _require_known(level, name, gymnax.registered_envs)
    fields = set(vars(gymnax.make(name)[1]))
    environment, params = gymnax.make(name, **{k: v for k, v in parameters.items() if k not in fields})
    changed = params.replace(**{k: v for k, v in parameters.items() if k in fields})
    return GymnaxEnvironment(level, environment, changed)


def _make_playground(level: str, name: str, parameters: dict[str, Any]) -> FunctionEnvironment:
    registry = importlib.import_module("mujoco_playground").registry
    _require_known(level, name, registry.ALL_ENVS)
    config = registry.get_default_config(name)
    if "impl" in config and jax.default_backend() == "cpu":
        config.impl = "jax"  # on a CPU ten times as fast as Warp, the default
    config.update(parameters)
    if config.get("impl") == "warp":
        warp = importlib.import_module("warp")
        if hasattr(warp, "LOG_WARNING"):  # older versions have no log levels
            warp.config.log_level = warp.LOG_WARNING  # otherwise it prints the name of each kernel
    return PhysicsEnvironment(level, registry.load(name, config=config), int(config.episode_length))


def _make_brax(level: str, name: str, parameters: dict[str, Any]) -> FunctionEnvironment:
    envs = importlib.import_module("brax.envs")
    _require_known(level, name, envs._envs)
    parameters = dict(parameters)
    length = int(parameters.pop("episode_length", _EPISODE_LENGTH))
    return PhysicsEnvironment(level, envs.get_environment(name, **parameters), length)


def _make_pgx(level: str, name: str, parameters: dict[str, Any]) -> FunctionEnvironment:
    pgx = importlib.import_module("pgx")
    _require_known(level, name, pgx.available_envs())
    return BoardGame(level, pgx.make(name, **parameters))


Make = Callable[[str, str, dict[str, Any]], FunctionEnvironment]
_LIBRARIES: dict[str, Make] = {
    "gymnax": _make_gymnax, "playground": _make_playground, "brax": _make_brax, "pgx": _make_pgx,
}  # fmt: skip
"""The functions that make environments, by the beginning of the level's name, which is also the extra to install."""


def _require_known(level: str, name: str, known: Any) -> None:
    if name not in known:
        library = level.partition(":")[0]
        alike = suggested(f"{library}:{one}" for one in nearest(name, known))
        raise CoachError(f"no level '{level}'{alike or f'; {library} has ' + ', '.join(sorted(known))}")


def make_function_environment(level: str, parameters: dict[str, Any]) -> FunctionEnvironment:
    """The environment of a level such as ``gymnax:CartPole-v1``.

    :param parameters: keyword arguments for the library's function. They may also be fields of the environment's
        ``params`` (gymnax), entries of the environment's configuration (Playground), or ``episode_length`` (Brax)
    :raises CoachError: if the level does not exist, or the library is not installed
    """
    library, _, name = level.partition(":")
    try:
        with warnings.catch_warnings(), quiet_native_code():
            warnings.simplefilter("ignore")
            return _LIBRARIES[library](level, name, parameters)
    except ImportError as error:
        raise CoachError(f"level '{level}' needs {library}: {install_command(library)} ({error})") from error


def environment_of_user(level: str, made: Any) -> FunctionEnvironment:
    """The environment of a user's object with the signatures of a ``KeyedEnvironment``.

    :raises CoachError: if the object has no spaces
    """
    for name in ("observation_space", "action_space"):
        if not callable(getattr(made, name, None)):
            raise CoachError(f"level '{level}' needs a method {name}(params) with a space of gymnax or Gymnasium")
    return KeyedEnvironment(level, made, getattr(made, "default_params", None))
