"""An evaluation leaves no trace, without networks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from rl_coach.agents.core.actor import Actor
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.core.evaluation import EvaluationInProgress
from rl_coach.agents.core.signals import Signals
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvResponse
from rl_coach.exploration_policies.e_greedy import EGreedy
from rl_coach.filters.filter import InputFilter, NoOutputFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import DiscreteActionSpace


class Player:
    """An agent without networks, as far as evaluations know it."""

    def __init__(self) -> None:
        exploration = EGreedy(DiscreteActionSpace(2), LinearSchedule(1.0, 0.0, 10), 0.0)
        exploration.seed(3)
        filters = InputFilter(reward_filters={"norm": RewardNormalizationFilter()})
        self.networks: dict[str, Any] = {}
        self.is_recurrent = False
        self.rng, self.signals = np.random.default_rng(1), Signals()
        self.spaces = SimpleNamespace(action=SimpleNamespace(rng=np.random.default_rng(2)))
        self.episode_state = SimpleNamespace(names={"seen"})
        self.seen = [1]
        episode = EpisodeInProgress(AlgorithmParameters())
        self.actor = Actor(self, episode, filters, NoOutputFilter(), exploration)

    @property
    def filters(self) -> dict[str, Any]:
        return {"input_filter": self.actor.input_filter}

    @property
    def exploration_policy(self) -> Any:
        return self.actor.exploration_policy

    def draws(self) -> list[float]:
        return [self.rng.random(), self.spaces.action.rng.random(), self.exploration_policy.rng.random()]


def test_streams_statistics_and_samples_continue_as_if_there_had_been_none():
    undisturbed = Player().draws()
    player = Player()
    player.signals.loss.add_sample(1.0)
    training, before = player.actor, player.filters["input_filter"].get_state()
    evaluation = EvaluationInProgress(player)
    evaluation.seed(np.random.SeedSequence(7))
    assert player.signals.loss.values == [] and player.actor is not training
    evaluated = player.draws()
    player.filters["input_filter"].filter(EnvResponse({}, 100.0, False))
    player.signals.loss.add_sample(9.0)
    player.seen = [2]
    evaluation.end()
    assert player.actor is training and player.seen == [1]
    assert player.signals.loss.values == [1.0] and str(player.filters["input_filter"].get_state()) == str(before)
    assert player.draws() == undisturbed != evaluated


def test_an_evaluation_draws_the_same_whatever_training_has_drawn():
    found = []
    for number in (0, 5):
        player = Player()
        player.rng.random(number)
        EvaluationInProgress(player).seed(np.random.SeedSequence(7))
        found.append(player.draws())
    assert found[0] == found[1]
