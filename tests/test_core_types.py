import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.core_types import (
    ActionInfo,
    AlwaysDumpFilter,
    Batch,
    CsvDataset,
    EnvironmentEpisodes,
    EnvironmentSteps,
    EnvResponse,
    Episode,
    EveryNEpisodesDumpFilter,
    Frames,
    MaxDumpFilter,
    PickledReplayBuffer,
    RunPhase,
    SelectedPhaseOnlyDumpFilter,
    TotalStepsCounter,
    TrainingSteps,
    Transition,
    VideoDumpFilter,
    n_step_returns,
)
from rl_coach.utils import CoachError


def transition(number=0, reward=0.0, game_over=False, terminated=None, info=None):
    return Transition(
        state={"observation": np.array([number, 0.5])},
        action=number,
        reward=reward,
        next_state={"observation": np.array([number + 1, 0.5])},
        game_over=game_over,
        terminated=terminated,
        info={"key": number} if info is None else info,
    )


class TestSteps:
    def test_equality_is_of_kind_and_number(self):
        assert EnvironmentSteps(3) == EnvironmentSteps(3) != EnvironmentSteps(4)
        assert EnvironmentSteps(3) != TrainingSteps(3)
        assert len({EnvironmentSteps(3), EnvironmentSteps(3), Frames(3)}) == 2

    def test_the_number_can_change(self):
        steps = EnvironmentEpisodes(2)
        steps.num_steps = 5
        assert steps.num_steps == 5 and repr(steps) == "EnvironmentEpisodes(5)"

    def test_a_counter_compares_with_a_duration_of_its_kind(self):
        counter = TotalStepsCounter()
        counter[EnvironmentSteps] += 7
        assert counter < EnvironmentSteps(8) and not counter < EnvironmentSteps(7)
        assert counter[EnvironmentSteps] == 7 and counter < TrainingSteps(1)
        assert repr(counter).startswith("TotalStepsCounter(EnvironmentSteps: 7")

    def test_a_counter_and_a_duration_add_up_to_a_duration(self):
        counter = TotalStepsCounter()
        counter[EnvironmentSteps] += 7
        assert counter + EnvironmentSteps(8) == EnvironmentSteps(15)
        assert counter + TrainingSteps(8) == TrainingSteps(8)

    def test_durations_divide_and_no_step_is_lost(self):
        assert EnvironmentSteps(10) / 4 == EnvironmentSteps(3)
        assert EnvironmentSteps(10) / EnvironmentSteps(4) == 3
        assert 10 / EnvironmentSteps(4) == EnvironmentSteps(3)
        with pytest.raises(TypeError):
            EnvironmentSteps(10) / TrainingSteps(4)
        with pytest.raises(TypeError):
            0.5 / EnvironmentSteps(4)


class TestActionInfo:
    def test_the_largest_value_is_the_actions_own_unless_given(self):
        assert ActionInfo(1, action_value=3.0).max_action_value == 3.0
        assert ActionInfo(1, action_value=3.0, max_action_value=5.0).max_action_value == 5.0

    def test_there_are_no_values_where_no_network_was_asked(self):
        info = ActionInfo(1)
        assert info.action_value is info.state_value is info.max_action_value is None

    def test_no_attribute_is_added_by_mistake(self):
        with pytest.raises(AttributeError):
            ActionInfo(1).actoin = 2


