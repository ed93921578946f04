"""Names that programs written for Coach import, where Coach had them besides the modules that define them."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from rl_coach.core_types import RunPhase
from rl_coach.utils import CoachError
from tests.zoo.environments import Bandit
from tests.zoo.graphs import graph
from tests.zoo.parameters import dqn

EPISODIC = ("EpisodicExperienceReplay", "EpisodicHindsightExperienceReplay", "EpisodicHRLHindsightExperienceReplay")
NON_EPISODIC = ("BalancedExperienceReplay", "ExperienceReplay", "PrioritizedExperienceReplay")
LAYERS = ("Dense", "Conv2d", "BatchnormActivationDropout", "NoisyNetDense")
NAMES = {
    "memories.episodic": (*EPISODIC, "SingleEpisodeBuffer", *(f"{name}Parameters" for name in EPISODIC)),
    "memories.non_episodic": (*NON_EPISODIC, *(f"{name}Parameters" for name in NON_EPISODIC), "QDND"),
    "architectures.tensorflow_components.layers": LAYERS,
    "architectures.mxnet_components.layers": LAYERS,
    "architectures.tensorflow_components.utils": ("get_activation_function",),
    "rollout_worker": ("wait_for", "wait_for_checkpoint", "wait_for_trainer_ready", "should_stop"),
    "data_stores.data_store": ("DataStore", "SyncFiles", "DataStoreParameters"),
    "saver": ("Saver", "SaverCollection"),
    "checkpoint": ("_filter_checkpoint_files",),
    "utils": ("last_sample", "get_open_port", "ReaderWriterLock", "SharedMemoryScratchPad", "set_gpu", "set_cpu"),
    "filters.reward": ("RewardClippingFilter", "RewardNormalizationFilter", "RewardRescaleFilter"),
    "filters.action": ("AttentionDiscretization", "BoxDiscretization", "BoxMasking", "LinearBoxToBoxMap"),
    "filters.observation": ("ObservationCropFilter", "ObservationStackingFilter", "ObservationToUInt8Filter"),
}


@pytest.mark.parametrize("room", NAMES)
def test_names_are_where_programs_import_them_from(room):
    module = importlib.import_module(f"rl_coach.{room}")
    assert [name for name in NAMES[room] if not hasattr(module, name)] == []


def test_activation_functions_by_name():
    utils = pytest.importorskip("rl_coach.architectures.tensorflow_components.utils")
    values = np.array([-2.0, 0.5], np.float32)
    np.testing.assert_allclose(utils.get_activation_function("tanh")(values), np.tanh(values), rtol=1e-6)
    np.testing.assert_allclose(utils.get_activation_function("leaky_relu")(values), [-0.4, 0.5], rtol=1e-6)
    assert utils.get_activation_function("none") is None
    with pytest.raises(CoachError, match="no activation function 'rellu'; did you mean 'relu'"):
        utils.get_activation_function("rellu")


def test_a_graph_may_wait(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    with manager.phase_context(RunPhase.WAITING):
        assert manager.get_agent().phase is RunPhase.WAITING
    assert manager.phase is RunPhase.UNDEFINED
