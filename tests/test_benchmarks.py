"""The comparison with other libraries: what one of them fails at costs nothing of what the others gave."""

from __future__ import annotations

import cProfile
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest

from benchmarks import __main__ as comparison
from benchmarks import curves, digests, exploration, golden, mutations, peers, scores, step, transport
from benchmarks import pages as pages_of
from benchmarks.coach_side import runner
from benchmarks.measured import BenchmarkError, Clock, Measured
from benchmarks.parts import PARTS, by_part
from benchmarks.returns import mean_return
from benchmarks.train_to_reward import NOT_REACHED, REACHED, Outcome
from benchmarks.works import WORKS
from rl_coach.utilities.errors import CallbackError
from tests.frameworks import FRAMEWORK


@pytest.fixture
def compare(monkeypatch, capsys):
    """Runs the comparison on given measurements: what it prints, what it reports, and how it exits."""

    def run(measure, *flags):
        monkeypatch.setattr(comparison, "in_own_process", measure)
        monkeypatch.setattr("sys.argv", ["benchmarks", *flags])
        code = 0
        try:
            comparison.main()
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        return printed.out, printed.err, code

    return run


def test_the_table_has_the_median_of_all_rounds(compare):
    speeds = iter([100.0, 50.0, 300.0, 40.0, 200.0, 60.0])
    table, progress, code = compare(
        lambda *_: Measured(next(speeds), 1.5, 2.0, 400.0), "W2", "--libraries", "tensorflow,sb3", "--rounds", "3"
    )
    assert code == 0
    rows = {
        name: row.split("│")
        for row in table.splitlines()
        for name in ("tensorflow", "sb3")
        if f" {name} " in row and "│" in row
    }
    ours, theirs = ([cell.strip() for cell in rows[name]] for name in ("tensorflow", "sb3"))
    assert ours[3:6] == ["200", "100 to 300", "1.00"] and theirs[3:6] == ["50", "40 to 60", "4.00"]
    assert "W2, round 3 of 3: sb3: 60 steps/s" in progress


def test_a_library_that_fails_is_left_out_and_said_at_the_end(compare):
    def measure(library, work, scale):
        if library == "sb3":
            raise BenchmarkError("sb3 failed on W5: OpenCV is not installed")
        return None if library == "sbx" else Measured(10.0, 1.0, 1.0, 1.0)

    printed, progress, code = compare(measure, "W5", "--json", "--rounds", "2", "--libraries", "tensorflow,sb3,sbx")
    assert list(json.loads(printed)["W5"]) == ["tensorflow"]
    assert len(json.loads(printed)["W5"]["tensorflow"]) == 2
    assert code == "sb3 failed on W5: OpenCV is not installed"
    assert progress.count("sb3: failed, see the end") == 1
    assert progress.count("sbx: not for this work") == 1


def test_coach_is_compared_with_the_fastest_library(compare):
    speeds = {"tensorflow": 100.0, "jax": 300.0, "sb3": 150.0, "skrl": 400.0, "straight": 900.0}
    table, _, code = compare(
        lambda library, *_: Measured(speeds[library], 1.0, 1.0, 1.0, 42.0), "W14", "--libraries", ",".join(speeds)
    )
    assert code == 0 and "W14: Coach (jax) 300 steps/s, skrl 400: ratio 0.75" in table


def test_a_library_without_its_environment_says_how_to_make_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COACH_PEERS", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["benchmarks", "W14", "--libraries", "skrl,one_by_one,rejax"])
    with pytest.raises(SystemExit, match=r"skrl is not installed: .*\.venv-skrl\. Make it with `make peers`"):
        comparison.main()
    progress = capsys.readouterr().err
    assert "skrl: not installed, see the end" in progress and "one_by_one: not for this work" in progress


@pytest.mark.parametrize("flag", [["W14", "--libraries", "no_such"], ["W99"]])
def test_a_name_that_does_not_exist_is_an_error(compare, capsys, flag):
    assert compare(None, *flag)[2] == 2


@pytest.mark.parametrize("name", WORKS)
def test_every_library_knows_whether_a_work_is_for_it(name):
    able = {library for library in peers.LIBRARIES if peers.is_for(library, WORKS[name])}
    assert "jax" in able and ("one_by_one" in able) == (WORKS[name].seeds > 1)
    if name in ("W14", "W15", "W16", "W17"):
        assert {"tensorflow", "sb3", "skrl"} <= able and "rejax" not in able
    assert ("sheeprl" in able) == (WORKS[name].algorithm == "dreamer_v3")


