"""The differentiable neural dictionary. The value of an embedding is a weighted mean over the nearest stored embeddings
(Pritzel et al. 2017, "Neural episodic control", section 3.1).
"""

from __future__ import annotations

import os
import pathlib
from types import ModuleType
from typing import Any

import numpy as np

from rl_coach.installation import install_command
from rl_coach.utilities.files import read_data, write_data
from rl_coach.utils import CoachError

FILE = "dictionary.npz"


def _faiss() -> ModuleType:
    try:
        import faiss
    except ImportError as error:
        raise CoachError(
            f"a neural dictionary needs faiss, which is not installed: {install_command('nec')}"
        ) from error
    return faiss


def looked_up(ops: Any, embeddings: Any, keys: Any, values: Any, delta: float) -> Any:
    """[B], the mean of values with the weights 1 / (|h - h_i|^2 + delta) (equations 1, 2 and 5).

    :param ops: array operations, of a framework or NumPy
    :param embeddings: h, [B, F]
    :param keys: h_i, the k nearest keys of each embedding, [B, k, F]
    :param values: the values of these keys, [B, k]
    """
    kernel = 1.0 / (ops.sum(ops.square(embeddings[:, None, :] - keys), axis=-1) + delta)
    return ops.sum(kernel * values, axis=-1) / ops.sum(kernel, axis=-1)


