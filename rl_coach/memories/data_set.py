"""Recorded steps as columns. All file formats are read into this form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

import numpy as np

from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.spaces import SpacesDefinition


@dataclass(frozen=True)
class DataSet:
    """Steps of complete episodes, one episode after the other.

    :param columns: the steps, each with the reward of this step (no n-step sums) and the next state
    :param episode_lengths: [E], number of steps of each episode; the sum is the number of all steps
    :param is_raw: True for values from the environment, False for the output of an agent's filters
    :param spaces: the environment's spaces; None if the file does not contain them
    """

    columns: Batch
    episode_lengths: np.ndarray
    is_raw: bool
    spaces: SpacesDefinition | None = None

    @classmethod
    def of_episodes(
        cls, episodes: Sequence[Sequence[Transition]], is_raw: bool, spaces: SpacesDefinition | None = None
    ) -> DataSet:
        """Make a data set from a list of transitions for each episode. At least one transition is needed."""
        steps = Batch([transition for episode in episodes for transition in episode])
        return cls(steps, np.asarray([len(episode) for episode in episodes]), is_raw, spaces)

    def episodes(self) -> Iterator[Episode]:
        """Make an ``Episode`` object for each episode."""
        begin = 0
        for length in self.episode_lengths:
            episode = Episode()
            for transition in self.columns[begin : begin + length]:
                episode.insert(transition)
            episode.transitions[-1].game_over = True
            yield episode
            begin += length

    def summary(self) -> dict[str, str]:
        """A summary for printing: texts about sizes, ranges and origin of the values, by name."""
        columns, ends = self.columns, np.cumsum(self.episode_lengths)
        # float64, because a sum in float32 loses digits in long episodes
        returns = np.add.reduceat(columns.reward_column.astype(np.float64), ends - self.episode_lengths)
        terminated = int(columns.terminated_column[ends - 1].sum())
        how_ended = f"{terminated:,} terminated and {len(ends) - terminated:,} were cut off"
        actions = columns.action_column
        distinct = f", {len(np.unique(actions))} different ones" if actions.dtype.kind in "iu" else ""
        has_probabilities = "all_action_probabilities" in columns.info_columns
        return {
            "steps": f"{len(columns):,}",
            "episodes": f"{len(ends):,}, of which {how_ended}",
            "length of episodes": _spread(self.episode_lengths),
            "return": _spread(returns),
            "reward": _spread(columns.reward_column),
            **{f"state '{name}'": _form(column) for name, column in columns.state_columns.items()},
            "actions": _form(actions) + distinct,
            "probabilities of actions": "yes" if has_probabilities else "no",
            "values": "raw, of the environment" if self.is_raw else "after the filters of an agent",
        }


def _form(column: np.ndarray) -> str:
    low, high = (f"{float(bound):.5g}" for bound in (column.min(), column.max()))
    return f"{' x '.join(map(str, column.shape[1:])) or 'a number'} of {column.dtype}, from {low} to {high}"


def _spread(values: np.ndarray) -> str:
    return f"{np.mean(values):.5g} on average, from {np.min(values):.5g} to {np.max(values):.5g}"