class TestEnvResponseAndTransition:
    def test_game_over_counts_as_termination_unless_told(self):
        assert EnvResponse({}, 0, True).terminated is True
        assert EnvResponse({}, 0, True, terminated=False).terminated is False
        assert transition(game_over=True).terminated is True
        assert transition(game_over=True, terminated=False).terminated is False

    def test_each_has_an_info_of_its_own(self):
        first, second = EnvResponse({}, 0, False), EnvResponse({}, 0, False)
        first.add_info({"a": 1})
        assert second.info == {}
        assert Transition().info is not Transition().info

    def test_info_is_not_overwritten_by_adding(self):
        for holder in (EnvResponse({}, 0, False, info={"a": 1}), transition(info={"a": 1})):
            holder.add_info({"b": 2})
            with pytest.raises(ValueError, match=r"has these keys already: \['a'\]"):
                holder.add_info({"a": 3, "c": 4})
            assert holder.info == {"a": 1, "b": 2}
        row = transition(info={"a": 1})
        row.update_info({"a": 3})
        assert row.info == {"a": 3}

    def test_without_a_next_state_the_state_stands_for_it(self):
        state = {"observation": np.zeros(1)}
        assert Transition(state=state).next_state is state

    def test_the_return_is_known_once_the_episode_has_ended(self):
        row = transition()
        with pytest.raises(ValueError, match="only after the end of the episode"):
            str(row.n_step_discounted_rewards)
        row.n_step_discounted_rewards = 3.0
        assert row.n_step_discounted_rewards == 3.0

    def test_they_show_their_content(self):
        assert "reward=2.0" in repr(EnvResponse({}, 2.0, False))
        assert "action=4" in repr(transition(4))
        assert "action_value=3" in repr(ActionInfo(0, action_value=3))

    def test_a_response_is_under_coachs_names_in_its_dict(self):
        response = EnvResponse({"observation": 1}, 2.0, False, {"key": 3}, goal=4)
        response.game_over = True
        assert vars(response) == {
            "_next_state": {"observation": 1}, "_reward": 2.0, "_game_over": True, "_goal": 4, "info": {"key": 3},
            "terminated": False,
        }  # fmt: skip
        response._reward = 5.0
        response.of_the_user = 6
        assert (response.reward, response.of_the_user) == (5.0, 6)

    def test_a_transition_is_known_by_coachs_names_too(self):
        one = transition(3, reward=2.0)
        assert (one._action, one._reward, one._game_over) == (3, 2.0, False)
        assert one._state is one.state and one._next_state is one.next_state
        one._reward = 7.0
        assert one.reward == vars(one)["reward"] == 7.0


def batch(size=3):
    rows = [transition(number, reward=number * 10, game_over=number == size - 1) for number in range(size)]
    rows[-1].terminated = False
    return Batch(rows)


class TestBatch:
    def test_columns_of_transitions(self):
        made = batch()
        assert made.size == len(made) == 3
        assert made.states(["observation"])["observation"].tolist() == [[0, 0.5], [1, 0.5], [2, 0.5]]
        assert made.next_states(["observation"])["observation"][:, 0].tolist() == [1, 2, 3]
        assert made.actions().tolist() == [0, 1, 2] and made.actions(expand_dims=True).shape == (3, 1)
        assert made.rewards().tolist() == [0, 10, 20] and made.rewards().dtype == np.float32
        assert made.game_overs().tolist() == [False, False, True]
        assert made.terminateds().tolist() == [False, False, False]
        assert made.info("key").tolist() == [0, 1, 2] and made.info_as_list("key") == [0, 1, 2]

    def test_only_the_observations_asked_for_come(self):
        assert batch().states(["observation", "elsewhere"]).keys() == {"observation"}
        assert batch().states(["observation"], expand_dims=True)["observation"].shape == (3, 2, 1)

    def test_rows_are_transitions(self):
        rows = list(batch())
        assert [row.action for row in rows] == [0, 1, 2]
        assert rows[2].game_over is True and rows[2].terminated is False
        assert batch()[-1].state["observation"].tolist() == [2, 0.5]
        assert [row.reward for row in batch().transitions] == [0, 10, 20]
        for index in (3, -4):
            with pytest.raises(IndexError, match="of a batch of 3"):
                batch()[index]

    def test_slices_and_index_arrays_are_batches(self):
        assert batch()[1:].actions().tolist() == [1, 2]
        assert batch()[np.array([2, 0])].info("key").tolist() == [2, 0]
        made = batch()
        made.slice(0, 2)
        assert made.actions().tolist() == [0, 1]

    def test_a_batch_of_a_batch_is_the_batch(self):
        made = batch()
        assert Batch(made).reward_column is made.reward_column

    @given(seed=st.integers(0, 2**32))
    def test_shuffling_keeps_rows_together(self, seed):
        made = batch()
        made.shuffle(np.random.default_rng(seed))
        assert sorted(made.actions()) == [0, 1, 2]
        assert (made.rewards() == made.actions() * 10).all() and (made.info("key") == made.actions()).all()

    def test_returns_are_there_if_every_row_has_one(self):
        rows = [transition(number) for number in range(2)]
        with pytest.raises(ValueError, match="only for transitions of ended episodes"):
            Batch(rows).n_step_discounted_rewards()
        rows[0].n_step_discounted_rewards = 1.0
        assert Batch(rows).return_column is None
        rows[1].n_step_discounted_rewards = 2.0
        made = Batch(rows)
        assert made.n_step_discounted_rewards(expand_dims=True).tolist() == [[1], [2]]
        assert made[1].n_step_discounted_rewards == 2.0

    def test_rows_know_how_many_rewards_theirs_sum(self):
        made = batch()
        assert made.n_step_column is None and made.n_steps().tolist() == [1, 1, 1]
        rows = [transition(number) for number in range(3)]
        rows[1].n_steps = 3
        made = Batch(rows)
        assert made.n_step_column.tolist() == [1, 3, 1] and made.n_step_column.dtype == np.int32
        assert made[1].n_steps == 3 and made[1:].n_steps(expand_dims=True).tolist() == [[3], [1]]

    def test_info_that_some_rows_lack_is_left_out(self):
        made = Batch([transition(info={"a": 1, "b": 2}), transition(info={"a": 3})])
        assert made.info_columns.keys() == {"a"}

    def test_columns_are_taken_as_they_are(self):
        rewards = np.zeros(2, dtype=np.float32)
        over = np.array([False, True])
        states = {"observation": np.zeros((2, 1))}
        made = Batch.from_columns(states, np.zeros(2), rewards, over, states, goals=np.ones((2, 3)))
        assert made.reward_column is rewards and made.terminated_column is over
        assert made.goals().shape == (2, 3) and made[0:1].goals().shape == (1, 3)
        with pytest.raises(ValueError, match="have no goals"):
            batch().goals()

    def test_an_empty_batch_is_refused(self):
        with pytest.raises(ValueError, match="at least one transition"):
            Batch([])


