"""Settings may be NumPy's numbers, such as ``1 / np.sqrt(2)``: they are allowed, and mean what Python's mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.core_types import StepMethod
from rl_coach.utilities.requirements import check, constraints_of, settings_below
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn
from tests.zoo.runs import AGENTS
from tests.zoo.states import weights_of


def as_numpy(value: Any) -> Any:
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(as_numpy, value))
    return type(value)(np.int64(value.num_steps)) if isinstance(value, StepMethod) else value


def with_numpy_numbers(parameters: Any) -> Any:
    for _, settings in list(settings_below(parameters)):
        for name, value in list(vars(settings).items()):
            if name in constraints_of(type(settings)):
                object.__setattr__(settings, name, as_numpy(value))
    return parameters


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_no_setting_refuses_them(name):
    check(with_numpy_numbers(AGENTS[name][0]()), name)


@pytest.mark.parametrize("make", [dqn, clipped_ppo])
def test_a_run_is_the_same(make, tmp_path):
    found = []
    for change in (as_it_is, with_numpy_numbers):
        directory = tmp_path / change.__name__
        manager = graph(change(make()), Bandit, directory, schedule(80, 40, 1, heatup=40), writes_csv=True)
        manager.improve()
        assert manager.get_agent().training_iteration > 0 and manager.save_checkpoint() is not None
        found.append(weights_of(manager))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def as_it_is(parameters: Any) -> Any:
    return parameters
