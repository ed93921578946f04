"""Environments that are learned in seconds, or that give numbers which can be predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.environments.environment import Environment, EnvironmentParameters
from rl_coach.spaces import (
    ActionMaskSpace,
    ActionSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import public_attributes, short_dynamic_import


class SmallEnvironment(Environment):
    """Base that leaves spaces, the first state and the outcome of a step to its subclasses.

    :ivar steps: steps of the episode so far
    """

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.rng = np.random.default_rng(self.seed)
        self.state_space = StateSpace(self.observations())
        self.action_space = self.actions()
        self.action_space.seed(self.seed)
        self.steps = 0
        self.reset_internal_state(True)

    def observations(self) -> dict[str, Any]:
        """Spaces of the observations, by name."""
        raise NotImplementedError

    def actions(self) -> ActionSpace:
        """Space of the actions."""
        raise NotImplementedError

    def first_state(self) -> dict[str, np.ndarray]:
        """State that an episode begins in; ``steps`` is 0."""
        raise NotImplementedError

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        """Change ``state``; ``steps`` counts this one already. :return: reward, terminated, truncated"""
        raise NotImplementedError

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.steps = 0
        self.state = self.first_state()

    def _take_action(self, action: Any) -> None:
        self.steps += 1
        self.reward, terminated, truncated = self.outcome(action)
        self.done, self.truncated = terminated or truncated, truncated and not terminated

    def _update_state(self) -> None:
        pass

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.rng.bit_generator.state = state["rng"]


class SmallEnvironmentParameters(EnvironmentParameters):
    """
    :param kind: the class of the environment
    """

    def __init__(self, kind: type[SmallEnvironment]):
        super().__init__(level=kind.__name__)
        self.frame_skip = 1
        self._kind = kind

    @property
    def path(self) -> str:
        return f"{self._kind.__module__}:{self._kind.__name__}"


def environment_of(parameters: EnvironmentParameters, seed: int = 0) -> Any:
    """An environment without a graph."""
    settings = {**public_attributes(parameters), "seed": seed}
    return short_dynamic_import(parameters.path)(**settings, visualization_parameters=VisualizationParameters())


class Bandit(SmallEnvironment):
    """Ten pulls; the arm to pull is the one whose light is on. The best return is 10, a random one 5."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(2)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(2)

    def first_state(self) -> dict[str, np.ndarray]:
        return {"observation": np.eye(2, dtype=np.float32)[self.rng.integers(2)]}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = float(self.state["observation"][action])
        self.state = self.first_state()
        return reward, False, self.steps >= 10


class Lottery(Bandit):
    """Episodes of 1 to 7 steps, with rewards that tell the steps apart; every other one is truncated, at random."""

    def first_state(self) -> dict[str, np.ndarray]:
        if self.steps == 0:
            self.length = int(self.rng.integers(1, 8))
            self.is_cut = bool(self.rng.integers(2))
        return {"observation": self.rng.random(2).astype(np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        self.state = self.first_state()
        over = self.steps >= self.length
        return float(self.rng.random()), over and not self.is_cut, over


class Recall(SmallEnvironment):
    """A light of two is seen at the beginning and asked for two or three steps later; naming it gives 1, the other one
    -1. Who does not remember gets 0 on average."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(3)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(2)

    def first_state(self) -> dict[str, np.ndarray]:
        self.light = int(self.rng.integers(2))
        self.length = int(self.rng.integers(3, 5))
        return {"observation": np.eye(3, dtype=np.float32)[self.light]}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        is_over = self.steps == self.length
        is_asked = self.steps == self.length - 1
        self.state = {"observation": np.array([0, 0, is_asked], np.float32)}
        return (1.0 if action == self.light else -1.0) if is_over else 0.0, is_over, False

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "light": self.light, "length": self.length}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.light, self.length = state["light"], state["length"]


class Target(SmallEnvironment):
    """Five shots at a target that is seen; the reward is how near they come, 0 at best."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(1)}

    def actions(self) -> ActionSpace:
        return BoxActionSpace(1, low=np.array([-2.0]), high=np.array([4.0]))

    def first_state(self) -> dict[str, np.ndarray]:
        return {"observation": self.rng.uniform(-1, 1, 1).astype(np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = -abs(float(action[0]) - 1.0 - 2.0 * float(self.state["observation"][0]))
        self.state = self.first_state()
        return reward, False, self.steps >= 5


class MaskedChain(SmallEnvironment):
    """Five states in a row. Right leads on to a reward of 1 at the end; the third action is never allowed, and is a
    mistake of the agent if it is ever taken."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(5), "mask": ActionMaskSpace(3)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(3)

    def _state(self, position: int) -> dict[str, np.ndarray]:
        self.position = position
        return {"observation": np.eye(5, dtype=np.float32)[position], "mask": np.array([1.0, 1.0, 0.0], np.float32)}

    def first_state(self) -> dict[str, np.ndarray]:
        return self._state(0)

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        assert action != 2, "a masked action was taken"
        self.state = self._state(max(0, self.position + (1 if action == 1 else -1)))
        at_end = self.position == 4
        return float(at_end), at_end, self.steps >= 20


class CountingEnvironment(SmallEnvironment):
    """Shows how many steps the episode has; each step gives a reward of 1. Counts what is done to it.

    :param episode_length: steps until termination
    :ivar resets: episodes that were begun
    :ivar total_steps: steps of all episodes
    :ivar is_closed: whether it was closed
    """

    def __init__(self, episode_length: int, **settings: Any):
        self.episode_length = episode_length
        self.resets = 0
        self.total_steps = 0
        self.is_closed = False
        super().__init__(**settings)

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(2)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(3)

    def first_state(self) -> dict[str, np.ndarray]:
        self.resets += 1
        return self._state(0)

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        self.total_steps += 1
        # counted from the state that the environment shows, which a checkpoint restores
        time = self.state["observation"][0] + 1
        self.state = self._state(time)
        return 1.0, bool(time >= self.episode_length), False

    def _state(self, time: float) -> dict[str, np.ndarray]:
        return {"observation": np.array([time, self.rng.random()])}

    def close(self) -> None:
        self.is_closed = True


class CountingEnvironmentParameters(SmallEnvironmentParameters):
    """
    :param episode_length: steps until termination
    """

    def __init__(self, episode_length: int = 5):
        super().__init__(CountingEnvironment)
        self.episode_length = episode_length


class CoachStyleEnvironment(Environment):
    """As people wrote them for Coach: the hooks set plain attributes, ``done`` means that the episode is over.

    Three steps of a reward of 2; the goal is ten times what is observed.

    :ivar num_images: images that were rendered
    :ivar taken: the actions so far
    """

    def __init__(self, visualization: Any = None, actions: Any = None, **kwargs: Any):
        super().__init__(
            "counting", None, 1, False, None, visualization or VisualizationParameters(video_dump_methods=[]), **kwargs
        )
        self.state_space = StateSpace({"observation": VectorObservationSpace(1)})
        self.action_space = actions or DiscreteActionSpace(3)
        self.num_images = 0
        self.taken: list[Any] = []
        self.reset_internal_state(True)

    def _take_action(self, action: Any) -> None:
        self.taken.append(action)
        self.state = {"observation": self.state["observation"] + 1}
        self.reward = 2.0
        self.done = self.state["observation"][0] >= 3
        self.info = {"taken": action}

    def _update_state(self) -> None:
        self.goal = self.state["observation"] * 10

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.state = {"observation": np.zeros(1)}

    def get_rendered_image(self) -> np.ndarray:
        self.num_images += 1
        return np.full((32, 32, 3), self.num_images, dtype=np.uint8)
