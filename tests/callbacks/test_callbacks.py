"""Callbacks of a run: when they are called, what they can ask for, and what becomes of their failures."""

import pathlib

import numpy as np
import pandas
import pytest

from rl_coach import make_agent
from rl_coach.callbacks import (
    Callback,
    FilmEvaluations,
    Histograms,
    NotebookProgress,
    SaveEvery,
    StopOnPlateau,
    StopOnReward,
)
from rl_coach.callbacks.callback import RunView
from rl_coach.checkpoint import CheckpointStateReader
from rl_coach.coach import CoachInterface, main
from rl_coach.command_line.user_classes import make_callbacks
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.graph_managers.graph_manager import GraphManager
from rl_coach.graph_managers.run_callbacks import RunCallbacks
from rl_coach.logger import screen
from rl_coach.runs import histogram_file
from rl_coach.utils import CallbackError, CoachError
from tests.faults.processes import SHORT
from tests.zoo.graphs import counting_graph, schedule
from tests.zoo.runs import created, resumed

CSV = "worker_0.simple_rl_graph.main_level.main_level.agent_0.csv"


class Recorder(Callback):
    """Notes each call, with the phase and the steps of training."""

    def __init__(self):
        self.calls = []

    def of(self, hook, phase=None):
        return [steps for name, at, steps in self.calls if name == hook and phase in (None, at)]

    def _note(self, hook, run):
        self.calls.append((hook, run.phase, run.steps))

    def on_run_start(self, run):
        self._note("run start", run)

    def on_run_end(self, run):
        self._note("run end", run)

    def on_phase(self, run):
        self._note("phase", run)

    def on_step(self, run):
        self._note("step", run)

    def on_episode_end(self, run):
        self._note("episode", run)

    def on_update(self, run):
        self._note("update", run)

    def on_evaluation_end(self, run):
        self._note("evaluation", run)

    def on_new_best(self, run):
        self._note("best", run)

    def on_checkpoint(self, run):
        self._note("checkpoint", run)


class Asking(Callback):
    """Asks for something after some steps of training."""

    def __init__(self, steps, ask):
        self.steps, self.ask = steps, ask

    def on_step(self, run):
        if run.phase is RunPhase.TRAIN and run.steps in self.steps:
            self.ask(run)


class Failing(Callback):
    """Fails in one of its methods, after 30 steps of training."""

    def __init__(self, hook):
        setattr(self, hook, self.fail)

    def fail(self, run):
        if run.steps >= 30:
            raise ZeroDivisionError("by me")


class Counter(Callback):
    """Logs how many steps it has seen."""

    def __init__(self):
        self.seen = 0

    def on_step(self, run):
        self.seen += run.phase is RunPhase.TRAIN
        run.log("Seen", self.seen)

    def get_state(self):
        return {"seen": self.seen}

    def set_state(self, state):
        self.seen = state["seen"]


class NotACallback:
    pass


def trained(tmp_path, *callbacks, steps=100):
    """A run in episodes of five steps, with an evaluation of two episodes every 20 steps, each of the same reward."""
    graph = counting_graph(tmp_path, schedule(steps, 20, 2, heatup=10))
    graph.use_callbacks(callbacks)
    graph.improve()
    return graph


def steps_of(graph):
    return graph.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps]


# when they are called


def test_each_hook_is_called_where_it_says(tmp_path):
    recorder = Recorder()
    graph = trained(tmp_path, recorder)
    for phase in (RunPhase.HEATUP, RunPhase.TRAIN, RunPhase.TEST):
        counter = graph.total_steps_counters[phase]
        assert len(recorder.of("episode", phase)) == counter[EnvironmentEpisodes] > 0
        assert len(recorder.of("step", phase)) == counter[EnvironmentSteps] > 0
    assert recorder.of("step", RunPhase.TRAIN) == list(range(1, 101))
    assert len(recorder.of("update")) == graph.total_steps_counters[RunPhase.TRAIN][TrainingSteps] == 100
    assert recorder.of("evaluation") == [20, 40, 60, 80, 100]
    assert recorder.of("best") == [20]
    assert recorder.of("checkpoint") == [100]
    phases = [phase for hook, phase, _ in recorder.calls if hook == "phase"]
    assert phases[:4] == [RunPhase.HEATUP, RunPhase.TRAIN, RunPhase.TEST, RunPhase.TRAIN]
    assert RunPhase.UNDEFINED not in phases
    hooks = [hook for hook, _, _ in recorder.calls]
    assert hooks[0] == "run start" and hooks[-1] == "run end"
    assert hooks.count("run start") == hooks.count("run end") == 1


