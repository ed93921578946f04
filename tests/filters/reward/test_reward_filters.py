import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.filters.reward import (
    RewardClippingFilter,
    RewardEwmaNormalizationFilter,
    RewardFilter,
    RewardNormalizationFilter,
    RewardRescaleFilter,
)
from rl_coach.spaces import RewardSpace
from rl_coach.utils import CoachError

SPACE = RewardSpace(1, -10, 20, reward_success_threshold=15)
rewards = st.floats(-1e3, 1e3)


def bounds(space):
    return space.low.item(), space.high.item()


def test_clipping():
    clip = RewardClippingFilter(-1, 1)
    assert [clip.filter(reward) for reward in (-5, 0.5, 7, np.float32(9))] == [-1, 0.5, 1, 1]
    assert clip.filter(np.array([-5.0, 0.5])).tolist() == [-1, 0.5]
    assert bounds(clip.get_filtered_reward_space(SPACE)) == (-1, 1)
    assert clip.get_filtered_reward_space(SPACE).reward_success_threshold == 15
    assert bounds(SPACE) == (-10, 20)


def test_zero_is_a_bound_as_any_other():
    assert RewardClippingFilter(0, np.inf).filter(-3) == 0
    assert RewardClippingFilter(-np.inf, 0).filter(3) == 0


def test_clipping_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(CoachError, match="clipping_low 1 is above clipping_high 0"):
        RewardClippingFilter(1, 0)


def test_rescaling():
    rescale = RewardRescaleFilter(1 / 200)
    assert rescale.filter(50) == 0.25
    assert rescale.filter(np.array([50, -200])).tolist() == [0.25, -1]
    assert bounds(rescale.get_filtered_reward_space(SPACE)) == (-0.05, 0.1)
    assert bounds(RewardRescaleFilter(-1).get_filtered_reward_space(SPACE)) == (-20, 10)
    with pytest.raises(CoachError, match="rescale_factor of 0"):
        RewardRescaleFilter(0)


def test_normalization_by_hand():
    normalize = RewardNormalizationFilter(clip_min=-3, clip_max=3)
    assert normalize.filter(2.0) == 0  # the first reward is its own mean
    assert normalize.filter(4.0) == pytest.approx(1)  # mean 3, standard deviation 1
    assert normalize.filter(100.0, update_internal_state=False) == 3
    assert bounds(normalize.get_filtered_reward_space(SPACE)) == (-3, 3)
    assert normalize.filter(np.array([2.0, 4.0]), update_internal_state=False).tolist() == [-1, 1]


@given(values=st.lists(rewards, min_size=2, max_size=20))
def test_normalization_is_mean_and_standard_deviation_of_all(values):
    normalize = RewardNormalizationFilter(-np.inf, np.inf)
    filtered = [normalize.filter(value) for value in values]
    expected = (values[-1] - np.mean(values)) / max(np.std(values), 0.1)
    assert filtered[-1] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_ewma_by_hand():
    ewma = RewardEwmaNormalizationFilter(alpha=0.5)
    assert [ewma.filter(reward) for reward in (4, 8, 0)] == [0, 2, -3]  # averages 4, 6, 3
    assert ewma.filter(5, update_internal_state=False) == 2
    assert ewma.filter(np.array([3.0, 7.0])).tolist() == [-1, 3]  # the mean 5 counts once: the average is 4
    assert ewma.get_filtered_reward_space(SPACE) is SPACE


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_ewma_weights_lie_between_0_and_1(alpha):
    with pytest.raises(CoachError, match="not between 0 and 1"):
        RewardEwmaNormalizationFilter(alpha)


@pytest.mark.parametrize("kind", [RewardNormalizationFilter, RewardEwmaNormalizationFilter])
@given(before=st.lists(rewards, max_size=8), after=st.lists(rewards, min_size=1, max_size=4))
def test_a_restored_state_continues_exactly(tmp_path_factory, kind, before, after):
    directory = str(tmp_path_factory.mktemp("state"))
    original, in_memory, from_file = kind(), kind(), kind()
    for reward in before:
        original.filter(reward)
    in_memory.set_state(original.get_state())
    original.save_state_to_checkpoint(directory, 1)
    from_file.restore_state_from_checkpoint(directory, 1)
    expected = [original.filter(reward) for reward in after]
    assert [in_memory.filter(reward) for reward in after] == expected
    assert [from_file.filter(reward) for reward in after] == expected


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(RewardNormalizationFilter, "do not contain 'count'"), (RewardEwmaNormalizationFilter, "has no 'moving_average'")],
)
def test_a_state_of_another_filter_is_refused(kind, reason):
    with pytest.raises(CoachError, match=reason):
        kind().set_state({"something": 1})


def test_set_device_keeps_the_backend():
    normalize = RewardNormalizationFilter()
    normalize.set_device(None, memory_backend_params="backend")
    assert normalize.running_rewards_stats.pubsub_params == "backend"


def test_the_base_does_not_filter():
    with pytest.raises(NotImplementedError):
        RewardFilter().filter(1.0)
    assert RewardFilter().get_filtered_reward_space(SPACE) is SPACE
