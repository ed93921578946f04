"""The ending, the reports and the state of a run, each with the values that it needs and no graph manager."""

from __future__ import annotations

import signal

import pytest

from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TotalStepsCounter, TrainingSteps
from rl_coach.graph_managers.checkpointing import GraphState, lost_episode, unmet_by
from rl_coach.graph_managers.clean_ending import LastCheckpoint, ending_cleanly
from rl_coach.graph_managers.improvement import Improvement
from rl_coach.graph_managers.reports import Reports
from rl_coach.graph_managers.run_seeds import RunSeeds
from rl_coach.runs.progress import Goal, Progress
from rl_coach.runs.status import RunStatus, read_status
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utilities.stop_signals import StopSignals
from rl_coach.utils import CheckpointError, TrainingError


def elsewhere():
    raise CheckpointError("it is elsewhere")


class Run:
    """A run of nothing, which notes what its ending does."""

    def __init__(self, directory, paths=("there",), is_played=False):
        self.directory = directory
        self.written: list[bool] = []
        self.signals = StopSignals()
        self.has_left = False
        self._paths = iter(paths)
        self._is_played = is_played

    def write(self, failed=False):
        self.written.append(failed)
        return next(self._paths)

    def leave(self):
        self.has_left = True

    def context(self, saves=True):
        status, checkpoint = RunStatus(self.directory), LastCheckpoint(self.write, elsewhere, "coach --resume")
        return ending_cleanly(
            Progress(), status, self.signals, self.leave, checkpoint if saves else None, self._is_played
        )

    @property
    def state(self):
        return read_status(self.directory)["state"]


# the ending


def test_a_run_that_ends_says_so_and_saves_nothing_by_itself(tmp_path):
    run = Run(tmp_path)
    with run.context():
        assert run.state == "running"
    assert run.state == "finished" and run.has_left and run.written == []


@pytest.mark.parametrize(("saves", "written"), [(True, [False]), (False, [])])
def test_an_interrupted_run_leaves_a_checkpoint_if_it_saves_any(tmp_path, saves, written, capsys):
    run = Run(tmp_path)
    with pytest.raises(KeyboardInterrupt), run.context(saves):
        run.signals.ask(signal.SIGINT)
        run.signals.stop_if_asked()
    assert run.state == "stopped" and run.has_left and run.written == written
    assert ("continue with: coach --resume" in capsys.readouterr().out) is saves


def test_the_middle_of_a_step_is_not_worth_keeping(tmp_path):
    run = Run(tmp_path)
    with pytest.raises(KeyboardInterrupt), run.context():
        raise KeyboardInterrupt
    assert run.state == "stopped" and run.written == []


def test_a_person_who_plays_leaves_with_ctrl_c(tmp_path):
    run = Run(tmp_path, is_played=True)
    with run.context(saves=False):
        raise KeyboardInterrupt
    assert run.state == "finished" and run.has_left


def test_a_failed_run_leaves_its_state_for_a_look_at_it(tmp_path):
    run = Run(tmp_path)
    with pytest.raises(TrainingError), run.context():
        raise TrainingError("the loss is nan")
    assert run.state == "failed" and run.written == [True] and run.has_left


def test_a_checkpoint_that_cannot_be_written_is_tried_again_and_then_written_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("rl_coach.graph_managers.clean_ending._PAUSES_BETWEEN_TRIES", (0.0, 0.0))
    assert LastCheckpoint(Run(tmp_path, (None, "there")).write, elsewhere).save() == "there"
    run = Run(tmp_path, (None, None, None))
    with pytest.raises(CheckpointError, match="elsewhere"):
        LastCheckpoint(run.write, elsewhere).save()
    assert run.written == [False] * 3


# the reports


def counters(**phases):
    made = {phase: TotalStepsCounter() for phase in RunPhase}
    for name, (steps, episodes, updates) in phases.items():
        counter = made[RunPhase[name]]
        counter[EnvironmentSteps], counter[EnvironmentEpisodes], counter[TrainingSteps] = steps, episodes, updates
    return made


