"""What is no good checkpoint for a graph is refused whole, with a line that names the file and the mismatch."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import re
import resource
import shutil

import numpy as np
import pytest

from rl_coach.base_parameters import EmbedderScheme, Frameworks, TaskParameters
from rl_coach.checkpoint import MANIFEST_FILE, find_checkpoint, load_checkpoint, save_checkpoint
from rl_coach.core_types import EnvironmentSteps
from rl_coach.utils import CoachError
from tests.zoo.graphs import counting_graph, schedule
from tests.zoo.runs import graph_of
from tests.zoo.states import differences, leaves

CSV = "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"


@pytest.fixture(scope="module")
def dqn(tmp_path_factory):
    """A DQN graph for CartPole and a checkpoint of it."""
    directory = tmp_path_factory.mktemp("dqn")
    graph = build("DQN", directory)
    return graph, graph.save_checkpoint()


def build(name, directory, **changes):
    graph = graph_of(name, 100)
    for path, value in changes.items():
        *above, last = path.split("__")
        target = graph
        for part in above:
            target = getattr(target, part)
        setattr(target, last, value)
    return graph.create_graph(TaskParameters(experiment_path=str(directory), seed=1))


def state_of(graph):
    # the clocks go on
    return {path: leaf for path, leaf in leaves(graph.get_state()) if not path.endswith("/seconds")}


def assert_refused(graph, path, message):
    before = state_of(graph)
    with pytest.raises(CoachError, match=message) as caught:
        graph.restore_checkpoint(str(path))
    assert "\n" not in str(caught.value)
    assert differences(before, state_of(graph)) == []


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("PG", {}, "it has DQNAgent as its agent of main_level/agent, here it is PolicyGradientsAgent"),
        ("DQN", {"env_params__level": "Acrobot-v1"}, "it has Vector.* as its observation space main_level/observation"),
        ("DQN", {"env_params__level": "MountainCar-v0"}, "observation space"),
    ],
)
def test_a_checkpoint_of_another_preset(dqn, tmp_path, name, changes, message):
    assert_refused(build(name, tmp_path, **changes), dqn[1], message)


@pytest.mark.parametrize(("here", "there"), [("A_DQN", "A_DQN"), (None, "A_DQN"), ("A_DQN", None), (None, None)])
def test_a_checkpoint_of_the_same_preset_or_of_none(tmp_path, here, there):
    path = of_preset(there, tmp_path / "there").save_checkpoint()
    of_preset(here, tmp_path / "here").restore_checkpoint(path)


def test_a_checkpoint_of_another_preset_that_would_fit(tmp_path):
    path = of_preset("A_DQN", tmp_path / "there").save_checkpoint()
    message = f"the checkpoint '{path}' belongs to the preset A_DQN, not to B_DQN: use -p A_DQN"
    assert_refused(of_preset("B_DQN", tmp_path / "here"), path, re.escape(message))


def of_preset(name, directory):
    return graph_of("DQN", 100).create_graph(TaskParameters(experiment_path=str(directory), seed=1, preset=name))


def test_other_layers(dqn, tmp_path):

    graph = graph_of("DQN", 100)
    embedder = graph.agent_params.network_wrappers["main"].input_embedders_parameters["observation"]
    embedder.scheme = EmbedderScheme.Shallow
    graph.create_graph(TaskParameters(experiment_path=str(tmp_path), seed=1))
    assert_refused(graph, dqn[1], "it has 4x16 .* as its network main of main_level/agent, here it is 4x128")


def test_what_only_shows_while_it_is_restored_leaves_everything_as_it_was(dqn, tmp_path):
    """Another size of the memory, and another exploration policy, after the networks have been restored."""
    from rl_coach.exploration_policies.boltzmann import BoltzmannParameters
    from rl_coach.memories.memory import MemoryGranularity
    from rl_coach.schedules import ConstantSchedule

    smaller = graph_of("DQN", 100)
    smaller.agent_params.memory.max_size = (MemoryGranularity.Transitions, 20)
    smaller.create_graph(TaskParameters(experiment_path=str(tmp_path), seed=1))
    assert_refused(smaller, dqn[1], f"'{dqn[1]}' does not fit this graph: the saved memory has a capacity of 300")
    other = graph_of("DQN", 100)
    other.agent_params.exploration = BoltzmannParameters()
    other.agent_params.exploration.temperature_schedule = ConstantSchedule(1)
    other.create_graph(TaskParameters(experiment_path=str(tmp_path), seed=1))
    assert_refused(other, dqn[1], "does not fit this graph: the exploration state in the checkpoint")


def test_another_framework_reads_a_checkpoint_unless_it_is_older_than_the_order_of_layers(dqn, tmp_path, monkeypatch):
    graph, path = dqn
    monkeypatch.setattr(graph.task_parameters, "framework_type", Frameworks.jax)
    graph.restore_checkpoint(path)
    old = pathlib.Path(shutil.copytree(path, tmp_path / "0_Step-0.ckpt"))
    manifest = json.loads((old / MANIFEST_FILE).read_text())
    del manifest["moves"]
    (old / MANIFEST_FILE).write_text(json.dumps(manifest))
    assert_refused(graph, old, "it has tensorflow as its framework, here it is jax")


def test_a_version_that_lists_the_same_layers_in_another_order_reads_a_checkpoint(dqn, tmp_path):
    """The order of a Keras model's weights depends on the number of operations between its layers."""
    graph, path = dqn
    expected = state_of(graph)
    state, manifest = load_checkpoint(path)
    (network,) = state["levels"]["main_level"]["agent"]["networks"].values()
    network["order"]["weights"].reverse()
    count = len(network["order"]["weights"])
    for name in ("weights", "target_weights", "slots"):
        arrays = [network[name][key] for key in sorted(network[name])]
        groups = [arrays[start : start + count][::-1] for start in range(0, len(arrays), count)]
        network[name] = dict(zip(sorted(network[name]), itertools.chain(*groups)))
    (key,) = (name for name in manifest["fits"] if name.startswith("network"))
    manifest["fits"][key] = " ".join(reversed(manifest["fits"][key].split()))
    graph.restore_checkpoint(save_checkpoint(tmp_path, "0_Step-0.ckpt", state, manifest))
    assert differences(expected, state_of(graph)) == []


