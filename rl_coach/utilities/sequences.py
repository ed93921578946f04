"""Lists, batches of observations, and the same call on several objects."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

import numpy as np


def force_list(var: Any) -> list:
    """``var`` itself if it is a list, otherwise a list with ``var`` as its only item."""
    return var if isinstance(var, list) else [var]


def squeeze_list(var: Sequence) -> Any:
    """The item of a list with one item, otherwise the list itself."""
    return var[0] if isinstance(var, (list, tuple)) and len(var) == 1 else var


def last_sample(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The last row of a batch of states, as a batch of one: [B, ...] becomes [1, ...]."""
    return {name: column[-1:] for name, column in state.items()}


def switch_axes_order(
    observation: np.ndarray, from_type: str = "channels_first", to_type: str = "channels_last"
) -> np.ndarray:
    """An observation of two or three axes with the channels moved from the first axis to the last, or back."""
    if from_type == to_type:
        return observation
    if not 2 <= observation.ndim <= 3:
        raise ValueError(f"an observation with channels has two or three axes, not {observation.ndim}")
    return np.moveaxis(observation, 0, -1) if from_type == "channels_first" else np.moveaxis(observation, -1, 0)


def stack_observation(curr_stack: Any, observation: np.ndarray, stack_size: int) -> np.ndarray:
    """Add an observation to a stack along the last axis, and drop the oldest. If the stack is empty, it is filled with
    the observation."""
    if len(curr_stack) == 0:
        return np.stack([observation] * stack_size, axis=-1)
    return np.concatenate([curr_stack[..., 1:], np.squeeze(observation)[..., None]], axis=-1)


def call_method_for_all(instances: Iterable[Any], method: str, args: Any = (), kwargs: dict | None = None) -> list:
    """The results of a method of each object.

    :param args: a list or tuple of arguments, or the only argument
    """
    arguments = args if isinstance(args, (list, tuple)) else [args]
    return [getattr(instance, method)(*arguments, **(kwargs or {})) for instance in instances]


def set_member_values_for_all(instances: Iterable[Any], member: str, val: Any) -> None:
    """Set an attribute of each object."""
    for instance in instances:
        setattr(instance, member, val)
