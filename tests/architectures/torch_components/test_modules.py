"""Modules of PyTorch as embedders and middlewares of users."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.utils import CoachError
from tests.architectures.networks import (
    DISCRETE,
    VECTOR,
    framework_outputs,
    network_parameters,
    random_inputs,
    spaces,
    teach,
    wrap,
)
from tests.architectures.torch_components.parts import (
    BranchingParameters,
    EncoderParameters,
    ForgetfulParameters,
    ResidualParameters,
)
from tests.frameworks import FRAMEWORK, where_installed


def network(embedder=None):
    return network_parameters(
        [QHeadParameters()],
        input_embedders_parameters={"observation": embedder or EncoderParameters()},
        middleware_parameters=ResidualParameters(),
        create_target_network=True,
    )


on_torch = pytest.mark.skipif(FRAMEWORK.name != "torch", reason="about PyTorch: make torch")


@on_torch
def test_it_learns_and_acts_and_its_statistics_follow():
    wrapper = wrap(network(), spaces(VECTOR, DISCRETE))
    before = [wrapper.state.arrays(group) for group in ("weights", "buffers")]
    teach(wrapper, 3, np.random.default_rng(0), rate=0.5)
    after = [wrapper.state.arrays(group) for group in ("weights", "buffers")]
    assert all((one != other).any() for old, new in zip(before, after) for one, other in zip(old, new))
    rows = random_inputs(wrapper, 5, np.random.default_rng(1))
    (expected,) = framework_outputs(wrapper, rows)
    np.testing.assert_allclose(wrapper.online_network.predict(rows), expected, rtol=1e-5, atol=1e-6)
    (of_target,) = framework_outputs(wrapper, rows, "target_weights")
    assert not np.allclose(of_target, expected)
    np.testing.assert_allclose(wrapper.target_network.predict(rows), of_target, rtol=1e-5, atol=1e-6)


@on_torch
def test_the_networks_seed_decides_its_weights():
    first, again, other = (
        wrap(network(), spaces(VECTOR, DISCRETE), seed).state.arrays("weights") for seed in (1, 1, 2)
    )
    assert all(np.array_equal(one, same) for one, same in zip(first, again))
    assert not np.array_equal(first[0], other[0])


@on_torch
def test_a_checkpoint_goes_on_exactly():
    wrapper = wrap(network(), spaces(VECTOR, DISCRETE))
    teach(wrapper, 2, np.random.default_rng(0))
    resumed = wrap(network(), spaces(VECTOR, DISCRETE), seed=5)
    resumed.set_state(wrapper.get_state())
    for one in (wrapper, resumed):
        teach(one, 2, np.random.default_rng(1))
    for group in wrapper.state.groups():
        for array, same in zip(wrapper.state.arrays(group), resumed.state.arrays(group)):
            np.testing.assert_array_equal(array, same)


@on_torch
@pytest.mark.parametrize(
    ("embedder", "expected"),
    [
        (ForgetfulParameters(), "'Forgetful' has a Dropout, and a resumed run cannot repeat its random numbers"),
        (BranchingParameters(), "'Branching' has branches that depend on the values of a tensor"),
    ],
    ids=["random", "branches"],
)
def test_what_cannot_be_repeated_or_exported_is_refused(embedder, expected):
    with pytest.raises(CoachError, match=expected):
        wrap(network(embedder), spaces(VECTOR, DISCRETE))


@where_installed("torch")
@pytest.mark.skipif(FRAMEWORK.name == "torch", reason="about other frameworks")
def test_another_framework_refuses_it():
    with pytest.raises(CoachError, match="'Encoder' is a module of PyTorch: use -f torch"):
        wrap(network(), spaces(VECTOR, DISCRETE))
