"""What a deployed policy does is said by the exploration policy, or it is not said at all."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.exploration_policies.additive_noise import AdditiveNoise
from rl_coach.exploration_policies.boltzmann import Boltzmann
from rl_coach.exploration_policies.bootstrapped import Bootstrapped
from rl_coach.exploration_policies.categorical import Categorical
from rl_coach.exploration_policies.e_greedy import EGreedy
from rl_coach.exploration_policies.exploration_policy import ExplorationPolicy
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
    assert policy.action_choice() == choice
