"""How many threads networks compute with."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys

import pytest

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures import threads
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import EmbeddingMergerType, Frameworks
from rl_coach.spaces import (
    BoxActionSpace,
    DiscreteActionSpace,
    ImageObservationSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError
from tests.frameworks import where_installed

TENSORFLOW = "TF_NUM_INTRAOP_THREADS"
VECTOR = SpacesDefinition(StateSpace({"observation": VectorObservationSpace(4)}), None, DiscreteActionSpace(2), None)
IMAGE = SpacesDefinition(
    StateSpace({"observation": ImageObservationSpace((84, 84, 4), high=255)}), None, DiscreteActionSpace(6), None
)
CONTINUOUS = SpacesDefinition(
    StateSpace({"observation": VectorObservationSpace(3)}), None, BoxActionSpace(1, -1, 1), None
)


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for variable in (TENSORFLOW, "NPROC", "OMP_NUM_THREADS"):
        monkeypatch.setenv(variable, "")  # so that what the test sets is taken back
        monkeypatch.delenv(variable)


def dqn(*units, batch_size=32):
    network = DQNAgentParameters().network_wrappers["main"]
    network.input_embedders_parameters["observation"].scheme = [Dense(n) for n in units[:-1]]
    network.middleware_parameters.scheme = [Dense(units[-1])]
    network.batch_size = batch_size
    return {"main": network}


def test_the_largest_product_of_a_body():
    assert threads.largest_product("main", dqn(256, 512)["main"], VECTOR) == 32 * 256 * 512
    assert threads.largest_product("main", dqn(300, 20)["main"], VECTOR) == 32 * 300 * 20
    assert threads.largest_product("main", dqn(7, batch_size=2)["main"], VECTOR) == 2 * 4 * 7
    image = DQNAgentParameters().network_wrappers["main"]
    assert threads.largest_product("main", image, IMAGE) == math.inf


def test_before_the_spaces_are_known_the_layers_decide():
    threads.set_num_threads_early(Frameworks.jax, None, dqn(64, 64, batch_size=64))
    assert os.environ.pop("NPROC") == "1"
    threads.set_num_threads_early(Frameworks.jax, None, SoftActorCriticAgentParameters().network_wrappers)
    assert "NPROC" not in os.environ
    threads.set_num_threads_early(Frameworks.jax, 3, dqn(64, 64))
    assert os.environ["NPROC"] == "3"


_COUNTS_THREADS = """
import pathlib, tempfile
from rl_coach.core_types import EnvironmentSteps
from tests.zoo.graphs import compiled
from tests.zoo.parameters import clipped_ppo

manager = compiled(clipped_ppo(), pathlib.Path(tempfile.mkdtemp()))
manager.train_and_act(EnvironmentSteps(128))
names = [file.read_text().strip() for file in pathlib.Path("/proc/self/task").glob("*/comm")]
print("THREADS", names.count("tf_XLAEigen"))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="this system does not list a process's threads")
@where_installed("jax")
def test_a_compiled_loop_of_small_networks_is_computed_by_one_thread():
    """JAX begins to compute when the environment is made, and asks for the number of threads no later."""
    environment = {**os.environ, "COACH_TEST_FRAMEWORK": "jax", "KERAS_BACKEND": "jax"}
    command = [sys.executable, "-c", _COUNTS_THREADS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "THREADS 1\n" in done.stdout, done.stdout + done.stderr


def test_inputs_that_are_merged_count_together():
    network = dqn(20, 30)["main"]
    network.input_embedders_parameters["action"] = InputEmbedderParameters(scheme=[Dense(5)])
    assert threads.largest_product("main", network, CONTINUOUS) == 32 * (20 + 5) * 30
    network.embedding_merger_type = EmbeddingMergerType.Sum
    assert threads.largest_product("main", network, CONTINUOUS) == 32 * 20 * 30


@pytest.mark.parametrize(
    ("networks", "spaces", "threads_of_framework"),
    [
        (dqn(256, 512), VECTOR, "1"),
        (dqn(64, 64), VECTOR, "1"),
        (dqn(256, 512, batch_size=128), VECTOR, None),
        (DQNAgentParameters().network_wrappers, IMAGE, None),
        (SoftActorCriticAgentParameters().network_wrappers, CONTINUOUS, None),
    ],
)
def test_small_networks_take_one_thread_and_large_ones_all(networks, spaces, threads_of_framework):
    threads.set_num_threads(Frameworks.tensorflow, None, networks, spaces)
    threads.set_num_threads(Frameworks.jax, None, networks, spaces)
    assert os.environ.get(TENSORFLOW) == os.environ.get("NPROC") == threads_of_framework


@pytest.mark.parametrize(
    ("framework", "variable"),
    [
        (Frameworks.tensorflow, TENSORFLOW),
        (Frameworks.jax, "NPROC"),
        (Frameworks.mxnet, "OMP_NUM_THREADS"),
        (Frameworks.torch, "OMP_NUM_THREADS"),
    ],
)
def test_what_is_wanted_holds_for_every_framework(framework, variable, monkeypatch):
    monkeypatch.setenv(variable, "5")
    threads.set_num_threads(framework, None, dqn(64, 64), VECTOR)
    assert os.environ[variable] == "5"
    threads.set_num_threads(framework, 3, dqn(64, 64), VECTOR)
    assert os.environ[variable] == "3"


@where_installed("torch")
def test_pytorch_listens_after_a_users_module_has_imported_it(monkeypatch):
    torch = importlib.import_module("torch")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "set_num_threads", (asked := []).append)
    threads.set_num_threads(Frameworks.torch, None, dqn(64, 64), VECTOR)
    threads.set_num_threads(Frameworks.torch, 3, dqn(64, 64), VECTOR)
    assert asked == [1, 3]


def test_a_number_below_one_is_refused():
    with pytest.raises(CoachError, match="num_threads must be at least 1, not 0"):
        threads.set_num_threads(Frameworks.tensorflow, 0, dqn(64, 64), VECTOR)


def test_heavy_networks_act_with_two_threads(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert threads.num_acting_threads(100_000, False) == 1
    assert threads.num_acting_threads(2_000_000, False) == threads.num_acting_threads(100, True) == 2
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert threads.num_acting_threads(2_000_000, True) == 1