def test_they_see_the_run(tmp_path):
    seen = []
    graph = trained(
        tmp_path,
        Asking([42], lambda run: seen.append((run.steps, run.episodes, run.updates, run.seed, run.checkpoint))),
    )
    assert seen == [(42, 8, 41, graph.seed, None)]
    view = graph._run_callbacks.view
    assert view.evaluation_rewards == tuple(graph.evaluation_rewards) and len(view.evaluation_rewards) == 2
    assert view.last_evaluation == view.best_evaluation == view.episode_reward
    assert view.checkpoint == graph.last_checkpoint_path
    assert view.experiment_path == str(tmp_path)


def test_a_run_with_callbacks_learns_as_one_without(tmp_path):
    with_callbacks, without = created("DQN", 150, tmp_path / "with"), created("DQN", 150, tmp_path / "without")
    with_callbacks.use_callbacks([Recorder(), Counter(), SaveEvery(40)])
    for graph in (with_callbacks, without):
        graph.run()
    weights = [graph.get_agent().networks["main"].online_network.get_weights() for graph in (with_callbacks, without)]
    assert all(np.array_equal(one, other) for one, other in zip(*weights))


# what they can ask for


def test_a_hook_that_is_not_overridden_is_not_called():
    class Updates(Callback):
        def on_update(self, run):
            run.log("updates", run.updates)

    silent, of_an_instance = Callback(), Callback()
    of_an_instance.on_step = lambda run: None
    for callbacks, heard in (([silent], (False, False)), ([silent, Updates()], (False, True)),
                             ([of_an_instance], (True, False))):  # fmt: skip
        hooks = RunCallbacks(callbacks, RunView(GraphManager("g", schedule(1, 1, 1))), lambda name: None)
        assert (hooks.hear_steps, hooks.hear_updates) == heard


def test_a_method_with_the_name_of_no_hook_is_told_of(capsys):
    class Wrong(Callback):
        def on_training_end(self, run):
            raise AssertionError

        def on_evaluation_ends(self, run):
            raise AssertionError

        def on_run_end(self, run):
            pass

    hooks = RunCallbacks([Wrong(), Callback()], RunView(GraphManager("g", schedule(1, 1, 1))), lambda name: None)
    hooks.create(None)
    told = [line for line in capsys.readouterr().out.splitlines() if "callback" in line]
    assert len(told) == 2 and all("callback Wrong: Coach never calls" in line for line in told)
    assert "'on_evaluation_ends'; did you mean 'on_evaluation_end'" in told[0] and "'on_training_end'" in told[1]


def test_states_of_other_callbacks_are_told_of(capsys):
    def hooks(*callbacks):
        return RunCallbacks(callbacks, RunView(GraphManager("g", schedule(1, 1, 1))), lambda name: None)

    states = hooks(StopOnPlateau(), Callback()).get_state()
    assert list(states) == ["0 StopOnPlateau"]
    for others in ([], [StopOnPlateau()], [StopOnPlateau(), Callback()]):
        hooks(*others).set_state(states)
        assert "not restored" not in capsys.readouterr().out
    hooks(Callback(), StopOnPlateau()).set_state(states)
    told = capsys.readouterr().out
    assert "states of StopOnPlateau are not restored" in told and "(Callback, StopOnPlateau)" in told


def test_a_callback_can_stop_the_run(tmp_path, capsys):
    recorder = Recorder()
    graph = trained(tmp_path, Asking([33], lambda run: run.stop("enough")), recorder)
    assert steps_of(graph) == 33
    assert recorder.of("evaluation") == [20, 33], "it ends with an evaluation, as a run always does"
    assert recorder.of("checkpoint") == [33]
    assert "training stops: enough" in capsys.readouterr().out
    graph.use_callbacks([])
    graph._continues = True
    graph.improve()
    assert steps_of(graph) == 100, "what was stopped can go on"


