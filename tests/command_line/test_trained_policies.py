"""``coach fetch`` and ``coach push``; the Hub is a simulated one, see ``tests/zoo/hub.py``."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.trained_policies import (
    BEGIN,
    EPISODES,
    HEADER,
    LARGEST,
    VIDEOS,
    in_eight_bits,
    in_half_precision,
    mean_reward,
    table,
)
from rl_coach.coach import main
from rl_coach.command_line import preset_catalogue, trained_policies
from rl_coach.policy import Policy
from rl_coach.policy import files as policy_files
from rl_coach.utilities.system import shell_command
from tests.zoo.hub import running_hub

REPOSITORY = pathlib.Path(__file__).parents[2]
PUBLISHED = trained_policies.index()
CART_POLE = "tuned/CartPole_PPO"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def hub():
    pytest.importorskip("huggingface_hub")
    with running_hub() as running:
        yield running


def coach(hub, place, *arguments, token="hf_right", address=None):
    """``coach`` in a process of its own: the Hub's client reads the environment when it is imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {
        "HF_ENDPOINT": address or hub.address, "HF_HOME": str(place / "cache"), "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_TOKEN": token,
    }  # fmt: skip
    command = [sys.executable, "-m", "rl_coach", *arguments]
    return subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, timeout=300)


def test_a_policy_that_comes_with_coach_is_written_and_acts(capsys):
    assert main(["fetch", "tuned/cartpole_ppo"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.match(
        r"tuned/CartPole_PPO: mean reward \S+ in 100 episodes, trained by coach -p tuned/CartPole_PPO", said[0]
    )
    assert said[1].startswith("written to CartPole_PPO_policy; ")
    assert Policy.load("CartPole_PPO_policy").act(np.zeros(4)) in (0, 1)
    assert "Policy.load" in pathlib.Path("CartPole_PPO_policy", "README.md").read_text()
    assert main(["fetch", CART_POLE]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["fetch", CART_POLE, "-o", "other"]) == 0 and pathlib.Path("other", "model.onnx").exists()


def test_without_a_name_all_are_listed(capsys):
    assert main(["fetch"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["policy", "mean", "reward", "episodes", "trained", "with"]
    assert [line.split()[0] for line in lines[1:]] == list(PUBLISHED) and max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tuned/Pong_PPO", "there is no trained policy of tuned/Pong_PPO"),
        ("CartPole_DQN", "train one with: COACH -p CartPole_DQN"),
        ("tuned/CartPole_PP", "did you mean 'tuned/CartPole_PPO'"),
        ("a/b/c", "there is no trained policy 'a/b/c'"),
    ],
)
def test_what_is_not_published_is_one_line(name, said, capsys):
    assert main(["fetch", name]) == 2
    error = capsys.readouterr().err
    assert said.replace("COACH", shell_command("coach")) in error and error.count("\n") == 1


def test_a_policy_that_was_changed_is_refused(place, monkeypatch, capsys):
    shutil.copytree(trained_policies.policies_directory(), place / "policies")
    monkeypatch.setattr(trained_policies, "policies_directory", lambda: place / "policies")
    file = place / "policies" / "CartPole_PPO" / "policy.json"
    file.write_text(file.read_text() + " ")
    assert main(["fetch", CART_POLE]) == 2
    line = capsys.readouterr().err
    assert f"the policy of {CART_POLE} in" in line and "was changed: " in line
    assert not pathlib.Path("CartPole_PPO_policy").exists()


def test_a_policy_is_pushed_with_a_card_and_fetched_from_the_cache(hub, place):
    folder = trained_policies.policies_directory() / "CartPole_PPO"
    pushed = coach(hub, place, "push", str(folder), "me/pole", "--private")
    assert pushed.returncode == 0, pushed.stderr
    fetch = shell_command("coach", "fetch", "me/pole")
    assert pushed.stdout.splitlines() == [f"uploaded to {hub.address}/me/pole", f"get it with: {fetch}"]
    files = hub.repositories["me/pole"]
    assert set(files) == {"README.md", "policy.json", "arrays.npz", "model.onnx"} and hub.private == {"me/pole"}
    card = files["README.md"].decode()
    assert (
        card.startswith("---\n") and "library_name: coach" in card and "mean_reward" in card and "# A trained" in card
    )
    fetched = coach(hub, place, "fetch", "me/pole")
    assert fetched.returncode == 0, fetched.stderr
    observation = np.array([0.01, -0.02, 0.03, 0.0])
    assert Policy.load(place / "pole_policy").act(observation) == Policy.load(folder).act(observation)
    assert sorted(hub.downloads) == ["arrays.npz", "model.onnx", "policy.json"]
    again = coach(hub, place, "fetch", "me/pole", "-o", "again")
    assert again.returncode == 0 and len(hub.downloads) == 3


def test_a_damaged_policy_of_the_hub_is_refused(hub, place):
    folder = trained_policies.policies_directory() / "CartPole_PPO"
    hub.repositories["me/pole"] = {path.name: path.read_bytes() for path in folder.iterdir()}
    hub.repositories["me/pole"]["model.onnx"] += b"x"
    fetched = coach(hub, place, "fetch", "me/pole")
    assert fetched.returncode == 2 and fetched.stderr.count("\n") == 1 and "model.onnx" in fetched.stderr
    assert not (place / "pole_policy").exists()


def test_a_large_policy_of_a_preset_comes_from_the_hub_and_its_hash_is_checked(hub, place):
    folder = trained_policies.policies_directory() / "CartPole_PPO"
    hub.repositories["coach/pole"] = {path.name: path.read_bytes() for path in folder.iterdir()}
    entry = {**PUBLISHED[CART_POLE], "repository": "coach/pole", "revision": hub.revision("coach/pole")}
    (place / "policies").mkdir()
    program = (
        "import pathlib; from rl_coach.command_line import trained_policies as it; "
        "it.policies_directory = lambda: pathlib.Path('policies'); it.fetch(['tuned/CartPole_PPO'])"
    )
    for digest, expected in ((entry["sha256"], ""), ("0" * 64, "was changed")):
        (place / "policies" / "policies.json").write_text(json.dumps({CART_POLE: {**entry, "sha256": digest}}))
        environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(place / "cache")}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert expected in done.stderr and (done.returncode == 0) is not bool(expected), done.stderr
    assert Policy.load(place / "CartPole_PPO_policy").act(np.zeros(4)) in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (["fetch", "no/body"], {}, "Hugging Face Hub: RepositoryNotFoundError"),
        (["fetch", "no/body"], {"address": "http://127.0.0.1:9"}, "Hugging Face Hub: "),
        (["push", "{policy}", "me/pole"], {"token": "hf_wrong"}, "Hugging Face Hub: "),
        (["push", "{policy}", "pole"], {}, "does not have the Hub's form OWNER/NAME"),
        (["push", "nowhere", "me/pole"], {}, "nowhere"),
    ],
)
def test_what_the_hub_refuses_is_one_line(hub, place, arguments, options, said):
    policy = str(trained_policies.policies_directory() / "CartPole_PPO")
    done = coach(hub, place, *(one.format(policy=policy) for one in arguments), **options)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not hub.repositories


