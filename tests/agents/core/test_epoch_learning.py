"""Learning in epochs of minibatches, without an agent: when a phase begins, and which rows each update gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.epochs import DIVERGENCE, EpochLearning
from rl_coach.architectures.policies import log_probabilities
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import Batch, EnvironmentEpisodes, EnvironmentSteps, PlayUnit, Transition

ROWS = 10


class Updates:
    """Stands for the update loop, and notes what it was asked for."""

    batch_size = 4

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.order: list[str] = []

    def filtered(self, batch: Batch) -> Batch:
        return batch

    def update(self, **how: Any) -> Any:
        self.calls.append(how)
        count = how["count"]
        signals = {DIVERGENCE: np.arange(count, dtype=float)}
        return SimpleNamespace(signal_names=[DIVERGENCE], signals=signals, losses={"main": np.full(count, 2.0)})

    def update_targets_if_due(self) -> None:
        self.order.append("targets")

    def close_phase(self) -> None:
        self.order.append("closed")


class Copies(list):
    """Two actors, which are not columns."""

    are_in_columns = False

    def __init__(self) -> None:
        super().__init__(range(2))


def played() -> Batch:
    state = {"observation": np.zeros(1, np.float32)}
    return Batch([Transition(state, 0, 1.0, state, game_over=i == ROWS - 1) for i in range(ROWS)])


def learning(sequence_length: int | None = None, length: int = ROWS, **settings: Any) -> Any:
    """One that notes in ``cuts`` what it did. :param length: of the memory"""
    updates = Updates()
    memory = SimpleNamespace(length=lambda: length, get_all_complete_episodes_transitions=played)
    clock = SimpleNamespace(
        updates=5, minibatches=0, steps=70, episodes=3, last_phase=10, is_due=lambda in_episode: not in_episode(),
        start_phases=lambda updates_left: settings.get("phases", 1),
    )  # fmt: skip
    algorithm = AlgorithmParameters()
    algorithm.num_consecutive_playing_steps = settings.get("period", EnvironmentSteps(64))
    middleware = SimpleNamespace(sequence_length=sequence_length)
    policy = SimpleNamespace(
        name="main",
        is_recurrent=sequence_length is not None,
        network_parameters=SimpleNamespace(middleware_parameters=middleware),
        optimizer=SimpleNamespace(learning_rate=lambda training_step: 0.001),
    )
    agent = SimpleNamespace(
        clock=clock, memory=memory, update_loop=updates, ap=SimpleNamespace(algorithm=algorithm), is_on_policy=False,
        rng=np.random.default_rng(1), parallel=Copies() if settings.get("copies") else None, is_played_elsewhere=False,
        episode=SimpleNamespace(buffer=SimpleNamespace(is_complete=not settings.get("in_episode", False))),
        cut_episode=lambda: updates.order.append("cut"),
        experience=SimpleNamespace(require_parts_of_episodes=lambda: None),
    )  # fmt: skip
    made: Any = EpochLearning(
        agent,
        policy,  # type: ignore[arg-type]
        columns=lambda batch: {"weights": np.ones(len(batch), np.float32), "x": np.arange(len(batch))},
        make_updates=lambda columns: made.make_epochs(columns, 2),
    )
    return made


def test_a_phase_is_one_training_step_of_several_epochs():
    one = learning(copies=True)
    assert one.learn() == 2.0
    updates = one._update_loop
    assert updates.order == ["cut", "cut", "targets", "closed"]
    (call,) = updates.calls
    assert call["training_step"] == 5 and one._agent.clock.updates == 6
    assert call["count"] == 6, "two epochs of three minibatches"
    epochs = call["indices"][:6].reshape(2, -1)
    for epoch in epochs:
        assert sorted(epoch[epoch >= 0]) == list(range(ROWS)), "each row once"
    assert not np.array_equal(*epochs)
    assert one.divergence == 4.0, "the mean of the last epoch's minibatches, 3, 4 and 5"


def test_phases_that_are_due_at_once_are_made_one_after_the_other():
    one = learning(phases=3)
    assert one.learn() == 6.0
    assert one._update_loop.order == ["targets", "closed"] * 3 and one._agent.clock.updates == 8


def test_minibatches_of_a_recurrent_network_are_of_whole_sequences():
    one = learning(sequence_length=5)
    how = one.minibatches({"weights": np.ones(ROWS, np.float32)}, epochs=1, most=1, size=10)
    assert how["sequence_length"] == 5 and how["count"] == 1
    np.testing.assert_array_equal(np.sort(how["indices"][0].reshape(2, 5), axis=0), [range(5), range(5, 10)])


@pytest.mark.parametrize("rows", [6, 9])
def test_one_compiled_call_serves_fewer_rows_and_epochs(rows):
    one = learning()
    shapes = {
        one.minibatches({"weights": np.ones(count, np.float32)}, epochs, 3, 4)["indices"].shape
        for count, epochs in ((ROWS, 3), (rows, 1))
    }
    assert len(shapes) == 1


def test_one_network_may_learn_alone():
    one, alone = learning(), []

    def update_alone(name: str, signal_names: list[str], **how: Any) -> Any:
        alone.append((name, signal_names, how["num_updates"]))
        return SimpleNamespace(signal_names=signal_names, losses={name: np.ones(how["count"])})

    one._update_loop.update_alone = update_alone
    columns = {"weights": np.ones(ROWS, np.float32)}
    assert one.make_epochs(columns, 1, 10, name="critic", signal_names=["Value Loss"]) == 1.0
    assert alone == [("critic", ["Value Loss"], 10 * 8)] and one.divergence == 0.0


@pytest.mark.parametrize(
    ("settings", "is_due"),
    [({}, True), ({"in_episode": True}, False), ({"length": 0}, False), ({"length": 0, "copies": True}, True)],
)
def test_a_phase_waits_for_what_there_is_to_learn_from(settings, is_due):
    assert learning(**settings).is_due() is is_due


@pytest.mark.parametrize(
    ("period", "left"),
    [(EnvironmentSteps(64), (4, PlayUnit.STEPS)), (EnvironmentEpisodes(20), (7, PlayUnit.EPISODES))],
)
def test_other_processes_play_what_is_left_of_the_period(period, left):
    one = learning(period=period)
    one._agent.clock.episodes = 23
    assert one.left_to_play() == left


def test_log_probabilities_of_what_was_done():
    probabilities = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    found = log_probabilities([probabilities], np.array([2, 0]), None)
    np.testing.assert_allclose(found, [np.log(0.5), np.log(np.finfo(np.float32).tiny)], rtol=1e-6)
    mask = np.array([[True, False, True], [True, True, True]])
    np.testing.assert_allclose(log_probabilities([probabilities], np.array([2, 1]), mask)[0], np.log(0.5 / 0.7))
    mean, deviation = np.zeros((1, 2)), np.full((1, 2), 2.0)
    density = log_probabilities([mean, deviation], np.array([[2.0, 0.0]]), None)
    np.testing.assert_allclose(density, [-0.5 - 2 * np.log(2.0) - np.log(2 * np.pi)], rtol=1e-6)
