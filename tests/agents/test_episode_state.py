from __future__ import annotations

import json
from collections import deque

import numpy as np
import pytest

from rl_coach.agents.episode_state import UnsavableError, pack, unpack
from rl_coach.checkpoint import load_checkpoint, save_checkpoint
from rl_coach.core_types import ActionInfo, EnvResponse, Episode, Transition
from rl_coach.filters.observation.observation_stacking_filter import LazyStack


def through_a_checkpoint(value, tmp_path):
    path = save_checkpoint(tmp_path, "0_Step-0.ckpt", {"packed": pack(value)}, {})
    return unpack(load_checkpoint(path)[0]["packed"])


def test_values_keep_their_kinds(tmp_path):
    values = {
        "plain": [None, True, 3, 0.1, "text", (1, 2.5)],
        "scalars": [np.float32(0.1), np.int64(7), np.bool_(True)],
        "array": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "zero": np.array(2.0),
        "queue": deque([1, 2], maxlen=2),
        3: "a key that is no text",
    }
    back = through_a_checkpoint(values, tmp_path)
    assert back.keys() == values.keys()
    assert back["plain"] == values["plain"] and back["queue"] == values["queue"] and back["queue"].maxlen == 2
    assert [type(value) for value in back["scalars"]] == [np.float32, np.int64, np.bool_]
    assert back["scalars"] == values["scalars"]
    assert back["array"].dtype == np.uint8 and back["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(back["zero"], np.ndarray) and back["zero"].shape == ()


def test_what_is_shared_stays_shared(tmp_path):
    frames = [np.full((2, 2), i, np.uint8) for i in range(4)]
    state = {"observation": LazyStack(frames[:3], axis=-1)}
    following = {"observation": LazyStack(frames[1:], axis=-1)}
    episode = Episode(0.9, True, 3)
    episode.insert(Transition(state, 1, np.float64(2), following, False, {"weight": 1.0}))
    value = {"episode": episode, "now": following, "last": ActionInfo(1), "answer": EnvResponse(following, 1.0, False)}
    back = through_a_checkpoint(value, tmp_path)
    (transition,) = back["episode"].transitions
    assert back["now"] is transition.next_state is back["answer"].next_state
    before, after = transition.state["observation"], transition.next_state["observation"]
    assert before.history[1] is after.history[0] and before.axis == -1
    np.testing.assert_array_equal(np.asarray(after), np.asarray(following["observation"]))
    assert (back["episode"].discount, back["episode"].n_step, transition.info) == (0.9, 3, {"weight": 1.0})
    assert back["last"].max_action_value == 0.0
    with pytest.raises(ValueError, match="known only once"):
        transition.n_step_discounted_rewards  # noqa: B018


def test_a_circle_closes():
    circle: list = []
    circle.append({"self": circle})
    back = unpack(json.loads(json.dumps(pack(circle))))
    assert back[0]["self"] is back


@pytest.mark.parametrize("value", [object(), np.array([object()]), {1, 2}, lambda: None])
def test_other_things_are_refused(value):
    with pytest.raises(UnsavableError, match="cannot be saved"):
        pack({"info": [value]})
