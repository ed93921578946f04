"""Specifications that RLgraph and TensorForce published: each is loaded, acts, observes and learns."""

from __future__ import annotations

import copy
import json
import pathlib

import numpy as np
import pytest

from rl_coach.own_loop import rlgraph, tensorforce
from tests.frameworks import FRAMEWORK
from tests.samples import one_in

PUBLISHED = pathlib.Path(__file__).parent / "published"
SPECS = [
    pytest.param(file.stem, name, spec, id=f"{file.stem}-{name}")
    for file in sorted(PUBLISHED.glob("*.json"))
    for name, spec in json.loads(file.read_text()).items()
]
IMAGE_NAMES = ("pong", "visual", "breakout", "cnn", "ue4")


def smaller(value, key=""):
    """A spec with small batches and memories, so that it learns after a few steps."""
    if isinstance(value, dict):
        return {name: smaller(one, name) for name, one in value.items()}
    sizes = {"batch_size": 4, "update_interval": 4, "frequency": 4, "steps_before_update": 0, "first_update": 0,
             "sample_size": 4, "capacity": 500, "worker_sample_size": 4, "num_iterations": 1, "optimization_steps": 1,
             "buffer_size": 500}  # fmt: skip
    return min(value, sizes[key]) if key in sizes and isinstance(value, int) else value


def spaces(system, name, spec):
    """States and actions that fit a published spec."""
    text = json.dumps(spec)
    if '"F_position"' in text:
        state = {"F_position": {"type": "float", "shape": [2]}}
    elif "flatten_categories" in text:
        found = text.split('"flatten_categories": ')[1].split("}")[0].split(",")[0]
        state = int(found)
    elif "image_" in text or "conv2d" in text or any(one in name for one in IMAGE_NAMES):
        state = {"type": "float", "shape": [210, 160, 3], "low": 0, "high": 255}
    else:
        state = {"type": "float", "shape": [4]}
    numbers = any(one in name for one in ("pendulum", "gaussian", "functionality", "mlagents")) and "dqn" not in name
    numbers |= spec["type"].startswith(("naf", "ddpg"))
    if '"forward"' in text or "container_actions" in name:
        action = {"forward": 5, "jump": 2, "turn": 2}
    else:
        action = {"type": "float", "shape": [2], "low": -1, "high": 1} if numbers else 3
    if system == "rlgraph":
        return state, action
    state = {"type": "float", "shape": state["shape"]} if len(state["shape"]) == 1 else {
        "type": "float", "shape": state["shape"], "min_value": 0, "max_value": 255}  # fmt: skip
    return state, {"type": "float", "shape": [2], "min_value": -1, "max_value": 1} if numbers else {
        "type": "int", "num_actions": 3}  # fmt: skip


def sample(state, rng):
    if isinstance(state, int):
        return int(rng.integers(state))
    if "shape" not in state:
        return {name: sample(one, rng) for name, one in state.items()}
    return rng.integers(0, 255, state["shape"]).astype(np.float32) if len(state["shape"]) == 3 else rng.normal(
        size=state["shape"]).astype(np.float32)  # fmt: skip


def check(system, name, spec):
    """Play 12 steps, and learn."""
    state_space, action_space = spaces(system, name, spec)
    given, rng = smaller(copy.deepcopy(spec)), np.random.default_rng(0)
    settings = {"framework": FRAMEWORK.name, "seed": 1}
    if system == "rlgraph":
        agent = rlgraph.Agent.from_spec(given, state_space=state_space, action_space=action_space, **settings)
    else:
        agent = tensorforce.Agent.from_spec(given, states=state_space, actions=action_space, **settings)
    state = sample(state_space, rng)
    for step in range(12):
        after, ends = sample(state_space, rng), step % 6 == 5
        if system == "rlgraph":
            action = agent.get_action(state)
            agent.observe(state, action, [], 1.0, after, ends)
            agent.update()
        else:
            action = agent.act(state)
            agent.observe(terminal=ends, reward=1.0)
        state = after
    assert agent.total_steps == 12
    agent.close()


@pytest.mark.parametrize("system, name, spec", one_in(4, SPECS))
def test_a_published_spec_plays_and_learns(system, name, spec):
    check(system, name, spec)