def test_the_status_counts_heatup_and_training_and_knows_the_goal_of_each():
    counts = counters(HEATUP=(40, 4, 0))
    improvement = Improvement(counts[RunPhase.TRAIN])
    reports = Reports(counts, improvement)
    reports.expect(RunPhase.HEATUP, EnvironmentSteps(50))
    counts[RunPhase.HEATUP][EnvironmentSteps] += 10
    assert reports.status(RunPhase.HEATUP, True).goal == Goal(10, 50, "steps")
    improvement.begin()
    improvement.set_end(TrainingSteps(30))
    counts[RunPhase.TRAIN][EnvironmentSteps], counts[RunPhase.TRAIN][TrainingSteps] = 7, 3
    reports.stops_early = True
    status = reports.status(RunPhase.TRAIN, True, [("worker-0", "5/s")])
    assert (status.steps, status.updates, status.episodes) == (57, 3, 0)
    assert status.goal == Goal(3, 30, "updates", True) and status.others == (("worker-0", "5/s"),)
    assert reports.status(RunPhase.UNDEFINED, False).updates == 0
    assert reports.status(RunPhase.UNDEFINED, False).activity == "Starting"


def test_minibatches_count_among_the_updates_of_training_alone():
    counts = counters(TRAIN=(100, 10, 5))
    reports = Reports(counts, Improvement(counts[RunPhase.TRAIN]), more_updates=lambda: 1595)
    assert reports.status(RunPhase.TRAIN, True).updates == 1600
    reports.shown = (RunPhase.TEST,)
    assert reports.status(RunPhase.TEST, True).updates == 0


def test_the_status_of_an_evaluation_counts_nothing_else():
    counts = counters(TRAIN=(100, 10, 50), TEST=(8, 2, 0))
    reports = Reports(counts, Improvement(counts[RunPhase.TRAIN]))
    reports.shown, reports.is_endless = (RunPhase.TEST,), True
    reports.expect(RunPhase.TEST, EnvironmentEpisodes(1))
    counts[RunPhase.TEST][EnvironmentEpisodes] += 1
    status = reports.status(RunPhase.TEST, True)
    assert (status.steps, status.episodes, status.evaluation_steps) == (8, 3, 8)
    assert status.goal == Goal(1, None, "episodes") and status.goal.is_endless


# the state


class Level:
    """A level whose state is a number."""

    def __init__(self, name, number, resumes=True):
        self.name, self.number, self.resumes = name, number, resumes

    def get_state(self):
        return {"number": self.number, "episode": {"steps": 3}}

    def set_state(self, state):
        self.number = state["number"]

    def resume_saved_episode(self, state):
        return self.resumes


def state_of(levels, **phases):
    counts = counters(**phases)
    return GraphState(counts, levels, Progress(), Improvement(counts[RunPhase.TRAIN]), RunSeeds(5))


def test_a_state_goes_from_one_run_to_another():
    one = state_of([Level("top", 1), Level("bottom", 2)], TRAIN=(9, 2, 4))
    one.improvement.begin()
    saved = one.get(False, False)
    other = state_of([Level("top", 0), Level("bottom", 0)])
    other.set(saved)
    again = other.get(False, False)
    del saved["progress"], again["progress"]  # of which the clock is a part
    assert repr(again) == repr(saved)
    assert [level.number for level in other.levels] == [1, 2]
    assert other.counters[RunPhase.TRAIN][EnvironmentSteps] == 9 and other.improvement.has_begun


@pytest.mark.parametrize(
    ("saved", "resumes", "expected"),
    [
        ((False, False), True, (False, False)),
        ((False, False), False, (True, True)),
        ((True, False), True, (True, False)),
    ],
)
def test_an_episode_goes_on_if_every_level_can(saved, resumes, expected):
    state = state_of([Level("top", 1), Level("bottom", 2, resumes)])
    assert state.resume_episode(state.get(*saved)) == expected


def test_an_episode_is_lost_that_a_level_could_not_save():
    state = state_of([Level("top", 1)])
    saved = state.get(False, False)
    assert not lost_episode(saved)
    saved["levels"]["top"]["episode"] = None
    assert lost_episode(saved) and not lost_episode({**saved, "reset_required": [True, False]})


def test_checkpoints_differ_by_the_number_of_actions_if_they_contain_it():
    here = {"action space main": repr(DiscreteActionSpace(3))}
    earlier = {"action space main": "DiscreteActionSpace(shape=(1,), descriptions={})"}  # of earlier versions
    assert list(unmet_by({"fits": here}, None, here)) == list(unmet_by({"fits": earlier}, None, here)) == []
    for other in (repr(DiscreteActionSpace(2)), "", None):
        (line,) = unmet_by({"fits": {"action space main": other}}, None, here)
        assert line.endswith("here it is DiscreteActionSpace(shape=(1,), descriptions={}, num_actions=3)")
