"""The display as a person sees it: the program ``coach`` in a terminal."""

from __future__ import annotations

import re
import shutil
import sys

import pytest

from tests.terminal import terminal

CTRL_C = "\x03"
COACH = [sys.executable, "-m", "rl_coach"]
AT_LEISURE = {"XLA_FLAGS": ""}
"""Compile as for users: in the haste of tests it is over before the display shows it."""
PRESET = """
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters

schedule = ScheduleParameters()
schedule.heatup_steps = EnvironmentSteps(200)
schedule.improve_steps = EnvironmentSteps(300)
schedule.steps_between_evaluation_periods = EnvironmentSteps(150)
schedule.evaluation_steps = EnvironmentEpisodes(300)
graph_manager = BasicRLGraphManager(DQNAgentParameters(), GymVectorEnvironment("CartPole-v1"), schedule)
"""


@pytest.fixture
def preset(tmp_path):
    (tmp_path / "small.py").write_text(PRESET)
    return tmp_path


@pytest.mark.parametrize("columns, framework", [(80, "tensorflow"), (200, "jax")])
def test_a_run_is_shown_cleanly(preset, columns, framework):
    command = [*COACH, "-p", "small.py", "-f", framework, "--seed", "1"]
    command += ["-cp", "evaluation_steps=EnvironmentEpisodes(2000)"]  # long enough to be seen
    with terminal(command, columns, preset, **AT_LEISURE) as shown:
        shown.watch(120)
        assert shown.return_code == 0, shown.lines()
        sights, end = shown.sights, "\n".join(shown.lines())
    everything = "\n".join(sight.text for sight in sights)
    assert not re.search(r"\[/?(dim|bold|cyan|yellow)\]|…|\x1b", everything)
    first = next(sight for sight in sights if sight.lines)
    assert re.search(r"(loading|building)", first.text)
    assert re.search(rf"building the graph on {framework} \.\.\. \d+ s", everything)
    assert "compiling the training step ... 0 s" in everything
    assert re.search(r"Testing +\d+ +[\d,]+ +[\d,]+ .*\d+ of 2,000 episodes", everything)
    assert len(re.findall(r"^evaluation \S+ \(best \S+\) over 2,000 episodes", end, re.MULTILINE)) == 2
    assert "trained " in end and "heatup before training: " in end
    assert "Training" not in end and " ... " not in end  # the display is gone


def test_start_up_says_what_it_waits_for_within_a_second(preset):
    with terminal([*COACH, "-p", "small.py"], 80, preset) as shown:
        assert shown.watch(60, until="...")
        said = shown.seconds
    with terminal([sys.executable, "-c", "import rl_coach.coach, numpy, rich.live; print('up')"], 80, preset) as shown:
        shown.watch(60, until="up")
        interpreter = shown.seconds
    # a second on a machine of its own; where many share one, the interpreter alone may need longer
    assert said < 1.0 + 2 * interpreter


def test_a_run_without_an_end_says_so_and_stops_by_the_keyboard(preset):
    endless = "improve_steps=TrainingSteps(10000000000); steps_between_evaluation_periods=EnvironmentSteps(100000)"
    with terminal([*COACH, "-p", "small.py", "-f", "jax", "-cp", endless], 120, preset) as shown:
        assert shown.watch(120, until="no limit: Ctrl-C stops the run"), shown.lines()
        assert "10,000,000,000" not in "\n".join(shown.lines())
        shown.type(CTRL_C)
        shown.watch(60)
        assert shown.return_code == 130
        end = "\n".join(shown.lines())
        said = re.search(r"continue with: (\S+) --resume", end)
        assert said and shutil.which(said[1]), shown.lines()
        assert re.search(r"^trained \d.* updates in 0:", end, re.MULTILINE) and "play it back: " in end
        assert "episode  steps" not in end and shown.lines()[-1].endswith("coach: stopped")
        assert not shown.screen.cursor.hidden


def test_the_end_of_a_run_that_waits_for_its_reward_is_that_reward(preset):
    endless = (
        "improve_steps=TrainingSteps(10000000000); steps_between_evaluation_periods=EnvironmentSteps(50); "
        "evaluation_steps=EnvironmentEpisodes(1); agent_params.algorithm.discount=0.0"
    )
    with terminal([*COACH, "-p", "small.py", "-asc", "-f", "jax", "-cp", endless], 160, preset) as shown:
        assert shown.watch(120, until="until evaluations reach 475 (now "), shown.lines()
        assert re.search(r"reach 475 \(now (\S+)\) +\1 \(best", "\n".join(shown.lines())), shown.lines()


