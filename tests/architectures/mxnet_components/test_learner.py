"""What MXNet cannot differentiate is refused before the first update."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("mxnet") is None:
    pytest.skip("MXNet is not installed", allow_module_level=True)

from rl_coach.architectures.mxnet_components.learner import MXNetLearner
from rl_coach.architectures.trust_region import TrustRegion
from rl_coach.architectures.update import Stage, TrainingStep
from rl_coach.utils import CoachError


def test_an_update_with_second_derivatives_names_the_frameworks_that_have_them():
    stage = Stage(("policy",), lambda *_: None, move=TrustRegion(divergence=lambda *_: None))
    with pytest.raises(CoachError, match="the update needs second derivatives, which MXNet lacks: use -f tensorflow"):
        MXNetLearner(TrainingStep({}, {}, (stage,)), {}, ())