@pytest.mark.parametrize("name", ["arrays.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "removed"])
def test_damaged_files(dqn, tmp_path, name, damage):
    graph, path = dqn
    copy = pathlib.Path(shutil.copytree(path, tmp_path / "0_Step-0.ckpt"))
    file = copy / name
    content = file.read_bytes()
    changed = bytearray(content)
    changed[len(changed) // 2] ^= 1
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes({"cut": content[:-10], "changed": bytes(changed), "empty": b""}[damage])
    if name == "manifest.json" and damage == "changed":
        return  # a flipped bit of a text there may mean something else, or nothing
    assert_refused(graph, copy, str(copy) if damage == "removed" and name == "manifest.json" else name)


def test_an_empty_directory_and_none(dqn, tmp_path):
    assert_refused(dqn[0], tmp_path, f"no checkpoint in '{tmp_path}'")
    assert_refused(dqn[0], tmp_path / "nowhere", "there is no such file or directory")
    assert_refused(dqn[0], tmp_path / "best", "there is no best checkpoint")


def test_one_from_a_newer_version(dqn, tmp_path):
    copy = pathlib.Path(shutil.copytree(dqn[1], tmp_path / "0_Step-0.ckpt"))
    manifest = json.loads((copy / MANIFEST_FILE).read_text())
    (copy / MANIFEST_FILE).write_text(json.dumps({**manifest, "format_version": 99}))
    assert_refused(dqn[0], copy, "has checkpoint format 99, this version reads up to 2; update Coach")


def test_a_state_that_lacks_a_part(dqn, tmp_path):
    state, manifest = load_checkpoint(dqn[1])
    del state["levels"]["main_level"]["agent"]["counters"]["current_episode"]
    assert_refused(dqn[0], save_checkpoint(tmp_path, "0_Step-0.ckpt", state, manifest), "does not fit.*current_episode")


@pytest.fixture
def little_room():
    """Files may have that many bytes, as on a disk that is nearly full; the system says EFBIG instead of ENOSPC."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_up_in_the_middle_of_a_save_and_of_a_row(tmp_path, little_room, capsys):
    graph = counting_graph(tmp_path, schedule(EnvironmentSteps(400)), checkpoint_save_steps=50, checkpoint_keep=0)
    good = graph.save_checkpoint()
    train = graph.get_agent().train

    def train_and_fill_up():
        if graph.get_agent().total_steps_counter == 120:
            little_room(max(100, os.path.getsize(tmp_path / CSV) + 7))
        if graph.get_agent().total_steps_counter == 260:
            little_room(resource.RLIM_INFINITY)
        return train()

    graph.get_agent().train = train_and_fill_up
    graph.improve()
    text = capsys.readouterr().out
    assert "no checkpoint was saved in" in text and "File too large; earlier checkpoints remain" in text
    assert "its rows are written later" in text
    lines = (tmp_path / CSV).read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["Episode #", *map(str, range(1, 81))]
    steps = [
        int(path.name.partition("-")[2].removesuffix(".ckpt")) for path in (tmp_path / "checkpoint").glob("*.ckpt")
    ]
    assert 150 not in steps and 200 not in steps and 300 in steps and os.path.exists(good)
    assert not [name for name in os.listdir(tmp_path / "checkpoint") if name.startswith(".saving")]
    load_checkpoint(find_checkpoint(tmp_path))


def test_weights_are_those_of_the_checkpoint(dqn, tmp_path):
    graph = graph_of("DQN", 100).create_graph(TaskParameters(experiment_path=str(tmp_path), seed=2))
    graph.restore_checkpoint(dqn[1])
    for one, other in zip(*(g.get_agent().networks["main"].online_network.get_weights() for g in (graph, dqn[0]))):
        np.testing.assert_array_equal(one, other)


def test_the_same_preset_by_other_names(tmp_path, monkeypatch, capsys):
    """By name, in another case, as file and as module, evaluated and with another level of the same kind; but not a
    copy that is another preset."""
    from rl_coach.coach import BAD_INPUT, CoachInterface, main
    from rl_coach.command_line import preset_catalogue

    monkeypatch.chdir(tmp_path)
    first = CoachInterface(preset="CartPole_PG", seed=1).graph_manager
    path = first.save_checkpoint()
    file = preset_catalogue.preset_directory() / "CartPole_PG.py"
    for preset in ("cartpole_pg", str(file), f"{file}:graph_manager", "rl_coach.presets.CartPole_PG"):
        CoachInterface(preset=preset, checkpoint_restore_file=path).graph_manager.close()
    CoachInterface(preset="CartPole_PG", level="CartPole-v1", checkpoint_restore_file=path, evaluate=10).run()
    shutil.copy(file, "Other_PG.py")
    capsys.readouterr()
    assert main(["-p", "Other_PG.py", "-crf", path]) == BAD_INPUT
    assert "belongs to the preset CartPole_PG, not to Other_PG" in capsys.readouterr().err
