"""An evaluation leaves no trace, without an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.evaluation_snapshot import EvaluationSnapshot
from rl_coach.agents.core.signals import Signals
from rl_coach.core_types import EnvResponse
from rl_coach.exploration_policies.e_greedy import EGreedy
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_normalization_filter import RewardNormalizationFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import DiscreteActionSpace


def parts() -> tuple[Any, Any, Any, Any]:
    exploration = EGreedy(DiscreteActionSpace(2), LinearSchedule(1.0, 0.0, 10), 0.0)
    exploration.seed(3)
    return (
        InputFilter(reward_filters={"norm": RewardNormalizationFilter()}),
        np.random.default_rng(1),
        exploration,
        Signals(),
    )


def draws(stream: np.random.Generator, exploration: Any) -> list[float]:
    return [stream.random(), exploration.rng.random()]


def test_streams_statistics_and_samples_go_on_as_if_there_had_been_none():
    filters, stream, exploration, signals = parts()
    undisturbed = draws(*parts()[1:3])
    signals.loss.add_sample(1.0)
    before = filters.get_state()
    snapshot = EvaluationSnapshot({"input_filter": filters}, [stream], exploration, signals, {})
    snapshot.seed(np.random.SeedSequence(7), exploration)
    assert signals.loss.values == []
    evaluated = draws(stream, exploration)
    filters.filter(EnvResponse({}, 100.0, False))
    signals.loss.add_sample(9.0)
    snapshot.restore()
    assert signals.loss.values == [1.0] and str(filters.get_state()) == str(before)
    assert draws(stream, exploration) == undisturbed != evaluated


def test_an_evaluation_draws_the_same_whatever_training_has_drawn():
    found = []
    for number in (0, 5):
        _, stream, exploration, signals = parts()
        stream.random(number)
        snapshot = EvaluationSnapshot({}, [stream], exploration, signals, {})
        snapshot.seed(np.random.SeedSequence(7), exploration)
        found.append(draws(stream, exploration))
    assert found[0] == found[1]
