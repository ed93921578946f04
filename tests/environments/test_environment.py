from __future__ import annotations

import copy

import numpy as np
import pytest

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import MaxDumpFilter, RunPhase, SelectedPhaseOnlyDumpFilter, VideoDumpFilter
from rl_coach.environments.environment import (
    CustomWrapper,
    EnvironmentParameters,
    LevelSelection,
    SingleLevelSelection,
)
from rl_coach.environments.environment_interface import EnvironmentInterface
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.zoo.environments import CoachStyleEnvironment


def play_episode(environment):
    environment.reset_internal_state()
    while not environment.step(1).game_over:
        pass


def test_a_level_can_be_selected_later():
    selection = LevelSelection("easy")
    selection.select("hard")
    assert str(selection) == "hard"


def test_no_selected_level_is_an_error_that_names_the_flag_and_the_choices():
    with pytest.raises(CoachError, match="-lvl"):
        str(LevelSelection(None))
    with pytest.raises(CoachError, match="-lvl from breakout, pong"):
        str(SingleLevelSelection(["pong", "breakout"]))


def test_many_choices_are_abbreviated():
    with pytest.raises(CoachError, match=", … \\(20 in all\\)") as error:
        str(SingleLevelSelection([f"level{n}" for n in range(1, 21)]))
    assert "\n" not in str(error.value)


def test_a_single_level_selection_maps_names_to_levels():
    selection = SingleLevelSelection({"pong": "PongDeterministic-v4"})
    selection.select("Pong")
    assert str(selection) == "PongDeterministic-v4"
    selection.select("PongDeterministic-v4")
    assert str(selection) == "PongDeterministic-v4"


def test_a_name_with_capitals_is_found():
    selection = SingleLevelSelection({"Easy": "Corridor-v0"})
    selection.select("Easy")
    assert str(selection) == "Corridor-v0"


def test_a_single_level_selection_may_heed_case():
    selection = SingleLevelSelection("Pong-v4", force_lower=False)
    selection.select("Pong-v4")
    assert str(selection) == "Pong-v4"


@pytest.mark.parametrize(
    "name",
    [
        "Walker2d-v5",
        "robots:FetchReach-v4",
        "ALE/Pong-v5",
        "robots:Robots/Arm",
        "robots:Arm",
        "my envs/arm.py:Arm",
        "brax:inverted_pendulum",
    ],
)
def test_a_full_name_needs_not_be_in_the_list(name):
    selection = SingleLevelSelection({"hopper": "Hopper-v5"})
    selection.select(name)
    assert str(selection) == name


def test_an_unknown_level_is_an_error_that_names_the_nearest():
    with pytest.raises(CoachError, match="no level 'pongg'; did you mean 'pong'"):
        SingleLevelSelection({"pong": "PongDeterministic-v4", "qbert": "QbertDeterministic-v4"}).select("pongg")
    with pytest.raises(CoachError, match="no level 'x'; the levels are pong"):
        SingleLevelSelection(["pong"]).select("x")


def test_environment_parameters_have_coachs_defaults():
    parameters = EnvironmentParameters("level")
    assert parameters.level == "level"
    assert parameters.frame_skip == 4
    assert parameters.target_success_rate == 1.0
    assert parameters.seed is None
    assert parameters.path == "rl_coach.environments.environment:Environment"


def test_a_custom_wrapper_passes_on_what_it_does_not_define():
    wrapper = CustomWrapper(SingleLevelSelection("a"))
    assert wrapper.levels == {"a": "a"}
    assert copy.copy(wrapper).levels == {"a": "a"}
    with pytest.raises(AttributeError):
        wrapper.nothing  # noqa: B018


def test_the_interface_says_what_is_missing():
    interface = EnvironmentInterface()
    interface.phase = RunPhase.TEST
    assert interface.phase is RunPhase.TEST
    with pytest.raises(NotImplementedError):
        interface.action_space  # noqa: B018
    with pytest.raises(NotImplementedError):
        interface.step(0)


def test_a_step_answers_with_what_the_hooks_set():
    environment = CoachStyleEnvironment()
    response = environment.step(2)
    assert response is environment.last_env_response
    assert response.next_state["observation"] == [1]
    assert (response.reward, response.game_over, response.terminated) == (2.0, False, False)
    assert response.goal == [10]
    assert response.info == {"taken": 2}


def test_done_means_terminated_unless_the_environment_says_truncated():
    environment = CoachStyleEnvironment()
    play_episode(environment)
    assert environment.last_env_response.terminated
    environment.reset_internal_state()
    environment.done = environment.truncated = True
    assert environment._respond().game_over and not environment._respond().terminated


