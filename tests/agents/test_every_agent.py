"""Every agent learns on the framework that the tests run on. Part of ``make soak``: ``make test`` trains agents of each
family in the tests of equations, of learning and of resuming."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.core_types import EnvironmentSteps
from tests.frameworks import agents_of_zoo
from tests.zoo.runs import AGENTS, created
from tests.zoo.states import weights_of

# of those that differ in a setting, the first
ONE_OF_EACH_CLASS = {make().path: name for name, (make, *_) in reversed(AGENTS.items())}


@pytest.mark.slow
@pytest.mark.parametrize("name", agents_of_zoo(sorted(ONE_OF_EACH_CLASS.values())))
def test_every_agent_makes_an_update(name, tmp_path):
    manager = created(name, 1000, tmp_path)
    manager.heatup(EnvironmentSteps(60))
    agent, before = manager.get_agent(), weights_of(manager)
    for _ in range(40):
        manager.train_and_act(EnvironmentSteps(20))
        if agent.training_iteration > 0 or "at random" in name:
            break
    after = weights_of(manager)
    assert all(np.isfinite(array).all() for array in after if array.dtype.kind == "f")
    if "at random" not in name:
        assert agent.training_iteration > 0
        assert any(not np.array_equal(one, other) for one, other in zip(before, after))
