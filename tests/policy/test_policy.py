"""A policy acts as the agent that it was taken from, and says what is wrong where it cannot."""

from __future__ import annotations

import copy
import functools
import io
import json
import math
import os
import pathlib
import pickle
import subprocess
import sys
from typing import Any, Iterator

import numpy as np
import pytest

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.policy import Policy
from rl_coach.policy import export as policy_export
from rl_coach.policy import files as policy_files
from rl_coach.utilities import files
from rl_coach.utils import CoachError
from tests.zoo import policies

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 5


@functools.cache
def built(make: Any) -> Any:
    """The agent, which tests share: each begins an episode of its own."""
    return policies.build(*make())


@pytest.fixture
def saved(tmp_path):
    def write(make: Any) -> tuple[Any, pathlib.Path, dict[str, Any]]:
        return built(make), policies.write(built(make), tmp_path / "policy"), make()[1]

    return write


def states_of(observations: dict[str, Any], seed: int = 3) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [policies.draw(observations, rng) for _ in range(STEPS)]


def play(agent: Any, states: list[dict[str, np.ndarray]]) -> list[Any]:
    """What the environment gets from an agent that is evaluated."""
    agent.reset_internal_state()
    actions = []
    for state in states:
        policies.observe(agent, state)
        actions.append(agent.environment_spaces.action.clip_action_to_space(agent.act().action))
    return actions


@pytest.mark.parametrize("make", policies.AGENTS, ids=lambda make: make.__name__)
def test_acts_as_the_agent_does_when_it_is_evaluated(make, saved):
    agent, folder, observations = saved(make)
    policy = Policy.load(folder)
    episodes = [states_of(observations, seed) for seed in (3, 4)]
    expected = [play(agent, episode) for episode in episodes]
    for episode, actions in zip(episodes, expected):
        policy.reset()
        for state, action in zip(episode, actions):
            np.testing.assert_allclose(policy.act(state), action, rtol=1e-5, atol=1e-5)
    policy.reset()
    for t in range(STEPS):  # both episodes side by side
        batch = {name: np.stack([episode[t][name] for episode in episodes]) for name in observations}
        np.testing.assert_allclose(policy.act_batch(batch), [e[t] for e in expected], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [policies.dqn, policies.dueling_ddqn_from_frames], ids=lambda make: make.__name__)
def test_actions_have_the_values_that_the_agent_gives_them(make, saved, monkeypatch):
    agent, folder, observations = saved(make)
    policy, states, seen = Policy.load(folder), states_of(observations), []
    predict = policy._predict
    monkeypatch.setattr(policy, "_predict", lambda inputs: seen.append(predict(inputs)[0]) or predict(inputs))
    for end in range(1, STEPS + 1):
        play(agent, states[:end])
        policy.act(states[end - 1])
        expected = agent.get_prediction(agent.curr_state)
        np.testing.assert_allclose(seen[-1], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.ptp(np.concatenate(seen), axis=0).min() > 1e-3


def test_one_of_several_episodes_starts_anew(saved):
    _, folder, observations = saved(policies.actor_critic_with_lstm)
    policy, states = Policy.load(folder), states_of(observations)
    batch = np.stack([state["observation"] for state in states[:2]])
    first = policy.act_batch(batch)
    policy.act_batch(batch)
    policy.reset(0)
    outputs = {name: state.copy() for name, state in policy._recurrent.items()}
    assert all(not state[0].any() and state[1].any() for state in outputs.values())
    np.testing.assert_array_equal(policy.act_batch(batch)[0], first[0])


def test_statistics_stay_those_of_the_training(tmp_path):
    parameters, observations, action = policies.dqn()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    agent = policies.build(parameters, observations, action)
    statistics = agent.input_filter.observation_filters["observation"]["normalize"].running_observation_stats
    statistics.push(np.random.default_rng(0).normal(5, 2, (40, 3)))
    policy = Policy.load(policies.write(agent, tmp_path / "policy"))
    restored = policy._input_filters[0].observation_filters["observation"]["normalize"].running_observation_stats
    policy.act(np.full(3, 100.0))
    policy.act_batch(np.full((2, 3), 100.0))
    assert restored.n == statistics.n == 40
    np.testing.assert_array_equal(restored.mean, statistics.mean)
    np.testing.assert_array_equal(restored.var, statistics.var)


def test_an_image_with_other_axes_is_refused(saved):
    _, folder, observations = saved(policies.dueling_ddqn_from_frames)
    policy, image = Policy.load(folder), states_of(observations)[0]["observation"]
    for wrong in (np.swapaxes(image, 0, 1), image.reshape(-1, 2, 3)):
        for call in (lambda wrong=wrong: policy.act(wrong), lambda wrong=wrong: policy.act_batch(wrong[None])):
            with pytest.raises(CoachError, match=r"has the shape .*, but the policy needs"):
                call()
    assert policy.act(image[None]) == policy.act(image.ravel()) == policy.act_batch(image[None])[0]


def test_draws_follow_the_policys_probabilities(saved):
    agent, folder, observations = saved(policies.discrete_clipped_ppo)
    policy = Policy.load(folder, seed=0)
    state = states_of(observations)[0]
    inputs = agent.prepare_batch_for_inference(state, "main")
    (name,) = agent._policy_output_names
    probabilities = agent.networks["main"].online_network.predict(inputs, outputs=[name])[0]
    drawn = policy.act_batch(np.repeat(state["observation"][None], 4000, axis=0), deterministic=False)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, probabilities, atol=0.03)