def test_without_the_package_a_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(trained_policies, "is_installed", lambda name: False)
    assert main(["fetch", "me/pole"]) == 2
    assert "the package 'huggingface_hub' of the extra 'hub' is not installed: " in capsys.readouterr().err


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_policy_is_small_and_of_a_tuned_preset_and_says_where_it_comes_from(name):
    entry = PUBLISHED[name]
    assert name in preset_catalogue.list_tuned_presets() and entry["run"]["command"].startswith(f"coach -p {name} ")
    folder = trained_policies.policies_directory() / name.rpartition("/")[2]
    assert sum(path.stat().st_size for path in folder.iterdir()) < LARGEST
    about = policy_files.read(folder)[0]["about"]
    assert about["steps"] == entry["run"]["steps"] and about["preset"] == name.replace("/", "_")


def test_the_pages_of_algorithms_name_the_policies():
    pages = [page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs" / "algorithms").glob("*.md")]
    tables = "".join(page.partition(BEGIN)[2].partition("<!--")[0] for page in pages)
    assert HEADER in tables
    for name, entry in PUBLISHED.items():
        assert table({name: entry}).splitlines()[-1] in tables
        assert (VIDEOS / f"{name.removeprefix('tuned/')}.gif").is_file()


@pytest.mark.parametrize(("pack", "share"), [(in_half_precision, 0.7), (in_eight_bits, 0.45)])
def test_a_packed_policy_is_smaller_and_its_actions_change_by_little(pack, share):
    _, model = policy_files.read(trained_policies.policies_directory() / "CartPole_PPO")
    packed = pack(model)
    assert len(packed) < share * len(model)
    onnxruntime = pytest.importorskip("onnxruntime")
    outputs = []
    for one in (model, packed):
        session = onnxruntime.InferenceSession(one)
        inputs = {it.name: np.full([4 if size == 4 else 1 for size in it.shape], 0.1, np.float32)
                  for it in session.get_inputs()}  # fmt: skip
        outputs.append(session.run(None, inputs)[0])
    np.testing.assert_allclose(outputs[1], outputs[0], atol=2e-2)
    assert not np.array_equal(*outputs)


def test_weights_of_eight_bits_are_off_by_half_a_step_of_their_output_at_most():
    onnx = pytest.importorskip("onnx")
    weights = np.array([[1.0, 0.02, 0.0], [-0.3, -0.01, 0.0]], np.float32)
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, size])
            for name, size in (("x", 2), ("y", 3))]  # fmt: skip
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [onnx.numpy_helper.from_array(weights, "w")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    session = pytest.importorskip("onnxruntime").InferenceSession(in_eight_bits(model.SerializeToString()))
    (found,) = session.run(None, {"x": np.eye(2, dtype=np.float32)})
    assert np.all(np.abs(found - weights) <= np.array([1.0, 0.02, 0.0]) / 127 / 2 + 1e-7)
    np.testing.assert_allclose(found[0], weights[0], atol=1e-7)  # the largest of each output is exact


@pytest.mark.golden
@pytest.mark.parametrize("name", PUBLISHED)
def test_each_policy_earns_what_is_published(name, place):
    assert main(["fetch", name, "-o", "policy"]) == 0
    entry = PUBLISHED[name]
    assert entry["episodes"] == EPISODES
    assert mean_reward(place / "policy", name) == pytest.approx(entry["mean_reward"], rel=0.02)