def test_a_clock_times_what_follows_the_warm_up():
    clock = Clock(warm_up=10, steps=20, started=0.0)
    assert [clock.tick(steps) for steps in (0, 10, 16, 35, 36)] == [False, False, False, False, True]
    assert clock.measured(7.0).mean_return == 7.0 and clock.measured(None).steps_per_second > 0
    with pytest.raises(BenchmarkError, match="ended before all steps"):
        Clock(10, 20, 0.0).measured(None)


def test_a_mean_return_is_of_the_first_episode_of_each_copy():
    assert 8 < mean_return(lambda observations: np.zeros(len(observations))) < 11  # always to the left


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, work in WORKS.items() if name != "W0"])
def test_every_work_can_be_measured_in_coach(name):
    work = WORKS[name]
    if "Pong" in work.level:
        pytest.importorskip("ale_py")
    run = runner(work, "tensorflow")
    run(max(work.rollout if work.algorithm in ("ppo", "a2c") else 0, work.environments * 8))


def test_a_profile_says_which_part_takes_how_long():
    clock = [0.0]
    functions: dict = {"clock": clock}
    for path, source in (
        ("numpy/helper.py", "def take(seconds): clock[0] += seconds"),
        ("rl_coach/memories/store.py", "def sample(): take(3.0)"),
        ("gymnasium/envs/one.py", "def step(): take(1.0)"),
        ("rl_coach/agents/agent.py", "def act(): sample(); step(); take(2.0)"),
    ):
        exec(compile(source, path, "exec"), functions)
    profiler = cProfile.Profile(lambda: clock[0])
    profiler.runcall(functions["act"])
    expected = dict.fromkeys(PARTS, 0.0) | {"memory": 3.0, "environment": 1.0, "filters and bookkeeping": 2.0}
    assert by_part(profiler) == pytest.approx(expected)


def outcome(preset, seed, is_reached, day="2026-01-02"):
    return Outcome(preset, seed, is_reached, 150.0, 250, 151.25 if is_reached else 12.5, 60 + seed, 61.0, day)


@pytest.fixture
def train(monkeypatch, tmp_path):
    """Runs the command of golden runs on trainings that end as they are told to: what it trained, and the page."""
    page, results, trained = tmp_path / "page.md", tmp_path / "results.jsonl", []
    page.write_text(f"above\n{golden.BEGIN}\nold line\n{golden.END}\nbelow\n")

    def run(ends, *flags):
        def process(command, **_):
            preset, seed, file = command[-3], int(command[-2]), command[-1]
            trained.append((preset, seed))
            end = ends(preset, seed)
            if end in (REACHED, NOT_REACHED):
                with open(file, "a") as lines:
                    lines.write(json.dumps(asdict(outcome(preset, seed, end == REACHED))) + "\n")
            if end is KeyboardInterrupt:
                raise KeyboardInterrupt
            return subprocess.CompletedProcess(command, end)

        trained.clear()
        monkeypatch.setattr(golden.subprocess, "run", process)
        files = ["--page", str(page), "--results", str(results), "--algorithms", str(tmp_path / "algorithms")]
        monkeypatch.setattr("sys.argv", ["golden", *files, *flags])
        golden.main()
        return list(trained), page.read_text()

    return run


def test_golden_runs_become_rows_between_the_marks(train):
    trained, page = train(lambda _, seed: NOT_REACHED if seed == 1 else REACHED, "--only", "CartPole_D[Qu][Ne]*")
    assert trained == [(name, seed) for name in ("CartPole_DQN", "CartPole_Dueling_DDQN") for seed in (0, 1, 2)]
    assert page.startswith("above\n") and page.endswith("\nbelow\n") and "old line" not in page
    assert (
        "| `CartPole_DQN` | 150 | 250 episodes | 0, 1, 2 | 2 of 3 | 151.2, 12.5, 151.2 | 60, 61, 62 "
        "| 1:01, 1:01, 1:01 | 2026-01-02 |"
    ) in page
    assert "2 of 2 presets reach their reward on two of three seeds." in page


