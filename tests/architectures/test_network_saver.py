"""Files of weights: arrays return to their places."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from rl_coach.architectures.network_saver import NetworkSaver


def test_more_than_a_thousand_arrays_return_in_their_order(tmp_path):
    found = {}
    arrays = {"weights": [np.array(number) for number in range(1_002)], "weights_of_last": [np.array(-1)]}
    state = SimpleNamespace(arrays=arrays.__getitem__, set_arrays=found.__setitem__)
    saver = NetworkSaver("weights", state, tuple(arrays))
    saver.restore(None, *saver.save(None, str(tmp_path / "weights.safetensors")))
    assert {group: list(map(int, values)) for group, values in found.items()} == {
        group: list(map(int, values)) for group, values in arrays.items()
    }
