"""Greedy, epsilon-greedy, Boltzmann, categorical, bootstrapped and UCB exploration of discrete actions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.core_types import RunPhase
from rl_coach.exploration_policies.boltzmann import Boltzmann, BoltzmannParameters
from rl_coach.exploration_policies.bootstrapped import Bootstrapped, BootstrappedParameters
from rl_coach.exploration_policies.categorical import Categorical, CategoricalParameters
from rl_coach.exploration_policies.e_greedy import EGreedy, EGreedyParameters
from rl_coach.exploration_policies.exploration_policy import (
    DiscreteActionExplorationPolicy,
    ExplorationParameters,
    ExplorationPolicy,
    best_action,
    chooses_in_columns,
)
from rl_coach.exploration_policies.greedy import Greedy, GreedyParameters
from rl_coach.exploration_policies.ucb import UCB, UCBParameters
from rl_coach.policy.drawing import sample_action
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, MultiSelectActionSpace
from rl_coach.utils import CoachError, TrainingError, dynamic_import_and_instantiate_module_from_params

ACTIONS = DiscreteActionSpace(4)
VALUES = np.array([0.1, 0.7, 0.2, 0.0])
HEADS = np.array([[0, 3, 1, 0], [0, 3, 2, 0], [5, 0, 1, 0]], dtype=float)


def in_phase(policy, phase=RunPhase.TRAIN, seed=0):
    policy.seed(seed)
    policy.change_phase(phase)
    return policy


def e_greedy(epsilon=0.3, evaluation_epsilon=0.05, **kwargs):
    return in_phase(EGreedy(ACTIONS, LinearSchedule(epsilon, 0.01, 100), evaluation_epsilon), **kwargs)


POLICIES = {
    "greedy": lambda: in_phase(Greedy(ACTIONS)),
    "e_greedy": e_greedy,
    "random": lambda: e_greedy(1.0),
    "boltzmann": lambda: in_phase(Boltzmann(ACTIONS, LinearSchedule(5, 1, 20))),
    "categorical": lambda: in_phase(Categorical(ACTIONS)),
    "bootstrapped": lambda: in_phase(Bootstrapped(ACTIONS, LinearSchedule(0.5, 0.1, 10), 0.05, 3)),
    "ucb": lambda: in_phase(UCB(ACTIONS, LinearSchedule(0.5, 0.1, 10), 0.05, 3, 0.5)),
}
every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES.keys())


def values_for(policy, rng):
    if isinstance(policy, (Bootstrapped, UCB)):
        return rng.random((3, 4))
    values = rng.random(4)
    return values / values.sum()


def run(policy, steps, seed):
    rng = np.random.default_rng(seed)
    chosen = []
    for _ in range(steps):
        values = values_for(policy, rng)
        chosen.append(policy.get_action(values if policy.requires_action_values() else None))
    return [(action, probabilities.tolist()) for action, probabilities in chosen]


@every_policy
@given(mask=st.lists(st.integers(0, 1), min_size=4, max_size=4).filter(any), seed=st.integers(0, 2**32))
@pytest.mark.parametrize("phase", [RunPhase.TRAIN, RunPhase.TEST])
def test_masked_actions_are_never_chosen(make, phase, mask, seed):
    policy = in_phase(make(), phase, seed)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        action, probabilities = policy.get_action(values_for(policy, rng), np.array(mask))
        assert mask[action] and probabilities[action] > 0
        assert probabilities.shape == (4,) and not probabilities[np.array(mask) == 0].any()
        assert probabilities.sum() == pytest.approx(1)


@every_policy
def test_a_mask_that_allows_nothing_is_an_error(make):
    policy = make()
    with pytest.raises(ValueError, match="allows no action"):
        policy.get_action(values_for(policy, np.random.default_rng(0)), np.zeros(4))


@every_policy
def test_a_seed_repeats_the_actions(make):
    assert run(make(), 30, seed=5) == run(make(), 30, seed=5)


@every_policy
@given(before=st.integers(0, 12))
def test_a_restored_state_continues_exactly(make, before):
    original, restored = make(), in_phase(make(), seed=99)
    run(original, before, seed=1)
    if hasattr(original, "select_head"):
        original.select_head()
    restored.set_state(original.get_state())
    assert run(restored, 10, seed=2) == run(original, 10, seed=2)
    assert restored.get_control_param() == original.get_control_param()


@every_policy
def test_a_state_of_another_policy_is_refused(make):
    with pytest.raises(CoachError, match="exploration state in the checkpoint does not fit"):
        make().set_state({"something": 1})


@every_policy
def test_actions_are_plain_ints(make):
    policy = make()
    action, _ = policy.get_action(values_for(policy, np.random.default_rng(0)))
    assert type(action) is int


def test_ties_break_at_random():
    policy = in_phase(Greedy(ACTIONS))
    chosen = [policy.get_action(np.array([1.0, 0.0, 1.0, 0.0]))[0] for _ in range(200)]
    assert set(chosen) == {0, 2} and 60 < chosen.count(0) < 140


def test_an_allowed_value_of_minus_infinity_beats_a_masked_one():
    rng = np.random.default_rng(0)
    values = np.array([-np.inf, -np.inf, 5.0])
    assert {best_action(values, rng, np.array([1, 0, 0]))[0] for _ in range(20)} == {0}


class TestGreedy:
    def test_the_best_action_and_its_probability(self):
        action, probabilities = Greedy(ACTIONS).get_action(VALUES[None])
        assert action == 1 and probabilities.tolist() == [0, 1, 0, 0]
        assert Greedy(ACTIONS).get_control_param() == 0

    def test_the_mean_of_continuous_actions(self):
        box = BoxActionSpace(2, -1, 1)
        assert Greedy(box).get_action(np.array([[0.1, 0.2]])).tolist() == [0.1, 0.2]
        assert Greedy(box).get_action([np.array([[0.1, 0.2]]), np.array([[1.0, 1.0]])]).tolist() == [0.1, 0.2]

    def test_other_spaces_are_refused(self):
        with pytest.raises(CoachError, match="Greedy cannot explore MultiSelectActionSpace"):
            Greedy(MultiSelectActionSpace(3))


class TestEGreedy:
    @pytest.mark.parametrize(
        ("values", "mask", "expected"),
        [
            (VALUES, None, [0.1, 0.7, 0.1, 0.1]),
            (np.array([2.0, 1.0, 2.0, 2.0]), None, [0.3, 0.1, 0.3, 0.3]),  # ties share
            (VALUES, np.array([1, 0, 1, 0]), [0.2, 0, 0.8, 0]),
        ],
    )
    def test_it_can_tell_the_probabilities_of_all_that_it_might_have_drawn(self, values, mask, expected):
        policy = in_phase(EGreedy(ACTIONS, ConstantSchedule(0.4), 0.05))
        policy.tells_all_probabilities = True
        counts = np.zeros(4)
        for _ in range(4000):
            assert policy.requires_action_values()
            action, probabilities = policy.get_action(values, mask)
            np.testing.assert_allclose(probabilities, expected, atol=1e-12)
            counts[action] += 1
        np.testing.assert_allclose(counts / 4000, expected, atol=0.03)

    def test_epsilon_1_is_uniform_and_0_greedy(self):
        always = e_greedy(1.0)
        always.epsilon_schedule = ConstantSchedule(1.0)
        chosen = [always.get_action(None) for _ in range(400)]
        counts = np.bincount([action for action, _ in chosen], minlength=4)
        assert counts.min() > 60 and chosen[0][1].tolist() == [0.25] * 4
        never = e_greedy()
        never.epsilon_schedule = ConstantSchedule(0.0)
        assert {never.get_action(VALUES)[0] for _ in range(50)} == {1}

    def test_the_network_is_asked_for_only_if_the_action_depends_on_it(self):
        policy = e_greedy(0.5)
        policy.epsilon_schedule = ConstantSchedule(0.5)
        asked = 0
        for _ in range(1000):
            needed = policy.requires_action_values()
            assert policy.requires_action_values() == needed  # asking draws nothing
            asked += needed
            _, probabilities = policy.get_action(VALUES if needed else None)
            assert (probabilities.max() == 1) == needed
        assert 440 < asked < 560

    def test_a_random_action_is_drawn_among_the_allowed(self):
        policy = e_greedy(1.0)
        policy.epsilon_schedule = ConstantSchedule(1.0)
        _, probabilities = policy.get_action(None, np.array([1, 0, 1, 0]))
        assert probabilities.tolist() == [0.5, 0, 0.5, 0]

    def test_epsilon_steps_in_training_only(self):
        policy = e_greedy(1.0)
        policy.get_action(VALUES)
        assert policy.get_control_param() == pytest.approx(1 - 0.99 / 100)
        for phase in (RunPhase.HEATUP, RunPhase.TEST, RunPhase.UNDEFINED):
            policy.change_phase(phase)
            policy.get_action(VALUES)
        assert policy.epsilon_schedule.num_steps == 1
        policy.change_phase(RunPhase.TEST)
        assert policy.get_control_param() == 0.05

    def test_evaluation_has_an_epsilon_of_its_own(self):
        policy = e_greedy(1.0, evaluation_epsilon=0.0, phase=RunPhase.TEST)
        assert {policy.get_action(VALUES)[0] for _ in range(50)} == {1}

    def test_random_actions_do_not_depend_on_other_users_of_the_space(self):
        first, second = e_greedy(1.0), e_greedy(1.0)
        expected = run(first, 10, seed=0)
        ACTIONS.seed(123)
        ACTIONS.sample()
        assert run(second, 10, seed=0) == expected

    def test_other_spaces_are_refused(self):
        with pytest.raises(CoachError, match="neither discrete nor a box"):
            EGreedy(MultiSelectActionSpace(3), ConstantSchedule(1), 0)


class TestBoltzmann:
    def test_probabilities_are_a_softmax(self):
        _, probabilities = in_phase(Boltzmann(ACTIONS, ConstantSchedule(0.5))).get_action(np.log([1.0, 2.0, 3.0, 4.0]))
        np.testing.assert_allclose(probabilities, np.array([1, 4, 9, 16]) / 30)

    def test_it_draws_by_them(self):
        policy = in_phase(Boltzmann(ACTIONS, ConstantSchedule(1.0)))
        values = np.log([0.1, 0.2, 0.3, 0.4])
        counts = np.bincount([policy.get_action(values)[0] for _ in range(2000)], minlength=4)
        np.testing.assert_allclose(counts / 2000, [0.1, 0.2, 0.3, 0.4], atol=0.04)

    @pytest.mark.parametrize("scale", [1e30, 1e-30, -1e30])
    def test_large_values_do_not_overflow(self, scale):
        with np.errstate(all="raise", under="ignore"):
            _, probabilities = in_phase(Boltzmann(ACTIONS, ConstantSchedule(1.0))).get_action(VALUES * scale)
        assert probabilities.sum() == pytest.approx(1)

    def test_a_large_masked_value_does_not_count(self):
        policy = in_phase(Boltzmann(ACTIONS, ConstantSchedule(1.0)))
        _, probabilities = policy.get_action(np.array([1e9, 0.0, 0.0, 0.0]), np.array([0, 1, 1, 0]))
        assert probabilities.tolist() == [0, 0.5, 0.5, 0]

    def test_temperature_0_is_greedy(self):
        action, probabilities = in_phase(Boltzmann(ACTIONS, ConstantSchedule(0.0))).get_action(VALUES)
        assert action == 1 and probabilities.tolist() == [0, 1, 0, 0]

    def test_the_temperature_falls_in_training_only(self):
        policy = in_phase(Boltzmann(ACTIONS, LinearSchedule(2, 1, 2)))
        policy.get_action(VALUES)
        assert policy.get_control_param() == 1.5
        policy.change_phase(RunPhase.TEST)
        policy.get_action(VALUES)
        assert policy.get_control_param() == 1.5

    def test_it_needs_a_schedule(self):
        with pytest.raises(CoachError, match="temperature_schedule is not set; set it"):
            Boltzmann(ACTIONS, BoltzmannParameters().temperature_schedule)


class TestCategorical:
    def test_training_draws_by_the_probabilities(self):
        policy = in_phase(Categorical(ACTIONS))
        drawn = [policy.get_action(VALUES) for _ in range(2000)]
        counts = np.bincount([action for action, _ in drawn], minlength=4)
        np.testing.assert_allclose(counts / 2000, VALUES, atol=0.04)
        assert counts[3] == 0
        np.testing.assert_allclose(drawn[0][1], VALUES)

    def test_other_phases_take_the_most_probable(self):
        policy = in_phase(Categorical(ACTIONS), RunPhase.TEST)
        action, probabilities = policy.get_action(VALUES)
        assert action == 1 and probabilities.tolist() == [0, 1, 0, 0]
        assert policy.get_control_param() == 0

    def test_a_mask_scales_the_rest(self):
        _, probabilities = in_phase(Categorical(ACTIONS)).get_action(VALUES, np.array([1, 0, 1, 1]))
        np.testing.assert_allclose(probabilities, [1 / 3, 0, 2 / 3, 0])

    def test_allowed_actions_without_probability_are_drawn_alike(self):
        _, probabilities = in_phase(Categorical(ACTIONS)).get_action(np.array([1.0, 0, 0, 0]), np.array([0, 1, 1, 0]))
        assert probabilities.tolist() == [0, 0.5, 0.5, 0]

    def test_float32_probabilities_that_do_not_quite_sum_to_1(self):
        weights = np.array([0.1, 0.2, 0.3, 0.39999], dtype=np.float32)
        _, probabilities = in_phase(Categorical(ACTIONS)).get_action(weights)
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_policy_that_has_diverged_is_an_error(self, bad):
        with pytest.raises(TrainingError, match="training has diverged"):
            in_phase(Categorical(ACTIONS)).get_action(np.array([bad, 0.1, 0.1, 0.1]))


@given(
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda weights: sum(weights) > 0),
    seed=st.integers(0, 2**32),
)
def test_an_action_without_probability_is_never_drawn(weights, seed):
    action, probabilities = sample_action(weights, np.random.default_rng(seed))
    assert weights[action] > 0 and probabilities[action] > 0


class TestBootstrapped:
    def policy(self, phase=RunPhase.TRAIN, epsilon=0.0):
        return in_phase(Bootstrapped(ACTIONS, ConstantSchedule(epsilon), 0.0, 3), phase)

    def test_training_follows_the_selected_head(self):
        policy = self.policy()
        policy.selected_head = 2
        assert policy.get_action(HEADS)[0] == 0
        assert policy.last_action_values.tolist() == HEADS[2].tolist()
        assert policy.get_control_param() == 2
        policy.selected_head = 1
        assert policy.get_action(HEADS[:, None])[0] == 1  # as lists of [1, A] come from the network

    def test_every_head_is_drawn(self):
        policy = self.policy()
        drawn = set()
        for _ in range(50):
            policy.select_head()
            drawn.add(policy.selected_head)
        assert drawn == {0, 1, 2}

    def test_evaluation_votes(self):
        policy = self.policy(RunPhase.TEST)
        assert policy.get_action(HEADS)[0] == 1
        assert policy.last_action_values.tolist() == [1, 2, 0, 0]

    def test_heads_vote_among_the_allowed_actions(self):
        policy = self.policy(RunPhase.TEST)
        assert policy.get_action(HEADS, np.array([0, 0, 1, 1]))[0] == 2

    def test_a_head_divides_its_vote_among_its_best_actions(self):
        policy = self.policy(RunPhase.TEST)
        policy.get_action(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]], dtype=float))
        assert policy.last_action_values.tolist() == [0.5, 0.5, 2, 0]

    def test_random_actions_need_no_values(self):
        policy = self.policy(epsilon=1.0)
        assert not policy.requires_action_values()
        assert policy.get_action(None)[1].tolist() == [0.25] * 4
        assert policy.last_action_values is None


class TestUCB:
    def policy(self, phase=RunPhase.TRAIN, lamb=1.0):
        return in_phase(UCB(ACTIONS, ConstantSchedule(0.0), 0.0, 2, lamb), phase)

    def test_training_prefers_disagreement(self):
        heads = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 1.8, 0.0, 0.0]])  # means 1, 0.9; deviations 0, 0.9
        policy = self.policy()
        assert policy.get_action(heads)[0] == 1
        assert policy.last_action_values.tolist() == [1.0, 1.8, 0, 0]
        assert policy.get_control_param() == pytest.approx(0.9 / 4)
        assert self.policy(lamb=0).get_action(heads)[0] == 0

    def test_evaluation_takes_the_mean(self):
        policy = self.policy(RunPhase.TEST)
        assert policy.get_action(np.array([[1.0, 0.0, 0, 0], [1.0, 1.8, 0, 0]]))[0] == 0
        assert policy.get_control_param() == 0
        policy.select_head()


@pytest.mark.parametrize("kind", [Boltzmann, Categorical, DiscreteActionExplorationPolicy, Bootstrapped, UCB])
def test_continuous_actions_are_refused(kind):
    box = BoxActionSpace(2, -1, 1)
    arguments = {
        Boltzmann: (ConstantSchedule(1),),
        Bootstrapped: (ConstantSchedule(1), 0, 3),
        UCB: (ConstantSchedule(1), 0, 3, 0.1),
    }
    with pytest.raises(CoachError, match=rf"{kind.__name__} cannot explore BoxActionSpace.*; "):
        kind(box, *arguments.get(kind, ()))


@pytest.mark.parametrize(
    "parameters", [EGreedyParameters, GreedyParameters, CategoricalParameters, BootstrappedParameters, UCBParameters]
)
def test_parameters_build_their_policy(parameters):
    policy = dynamic_import_and_instantiate_module_from_params(parameters(), extra_kwargs={"action_space": ACTIONS})
    assert type(policy).__name__ + "Parameters" == parameters.__name__
    assert policy.action_space is ACTIONS and policy.phase == RunPhase.HEATUP


def test_the_bases_choose_nothing():
    assert ExplorationParameters().path.endswith(":ExplorationPolicy")
    policy = ExplorationPolicy(ACTIONS)
    policy.reset()
    assert policy.requires_action_values() and policy.get_control_param() == 0
    with pytest.raises(NotImplementedError, match="set exploration to a policy"):
        policy.get_action(VALUES)
    with pytest.raises(NotImplementedError, match="DiscreteActionExplorationPolicy does not choose"):
        DiscreteActionExplorationPolicy(ACTIONS).get_action(VALUES)


@pytest.mark.parametrize("name", [name for name, make in POLICIES.items() if chooses_in_columns(make())])
@pytest.mark.parametrize("is_masked", [False, True])
def test_actions_in_one_pass_are_those_of_single_calls(name, is_masked):
    """Each row has its own mask, and the schedule moves on by each action."""
    rng, single, together = np.random.default_rng(2), POLICIES[name](), POLICIES[name]()
    for _ in range(30):
        values = rng.dirichlet(np.ones(4), 5)
        masks = np.maximum(rng.integers(0, 2, (5, 4)), np.eye(4)[rng.integers(4, size=5)].astype(int))
        found = together.get_actions(lambda values=values: values, 5, masks if is_masked else None)
        expected = [single.get_action(row, mask if is_masked else None)[0] for row, mask in zip(values, masks)]
        assert found.tolist() == expected
    assert together.get_control_param() == single.get_control_param()


def test_no_value_is_computed_if_all_rows_explore():
    policy = EGreedy(ACTIONS, ConstantSchedule(1.0), 0.0)
    assert len(policy.get_actions(lambda: pytest.fail("asked for values"), 8)) == 8
