"""The watch that tells where a number that is not finite came from."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.core.finite_watch import ADVICE, FiniteWatch
from rl_coach.core_types import EnvResponse

NAN = float("nan")


def response(observation=(1.0, 2.0), reward=0.5):
    return EnvResponse({"observation": np.array(observation, np.float32)}, reward, False)


GAVE = "that the environment gave in step 7 of episode 3"
MADE = "that the input filter computed from finite numbers in step 7 of episode 3"


@pytest.mark.parametrize(
    ("answer", "filtered", "source"),
    [
        (response(), response(), None),
        (response((1e30, -1e30)), response((1e30, -1e30)), None),  # their squares are not finite
        (response((NAN, 1)), response((0, 1)), None),  # the filter mends it
        (response((1, NAN)), response((1, NAN)), f"the observation 'observation' {GAVE} has nan"),
        (response((1, 2)), response((1, np.inf)), f"the observation 'observation' {MADE} has inf"),
        (response(reward=NAN), response(reward=NAN), f"the reward {GAVE} is nan"),
        (response(reward=1.0), response(reward=-np.inf), f"the reward {MADE} is -inf"),
        (response(reward=np.array([1, NAN])), response(reward=np.array([1, NAN])), f"the reward {GAVE} is nan"),
    ],
)
def test_a_step_tells_who_gave_it(answer, filtered, source):
    watch = FiniteWatch()
    watch.look(answer, filtered, 7, 3)
    assert watch.source == source


def test_an_environment_that_was_given_no_finite_action_is_not_at_fault():
    watch, bad = FiniteWatch(), response((1, NAN), reward=NAN)
    watch.look(bad, bad, 7, 3, np.array([0.5, NAN]))
    assert watch.source == f"the action that the network chose in step 7 of episode 3 has nan: {ADVICE}"
    watch = FiniteWatch()
    watch.look(bad, bad, 7, 3, np.array([0.5, 0.5]))
    assert watch.source == f"the observation 'observation' {GAVE} has nan"


def test_the_first_is_remembered():
    watch = FiniteWatch()
    watch.look(response(reward=NAN), response(reward=NAN), 7, 3)
    watch.look(response((NAN, 1)), response((NAN, 1)), 8, 3)
    assert "step 7" in watch.source and "reward" in watch.explain({"rewards": np.ones(2)})


def test_images_are_finite():
    watch = FiniteWatch()
    images = EnvResponse({"observation": np.full((84, 84), 255, np.uint8), "text": "go"}, 1, False)
    watch.look(images, images, 1, 1)
    assert watch.source is None


def test_a_batch_tells_whether_the_network_is_at_fault():
    explain, bad, good = FiniteWatch().explain, np.array([1, NAN]), np.ones(2)
    assert explain({"rewards": good, "actions": np.ones(2, int)}) == f"all numbers of the update are finite: {ADVICE}"
    assert explain({"states/a": bad}) == "'states/a' has nan in data from another process or a recording"
    reason = explain({"rewards": good, "extra/advantages": bad})
    assert reason == f"'extra/advantages', which the networks computed from finite observations, has nan: {ADVICE}"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_several_actors_are_looked_at_together(bad):
    watch, states, rewards = FiniteWatch(), {"observation": np.zeros((3, 2), np.float32)}, np.zeros(3)
    assert watch.is_finite(states, rewards)
    assert not watch.is_finite(states, np.array([0.0, bad, 0.0]))
    states["observation"][1, 1] = bad
    assert not watch.is_finite(states, rewards)
    watch.source = "known"
    assert watch.is_finite(states, rewards)
