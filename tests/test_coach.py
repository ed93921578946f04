"""The command line, from its arguments to exit codes and what it leaves on the disk."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

from rl_coach import __version__, coach
from rl_coach.base_parameters import Frameworks, PresetValidationParameters
from rl_coach.coach import BAD_INPUT, DONE, STOPPED, TRAINING_FAILED, CoachInterface, main
from rl_coach.core_types import EnvironmentSteps, MaxDumpFilter
from rl_coach.logger import screen
from rl_coach.utils import CoachError
from tests.zoo.presets import RECORDER


@pytest.fixture(autouse=True)
def experiment(tmp_path, monkeypatch):
    """A directory of its own with the preset ``recorder.py`` in it, and the process's settings put back afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    (tmp_path / "recorder.py").write_text(RECORDER)
    return tmp_path


def everything_below(directory: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if "__pycache__" not in path.parts)


def fails_with(capsys, *arguments: str) -> str:
    """The only line on stderr of a command line that is bad input; nothing may be left on the disk."""
    before = everything_below(pathlib.Path.cwd())
    assert main(arguments) == BAD_INPUT
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1, captured.err
    assert everything_below(pathlib.Path.cwd()) == before
    return captured.err


def test_trains_in_a_directory_of_its_own(experiment):
    assert main(["-p", "recorder.py", "-e", "mine", "-ep", "runs"]) == DONE
    (csv,) = (experiment / "runs" / "mine").glob("*/signals.csv")
    assert csv.read_text() == "done"


def test_the_experiment_is_named_after_the_preset(experiment):
    assert main(["-p", "recorder.py"]) == DONE
    assert list((experiment / "experiments" / "recorder").glob("*/signals.csv"))


def test_two_runs_share_no_directory(experiment):
    for _ in range(3):
        assert main(["-p", "recorder.py"]) == DONE
    assert len(list((experiment / "experiments" / "recorder").glob("*/signals.csv"))) == 3


def test_flags_reach_the_task():
    (pathlib.Path.cwd() / "there").mkdir()
    manager = CoachInterface(
        preset="recorder.py", seed=7, evaluate=100, use_cpu=True, checkpoint_save_secs=60,
        checkpoint_restore_dir="there", apply_stop_condition=True,
    ).graph_manager  # fmt: skip
    task = manager.task_parameters
    assert task.framework_type is Frameworks.tensorflow
    assert (task.seed, task.evaluate_only, task.use_cpu) == (7, 100, True)
    assert (task.checkpoint_save_secs, task.checkpoint_restore_path) == (60, "there")
    assert task.checkpoint_save_dir == os.path.join(task.experiment_path, "checkpoint")
    assert task.apply_stop_condition is True
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "-1"


def test_flags_that_are_not_given_change_nothing():
    manager = CoachInterface(preset="recorder.py").graph_manager
    assert (manager.task_parameters.seed, manager.task_parameters.evaluate_only) == (None, None)
    assert manager.env_params.level == "CartPole-v0"
    assert not manager.visualization_parameters.render


def test_evaluate_without_a_number_goes_on_until_stopped():
    assert CoachInterface(preset="recorder.py", evaluate=True).graph_manager.task_parameters.evaluate_only == 0


def test_visualization_flags():
    flags = {"dump_gifs": True, "dump_mp4": True, "tensorboard": True, "print_networks_summary": True}
    visualization = CoachInterface(preset="recorder.py", **flags).graph_manager.visualization_parameters
    assert all(getattr(visualization, name) for name in flags)
    assert isinstance(visualization.video_dump_filters[0], MaxDumpFilter)


def test_a_level_replaces_the_presets():
    assert CoachInterface(preset="recorder.py", level="Acrobot-v1").graph_manager.env_params.level == "Acrobot-v1"


def test_types_replace_the_presets():
    manager = CoachInterface(
        preset="recorder.py",
        environment_type="rl_coach.environments.gym_environment:Atari",
        exploration_policy_type="rl_coach.exploration_policies.greedy:GreedyParameters",
        level="pong",
    ).graph_manager
    assert type(manager.env_params).__name__ == "Atari"
    assert manager.env_params.level == "pong"
    assert type(manager.agent_params.exploration).__name__ == "GreedyParameters"


@pytest.mark.parametrize(
    ("preset", "exploration"),
    [
        ("tuned/Pendulum_TD3", "state_dependent_noise:StateDependentNoise"),
        ("CartPole_DQN", "parameter_noise:ParameterNoise"),
    ],
)
def test_an_exploration_that_is_made_from_the_agents_parameters(preset, exploration):
    named = f"rl_coach.exploration_policies.{exploration}Parameters"
    agent = CoachInterface(preset=preset, exploration_policy_type=named).graph_manager.agent_params
    assert type(agent.exploration).__name__ == named.partition(":")[2]
    assert agent.exploration.network_params is agent.network_wrappers


