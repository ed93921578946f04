"""Rows of signals, without an agent."""

from __future__ import annotations

import csv
import pathlib

import numpy as np

from rl_coach.agents.core.episode import EpisodeReport
from rl_coach.agents.core.signals import RowUnit, Signals
from rl_coach.core_types import RunPhase


def rows_of(signals: Signals, directory: pathlib.Path) -> list[dict[str, str]]:
    signals.close()
    (path,) = directory.glob("*.csv")
    return list(csv.DictReader(path.open()))


def opened(directory: pathlib.Path, period: int = 1, row_unit: RowUnit = RowUnit.EPISODE) -> Signals:
    signals = Signals(period=period, row_unit=row_unit)
    signals.logger.set_logger_filenames(str(directory), "graph.level.agent", 0)
    return signals


def report(reward: float = 3.0, phase: RunPhase = RunPhase.TRAIN) -> EpisodeReport:
    return EpisodeReport(phase, 5, reward, reward / 2)


def test_what_is_learned_after_an_episode_belongs_to_its_row(tmp_path):
    signals = opened(tmp_path)
    signals.loss.add_sample(1.0)
    signals.write_episode(report(), {"Training Iter": 2, "Total steps": 5}, 1)
    signals.loss.add_sample(np.array([3.0, 5.0]))
    signals.learning_rate.add_sample(0.1)
    signals.note_updates(4)
    signals.begin_episode(1)
    signals.loss.add_sample(9.0)
    signals.write_episode(report(4.0), {"Training Iter": 4, "Total steps": 10}, 2)
    first, second = rows_of(signals, tmp_path)
    assert (first["Episode #"], first["Training Iter"], first["Total steps"]) == ("1", "4", "5")
    assert float(first["Loss/Mean"]) == 3 and float(first["Loss/Max"]) == 5
    assert float(first["Learning Rate/Mean"]) == 0.1
    assert float(first["Training Reward"]) == 3 and float(first["Shaped Training Reward"]) == 1.5
    assert second["Episode #"] == "2" and float(second["Loss/Mean"]) == 9 and second["Learning Rate/Mean"] == ""


def test_an_update_of_targets_is_told_in_the_row_in_which_it_happens(tmp_path):
    signals = opened(tmp_path)
    signals.note_target_update()
    signals.write_episode(report(), {}, 1)
    signals.begin_episode(1)
    signals.write_episode(report(), {}, 2)
    signals.note_target_update()
    signals.begin_episode(2)
    signals.write_episode(report(), {}, 3)
    assert [row["Update Target Network"] for row in rows_of(signals, tmp_path)] == ["1", "1", "0"]


def test_the_means_of_an_evaluation_stand_in_the_row_before_it(tmp_path):
    signals = opened(tmp_path)
    assert signals.end_evaluation(0) is None
    signals.write_episode(report(), {}, 1)
    signals.begin_evaluation()
    for reward in (10.0, 20.0, 60.0):
        signals.evaluation.add(report(reward), success_threshold=20)
    assert signals.end_evaluation(1) == 30 and signals.last_success_rate == 2 / 3
    assert signals.end_evaluation(1) is None, "an evaluation is told once"
    (row,) = rows_of(signals, tmp_path)
    assert (float(row["Evaluation Reward"]), float(row["Shaped Evaluation Reward"])) == (30, 15)
    assert float(row["Success Rate"]) == 2 / 3


def test_an_evaluation_leaves_the_samples_of_training_alone():
    signals = Signals()
    signals.loss.add_sample(1.0)
    aside = signals.put_samples_aside()
    signals.begin_episode(0)
    signals.loss.add_sample(2.0)
    signals.take_up_samples(aside)
    assert signals.loss.values == [1.0]


def test_episodes_of_another_process_are_collected_not_written():
    signals = Signals()
    signals.reports = []
    signals.loss.add_sample(1.5)
    signals.write_episode(report(), {}, 1)
    ((played,),) = [signals.reports]
    assert played.reward == 3 and played.signals["Loss"][0].tolist() == [1.5]
    receiving = Signals()
    receiving.write_episode(played, {}, 1)
    assert receiving.loss.flat().tolist() == [1.5]


def test_the_state_goes_on():
    one, other = Signals(), Signals()
    one.loss.add_sample(1.0)
    one.last_success_rate = 0.5
    other.set_state(one.get_state())
    assert other.loss.values == [1.0] and other.last_success_rate == 0.5


def test_a_row_of_an_epoch_is_written_at_once(tmp_path):
    signals = opened(tmp_path, row_unit=RowUnit.EPOCH)
    signals.loss.add_sample(1.0)
    signals.begin_episode(0)
    signals.loss.add_sample(3.0)
    signals.write_row(1, {"Training Iter": 4}, epoch=1)
    signals.begin_evaluation()
    signals.evaluation.add(report(8.0), success_threshold=None)
    assert signals.end_evaluation(1) == 8
    signals.loss.add_sample(9.0)
    signals.write_row(2, {"Training Iter": 8}, epoch=2)
    signals.loss.add_sample(99.0)
    first, second = rows_of(signals, tmp_path)
    assert (first["Episode #"], first["Epoch"], first["Training Iter"]) == ("1", "1", "4")
    assert float(first["Loss/Mean"]) == 2, "of all episodes of the epoch"
    assert float(first["Evaluation Reward"]) == 8 and second["Evaluation Reward"] == ""
    assert (second["Episode #"], float(second["Loss/Mean"]), second["Training Reward"]) == ("2", 9, "")


def test_rows_have_the_same_columns_whatever_they_are_about(tmp_path):
    headers = []
    for unit in RowUnit:
        (tmp_path / unit.value).mkdir()
        signals = opened(tmp_path / unit.value, row_unit=unit)
        if unit is RowUnit.EPISODE:
            signals.write_episode(report(), {"Training Iter": 2}, 1)
        else:
            signals.write_episode(report(), {"Training Iter": 2}, 1)  # writes none
            signals.write_row(10, {"Training Iter": 10}, None)
        (row,) = rows_of(signals, tmp_path / unit.value)
        headers.append(list(row))
    assert headers[0] == headers[1] == headers[2]


def test_samples_of_an_evaluation_are_not_part_of_an_epoch():
    signals = Signals(row_unit=RowUnit.EPOCH)
    signals.loss.add_sample(1.0)
    aside = signals.put_samples_aside()
    signals.begin_episode(0)
    signals.loss.add_sample(2.0)
    signals.take_up_samples(aside)
    assert signals.loss.values == [1.0]