def test_interrupted_golden_runs_go_on_where_they_were(train):
    with pytest.raises(KeyboardInterrupt):
        train(lambda _, seed: KeyboardInterrupt if seed == 1 else REACHED, "--only", "CartPole_DQN")
    trained, page = train(lambda *_: REACHED, "--only", "CartPole_DQN")
    assert trained == [("CartPole_DQN", 1), ("CartPole_DQN", 2)] and "3 of 3" in page
    assert train(lambda *_: REACHED, "--only", "CartPole_DQN")[0] == []
    assert train(lambda *_: NOT_REACHED, "--only", "CartPole_DQN", "--again", "--seeds", "2")[0] == [
        ("CartPole_DQN", 2)
    ]
    assert "| 2 of 3 |" in train(lambda *_: REACHED, "--table")[1]


def test_a_golden_run_that_breaks_is_no_result(train):
    with pytest.raises(SystemExit, match="CartPole_DQN, seed 0: training broke"):
        train(lambda _, seed: 1 if seed == 0 else NOT_REACHED, "--only", "CartPole_DQN")
    with pytest.raises(SystemExit):
        train(lambda *_: REACHED, "--only", "no_such_*")


def test_the_page_of_an_algorithm_has_the_rows_of_its_presets(train, tmp_path):
    page = tmp_path / "algorithms" / "some.md"
    page.parent.mkdir()
    presets = "Presets: `CartPole_DQN`, `Mujoco_TD3`, `Atari_C51`, `no_preset`, `tuned/CartPole_PPO`."
    marks = f"{scores.BEGIN}\n`Atari_NEC`\n{scores.END}\n{golden.BEGIN}\n`CartPole_PG`\n{golden.END}\nbelow\n"
    page.write_text(f"{presets}\n\n{marks}")
    other = page.with_name("other.md")
    other.write_text("`CartPole_DQN`\n")
    train(lambda *_: REACHED, "--only", "CartPole_D*", "--seeds", "0,1")
    text = page.read_text()
    assert "| `CartPole_DQN` | 150 | 250 episodes | 0, 1 | 2 of 2 | 151.2, 151.2 |" in text
    assert "| `Mujoco_TD3`, `hopper` | 500 | 1100 episodes |  | not measured yet |" in text
    assert "Presets without a target reward, not measured yet: `Atari_C51`." in text
    assert "Dueling" not in text and "`CartPole_PG`" not in text and text.endswith("\nbelow\n")
    assert other.read_text() == "`CartPole_DQN`\n"


def test_the_tables_say_which_presets_several_workers_trained():
    said = "Trained with 8 workers (`-n 8`): `CartPole_A3C`.\n"
    outcomes = [outcome(preset, 0, True) for preset in ("CartPole_A3C", "CartPole_DQN")]
    for text in (golden.table(outcomes), golden.table_of_page({"CartPole_A3C", "CartPole_DQN"}, outcomes)):
        assert said in f"{text}\n"
    assert "workers" not in golden.table(outcomes[1:])


def test_a_preset_with_another_table_is_measured_though_it_has_no_reward():
    line = golden.table_of_page({"Fetch_DDPG_HER_baselines"}, [])
    assert line == "Presets without a target reward: `Fetch_DDPG_HER_baselines`."


def test_what_has_scores_is_measured_though_it_has_no_reward():
    assert golden.table_of_page({"ExplorationChain_Bootstrapped_DQN"}, []) == (
        "Presets without a target reward: `ExplorationChain_Bootstrapped_DQN`."
    )
    assert golden.table_of_page({"ExplorationChain_Bootstrapped_DQN", "Atari_Bootstrapped_DQN"}, []) == (
        "Presets without a target reward: `Atari_Bootstrapped_DQN`, `ExplorationChain_Bootstrapped_DQN`. "
        "Not measured yet: `Atari_Bootstrapped_DQN`."
    )