def test_a_callback_can_evaluate_and_save_at_once(tmp_path):
    recorder = Recorder()
    trained(tmp_path, Asking([33, 34], lambda run: run.evaluate()), Asking([47], lambda run: run.save()), recorder)
    assert recorder.of("evaluation")[:3] == [20, 33, 34]
    assert recorder.of("checkpoint") == [47, 100]
    assert [one.name for one in CheckpointStateReader(str(tmp_path / "checkpoint")).get_all()] == [
        "0_Step-47.ckpt",
        "1_Step-100.ckpt",
    ]


def test_what_is_logged_stands_in_the_csv_also_after_a_resume(tmp_path):
    first = created("DQN", 150, tmp_path)
    first.use_callbacks([Counter()])
    first.run()
    counter = Counter()
    second = resumed("DQN", 300, tmp_path)
    second.use_callbacks([counter])
    second.restore_checkpoint(continue_run=True)
    assert counter.seen == 150
    second.run()
    rows = pandas.read_csv(tmp_path / CSV)
    heatup, training = rows[rows["In Heatup"] == 1], rows[rows["In Heatup"] == 0]
    seen = training["Total steps"] - heatup["Total steps"].iloc[-1]
    assert (training["Seen/Max"] == seen).all() and seen.iloc[-1] > 200


# failures


@pytest.mark.parametrize("hook", ["on_step", "on_episode_end", "on_update", "on_evaluation_end", "on_phase"])
def test_a_callback_that_fails_is_named_and_nothing_is_lost(tmp_path, hook):
    graph = counting_graph(tmp_path, schedule(100, 20, 2, heatup=10))
    graph.use_callbacks([Failing(hook)])
    with pytest.raises(CallbackError, match=rf"Failing failed in {hook}: .*test_callbacks.py:\d+: ZeroDivision"):
        graph.improve()
    (checkpoint,) = CheckpointStateReader(str(tmp_path / "checkpoint")).get_all()
    assert checkpoint.name == f"0_Step-{steps_of(graph)}.ckpt" and steps_of(graph) >= 30


def test_one_that_fails_at_the_end_changes_nothing(tmp_path, capsys):
    recorder = Recorder()
    trained(tmp_path, Failing("on_run_end"), recorder)
    assert "callback Failing failed in on_run_end" in "".join(capsys.readouterr())
    assert recorder.of("run end") == [100]


