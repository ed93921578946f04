"""``coach export --format frozen-graph``: the names of Coach 1.0.1, and the numbers of the policy's own network."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import onnxruntime
import pytest

from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.coach import BAD_INPUT, DONE, main
from rl_coach.installation import install_command
from rl_coach.policy import Policy
from rl_coach.policy import export as policy_export
from rl_coach.policy import files as policy_files
from rl_coach.policy.policy import find_policy
from tests.zoo import policies

ROWS = 3
SHORT = "heatup_steps=EnvironmentSteps(40); improve_steps=EnvironmentSteps(40)"
MAIN = "main_level/agent/main/online"
OBSERVATION = "network_0/observation/observation"


def run_graph(folder: pathlib.Path, output: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The output's value in a session as of TensorFlow 1. :param inputs: by the placeholder's name"""
    import tensorflow as tf

    definition = tf.compat.v1.GraphDef.FromString((folder / "frozen_graph.pb").read_bytes())
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.compat.v1.import_graph_def(definition, name="")
        placeholders = {node.name for node in definition.node if node.op == "Placeholder"}
        assert placeholders == set(inputs)
        for name, array in inputs.items():
            assert graph.get_tensor_by_name(f"{name}:0").shape.as_list() == [None, *array.shape[1:]]
        found = session.run(f"{output}:0", {f"{name}:0": array for name, array in inputs.items()})
    return np.asarray(found)


def network_output(source: pathlib.Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The first output of the policy's own ``model.onnx``."""
    _, model = policy_files.read(source)
    session = onnxruntime.InferenceSession(model)
    return np.asarray(session.run([session.get_outputs()[0].name], inputs)[0])


@pytest.mark.parametrize(
    ("preset", "output"),
    [
        ("CartPole_ClippedPPO", f"{MAIN}/network_1/ppo_head_0/policy"),
        ("CartPole_DQN", f"{MAIN}/network_0/q_values_head_0/output/BiasAdd"),
    ],
)
def test_a_trained_run_becomes_a_graph_that_computes_what_its_network_does(tmp_path, preset, output):
    run, folder = tmp_path / "run", tmp_path / "graph"
    assert main(["-p", preset, "-asc", "-ep", str(tmp_path), "-e", "run", "--no_summary", "-cp", SHORT]) == DONE
    (run,) = run.iterdir()
    assert main(["export", str(run), "-o", str(folder), "--format", "frozen-graph"]) == DONE
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "frozen_graph.pb"]
    readme = (folder / "README.md").read_text()
    assert f"input `{MAIN}/{OBSERVATION}:0`, shape ['batch', 4]" in readme and f"output `{output}:0`" in readme
    observations = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    expected = network_output(find_policy(run), {"observation": observations})
    found = run_graph(folder, output, {f"{MAIN}/{OBSERVATION}": observations})
    np.testing.assert_allclose(found, expected, atol=1e-5)


def written(agent: Any, folder: pathlib.Path) -> pathlib.Path:
    facts = {"agent": "main_level.agent", "agent_class": f"a.module:{type(agent).__name__}"}
    files = policy_export.policy_of(agent, {**policies.ABOUT, **facts})
    assert files is not None
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("make", "outputs"),
    [
        (policies.dueling_ddqn_from_frames, [f"{MAIN}/network_0/dueling_q_values_head_0/output"]),
        (policies.masked_dqn_of_several_observations, [f"{MAIN}/network_0/q_values_head_0/output/BiasAdd"]),
        (policies.policy_gradients, [f"{MAIN}/network_0/policy_values_head_0/sub_action_0/policy"]),
        (policies.continuous_policy_gradients, [f"{MAIN}/network_0/policy_values_head_0/sub_action_0/output_mean"]),
        (
            policies.clipped_ppo,
            [f"{MAIN}/network_1/ppo_head_0/policy", f"{MAIN}/network_1/ppo_head_0/policy_mean/BiasAdd"],
        ),
        (
            policies.soft_actor_critic,
            [
                f"main_level/agent/policy/online/network_0/sac_policy_head_0/{name}"
                for name in ("policy", "policy_mean")
            ],
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_head_has_the_names_that_coach_gave_it(make, outputs, tmp_path):
    source = written(policies.build(*make()), tmp_path / "policy")
    policy_export.export(source, tmp_path / "graph", as_frozen_graph=True)
    rng, document = np.random.default_rng(0), policy_files.read(source)[0]
    shapes = document["network"]["inputs"]
    inputs = {name: rng.uniform(0, 2, (ROWS, *shape)).astype(np.float32) for name, shape in shapes.items()}
    expected, network = network_output(source, inputs), outputs[0].partition("/online/")[0]
    fed = {f"{network}/online/network_0/{name}/{name}": array for name, array in inputs.items()}
    for output in outputs:
        np.testing.assert_allclose(run_graph(tmp_path / "graph", output, fed), expected, atol=1e-5)


def test_what_cannot_become_a_graph_is_said_in_one_line(tmp_path, capsys, monkeypatch):
    def fails_with(source: pathlib.Path, form: str = "frozen-graph") -> str:
        assert main(["export", str(source), "-o", str(tmp_path / "x"), "--format", form]) == BAD_INPUT
        assert not (tmp_path / "x").exists()
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    dqn = written(policies.build(*policies.dqn()), tmp_path / "dqn")
    lstm = written(policies.build(*policies.actor_critic_with_lstm()), tmp_path / "lstm")
    _, *spaces = policies.soft_actor_critic()
    naf = written(policies.build(policies.small(NAFAgentParameters()), *spaces), tmp_path / "naf")
    assert "invalid choice: 'frozen_graph'" in fails_with(dqn, "frozen_graph")
    assert "class ActorCriticAgent with an LSTM: supported are DQN" in fails_with(lstm)
    assert "class NAFAgent: supported are DQN" in fails_with(naf)

    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.delitem(sys.modules, "rl_coach.architectures.tensorflow_components.frozen_graph", raising=False)
    assert f"of the extra 'tensorflow' is not installed: {install_command('tensorflow')}" in fails_with(dqn)


def test_a_policy_of_an_earlier_version_still_loads_and_says_why_it_has_no_graph(tmp_path, capsys):
    source = written(policies.build(*policies.dqn()), tmp_path / "policy")
    document, model = policy_files.read(source)
    del document["network"]["name"], document["network"]["head"]
    for name, data in policy_files.as_files(document, model).items():
        (source / name).write_bytes(data)
    assert Policy.load(source).act(np.zeros(3)) in range(4)
    assert main(["export", str(source), "-o", str(tmp_path / "x"), "--format", "frozen-graph"]) == BAD_INPUT
    assert "an earlier version wrote this policy" in capsys.readouterr().err