def test_none_repeats_the_last_action():
    environment = CoachStyleEnvironment()
    environment.step(2)
    environment.step(None)
    assert environment.taken == [2, 2]


def test_actions_are_clipped_to_the_action_space():
    environment = CoachStyleEnvironment(actions=BoxActionSpace(2, -1.0, 1.0))
    environment.step(np.array([3.0, -0.5]))
    np.testing.assert_array_equal(environment.taken[0], [1.0, -0.5])


class Wraps:
    """A mixin that brings any number into the space."""

    def clip_action_to_space(self, action):
        return action % 3


class Wrapping(DiscreteActionSpace):
    clip_action_to_space = Wraps.clip_action_to_space


class MixedWrapping(Wraps, DiscreteActionSpace):
    pass


class GrandchildWrapping(Wrapping):
    pass


def wrapping_on_the_instance(num_actions):
    space = DiscreteActionSpace(num_actions)
    space.clip_action_to_space = lambda action: action % 3
    return space


@pytest.mark.parametrize("make", [Wrapping, MixedWrapping, GrandchildWrapping, wrapping_on_the_instance])
def test_a_space_of_a_user_clips_in_its_own_way(make):
    environment = CoachStyleEnvironment(actions=make(3))
    environment.step(7)
    assert environment.taken == [1]


def test_counters_follow_the_episodes_but_in_no_phase():
    environment = CoachStyleEnvironment()
    play_episode(environment)
    assert (environment.episode_idx, environment.total_steps_counter) == (0, 0)
    environment.phase = RunPhase.TRAIN
    play_episode(environment)
    play_episode(environment)
    assert environment.current_episode_steps_counter == 3
    assert environment.total_reward_in_current_episode == 6
    assert environment.total_steps_counter == 6
    assert environment.episode_idx == 2


def test_goals_can_be_set():
    environment = CoachStyleEnvironment()
    environment.set_goal(np.array([7]))
    assert environment.get_goal() == [7]


def test_the_keys_of_a_discrete_action_space_are_numbers():
    assert CoachStyleEnvironment().get_available_keys() == [("0", "1"), ("1", "2"), ("2", "3")]


def test_a_person_needs_human_control():
    with pytest.raises(CoachError, match="--play"):
        CoachStyleEnvironment().get_action_from_user()


def test_nothing_is_drawn_when_nothing_shows_it():
    environment = CoachStyleEnvironment()
    play_episode(environment)
    assert environment.num_images == 0


def test_the_image_of_each_step_can_be_added_to_the_info():
    environment = CoachStyleEnvironment(VisualizationParameters(add_rendered_image_to_env_response=True))
    assert environment.step(0).info["image"].shape == (32, 32, 3)
    assert environment.num_images == 1


class OddEpisodesDumpFilter(VideoDumpFilter):
    def should_dump(self, episode_terminated=False, **kwargs):
        return kwargs["episode_idx"] % 2 == 1


def test_videos_are_written_only_if_all_filters_agree(tmp_path):
    filters = [SelectedPhaseOnlyDumpFilter(RunPhase.TEST), OddEpisodesDumpFilter()]
    visualization = VisualizationParameters(dump_gifs=True, video_dump_methods=filters)
    environment = CoachStyleEnvironment(visualization, experiment_path=str(tmp_path))
    for phase in (RunPhase.TRAIN, RunPhase.TRAIN, RunPhase.TEST, RunPhase.TEST, RunPhase.TEST):
        environment.phase = phase
        play_episode(environment)
    environment.close()
    assert [file.name for file in (tmp_path / "gifs").iterdir()] == ["testing_step-0_episode-3_score-6.0.gif"]


def test_a_video_that_its_episodes_end_disqualifies_is_dropped(tmp_path):
    best = MaxDumpFilter()
    visualization = VisualizationParameters(dump_gifs=True, video_dump_methods=best)
    environment = CoachStyleEnvironment(visualization, experiment_path=str(tmp_path))
    best.max_reward_achieved = 100.0
    play_episode(environment)
    environment.handle_episode_ended()
    assert list((tmp_path / "gifs").iterdir()) == []


def test_a_video_needs_a_directory():
    environment = CoachStyleEnvironment(VisualizationParameters(dump_gifs=True))
    with pytest.raises(CoachError, match="experiment_path"):
        environment.step(0)


def test_state_is_restored_exactly():
    environment, other = CoachStyleEnvironment(), CoachStyleEnvironment()
    environment.phase = RunPhase.TRAIN
    play_episode(environment)
    other.set_state(environment.get_state())
    assert [other.get_random_action() for _ in range(20)] == [environment.get_random_action() for _ in range(20)]
    assert other.total_steps_counter == 3
