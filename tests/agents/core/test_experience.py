"""The way into the memory, without an agent: which rows are stored, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.episode import EpisodeInProgress, SegmentedEpisode
from rl_coach.agents.core.experience import Experience, ExperienceChunk
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import ActionInfo, Batch, EnvResponse, Transition
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplay
from rl_coach.utils import CoachError

SIZE = (MemoryGranularity.Transitions, 100)


def step(number: int, reward: float = 1.0, is_last: bool = False) -> Transition:
    before, after = (np.full(2, place, np.float32) for place in (number, number + 1))
    return Transition({"observation": before}, 0, reward, {"observation": after}, game_over=is_last)


def parts(memory: Any = None, **settings: Any) -> tuple[Any, Experience, EpisodeInProgress]:
    """A memory, the way into it, and an episode."""
    algorithm = AlgorithmParameters()
    algorithm.discount = 0.5
    vars(algorithm).update(settings)
    memory = ExperienceReplay(SIZE) if memory is None else memory
    return memory, Experience(memory, algorithm), EpisodeInProgress(algorithm)


def rewards_normalized() -> InputFilter:
    return InputFilter(reward_filters={"norm": RewardNormalizationFilter()})


def test_single_steps_are_stored_at_once():
    memory, experience, episode = parts()
    for number in range(3):
        experience.add(step(number, reward=number), episode)
        assert memory.length() == number + 1
    # 0 + 1/2 + 2/4, and a level above has ended the episode
    assert experience.finish(episode) == 1.0
    assert memory.length() == 3 and episode.buffer.transitions[-1].game_over


def test_n_step_transitions_are_stored_when_their_steps_have_been_played():
    memory, experience, episode = parts(n_step=2)
    lengths = []
    for number in range(3):
        experience.add(step(number, reward=4.0, is_last=number == 2), episode)
        lengths.append(memory.length())
    assert lengths == [0, 1, 2]
    assert experience.finish(episode) == 7.0  # 4 + 2 + 1
    batch = memory.transitions_at(np.arange(3))
    assert batch.rewards().tolist() == [6, 6, 4] and batch.n_steps().tolist() == [2, 2, 1]


def test_the_last_reward_of_an_episode_replaces_all_of_its_rewards():
    memory, experience, episode = parts(n_step=1, override_episode_rewards_with_the_last_transition_reward=True)
    for number in range(3):
        experience.add(step(number, reward=number, is_last=number == 2), episode)
        assert memory.length() == 0
    assert experience.finish(episode) == 3.5  # 2 + 2/2 + 2/4
    assert memory.transitions_at(np.arange(3)).rewards().tolist() == [2, 2, 2]


def test_a_memory_of_episodes_gets_them_whole_and_what_is_cut_is_one():
    memory, experience, episode = parts(EpisodicExperienceReplay(SIZE))
    experience.segment_starts = []
    for number in range(2):
        experience.add(step(number), episode)
    assert memory.num_transitions() == 0
    experience.cut(episode, {})
    assert (memory.num_transitions(), memory.length()) == (2, 1)
    experience.add(step(2, is_last=True), episode)
    assert experience.finish(episode) == 1.75  # 1 + 1/2 + 1/4, of both parts
    assert (memory.num_transitions(), memory.length()) == (3, 2) and experience.segment_starts == [{}, {}]


def test_a_segmented_episode_tells_where_its_parts_begin():
    algorithm = AlgorithmParameters()
    episode = SegmentedEpisode(algorithm)
    experience = Experience(EpisodicExperienceReplay(SIZE), algorithm)
    experience.segment_starts = []
    for number in range(3):
        experience.add(step(number), episode)
    experience.cut(episode, {"h": np.ones((1, 2), np.float32)})
    assert episode.num_before == 3 and episode.num_learned == 0
    assert episode.state_before_segment["h"].tolist() == [[1, 1]]
    assert len(experience.segment_starts) == 1


def test_what_the_agent_knew_goes_along_only_if_it_knew_it():
    _, experience, episode = parts(bootstrap_total_return_from_old_policy=True)
    episode.last_action_info = ActionInfo(0, action_value=2.0)
    experience.add(step(0), episode)
    assert episode.buffer.transitions[0].info == {"action_value": 2.0, "max_action_value": 2.0}


@pytest.mark.parametrize("fits", [True, False])
def test_what_was_played_elsewhere_is_stored_with_its_statistics_or_not_at_all(fits):
    memory, experience, episode = parts()
    experience.add(step(0), episode)
    sender, receiver = rewards_normalized(), rewards_normalized()
    sender.take_gathered()  # from now on
    sender.filter(EnvResponse({}, 8.0, False))
    before = str(receiver.get_state())
    state = {"observation" if fits else "picture": np.ones(2, np.float32)}
    columns = Batch([Transition(state, 0, 1.0, state, game_over=True)])
    played = ExperienceChunk(1, [1], columns, filters={"input_filter": sender.take_gathered()})
    if fits:
        experience.store_played(played, {"input_filter": receiver})
    else:
        with pytest.raises(CoachError, match="picture"):
            experience.store_played(played, {"input_filter": receiver})
    assert memory.length() == 1 + fits and (str(receiver.get_state()) == before) is not fits


def by_reward(batch: Batch) -> np.ndarray:
    return np.abs(batch.rewards())


@pytest.mark.parametrize(
    "settings, lengths", [({}, [1, 2, 3, 3]), ({"n_step": 2}, [0, 1, 2, 3]),
                          ({"store_transitions_only_when_episodes_are_terminated": True}, [0, 0, 0, 3])],
)  # fmt: skip
def test_transitions_get_their_first_priorities_when_they_are_stored(settings, lengths):
    memory, experience, episode = parts(PrioritizedExperienceReplay(SIZE, alpha=1.0, epsilon=0.0), **settings)
    experience.prioritize = by_reward
    found = []
    for number in range(3):
        experience.add(step(number, reward=number + 1.0, is_last=number == 2), episode)
        found.append(memory.length())
    experience.finish(episode)
    assert [*found, memory.length()] == lengths
    assert memory.get_state()["priorities"].tolist() == memory.transitions.rewards().tolist()


@pytest.mark.parametrize("size, kept", [(100, [1.0, 5.0, 0.0]), (2, [5.0, 0.0])])
def test_what_was_played_elsewhere_has_the_priorities_that_came_with_it(size, kept):
    memory = PrioritizedExperienceReplay((MemoryGranularity.Transitions, size), alpha=1.0, epsilon=0.0)
    _, experience, _ = parts(memory)
    columns = Batch([step(number) for number in range(3)])
    experience.store_played(ExperienceChunk(3, [], columns, priorities=np.array([1.0, 5.0, 0.0])), {})
    assert memory.get_state()["priorities"].tolist() == kept