def test_draws_of_continuous_actions_follow_mean_and_deviation(saved):
    _, folder, observations = saved(policies.soft_actor_critic)
    policy = Policy.load(folder, seed=0)
    state = states_of(observations)[0]["observation"]
    drawn = policy.act_batch(np.repeat(state[None], 2000, axis=0), deterministic=False)
    centre, radius = policies.BOX.low / 2 + policies.BOX.high / 2, policies.BOX.high / 2 - policies.BOX.low / 2
    unsquashed = np.arctanh(np.clip((drawn - centre) / radius, -0.999999, 0.999999))
    mean = np.arctanh((policy.act(state) - centre) / radius)
    deviation = unsquashed.std(axis=0)
    np.testing.assert_allclose((np.median(unsquashed, axis=0) - mean) / deviation, 0, atol=0.15)
    assert drawn.dtype == np.float32 and (deviation > 0.1).all()


def test_seeds_repeat_draws_and_masked_actions_are_never_drawn(saved):
    _, folder, _ = saved(policies.policy_gradients)
    observations = {
        "observation": np.random.default_rng(1).normal(size=(64, 3)),
        "action_mask": np.tile([0, 1, 0, 1], (64, 1)),
    }
    policy, other = Policy.load(folder, seed=5), Policy.load(folder, seed=5)
    drawn = policy.act_batch(observations, deterministic=False)
    np.testing.assert_array_equal(other.act_batch(observations, deterministic=False), drawn)
    assert set(drawn) == {1, 3}
    assert not np.array_equal(policy.act_batch(observations, deterministic=False), drawn)
    policy.seed(5)
    np.testing.assert_array_equal(policy.act_batch(observations, deterministic=False), drawn)
    assert policy.act({"observation": np.zeros(3), "action_mask": np.zeros(4)}) in range(4)  # it masks nothing


def test_observations_are_checked(saved):
    _, folder, _ = saved(policies.dqn)
    policy = Policy.load(folder)
    assert policy.observation_shapes == {"observation": (3,)}
    assert policy.act([[1.0, 2.0, 3.0]]) == policy.act(np.array([1.0, 2.0, 3.0]))  # Coach's vectors are flat
    assert policy.about["steps"] == 7 and policy.about["preset"] == "a_preset"
    with pytest.raises(CoachError, match=r"'observation' has the shape \(4,\), but the policy needs \(3,\)"):
        policy.act(np.zeros(4))
    with pytest.raises(CoachError, match="'observation' is missing"):
        policy.act({"observatoin": np.zeros(3)})
    for words in (["a"] * 3, None, np.array([None] * 3)):
        with pytest.raises(CoachError, match="which is not an array of numbers"):
            policy.act(words)
    for nothing in (None, 1.0, [], np.zeros((0, 3))):
        with pytest.raises(CoachError, match="act_batch needs one observation or more"):
            policy.act_batch(nothing)


def test_several_observations_are_given_by_name(saved):
    _, folder, _ = saved(policies.masked_dqn_of_several_observations)
    with pytest.raises(CoachError, match="pass a dict of 'camera', 'observation', 'action_mask'"):
        Policy.load(folder).act(np.zeros(3))


