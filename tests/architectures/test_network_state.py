"""Small arrays share a variable; nobody sees weights of updates that failed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.network_state import SMALL_ARRAY, StateLayout
from rl_coach.utils import TrainingError
from tests.architectures.networks import DISCRETE, VECTOR, network_parameters, random_inputs, spaces, wrap


def test_a_layout_gives_back_what_it_packed():
    rng = np.random.default_rng(0)
    groups = {
        "weights": [rng.random((3, 2), np.float32), rng.random(SMALL_ARRAY, np.float32), rng.random((), np.float32)],
        "buffers": [np.array([1, 2], np.uint32), rng.random(4, np.float32)],
        "slots": [],
    }
    layout = StateLayout(groups)
    variables = layout.pack(np, groups)
    assert [variable.size for variable in variables] == [6 + 1 + 4, SMALL_ARRAY, 2]
    assert layout.variables_of(["weights"]) == [0, 1]
    assert layout.variables_of(["buffers"]) == [0, 2]
    for name, group in layout.unpack(np, variables).items():
        assert len(group) == len(groups[name])
        for one, other in zip(group, groups[name]):
            np.testing.assert_array_equal(one, other)


def test_only_arrays_that_fit_are_taken():
    state = wrap(network_parameters([QHeadParameters()]), spaces(VECTOR, DISCRETE)).state
    before, version = state.arrays("weights"), state.version
    with pytest.raises(ValueError, match=f"'weights' must have {len(before)} arrays, but {len(before) - 1} were given"):
        state.set_arrays("weights", before[1:])
    with pytest.raises(ValueError, match=r"an array of 'weights' must have the shape \(3, 8\), but has \(8, 3\)"):
        state.set_arrays("weights", [before[0].T, *before[1:]])
    assert state.version == version
    state.set_arrays("weights", [array.astype(np.float64) + 1 for array in before])
    assert state.version > version
    for old, new in zip(before, state.arrays("weights")):
        assert new.dtype == np.float32
        np.testing.assert_array_equal(new, old + 1)


def diverging():
    """A network, inputs for it, and a call that makes an update which fails."""
    wrapper = wrap(network_parameters([QHeadParameters()], learning_rate=1e-3), spaces(VECTOR, DISCRETE))
    inputs = random_inputs(wrapper, 32, np.random.default_rng(0))
    columns = {f"states/{name}": value for name, value in inputs.items()}
    columns["extra/target_0"] = np.full((32, 4), np.nan, np.float32)
    columns["weights"] = np.ones(32, np.float32)
    wrapper.online_network.predict(inputs)
    return wrapper, inputs, partial(wrapper._target_learning.teacher.train, columns)


def test_a_loss_that_is_not_finite_is_raised_before_anyone_acts_with_the_weights():
    wrapper, inputs, update = diverging()
    with pytest.raises(TrainingError, match="network 'main' became nan at update 1"):
        update()  # raises where a framework computes at once
        wrapper.online_network.predict(inputs)


def test_it_is_raised_once_so_that_the_failed_run_can_be_saved():
    wrapper, _, update = diverging()
    with pytest.raises(TrainingError):
        update().wait()
    assert np.isnan(wrapper.get_state()["weights"]["000"]).any()