def gradients_of_squared_errors(
    embeddings: np.ndarray, keys: np.ndarray, values: np.ndarray, targets: np.ndarray, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of the mean squared error of ``looked_up`` values with respect to keys and values.

    :param targets: [B]
    :return: gradients of the keys [B, k, F] and of the values [B, k]
    """
    difference = embeddings[:, None, :] - keys
    kernel = 1.0 / (np.square(difference).sum(axis=-1) + delta)
    total = kernel.sum(axis=1, keepdims=True)
    q = (kernel * values).sum(axis=1, keepdims=True) / total
    slope = 2.0 * (q - targets[:, None]) / len(targets)
    by_kernel = slope * (values - q) / total
    return (2.0 * by_kernel * kernel**2)[..., None] * difference, slope * kernel / total


class NearestKeys:
    """Finds the nearest vectors in a set of vectors. The set may change by a few vectors at a time.

    If there are at most ``EXHAUSTIVE`` vectors, a search compares all of them. A larger set is divided into lists
    around centres, and a search reads only the lists of the nearest centres (``IndexIVFFlat`` of faiss). The centres
    are computed again when the number of vectors has doubled. The results depend only on the calls, and a restored
    index continues exactly.

    :param keys: [capacity, width] float32, the array of the vectors. The caller writes to this array
    """

    EXHAUSTIVE = 10000
    PROBES = 16

    def __init__(self, keys: np.ndarray):
        self._faiss: Any = _faiss()
        self._keys = keys
        self._index: Any = None
        self._size_at_training = 0

    def changed(self, rows: np.ndarray, size: int) -> None:
        """Update the index after rows [B] were written. :param size: number of rows in use, including new rows"""
        if size > max(self.EXHAUSTIVE, 2 * self._size_at_training):
            self._train(size)
        elif self._index is not None:
            self._index.remove_ids(rows.astype(np.int64))
            self._index.add_with_ids(self._keys[rows], rows.astype(np.int64))

    def _train(self, size: int) -> None:
        width = self._keys.shape[1]
        lists = int(4 * np.sqrt(size))
        self._index = self._faiss.IndexIVFFlat(self._faiss.IndexFlatL2(width), width, lists)
        self._index.nprobe = self.PROBES
        self._index.train(self._keys[:size])
        self._index.add_with_ids(self._keys[:size], np.arange(size))
        self._size_at_training = size

    def nearest(self, queries: np.ndarray, k: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the k nearest rows of each query. Return the squared distances [B, k], nearest first, and the rows [B,
        k].

        :param queries: [B, width] float32
        :param k: number of rows, at most ``size``
        :param size: number of rows in use
        """
        queries = np.ascontiguousarray(queries)
        rows = np.full((len(queries), k), -1) if self._index is None else self._index.search(queries, k)[1]
        # compare all rows if there is no index, or if the searched lists had fewer than k rows
        missing = np.flatnonzero((rows < 0).any(axis=1))
        if missing.size:
            rows[missing] = self._faiss.knn(queries[missing], self._keys[:size], k)[1]
        distances = np.square(self._keys[rows] - queries[:, None]).sum(axis=2)
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)

    def get_state(self) -> dict[str, Any]:
        """The index as plain data."""
        index = None if self._index is None else self._faiss.serialize_index(self._index)
        return {"index": index, "size_at_training": self._size_at_training}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``."""
        index = state["index"]
        self._index = None if index is None else self._faiss.deserialize_index(np.array(index, np.uint8))
        self._size_at_training = state["size_at_training"]


class AnnoyDictionary:
    """The keys and values of one action. A full dictionary removes the entries that were not looked up for the longest
    time.

    The name comes from Coach 1.0.1. The library Annoy is not used: ``NearestKeys`` finds the neighbours.

    :param dict_size: largest number of entries
    :param key_width: F, the size of a key
    :param new_value_shift_coefficient: step size towards a new value of an existing key; 1 replaces the old value
    :param batch_size: ignored, because a query finds new entries immediately
    :param key_error_threshold: largest distance at which two keys count as equal; 0 requires exactly equal keys
    :param num_neighbors: ignored, because ``query`` has an argument for this number
    :param override_existing_keys: True to change the value of an existing key, False to add the key a second time
    :param rebuild_on_every_update: ignored, because a query finds new entries immediately
    """

    def __init__(
        self,
        dict_size: int,
        key_width: int,
        new_value_shift_coefficient: float = 0.1,
        batch_size: int = 100,
        key_error_threshold: float = 0.01,
        num_neighbors: int = 50,
        override_existing_keys: bool = True,
        rebuild_on_every_update: bool = False,
    ):
        self.max_size = dict_size
        self.key_dimension = key_width
        self.new_value_shift_coefficient = new_value_shift_coefficient
        self.key_error_threshold = key_error_threshold
        self.override_existing_keys = override_existing_keys
        self.curr_size = 0
        self.current_timestamp = 0
        self.embeddings = np.zeros((dict_size, key_width), np.float32)
        self.values = np.zeros(dict_size, np.float32)
        self.lru_timestamps = np.zeros(dict_size, np.int64)
        self.additional_data: dict[int, Any] = {}
        self._index = NearestKeys(self.embeddings)

    def has_enough_entries(self, k: int) -> bool:
        """True if the dictionary has at least k entries."""
        return self.curr_size >= k

    def add(self, keys: Any, values: Any, additional_data: Any = None, force_rebuild_tree: bool = False) -> None:
        """Add entries. The value of an existing key moves towards the new value. If there are more entries than the
        dictionary can store, only the last entries are added.

        :param keys: [B, F]
        :param values: [B]
        :param additional_data: [B], any objects; ``query`` returns these objects
        """
        keys = np.asarray(keys, np.float32).reshape(-1, self.key_dimension)[-self.max_size :]
        values = np.asarray(values, np.float32).reshape(-1)[-self.max_size :]
        data = [None] * len(keys) if additional_data is None else list(additional_data)[-self.max_size :]
        known = self._known_rows(keys)
        self.lru_timestamps[known[known >= 0]] = self.current_timestamp
        free = iter(self._free_rows(int(np.count_nonzero(known < 0))))
        written: list[int] = []
        row_of: dict[bytes, int] = {}
        for key, value, one, row in zip(keys, values, data, known.tolist()):
            if row < 0:
                # the index does not contain the keys of this call before its end
                row = row_of.get(key.tobytes(), -1)
            if row >= 0:
                self.values[row] += self.new_value_shift_coefficient * (value - self.values[row])
            else:
                row = int(next(free))
                self.embeddings[row], self.values[row] = key, value
                self.lru_timestamps[row] = self.current_timestamp
                written.append(row)
                if self.override_existing_keys:
                    row_of[key.tobytes()] = row
            self.additional_data.pop(row, None)
            if one is not None:
                self.additional_data[row] = one
        self.curr_size = max(self.curr_size, max(written, default=-1) + 1)
        self._index.changed(np.array(written, np.int64), self.curr_size)
        self.current_timestamp += 1

    def _known_rows(self, keys: np.ndarray) -> np.ndarray:
        """[B], the indices of the entries with these keys; -1 for unknown keys."""
        if not (self.override_existing_keys and self.curr_size and len(keys)):
            return np.full(len(keys), -1)
        distances, rows = self._index.nearest(keys, 1, self.curr_size)
        return np.where(distances[:, 0] <= self.key_error_threshold**2, rows[:, 0], -1)

    def _free_rows(self, count: int) -> np.ndarray:
        """[count], rows to write to: first unused rows, then the rows that were not looked up for the longest time."""
        unused = np.arange(self.curr_size, min(self.curr_size + count, self.max_size))
        if len(unused) == count:
            return unused
        oldest = np.argsort(self.lru_timestamps[: self.curr_size], kind="stable")
        return np.concatenate([unused, oldest[: count - len(unused)]])

    def query(self, keys: Any, k: int, touch: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray, list]:
        """Find the nearest entries. Return their keys [B, k, F], values [B, k], indices [B, k] and additional data.

        :param keys: [B, F]
        :param k: number of entries for each key
        :param touch: True if this query counts as a use of the found entries, so that other entries are removed first
        :raises CoachError: if the dictionary has fewer than k entries
        """
        if not self.has_enough_entries(k):
            raise CoachError(f"the dictionary has {self.curr_size} entries, fewer than the {k} requested neighbours")
        keys = np.ascontiguousarray(keys, np.float32).reshape(-1, self.key_dimension)
        _, rows = self._index.nearest(keys, k, self.curr_size)
        if touch:
            self.lru_timestamps[rows] = self.current_timestamp
            self.current_timestamp += 1
        data = (
            [[self.additional_data.get(row) for row in some] for some in rows.tolist()] if self.additional_data else []
        )
        return self.embeddings[rows], self.values[rows], rows, data

    def move(self, rows: np.ndarray, key_steps: np.ndarray, value_steps: np.ndarray) -> None:
        """Add steps to the keys [R, F] and the values [R] of entries [R]. An entry may occur several times."""
        np.add.at(self.embeddings, rows, key_steps)
        np.add.at(self.values, rows, value_steps)
        self._index.changed(np.unique(rows), self.curr_size)

    def sample_embeddings(self, num_embeddings: int, rng: np.random.Generator | None = None) -> np.ndarray:
        """[num_embeddings, F], keys drawn uniformly with replacement."""
        rng = np.random.default_rng() if rng is None else rng
        return self.embeddings[rng.integers(self.curr_size, size=num_embeddings)]

    def get_state(self) -> dict[str, Any]:
        """The state for a checkpoint, as plain data."""
        size = self.curr_size
        return {
            "keys": self.embeddings[:size].copy(),
            "values": self.values[:size].copy(),
            "looked_up": self.lru_timestamps[:size].copy(),
            "timestamp": self.current_timestamp,
            "index": self._index.get_state(),
            "data": {str(row): data for row, data in self.additional_data.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``. :raises CoachError: if the keys do not fit"""
        keys = np.asarray(state["keys"])
        if keys.shape[1] != self.key_dimension or len(keys) > self.max_size:
            raise CoachError(
                f"the saved dictionary has {len(keys)} keys of {keys.shape[1]} numbers; this dictionary "
                f"has room for {self.max_size} keys of {self.key_dimension} numbers"
            )
        size = self.curr_size = len(keys)
        self.embeddings[:size], self.values[:size] = keys, state["values"]
        self.lru_timestamps[:size] = state["looked_up"]
        self.current_timestamp = state["timestamp"]
        self._index.set_state(state["index"])
        self.additional_data = {int(row): data for row, data in state["data"].items()}


