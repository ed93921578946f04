"""Learning from segments, without an agent: which segments make an update, and what becomes of those that wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.episode import SegmentedEpisode
from rl_coach.agents.core.experience import ExperienceChunk
from rl_coach.agents.core.segments import (
    Segment,
    SegmentLearning,
    SegmentReplay,
    SegmentSettings,
    SegmentStart,
)
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import Batch, PlayUnit, Transition


def step(number: int) -> Transition:
    observation = np.full(1, number, np.float32)
    return Transition({"observation": observation}, 0, 1.0, {"observation": observation + 1}, game_over=False)


class Updates:
    """Stands for the update loop, and notes the rows that each update is made of."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self.weights: list[np.ndarray] = []
        self.how: list[dict[str, Any]] = []
        self.alone: list[Segment] = []
        self.num_target_checks = 0

    def filtered(self, batch: Batch) -> Batch:
        return Batch(batch)

    def update(self, columns: dict[str, np.ndarray], **how: Any) -> Any:
        is_row = columns["weights"] > 0
        self.rows.append(columns["states/observation"][is_row].ravel().tolist())
        self.weights.append(columns["weights"][is_row])
        self.how.append(how)
        return SimpleNamespace(losses={"main": np.ones(1)})

    def learn_from_batch(self, segment: Segment) -> float:
        self.alone.append(segment)
        return 1.0

    def update_targets_if_due(self) -> None:
        self.num_target_checks += 1

    def close_phase(self) -> None:
        pass


class Play:
    """Episodes in some copies of an environment, and what learns from them."""

    def __init__(
        self,
        settings: SegmentSettings,
        copies: int = 1,
        state: Any = None,
        learns_by_rule: bool = True,
        columns: Any = None,
        **parts: Any,
    ):
        self.episodes = [SegmentedEpisode(AlgorithmParameters()) for _ in range(copies)]
        self.entered: list[int] = []
        self.noted: list[int | None] = []
        self.updates = Updates()
        self.clock = SimpleNamespace(updates=0)
        self.state = state or {}
        agent = SimpleNamespace(
            segment_settings=lambda: settings,
            update_loop=self.updates,
            clock=self.clock,
            parallel=SimpleNamespace(episodes=self.episodes, enter=self.entered.append),
            recurrent_state=self.state,
            learns_by_rule=learns_by_rule,
            learning_columns=columns or (lambda segment: segment.columns(["observation"], self.state)),
            note_returns=lambda segment: self.noted.append(segment.copy),
        )
        self.learning = SegmentLearning(agent, **parts)

    def steps(self, *numbers: int, ends: bool = False, copy: int = 0) -> None:
        """Play steps with these observations. :param ends: the last one ends the episode"""
        buffer = self.episodes[copy].buffer
        for number in numbers:
            buffer.insert(step(number))
        buffer.is_complete = ends
        if ends:
            buffer.update_discounted_rewards()

    def learn(self) -> float:
        """Learn if it is due, and begin episodes anew that have ended."""
        loss = self.learning.learn() if self.learning.is_due() else 0.0
        for copy, episode in enumerate(self.episodes):
            if episode.buffer.is_complete:
                self.episodes[copy] = SegmentedEpisode(AlgorithmParameters())
        return loss


def sent(*episodes: list[int], complete: bool = True, states: Any = None) -> ExperienceChunk:
    transitions = [step(number) for numbers in episodes for number in numbers]
    places = [SegmentStart(0, complete, states or {}).plain() for _ in episodes]
    return ExperienceChunk(len(transitions), list(map(len, episodes)), Batch(transitions), segment_starts=places)


def test_each_segment_makes_an_update_when_it_is_full_or_its_episode_ends():
    play = Play(SegmentSettings(steps=2))
    play.steps(0)
    assert not play.learning.is_due() and play.learn() == 0.0
    play.steps(1)
    assert play.learn() == 1.0
    play.steps(2, ends=True)
    assert play.learn() == 1.0
    assert play.updates.rows == [[0, 1], [2]] and play.clock.updates == 2
    np.testing.assert_allclose(play.updates.weights[0], [0.5, 0.5])
    assert play.noted == [0], "returns are known at the end of the episode"


def test_nothing_is_learned_once_the_run_wants_no_more_updates():
    play = Play(SegmentSettings(steps=1))
    play.steps(0)
    assert play.learning.learn(0) == 0.0 and play.clock.updates == 0


def test_segments_of_an_episode_wait_for_as_many_episodes_as_make_an_update():
    play = Play(SegmentSettings(steps=2, per_update=2))
    play.steps(0, 1)
    play.learn()
    play.steps(2, ends=True)
    play.learn()
    assert play.clock.updates == 0
    play.steps(3, ends=True)
    assert play.learn() == 1.0
    assert play.updates.rows == [[0, 1, 2, 3]]
    np.testing.assert_allclose(play.updates.weights[0], [0.5, 0.5, 1, 1])


def test_episodes_that_end_together_belong_to_one_update():
    play = Play(SegmentSettings(steps=9, per_update=2), copies=3)
    for copy in range(3):
        play.steps(copy, ends=True, copy=copy)
    play.learn()
    assert play.updates.rows == [[0, 1, 2]] and play.entered == [0, 1, 2]


def test_one_update_of_all_copies_has_as_many_rows_whether_or_not_episodes_end():
    play = Play(SegmentSettings(steps=2, per_update=None), copies=2)
    play.steps(0, copy=0)
    play.steps(10, ends=True, copy=1)
    play.learn()
    assert play.clock.updates == 0
    play.steps(1, copy=0)
    play.steps(11, copy=1)
    play.learn()
    assert play.updates.rows == [[10, 0, 1, 11]]
    np.testing.assert_allclose(play.updates.weights[0], np.full(4, 0.25))


