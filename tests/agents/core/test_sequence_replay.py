"""The columns of sequences with a burn-in, without an agent, by numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.core.sequence_replay import SequenceReplay
from rl_coach.agents.core.sequences import Sequences, stored_states
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.core_types import Episode, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.utils import CoachError


def memory(length: int = 3, with_states: bool = True) -> EpisodicExperienceReplay:
    """One whole episode, whose observations count its steps and whose recurrent states are a tenth of them."""
    kept, episode = EpisodicExperienceReplay((MemoryGranularity.Transitions, 100)), Episode()
    for number in range(length):
        before, after = (np.full(1, place, np.float32) for place in (number, number + 1))
        info = {"recurrent_state_h": np.full(2, number / 10, np.float32)} if with_states else {}
        is_last = number == length - 1
        episode.insert(Transition({"x": before}, 0, float(number), {"x": after}, game_over=is_last, info=info))
    kept.store_episode(episode)
    kept.seed(0)
    return kept


def replay(kept: EpisodicExperienceReplay, length: int, burn_in: int) -> SequenceReplay:
    parameters = LSTMMiddlewareParameters()
    parameters.sequence_length, parameters.burn_in = length, burn_in
    return SequenceReplay(kept, parameters, ["h"])


def test_a_sequence_of_a_whole_episode_has_its_burn_in_its_steps_and_the_state_after_them():
    source = replay(memory(), length=4, burn_in=1)
    assert source.has_rows and source.gives_many_at_once
    batch = source.sample(1, 4)
    columns = source.columns(
        batch,
        {
            "states/x": batch.state_columns["x"],
            "next_states/x": batch.next_state_columns["x"],
            "rewards": batch.reward_column,
            "weights": np.ones(len(batch), np.float32),
        },
    )
    # it begins the episode: its burn-in is a copy of the first step, and copies of the last one fill it up
    assert columns["states/x"].ravel().tolist() == [0, 0, 1, 2, 3, 3]
    assert columns["rewards"].tolist() == [0, 0, 1, 2, 2, 2]
    assert columns["weights"].tolist() == [0, 1, 1, 1, 0, 0]
    assert columns["extra/begins_episode"].tolist() == [1] * 6
    np.testing.assert_allclose(columns["states/h"][:, 0], [0, 0, 0.1, 0.2, 0.2, 0.2], rtol=1e-6)


def test_steps_without_the_state_that_acted_cannot_be_learned_from():
    batch = replay(memory(with_states=False), length=2, burn_in=0).sample(1, 2)
    with pytest.raises(CoachError, match="have no recurrent state"):
        stored_states(batch, ["h"])


def test_sequences_begin_anew_with_each_episode():
    sequences = Sequences(np.array([2, 4]), 2)  # episodes of the rows 0 to 2, and 3 to 4
    assert sequences.starts.tolist() == [0, 2, 3]
    column = np.arange(5)
    assert sequences.cut({"x": column})["x"].tolist() == [[0, 1], [2, 2], [3, 4]]
    assert sequences.joined(sequences.cut({"x": column})["x"]).tolist() == column.tolist()
    weights = sequences.learning_columns({"weights": np.ones(5)})["weights"]
    assert weights.tolist() == [1, 1, 1, 0, 1, 1]
