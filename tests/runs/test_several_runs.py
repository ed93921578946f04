"""Several runs side by side, as a person starts and ends them: the program ``coach`` in a terminal."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import types

import numpy as np
import pytest

from rl_coach.coach import main
from rl_coach.command_line import several_runs
from rl_coach.command_line.arguments import get_argument_parser
from rl_coach.runs import experiments, run_group, side_by_side
from rl_coach.utils import CoachError
from tests.terminal import terminal

COACH = [sys.executable, "-m", "rl_coach"]
PRESET = '''
import os
import sys

import gymnasium
import numpy as np
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters


class Guess(gymnasium.Env):
    """A reward for each action that is the sign of the first number; in its 60th step it fails where FAULT is a flag,
    and dies where DEATH is one."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    steps, total = 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {}

    def _observe(self):
        self.seen = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.seen

    def step(self, action):
        self.steps += 1
        self.total += 1
        if self.total == 60 and os.environ.get("DEATH") in sys.argv:
            os._exit(7)
        if self.total == 60 and os.environ.get("FAULT") in sys.argv:
            raise ZeroDivisionError("the world has ended")
        reward = float(action == (self.seen[0] > 0))
        return self._observe(), reward, False, self.steps >= 20, {}


schedule = ScheduleParameters()
schedule.heatup_steps = EnvironmentSteps(40)
schedule.improve_steps = EnvironmentSteps(200)
schedule.steps_between_evaluation_periods = EnvironmentSteps(100)
schedule.evaluation_steps = EnvironmentEpisodes(5)
agent = DQNAgentParameters()
agent.network_wrappers["main"].batch_size = 8
graph_manager = BasicRLGraphManager(agent, GymVectorEnvironment(f"{os.path.abspath(__file__)}:Guess"), schedule)
'''
WORKERS = (
    PRESET
    + """
from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters

schedule.heatup_steps = EnvironmentSteps(0)
agent = ActorCriticAgentParameters()
agent.algorithm.apply_gradients_every_x_episodes = 1
agent.algorithm.num_steps_between_gradient_updates = 5
graph_manager = BasicRLGraphManager(agent, GymVectorEnvironment(f"{os.path.abspath(__file__)}:Guess"), schedule)
"""
)
ENDLESS = "improve_steps=EnvironmentSteps(10**8); steps_between_evaluation_periods=EnvironmentSteps(10**8)"


LUCKY = (
    PRESET.replace("float(action == (self.seen[0] > 0))", "float(self.np_random.normal()) / 20**0.5")
    .replace("EnvironmentEpisodes(5)", "EnvironmentEpisodes(1)")
    .replace("EnvironmentSteps(200)", "EnvironmentSteps(4000)")
    + "graph_manager.env_params.custom_reward_threshold = 1.0\n"
)
"""Total rewards of a normal distribution around 0, in which an evaluation of one episode reaches 1 by chance."""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "guess.py").write_text(PRESET)
    return tmp_path


def group_of(place, name="guess"):
    (found,) = (place / "experiments" / name).iterdir()
    return found


def record_of(group):
    return json.loads((group / "runs.json").read_text())


def rewards_of(run):
    with open(next(run.glob("*.csv")), newline="") as file:
        return [(row["Training Reward"], row["Evaluation Reward"], row["Loss/Mean"]) for row in csv.DictReader(file)]


def test_a_run_that_an_evaluation_has_stopped_is_scored_by_new_episodes(place):
    (place / "lucky.py").write_text(LUCKY)
    done = coach(place, "-p", "lucky.py", "--seeds", "2", "-asc", "-ns", "-f", "jax")
    assert done.returncode == 0, done.stderr
    document = record_of(group_of(place, "lucky"))
    steps = [run["steps_to_target"] for run in document["runs"]]
    said = f"steps to the target: mean {sum(steps) / 2:,.0f}, {min(steps):,} to {max(steps):,}, reached by 2 of 2"
    assert said in done.stdout and "new evaluations: mean " in done.stdout
    assert document["statistics"][""]["mean"] < 0.75
    for run in document["runs"]:
        evaluated = [float(reward) for _, reward, _ in rewards_of(group_of(place, "lucky") / run["name"]) if reward]
        assert evaluated[-1] == pytest.approx(run["score"])
        assert run["steps"] == run["steps_to_target"]


@pytest.mark.slow
def test_seeds_train_side_by_side_and_end_with_statistics(place):
    command = [*COACH, "-p", "guess.py", "--seeds", "0-2", "--at_once", "2"]
    with terminal(command, 160, place) as shown:
        shown.watch(300)
        assert shown.return_code == 0, shown.lines()
        sights, end = shown.sights, "\n".join(shown.lines())
    everything = "\n".join(sight.text for sight in sights)
    assert re.search(r"^seed 0 +starting .*\nseed 1 +starting .*\n1 more$", everything, re.MULTILINE)
    group = group_of(place)
    scores = []
    for seed in range(3):
        rewards = rewards_of(group / f"seed_{seed}")
        scores.append(float([evaluated for _, evaluated, _ in rewards if evaluated][-1]))
        assert re.search(rf"^seed {seed}: evaluation {scores[-1]:.5g} \(best \S+\), 240 steps in", end, re.MULTILINE)
    mean, deviation = np.mean(scores), np.std(scores, ddof=1)
    interval = r"\(95% interval \S+ to \S+\)"
    assert re.search(
        rf"^last evaluations: mean {mean:.5g} {interval}, standard deviation {deviation:.5g}, inter", end, re.M
    )
    statistics = record_of(group)["statistics"][""]
    assert statistics["mean"] == pytest.approx(mean) and statistics["low"] <= statistics["high"]
    assert "starting" not in end and re.search(r"^look at it: \S*coach dashboard$", end.splitlines()[-1])

    runs = experiments.load(place / "experiments").runs
    assert set(runs["experiment"]) == {f"guess/{group.name}"} and list(runs["seed"]) == [0, 1, 2]
    # a seed trains as it does alone
    alone = [*COACH, "-p", "guess.py", "--seed", "2", "-e", "alone", "-ns"]
    assert subprocess.run(alone, cwd=place, capture_output=True, timeout=300).returncode == 0
    assert rewards_of(group / "seed_2") == rewards_of(group_of(place, "alone"))

    evaluate = [*COACH, "evaluate", str(group), f"experiments/alone/{group_of(place, 'alone').name}", "--steps", "60"]
    done = subprocess.run(evaluate, cwd=place, capture_output=True, timeout=300, text=True)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(r"mean reward \S+, 3 episodes$", done.stdout, re.MULTILINE)) == 4
    assert re.search(r"^guess: mean \S+ \(95% interval .*\), standard deviation .*, 4 runs$", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_a_seed_that_fails_leaves_the_others_alone(place):
    with terminal([*COACH, "-p", "guess.py", "--seeds", "0,7", "-ns"], 600, place, FAULT="--seed=7") as shown:
        shown.watch(300)
        assert shown.return_code == 1
        end = "\n".join(shown.lines())
    group = group_of(place)
    assert len(re.findall(r"seed 7 failed: .*ZeroDivisionError: the world has ended", end)) == 1
    assert "seed_7.log" in end and "Traceback" not in end
    assert re.search(r"^seed 0: evaluation", end, re.MULTILINE)
    runs = record_of(group)["runs"]
    assert [run["state"] for run in runs] == ["finished", "failed"] and "world has ended" in runs[1]["error"]
    assert "ZeroDivisionError: the world has ended" in (group / "seed_7.log").read_text()


@pytest.mark.slow
def test_a_seed_that_dies_without_a_word_has_failed(place):
    with terminal([*COACH, "-p", "guess.py", "--seeds", "0,7", "-ns"], 600, place, DEATH="--seed=7") as shown:
        shown.watch(300)
        assert shown.return_code == 1
        end = "\n".join(shown.lines())
    assert re.search(r"seed 7 failed: ended with exit code 7 \(its output: ", end)
    died = record_of(group_of(place))["runs"][1]
    assert (died["state"], died["error"]) == ("failed", "ended with exit code 7")


@pytest.mark.parametrize("settings", [{}, {"setting": "discount=0.9"}])
def test_a_score_that_is_no_number_does_not_count_and_is_named(tmp_path, capsys, settings):
    runs = [{"name": f"seed_{seed}", "seed": seed, **settings} for seed in range(3)]
    run_group.write(tmp_path, {"arguments": {"preset": "CartPole_DQN"}, "runs": runs})
    for run, score in zip(runs, (100.0, float("nan"), 200.0)):
        (tmp_path / run["name"]).mkdir()
        status = {"state": "finished", "progress": {"steps": 50, "last_evaluation": score}}
        (tmp_path / run["name"] / "status.json").write_text(json.dumps(status))
    with pytest.raises(SystemExit, match="0"):
        main(["--resume", str(tmp_path)])
    printed = "".join(capsys.readouterr())
    assert "warning: the score of seed 1 is not a finite number, and does not count" in printed
    assert record_of(tmp_path)["statistics"][settings.get("setting", "")]["mean"] == 150


@pytest.mark.parametrize(
    ("code", "last_line", "error"),
    [
        (7, "Training - | steps 1,200", "ended with exit code 7"),
        (7, "!!!! not the last of its words", "ended with exit code 7"),
        (1, "Training - | steps 1,200", "ended with exit code 1"),
        (2, "coach: no such preset", "no such preset"),
        (-9, "Training - | steps 1,200", "was killed by signal 9"),
    ],
)
def test_a_run_that_ends_badly_has_failed_for_a_reason(tmp_path, code, last_line, error):
    outcome = side_by_side.Outcome(side_by_side.Job("seed 0", [], tmp_path), code, {"state": "running"}, last_line)
    assert (outcome.error, outcome.state) == (error, "failed")


@pytest.mark.slow
def test_seeds_that_are_stopped_say_how_to_go_on_and_do(place):
    command = [*COACH, "-p", "guess.py", "--seeds", "1,2,3", "--at_once", "2", "-cp", ENDLESS]
    with terminal(command, 160, place) as shown:
        assert shown.watch(300, until="Training"), shown.lines()
        shown.send(signal.SIGINT)
        shown.watch(120)
        assert shown.return_code == 130, shown.lines()
        end = "\n".join(shown.lines())
        assert not shown.screen.cursor.hidden
    group = group_of(place)
    assert re.search(r"^continue all of them: \S*coach --resume experiments/guess/\S+$", end, re.MULTILINE)
    assert len(re.findall(r"^seed [12]: stopped after [\d,]+ steps", end, re.MULTILINE)) == 2
    assert not (group / "seed_3").exists()
    steps = record_of(group)["runs"][0]["steps"]
    short = f"improve_steps=EnvironmentSteps({steps + 100}); evaluation_steps=EnvironmentEpisodes(1)"
    done = subprocess.run(
        [*COACH, "--resume", str(group), "-cp", short], cwd=place, capture_output=True, timeout=400, text=True
    )
    assert done.returncode == 0, done.stdout
    assert [run["state"] for run in record_of(group)["runs"]] == ["finished"] * 3
    assert "3 runs" in done.stdout
    refused = subprocess.run([*COACH, "--resume", str(group), "--seed", "1"], cwd=place, capture_output=True, text=True)
    assert refused.returncode == 2 and "leave out --seed" in refused.stderr


@pytest.mark.slow
def test_seeds_of_several_workers_have_scores_and_statistics(place):
    (place / "guess.py").write_text(WORKERS)
    command = [*COACH, "-p", "guess.py", "--seeds", "2", "-n", "2"]
    done = subprocess.run(command, cwd=place, capture_output=True, timeout=600, text=True)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(r"^seed [01]: evaluation \S+ \(best \S+\), [\d,]+ steps in", done.stdout, re.MULTILINE)) == 2
    assert re.search(r"^last evaluations: mean .*, 2 runs$", done.stdout, re.MULTILINE)
    assert all(run["score"] is not None and run["steps"] >= 400 for run in record_of(group_of(place))["runs"])


@pytest.mark.slow
def test_seeds_of_several_workers_that_are_stopped_are_promised_no_resuming(place):
    (place / "guess.py").write_text(WORKERS)
    with terminal([*COACH, "-p", "guess.py", "--seeds", "1", "-n", "2", "-cp", ENDLESS], 160, place) as shown:
        assert shown.watch(300, until="Training"), shown.lines()
        shown.send(signal.SIGINT)
        shown.watch(120)
        assert shown.return_code == 130, shown.lines()
        end = "\n".join(shown.lines())
    assert "--resume" not in end
    assert re.search(r"^runs with several workers cannot be continued: -crd \S+/seed_0 starts new", end, re.MULTILINE)
    assert re.search(r"^seed 0: stopped after [1-9][\d,]* steps", end, re.MULTILINE)


@pytest.mark.parametrize(
    ("writer", "is_taken"), [(1001, True), (1002, True), (1000, False)], ids=["its own", "a worker", "an earlier run"]
)
def test_a_run_speaks_through_any_of_its_processes(tmp_path, writer, is_taken):
    job = side_by_side.Job("seed 0", [], tmp_path)
    before = {"state": "stopped", "pid": 1000, "host": "here"}
    running = side_by_side._Running(job, types.SimpleNamespace(pid=1001), 0, before)
    (tmp_path / "status.json").write_text(json.dumps({"state": "finished", "pid": writer, "host": "here"}))
    assert bool(running.read_status()) == is_taken


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143)])
def test_a_terminated_group_ends_its_runs(place, number, code):
    with terminal([*COACH, "-p", "guess.py", "--seeds", "2", "--at_once", "1", "-cp", ENDLESS], 160, place) as shown:
        assert shown.watch(300, until="Training"), shown.lines()
        shown.send(number)
        shown.watch(120)
        assert shown.return_code == code, shown.lines()
    status = json.loads((group_of(place) / "seed_0" / "status.json").read_text())
    assert status["state"] == "stopped"
    assert (group_of(place) / "seed_0" / "checkpoint" / ".coach_checkpoint").exists()


def test_input_that_is_bad_for_all_seeds_is_one_line_and_leaves_nothing(place):
    command = [*COACH, "-p", "guess.py", "--seeds", "3", "-cp", "improve_step=EnvironmentSteps(1)"]
    done = subprocess.run(command, cwd=place, capture_output=True, timeout=300, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "improve_step" in done.stderr and done.stderr.startswith("coach: ")
    assert not (place / "experiments").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["-p", "guess.py", "--seeds", "0"], "'0' selects no seeds"),
        (["-p", "guess.py", "--seeds", "1,1"], "'1,1' contains seed 1 twice"),
        (["-p", "guess.py", "--seeds", "5-1"], "'5-1' goes backwards: write 1-5"),
        (["-p", "guess.py", "--seeds", "a"], "'a' is not a list of seeds: write 5"),
        (["-p", "guess.py", "--seeds", "2", "--seed", "1"], "--seeds and --seed: give only one of them"),
        (["-p", "guess.py", "--seeds", "2", "--play"], "--play starts one game, and this command starts several runs"),
        (["--seeds", "2"], "no preset given"),
        (["evaluate", "nothing", "nowhere"], "no experiment in 'nothing'"),
    ],
)
def test_bad_input_is_one_line(place, given, said):
    done = subprocess.run([*COACH, *given], cwd=place, capture_output=True, timeout=60, text=True)
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert not (place / "experiments").exists()


def coach(place, *given):
    return subprocess.run([*COACH, *map(str, given)], cwd=place, capture_output=True, timeout=120, text=True)


def group_with(directory, arguments, runs):
    directory.mkdir(parents=True)
    (directory / "runs.json").write_text(json.dumps({"arguments": arguments, "runs": runs}))
    return directory


def test_runs_that_have_not_begun_cannot_be_evaluated(tmp_path, capsys):
    group = group_with(tmp_path / "group", {"preset": "CartPole_DQN"}, [{"name": "seed_0", "seed": 0}])
    assert main(["evaluate", str(group)]) == 2
    assert f"no run in '{group}' has begun" in capsys.readouterr().err


def test_what_outlived_the_process_that_began_it_is_told_of(tmp_path):
    group = group_with(
        tmp_path / "group", {"preset": "CartPole_DQN"}, [{"name": f"seed_{i}", "seed": i} for i in (0, 1)]
    )
    for seed, reward in ((0, 100.0), (1, 200.0)):
        progress = {"steps": 5000, "seconds": 12.0, "last_evaluation": reward, "best_evaluation": 200.0}
        (group / f"seed_{seed}").mkdir()
        status = {"state": "finished", "pid": 1, "updated": 1.0, "progress": progress}
        (group / f"seed_{seed}" / "status.json").write_text(json.dumps(status))
    done = coach(tmp_path, "--resume", group)
    assert done.returncode == 0, done.stderr
    assert "seed 0: evaluation 100 (best 200), 5,000 steps in 0:12\n" in done.stdout
    said = r"^last evaluations: mean 150 .no interval of 2 runs., standard deviation .*, 2 runs$"
    assert re.search(said, done.stdout, re.MULTILINE)
    document = record_of(group)
    assert [(run["state"], run["score"], run["steps"]) for run in document["runs"]] == [
        ("finished", 100.0, 5000), ("finished", 200.0, 5000)
    ]  # fmt: skip
    assert document["statistics"][""]["mean"] == 150


@pytest.mark.parametrize(
    ("arguments", "run", "said"),
    [
        ({"evaluate": 500}, {"name": "a", "evaluated": "/runs/a b"}, "coach evaluate '/runs/a b' --steps 500\n"),
        ({}, {"name": "seed_0"}, "is damaged; continue its runs one by one"),
    ],
)
def test_runs_that_are_no_seeds_are_not_gone_on_with(tmp_path, arguments, run, said):
    done = coach(tmp_path, "--resume", group_with(tmp_path / "group", arguments, [run]))
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """Evaluates runs that were started with these arguments, without a process: the first has the reward 0."""

    class AtOnce:
        stopped_by = None

        def __init__(self, jobs, at_once, say, ends_all):
            self._jobs = run.jobs = jobs

        def run(self):
            return [
                side_by_side.Outcome(job, 0, {"state": "finished", "evaluation": {"mean": float(i), "episodes": 1}})
                for i, job in enumerate(self._jobs)
            ]

    def run(recorded, *flags):
        for index, arguments in enumerate(recorded):
            (tmp_path / f"run_{index}").mkdir()
            record = {"resumed": [], "evaluate_only": False, "arguments": arguments}
            (tmp_path / f"run_{index}" / "experiment.json").write_text(json.dumps(record))
        directories = [str(tmp_path / f"run_{index}") for index in range(len(recorded))]
        flags = ["--evaluate=100", "-ep", str(tmp_path / "made"), *flags]
        several_runs.evaluate(directories, flags, get_argument_parser())
        (group,) = (tmp_path / "made" / "evaluation").iterdir()
        return {task: statistics["mean"] for task, statistics in record_of(group)["statistics"].items()}

    monkeypatch.setattr(several_runs, "SideBySide", AtOnce)
    return run


@pytest.mark.parametrize(
    ("flags", "others", "tasks"),
    [
        ({}, {"custom_parameter": "env_params.level='b'"}, ["", " --custom_parameter env_params.level='b'"]),
        ({"environment_type": "a:One"}, {"environment_type": "b:Two"},
         [" --environment_type a:One", " --environment_type b:Two"]),
        ({"preset": "/here/mine.py"}, {"preset": "/there/mine.py"},
         [" --preset /here/mine.py:graph_manager", " --preset /there/mine.py:graph_manager"]),
        ({"level": "pong"}, {"level": "breakout"}, [" pong", " breakout"]),
    ],
    ids=["settings", "environment type", "preset", "level"],
)  # fmt: skip
def test_rewards_of_what_was_trained_otherwise_have_no_common_mean(evaluate, flags, others, tasks):
    flags, others = ({"preset": "/here/mine.py", **one} for one in (flags, others))
    assert evaluate([flags, others, flags, others]) == {f"mine{tasks[0]}": 1.0, f"mine{tasks[1]}": 2.0}


def test_settings_that_all_runs_begin_with_are_in_no_name(evaluate):
    common = "heatup_steps=EnvironmentSteps(10); "
    given = [common + own for own in ("discount=1; a=2", "discount=0")]
    recorded = [{"preset": "CartPole_DQN", "custom_parameter": one} for one in given]
    names = ["CartPole_DQN --custom_parameter discount=1; a=2", "CartPole_DQN --custom_parameter discount=0"]
    assert evaluate([*recorded, {"preset": "CartPole_DQN", "custom_parameter": common}]) == {
        names[0]: 0.0, names[1]: 1.0, "CartPole_DQN": 2.0
    }  # fmt: skip


def test_what_was_trained_alike_has_a_mean_however_it_was_spelt(evaluate):
    one = {"preset": "cartpole_dqn", "custom_parameter": "discount = 1;seed=2;", "num_workers": 2}
    other = {"preset": "CartPole_DQN:graph_manager", "custom_parameter": "discount = 1; seed=2"}
    assert evaluate([one, other]) == {"CartPole_DQN": 0.5}


def test_what_all_are_evaluated_in_makes_no_difference(evaluate):
    recorded = [{"preset": "CartPole_DQN", "level": level} for level in ("one", "other")]
    assert evaluate(recorded, "-lvl", "third") == {"CartPole_DQN third": 0.5}


@pytest.mark.parametrize(("flags", "framework"), [((), []), (("-f", "tensorflow"), ["--framework=tensorflow"])])
def test_each_run_is_evaluated_on_its_own_framework_unless_one_is_named(evaluate, flags, framework):
    evaluate([{"preset": "CartPole_DQN", "framework": "jax"}], *flags)
    (job,) = evaluate.jobs
    assert [argument for argument in job.flags if "framework" in argument] == framework


@pytest.mark.parametrize("flag", ["-crd", "-crf"])
def test_a_single_checkpoint_does_not_stand_for_several_runs(evaluate, flag):
    with pytest.raises(CoachError, match=rf"^{flag} names one checkpoint, but there are 2 runs to evaluate"):
        evaluate([{"preset": "CartPole_DQN"}] * 2, flag, "checkpoint")
