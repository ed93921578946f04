"""Parts of an agent in other episodes and in evaluations."""

from __future__ import annotations

import numpy as np

from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_filter import ObservationFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import DiscreteActionSpace
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
