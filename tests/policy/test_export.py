"""What checkpoints carry for deployment: ONNX models of all networks, and the policy."""

from __future__ import annotations

import json
import pathlib
import shutil
import types
from typing import Any

import gymnasium
import keras
import numpy as np
import onnx
import onnxruntime
import pytest

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.base_parameters import TaskParameters
from rl_coach.checkpoint import find_checkpoint, load_checkpoint, mark_best
from rl_coach.coach import BAD_INPUT, DONE, main
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule
from rl_coach.logger import screen
from rl_coach.policy import Policy
from rl_coach.policy import export as policy_export
from rl_coach.utils import CoachError
from tests.architectures.networks import random_inputs
from tests.zoo import policies

OPSET = 18
ROWS = 3


def exported(agent: Any) -> dict[str, bytes]:
    """All that a checkpoint of a graph with this agent carries."""
    level = types.SimpleNamespace(name="main_level", agent=agent)
    files, troubles = policy_export.checkpoint_files([level], dict(policies.ABOUT), with_networks=True)
    assert not troubles
    return files


def keras_outputs(network: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What Keras itself computes from the framework's weights, each row a sequence of its own, by output name."""
    state = network.state
    values = [state.arrays(group) for group in ("weights", "buffers")]
    tensors = {name: keras.ops.convert_to_tensor(value) for name, value in inputs.items()}
    heads, recurrent, _ = state.function(*values, tensors, training=False, single_step=True)
    found = {f"output_{head}_{name}": np.asarray(heads[head][name]) for head, name in state.function.public_outputs}
    return found | {f"next_{name}": np.asarray(value) for name, value in recurrent.items()}


@pytest.mark.parametrize("make", policies.AGENTS, ids=lambda make: make.__name__)
def test_models_are_valid_and_compute_what_keras_does(make):
    agent = policies.build(*make())
    files, rng = exported(agent), np.random.default_rng(2)
    for name, network in agent.networks.items():
        data = files[f"onnx/main_level/agent/{name}/model.onnx"]
        model = onnx.load_from_string(data)
        onnx.checker.check_model(model, full_check=True)
        assert [(one.domain, one.version) for one in model.opset_import if one.domain == ""] == [("", OPSET)]
        inputs = random_inputs(network, ROWS, rng)
        cells = next(iter(network.state.function.recurrent_sizes.values()), 0)
        inputs |= {state: rng.normal(size=(ROWS, cells)) for state in network.online_network.recurrent_state}
        inputs = {key: value.astype(np.float32) for key, value in inputs.items()}
        assert {one.name for one in model.graph.input} == set(inputs)
        expected = keras_outputs(network, inputs)
        session = onnxruntime.InferenceSession(data)
        assert all(not isinstance(one.shape[0], int) for one in session.get_inputs())  # any batch
        outputs = dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs)))
        assert outputs.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(outputs[key], value, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(value).max()))


def test_models_say_what_they_are():
    agent = policies.build(*policies.masked_dqn_of_several_observations())
    for path, data in exported(agent).items():
        if not path.endswith("model.onnx"):
            continue
        facts = {one.key: one.value for one in onnx.load_from_string(data).metadata_props}
        assert facts["preset"] == "a_preset" and facts["framework"] == "tensorflow" and facts["steps"] == "7"
        assert facts["agent"] == "main_level.agent" and facts["agent_class"].endswith("dqn_agent:DQNAgent")
        assert json.loads(facts["versions"]).keys() >= {"rl_coach", "tensorflow", "keras", "numpy"}
        spaces = json.loads(facts["observation_spaces"])
        assert spaces["camera"] == {"class": "ImageObservationSpace", "shape": [12, 12, 1]}
        assert json.loads(facts["action_space"])["num_actions"] == 4


def test_a_policys_model_holds_only_what_acts():
    agent = policies.build(*policies.discrete_clipped_ppo())  # value and policy have towers of their own
    files = exported(agent)
    paths = ("onnx/main_level/agent/main/model.onnx", "policy/model.onnx")
    whole, acting = (onnx.load_from_string(files[path]) for path in paths)
    onnx.checker.check_model(acting, full_check=True)
    assert [output.name for output in acting.graph.output] == ["output_1_probabilities"]
    assert len(acting.graph.initializer) < len(whole.graph.initializer)


# a run


def cartpole(tmp_path: pathlib.Path, **changes: Any) -> BasicRLGraphManager:
    parameters = policies.small(DQNAgentParameters())
    schedule = SimpleSchedule(EnvironmentSteps(40), EnvironmentEpisodes(1), EnvironmentEpisodes(1))
    graph = BasicRLGraphManager(parameters, GymVectorEnvironment("CartPole-v1"), schedule)
    graph.prints_summary = False
    for name, value in changes.items():
        setattr(graph.agent_params, name, value)
    task = TaskParameters(experiment_path=str(tmp_path / "run"), seed=1, export_onnx_graph=True, preset="a_preset")
    return graph.create_graph(task)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory) -> pathlib.Path:
    """An experiment with two checkpoints, the older one marked as the best."""
    place = tmp_path_factory.mktemp("experiment")
    graph = cartpole(place)
    graph.improve()
    older = graph.last_checkpoint_path
    weights = graph.get_agent().networks["main"].online_network
    weights.set_weights([-w for w in weights.get_weights()])
    graph.save_checkpoint()
    mark_best(graph.checkpoint_dir, pathlib.Path(str(older)).name)
    graph.close()
    return place / "run"


