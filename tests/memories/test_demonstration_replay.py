"""Replay of demonstrations, which stay, and of the newest own steps: what is sampled, how often, and what it tells."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.core_types import Batch, Episode, Transition
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.demonstration_replay import DemonstrationReplay
from rl_coach.utils import CoachError


def episode(first: int, length: int, terminated: bool) -> Episode:
    """Steps from state ``first`` on to the next number each, with the number itself as the reward."""
    made = Episode()
    for number in range(first, first + length):
        is_last = number == first + length - 1
        state, next_state = ({"observation": np.float32([n])} for n in (number, number + 1))
        made.insert(Transition(state, number % 2, number, next_state, is_last, terminated=is_last and terminated))
    return made


def memory_of(kept: list[Episode], own: list[Episode], size: int = 100, **settings: float) -> DemonstrationReplay:
    memory = DemonstrationReplay((MemoryGranularity.Transitions, size), **settings)
    memory.seed(3)
    for one in kept:
        memory.store_episode(one)
    memory.keep_as_demonstrations()
    for one in own:
        memory.store_episode(one)
    return memory


def numbers(batch: Batch) -> np.ndarray:
    return batch.state_columns["observation"][:, 0].astype(int)


def test_a_batch_tells_what_comes_after_each_transition():
    lengths = {0: (7, True), 100: (4, False), 200: (9, True), 300: (2, False)}
    episodes = {first: episode(first, *about) for first, about in lengths.items()}
    memory = memory_of([episodes[0], episodes[100]], [episodes[200], episodes[300]], n_step=3)
    batch = memory.sample(500)
    assert set(numbers(batch)) == {first + i for first, (length, _) in lengths.items() for i in range(length)}
    for row, number in enumerate(numbers(batch)):
        first = number // 100 * 100
        length, terminated = lengths[first]
        ahead = list(range(number, min(number + 3, first + length)))
        assert batch.info("ahead/steps")[row] == len(ahead)
        assert batch.info("ahead/rewards")[row].tolist() == ahead + [0] * (3 - len(ahead))
        assert batch.info("ahead/state/observation")[row] == ahead[-1] + 1
        assert batch.info("ahead/terminated")[row] == (terminated and ahead[-1] == first + length - 1)
        assert batch.info("is_demonstration")[row] == (first < 200)


def test_demonstrations_stay_and_the_oldest_own_steps_go():
    memory = memory_of([episode(0, 5, True)], [episode(100 * i, 6, True) for i in range(1, 8)], size=12, n_step=4)
    assert (memory.num_demonstrations, memory.length(), memory.num_transitions()) == (5, 17, 17)
    batch = memory.sample(400)
    assert set(numbers(batch)) == {*range(5), *range(600, 606), *range(700, 706)}
    of_600 = numbers(batch) == 604
    assert (batch.info("ahead/steps")[of_600] == 2).all()
    assert (batch.info("ahead/rewards")[of_600, :2] == [604, 605]).all()
    memory.clean()
    assert (memory.num_demonstrations, memory.length()) == (5, 5)


def test_demonstrations_are_read_and_saved_with_the_own_steps(tmp_path):
    memory = memory_of([episode(0, 5, True)], [episode(100, 4, True)])
    expected = [*range(5), *range(100, 104)]
    assert memory.mean_reward() == np.mean(expected)
    assert numbers(memory.transitions).tolist() == expected
    assert numbers(memory.transitions_at(np.array([8, 2, 5, 0]))).tolist() == [103, 2, 100, 0]
    memory.save(tmp_path / "both.npz")
    other = memory_of([], [])
    assert np.isnan(other.mean_reward()) and len(other.transitions) == 0
    other.load(tmp_path / "both.npz")
    assert numbers(other.transitions).tolist() == expected
    assert other.num_demonstrations == 0


def test_more_demonstrations_are_added_to_those_before():
    memory = memory_of([episode(0, 5, True)], [episode(100, 4, True)])
    memory.keep_as_demonstrations()
    assert memory.num_demonstrations == memory.length() == 9
    memory.keep_as_demonstrations()
    assert memory.num_demonstrations == 9


def test_demonstrations_that_do_not_fit_are_a_warning(capsys):
    memory = memory_of([episode(0, 5, True), episode(100, 4, True)], [], size=6)
    assert memory.num_demonstrations == 6
    assert "only the newest 6 of 9 demonstrations fit into the memory: raise memory.max_size" in capsys.readouterr().out


def test_transitions_are_sampled_by_their_errors_and_demonstrations_by_their_bonus():
    """Schaul et al. 2016, equation 1, with the paper's epsilons, and the weights of section 3.4."""
    settings = {"alpha": 0.5, "epsilon": 0.1, "demonstration_epsilon": 2.0, "n_step": 1}
    memory = memory_of([episode(0, 2, True)], [episode(100, 2, True)], **settings)
    batch = memory.sample(200)
    where = {number: batch.info("idx")[numbers(batch) == number][0] for number in (0, 1, 100, 101)}
    errors = {0: 0.0, 1: 7.0, 100: 0.0, 101: 7.0}
    memory.update_priorities(np.array(list(where.values())), np.array(list(errors.values())))
    priorities = np.sqrt([2.0, 9.0, 0.1, 7.1])
    batch = memory.sample(100000)
    shares = [np.mean(numbers(batch) == number) for number in errors]
    np.testing.assert_allclose(shares, priorities / priorities.sum(), atol=1e-3)
    for number, expected in zip(errors, (priorities / priorities.min()) ** -0.6):
        np.testing.assert_allclose(batch.info("weight")[numbers(batch) == number], expected, rtol=1e-6)


def test_new_steps_have_the_largest_priority_of_both_parts():
    memory = memory_of([episode(0, 2, True)], [], alpha=1.0)
    batch = memory.sample(8)
    memory.update_priorities(batch.info("idx"), np.full(8, 4.0))
    memory.store_episode(episode(100, 2, True))
    assert np.mean(memory.sample(10000).info("is_demonstration")) == pytest.approx(0.5, abs=1e-3)


def test_a_restored_memory_samples_the_same():
    made, other = memory_of([episode(0, 5, True)], [episode(100, 30, True)]), memory_of([], [])
    batch = made.sample(16)
    made.update_priorities(batch.info("idx"), np.arange(16.0))
    other.set_state(made.get_state())
    streams = [memory.get_state()["demonstrations"]["rng"] for memory in (made, memory_of([], []))]
    assert streams[0] == streams[1]  # states of equal runs are equal
    for _ in range(3):
        one, two = made.sample(16), other.sample(16)
        assert one.info("idx").tolist() == two.info("idx").tolist()
        assert one.info("weight").tolist() == two.info("weight").tolist()


def test_nothing_can_be_sampled_of_nothing():
    with pytest.raises(CoachError, match="use a longer heatup"):
        memory_of([], []).sample(4)
