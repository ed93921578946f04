import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.core_types import EnvironmentSteps
from rl_coach.schedules import (
    ConstantSchedule,
    ExponentialSchedule,
    HalvingSchedule,
    LinearSchedule,
    PieceWiseSchedule,
    Schedule,
    StepDecaySchedule,
)


def values(schedule, steps):
    seen = [schedule.current_value]
    for _ in range(steps):
        schedule.step()
        seen.append(schedule.current_value)
    return seen


SCHEDULES = {
    "constant": lambda: ConstantSchedule(0.3),
    "falling": lambda: LinearSchedule(1.0, 0.1, 7),
    "rising": lambda: LinearSchedule(0, 1, 3),
    "exponential": lambda: ExponentialSchedule(1.0, 0.2, 0.7),
    "piecewise": lambda: PieceWiseSchedule(
        [
            (LinearSchedule(1, 0.5, 4), EnvironmentSteps(4)),
            (ConstantSchedule(0.5), EnvironmentSteps(2)),
            (LinearSchedule(0.5, 0, 3), EnvironmentSteps(3)),
        ]
    ),
}
every_schedule = pytest.mark.parametrize("make", SCHEDULES.values(), ids=SCHEDULES.keys())


def test_constant():
    assert values(ConstantSchedule(0.5), 3) == [0.5] * 4


def test_linear_reaches_its_end_and_stays():
    assert values(LinearSchedule(1, 0, 4), 6) == [1, 0.75, 0.5, 0.25, 0, 0, 0]
    assert values(LinearSchedule(0, 1, 2), 3) == [0, 0.5, 1, 1]
    assert values(LinearSchedule(0.1, 0.1, 50000), 2) == [0.1, 0.1, 0.1]


def test_linear_has_no_rounding_drift():
    schedule = LinearSchedule(1.0, 0.01, 1_000_000)
    schedule.set_state({"num_steps": 999_999, "current_value": 0})
    schedule.step()
    assert schedule.current_value == 0.01


def test_linear_needs_a_length():
    with pytest.raises(ValueError, match="decay_steps of at least 1, got 0"):
        LinearSchedule(1, 0, 0)


def test_exponential():
    assert values(ExponentialSchedule(8, 1, 0.5), 5) == [8, 4, 2, 1, 1, 1]
    assert values(ExponentialSchedule(1, 5, 2), 4) == [1, 2, 4, 5, 5]
    assert values(ExponentialSchedule(3, 1, 1), 2) == [3, 3, 3]
    rising = ExponentialSchedule(1, 5, 2)
    assert rising.value_at(5000) == 5  # 2.0 ** 5000 overflows


@pytest.mark.parametrize("initial, final, coefficient", [(1, 2, 0.5), (2, 1, 1.5)])
def test_exponential_the_wrong_way_round(initial, final, coefficient):
    with pytest.raises(ValueError, match="below 1 it falls, above 1 it rises"):
        ExponentialSchedule(initial, final, coefficient)


def test_piecewise_goes_from_one_to_the_next():
    """The figures of Coach 1.0.1: each piece but the first begins one step after the one before it is through."""
    schedule = PieceWiseSchedule(
        [
            (LinearSchedule(1, 0.6, 2), EnvironmentSteps(2)),
            (ConstantSchedule(0.5), EnvironmentSteps(3)),
            (LinearSchedule(0.4, 0.2, 4), EnvironmentSteps(6)),
            (ConstantSchedule(0.05), EnvironmentSteps(1)),
        ]
    )
    assert values(schedule, 13) == pytest.approx(
        [1, 0.8, 0.6, 0.5, 0.5, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.2, 0.05, 0.05]
    )


def test_a_piece_may_end_before_its_schedule():
    schedule = PieceWiseSchedule(
        [(LinearSchedule(1, 0, 10), EnvironmentSteps(2)), (ConstantSchedule(7), EnvironmentSteps(1))]
    )
    assert values(schedule, 4) == pytest.approx([1, 0.9, 0.8, 7, 7])