def test_custom_parameters():
    custom = "improve_steps=EnvironmentSteps(5); agent_params.algorithm.discount=0.5"
    manager = CoachInterface(preset="recorder.py", custom_parameter=custom).graph_manager
    assert manager.improve_steps == EnvironmentSteps(5)
    assert manager.agent_params.algorithm.discount == 0.5


def test_run_returns_the_graph_manager(experiment):
    interface = CoachInterface(preset="recorder.py", experiment_path=str(experiment / "x"))
    assert interface.run() is interface.graph_manager
    assert list(experiment.glob("x/recorder/*/signals.csv"))


def test_keywords_that_are_false_or_none_are_left_out():
    manager = CoachInterface(preset="recorder.py", render=False, seed=None, level=None).graph_manager
    assert manager.task_parameters.seed is None


def test_two_interfaces_share_no_parameters():
    one, other = CoachInterface(preset="recorder.py"), CoachInterface(preset="recorder.py")
    one.graph_manager.agent_params.algorithm.discount = 0.1
    assert other.graph_manager.agent_params.algorithm.discount == 0.99


def test_the_way_to_play_it_back_is_a_command_line(experiment):
    manager = CoachInterface(preset="recorder.py", level="Acrobot-v1").graph_manager
    hint = manager.playback_hint
    assert "coach evaluate experiments/recorder/" in hint