class TestReturns:
    def test_by_hand(self):
        rewards = np.array([1.0, 2.0, 4.0])
        assert n_step_returns(rewards, 0.5).tolist() == [3, 4, 4]
        assert n_step_returns(rewards, 0.5, 1).tolist() == [1, 2, 4]
        assert n_step_returns(rewards, 0.5, 2).tolist() == [2, 4, 4]
        assert n_step_returns(rewards, 0.5, 7).tolist() == [3, 4, 4]

    @given(
        rewards=st.lists(st.floats(-10, 10), min_size=1, max_size=12),
        discount=st.floats(0, 1),
        n_step=st.integers(1, 14),
    )
    def test_they_are_the_sums_of_their_definition(self, rewards, discount, n_step):
        expected = [
            sum(discount**k * reward for k, reward in enumerate(rewards[t : t + n_step])) for t in range(len(rewards))
        ]
        np.testing.assert_allclose(n_step_returns(np.array(rewards), discount, n_step), expected, atol=1e-9)

    @pytest.mark.parametrize("n_step", [0, -2])
    def test_a_number_of_steps_below_1_is_refused(self, n_step):
        with pytest.raises(ValueError, match="must be 1 or more, or -1 for all"):
            n_step_returns(np.zeros(3), 0.9, n_step)


def episode(rewards, **kwargs):
    made = Episode(**kwargs)
    for number, reward in enumerate(rewards):
        last = number == len(rewards) - 1
        made.insert(transition(number, reward, game_over=last, info={"max_action_value": 100.0 * number}))
    return made


