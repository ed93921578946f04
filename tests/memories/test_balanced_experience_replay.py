"""Balanced replay: classes are equally likely however many transitions they have."""

import copy

import numpy as np
import pytest

from rl_coach.core_types import Batch, Transition
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.balanced_experience_replay import (
    BalancedExperienceReplay,
    BalancedExperienceReplayParameters,
)
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params


def of_class(class_index, number: int) -> Transition:
    state = {"class": np.array([class_index]), "number": np.array([number])}
    return Transition(state, 0, 0.0, state, False)


def balanced(classes, size: int = 1000, num_classes: int = 3, **settings) -> BalancedExperienceReplay:
    memory = BalancedExperienceReplay((MemoryGranularity.Transitions, size), num_classes=num_classes, **settings)
    memory.seed(0)
    for number, class_index in enumerate(classes):
        memory.store(of_class(class_index, number))
    return memory


def classes_of(batch: Batch) -> list:
    return np.bincount(batch.states(["class"])["class"][:, 0], minlength=3).tolist()


def numbers(batch: Batch) -> list:
    return batch.states(["number"])["number"][:, 0].tolist()


def test_parameters_build_it():
    parameters = BalancedExperienceReplayParameters()
    parameters.num_classes = 4
    memory = dynamic_import_and_instantiate_module_from_params(parameters)
    assert memory.num_classes == 4 and not memory.allow_duplicates


def test_each_class_has_its_share():
    memory = balanced([0] * 90 + [1] * 5 + [2] * 5)
    assert classes_of(memory.sample(30)) == [10, 10, 10]
    assert sorted(classes_of(memory.sample(31))) == [10, 10, 11]
    shares = np.sum([classes_of(memory.sample(1)) for _ in range(300)], axis=0)
    assert np.all(np.abs(shares - 100) < 40)


def test_all_of_a_class_are_equally_likely():
    memory = balanced([0, 1, 2] * 20)
    counts = np.bincount(np.concatenate([numbers(memory.sample(30)) for _ in range(600)]), minlength=60)
    assert np.all(np.abs(counts - 300) < 90)


def test_the_oldest_goes_whatever_its_class():
    memory = balanced([0] * 10 + [1, 2] * 5, size=10)
    with pytest.raises(CoachError, match="class 0"):
        memory.sample(3)
    memory.store(of_class(0, 20))
    assert set(numbers(memory.sample(300))) == set(range(11, 21))


def test_without_duplicates_none_is_twice():
    memory = balanced([0] * 5 + [1] * 5 + [2] * 3, allow_duplicates_in_batch_sampling=False)
    assert len(set(numbers(memory.sample(9)))) == 9
    with pytest.raises(CoachError, match="cannot sample 4 transitions of class 2; only 3 are stored"):
        memory.sample(12)


def test_chunks_removal_cleaning_and_state():
    memory = balanced([0, 1, 2, 0])
    memory.store_columns(Batch([of_class(1, 4), of_class(2, 5)]))
    memory.remove_transition(0)
    memory.remove_transition(2)
    with pytest.raises(CoachError, match="class 0"):
        memory.sample(3)
    memory.store(of_class(0, 6))
    assert set(numbers(memory.sample(300))) == {1, 2, 4, 5, 6}
    other = balanced([])
    other.set_state(copy.deepcopy(memory.get_state()))
    assert numbers(other.sample(9)) == numbers(memory.sample(9))
    memory.clean()
    with pytest.raises(CoachError, match="0 are stored"):
        memory.sample(3)


@pytest.mark.parametrize("class_index", [-1, 3])
def test_classes_that_do_not_exist(class_index):
    memory = balanced([0])
    with pytest.raises(CoachError, match="num_classes"):
        memory.store(of_class(class_index, 1))
    with pytest.raises(CoachError, match="num_classes"):
        memory.store_columns(Batch([of_class(class_index, 1)]))
    assert memory.length() == 1


def test_a_state_without_a_class_and_a_memory_without_classes():
    with pytest.raises(CoachError, match="'class'"):
        balanced([]).store(Transition({"number": np.zeros(1)}, 0, 0.0, {"number": np.zeros(1)}, False))
    with pytest.raises(CoachError, match="at least 2"):
        balanced([], num_classes=1)


@pytest.mark.parametrize("value", [np.zeros(2), np.array(["cat"])])
def test_a_class_is_one_number(value):
    memory, state = balanced([]), {"class": value, "number": np.array([0])}
    for store in (memory.store, lambda step: memory.store_columns(Batch([step]))):
        with pytest.raises(CoachError, match="but a class is one number: set memory"):
            store(Transition(state, 0, 0.0, state, False))
    assert memory.length() == 0