def test_what_is_said_at_the_end():
    assert not CoachInterface(preset="recorder.py").graph_manager.prints_only_counts
    assert CoachInterface(preset="recorder.py", no_summary=True).graph_manager.prints_only_counts
    assert CoachInterface(preset="recorder.py", evaluate=10).graph_manager.playback_hint is None


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "no preset given"),
        (["-lvl", "", "-p", "recorder.py"], "argument -lvl/--level: the value is empty"),
        (["-crd", "", "-p", "recorder.py"], "argument -crd/--checkpoint_restore_dir: the value is empty"),
        (["--sed", "3", "-p", "recorder.py"], "unknown flag '--sed'; did you mean '--seed'"),
        (["-p"], "expected one argument"),
        (["-p", "CartPole_DNQ"], "no preset 'CartPole_DNQ'; did you mean 'CartPole_DQN'"),
        (["-p", "nowhere.py"], "no file 'nowhere.py'"),
        (["-p", "."], "no preset '.'"),
        (["-p", " "], "no preset ' '"),
        (["--resume", ""], "'' is not a directory"),
        (["--resume", "n" * 300], "File name too long"),
        (["evaluate", ""], "'' is not a directory"),
        (["evaluate", "n" * 300], "File name too long"),
        (["-p", "recorder.py:other"], "no graph manager called 'other'; it has bare, graph_manager"),
        (["-p", "recorder.py", "-f", "pytorch"], "'pytorch'"),
        (["-p", "recorder.py", "--seed", "one"], "'one' is not a whole number"),
        (["-p", "recorder.py", "--seed", "-1"], "-1 is too small"),
        (["-p", "recorder.py", "-s", "0"], "0 is too small"),
        (["-p", "recorder.py", "-n", "0"], "0 is too small"),
        (["-p", "recorder.py", "-v", "loud"], "'loud'"),
        (["-p", "recorder.py", "-cp", "discount=0.5"], "did you mean 'agent_params.algorithm.discount'?"),
        (["-p", "recorder.py", "-cp", "improve_steps=EnvironmentStep(5)"], "did you mean 'EnvironmentSteps'"),
        (["-p", "recorder.py", "-cp", "improve_steps=open('x', 'w')"], "'open' cannot be called"),
        (["-p", "recorder.py", "-cp", "improve_steps"], "does not have the form path=value"),
        (["-p", "recorder.py:bare", "-lvl", "x"], "-lvl cannot change this preset: its Bare has no 'env_params'"),
        (["-p", "recorder.py:bare", "-ept", "x:Y"], "-ept cannot change this preset"),
        (["-p", "Tag_DQN", "-ept", "x:Y"], "-ept changes one agent, and this preset has 2 (hunters, prey)"),
        (["-p", "TwoStep_VDN", "--play"], "--play: a person cannot play one of several players"),
        (["-p", "recorder.py", "-et", "nothing"], "-et nothing"),
        (["-p", "recorder.py", "-et", "rl_coach.no_module:Class"], "no module 'rl_coach.no_module'"),
        (["-p", "recorder.py", "-et", "rl_coach.environments.gym_environment:Atar"], "did you mean 'Atari'"),
        (["-p", "recorder.py", "-crd", "nowhere"], "no checkpoint at 'nowhere'"),
        (["-p", "recorder.py", "-crd", ".", "-crf", "recorder.py"], "give only one of them"),
        (["-p", "recorder.py", "-ep", "recorder.py"], "cannot be written"),
        (["-p", "recorder.py", "-e", "/tmp/absolute"], "cannot be an experiment's name"),
        (["-p", "Atari_DQN", "-lvl", "pongg"], "no level 'pongg'; did you mean 'pong'"),
        (["-p", "recorder.py", "-ew"], "-ew: workers that share weights need actor-critic or a similar agent"),
        (["-p", "recorder.py", "-dc", "-ew"], "-ew has no effect with -dc"),
        (["-p", "recorder.py", "-dc", "--play"], "-dc trains: leave out --play"),
        (["-p", "recorder.py", "-dc", "--evaluate"], "-dc trains: leave out --evaluate"),
        (["-p", "recorder.py", "-dcp", "x.cfg"], "--distributed_coach_config_path: only with -dc"),
        (["-p", "recorder.py", "--dump_worker_logs"], "--dump_worker_logs: only with -dc"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(capsys, arguments, part):
    assert part in fails_with(capsys, *arguments)


def failing(when: str, what: str) -> list[str]:
    return ["-p", "recorder.py", "-cp", f"env_params.additional_simulator_parameters[{when!r}]={what!r}"]


@pytest.mark.parametrize("when", ["build", "run"])
def test_bad_input_that_shows_late_leaves_nothing(capsys, when):
    assert "bad in" in fails_with(capsys, *failing(when, "bad"))


def test_directories_that_were_there_stay(capsys, experiment):
    (experiment / "experiments" / "recorder").mkdir(parents=True)
    fails_with(capsys, *failing("build", "bad"))


def test_training_that_fails_exits_with_1(capsys):
    assert main(failing("run", "nan")) == TRAINING_FAILED
    assert capsys.readouterr().err == "coach: nan in run\n"


def test_a_bug_shows_its_stack():
    with pytest.raises(ZeroDivisionError):
        main(failing("run", "bug"))


def test_stopping_from_the_keyboard(capsys):
    assert main(failing("run", "stop")) == STOPPED
    assert capsys.readouterr().err == "coach: stopped\n"


def test_stopping_from_the_keyboard_before_it_begins_leaves_nothing(capsys):
    assert main(failing("build", "stop")) == STOPPED
    assert capsys.readouterr().err == "coach: stopped\n" and not os.path.exists("experiments")


def test_bad_keywords_raise():
    with pytest.raises(CoachError, match="did you mean '--seed'"):
        CoachInterface(preset="recorder.py", sed=1)


@pytest.mark.parametrize("keyword", [{"budget": "1min"}, {"list": True}, {"at_once": 2}, {"version": True}])
def test_flags_of_the_command_are_no_keywords(keyword):
    (name,) = keyword
    with pytest.raises(CoachError, match=rf"^{name}=.*: CoachInterface does not have this keyword"):
        CoachInterface(preset="recorder.py", **keyword)


def test_a_callback_of_another_class_is_refused():
    with pytest.raises(CoachError, match=r"^callbacks is \[3\], not a list of objects of"):
        CoachInterface(preset="recorder.py", callbacks=[3])


@pytest.mark.parametrize("seeds", [3, "0-2", [0, 1], 0])
def test_several_seeds_are_of_the_command(seeds):
    with pytest.raises(CoachError, match=r"^seeds=.*: CoachInterface starts only one run.*seed=.*each seed$"):
        CoachInterface(preset="recorder.py", seeds=seeds)
    assert not os.path.exists("experiments")


def test_several_seeds_are_gone_on_with_by_the_command(tmp_path):
    (tmp_path / "runs.json").write_text('{"runs": []}')
    with pytest.raises(CoachError, match=r"^resume='.*': CoachInterface starts only one run"):
        CoachInterface(resume=str(tmp_path))


def test_the_keywords_are_the_flags():
    parameters = inspect.signature(CoachInterface).parameters.values()
    names = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
    assert names - {"callbacks"} == coach.command_line.keywords()  # objects, which no flag can name
    parser = coach.command_line.get_argument_parser()
    types = {one.name: one.annotation for one in parameters}
    for action in parser._actions:
        if action.nargs == 0 and action.dest in types:
            assert types[action.dest] == "bool", action.dest


def test_list_shows_environment_and_algorithm(capsys):
    with pytest.raises(SystemExit) as exit_code:
        main(["--list"])
    assert exit_code.value.code == DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["preset", "environment", "algorithm", "score", "target"]
    assert any(line.split() == ["CartPole_DQN", "CartPole-v0", "DQN", ">=", "150"] for line in lines)


def test_list_shows_what_contains_a_text_with_its_score(capsys):
    with pytest.raises(SystemExit):
        main(["--list", "PENDULUM-v1"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["tuned", "preset", "environment", "algorithm", "score", "target"] in lines and ["preset"] not in lines
    measured = next(line for line in lines if line[:1] == ["tuned/Pendulum_TD3"])
    assert measured[1:3] == ["Pendulum-v1", "TD3"] and -160 < float(measured[3]) < -100
    assert not any("CartPole" in cell for line in lines for cell in line)
    with pytest.raises(SystemExit):
        main(["--list", "CartPole_DQN"])
    assert re.search(r"^CartPole_DQN +CartPole-v0 +DQN +>= 150$", capsys.readouterr().out, re.MULTILINE)
    assert "no preset contains 'nothing'" in fails_with(capsys, "--list", "nothing")


@pytest.mark.parametrize("columns, widest", [(60, 80), (80, 80), (130, 130)])
@pytest.mark.parametrize("command", [[], ["evaluate"], ["export"], ["check-env"], ["dataset"]], ids=str)
def test_help_fits_the_terminal(capsys, monkeypatch, command, columns, widest):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    lengths = [len(line) for line in capsys.readouterr().out.splitlines()]
    assert max(lengths) <= widest and (command or max(lengths) > widest - 15)


def test_help_groups_the_flags_and_shows_examples(capsys):
    with pytest.raises(SystemExit) as exit_code:
        main(["--help"])
    assert exit_code.value.code == DONE
    text = capsys.readouterr().out
    for group in (
        "the experiment:",
        "changes to the preset:",
        "running:",
        "checkpoints and export:",
        "several workers:",
    ):
        assert f"\n{group}\n" in text
    assert text.partition("examples:")[2].count("coach -p") == 5


def test_every_flag_of_coach_is_there():
    flags = {flag for action in coach.CoachLauncher().get_argument_parser()._actions for flag in action.option_strings}
    short = "-p -l -e -ep -r -f -n -c -ew -v -tfv -s -crd -crf -dg -dm -et -ept -lvl -cp -tb -ns -d -onnx -dc -dcp -asc"
    long = "--play --evaluate --nocolor --print_networks_summary --seed --dump_worker_logs --list --preset"
    assert flags >= {*short.split(), *long.split()}


def test_heavy_packages_are_not_imported_for_help_and_list():
    program = (
        "import sys; from rl_coach import coach, launcher; launcher.preset_catalogue.summaries(); "
        "coach.command_line.get_argument_parser().format_help(); "
        "print([name for name in ('numpy', 'tensorflow', 'keras', 'gymnasium', 'rich') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_installed_program(experiment):
    program = pathlib.Path(sysconfig.get_path("scripts")) / "coach"
    done = subprocess.run([program, "-p", "recorder.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (DONE, "")
    bad = subprocess.run([program, "-p", "recorde.py"], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stderr) == (BAD_INPUT, "coach: no file 'recorde.py'\n")


def test_validation_parameters_are_open_to_cp():
    manager = CoachInterface(preset="recorder.py", custom_parameter="preset_validation_params.test=True").graph_manager
    assert isinstance(manager.preset_validation_params, PresetValidationParameters)
    assert manager.preset_validation_params.test


@pytest.mark.parametrize("program", [["-m", "rl_coach"], ["-m", "rl_coach.coach"]])
def test_the_version(program):
    run = subprocess.run([sys.executable, *program, "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"coach {__version__}\n"


KERAS_FIRST = """
import keras, sys
print("imported", file=sys.stderr, flush=True)
from rl_coach.coach import CoachInterface
settings = "improve_steps=EnvironmentSteps(20); heatup_steps=EnvironmentSteps(100)"
CoachInterface(preset="CartPole_DQN", seed=1, custom_parameter=settings).run()
print("a line of the user's", file=sys.stderr, flush=True)
"""


def test_keras_imported_first_does_not_flood_the_screen(tmp_path):
    variables = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-c", KERAS_FIRST]
    run = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
    note, *lines = run.stderr.partition("imported\n")[2].splitlines()
    assert note.startswith("level 'CartPole-v0': using 'CartPole-v1'") and lines == ["a line of the user's"]


@pytest.mark.parametrize("flags, mark", [((), ""), (("--nocolor",), "!!!! ")])
def test_an_error_is_marked_for_programs(capsys, monkeypatch, flags, mark):
    monkeypatch.setattr(screen, "_use_colors", True)
    assert main(["-p", "no_such_preset", *flags]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"{mark}coach: no preset 'no_such_preset'")