class QDND:
    """The dictionaries of all actions, one for each action.

    :param dict_size: largest number of entries of each dictionary
    :param key_width: F, the size of a key
    :param num_actions: A, the number of actions
    :param learning_rate: the step size of ``update_keys_and_values``
    :param return_additional_data: True if ``query`` also returns the additional data

    The other parameters are the same as in ``AnnoyDictionary``.
    """

    def __init__(
        self,
        dict_size: int,
        key_width: int,
        num_actions: int,
        new_value_shift_coefficient: float = 0.1,
        key_error_threshold: float = 0.01,
        learning_rate: float = 0.01,
        num_neighbors: int = 50,
        return_additional_data: bool = False,
        override_existing_keys: bool = False,
        rebuild_on_every_update: bool = False,
    ):
        self.dict_size = dict_size
        self.key_width = key_width
        self.num_actions = num_actions
        self.new_value_shift_coefficient = new_value_shift_coefficient
        self.key_error_threshold = key_error_threshold
        self.learning_rate = learning_rate
        self.num_neighbors = num_neighbors
        self.return_additional_data = return_additional_data
        self.override_existing_keys = override_existing_keys
        self.clean()

    def clean(self) -> None:
        """Remove all entries."""
        self.dicts = [
            AnnoyDictionary(
                self.dict_size,
                self.key_width,
                self.new_value_shift_coefficient,
                key_error_threshold=self.key_error_threshold,
                override_existing_keys=self.override_existing_keys,
            )
            for _ in range(self.num_actions)
        ]

    def add(self, embeddings: Any, actions: Any, values: Any, additional_data: Any = None) -> None:
        """Add entries to the dictionaries of their actions.

        :param embeddings: the keys [B, F]
        :param actions: [B]
        :param values: [B]
        :param additional_data: [B], any objects; None for no data"""
        embeddings, actions, values = np.asarray(embeddings), np.asarray(actions), np.asarray(values)
        for action, dictionary in enumerate(self.dicts):
            rows = np.flatnonzero(actions == action)
            if rows.size:
                data = None if additional_data is None else [additional_data[row] for row in rows]
                dictionary.add(embeddings[rows], values[rows], data)

    def query(self, embeddings: Any, action: int, k: int, touch: bool = True) -> tuple:
        """The k nearest entries of an action; see ``AnnoyDictionary.query``."""
        found = self.dicts[action].query(embeddings, k, touch)
        return found if self.return_additional_data else found[:3]

    def query_each(self, embeddings: np.ndarray, actions: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        """Find the k nearest entries of each embedding in the dictionary of its action.

        :param embeddings: [B, F]
        :param actions: [B]
        :return: keys [B, k, F], values [B, k] and indices [B, k] of the entries"""
        keys = np.empty((len(actions), k, self.key_width), np.float32)
        values, indices = np.empty((len(actions), k), np.float32), np.empty((len(actions), k), np.int64)
        for action in np.unique(actions):
            rows = np.flatnonzero(actions == action)
            keys[rows], values[rows], indices[rows] = self.query(embeddings[rows], int(action), k)[:3]
        return keys, values, indices

    def action_values(self, embeddings: np.ndarray, k: int, delta: float, touch: bool = True) -> np.ndarray:
        """[B, A], the value of each embedding [B, F] for each action, from the k nearest entries (see ``looked_up``).
        If an action has fewer entries, all are used. The value of an action without entries is 0.
        """
        found = np.zeros((len(embeddings), self.num_actions), np.float32)
        for action, dictionary in enumerate(self.dicts):
            neighbours = min(k, dictionary.curr_size)
            if neighbours:
                keys, values, _, _ = dictionary.query(embeddings, neighbours, touch)
                found[:, action] = looked_up(np, embeddings, keys, values, delta)
        return found

    def has_enough_entries(self, k: int) -> bool:
        """True if each action has at least k entries."""
        return all(dictionary.has_enough_entries(k) for dictionary in self.dicts)

    def update_keys_and_values(self, actions: Any, key_gradients: Any, value_gradients: Any, indices: Any) -> None:
        """Make one step of gradient descent on keys and values.

        :param actions: [B]
        :param key_gradients: [B, k, F]
        :param value_gradients: [B, k]
        :param indices: [B, k], the indices of the entries
        """
        actions, indices = np.asarray(actions), np.asarray(indices)
        for action in np.unique(actions):
            rows = np.flatnonzero(actions == action)
            self.dicts[int(action)].move(
                indices[rows].ravel(),
                -self.learning_rate * np.asarray(key_gradients)[rows].reshape(-1, self.key_width),
                -self.learning_rate * np.asarray(value_gradients)[rows].ravel(),
            )

    def sample_embeddings(self, num_embeddings: int, rng: np.random.Generator | None = None) -> np.ndarray:
        """[num_embeddings, F], random keys, the same number from each action."""
        shares = np.full(self.num_actions, num_embeddings // self.num_actions)
        shares[: num_embeddings % self.num_actions] += 1
        pairs = zip(self.dicts, shares.tolist())
        return np.concatenate([dictionary.sample_embeddings(share, rng) for dictionary, share in pairs])

    def get_state(self) -> dict[str, Any]:
        """The state for a checkpoint, as plain data."""
        return {str(action): dictionary.get_state() for action, dictionary in enumerate(self.dicts)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``."""
        for action, dictionary in enumerate(self.dicts):
            dictionary.set_state(state[str(action)])

    def save(self, directory: str | os.PathLike) -> None:
        """Write the dictionaries to a directory, for ``load_dnd``."""
        names = (
            "dict_size", "key_width", "num_actions", "new_value_shift_coefficient", "key_error_threshold",
            "learning_rate", "num_neighbors", "return_additional_data", "override_existing_keys",
        )  # fmt: skip
        settings = {name: getattr(self, name) for name in names}
        write_data(pathlib.Path(directory) / FILE, {"settings": settings, "state": self.get_state()})


def load_dnd(model_dir: str | os.PathLike) -> QDND:
    """Load the dictionaries that ``QDND.save`` has written to a directory."""
    found = read_data(pathlib.Path(model_dir) / FILE, "neural dictionary")
    dictionary = QDND(**found["settings"])
    dictionary.set_state(found["state"])
    return dictionary