def test_piecewise_needs_a_piece():
    with pytest.raises(ValueError, match="at least one"):
        PieceWiseSchedule([])


@pytest.mark.parametrize("piece", [(ConstantSchedule(1), 10), ConstantSchedule(1), (1, EnvironmentSteps(10))])
def test_each_piece_is_a_schedule_and_a_duration(piece):
    with pytest.raises(ValueError, match=r"needs pairs like \(schedule, EnvironmentSteps\(1000\)\)"):
        PieceWiseSchedule([piece])


@every_schedule
@given(steps=st.integers(0, 15))
def test_the_value_is_a_function_of_the_step(make, steps):
    schedule = make()
    assert values(schedule, steps)[-1] == make().value_at(steps)
    assert schedule.num_steps == steps


@every_schedule
@given(before=st.integers(0, 12))
def test_a_restored_state_continues_exactly(make, before):
    original, restored = make(), make()
    values(original, before)
    restored.set_state(original.get_state())
    assert values(restored, 10) == values(original, 10)


def test_a_schedule_of_a_user_steps_as_it_likes():
    class Doubling(Schedule):
        def step(self):
            self.current_value *= 2

    schedule, restored = Doubling(1), Doubling(1)
    assert values(schedule, 3) == [1, 2, 4, 8]
    restored.set_state(schedule.get_state())
    assert values(restored, 1) == [8, 16]


class Halves:
    """A mixin that says how to step."""

    def step(self):
        self.num_steps += 1
        self.current_value /= 2


class Halving(LinearSchedule):
    step = Halves.step


class MixedHalving(Halves, LinearSchedule):
    pass


class GrandchildHalving(Halving):
    pass


def halving_on_the_instance(*arguments):
    schedule = LinearSchedule(*arguments)
    schedule.step = lambda: Halves.step(schedule)
    return schedule


@pytest.mark.parametrize("make", [Halving, MixedHalving, GrandchildHalving, halving_on_the_instance])
def test_to_advance_is_to_step_in_the_way_of_a_user(make):
    schedule = make(8, 0, 10)
    schedule.advance(3)
    assert (schedule.current_value, schedule.num_steps) == (1, 3)


class Curved(LinearSchedule):
    def value_at(self, step):
        return super().value_at(step) ** 2


NEXT = {**SCHEDULES, "its own step": lambda: Halving(8, 0, 10), "its own values": lambda: Curved(1, 0, 4)}


@pytest.mark.parametrize("make", NEXT.values(), ids=NEXT.keys())
def test_the_next_values_are_those_of_single_steps(make):
    schedule, single = make(), make()
    for count in (1, 3, 5):
        expected = values(single, count)
        assert schedule.next_values(count).tolist() == expected[:-1]
        assert (schedule.current_value, schedule.num_steps) == (expected[-1], single.num_steps)


def test_a_schedule_without_values_says_so():
    with pytest.raises(NotImplementedError, match="Schedule must define value_at"):
        Schedule(1).step()


def test_it_shows_its_settings():
    assert repr(LinearSchedule(1, 0, 4)) == "LinearSchedule(initial_value=1, final_value=0, decay_steps=4)"


def test_a_step_decay_multiplies_after_each_whole_period():
    schedule = StepDecaySchedule(0.8, 0.5, 2)
    assert [schedule.value_at(step) for step in range(5)] == pytest.approx([0.8, 0.8, 0.4, 0.4, 0.2])
    with pytest.raises(ValueError, match="at least 1"):
        StepDecaySchedule(1, 0.5, 0)


def test_a_halving_schedule_ends_at_its_last_value():
    schedule = HalvingSchedule(1.0, 0.5, 10, half_lives=2)
    assert [schedule.value_at(step) for step in (0, 5, 10, 11)] == [1.0, 0.75, 0.5, 0.5]