# what cannot be loaded


def test_damaged_files_are_named(saved):
    _, folder, _ = saved(policies.dqn)
    for name in (policy_files.POLICY_FILE, policy_files.ARRAYS_FILE, policy_files.MODEL_FILE):
        whole = (folder / name).read_bytes()
        changed = whole.replace(b'"steps": 7', b'"steps": 8') if name == policy_files.POLICY_FILE else whole[:-1] + b"?"
        for data in (whole[:-20], changed):
            (folder / name).write_bytes(data)
            with pytest.raises(CoachError, match=f"{name}' .*"):
                Policy.load(folder)
        (folder / name).unlink()
        with pytest.raises(CoachError):
            Policy.load(folder)
        (folder / name).write_bytes(whole)
    Policy.load(folder)


BAD_VALUES = (None, "", -1, 10**12, math.inf, [], {}, "x", "x" * 10_000, [[]], 2.5)


def is_refused(folder: pathlib.Path, observations: dict[str, Any]) -> bool:
    """False if the policy acts; otherwise the error must be of one short line that names the folder."""
    state = states_of(observations)[0]
    try:
        policy = Policy.load(folder)
        for deterministic in (True, False):
            policy.act(state, deterministic)
    except CoachError as error:
        message = str(error)
        assert str(folder) in message and "\n" not in message and len(message) < 1000
        return True
    return False


def parts_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of nested JSON: the dict or list, and the key."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from parts_of(tree[key])


@pytest.mark.parametrize(
    "make",
    [policies.dqn_in_a_grid, policies.actor_critic_with_lstm, policies.clipped_ppo],
    ids=lambda make: make.__name__,
)
def test_a_value_of_another_kind_is_refused_or_has_no_effect(make, saved):
    _, folder, observations = saved(make)
    file = folder / policy_files.POLICY_FILE
    content = json.loads(file.read_text())
    refused = 0
    for holder, key in parts_of(content):
        whole = holder[key]
        for bad in BAD_VALUES:
            holder[key] = bad
            if "sha256" in content and "policy" in content:
                content["sha256"] = bad if key == "sha256" else policy_files._digest_of(content["policy"])
            file.write_text(json.dumps(content))
            refused += is_refused(folder, observations)
        holder[key] = whole
    assert refused > 400


def ppo_with_filtered_observations() -> tuple[Any, ...]:
    parameters, *spaces = policies.clipped_ppo()
    parameters.pre_network_filter, parameters.input_filter = InputFilter(), InputFilter()
    parameters.input_filter.add_observation_filter("observation", "normalized", ObservationNormalizationFilter())
    return (parameters, *spaces)


def write_with_digests(folder: pathlib.Path, body: Any, arrays: dict[str, np.ndarray]) -> None:
    stored = io.BytesIO()
    np.savez(stored, **arrays)
    (folder / policy_files.ARRAYS_FILE).write_bytes(stored.getvalue())
    content = json.loads((folder / policy_files.POLICY_FILE).read_text())
    content |= {"policy": body, "sha256": policy_files._digest_of(body)}
    content["files"][policy_files.ARRAYS_FILE] = files.summary(stored.getvalue())
    (folder / policy_files.POLICY_FILE).write_text(json.dumps(content))


def contents_of(folder: pathlib.Path) -> tuple[Any, dict[str, np.ndarray]]:
    with np.load(folder / policy_files.ARRAYS_FILE) as arrays:
        return json.loads((folder / policy_files.POLICY_FILE).read_text())["policy"], dict(arrays)


@pytest.mark.parametrize("name", ["count", "mean", "squared_deviations"])
def test_damaged_statistics_of_an_input_filter_are_refused(name, saved):
    _, folder, observations = saved(ppo_with_filtered_observations)
    body, arrays = contents_of(folder)
    state = body["filters"]["input"][0]["state"]
    whole = state[name]
    for bad in (None, "x", [], [1.0, 2.0], {"__array__": "bad"}):
        state[name] = bad
        write_with_digests(folder, body, {**arrays, "bad": np.zeros((2, 7))})
        assert is_refused(folder, observations), bad
    state[name] = whole
    write_with_digests(folder, body, arrays)
    assert not is_refused(folder, observations)