class TestEpisode:
    def test_it_is_a_list_of_transitions(self):
        made = episode([1, 2, 3])
        assert len(made) == made.length() == 3 and not made.is_empty()
        assert made[1].reward == made.get_transition(1).reward == 2
        assert made.get_first_transition().reward == 1 and made.get_last_transition().reward == 3
        assert made.get_transitions_attribute("reward") == [1, 2, 3]

    def test_an_empty_one(self):
        made = Episode()
        assert made.is_empty() and made.get_first_transition() is None and made.get_last_transition() is None
        assert made.get_transitions_attribute("reward") == []
        made.update_discounted_rewards()

    def test_returns(self):
        made = episode([1, 2, 4], discount=0.5)
        made.update_discounted_rewards()
        assert made.get_transitions_attribute("n_step_discounted_rewards") == [3, 4, 4]

    def test_returns_that_go_on_with_the_old_policys_value(self):
        made = episode([1, 2, 4], discount=0.5, n_step=2, bootstrap_total_return_from_old_policy=True)
        made.update_discounted_rewards()
        assert made.get_transitions_attribute("n_step_discounted_rewards") == [2 + 0.25 * 200, 4, 4]

    def test_a_step_without_the_old_policys_value_is_no_value_of_zero(self):
        made = episode([1, 2, 4], discount=0.5, n_step=2, bootstrap_total_return_from_old_policy=True)
        del made.transitions[0].info["max_action_value"]  # no return reaches it
        made.update_discounted_rewards()
        assert made.get_transitions_attribute("n_step_discounted_rewards") == [2 + 0.25 * 200, 4, 4]
        del made.transitions[2].info["max_action_value"]
        with pytest.raises(CoachError, match="no network chose the action: set info"):
            made.update_discounted_rewards()

    def test_n_step_transitions_reach_to_the_last_step_summed(self):
        made = episode([1, 2, 4, 8], discount=0.5, n_step=2)
        made.update_transitions_rewards_and_bootstrap_data()
        assert made.get_transitions_attribute("reward") == [2, 4, 8, 8]
        assert [t.next_state["observation"][0] for t in made.transitions] == [2, 3, 4, 4]
        assert made.get_transitions_attribute("game_over") == [False, False, True, True]
        assert [t.info["should_bootstrap_next_state"] for t in made.transitions] == [True, True, False, False]

    @given(
        rewards=st.lists(st.integers(-8, 8), min_size=1, max_size=9),
        n_step=st.integers(1, 12),
        terminated=st.booleans(),
        from_old_policy=st.booleans(),
    )
    def test_n_step_transitions_by_their_definition(self, rewards, n_step, terminated, from_old_policy):
        made = episode(rewards, discount=0.5, n_step=n_step, bootstrap_total_return_from_old_policy=from_old_policy)
        made.transitions[-1].terminated = terminated
        before = copy.deepcopy(made.transitions)
        made.update_transitions_rewards_and_bootstrap_data()
        for t, row in enumerate(made.transitions):
            summed = rewards[t : t + n_step]
            last = before[t + len(summed) - 1]
            assert row.n_steps == len(summed)
            assert row.reward == sum(0.5**k * reward for k, reward in enumerate(summed))
            assert row.state["observation"].tolist() == before[t].state["observation"].tolist()
            assert row.next_state["observation"].tolist() == last.next_state["observation"].tolist()
            assert (row.game_over, row.terminated) == (last.game_over, last.terminated)

    def test_a_truncated_episode_stays_truncated(self):
        made = episode([1, 2, 4], n_step=2)
        made.transitions[-1].terminated = False
        made.update_transitions_rewards_and_bootstrap_data()
        assert made.get_transitions_attribute("game_over") == [False, True, True]
        assert made.get_transitions_attribute("terminated") == [False, False, False]

    def test_all_steps_leave_the_rewards_alone(self):
        made = episode([1, 2])
        made.update_transitions_rewards_and_bootstrap_data()
        assert made.get_transitions_attribute("reward") == [1, 2]


class TestVideoDumpFilters:
    def test_always(self):
        assert AlwaysDumpFilter().should_dump(episode_terminated=True)

    def test_the_best_so_far(self):
        best = MaxDumpFilter()
        assert best.should_dump()
        dumped = [best.should_dump(True, total_reward_in_current_episode=reward) for reward in (-5, -7, -5, 3, 2)]
        assert dumped == [True, False, False, True, False]

    def test_heatup_has_no_best_episode(self):
        best = MaxDumpFilter()
        assert not best.should_dump(_phase=RunPhase.HEATUP)
        assert not best.should_dump(True, _phase=RunPhase.HEATUP, total_reward_in_current_episode=9)
        assert best.should_dump(True, _phase=RunPhase.TRAIN, total_reward_in_current_episode=3)

    def test_every_third(self):
        every_third = EveryNEpisodesDumpFilter(3)
        asked = []
        for episode_idx in range(1, 9):
            starts = every_third.should_dump(episode_idx=episode_idx)
            assert every_third.should_dump(True, episode_idx=episode_idx) == starts
            asked.append(starts)
        assert asked == [False, True, False, False, True, False, False, True]

    def test_phases(self):
        one, two = SelectedPhaseOnlyDumpFilter(RunPhase.TEST), SelectedPhaseOnlyDumpFilter([RunPhase.TRAIN])
        assert one.should_dump(_phase=RunPhase.TEST) and not two.should_dump(_phase=RunPhase.TEST)
        assert SelectedPhaseOnlyDumpFilter((RunPhase.TRAIN, RunPhase.TEST)).should_dump(_phase=RunPhase.TEST)

    @pytest.mark.parametrize("phases", ["TEST", 3, None, [RunPhase.TEST, "TRAIN"]])
    def test_what_is_no_phase_is_refused(self, phases):
        with pytest.raises(CoachError, match="must be a RunPhase or a list of these"):
            SelectedPhaseOnlyDumpFilter(phases)

    @pytest.mark.parametrize("episodes", ["3", 0, 2.5])
    def test_a_number_of_episodes_is_whole(self, episodes):
        with pytest.raises(CoachError, match="must be a whole number from 1"):
            EveryNEpisodesDumpFilter(episodes)

    def test_the_base_does_not_say(self):
        with pytest.raises(NotImplementedError):
            VideoDumpFilter().should_dump()


def test_data_sets_say_where_they_lie():
    assert CsvDataset("a.csv").is_episodic and CsvDataset("a.csv", False).filepath == "a.csv"
    assert PickledReplayBuffer("a.p").filepath == "a.p"