def test_a_policy_plays_the_environment_itself(experiment):
    policy, environment = Policy.load(experiment), gymnasium.make("CartPole-v1")
    observation, _ = environment.reset(seed=0)
    for _ in range(10):
        action = policy.act(observation)
        assert type(action) is int and environment.action_space.contains(action)
        observation, _, terminated, _, _ = environment.step(action)
        if terminated:
            break
    assert policy.about["preset"] == "a_preset" and policy.about["steps"] == 40


def test_a_checkpoint_carries_policy_and_models_and_restores_as_before(experiment):
    newest = find_checkpoint(experiment)
    for file in ("policy/policy.json", "policy/model.onnx", "onnx/main_level/agent/main/model.onnx"):
        assert (pathlib.Path(newest) / file).is_file()
    _, manifest = load_checkpoint(newest)
    assert "policy/model.onnx" in manifest["files"]
    newest_model = pathlib.Path(newest, "onnx/main_level/agent/main/model.onnx").read_bytes()
    assert pathlib.Path(newest).with_name("model.onnx").read_bytes() == newest_model, "where Coach put it"


def test_the_newest_checkpoint_is_taken_unless_another_is_asked_for(experiment):
    observations = np.random.default_rng(0).normal(size=(20, 4))
    newest, best = Policy.load(experiment), Policy.load(experiment / "best")
    older = Policy.load(sorted((experiment / "checkpoint").glob("*.ckpt"))[0])
    np.testing.assert_array_equal(best.act_batch(observations), older.act_batch(observations))
    assert not np.array_equal(newest.act_batch(observations), best.act_batch(observations))


def test_export_writes_a_folder_that_its_readme_shows_how_to_use(experiment, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(experiment), "-o", "exported"]) == DONE
    assert "; exported/README.md shows" in capsys.readouterr().out
    assert main(["export", str(experiment), "-o", "below/another"]) == DONE
    assert "; below/another/README.md shows" in capsys.readouterr().out
    shutil.rmtree("below")
    folder = tmp_path / "exported"
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "arrays.npz", "model.onnx", "policy.json"]
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) == 3
    names: dict[str, Any] = {"observation": np.zeros(4)}
    exec(code, names)
    assert names["action"] == Policy.load(experiment).act(np.zeros(4))
    assert list(tmp_path.iterdir()) == [folder]


def test_export_takes_the_best_on_demand(experiment, tmp_path):
    policy_export.export(experiment / "best", tmp_path / "exported")
    observations = np.random.default_rng(0).normal(size=(20, 4))
    expected = Policy.load(experiment / "best").act_batch(observations)
    np.testing.assert_array_equal(Policy.load(tmp_path / "exported").act_batch(observations), expected)


def test_export_names_what_is_wrong_and_leaves_nothing_behind(experiment, tmp_path, capsys):
    def fails_with(*arguments: Any) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert main(["export", *map(str, arguments)]) == BAD_INPUT
        assert sorted(tmp_path.rglob("*")) == before
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    empty, damaged = tmp_path / "empty", tmp_path / "damaged"
    empty.mkdir()
    policy_export.export(experiment, damaged)
    (damaged / "model.onnx").write_bytes((damaged / "model.onnx").read_bytes()[:-1])
    assert "no such file" in fails_with(tmp_path / "nowhere", "-o", tmp_path / "x")
    assert "not an exported folder, checkpoint" in fails_with(empty, "-o", tmp_path / "x")
    assert "model.onnx' has" in fails_with(damaged, "-o", tmp_path / "x")
    assert "not an empty directory" in fails_with(experiment, "-o", damaged)
    assert "-o/--output (see coach export --help)" in fails_with(experiment)
    assert "unknown flag '--agnet'; did you mean '--agent'" in fails_with(experiment, "-o", "x", "--agnet")


class Opaque(ObservationFilter):
    """Does not keep its setting."""

    def __init__(self, factor: float):
        super().__init__()

    def filter(self, observation: Any, update_internal_state: bool = True) -> Any:
        return observation


def test_a_run_whose_policy_cannot_be_described_goes_on_and_says_so_once(tmp_path, monkeypatch):
    warnings: list[str] = []
    monkeypatch.setattr(screen, "warning", warnings.append)
    chain = InputFilter()
    chain.add_observation_filter("observation", "opaque", Opaque(1.0))
    graph = cartpole(tmp_path, input_filter=chain)
    for _ in range(2):
        path = graph.save_checkpoint()
    graph.close()
    assert len(warnings) == 1 and "Opaque does not keep its argument 'factor'" in warnings[0]
    with pytest.raises(CoachError, match="has no policy"):
        Policy.load(str(path))
    assert (pathlib.Path(str(path)) / "onnx/main_level/agent/main/model.onnx").is_file()


def test_of_several_agents_one_is_named(tmp_path):
    agents = {name: policies.build(*policies.dqn(), seed=seed) for seed, name in enumerate(("left", "right"))}
    for name, agent in agents.items():
        agent.name = name
    level = types.SimpleNamespace(name="level", agent=types.SimpleNamespace(agents=agents))
    files, _ = policy_export.checkpoint_files([level], dict(policies.ABOUT), with_networks=False)
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    assert Policy.load(tmp_path, agent="level.right").about["agent"] == "level.right"
    with pytest.raises(CoachError, match=r"several agents: choose the agent from 'level.left', 'level.right'"):
        Policy.load(tmp_path)
    with pytest.raises(CoachError, match=r"no agent 'level.rihgt'; did you mean 'level.right'"):
        Policy.load(tmp_path, agent="level.rihgt")
