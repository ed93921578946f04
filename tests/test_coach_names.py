"""Names that programs written for Coach import, where Coach had them besides the modules that define them."""

from __future__ import annotations

import importlib

import pytest

EPISODIC = ("EpisodicExperienceReplay", "EpisodicHindsightExperienceReplay", "EpisodicHRLHindsightExperienceReplay")
NON_EPISODIC = ("BalancedExperienceReplay", "ExperienceReplay", "PrioritizedExperienceReplay")
LAYERS = ("Dense", "Conv2d", "BatchnormActivationDropout", "NoisyNetDense")
NAMES = {
    "memories.episodic": (*EPISODIC, "SingleEpisodeBuffer", *(f"{name}Parameters" for name in EPISODIC)),
    "memories.non_episodic": (*NON_EPISODIC, *(f"{name}Parameters" for name in NON_EPISODIC), "QDND"),
    "architectures.tensorflow_components.layers": LAYERS,
    "architectures.mxnet_components.layers": LAYERS,
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
