"""A filter that stacks the last observations, so that a state shows movement."""

from __future__ import annotations

from collections import deque
from typing import Any, Sequence

import numpy as np

from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.spaces import (
    ObservationSpace,
    PlanarMapsObservationSpace,
    TensorObservationSpace,
    VectorObservationSpace,
    check_size,
)
from rl_coach.utilities import plain_data
from rl_coach.utilities.plain_data import State
from rl_coach.utils import CoachError


@plain_data.register
class LazyStack:
    """A stack of frames. It becomes one array only when the array is needed (``np.asarray(stack)``).

    Consecutive stacks share their frames, so that a memory can store each frame only once.

    :param history: the frames, oldest first
    :param axis: the axis of the frames in the array; None for the first axis
    """

    __slots__ = ("history", "axis")

    def __init__(self, history: Sequence[np.ndarray], axis: int | None = None):
        self.history = list(history)
        self.axis = 0 if axis is None else axis

    @property
    def dtype(self) -> np.dtype:
        """The type of the frames."""
        return self.history[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        shape = list(self.history[0].shape)
        shape.insert(self.axis % (len(shape) + 1), len(self.history))
        return tuple(shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions of the array."""
        return self.history[0].ndim + 1

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the frames of a LazyStack cannot be stacked without a copy: leave out copy=False")
        stacked = np.stack(self.history, axis=self.axis)
        return stacked if dtype is None else stacked.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"LazyStack(shape={self.shape}, axis={self.axis})"


class ObservationStackingFilter(ObservationFilter):
    """Stacks the last ``stack_size`` observations along a new axis, oldest first. At the start of an episode, the first
    observation is repeated. Vectors become one long vector. With the default axis, the values of one element are next
    to each other.

    This filter should be the last filter: its output is a ``LazyStack``. Another filter after it would turn the stack
    into an array, and the memory would then store each frame ``stack_size`` times.

    :param stack_size: number of observations; 1 only adds an axis
    :param stacking_axis: position of the new axis; -1 for the last axis
    """

    episode_attributes = ("stack",)

    def __init__(self, stack_size: int, stacking_axis: int = -1):
        super().__init__()
        if not isinstance(stack_size, (int, np.integer)) or stack_size < 1:
            raise CoachError(f"ObservationStackingFilter: stack_size {stack_size!r} is not an int of at least 1")
        self.stack_size = int(stack_size)
        self.stacking_axis = stacking_axis
        self.stack: deque[np.ndarray] = deque(maxlen=self.stack_size)
        self._flattens = False

    def validate_input_observation_space(self, input_observation_space: ObservationSpace) -> None:
        space, rank = input_observation_space, input_observation_space.num_dimensions
        if not -rank - 1 <= self.stacking_axis < rank:
            raise self._refuse(
                space,
                f"stacking_axis {self.stacking_axis} is not possible; choose one from {-rank - 1} to {rank - 1}, "
                f"-1 to put it last",
            )
        if self.stack and not space.contains(self.stack[-1]):
            raise self._refuse(
                space, f"the filter already stacks observations of the shape {self.stack[-1].shape}; reset it first"
            )

    def filter(self, observation: Any, update_internal_state: bool = True) -> LazyStack | np.ndarray:
        """Return the stack of the last observations, including this one. Without ``update_internal_state``, later
        stacks do not contain this observation.
        """
        frame = np.array(observation)  # a copy, because the environment may overwrite its array
        stack = self.stack if update_internal_state else self.stack.copy()
        stack.extend([frame] if stack else [frame] * self.stack_size)
        stacked = LazyStack(stack, self.stacking_axis)
        return np.asarray(stacked).ravel() if self._flattens else stacked

    def filter_batch(self, observations: Any, update_internal_state: bool = True) -> list[LazyStack | np.ndarray]:
        """Filter consecutive observations of one episode."""
        return [self.filter(observation, update_internal_state) for observation in observations]

    def get_filtered_observation_space(self, input_observation_space: ObservationSpace) -> ObservationSpace:
        """Compute the space of stacks. Stacked [H, W] observations become planar maps, with the stack as channels."""
        space = input_observation_space
        check_size((self.stack_size, *space.shape))
        low, high = (np.stack([bound] * self.stack_size, axis=self.stacking_axis) for bound in (space.low, space.high))
        self._flattens = isinstance(space, VectorObservationSpace)
        if self._flattens:
            return VectorObservationSpace(low.size, low.ravel(), high.ravel())
        if space.num_dimensions == 2:
            return PlanarMapsObservationSpace(low.shape, low, high, self.stacking_axis)
        return TensorObservationSpace(low.shape, low, high)

    def reset(self) -> None:
        self.stack.clear()

    def stacks_of(self, num_actors: int) -> StacksOfActors:
        """Make the stacks of several actors, as columns."""
        return StacksOfActors(num_actors, self.stack_size, self.stacking_axis, self._flattens)

    def episode_state(self) -> list[np.ndarray]:
        return list(self.stack)

    def set_episode_state(self, state: list[np.ndarray]) -> None:
        self.stack = deque(state, maxlen=self.stack_size)

    def get_state(self) -> State:
        return {"stack": list(self.stack)}

    def set_state(self, state: State) -> None:
        frames = state.get("stack")
        if frames is None or len(frames) not in (0, self.stack_size):
            raise CoachError(
                f"the checkpoint's state does not fit an ObservationStackingFilter({self.stack_size}): use the "
                "stack_size of the saved run"
            )
        self.stack = deque(frames, maxlen=self.stack_size)


class StacksOfActors:
    """The last observations of several actors, which play different episodes. See ``ObservationStackingFilter``.

    :param num_actors: N, the number of actors
    :param flattens: True if a stack is one long vector
    """

    def __init__(self, num_actors: int, stack_size: int, stacking_axis: int, flattens: bool):
        self._num_actors, self._stack_size, self._flattens = num_actors, stack_size, flattens
        self._axis = stacking_axis if stacking_axis < 0 else stacking_axis + 1  # axis 0 is the axis of the actors
        self._frames: deque[np.ndarray] = deque(maxlen=stack_size)

    def begin(self, indices: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Begin the episodes of some actors.

        :param indices: [K], the indices of the actors
        :param observations: [K, ...], the first observations of the episodes
        :return: [K, ...], the stacks of these actors
        """
        if not self._frames:
            empty = np.zeros((self._num_actors, *observations.shape[1:]), observations.dtype)
            self._frames.extend([empty] * self._stack_size)
        # copies, because earlier stacks refer to the old arrays
        frames = [frame.copy() for frame in self._frames]
        for frame in frames:
            frame[indices] = observations
        self._frames = deque(frames, maxlen=self._stack_size)
        return self._stacked([frame[indices] for frame in frames])

    def add(self, observations: np.ndarray) -> np.ndarray:
        """Add an observation of each actor to its stack.

        :param observations: [N, ...], the newest observations
        :return: the stacks of all actors: [N, ...] with the additional axis of the stack
        """
        self._frames.append(observations)
        return self._stacked(list(self._frames))

    def _stacked(self, frames: list[np.ndarray]) -> np.ndarray:
        stacked = np.stack(frames, axis=self._axis)
        return stacked.reshape(len(stacked), -1) if self._flattens else stacked

    def histories(self) -> list[list[np.ndarray]]:
        """The frames of each actor, oldest first, in the form of ``ObservationStackingFilter.episode_state``."""
        return [[frame[index].copy() for frame in self._frames] for index in range(self._num_actors)]

    def take(self, histories: list[list[np.ndarray]]) -> None:
        """Replace all stacks, to continue the episodes of ``histories``.

        :param histories: the frames of each actor, oldest first; empty for an actor that begins an episode next"""
        known = next((frames for frames in histories if frames), None)
        if known is not None:
            rows = [frames or known for frames in histories]
            self._frames = deque((np.stack(frame) for frame in zip(*rows)), maxlen=self._stack_size)
