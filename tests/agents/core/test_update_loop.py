"""The update loop on a network and columns of its own, without an agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.finite_watch import FiniteWatch
from rl_coach.agents.core.signals import Signals
from rl_coach.agents.core.update_loop import UpdateLoop, UpdateSettings
from rl_coach.architectures.head_parameters import VHeadParameters
from rl_coach.architectures.update import Update, weighted_mean
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.filters.filter import NoInputFilter
from tests.architectures.networks import DISCRETE, VECTOR, network_parameters, spaces, wrap

B = 4


class Source:
    """Batches of numbers in order; remembers what it was asked and told."""

    gives_many_at_once = True
    wants_errors = False
    wants_values = False

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.errors: list[np.ndarray] = []

    def sample(self, updates: int, batch_size: int) -> Any:
        self.asked.append(updates)
        return range(updates * batch_size)

    def columns(self, batch: Any, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return columns

    def stages(self, stages: Any) -> Any:
        return stages

    def take_errors(self, batch: Any, errors: np.ndarray) -> None:
        self.errors.append(errors)


class Rules:
    """V(s) towards 1."""

    hooks = frozenset({"learning_scalars"})
    learns_by_rule = True
    learns_one_by_one = False
    decides_on_targets = False
    clock: TrainingClock

    def targets_due(self) -> bool:
        return self.clock.targets_due()

    def make_update_rule(self) -> Any:
        def rule(ops: Any, networks: dict, batch: Any) -> Update:
            errors = networks["main"].online(batch.states)[0]["v"] - batch.rewards
            return Update(
                {"main": weighted_mean(ops, errors * errors, batch.weights)},
                errors=errors,
                signals={"Largest": ops.max(ops.abs(errors))},
            )

        return rule

    def learning_columns(self, batch: Any) -> dict[str, np.ndarray]:
        rows = len(batch)
        return {
            "states/observation": np.ones((rows, 3), np.float32),
            "rewards": np.ones(rows, np.float32),
            "weights": np.ones(rows, np.float32),
        }

    def learning_scalars(self) -> dict[str, float]:
        return {}

    def learn_from_batch(self, batch: Any) -> Any:
        return 0.25, [0.25], 3.0


def loop_of(rules: Any = None, source: Any = None, updates: int = 1, period: Any = None, **settings: Any) -> UpdateLoop:
    network = network_parameters([VHeadParameters()], VECTOR, create_target_network=True, batch_size=B)
    algorithm = AlgorithmParameters()
    algorithm.num_consecutive_training_steps = updates
    algorithm.num_steps_between_copying_online_weights_to_target = period or EnvironmentSteps(1000)
    rules, clock = rules or Rules(), TrainingClock(algorithm)
    rules.clock = clock
    return UpdateLoop(
        rules, {"main": wrap(network, spaces(VECTOR, DISCRETE))}, source or Source(),
        clock, Signals(), NoInputFilter(), FiniteWatch(), UpdateSettings({"main": network}, algorithm, **settings),
    )  # fmt: skip


def both(network: Any) -> list[np.ndarray]:
    """All weights of the online and of the target network."""
    return [
        np.concatenate([weights.ravel() for weights in one.get_weights()])
        for one in (network.online_network, network.target_network)
    ]


def test_a_phase_is_one_call_and_counts_its_updates():
    source = Source()
    loop = loop_of(source=source, updates=6)
    first, second = float(loop.learn(6)), float(loop.learn(6))
    assert 0 < second < first
    assert source.asked == [6, 6] and loop._clock.updates == 12
    assert loop.learner.num_compilations == 1
    assert source.errors == [], "it did not want them"
    signals = {signal.name: signal.flat() for signal in loop._signals.episode_signals}
    assert len(signals["Loss"]) == len(signals["Grads (unclipped)"]) == len(signals["Largest"]) == 12
    assert len(signals["Learning Rate"]) == 2


def test_more_updates_than_a_phase_has_are_made_by_calls_of_a_phase():
    source = Source()
    loop = loop_of(source=source, updates=3)
    float(loop.learn(7))
    assert source.asked == [3, 3, 1] and loop._clock.updates == 7


def test_a_phase_is_cut_by_the_most_updates_of_a_call():
    source = Source()
    loop = loop_of(source=source, updates=6, most_per_call=4)
    float(loop.learn(6))
    assert source.asked == [4, 2] and loop._clock.updates == 6 and loop.learner.num_compilations == 1


def test_targets_are_copied_where_they_are_due_between_the_updates_of_a_phase():
    source = Source()
    loop = loop_of(source=source, updates=30, period=TrainingSteps(20))
    float(loop.learn(30))
    assert source.asked == [20, 10] and loop._clock.last_target_update == 20
    network = loop._networks["main"]
    online, target = both(network)
    assert not np.array_equal(online, target)
    float(loop.learn(10))
    online, target = both(network)
    np.testing.assert_array_equal(online, target)


@pytest.mark.parametrize("name", ["gives_many_at_once", "learns_one_by_one"])
def test_updates_that_depend_on_each_other_are_calls_of_their_own(name):
    source, rules = Source(), Rules()
    source.gives_many_at_once, rules.learns_one_by_one = name != "gives_many_at_once", name == "learns_one_by_one"
    source.wants_errors = True
    loop = loop_of(rules, source, updates=3)
    float(loop.learn(3))
    assert source.asked == [1, 1, 1] and loop._clock.updates == 3
    assert [errors.shape for errors in source.errors] == [(B,)] * 3
    assert all((errors >= 0).all() for errors in source.errors)
    assert (source.errors[2] < source.errors[0]).all()


def test_an_algorithm_may_learn_without_a_rule():
    rules = Rules()
    rules.learns_by_rule = False
    loop = loop_of(rules, updates=2)
    assert float(loop.learn(2)) == 0.5 and loop._clock.updates == 2
    assert loop._signals.loss.values == [0.25, 0.25] and loop._signals.gradients.values == [3.0, 3.0]


def test_a_network_is_taught_by_one_update_of_so_many():
    loop = loop_of(updates=4, periods={"main": 2})
    losses = [float(loop.learn(1)) for _ in range(6)]
    assert losses[0] == losses[1] > losses[2] == losses[3] > losses[4] == losses[5]
