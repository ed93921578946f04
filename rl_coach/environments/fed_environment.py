"""An environment that the user's loop steps. The loop passes the environment's answers to Coach."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

import numpy as np

from rl_coach.core_types import ActionType, EnvResponse, StateType
from rl_coach.environments.environment import EnvironmentParameters
from rl_coach.environments.gym_environment import (
    Atari,
    GymEnvironment,
    GymEnvironmentParameters,
    GymVectorEnvironment,
)
from rl_coach.environments.gym_spaces import ACTION_MASK, action_space_of
from rl_coach.space_values import mask_space_of
from rl_coach.utilities.requirements import FLAG, Constraint, optional
from rl_coach.utils import CoachError

Step = tuple[Any, Any, bool, bool, dict[str, Any]]
"""Answer of a Gymnasium environment: observation, reward, terminated, truncated, info."""


class FedEnvironmentParameters(GymEnvironmentParameters):
    """Settings of an environment that the user's loop steps.

    :param level: the environment's name in messages
    :param observation_space: Gymnasium's space of the observations; with it, no simulator is made
    :param action_space: Gymnasium's space of the actions
    :param action_mask: True if each info has an ``action_mask``, [A] of 0 and 1. Only needed with spaces; the
        infos of a simulator show whether there are masks
    :param simulator: function that returns a Gymnasium environment for episodes without the user's loop, such as
        evaluations. None makes the level's environment, or no environment if the spaces are given
    """

    constraints = {"action_mask": FLAG, "simulator": optional(Constraint("a function", callable))}
    path = "rl_coach.environments.fed_environment:FedEnvironment"

    def __init__(
        self,
        level: Any = None,
        observation_space: Any = None,
        action_space: Any = None,
        action_mask: bool = False,
        simulator: Callable[[], Any] | None = None,
    ):
        super().__init__(level)
        self.observation_space = observation_space
        self.action_space = action_space
        self.action_mask = action_mask
        # copies of the parameters share this function; a callable object would be copied
        self.simulator = None if simulator is None else lambda: simulator()

    @classmethod
    def like(cls, parameters: EnvironmentParameters) -> FedEnvironmentParameters:
        """Settings for the user's loop, made from other settings of a Gymnasium environment.

        :raises CoachError: if the settings belong to another simulator
        """
        if not isinstance(parameters, GymEnvironmentParameters):
            raise CoachError(
                f"an agent in your own loop needs a Gymnasium environment, not {type(parameters).__name__}: give "
                f"its observation_space and action_space instead"
            )
        fed = cls()
        vars(fed).update(copy.deepcopy(vars(parameters)))
        return fed

    @classmethod
    def of(cls, env: Any, observation_space: Any, action_space: Any, num_envs: int) -> FedEnvironmentParameters:
        """Settings for a user's environment, or for its spaces.

        :param env: an id of Gymnasium, an environment, a function that makes one, or parameters; None uses the spaces
        :param num_envs: number of environments that the loop steps
        :raises CoachError: if the user's loop cannot use this environment
        """
        import gymnasium

        spaces = (observation_space, action_space)
        if env is None:
            for name, space in zip(("observation_space", "action_space"), spaces):
                if not isinstance(space, gymnasium.Space):
                    raise CoachError(f"give env, or {name} as a space of Gymnasium, not {space!r}")
            return cls("your environment", observation_space, action_space)
        if spaces != (None, None):
            raise CoachError("give either env, or observation_space and action_space")
        if isinstance(env, str):
            return cls.like(Atari(env) if env.startswith("ALE/") else GymVectorEnvironment(env))
        if isinstance(env, EnvironmentParameters):
            return cls.like(env)
        if isinstance(env, gymnasium.Env):
            return _of_object(env, num_envs)
        if callable(env):
            return cls(getattr(env, "__name__", "your environment"), simulator=env)
        raise CoachError(f"env must be an id of Gymnasium, an environment or a function that makes one, not {env!r}")


@dataclass
class Fed:
    """Answers from the user's loop that the environment has not used yet.

    :param first: first observation and info of the next episode
    :param answer: the answer to the chosen action
    :param action: the chosen action that has no answer yet
    :param deferred: reward and info of an answer; its observation arrives with the next request for an action
    :param end: the end of the last episode: ``"hidden"`` if its answer had no observation; ``"passed"`` if the
        environment has ignored the action after the end; otherwise empty
    """

    first: tuple[Any, dict[str, Any]] | None = None
    answer: Step | None = None
    action: ActionType | None = None
    deferred: tuple[Any, dict[str, Any]] | None = None
    end: str = ""


@dataclass
class _Nothing:
    """Simulator for an environment that is made from spaces only. Its answers are always the same. They are read only
    when the environment is made.

    :param observation_space: Gymnasium's space
    :param action_space: Gymnasium's space
    :param info: the info of each answer
    """

    observation_space: Any
    action_space: Any
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def unwrapped(self) -> _Nothing:
        return self

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        return _example(self.observation_space), dict(self.info)

    def step(self, action: Any) -> Step:
        return _example(self.observation_space), 0.0, False, False, dict(self.info)

    def close(self) -> None:
        """Do nothing: no simulator is open."""


def _example(space: Any) -> Any:
    """A point of a space, always the same."""
    import gymnasium

    if isinstance(space, gymnasium.spaces.Dict):
        return {name: _example(part) for name, part in space.spaces.items()}
    if isinstance(space, gymnasium.spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    space = copy.deepcopy(space)
    space.seed(0)
    return space.sample()


class FedEnvironment(GymEnvironment):
    """Gymnasium environment that the user's loop steps. In other episodes, such as evaluations, Coach steps the
    environment's simulator.

    Filters, masks and the forms of actions and observations are the same as in ``GymEnvironment``. Values from the
    loop are copied.

    :param level: as for ``GymEnvironment``, or a name for messages
    :param settings: as for ``GymEnvironment``
    :param observation_space: this and the other settings are described in ``FedEnvironmentParameters``
    :raises CoachError: as in ``GymEnvironment``

    :ivar fed: answers from the user's loop that have not been used yet
    :ivar is_fed: True if the user's loop plays the current episode
    """

    copies_observations = True

    def __init__(
        self,
        level: Any,
        *,
        observation_space: Any = None,
        action_space: Any = None,
        action_mask: bool = False,
        simulator: Callable[[], Any] | None = None,
        **settings: Any,
    ):
        self.fed = Fed()
        self.is_fed = False
        self._make = simulator
        self._spaces = None if observation_space is None else (observation_space, action_space)
        self._has_mask = action_mask
        super().__init__(level, **settings)
        if action_mask and not self.masks_are_in_infos:
            raise CoachError(f"action_mask is True, but the infos of level '{self.env_id}' have no action_mask")

    @property
    def observes_tuples(self) -> bool:
        """True if an observation is a tuple."""
        return type(self.env.observation_space).__name__ == "Tuple"

    @property
    def raw_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each observation of the user's environment, by name; ``()`` for a single number."""
        return self._read_state.raw_shapes

    @property
    def masks_are_in_infos(self) -> bool:
        """True if each info has an ``action_mask``."""
        return self._read_state.adds_mask

    @property
    def has_simulator(self) -> bool:
        """True if the environment can also be stepped without the user's loop."""
        return self._spaces is None

    def _make_simulator(self) -> Any:
        if self._spaces is not None:
            return _Nothing(*self._spaces, {"action_mask": self._mask_of_all()} if self._has_mask else {})
        return super()._make_simulator() if self._make is None else self._make()

    def _mask_of_all(self) -> np.ndarray:
        assert self._spaces is not None
        masks = mask_space_of(action_space_of(self._spaces[1], self.env_id)[0])
        if masks is None:
            raise CoachError("an action_mask needs a Discrete action_space, or an action_space with discrete parts")
        return np.ones(masks.raw_shape, np.int8)

    def _hold_actions(self, max_over_num_frames: int) -> None:
        super()._hold_actions(max_over_num_frames)
        simulate = self._step_simulator

        def answer(action: Any) -> Step:
            fed, self.fed.answer = self.fed.answer, None
            return simulate(action) if fed is None else fed

        self._step_simulator = answer

    # Values from the user's loop

    def begin_with(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Begin the next episode with this observation.

        :param observation: a point of the observation space, checked by ``require_fitting``
        """
        self.fed = Fed(first=(observation, dict(info)))

    def expect_answer(self, action: ActionType) -> Any:
        """Record that an action waits for its answer. :return: the action in the form of the user's environment"""
        self.fed.action = action
        return self.simulator_action(self._action_space.clip_action_to_space(action))

    @property
    def lost_action(self) -> Any:
        """The action for a step that begins an episode and ignores its action, in the form of the user's
        environment."""
        return self.simulator_action(self._action_space.default_action)

    def take_answer(
        self, observation: Any, reward: Any, terminated: bool, truncated: bool, info: Mapping[str, Any]
    ) -> EnvResponse:
        """Store the answer to the chosen action.

        :param observation: an observation, checked by ``require_fitting``. None leaves the state unchanged; allowed
            only if the episode terminated
        """
        action = self.fed.action
        assert action is not None
        self.fed = Fed(answer=(observation, reward, terminated, truncated, dict(info)))
        return self.step(action)

    def read(self, observation: Any, info: Mapping[str, Any]) -> StateType:
        """The state of an observation, from any episode.

        :raises CoachError: if the observation does not fit its space
        """
        self.require_fitting(observation)
        return self._read_state(observation, dict(info))

    def shows_end(self, observation: Any, info: Mapping[str, Any], resets_itself: bool) -> bool:
        """True if this is the last observation of an episode of the user's loop, not the first one of the next episode.

        :param resets_itself: the answer if the loop did not give the last observation, so that it cannot be compared
        """
        if not (self.is_fed and self.done and self.fed.first is None) or self.fed.end == "passed":
            return False
        return resets_itself if self.fed.end == "hidden" else self.shows(observation, info)

    def shows(self, observation: Any, info: Mapping[str, Any]) -> bool:
        """True if the current state has this observation, and the mask in ``info`` if there is one."""
        shown = self._read_state(observation, dict(info))
        names = [name for name in shown if name != ACTION_MASK or ACTION_MASK in info or not self._has_mask]
        return all(np.array_equal(shown[name], self.state[name], equal_nan=True) for name in names)

    def environment_action(self, action: Any) -> ActionType:
        """An action of the user's environment in the form of the agent's environment.

        :raises CoachError: if the action is not in the action space
        """
        try:
            found = self._action_space.from_raw(action)
            if self._action_space.contains(found):
                return found
        except (TypeError, ValueError, OverflowError):  # the action is not a number
            pass
        raise CoachError(f"the action {action!r} is not in the action space {self._action_space}")

    def require_fitting(self, observation: Any) -> None:
        """Check an observation of the user's loop.

        :raises CoachError: if the observation does not have the form of its space
        """
        fault = self._read_state.unfit(observation)
        if fault is not None:
            raise CoachError(f"the observation {fault.text}")

    # as an environment

    def _take_action(self, action: ActionType) -> None:
        fed = self.fed.answer
        if fed is None or fed[0] is not None:
            super()._take_action(action)
            return
        self.fed = Fed(end="hidden")
        _, self.reward, terminated, truncated, self.info = fed
        self.done, self.truncated = terminated or truncated, truncated and not terminated

    def reset_internal_state(self, force_environment_reset: bool = False) -> EnvResponse:
        self.is_fed = self.fed.first is not None
        return super().reset_internal_state(force_environment_reset)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        if self.fed.first is None:
            super()._restart_environment_episode(force_environment_reset)
            return
        (observation, self.info), self.fed = self.fed.first, Fed()
        self.state = self._read_state(observation, self.info)

    def _update_state(self) -> None:
        if not self.is_fed:
            super()._update_state()
        elif self.goal_space is not None:
            self.goal = self.state["desired_goal"]

    def get_episode_state(self) -> dict[str, Any] | None:
        """The episode in progress. An episode of the user's loop cannot be repeated, so only its current state is
        saved."""
        if not self.is_fed:
            return super().get_episode_state()
        return {
            "state": dict(self.state),
            "total_reward": self.total_reward_in_current_episode,
            "done": bool(self.done),
            "action": self.fed.action,
            "deferred_reward": None if self.fed.deferred is None else self.fed.deferred[0],
            "deferred_mask": None if self.fed.deferred is None else self.fed.deferred[1].get(ACTION_MASK),
            "end": self.fed.end,
            "action_space": self._action_space.rng.bit_generator.state,
        }

    def set_episode_state(self, state: dict[str, Any]) -> bool:
        if "total_reward" not in state:
            return super().set_episode_state(state)
        self.is_fed, self.state, self.done = True, state["state"], state["done"]
        self.total_reward_in_current_episode = state["total_reward"]
        deferred, mask = state["deferred_reward"], state.get("deferred_mask")
        info = {} if mask is None else {ACTION_MASK: mask}
        deferred = None if deferred is None else (deferred, info)
        self.fed = Fed(action=state["action"], deferred=deferred, end=state.get("end", ""))
        self._update_state()
        self._respond()
        return True


def _of_object(env: Any, num_envs: int) -> FedEnvironmentParameters:
    """Settings for an existing environment. If it has a ``spec``, environments for evaluations are made from this
    ``spec``."""
    import gymnasium

    name = type(env.unwrapped).__name__ if env.spec is None else env.spec.id
    if env.spec is None:
        if num_envs > 1:
            return FedEnvironmentParameters(name, env.observation_space, env.action_space)
        return FedEnvironmentParameters(name, simulator=_once(env, name))
    specification = env.spec
    first = iter([env] if num_envs == 1 else [])
    return FedEnvironmentParameters(name, simulator=lambda: next(first, None) or gymnasium.make(specification))


def _once(env: Any, name: str) -> Callable[[], Any]:
    left = [env]

    def simulator() -> Any:
        if not left:
            raise CoachError(f"evaluations need a second environment '{name}': give env as an id or a function")
        return left.pop()

    return simulator
