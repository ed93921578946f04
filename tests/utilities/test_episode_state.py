"""Parts of an agent in other episodes and in evaluations."""

from __future__ import annotations

import collections
import copy
import threading

import numpy as np
import pytest

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utilities import plain_data
from rl_coach.utilities.episode_state import KeepsEpisodeState


class Noise(KeepsEpisodeState):
    """Does not say what belongs to the episode."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.schedule = LinearSchedule(1, 0, 10)
        self.space = DiscreteActionSpace(2)
        self.level = 1.0

    def reset(self) -> None:
        self.level = 0.0


def test_actors_share_random_numbers_and_schedules():
    part = Noise()
    twin = part.for_another_actor()
    twin.schedule.step()
    assert twin.rng is part.rng and twin.space is part.space and part.schedule.current_value < 1
    assert (part.level, twin.level) == (1.0, 0.0)


def test_an_evaluation_draws_its_own_numbers_and_leaves_schedules_alone():
    part, untouched = Noise(), Noise()
    twin = part.for_evaluation()
    twin.schedule.step()
    twin.rng.random()
    assert part.schedule.current_value == 1 and part.rng.random() == untouched.rng.random()
    assert twin.space is part.space and (part.level, twin.level) == (1.0, 0.0)


class Drift(ObservationFilter):
    """Takes away the mean of the episode, and knows the number of all observations."""

    episode_attributes = ("episode",)

    def __init__(self) -> None:
        super().__init__()
        self.episode: list[np.ndarray] = []
        self.total = [0]

    def filter(self, observation, update_internal_state=True):
        self.total[0] += 1
        self.episode.append(observation)
        return observation - np.mean(self.episode, axis=0)

    def get_filtered_observation_space(self, input_observation_space):
        return input_observation_space

    def reset(self) -> None:
        self.episode.clear()


def test_filters_of_a_chain_share_what_is_not_of_the_episode_except_with_an_evaluation():
    chain = InputFilter({"observation": {"drift": Drift()}})
    (drift,) = chain.members
    drift.filter(np.ones(2))
    for twins, total in ((chain.for_another_actor(), 2), (chain.for_evaluation(), 2)):
        (twin,) = twins.members
        assert twin.episode == []
        twin.filter(np.zeros(2))
        assert drift.total == [total]
        np.testing.assert_array_equal(drift.episode, [np.ones(2)])


class History(ObservationFilter):
    """Adds the sum of all observations of the episode. It declares nothing, and a function cannot be stored."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.calls, self.function = kind, 0, lambda value: value
        self.reset()

    def reset(self):
        self.seen = {
            "array": np.zeros(2), "list": [], "deque": collections.deque(maxlen=9), "mapping": {}, "number": 0.0,
            "nothing": None,
        }[self.kind]  # fmt: skip

    def filter(self, observation, update_internal_state=True):
        self.calls += 1
        before = self._sum()
        if self.kind == "mapping":
            self.seen["sum"] = before + observation
        elif self.kind in ("list", "deque"):
            self.seen.append(observation)
        else:
            self.seen = before + observation
        return observation + before

    def _sum(self):
        if self.kind == "mapping":
            return self.seen.get("sum", 0.0)
        if self.kind in ("list", "deque"):
            return sum(self.seen)
        return 0.0 if self.seen is None else self.seen


@pytest.mark.parametrize("kind", ["array", "list", "deque", "mapping", "number", "nothing"])
def test_an_episode_goes_on_in_another_instance(kind):
    one, other = History(kind), History(kind)
    for value in (1.0, 2.0, 4.0):
        one.filter(np.full(2, value))
    state = copy.deepcopy(one.episode_state())
    assert state.keys() == {"seen"}  # neither the counter, which reset leaves, nor the function
    other.set_episode_state(state)
    np.testing.assert_array_equal(other.filter(np.ones(2)), np.full(2, 8.0))


def test_a_new_episode_has_no_state():
    one = History("list")
    assert one.episode_state() is None
    one.filter(np.ones(2))
    one.reset()
    assert one.episode_state() is None


def test_a_part_without_reset_has_no_state():
    class Plain(ObservationFilter):
        last = 3

    assert Plain().episode_state() is None


def test_a_part_that_cannot_be_copied_gives_a_state_that_cannot_be_saved():
    one = History("list")
    one.lock = threading.Lock()
    with pytest.raises(plain_data.UnsavableError):
        plain_data.flatten(one.episode_state())