@pytest.mark.parametrize("measured", [golden, scores], ids=["golden", "scores"])
def test_the_tables_of_the_documentation_are_those_of_the_results(tmp_path, measured):
    """``python -m benchmarks.golden --table`` and ``python -m benchmarks.scores --table`` write them anew."""
    shutil.copytree(pages_of.PAGE.parent, tmp_path / "docs", ignore=shutil.ignore_patterns("images", "tutorials"))
    page, algorithms = tmp_path / "docs" / pages_of.PAGE.name, tmp_path / "docs" / pages_of.ALGORITHMS.name
    measured.write_tables(page, algorithms, measured.read(measured.RESULTS))
    originals = [pages_of.PAGE, *pages_of.ALGORITHMS.glob("*.md")]
    assert sum(measured.BEGIN in original.read_text("utf-8") for original in originals) > 10
    for original in originals:
        copy = tmp_path / "docs" / original.relative_to(pages_of.PAGE.parent)
        assert copy.read_text("utf-8") == original.read_text("utf-8"), original.name
    drawn = list((tmp_path / "docs" / curves.DIRECTORY).glob("*.svg"))
    assert drawn
    for picture in drawn:
        there = pages_of.PAGE.parent / curves.DIRECTORY / picture.name
        assert picture.read_text("utf-8") == there.read_text("utf-8"), picture.name


