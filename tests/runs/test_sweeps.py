"""``coach sweep`` as a person starts and ends it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from rl_coach.runs.comparison import table_of_scores
from rl_coach.runs.lock import lock, unlock
from rl_coach.runs.status import process_is_gone, read_status
from tests.runs.test_several_runs import COACH, ENDLESS, coach, group_of, place, record_of  # noqa: F401
from tests.terminal import terminal

TEN = ",".join(f"0.{digit}" for digit in range(10))
HUGE = "; ".join(
    [f"discount={TEN}", f"learning_rate={TEN}", f"optimizer_epsilon={TEN}", f"evaluation_epsilon={TEN}",
     f"adam_optimizer_beta1={TEN}", f"adam_optimizer_beta2={TEN}", "batch_size=1,2,3,4,5,6,7,8,9,10"]
)  # fmt: skip


def finished(score):
    progress = {"steps": 100, "seconds": 1.0, "last_evaluation": score, "best_evaluation": score}
    return {"state": "finished", "pid": 1, "updated": 1.0, "progress": progress}


def test_a_table_of_settings_the_best_first():
    scores = {"a=1,b=2": [1.0, 3.0], "a=2": [4.0, 2.0, 6.0], "c": [0.0], "d": [0.0]}
    steps = {"a=1,b=2": [3000, 1000], "a=2": [500, 500, 500], "c": [float("nan")], "d": [20]}
    assert table_of_scores(scores, steps) == [
        "         runs  steps  mean  IQM        95% interval  P(best > this)",
        "a=2         3    500     4    4  -0.96868 to 8.9687",
        "a=1,b=2     2  2,000     2    2                   -            0.83",
        "d           1     20     0    0                   -            1.00",
        "c           1      -     0    0                   -            1.00",
    ]
    assert table_of_scores({}, {}) == []


def test_names_of_settings_that_do_not_fit_the_line_are_above_their_numbers():
    long = "learning_rate=0.0001,discount=0.99,batch_size=32,n_step=-1"
    assert table_of_scores({long: [1.0, 3.0]}, {long: [3000, 1000]}) == [
        "  runs  steps  mean  IQM  95% interval  P(best > this)",
        long,
        "     2  2,000     2    2             -",
    ]


def test_of_two_settings_with_the_same_score_that_of_fewer_steps_is_first():
    lines = table_of_scores({"slow": [200.0, 200.0], "fast": [200.0, 200.0]}, {"slow": [9, 8], "fast": [3, 4]})
    assert [line.split()[0] for line in lines[1:]] == ["fast", "slow"]


def test_the_end_of_a_sweep_compares_settings_and_says_how_to_look_at_it(tmp_path):
    group = tmp_path / "group"
    runs = []
    for setting, seed, score in (("discount=0.9", 0, 1.0), ("discount=0.9", 1, 2.0), ("discount=0.5", 0, 0.5)):
        run = {"name": f"{setting},seed={seed}", "seed": seed, "setting": setting, "custom_parameter": "a = 1"}
        runs.append(run)
        (group / run["name"]).mkdir(parents=True)
        (group / run["name"] / "status.json").write_text(json.dumps(finished(score)))
    (group / "runs.json").write_text(json.dumps({"arguments": {"preset": "CartPole_DQN"}, "runs": runs}))
    done = coach(tmp_path, "--resume", group)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "discount=0.9,seed=1: evaluation 2 (best 2), 100 steps in 0:01" in lines
    assert [re.split("  +", line)[:4] for line in lines[3:6]] == [
        ["", "runs", "steps", "mean"], ["discount=0.9", "2", "100", "1.5"], ["discount=0.5", "1", "100", "0.5"]
    ]  # fmt: skip
    assert re.search(r"^compare: \S*coach dashboard -d group --tab compare$", lines[-1])
    assert record_of(group)["statistics"]["discount=0.9"]["mean"] == 1.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["discount=0.9"], "no preset given"),
        (["--resume", "group"], "continue a sweep with: "),
        (["-p", "CartPole_DQN"], "no settings given"),
        (["-p", "CartPole_DQN", "settings.txt"], "'settings.txt' is neither settings (path=value,value) nor a file"),
        (["-p", "CartPole_DQN", "empty.txt"], "'empty.txt' has no settings"),
        (["-p", "CartPole_DQN", "lines.txt"], "lines.txt: 'discount' has a range: use --random N"),
        (["-p", "CartPole_DQN", "discont=0.9"], "did you mean 'discount'"),
        (["-p", "CartPole_DQN", "discount=0.9,1; agent_params.algorithm.discount=0.5"], "are the same setting"),
        (["-p", "CartPole_DQN", HUGE], "10,000,000 runs are more than the limit of 10,000"),
        (["-p", "CartPole_DQN", HUGE, "--random", "20000"], "20,000 runs are more than the limit"),
        (["-p", "CartPole_DQN", "discount=0.9", "--seed", "1", "--seeds", "2"], "give only one of them"),
        (["-p", "CartPole_DQN", "discount=0.9", "--parallell", "2"], "did you mean '--parallel'"),
        (["-p", "CartPole_DQN", "discount=0.9", "--play"], "coach: --play starts one game, and this command starts"),
        (["-p", "CartPole_DQN", "discount=0.9", "--pla"], "unknown flag '--pla'; did you mean '--play'? (see"),
        (["-p", "CartPole_DQN", "discount=0.9", "--steps", "5"], "unknown flag '--steps' (see coach sweep --help)"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, given, said):
    from rl_coach.coach import main

    (tmp_path / "empty.txt").write_text("# nothing\n\n")
    (tmp_path / "lines.txt").write_text("discount=0.9  # one\ndiscount=uniform(0, 1)\n")
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "experiments").exists()


def test_a_run_that_outlived_a_killed_sweep_is_not_begun_a_second_time(tmp_path):
    run = {"name": "discount=0.9", "seed": 0, "setting": "discount=0.9", "custom_parameter": "a = 1"}
    directory = tmp_path / "group" / run["name"]
    directory.mkdir(parents=True)
    (directory / "status.json").write_text(json.dumps({"state": "running", "pid": os.getpid()}))
    document = {"arguments": {"preset": "CartPole_DQN"}, "runs": [run]}
    (tmp_path / "group" / "runs.json").write_text(json.dumps(document))
    lock(directory)
    try:
        done = coach(tmp_path, "--resume", tmp_path / "group")
    finally:
        unlock(directory)
    assert done.returncode == 2 and f"another run (process {os.getpid()}) writes to" in done.stderr
    assert done.stderr.count("\n") == 1 and (directory / "status.json").exists()


@pytest.mark.slow
def test_a_run_that_was_starting_when_its_sweep_was_killed_is_ended_and_begun_again(place):  # noqa: F811
    short = "improve_steps=EnvironmentSteps(200); evaluation_steps=EnvironmentEpisodes(1)"
    command = [*COACH, "sweep", "-p", "guess.py", "discount=0.5,0.9", "--parallel", "2", "-cp", short]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL) as sweep:
        while len(list((place / "experiments").glob("guess/*/discount=*.log"))) < 2:
            assert sweep.poll() is None
        sweep.kill()
    done = coach(place, "--resume", group_of(place))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [run["state"] for run in record_of(group_of(place))["runs"]] == ["finished"] * 2


@pytest.mark.slow
def test_a_run_that_outlived_a_killed_sweep_is_ended_and_goes_on(place):  # noqa: F811
    command = [*COACH, "sweep", "-p", "guess.py", "discount=0.5,0.9", "--parallel", "2", "-cp", ENDLESS]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as sweep:
        while not all(read_status(one).get("state") == "running" for one in below(place)) or len(below(place)) < 2:
            assert sweep.poll() is None
        sweep.kill()
    survivors = [read_status(one)["pid"] for one in below(place)]
    short = "improve_steps=EnvironmentSteps(200); evaluation_steps=EnvironmentEpisodes(1)"
    done = coach(place, "--resume", group_of(place), "-cp", short)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("because the program that started it has ended") == 2
    assert all(process_is_gone(pid) for pid in survivors)
    assert [run["state"] for run in record_of(group_of(place))["runs"]] == ["finished"] * 2


def below(place):  # noqa: F811
    return sorted((place / "experiments").glob("guess/*/discount=*/"))


@pytest.mark.slow
def test_a_sweep_that_was_stopped_or_killed_goes_on(place):  # noqa: F811
    (place / "settings.txt").write_text("learning_rate=1e-4,3e-3; discount=0.5\ndiscount=0.9\n")
    command = [*COACH, "sweep", "-p", "guess.py", "settings.txt", "--parallel", "2", "-cp", ENDLESS]
    with terminal(command, 100, place) as shown:
        assert shown.watch(300, until="Training"), shown.lines()
        shown.send(signal.SIGINT)
        shown.watch(120)
        assert shown.return_code == 130, shown.lines()
        assert re.search(r"^continue all of them: \S*coach --resume experiments/guess/\S+$", "\n".join(shown.lines()),
                         re.MULTILINE)  # fmt: skip
    group = group_of(place)
    names = ["learning_rate=1e-4,discount=0.5", "learning_rate=3e-3,discount=0.5", "discount=0.9"]
    assert [run["name"] for run in record_of(group)["runs"]] == names
    # one was killed so early that it has no checkpoint
    killed = group / names[1]
    shutil.rmtree(killed / "checkpoint", ignore_errors=True)  # on a busy machine there was none
    (killed / "status.json").write_text(json.dumps({"state": "running", "pid": 2**22 + 1}))
    short = "improve_steps=EnvironmentSteps(200); evaluation_steps=EnvironmentEpisodes(1)"
    done = subprocess.run([*COACH, "--resume", str(group), "-cp", short], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert [run["state"] for run in record_of(group)["runs"]] == ["finished"] * 3
    assert all(re.search(rf"^{name}\s+1 ", done.stdout, re.MULTILINE) for name in names), done.stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sweep", "discount=0.9"], "data_store = nfs does not work with several runs on a cluster"),
        (["--seeds", "2"], "data_store = nfs does not work with several runs on a cluster"),
        (["tune", "--steps", "100"], "'cluster.ini' selects a cluster"),
    ],
)
def test_a_cluster_that_cannot_do_it_is_refused(tmp_path, monkeypatch, capsys, command, said):
    from rl_coach.coach import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.ini").write_text(
        "[coach]\norchestrator = kubernetes\nimage = coach\ndata_store = nfs\nnfs_claim = data\n"
    )
    assert main([*command, "-p", "CartPole_DQN", "-dc", "-dcp", "cluster.ini"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "experiments").exists()
