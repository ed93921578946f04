"""What a deployed policy does is said by the exploration policy, or it is not said at all."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.exploration_policies.additive_noise import AdditiveNoise
from rl_coach.exploration_policies.boltzmann import Boltzmann
from rl_coach.exploration_policies.bootstrapped import Bootstrapped
from rl_coach.exploration_policies.categorical import Categorical
from rl_coach.exploration_policies.e_greedy import EGreedy
from rl_coach.exploration_policies.exploration_policy import (
    ExplorationPolicy,
    deployed_choice,
    draws_by_probabilities,
)
from rl_coach.exploration_policies.greedy import Greedy
from rl_coach.exploration_policies.ou_process import OUProcess
from rl_coach.exploration_policies.ucb import UCB
from rl_coach.policy.action_choice import (
    CategoricalChoice,
    EnsembleMeanChoice,
    GaussianChoice,
    GreedyChoice,
    SoftmaxChoice,
    VotingChoice,
)
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace

DISCRETE = DiscreteActionSpace(3)
BOX = BoxActionSpace(1, low=np.array([-1.0]), high=np.array([1.0]))


class Cautious(EGreedy):
    """A policy of a user's, which chooses in a way of its own."""

    def get_action(self, action_values, action_mask=None):
        return 0, np.array([1.0, 0.0, 0.0])


class Explained(Cautious):
    """The same, which says how it would be deployed."""

    def action_choice(self):
        return SoftmaxChoice(2.0)


@pytest.mark.parametrize(
    "policy, choice",
    [
        (EGreedy(DISCRETE, LinearSchedule(1, 0, 10), 0.05), GreedyChoice(0.05)),
        (EGreedy(BOX, LinearSchedule(1, 0, 10), 0.05), GaussianChoice()),
        (Greedy(DISCRETE), GreedyChoice()),
        (Boltzmann(DISCRETE, ConstantSchedule(0.7)), SoftmaxChoice(0.7)),
        (Categorical(DISCRETE), CategoricalChoice()),
        (AdditiveNoise(BOX, ConstantSchedule(0.1), 0.0), GaussianChoice()),
        (UCB(DISCRETE, ConstantSchedule(0.1), 0.0, 5, 0.1), EnsembleMeanChoice()),
        (Bootstrapped(DISCRETE, ConstantSchedule(0.1), 0.0, 5), VotingChoice()),
        (OUProcess(BOX, 0, 0.1, 0.2, 0.01), None),
        (Cautious(DISCRETE, ConstantSchedule(0.1), 0.0), None),
        (Explained(DISCRETE, ConstantSchedule(0.1), 0.0), SoftmaxChoice(2.0)),
        (ExplorationPolicy(DISCRETE), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_policy_says_its_own_choice(policy, choice):
    assert deployed_choice(policy) == choice


class ChoosesFirst:
    """A mixin that chooses in a way of its own."""

    def get_action(self, action_values, action_mask=None):
        return 0, np.array([1.0, 0.0, 0.0])


class OwnWay(Categorical):
    def get_action(self, action_values, action_mask=None):
        return 0, np.array([1.0, 0.0, 0.0])


class Mixed(ChoosesFirst, Categorical):
    pass


class Grandchild(OwnWay):
    pass


class SaysSo(Grandchild):
    draws_by_probabilities = True

    def action_choice(self):
        return CategoricalChoice()


def on_the_instance():
    policy = Categorical(DISCRETE)
    policy.get_action = OwnWay(DISCRETE).get_action
    return policy


@pytest.mark.parametrize(
    ("make", "is_own"),
    [
        (lambda: Categorical(DISCRETE), False),
        (lambda: OwnWay(DISCRETE), True),
        (lambda: Mixed(DISCRETE), True),
        (lambda: Grandchild(DISCRETE), True),
        (on_the_instance, True),
        (lambda: SaysSo(DISCRETE), False),
    ],
    ids=["Coach's", "class", "mixin", "grandchild", "instance", "declared later"],
)
def test_a_get_action_replaces_what_the_base_says_of_its_own(make, is_own):
    policy = make()
    assert deployed_choice(policy) == (None if is_own else CategoricalChoice())
    assert draws_by_probabilities(policy) is not is_own


def test_the_policy_for_continuous_actions_is_asked_in_the_same_way():
    policy = EGreedy(BOX, LinearSchedule(1, 0, 10), 0.05)
    policy.continuous_exploration_policy.get_action = lambda values, mask=None: values
    assert deployed_choice(policy) is None