def test_no_picture_of_a_curve_is_left_over():
    pages = [pages_of.PAGE, *pages_of.ALGORITHMS.glob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    for picture in (pages_of.PAGE.parent / curves.DIRECTORY).glob("*.svg"):
        assert f"{curves.DIRECTORY}/{picture.name})" in text, picture.name


def test_a_curve_goes_as_far_as_all_seeds_and_its_band_from_the_lowest_to_the_highest():
    line = curves.mean_and_band("a", [[(0, 0.0), (10, 10.0)], [(0, 4.0), (5, 4.0), (20, 34.0)]])
    assert line.x.tolist() == [0, 5, 10] and line.y.tolist() == [2, 4.5, 12]
    assert line.band is not None
    assert [edge.tolist() for edge in line.band] == [[0, 4, 10], [4, 5, 14]]
    assert curves.mean_and_band("a", [[(0, 0.0), (10, 10.0)]]).band is None


def test_golden_runs_that_kept_their_evaluations_show_them(tmp_path):
    docs, outcomes = tmp_path / "docs", [outcome("CartPole_DQN", seed, True) for seed in (0, 1)]
    page = docs / "algorithms" / "some.md"
    page.parent.mkdir(parents=True)
    page.write_text(f"`CartPole_DQN`\n{golden.BEGIN}\n{golden.END}\n")
    (docs / "page.md").write_text(f"{golden.BEGIN}\n{golden.END}\n")
    golden.write_tables(docs / "page.md", page.parent, outcomes)
    assert "![" not in page.read_text()
    kept = replace(outcomes[0], curve=[(20, 9.0), (40, 151.25)])
    golden.write_tables(docs / "page.md", page.parent, [kept, outcomes[1]])
    text, picture = page.read_text(), (docs / curves.file_of("CartPole_DQN")).read_text()
    assert "mean reward of 151.2 after 40 episodes](../images/curves/CartPole_DQN.svg)" in text
    assert "seed 0" in picture and "seed 1" not in picture and ">episodes<" in picture


def test_the_list_of_presets_has_the_measured_scores(tmp_path):
    """``python -m benchmarks.scores --table`` writes them anew."""
    scores.write_list(tmp_path / "scores.json", scores.read(scores.RESULTS))
    assert (tmp_path / "scores.json").read_text("utf-8") == scores.LIST.read_text("utf-8")


def test_every_page_that_names_a_preset_with_scores_shows_them():
    named = {scores.path_of(preset) for preset in scores.measured_presets()}
    for page in pages_of.ALGORITHMS.glob("*.md"):
        text = page.read_text("utf-8")
        assert (scores.BEGIN in text) == bool(named & pages_of.named_presets(text)), page.name


@pytest.mark.golden
def test_a_golden_run_of_a_preset(tmp_path, monkeypatch):
    page, results = tmp_path / "page.md", tmp_path / "results.jsonl"
    page.write_text(f"{golden.BEGIN}\n{golden.END}\n")
    flags = ["--only", "CartPole_DQN", "--seeds", "0", "--page", str(page), "--results", str(results)]
    monkeypatch.setattr("sys.argv", ["golden", *flags, "--algorithms", str(tmp_path / "algorithms")])
    golden.main()
    (one,) = golden.read(results)
    assert one.is_reached and one.reward >= 150 and one.episodes <= one.limit == 250
    assert "`CartPole_DQN`" in page.read_text()


WAYS = [
    (transport.PICKLES, "vectors"), (transport.CHUNKS, "vectors"), (transport.CHUNKS, "frames"),
    (transport.BARE, "frames"),
]  # fmt: skip


@pytest.mark.parametrize("way, kind", WAYS)
def test_transitions_arrive_by_every_way(way, kind):
    assert transport.rate(way, kind, rows=8, seconds=0.1) > 0


def scored(command, **_):
    """A training that ends at 10 times its seed, or breaks at seed 3."""
    seed, results = int(command[-1]), command[command.index("--results") + 1]
    if seed == 3:
        return subprocess.CompletedProcess(command, 1)
    curve = [(steps, steps / 100 + seed) for steps in range(500, 5001, 500)]
    one = scores.Score(command[-5], command[-3], seed, 5000, 10.0 * seed, curve, 61.0, "2026-01-02")
    with open(results, "a") as lines:
        lines.write(json.dumps(asdict(one)) + "\n")
    return subprocess.CompletedProcess(command, 0)


def test_scores_become_a_row_for_each_library(tmp_path, monkeypatch):
    page, results = tmp_path / "page.md", tmp_path / "results.jsonl"
    page.write_text(f"above\n{scores.BEGIN}\nold line\n{scores.END}\nbelow\n")
    monkeypatch.setattr(scores.subprocess, "run", scored)
    files = ["--page", str(page), "--results", str(results), "--only", "CartPole_DQN"]
    files += ["--algorithms", str(tmp_path / "algorithms"), "--list", str(tmp_path / "scores.json")]
    monkeypatch.setattr("sys.argv", ["scores", *files, "--libraries", "coach,sb3", "--seeds", "1,2,3"])
    with pytest.raises(SystemExit, match="CartPole_DQN, coach, seed 3: training broke"):
        scores.main()
    text = page.read_text()
    assert text.startswith("above\n") and text.endswith("\nbelow\n") and "old line" not in text
    for library in ("Coach", "Stable-Baselines3"):
        assert (
            f"| `tuned/CartPole_DQN` | 5,000 | 500 | 500 | {library} | 10, 20 | 15 ± 7.071 | 10 | 2 of 2 "
            "| 11.5, 21.5, 31.5, 41.5, 51.5 | 1:01, 1:01 | 2026-01-02 |"
        ) in text
    assert json.loads((tmp_path / "scores.json").read_text()) == {"tuned/CartPole_DQN": 15.0}
    done = results.read_text()
    monkeypatch.setattr("sys.argv", ["scores", *files, "--seeds", "1,2"])
    scores.main()
    assert results.read_text() == done, "what has a result is not trained again"
    monkeypatch.setattr("sys.argv", ["scores", *files, "--seeds", "1", "--framework", "jax"])
    scores.main()
    assert results.read_text().startswith(done) and results.read_text() != done, "JAX has no result yet"


def test_the_end_of_the_scores_ends_the_training(tmp_path):
    """In two processes: the program that makes the table, and the training that it started."""
    command = [sys.executable, "-m", "benchmarks.scores", "--only", "CartPole_DQN", "--seeds", "0"]
    for name in ("results", "page", "algorithms", "list", "experiments"):
        command += [f"--{name}", str(tmp_path / name)]
    with subprocess.Popen(command, cwd=scores.REPOSITORY, stdout=subprocess.PIPE, text=True) as table:
        assert table.stdout is not None
        assert any("building the graph" in line for line in table.stdout)
        children = pathlib.Path(f"/proc/{table.pid}/task/{table.pid}/children").read_text().split()
        assert children
        table.terminate()
        assert table.wait(60) == 128 + signal.SIGTERM
        assert not any(pathlib.Path(f"/proc/{child}").exists() for child in children)


def test_a_learning_curve_has_a_line_for_each_framework(tmp_path):
    runs = [
        scores.Score("CartPole_DQN", "coach", seed, 10, 5.0, [(10, reward)], 1.0, "2026-01-02", framework)
        for seed, (framework, reward) in enumerate([("jax", 1.0), ("tensorflow", 5.0), ("jax", 3.0)])
    ]
    page = tmp_path / "page.md"
    page.write_text(f"{scores.BEGIN}\n{scores.END}\n")
    scores.write_tables(page, tmp_path / "algorithms", runs)
    for trainer, mean in (("Coach", 5), ("Coach on JAX", 2)):
        assert f"{trainer} has a mean return of {', '.join([str(mean)] * 5)}" in page.read_text()
    drawn = (tmp_path / curves.file_of("tuned/CartPole_DQN")).read_text()
    assert "tuned/CartPole_DQN, Coach, seeds: 1" in drawn and "tuned/CartPole_DQN, Coach on JAX, seeds: 2" in drawn


def test_the_page_of_an_algorithm_has_the_scores_of_its_presets(tmp_path, monkeypatch):
    page, results, some = tmp_path / "page.md", tmp_path / "results.jsonl", tmp_path / "algorithms" / "some.md"
    page.write_text(f"{scores.BEGIN}\n{scores.END}\n")
    some.parent.mkdir()
    presets = "`tuned/CartPole_DQN`, `ExplorationChain_Dueling_DDQN`, `tuned/Acrobot_DQN`; `Pendulum_DDPG`"
    some.write_text(f"{presets}\n{scores.BEGIN}\n`tuned/CartPole_PPO`\n{scores.END}\nbelow\n")
    monkeypatch.setattr(scores.subprocess, "run", scored)
    files = ["--page", str(page), "--results", str(results), "--algorithms", str(some.parent), "--seeds", "1"]
    files += ["--list", str(tmp_path / "scores.json")]
    for only in ("*C*_D*", "CartPole_PPO"):
        monkeypatch.setattr("sys.argv", ["scores", *files, "--only", only])
        scores.main()
    text = some.read_text()
    assert "| `tuned/CartPole_DQN` | 5,000 |" in text and "| `ExplorationChain_Dueling_DDQN` | 5,000 |" in text
    assert "CartPole_PPO" not in text and "| `tuned/Acrobot_DQN`" not in text and text.endswith("\nbelow\n")
    assert "Not measured yet: `tuned/Acrobot_DQN`." in text and "(../benchmarks.md#measurement-of-scores)" in text
    assert "| `tuned/CartPole_PPO`" in page.read_text()


def break_at_450(curve, run):
    if run.steps == 450:
        raise KeyError("stopped here")


def test_a_training_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    preset = tmp_path / "short.py"
    source = (scores.REPOSITORY / "presets" / "tuned" / "CartPole_DQN.py").read_text("utf-8")
    times = {"heatup_steps": 100, "improve_steps": 600, "steps_between_evaluation_periods": 200}
    preset.write_text(source + "".join(f"graph_manager.{name} = EnvironmentSteps({n})\n" for name, n in times.items()))
    monkeypatch.setattr(scores, "path_of", lambda name: str(preset))
    train = functools.partial(scores.train_coach, "CartPole_DQN", 3, FRAMEWORK.name)
    at_once = train(tmp_path / "at_once")
    with monkeypatch.context() as patched, pytest.raises(CallbackError):
        patched.setattr(scores.Curve, "on_step", break_at_450)
        train(tmp_path / "stopped")
    assert list((tmp_path / "stopped").rglob("*.ckpt")) and [steps for steps, _ in at_once.curve] == [200, 400, 600]
    assert replace(train(tmp_path / "stopped"), seconds=0.0) == replace(at_once, seconds=0.0)


def test_cells_that_were_seen_are_counted_once():
    seen = np.array([[-1.0, -1.0], [-0.99, -0.99], [-0.85, -1.0], [1.0, 1.0]])
    assert exploration.num_cells(seen) == 3
    every = np.stack(np.meshgrid(*[np.linspace(-1, 1, 200)] * 2), axis=-1).reshape(-1, 2)
    assert exploration.num_cells(every) == exploration.CELLS**2


def test_explorations_become_a_row_for_each_agent(tmp_path, monkeypatch):
    page, results, explored = tmp_path / "page.md", tmp_path / "results.jsonl", []
    page.write_text(f"above\n{exploration.BEGIN}\nold line\n{exploration.END}\nbelow\n")

    def explore(agent, seed):
        explored.append((agent, seed))
        first = 4_000 + seed if agent == "novelty" else None
        cells = [100, 200, 300 + 10 * seed]
        return exploration.Exploration(agent, seed, cells, 7 if first else 0, first, 61.0, "2026-01-02")

    monkeypatch.setattr(exploration, "explore", explore)
    flags = ["--page", str(page), "--results", str(results), "--seeds", "1,0"]
    for agents in ("random", "novelty,random"):
        monkeypatch.setattr("sys.argv", ["exploration", *flags, "--agents", agents])
        exploration.main()
    assert explored == [("random", 1), ("random", 0), ("novelty", 1), ("novelty", 0)]
    text = page.read_text()
    assert text.startswith("above\n") and text.endswith("\nbelow\n") and "old line" not in text
    novelty, random = (line for line in text.splitlines() if "1:01" in line)
    cells = "100, 200, 300; 100, 200, 310 | 305 ± 7.07"
    assert novelty == f"| novelty is the reward | {cells} | 4,000; 4,001 | 7, 7 | 1:01, 1:01 | 2026-01-02 |"
    assert random == f"| at random | {cells} | never; never | 0, 0 | 1:01, 1:01 | 2026-01-02 |"


def test_the_table_of_explorations_is_that_of_the_results():
    """``python -m benchmarks.exploration --table`` writes it anew."""
    written = exploration.PAGE.read_text("utf-8").partition(f"{exploration.BEGIN}\n")[2]
    assert written.partition(f"\n{exploration.END}")[0] == exploration.table(exploration.read(exploration.RESULTS))


@pytest.mark.slow
@pytest.mark.parametrize("agent", exploration.AGENTS)
def test_every_exploring_agent_is_measured(agent, monkeypatch):
    monkeypatch.setattr(exploration, "RANDOM_STEPS", 300)
    run = exploration.explore(agent, seed=3, steps=1_000)
    assert 10 < run.cells[0] <= run.cells[1] <= run.cells[2] and (run.agent, run.seed) == (agent, 3)


def test_each_mutation_is_of_a_text_that_stands_there_once():
    assert len(mutations.MUTATIONS) >= 20
    for mutation in mutations.MUTATIONS:
        text = (mutations.ROOT / mutation.path).read_text("utf-8")
        assert text.count(mutation.old) == 1, mutation


def test_changes_of_file_are_counted_between_calls():
    calls = [("a.py", "f"), ("a.py", "g"), ("b.py", "f"), ("a.py", "f")]
    assert step.changes_of_file(calls) == 2 and step.changes_of_file([]) == 0


@pytest.fixture
def run_digests(monkeypatch, tmp_path):
    """The command on cases that are not run, but have given digests: what it returns."""

    def run(command, *found, machine=None):
        answers = iter(found)
        cases = [digests.Case("jax", run, 1) for run in digests.RUNS[:2]]
        monkeypatch.setattr(digests, "cases", lambda *_: cases)
        monkeypatch.setattr(digests, "digests_of", lambda chosen: iter(zip([c.name for c in chosen], next(answers))))
        monkeypatch.setattr(digests, "this_machine", lambda: machine or {"processor": "x86_64 avx2"})
        monkeypatch.setattr("sys.argv", ["digests", command, "--file", str(tmp_path / "digests.json")])
        return digests.main()

    return run


DIGESTS = {"weights": "1a", "memory": "2b", "csv": "3c", "counters": {"TRAIN": {"EnvironmentSteps": 300}}}


def test_digests_tell_what_differs(run_digests, capsys):
    other = {**DIGESTS, "csv": "4d", "counters": {"TRAIN": {"EnvironmentSteps": 299}}}
    assert run_digests("record", [DIGESTS, DIGESTS], [DIGESTS, DIGESTS]) == 0
    assert run_digests("compare", [DIGESTS, DIGESTS]) == 0
    assert run_digests("compare", [DIGESTS, other]) == 1
    assert run_digests("compare", [{"error": "it broke"}, DIGESTS], machine={"processor": "arm64"}) == 1
    printed = capsys.readouterr().out
    assert "jax/CartPole_DQN/1: equal" in printed and "2 of 2 cases are equal" in printed
    assert "jax/CartPole_Rainbow/1: DIFFERS in csv, counters" in printed and "1 of 2 cases are equal\n" in printed
    assert "recorded on another kind of machine: processor x86_64 avx2, here arm64." in printed
    assert "jax/CartPole_DQN/1: FAILED: it broke" in printed


def test_each_kind_of_processor_has_digests_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(digests, "DIRECTORY", tmp_path)
    monkeypatch.setattr(digests, "this_machine", lambda: {"processor": "arm64 neon"})
    monkeypatch.setattr("sys.argv", ["digests", "compare", "--only", "CartPole_DQN"])
    with pytest.raises(SystemExit, match=r"there is no .*/arm64_neon\.json: record it with the old code"):
        digests.main()


def test_a_case_that_differs_from_one_time_to_the_other_is_not_recorded(run_digests, capsys):
    # the second time is in the opposite order
    assert run_digests("record", [DIGESTS, DIGESTS], [{**DIGESTS, "weights": "9f"}, DIGESTS]) == 1
    assert run_digests("compare", [DIGESTS, DIGESTS]) == 1
    assert "jax/CartPole_Rainbow/1: not recorded" in capsys.readouterr().out


def test_digests_of_arrays_do_not_depend_on_names_and_order():
    def file(*arrays):
        header, data = {}, b""
        for name, content in arrays:
            header[name] = {
                "dtype": "U8",
                "shape": [len(content)],
                "data_offsets": [len(data), len(data) + len(content)],
            }
            data += content
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data

    one = file(("a/networks/main/0", b"12"), ("a/networks/main/1", b"345"), ("a/memory/x", b"6"))
    same = file(("memory/y", b"6"), ("b/networks/q/0", b"345"), ("b/networks/q/5", b"12"))
    other = file(("a/networks/main/0", b"13"), ("a/networks/main/1", b"345"), ("a/memory/x", b"6"))
    parts = ("/networks/", "/memory/")
    assert digests.digests_of_arrays(one, *parts) == digests.digests_of_arrays(same, *parts)
    networks, memory = digests.digests_of_arrays(other, *parts)
    assert networks != digests.digests_of_arrays(one, *parts)[0] and memory == digests.digests_of_arrays(one, *parts)[1]


@pytest.mark.parametrize("work", ["W11", "W12"])
def test_a_straight_loop_learns(work):
    pytest.importorskip("gymnax", reason="the straight loops play gymnax' CartPole (pip install gymnax)")
    from benchmarks.straight_side import StraightLoop

    loop = StraightLoop(WORKS[work])
    loop(8_000)
    first = loop.mean_return()
    loop(60_000)
    loop.mean_return()
    loop(20_000)
    assert loop.mean_return() > 3 * first


def measured_on_gpu(tmp_path, *flags):
    """The JSON file and the output of ``python -m benchmarks.gpu``."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--output", str(tmp_path / "gpu.json"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    return json.loads((tmp_path / "gpu.json").read_text()), done.stdout


def test_without_time_the_gpu_script_names_all_that_it_leaves_out(tmp_path):
    pytest.importorskip("jax")
    found, printed = measured_on_gpu(tmp_path, "--seconds", "0")
    assert found["results"] == [] and {one["reason"] for one in found["left_out"]} == {"the time is spent"}
    assert found["machine"]["jax"] and found["machine"]["kind"]
    names = {(one["name"], one["side"]) for one in found["left_out"]}
    for work in ("W11", "W12"):
        for copies in ("8", "256", "2,048", "16,384"):
            assert {(f"{work}, {copies} copies", side) for side in ("Coach", "straight loop")} <= names
    assert {(name, "Coach") for name in ("W4", "W5", "W9", "playground", "W13, 8 seeds", "W13, 64 seeds")} <= names
    assert all(f"left out: {name}, {side}: the time is spent" in printed for name, side in names)


@pytest.mark.slow  # four processes that compile
def test_the_gpu_script_measures_both_loops_on_a_processor_too(tmp_path):
    for package in ("jax", "gymnax", "optax"):
        pytest.importorskip(package)
    found, printed = measured_on_gpu(tmp_path, "--quick", "W12")
    assert [one["side"] for one in found["results"]] == ["Coach", "straight loop"] * 2
    assert all(one["steps_per_second"] > 0 for one in found["results"]) and not found["left_out"]
    assert found["machine"]["has_gpu"] or "finds no GPU" in printed
    assert "W12, 64 copies" in printed