FAILURES = {
    "a set": ("def get_state(self): return {'rewards': {1, 2}}", "get_state", 1),
    "an array of objects": ("def get_state(self): return {'a': np.array([None])}", "get_state", 1),
    "get_state raises": ("def get_state(self): return {'x': self.nope}", "get_state", 1),
    "a set, later": (
        "def get_state(self): return {'x': {1} if self.ended else 1}\n"
        "    ended = False\n"
        "    def on_episode_end(self, run): self.ended = run.phase is RunPhase.TRAIN",
        "get_state", 1,
    ),
    "sys.exit": ("def on_step(self, run): run.steps < 30 or sys.exit(3)", "on_step", 1),
    "KeyboardInterrupt": ("def on_step(self, run):\n        if run.steps == 30: raise KeyboardInterrupt", "on_step", 1),
    "no text": ("def on_episode_end(self, run): raise Mute", "on_episode_end", 1),
    "on_checkpoint": ("def on_checkpoint(self, run): raise Mute", "on_checkpoint", 1),
    "on_creation": ("def on_creation(self, graph_manager): raise Mute", "on_creation", 2),
    "sys.exit at creation": ("def on_creation(self, graph_manager): sys.exit()", "on_creation", 2),
    "sys.exit in the constructor": ("def __init__(self): sys.exit('no')", "--callback", 2),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
def test_no_failure_of_a_callback_loses_training(tmp_path, monkeypatch, capsys, failure):
    method, where, code = FAILURES[failure]
    (tmp_path / "mine.py").write_text(
        "import sys\nimport numpy as np\nfrom rl_coach.callbacks import Callback\n"
        "from rl_coach.core_types import RunPhase\n\n"
        "class Mute(Exception):\n    def __str__(self): raise ValueError\n\n"
        f"class Mine(Callback):\n    {method}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(screen, "_use_colors", False)  # as --nocolor does, until the end of this test
    settings = SHORT.format(steps=300)
    given = ["-p", "CartPole_DQN", "-e", "e", "--callback", "mine.py:Mine", "--checkpoint_save_steps", "100"]
    assert main([*given, "-cp", settings, "-ns", "--nocolor"]) == code
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "Mine" in line]
    assert where in line
    saved = list(tmp_path.glob("experiments/e/*/checkpoint/*.ckpt"))
    assert bool(saved) == (code == 1)


def test_a_run_goes_on_without_the_state_of_a_callback_that_cannot_be_restored(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "from rl_coach.callbacks import Callback\n\nclass Mine(Callback):\n"
        "    def get_state(self): return {'x': 1}\n    def set_state(self, state): state['y']\n"
    )
    monkeypatch.chdir(tmp_path)
    given = ["-p", "CartPole_DQN", "-e", "e", "--callback", "mine.py:Mine", "-cp", SHORT.format(steps=20), "-ns"]
    assert main(given) == 0
    (run,) = (tmp_path / "experiments" / "e").iterdir()
    capsys.readouterr()
    assert main(["--resume", str(run)]) == 2
    error = capsys.readouterr().err
    assert "callback Mine failed in set_state" in error and "mine.py:5: KeyError" in error


class EveryTen(Callback):
    """Counts in which steps ten more steps were made."""

    def __init__(self):
        self.steps = []

    def on_step(self, run):
        if run.every(10):
            self.steps.append(run.steps)


def test_every_n_steps_with_several_copies_after_heatup_and_across_a_resume(tmp_path):
    watch = EveryTen()
    agent = make_agent("DQN", env="CartPole-v1", num_envs=3, heatup_steps=12, seed=0)
    agent.learn(99, callback=watch)
    assert watch.steps == [12, 21, 30, 42, 51, 60, 72, 81, 90]
    later = EveryTen()
    agent.learn(12, callback=later)
    assert later.steps == [102, 111]
    with pytest.raises(CallbackError, match="n must be 1 or more"):
        agent.learn(3, callback=EveryNothing())


class EveryNothing(Callback):
    def on_step(self, run):
        run.every(0)


# those that come with Coach


def test_stop_on_reward(tmp_path):
    reward = trained(tmp_path / "whole").evaluation_rewards[0]
    assert steps_of(trained(tmp_path / "reached", StopOnReward(reward))) == 20
    assert steps_of(trained(tmp_path / "missed", StopOnReward(reward + 1))) == 100


def test_stop_on_plateau(tmp_path):
    assert steps_of(trained(tmp_path / "1", StopOnPlateau(1))) == 40, "the second evaluation is as good as the first"
    assert steps_of(trained(tmp_path / "3", StopOnPlateau(3))) == 80
    first = StopOnPlateau(3)
    trained(tmp_path / "first", first, steps=40)
    second = StopOnPlateau(3)
    second.set_state(first.get_state())
    assert second._without == 1


def test_save_every(tmp_path):
    recorder = Recorder()
    trained(tmp_path, SaveEvery(30), recorder)
    assert recorder.of("checkpoint") == [30, 60, 90, 100]


def test_films_of_evaluations(tmp_path):
    graph = created("DQN", 1, tmp_path / "unused")
    graph = type(graph)(
        graph.agent_params, graph.env_params, schedule(60, 20, 2, heatup=10), graph.visualization_parameters
    )
    graph.callbacks = [FilmEvaluations(every=2)]
    graph.create_graph(created("DQN", 1, tmp_path).task_parameters).run()
    assert len(list((tmp_path / "gifs").glob("*.gif"))) == 2, "of the first and the third of three evaluations"


def test_histograms_of_actions_and_weights(tmp_path):
    trained(tmp_path, Histograms())  # an agent without networks
    (actions,) = histogram_file.read(tmp_path).values()
    assert [(row["steps"], sum(row["counts"])) for row in actions] == [(20 * n, 20) for n in range(1, 6)]
    graph = created("DQN", 1, tmp_path / "unused")
    graph = type(graph)(
        graph.agent_params, graph.env_params, schedule(40, 20, 2, heatup=10), graph.visualization_parameters
    )
    graph.callbacks = [Histograms()]
    graph.create_graph(created("DQN", 1, tmp_path / "dqn").task_parameters).run()
    found = histogram_file.read(tmp_path / "dqn")
    arrays = next(iter(graph.level_managers[0].agents.values())).networks["main"].online_network.get_weights()
    weights = [rows for name, rows in found.items() if ": main, array " in name]
    assert [sum(rows[-1]["counts"]) for rows in weights] == [array.size for array in arrays]
    assert len(found) == len(arrays) + 1 and all(len(rows) == 2 for rows in found.values())


def test_a_line_in_a_notebook(tmp_path, monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    display = pytest.importorskip("IPython.display")
    monkeypatch.setattr(display, "display", lambda data, **how: shown.append(data["text/plain"]) or Handle())
    trained(tmp_path, NotebookProgress(episodes=5))
    assert shown[0] == "0 steps, 0 episodes"
    assert shown[-1].startswith("100 steps, 20 episodes, last reward ") and "evaluation" in shown[-1]


@pytest.mark.parametrize(
    "make", [lambda: StopOnPlateau(0), lambda: SaveEvery(0), lambda: FilmEvaluations(0), lambda: NotebookProgress(0)]
)
def test_settings_that_mean_nothing_are_refused(make):
    with pytest.raises(CoachError, match="it must be 1 or more"):
        make()


# the command line and Python


def test_callbacks_by_name():
    first, second = make_callbacks("StopOnReward(reward=1e2); rl_coach.callbacks:SaveEvery(steps=5)")
    assert isinstance(first, StopOnReward) and first.reward == 100 and second.steps == 5
    (own,) = make_callbacks(f"{pathlib.Path(__file__)}:Recorder")
    assert own.calls == []


@pytest.mark.parametrize("name", ["kind", "flag", "base", "takes_all", "offered", "module_and_class"])
def test_an_argument_of_a_callback_may_have_any_name(tmp_path, name):
    path = tmp_path / "mine.py"
    path.write_text(
        "from rl_coach.callbacks import Callback\n"
        f"class Mine(Callback):\n    def __init__(self, {name}):\n        self.given = {name}\n"
    )
    (own,) = make_callbacks(f"{path}:Mine({name}=3)")
    assert own.given == 3


@pytest.mark.parametrize(
    "text, message",
    [
        ("StopOnRewad(reward=1)", "StopOnReward"),
        ("StopOnReward", "reward"),
        ("StopOnReward(reward=open('x'))", "cannot be called here"),
        ("StopOnReward(5)", "give arguments by name"),
        ("StopOnReward(reward=", "cannot be read"),
        ("nowhere:Thing", "no module 'nowhere'"),
        (f"{__file__}:NotACallback", "must be a subclass of Callback"),
        ("SaveEvery(steps=0)", "must be 1 or more"),
    ],
)
def test_bad_names_are_one_line(text, message):
    with pytest.raises(CoachError, match="--callback") as caught:
        make_callbacks(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_from_the_command_line_and_python(tmp_path):
    recorder = Recorder()
    coach = CoachInterface(
        preset="CartPole_DQN", callback="SaveEvery(steps=50)", callbacks=[recorder], experiment_path=str(tmp_path),
        custom_parameter="improve_steps=EnvironmentSteps(120); heatup_steps=EnvironmentSteps(100)",
    )  # fmt: skip
    coach.run()
    assert recorder.of("checkpoint")[:2] == [50, 100]
    assert recorder.of("run end") == [120]


def test_objects_cannot_go_to_workers():
    with pytest.raises(CoachError, match="callback="):
        CoachInterface(preset="CartPole_A3C", num_workers=2, callbacks=[Recorder()])


@pytest.mark.parametrize("callbacks", [Recorder(), [Recorder]])
def test_callbacks_of_the_interface_are_a_list_of_objects(callbacks):
    with pytest.raises(CoachError, match=r"not a list of objects of .*: write callbacks=\[MyCallback\(\)\]"):
        CoachInterface(preset="CartPole_DQN", callbacks=callbacks)
