"""The neural dictionary finds the nearest entries, forgets the least recently looked up, and goes on as it was."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.memories.non_episodic.differentiable_neural_dictionary import QDND, AnnoyDictionary, NearestKeys, load_dnd
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError

pytest.importorskip("faiss", reason="neighbours are looked up with faiss")
RNG = np.random.default_rng(4)


def by_definition(keys: np.ndarray, query: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(np.square(keys - query).sum(axis=1), kind="stable")[:k]


def test_a_query_gives_the_nearest_entries():
    keys, values = RNG.normal(size=(60, 8)).astype(np.float32), np.arange(60.0)
    dictionary = AnnoyDictionary(100, 8)
    dictionary.add(keys, values, [f"entry {i}" for i in range(60)])
    queries = RNG.normal(size=(5, 8))
    for query, some_keys, some_values, some_rows, some_data in zip(queries, *dictionary.query(queries, 4)):
        expected = by_definition(keys, query, 4)
        np.testing.assert_array_equal(some_rows, expected)
        np.testing.assert_array_equal(some_keys, keys[expected])
        np.testing.assert_array_equal(some_values, values[expected])
        assert some_data == [f"entry {i}" for i in expected]


def test_the_value_of_a_known_key_moves():
    dictionary = AnnoyDictionary(10, 2, new_value_shift_coefficient=0.25, key_error_threshold=0.1)
    dictionary.add([[0, 0], [1, 1], [0, 0]], [4.0, 8.0, 8.0])
    dictionary.add([[0.05, 0.05]], [1.0])
    assert dictionary.curr_size == 2
    _, values, _, _ = dictionary.query([[0, 0], [1, 1]], 1)
    np.testing.assert_allclose(values.ravel(), [5 + 0.25 * (1 - 5), 8])


def test_keys_may_be_there_twice():
    dictionary = AnnoyDictionary(10, 2, override_existing_keys=False)
    dictionary.add([[0, 0], [0, 0]], [1.0, 2.0])
    dictionary.add([[0, 0]], [3.0])
    assert sorted(dictionary.query([[0, 0]], 3)[1].ravel()) == [1, 2, 3]


def test_the_entries_looked_up_least_recently_go():
    dictionary = AnnoyDictionary(3, 1)
    dictionary.add([[0], [10], [20]], [0.0, 10.0, 20.0])
    dictionary.query([[0]], 1)
    dictionary.query([[20]], 1, touch=False)
    dictionary.query([[10]], 1)
    dictionary.add([[30]], [30.0])
    assert dictionary.curr_size == 3
    assert sorted(dictionary.values) == [0, 10, 30]
    dictionary.add([[40], [50], [60], [70]], [40.0, 50.0, 60.0, 70.0])
    assert sorted(dictionary.values) == [50, 60, 70]


def test_more_neighbours_than_entries_are_refused():
    dictionary = AnnoyDictionary(3, 1)
    dictionary.add([[0]], [0.0])
    assert dictionary.has_enough_entries(1) and not dictionary.has_enough_entries(2)
    with pytest.raises(CoachError, match="has 1 entries, fewer than the 2 requested neighbours"):
        dictionary.query([[0]], 2)


def played(dictionary: QDND, rounds: int, seed: int) -> list[np.ndarray]:
    """What queries find while entries are added, moved and forgotten."""
    rng, found = np.random.default_rng(seed), []
    actions = np.arange(8) % 2
    for _ in range(rounds):
        dictionary.add(rng.normal(size=(40, 6)), rng.integers(0, 2, 40), rng.normal(size=40))
        keys, values, rows = dictionary.query_each(rng.normal(size=(8, 6)).astype(np.float32), actions, 3)
        dictionary.update_keys_and_values(actions, keys, values, rows)
        found += [keys, values, rows]
    return found


def test_many_entries_are_found_in_lists(monkeypatch):
    monkeypatch.setattr(NearestKeys, "EXHAUSTIVE", 200)
    dictionary = AnnoyDictionary(3000, 6)
    keys = RNG.normal(size=(3000, 6)).astype(np.float32)
    for start in range(0, 3000, 100):
        dictionary.add(keys[start : start + 100], np.arange(start, start + 100))
    queries = RNG.normal(size=(100, 6)).astype(np.float32)
    _, _, rows, _ = dictionary.query(queries, 5)
    hits = [len(set(some) & set(by_definition(keys, query, 5))) for query, some in zip(queries, rows)]
    assert np.mean(hits) / 5 > 0.8
    _, _, own, _ = dictionary.query(keys[::50], 1)
    np.testing.assert_array_equal(own.ravel(), np.arange(0, 3000, 50))


@pytest.mark.parametrize("exhaustive", [10**6, 60])
def test_a_saved_dictionary_goes_on_to_the_last_bit(exhaustive, monkeypatch):
    monkeypatch.setattr(NearestKeys, "EXHAUSTIVE", exhaustive)
    without, saved = (QDND(150, 6, 2, override_existing_keys=True) for _ in range(2))
    played(without, 12, seed=1)
    played(saved, 12, seed=1)
    resumed = QDND(150, 6, 2, override_existing_keys=True)
    resumed.set_state(plain_data.loads(plain_data.dumps(saved.get_state())))
    for one, other in zip(played(without, 12, seed=2), played(resumed, 12, seed=2)):
        np.testing.assert_array_equal(one, other)
    assert all(len(dictionary.embeddings) == dictionary.curr_size == 150 for dictionary in resumed.dicts)


def test_a_dictionary_in_a_directory(tmp_path):
    dictionary = QDND(50, 6, 2, learning_rate=0.5)
    played(dictionary, 2, seed=3)
    dictionary.save(tmp_path)
    again = load_dnd(tmp_path)
    assert again.learning_rate == 0.5
    for one, other in zip(played(dictionary, 2, seed=4), played(again, 2, seed=4)):
        np.testing.assert_array_equal(one, other)


def test_a_state_of_other_keys_is_refused():
    one, other = QDND(10, 3, 1), QDND(10, 4, 1)
    one.add([[1, 2, 3]], [0], [1.0])
    with pytest.raises(CoachError, match="1 keys of 3 numbers"):
        other.set_state(one.get_state())


def test_drawn_keys_come_from_all_actions():
    dictionary = QDND(10, 1, 2)
    dictionary.add([[1], [2]], [0, 1], [0.0, 0.0])
    drawn = dictionary.sample_embeddings(5, np.random.default_rng(0)).ravel()
    assert sorted(drawn) == [1, 1, 1, 2, 2]
    dictionary.clean()
    assert not dictionary.has_enough_entries(1)