@pytest.mark.parametrize("side", [10**4, 10**6])
def test_an_image_that_no_memory_holds_is_refused(side, saved):
    """As large as a filter is told to make it: 3 times 10^8 numbers, or 10^12."""
    _, folder, observations = saved(policies.dueling_ddqn_from_frames)
    body, arrays = contents_of(folder)
    space = body["filters"]["input"][0]["settings"]["output_observation_space"]["__space__"]
    space["attributes"]["shape"] = {"__array__": "large"}
    write_with_digests(folder, body, {**arrays, "large": np.array([side, side, 3])})
    with pytest.raises(CoachError, match=f"'{folder}': an observation of {side} x {side} x 3 numbers is too large"):
        Policy.load(folder)
    body, arrays = contents_of(folder)
    space["attributes"]["shape"] = {"__constant__": ["large", [side * side]]}
    write_with_digests(folder, body, arrays)
    assert is_refused(folder, observations)


def test_a_stack_of_frames_that_no_memory_holds_is_refused(saved):
    _, folder, _ = saved(policies.dueling_ddqn_from_frames)
    body, arrays = contents_of(folder)
    body["filters"]["input"][2]["settings"]["stack_size"] = 10**9
    write_with_digests(folder, body, arrays)
    with pytest.raises(CoachError, match="an observation of 1000000000 x 12 x 12 numbers is too large"):
        Policy.load(folder)


