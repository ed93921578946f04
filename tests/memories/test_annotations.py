"""Columns that are added to stored transitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.utils import CoachError
from tests.memories.transitions import Steps

KINDS = (ExperienceReplay, PrioritizedExperienceReplay, EpisodicExperienceReplay)
CAPACITY = 16

pytestmark = pytest.mark.parametrize("kind", KINDS)


def play(memory: Any, steps: Steps, episodes: int) -> None:
    for _ in range(episodes):
        for transition in steps.episode(4):
            memory.store(transition)


def filled(kind: type, steps: Steps, episodes: int = 3) -> Any:
    """A memory of episodes of 4 steps, at most 4 of them."""
    memory = kind((MemoryGranularity.Transitions, CAPACITY))
    memory.seed(0)
    play(memory, steps, episodes)
    return memory


def numbers(batch: Any) -> np.ndarray:
    """The number of each step, from its state."""
    return batch.state_columns["observation"][:, 0]


def annotated(kind: type, steps: Steps, episodes: int = 3, default: Any = None) -> Any:
    """A memory with twice the number of each step beside it."""
    memory = filled(kind, steps, episodes)
    memory.annotate("double", 2 * numbers(memory.transitions), default)
    return memory


@pytest.mark.parametrize("episodes", [3, 4, 6, 9], ids=["part", "full", "wrapped", "wrapped twice"])
def test_samples_have_the_values_of_their_rows(kind, episodes):
    memory = annotated(kind, Steps(), episodes)
    batch = memory.sample(12)
    np.testing.assert_array_equal(batch.info("double"), 2 * numbers(batch))
    assert len(set(numbers(batch))) > 4


def test_rows_that_are_stored_later_have_no_value(kind):
    steps = Steps()
    memory = annotated(kind, steps)
    last = numbers(memory.transitions).max()
    play(memory, steps, 3)
    batch = memory.transitions
    old = numbers(batch) <= last
    assert old.sum() == 4 and len(batch) == CAPACITY
    np.testing.assert_array_equal(batch.info("double")[old], 2 * numbers(batch)[old])
    assert np.isnan(batch.info("double")[~old]).all()
    newest = memory._store.transitions_at(np.array([CAPACITY - 1]))[0]
    assert "double" not in newest.info


@pytest.mark.parametrize("way", ["one by one", "columns"])
def test_rows_that_are_stored_later_have_the_default(kind, way):
    steps = Steps()
    memory = annotated(kind, steps, default=-1.5)
    last = numbers(memory.transitions).max()
    if way == "columns":
        memory.store_columns(filled(kind, steps, 3).transitions)
    else:
        play(memory, steps, 3)
    batch = memory.sample(12)
    later = numbers(batch) > last
    assert later.any() and not later.all()
    np.testing.assert_array_equal(batch.info("double"), np.where(later, -1.5, 2 * numbers(batch)))


def test_a_value_of_its_own_goes_before_the_default(kind):
    steps = Steps()
    memory = annotated(kind, steps, default=-1.5)
    for transition in steps.episode(4):
        transition.info = {"double": np.float32(7)}
        memory.store(transition)
    assert memory.transitions.info("double")[-4:].tolist() == [7, 7, 7, 7]


def test_annotations_go_on_with_the_state(kind):
    steps = Steps()
    memory, again = annotated(kind, steps, 6, default=-1.5), filled(kind, Steps(), 0)
    again.set_state(memory.get_state())
    for one in (memory, again):
        for transition in Steps().episode(3):
            one.store(transition)
    np.testing.assert_array_equal(again.transitions.info("double"), memory.transitions.info("double"))
    assert again.transitions.info("double")[-3:].tolist() == [-1.5] * 3


@pytest.mark.parametrize("default", [None, -1.5])
def test_annotations_are_saved_and_loaded(kind, default, tmp_path):
    steps = Steps()
    memory = annotated(kind, steps, 6, default)
    memory.save(tmp_path / "memory.npz")
    again = kind((MemoryGranularity.Transitions, 2 * CAPACITY))
    again.load(tmp_path / "memory.npz")
    np.testing.assert_array_equal(again.transitions.info("double"), 2 * numbers(again.transitions))
    play(again, steps, 1)
    np.testing.assert_array_equal(
        again.transitions.info("double")[-4:], np.full(4, np.nan if default is None else -1.5)
    )


def test_values_of_any_kind(kind):
    memory = filled(kind, Steps())
    memory.annotate("pairs", np.arange(24).reshape(12, 2), default=[-1, -1])
    memory.annotate("labels", ["even", "odd"] * 6, default="none")
    memory.annotate("weight", np.arange(12), default=0.5)
    play(memory, Steps(), 1)
    batch = memory.transitions
    assert batch.info("pairs")[10:13].tolist() == [[20, 21], [22, 23], [-1, -1]]
    assert list(batch.info("labels")[10:13]) == ["even", "odd", "none"]
    assert batch.info("weight")[10:13].tolist() == [10, 11, 0.5]
    again = filled(kind, Steps(), 0)
    again.set_state(memory.get_state())
    play(again, Steps(), 1)
    assert again.transitions.info("pairs")[-1].tolist() == [-1, -1] and again.transitions.info("labels")[-1] == "none"


def test_a_second_annotation_replaces_the_first_and_frozen_memories_take_them(kind):
    memory = annotated(kind, Steps())
    memory.freeze()
    memory.annotate("double", np.zeros((12, 3)))
    assert memory.transitions.info("double").shape == (12, 3)


def test_a_memory_that_was_cleared_has_no_annotation(kind):
    memory = annotated(kind, Steps(), default=-1.5)
    memory.clean()
    play(memory, Steps(), 1)
    assert "double" not in memory.transitions.info_columns
    for transition in Steps().episode(2):
        transition.info = {"double": np.float32(3)}
        memory.store(transition)
    play(memory, Steps(), 1)
    assert np.isnan(memory.transitions.info("double")[-1]), "the default was forgotten too"


@pytest.mark.parametrize("column", [np.zeros(11), np.zeros(13), 5.0, []])
def test_there_must_be_one_value_for_each_transition(kind, column):
    with pytest.raises(CoachError, match=r"annotation 'double' has .* values, but the memory has 12 transitions"):
        filled(kind, Steps()).annotate("double", column)


@pytest.mark.parametrize("default", ["none", [1.0, 2.0]])
def test_a_default_must_be_like_the_values(kind, default):
    with pytest.raises(CoachError, match="the default of annotation 'double'"):
        filled(kind, Steps()).annotate("double", np.zeros(12), default)
