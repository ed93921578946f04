"""Noise around continuous actions, and epsilon-greedy exploration of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.additive_noise import AdditiveNoise, AdditiveNoiseParameters
from rl_coach.exploration_policies.continuous_entropy import ContinuousEntropy, ContinuousEntropyParameters
from rl_coach.exploration_policies.e_greedy import EGreedy, EGreedyParameters
from rl_coach.exploration_policies.exploration_policy import ContinuousActionExplorationPolicy
from rl_coach.exploration_policies.ou_process import OUProcess, OUProcessParameters
from rl_coach.exploration_policies.truncated_normal import (
    TruncatedNormal,
    TruncatedNormalParameters,
    truncated_standard_normal,
)
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utils import CoachError, dynamic_import_and_instantiate_module_from_params

BOX = BoxActionSpace(2, low=np.array([-1.0, 0.0]), high=np.array([1.0, 10.0]))
MEAN = np.array([0.5, 4.0])


def in_phase(policy, phase=RunPhase.TRAIN, seed=0):
    policy.seed(seed)
    policy.change_phase(phase)
    return policy


def drawn(policy, values=MEAN, count=3000):
    return np.array([policy.get_action(values) for _ in range(count)])


POLICIES = {
    "additive": lambda: in_phase(AdditiveNoise(BOX, LinearSchedule(0.5, 0.1, 10), 0.05)),
    "entropy": lambda: in_phase(ContinuousEntropy(BOX, LinearSchedule(0.5, 0.1, 10), 0.05)),
    "truncated": lambda: in_phase(TruncatedNormal(BOX, LinearSchedule(0.5, 0.1, 10), 0.05, BOX.low, BOX.high)),
    "ou": lambda: in_phase(OUProcess(BOX)),
    "e_greedy": lambda: in_phase(EGreedy(BOX, LinearSchedule(0.9, 0.1, 10), 0.05)),
    "e_greedy_ou": lambda: in_phase(EGreedy(BOX, LinearSchedule(0.9, 0.1, 10), 0.05, OUProcessParameters())),
}
every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES.keys())


@every_policy
def test_a_seed_repeats_the_actions(make):
    assert np.array_equal(drawn(make(), count=20), drawn(make(), count=20))
    assert not np.array_equal(drawn(make(), count=20), drawn(in_phase(make(), seed=1), count=20))


@every_policy
@given(before=st.integers(0, 12))
def test_a_restored_state_continues_exactly(make, before):
    original, restored = make(), in_phase(make(), seed=99)
    drawn(original, count=before)
    restored.set_state(original.get_state())
    assert np.array_equal(drawn(restored, count=10), drawn(original, count=10))
    assert np.array_equal(restored.get_control_param(), original.get_control_param())


@every_policy
def test_a_state_of_another_policy_is_refused(make):
    with pytest.raises(CoachError, match="exploration state in the checkpoint does not fit"):
        make().set_state({"something": 1})


@every_policy
def test_a_batch_dimension_of_the_network_goes(make):
    assert make().get_action(MEAN[None]).shape == (2,)
    assert make().get_action([MEAN[None], np.ones((1, 2))]).shape == (2,)


class TestAdditiveNoise:
    def test_noise_is_a_share_of_the_range(self):
        actions = drawn(in_phase(AdditiveNoise(BOX, ConstantSchedule(0.1), 0.05)))
        np.testing.assert_allclose(actions.mean(axis=0), MEAN, atol=0.08)
        np.testing.assert_allclose(actions.std(axis=0), [0.2, 1.0], rtol=0.06)

    def test_absolute_noise_works_without_bounds(self):
        policy = in_phase(AdditiveNoise(BoxActionSpace(2), ConstantSchedule(0.3), 0.05, False))
        np.testing.assert_allclose(drawn(policy).std(axis=0), 0.3, rtol=0.06)

    def test_evaluation_noise(self):
        policy = in_phase(AdditiveNoise(BOX, ConstantSchedule(0.1), 0.05), RunPhase.TEST)
        np.testing.assert_allclose(drawn(policy).std(axis=0), [0.1, 0.5], rtol=0.06)
        policy.evaluation_noise = 0
        assert policy.get_action(MEAN).tolist() == MEAN.tolist()

    def test_the_agents_own_deviation_replaces_the_schedules(self):
        policy = in_phase(ContinuousEntropy(BOX, ConstantSchedule(0.1), 0.05))
        actions = drawn(policy, [MEAN[None], np.array([[0.01, 3.0]])])
        np.testing.assert_allclose(actions.std(axis=0), [0.01, 3.0], rtol=0.06)
        policy.change_phase(RunPhase.TEST)
        np.testing.assert_allclose(drawn(policy, [MEAN, np.array([9.0, 9.0])]).std(axis=0), [0.1, 0.5], rtol=0.06)

    def test_the_schedule_steps_in_training_only(self):
        policy = in_phase(AdditiveNoise(BOX, LinearSchedule(0.5, 0.1, 4), 0.05))
        policy.get_action(MEAN)
        assert policy.get_control_param().tolist() == [0.4, 0.4]
        policy.change_phase(RunPhase.HEATUP)
        policy.get_action(MEAN)
        assert policy.noise_schedule.num_steps == 1

    def test_an_element_without_bounds_has_the_range_1(self):
        space = BoxActionSpace(3, np.array([-1, -np.inf, 0]), np.array([3, np.inf, np.inf]))
        policy = AdditiveNoise(space, ConstantSchedule(0.1), 0.05)
        np.testing.assert_allclose(policy.evaluation_deviation, [0.2, 0.05, 0.05])


class TestTruncatedNormal:
    def test_actions_stay_within_the_clipping(self):
        policy = in_phase(TruncatedNormal(BOX, ConstantSchedule(1.0), 0.05, clip_low=0, clip_high=np.array([1, 5])))
        actions = drawn(policy, count=500)
        assert actions.min() >= 0 and np.all(actions.max(axis=0) <= [1, 5])
        assert np.all(actions.max(axis=0) > [0.9, 4.5])

    def test_no_noise_takes_the_clipped_mean(self):
        policy = in_phase(TruncatedNormal(BOX, ConstantSchedule(0.0), 0.0, 0, 1))
        assert policy.get_action(MEAN).tolist() == [0.5, 1.0]

    def test_a_mean_far_outside_is_drawn_at_the_bound(self):
        policy = in_phase(TruncatedNormal(BOX, ConstantSchedule(0.001), 0.05, 0, 1))
        actions = drawn(policy, np.array([50.0, -50.0]), count=20)
        assert np.all(actions[:, 0] > 0.999) and np.all(actions[:, 1] < 0.01) and actions.min() >= 0

    def test_bounds_in_the_wrong_order_are_refused(self):
        with pytest.raises(CoachError, match="clip_low 1 is above clip_high 0"):
            TruncatedNormal(BOX, ConstantSchedule(0.1), 0.05, 1, 0)

    @pytest.mark.parametrize(
        "low, high", [(-1, 1), (-0.2, 0.1), (-5, 5), (0, np.inf), (2, 3), (2, 2.1), (4, np.inf), (-3, -2), (1, 9)]
    )
    def test_draws_have_the_mean_of_the_truncated_distribution(self, low, high):
        rng = np.random.default_rng(0)
        draws = np.array([truncated_standard_normal(low, high, rng) for _ in range(4000)])
        assert draws.min() >= low and draws.max() <= high

        def density(x):
            return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

        def above(x):
            return math.erfc(x / math.sqrt(2)) / 2

        mean = (density(low) - density(high)) / (above(low) - above(high))
        assert draws.mean() == pytest.approx(mean, abs=5 * draws.std() / math.sqrt(4000))

    @pytest.mark.parametrize("values", [[np.array([np.nan, 4.0])], [np.array([np.inf, 4.0])], [MEAN, [np.nan, 0.1]]])
    def test_numbers_that_are_not_finite_give_an_action_that_is_not_finite(self, values):
        action = POLICIES["truncated"]().get_action(values)  # does not wait for a draw that cannot come
        assert np.isnan(action[0]) and np.isfinite(action[1])

    @given(low=st.floats(-40, 40), width=st.floats(1e-3, 80), seed=st.integers(0, 2**32))
    def test_draws_never_leave_the_bounds(self, low, width, seed):
        assert low <= truncated_standard_normal(low, low + width, np.random.default_rng(seed)) <= low + width


class TestOUProcess:
    def test_without_shaking_it_drifts_to_mu(self):
        policy = in_phase(OUProcess(BOX, mu=1, theta=0.5, sigma=0, dt=0.1))
        assert policy.get_action(MEAN) - MEAN == pytest.approx(0.05)
        assert policy.get_action(MEAN) - MEAN == pytest.approx(0.05 + 0.05 * 0.95)

    def test_its_spread_settles(self):
        policy = in_phase(OUProcess(BOX, theta=1.0, sigma=0.5, dt=0.1))
        states = np.array([policy.noise() for _ in range(20000)])[100:]
        # x' = (1 - theta dt) x + sigma sqrt(dt) w settles at sigma^2 dt / (1 - (1 - theta dt)^2)
        np.testing.assert_allclose(states.std(axis=0), math.sqrt(0.25 * 0.1 / (1 - 0.9**2)), rtol=0.1)

    def test_other_phases_take_the_mean(self):
        policy = in_phase(OUProcess(BOX), RunPhase.TEST)
        assert policy.get_action(MEAN).tolist() == MEAN.tolist()
        assert policy.get_control_param().tolist() == [0, 0]

    def test_an_episode_starts_at_0(self):
        policy = in_phase(OUProcess(BOX))
        policy.get_action(MEAN)
        assert policy.get_control_param().any()
        policy.reset()
        assert policy.state.tolist() == [0, 0]


class TestEGreedy:
    def test_training_is_random_within_the_box(self):
        policy = in_phase(EGreedy(BOX, ConstantSchedule(1.0), 1.0))
        assert not policy.requires_action_values()
        actions = drawn(policy, None, count=500)
        assert all(BOX.contains(action) for action in actions)
        np.testing.assert_allclose(actions.mean(axis=0), [0, 5], atol=0.6)

    @pytest.mark.parametrize("phase", [RunPhase.TEST, RunPhase.HEATUP])
    def test_other_phases_follow_the_continuous_policy(self, phase):
        policy = in_phase(EGreedy(BOX, ConstantSchedule(1.0), 1.0), phase)
        assert policy.requires_action_values()
        policy.continuous_exploration_policy.evaluation_noise = 0
        policy.continuous_exploration_policy.noise_schedule = ConstantSchedule(0)
        assert policy.get_action(MEAN).tolist() == MEAN.tolist()

    def test_the_continuous_policy_is_told_of_phase_and_episode(self):
        policy = in_phase(EGreedy(BOX, ConstantSchedule(0.0), 0.0, OUProcessParameters()))
        policy.get_action(MEAN)
        assert policy.continuous_exploration_policy.state.any()
        assert policy.get_control_param().tolist() == policy.continuous_exploration_policy.state.tolist()
        policy.reset()
        assert not policy.continuous_exploration_policy.state.any()

    def test_two_policies_share_nothing(self):
        first, second = (EGreedy(BOX, ConstantSchedule(0.0), 0.0) for _ in range(2))
        schedules = [policy.continuous_exploration_policy.noise_schedule for policy in (first, second)]
        assert schedules[0] is not schedules[1]

    @pytest.mark.parametrize("draws", range(8))
    def test_another_actor_continues_its_episode_exactly(self, draws):
        def actors(seed):
            first = in_phase(EGreedy(BOX, ConstantSchedule(0.5), 0.0, OUProcessParameters()), seed=seed)
            return first, first.for_another_actor()

        (first, second), (restored, other) = actors(0), actors(1)
        drawn(second, count=draws)
        restored.set_state(first.get_state())
        other.set_episode_state(second.episode_state())
        assert np.array_equal(drawn(second, count=5), drawn(other, count=5))

    def test_an_episode_of_an_older_checkpoint_continues(self):
        policy = in_phase(EGreedy(BOX, ConstantSchedule(0.5), 0.0, OUProcessParameters()))
        policy.set_episode_state({"state": np.array([3.0, 4.0])})
        assert np.array_equal(policy.continuous_exploration_policy.state, [3.0, 4.0])
        policy.set_episode_state(None)
        assert np.array_equal(policy.continuous_exploration_policy.state, [3.0, 4.0])


@pytest.mark.parametrize("kind", [OUProcess, ContinuousActionExplorationPolicy])
def test_discrete_actions_are_refused(kind):
    with pytest.raises(CoachError, match=rf"{kind.__name__} cannot explore DiscreteActionSpace.*not continuous"):
        kind(DiscreteActionSpace(3))


@pytest.mark.parametrize(
    "parameters",
    [
        AdditiveNoiseParameters,
        ContinuousEntropyParameters,
        TruncatedNormalParameters,
        OUProcessParameters,
        EGreedyParameters,
    ],
)
def test_parameters_build_their_policy(parameters):
    policy = dynamic_import_and_instantiate_module_from_params(parameters(), extra_kwargs={"action_space": BOX})
    assert type(policy).__name__ + "Parameters" == parameters.__name__


def test_the_base_chooses_nothing():
    with pytest.raises(NotImplementedError):
        ContinuousActionExplorationPolicy(BOX).get_action(MEAN)


@pytest.mark.parametrize("name", [name for name, make in POLICIES.items() if make().acts_in_columns])
@pytest.mark.parametrize("phase", [RunPhase.TRAIN, RunPhase.TEST])
def test_actions_in_one_pass_are_those_of_single_calls(name, phase):
    """The noise falls with each action, also within one pass."""
    single, together = (in_phase(POLICIES[name](), phase) for _ in range(2))
    for step in range(4):
        means = MEAN + step + np.arange(6).reshape(3, 2)
        found = together.get_actions(lambda means=means: means, 3)
        np.testing.assert_allclose(found, [single.get_action(mean) for mean in means], rtol=1e-12)
    np.testing.assert_array_equal(together.get_control_param(), single.get_control_param())