def test_several_workers_leave_no_table_when_they_are_stopped(preset):
    with terminal([*COACH, "-p", "CartPole_A3C", "-n", "2", "-f", "jax"], 120, preset) as shown:
        assert shown.watch(120, until="starting  2 of 2"), shown.lines()
        shown.type(CTRL_C)
        assert shown.watch(10, until="stopping all workers")
        shown.watch(120)
        assert shown.return_code == 130
        end = "\n".join(shown.lines())
    assert "2 of 2" not in end and "Traceback" not in end and end.endswith("coach: stopped"), end


SHORT = "heatup_steps=EnvironmentSteps(40); improve_steps=EnvironmentSteps(100)"
EVALUATED_BEFORE = (
    f"{SHORT}; agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps(100); "
    "steps_between_evaluation_periods=EnvironmentSteps(30); evaluation_steps=EnvironmentEpisodes(5)"
)


@pytest.mark.parametrize("settings", [SHORT, EVALUATED_BEFORE], ids=["after heatup", "after an evaluation"])
def test_a_compilation_stands_under_the_phase_that_waits(preset, settings):
    """The phase before it was over before it could be drawn a second time."""
    with terminal([*COACH, "-p", "small.py", "-cp", settings, "--seed", "1"], 120, preset, **AT_LEISURE) as shown:
        assert shown.watch(120, until="compiling the training step"), shown.lines()
        assert ("evaluation" in shown.lines()[0]) == (settings is EVALUATED_BEFORE)
        assert shown.shows("Training ") and not shown.shows("Heatup") and not shown.shows("Testing"), shown.lines()


def test_lines_for_programs(preset):
    with terminal([*COACH, "-p", "small.py", "-f", "jax", "--nocolor", "--seed", "1"], 500, preset) as shown:
        shown.screen.resize(3000, 500)
        shown.watch(120)
        lines = shown.lines()
    time = r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{6}"
    episode = (
        rf"{time} , Name=main_level/agent, Worker=0, Episode=\d+, Total reward=(.*?), Exploration=[\d.]+, Steps=\d+, "
    )
    for phase in ("Heatup", "Training", "Testing"):
        assert any(re.match(rf"{phase}> {episode}Training iteration=\d+$", line) for line in lines), phase
    assert sum(line.startswith("Testing>") for line in lines) == 600
    assert "## Creating agent - name: agent" in lines and "## simple_rl_graph: Starting heatup" in lines
    assert lines.count("## agent: Starting evaluation phase") == 2
    finished = r"## agent: Finished evaluation phase\. Success rate = [\d.]+, Avg Total Reward = [\d.]+"
    assert sum(bool(re.fullmatch(finished, line)) for line in lines) == 2
    assert not any(" | " in line for line in lines)


def test_epochs_for_programs(preset):
    settings = (
        "agent_params.algorithm.num_consecutive_playing_steps=EnvironmentSteps(128); "
        "agent_params.algorithm.optimization_epochs=3; improve_steps=EnvironmentSteps(300); "
        "agent_params.network_wrappers['main'].batch_size=1000"
    )
    command = [*COACH, "-p", "CartPole_ClippedPPO", "-f", "jax", "--nocolor", "--seed", "1", "-cp", settings]
    with terminal(command, 500, preset) as shown:
        shown.screen.resize(3000, 500)
        shown.watch(120)
        assert shown.return_code == 0, shown.lines()
        everything = shown.lines()
    lines = [line for line in everything if line.startswith("Policy training>")]
    episodes = [line for line in everything if line.startswith("Training>")]
    number = r"-?[\d.]+(e-\d+)?"
    pattern = rf"Policy training> \S+ , Surrogate loss={number}, KL divergence={number}, Entropy={number}, "
    assert all(re.fullmatch(pattern + rf"training epoch=[012], learning_rate={number}", line) for line in lines)
    assert len(lines) >= 6 and len(lines) % 3 == 0
    (trained,) = (line for line in everything if line.startswith("trained "))
    # all that was played with a policy is one minibatch
    assert f" steps, {len(lines)} updates in " in trained
    assert episodes and not any("Exploration" in line for line in episodes)


@pytest.mark.parametrize("columns", [80, 100])
def test_the_list_of_presets_fits(tmp_path, columns):
    with terminal([*COACH, "--list"], columns, tmp_path) as shown:
        shown.watch(60)
        assert shown.return_code == 0
        lines = shown.lines()
    (row,) = (line for line in lines if line.startswith("tuned/CartPole_QR_DQN "))
    assert row.split()[0] == "tuned/CartPole_QR_DQN" and row.split()[-1] == "497.2"  # no row goes on in the next line
    assert row.split()[2] == "QR-DQN"