def test_files_that_were_damaged_before_their_digest_was_taken_are_refused(saved):
    _, folder, observations = saved(policies.dqn_in_a_grid)
    file = folder / policy_files.POLICY_FILE
    content = json.loads(file.read_text())
    other = policies.write(built(policies.actor_critic_with_lstm), folder.parent / "other")
    for name in (policy_files.ARRAYS_FILE, policy_files.MODEL_FILE):
        whole = (folder / name).read_bytes()
        for data in (b"", whole[:1], whole[: len(whole) // 2], b"[" * 1000, (other / name).read_bytes()[::-1]):
            (folder / name).write_bytes(data)
            file.write_text(json.dumps({**content, "files": {**content["files"], name: files.summary(data)}}))
            assert is_refused(folder, observations)
        (folder / name).write_bytes(whole)
    model = (other / policy_files.MODEL_FILE).read_bytes()
    (folder / policy_files.MODEL_FILE).write_bytes(model)
    summaries = {**content["files"], policy_files.MODEL_FILE: files.summary(model)}
    file.write_text(json.dumps({**content, "files": summaries}))
    assert is_refused(folder, observations)
    for name in summaries:
        (folder / name).unlink()
        (folder / name).mkdir()
        assert is_refused(folder, observations)


def test_a_newer_version_is_named(saved):
    _, folder, _ = saved(policies.dqn)
    content = json.loads((folder / "policy.json").read_text())
    (folder / "policy.json").write_text(json.dumps({**content, "format_version": 99}))
    with pytest.raises(CoachError, match=r"policy.json' has policy format 99, this version reads up to 1"):
        Policy.load(folder)


def test_places_without_a_policy_are_named(tmp_path):
    with pytest.raises(CoachError, match="no such file or directory"):
        Policy.load(tmp_path / "nowhere")
    with pytest.raises(CoachError, match="it is not an exported folder, checkpoint or experiment"):
        Policy.load(tmp_path)
    with pytest.raises(CoachError, match="there is no best checkpoint"):
        Policy.load(tmp_path / "best")
    with pytest.raises(CoachError, match=r"there is no best checkpoint in '.*nowhere': there is no such directory"):
        Policy.load(tmp_path / "nowhere" / "best")
    (tmp_path / "policy").mkdir()
    with pytest.raises(CoachError, match="has no policy"):
        Policy.load(tmp_path)


class Doubling(ObservationFilter):
    """A filter of a user's own."""

    def filter(self, observation: Any, update_internal_state: bool = True) -> Any:
        return np.asarray(observation) * 2


class Opaque(Doubling):
    """Does not keep its setting."""

    def __init__(self, factor: float):
        super().__init__()


def with_filter(member: ObservationFilter) -> Any:
    parameters, observations, action = policies.dqn()
    parameters.input_filter = InputFilter()
    parameters.input_filter.add_observation_filter("observation", "own", member)
    return policies.build(parameters, observations, action)


def test_filters_of_others_are_built_only_where_their_module_is_allowed(tmp_path):
    agent = with_filter(Doubling())
    folder = policies.write(agent, tmp_path / "policy")
    with pytest.raises(CoachError, match=f"allow_filters_from=\\['{__name__}'\\]"):
        Policy.load(folder)
    policy = Policy.load(folder, allow_filters_from=[__name__])
    for state in states_of(policies.VECTOR):
        assert [policy.act(state)] == play(agent, [state])


def test_a_filter_that_cannot_be_described_is_named():
    with pytest.raises(CoachError, match="Opaque does not keep its argument 'factor'"):
        policy_export.policy_of(with_filter(Opaque(2.0)), dict(policies.ABOUT))


@pytest.mark.parametrize(
    "path", ["os:system", "rl_coach.filters.filter:copy", "rl_coach.filters.filter:InputFilter.__init__", "a.b:C"]
)
def test_nothing_but_filters_is_built(path, saved):
    _, folder, _ = saved(policies.dqn)
    document, model = policy_files.read(folder)
    document["filters"]["input"] = [
        {"observation": "observation", "name": "x", "class": path, "settings": {}, "state": {}}
    ]
    for name, data in policy_files.as_files(document, model).items():
        (folder / name).write_bytes(data)
    with pytest.raises(CoachError):
        Policy.load(folder)


def test_an_agent_that_chooses_in_a_way_of_its_own_leaves_no_policy():
    agent = policies.build(*policies.dqn())
    changed = type("Contrary", (type(agent),), {"choose_action": lambda self, state: None})
    agent.__class__ = changed
    assert policy_export.policy_of(agent, dict(policies.ABOUT)) is None
    agent.__class__ = type("Described", (changed,), {"policy_description": changed.policy_description})
    assert policy_export.policy_of(agent, dict(policies.ABOUT)) is not None
    agent.choose_action = lambda state: None
    assert policy_export.policy_of(agent, dict(policies.ABOUT)) is None


# without a training framework

ACT = """
import sys
import numpy as np
from rl_coach.policy import Policy
policy = Policy.load(sys.argv[1])
print(np.asarray(policy.act({name: np.ones(shape, np.uint8) for name, shape in policy.observation_shapes.items()})))
"""

ONLY_NUMPY_AND_ONNXRUNTIME = """
import sys

class Forbid:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in {"numpy", "onnxruntime", "rl_coach"}:
            return None
        if any("onnxruntime" in frame for frame in self._callers()):
            return None
        raise ImportError(f"{name} is not allowed here")

    @staticmethod
    def _callers():
        frame = sys._getframe(2)
        while frame is not None:
            if "importlib" not in frame.f_code.co_filename:
                yield frame.f_code.co_filename
                return
            frame = frame.f_back

sys.meta_path.insert(0, Forbid())
"""


def run_python(python: pathlib.Path | str, text: str, *arguments: Any) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [str(python), "-c", text, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_needs_numpy_and_onnxruntime_only(saved):
    _, folder, observations = saved(policies.dueling_ddqn_from_frames)
    ones = {name: np.ones(tuple(space.shape), np.uint8) for name, space in observations.items()}
    expected = f"{np.asarray(Policy.load(folder).act(ones))}\n"
    assert run_python(sys.executable, ONLY_NUMPY_AND_ONNXRUNTIME + ACT, folder) == expected


@pytest.mark.resume
def test_acts_in_an_environment_with_numpy_and_onnxruntime_only(saved, tmp_path):
    _, folder, observations = saved(policies.dueling_ddqn_from_frames)
    ones = {name: np.ones(tuple(space.shape), np.uint8) for name, space in observations.items()}
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
    python = fresh / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy", "onnxruntime"], check=True)
    with pytest.raises(AssertionError, match="No module named 'tensorflow'"):
        run_python(python, "import tensorflow")
    assert run_python(python, ACT, folder) == f"{np.asarray(Policy.load(folder).act(ones))}\n"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
@pytest.mark.parametrize("make", policies.AGENTS, ids=lambda make: make.__name__)
def test_a_copy_goes_on_as_the_original_does(make, copied, saved):
    _, folder, observations = saved(make)
    policy, states = Policy.load(folder, seed=5), states_of(observations)
    for state in states[:3]:
        policy.act(state, deterministic=False)
    other = copied(policy)
    for state in states[3:]:
        np.testing.assert_array_equal(other.act(state, deterministic=False), policy.act(state, deterministic=False))