def test_a_recurrent_network_starts_from_the_state_before_each_segment():
    play = Play(SegmentSettings(steps=1, per_update=None), copies=2, state={"h": np.full((1, 1), 7.0)})
    found: list[float] = []
    update = play.updates.update
    play.updates.update = lambda columns, **how: (  # type: ignore[method-assign]
        found.append(columns["states/h"][columns["weights"] > 0].ravel().tolist()),
        update(columns, **how),
    )[1]
    for number in (0, 1):
        for copy in range(2):
            play.steps(number, copy=copy)
        play.learn()
    assert found == [[0, 0], [7, 7]] and [how["sequence_length"] for how in play.updates.how] == [1, 1]


def test_updates_without_a_rule_are_made_of_one_segment_each():
    play = Play(SegmentSettings(steps=2, per_update=5), learns_by_rule=False)
    play.steps(0, 1)
    assert play.learn() == 1.0
    assert len(play.updates.alone) == 1 and not play.updates.rows


def test_segments_are_replayed_after_each_new_one():
    class Memory:
        def num_transitions_in_complete_episodes(self) -> int:
            return 10

        def sample(self, size: int, is_consecutive: bool) -> Batch:
            assert size == 2 and is_consecutive
            return Batch([step(100), step(101)])

    rng = SimpleNamespace(poisson=lambda ratio: 2)
    algorithm = SimpleNamespace(
        ratio_of_replay=2.0, num_steps_between_gradient_updates=2, num_transitions_to_start_replay=9
    )
    replay = SegmentReplay(Memory(), rng, algorithm)  # type: ignore[arg-type]
    rates = {"main": 0.1}
    play = Play(SegmentSettings(steps=1, target_rates=rates), replay=replay)
    play.steps(0)
    assert play.learn() == 3.0
    assert play.updates.rows == [[0], [100, 101], [100, 101]]
    assert [how["target_rates"] for how in play.updates.how] == [rates] * 3


def test_targets_may_be_due_at_each_step():
    play = Play(SegmentSettings(steps=5, updates_targets=True))
    play.steps(0)
    play.learn()
    assert play.updates.num_target_checks == 1 and play.clock.updates == 0


# segments that other processes play


def test_each_process_is_waited_for_and_a_round_makes_an_update():
    play = Play(SegmentSettings(steps=2))
    play.learning.num_players = 2
    play.learning.take_in(sent([0, 1], complete=False))
    assert play.learning.left_to_play() == (1, PlayUnit.SEGMENTS) and not play.learning.is_due()
    play.learning.take_in(sent([2]))
    play.learn()
    assert play.updates.rows == [[0, 1, 2]] and play.clock.updates == 1 and play.noted == [None]
    np.testing.assert_allclose(play.updates.weights[0], [1 / 3] * 3)


def test_no_more_of_them_make_updates_than_the_run_wants():
    """Where each makes one: where segments are replayed, the rule corrects for the policy that played them."""
    play = Play(SegmentSettings(steps=1), replay=SimpleNamespace(draw=list))
    play.learning.take_in(sent([0], [1], [2]))
    play.learning.learn(2)
    assert play.updates.rows == [[0], [1]]


def test_a_network_is_asked_once_about_all_that_make_one_update():
    asked: list[int] = []

    def predict(inputs: dict[str, np.ndarray], squeeze_output: bool) -> list[np.ndarray]:
        asked.append(len(inputs["observation"]))
        return [inputs["observation"] * 2]

    online = SimpleNamespace(recurrent_state={}, output_names=["v"], predict=predict)
    network = SimpleNamespace(online_network=online, input_names=["observation"])
    found: list[list[float]] = []

    def columns(segment: Segment) -> dict[str, np.ndarray]:
        assert segment.outputs is not None
        found.append(segment.outputs["v"].ravel().tolist())
        return segment.columns(["observation"], {})

    play = Play(SegmentSettings(steps=2, per_update=None), columns=columns, asked=network)
    play.learning.num_players = 2
    for played in (sent([0, 1]), sent([5])):
        play.learning.take_in(played)
    play.learn()
    assert asked == [5] and found == [[0, 2, 4], [10, 12]] and play.updates.rows == [[0, 1, 5]]


@pytest.mark.parametrize("has_arrived", [False, True])
def test_what_waits_goes_on_from_its_state(has_arrived):
    first, second = (Play(SegmentSettings(steps=2, per_update=2)) for _ in range(2))
    if has_arrived:
        first.learning.take_in(sent([0]))
    else:
        first.steps(0, ends=True)
        first.learn()
    second.learning.set_state({**first.learning.get_state(), "counters": {}})
    for play in (first, second):
        if has_arrived:
            play.learning.take_in(sent([1]))
        else:
            play.steps(1, ends=True)
        play.learn()
        assert play.updates.rows == [[0, 1]]


def test_a_checkpoint_of_before_counts_episodes_elsewhere():
    first, second = (Play(SegmentSettings(steps=2, per_update=2)) for _ in range(2))
    first.steps(0, ends=True)
    first.learn()
    state = first.learning.get_state()
    state["counters"] = {"_episodes_gathered": state.pop("episodes_waiting"), "_steps_since_update": 1}
    second.learning.set_state(state)
    second.steps(1, ends=True)
    second.learn()
    assert second.updates.rows == [[0, 1]]
