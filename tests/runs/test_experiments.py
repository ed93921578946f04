from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from rl_coach.runs.experiments import (
    COPIED_AFTER_SECONDS,
    SignalFile,
    Summary,
    column_names,
    describe,
    episode_files,
    find_signal_files,
    flatten,
    last_growth,
    load,
    parse_timestamp,
    read_end,
    run_ids,
    videos,
)
from rl_coach.runs.signal_file import LONGEST_LINE_BYTES, extremes, parse
from rl_coach.utils import CoachError
from tests.dashboard.runs import write_coach_1_run, write_episodes, write_gif, write_run

HEADER = "Episode #,Total steps,Wall-Clock Time,Evaluation Reward\n"


def write(path, text, mode="w"):
    with open(path, mode, newline="") as file:
        file.write(text)
    return path


def test_reads_only_what_grew(tmp_path):
    path = write(tmp_path / "run.csv", HEADER + "1,10,60,\n2,20,120,7.5\n")
    file = SignalFile(path)
    assert file.refresh() and file.rows == 2
    read = file.offset
    assert not file.refresh()
    write(path, "3,30,180,\n", "a")
    assert file.refresh() and file.offset == read + len("3,30,180,\n")
    np.testing.assert_array_equal(file.column("Total steps"), [10, 20, 30])
    np.testing.assert_array_equal(file.column("Evaluation Reward"), [np.nan, 7.5, np.nan])
    assert file.restarts == 0


def test_a_row_counts_once_its_line_has_ended(tmp_path):
    path = write(tmp_path / "run.csv", HEADER + "1,10,60,\n2,2")
    file = SignalFile(path)
    file.refresh()
    assert file.rows == 1
    write(path, "0,120,5\n", "a")
    file.refresh()
    np.testing.assert_array_equal(file.column("Total steps"), [10, 20])


@given(st.lists(st.integers(0, 200), max_size=8))
def test_any_way_of_growing_reads_the_same(tmp_path_factory, cuts):
    text = HEADER + "".join(f"{row},{row * 10},{row / 7},{'' if row % 3 else row}\n" for row in range(1, 9))
    path = tmp_path_factory.mktemp("grow") / "run.csv"
    file = SignalFile(write(path, ""))
    written = 0
    for cut in [*sorted(min(cut, len(text)) for cut in cuts), len(text)]:
        write(path, text[written:cut], "a")
        written = max(written, cut)
        file.refresh()
    assert file.rows == 8
    np.testing.assert_array_equal(file.column("Total steps"), np.arange(1, 9) * 10)


@pytest.mark.parametrize("text", ["", "Episode #", "Episode #,A", "\n", "\n\n\n"])
def test_a_file_without_rows_is_no_error(tmp_path, text):
    file = SignalFile(write(tmp_path / "run.csv", text))
    file.refresh()
    assert file.rows == 0
    assert file.column("A").size == 0


def test_a_file_that_was_truncated_or_replaced_is_read_anew(tmp_path):
    path = write(tmp_path / "run.csv", HEADER + "1,10,60,\n2,20,120,\n")
    file = SignalFile(path)
    file.refresh()
    write(path, HEADER + "1,11,60,\n")
    file.refresh()
    np.testing.assert_array_equal(file.column("Total steps"), [11])
    write(path, HEADER + "".join(f"{row},{row},0,\n" for row in range(1, 10)))
    file.refresh()
    assert file.rows == 9 and file.restarts == 2
    write(path, "Episode #,Other\n1,5\n")
    file.refresh()
    assert file.names == ["Episode #", "Other"]


def test_what_is_no_number_is_nan_and_a_broken_line_is_left_out(tmp_path):
    body = "1,abc,True,\n2,3,False,1e400\nxyz,1,1,1\n3,4\n4,5,1,inf,9\n5,nan,,-2\n\n6,\xff,1,1\n".encode("latin-1")
    table, left_out = parse(body, ["Episode #", "A", "B", "C"])
    np.testing.assert_array_equal(table.column("Episode #").to_numpy(), [1, 2, 5])
    np.testing.assert_array_equal(table.column("A").to_numpy(), [np.nan, 3, np.nan])
    np.testing.assert_array_equal(table.column("B").to_numpy(), [1, 0, np.nan])
    assert left_out == 4


@pytest.mark.parametrize(
    "damage",
    [
        b"2,20,\xff\xfe,3,4\n",
        b"2,20,\xff,\n",
        b"2,20," + b"x" * (5 << 20) + b"\n",
        b"9" * (LONGEST_LINE_BYTES + 5) + b"\n",
        b"2,20\n",
        b'2,"20,120\n',
        HEADER.encode(),
    ],
    ids=["not UTF-8 and too many cells", "not UTF-8", "5 MB cell", "no cells", "too few", "open quote", "header again"],
)
def test_a_damaged_line_is_left_out_and_counted_and_reading_goes_on(tmp_path, damage):
    path = tmp_path / "run.csv"
    path.write_bytes(HEADER.encode() + b"1,10,60,\n" + damage + b"3,30,180,\n")
    file = SignalFile(path)
    file.refresh()
    good = file.column("Total steps")[np.isin(file.column("Episode #"), [1, 3])]
    np.testing.assert_array_equal(good, [10, 30])
    assert file.left_out == 1
    write(path, "4,40,240,\n", "a")
    assert file.refresh() and file.column("Total steps")[-1] == 40
    assert file.restarts == 0 and not file.refresh()


def test_a_line_that_never_ends_takes_no_memory_and_no_row(tmp_path):
    path = write(tmp_path / "run.csv", HEADER + "1,10,60,\n")
    file = SignalFile(path)
    file.refresh()
    with open(path, "ab") as grown:
        grown.write(b"7" * (20 << 20))
    file.refresh()
    assert (file.rows, file.left_out) == (1, 0)
    write(path, "\n3,30,180,\n", "a")
    file.refresh()
    np.testing.assert_array_equal(file.column("Total steps"), [10, 30])
    assert file.left_out == 1 and not file.refresh()


def test_reads_only_the_columns_wanted(tmp_path):
    path = write(tmp_path / "run.csv", HEADER + "1,10,60,5\n2,20,x,7\n")
    file = SignalFile(path, wanted=["Evaluation Reward", "no such"])
    file.refresh()
    assert file.names == HEADER.strip().split(",")
    assert file.table.column_names == ["Episode #", "Evaluation Reward"]
    np.testing.assert_array_equal(file.column("Evaluation Reward"), [5, 7])
    assert file.has(["Evaluation Reward"]) and not file.has(["Total steps"])


def test_twenty_thousand_columns_are_read_in_a_moment(tmp_path):
    names = [f"Signal {place % 15000}" for place in range(20_000)]
    path = write(tmp_path / "run.csv", "Episode #," + ",".join(names) + "\n")
    for row in range(20):
        write(path, f"{row}," + ",".join(["1.5"] * len(names)) + "\n", "a")
    file = SignalFile(path, wanted=["Signal 7", "Signal 7 (2)"])
    file.refresh()
    assert len(set(file.names)) == 20_001 and file.rows == 20
    assert file.table.column_names == ["Episode #", "Signal 7", "Signal 7 (2)"]


def test_of_many_rows_those_are_kept_that_draw_alike(tmp_path):
    rows = 50_000
    values = np.random.default_rng(0).normal(size=rows)
    values[23_456] = 99.0
    lines = "".join(f"{row},{value:.6f},{row if row % 1000 == 0 else ''}\n" for row, value in enumerate(values))
    path = write(tmp_path / "run.csv", "Episode #,A,Rare\n" + lines)
    file = SignalFile(path, most_rows=4000)
    file.refresh()
    assert file.is_condensed and file.rows <= 4000
    assert file.column("A").max() == 99.0 and file.column("Episode #")[-1] == rows - 1
    assert np.isfinite(file.column("Rare")).sum() == rows // 1000
    write(path, f"{rows},-99,1\n", "a")
    file.refresh()
    assert file.column("A")[-1] == -99.0
    assert not SignalFile(path).is_condensed
    whole = load(path).signals
    assert len(whole) == rows + 1


def test_extremes_of_a_stretch():
    y = np.array([0.0, 5, 1, 1, 1, -3, 2, 2, 2])
    assert {0, 1, 5, 8} <= set(extremes(y, 6))


def test_names_of_columns_are_unique_and_none_is_empty():
    assert column_names(b'\xef\xbb\xbfEpisode #,,A,A,"Q, mean"\r\n') == [
        "Episode #",
        "column 2",
        "A",
        "A (2)",
        "Q, mean",
    ]


def test_runs_are_found_at_any_depth_but_not_among_what_a_run_keeps(tmp_path):
    path = write_run(tmp_path / "deep" / "deeper", "CartPole_DQN", "21_11_2026-10_30")
    write_episodes(path, range(2))
    (path.parent / "checkpoint").mkdir()
    write(path.parent / "checkpoint" / "x.csv", HEADER)
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert [entry.path for entry in find_signal_files(tmp_path)] == [str(path)]
    assert list(find_signal_files(tmp_path / "missing")) == []


def test_ids_name_the_directory_or_the_file_where_that_has_several(tmp_path):
    paths = [str(tmp_path / "A" / "run.csv"), str(tmp_path / "B" / "w0.csv"), str(tmp_path / "B" / "w1.csv")]
    assert run_ids(tmp_path, paths) == ["A", "B/w0", "B/w1"]
    assert run_ids(tmp_path, [str(tmp_path / "run.csv")]) == ["run"]


def test_describes_a_run_by_its_json_and_its_place(tmp_path):
    path = write_run(tmp_path, "CartPole_DQN", "21_11_2026-10_30", seed=7, parameters={"network": {"rate": 1e-3}})
    about = describe(path, tmp_path, "id")
    assert (about.experiment, about.preset, about.agent, about.environment) == (
        *("CartPole_DQN", "CartPole_DQN", "DQN", "CartPole-v1"),
    )
    assert (about.seed, about.worker, about.counts_minutes) == (7, 0, True)
    assert about.start == parse_timestamp("21_11_2026-10_30")
    assert about.parameters["agent.network.rate"] == 1e-3
    assert about.parameters["run.versions.rl_coach"] == "2.0.0"


@pytest.mark.parametrize("document", [None, "", "{", "[1]", '{"agent": {"seed": true}}'])
def test_describes_a_run_without_a_good_json(tmp_path, document):
    path = write(tmp_path / "some.csv", HEADER)
    if document is not None:
        write(path.with_suffix(".json"), document)
    about = describe(path, tmp_path, "some")
    assert (about.experiment, about.seed, about.start, about.counts_minutes) == (tmp_path.name, None, None, False)


def test_timestamps():
    assert parse_timestamp("21_11_2026-10_30") is not None
    assert parse_timestamp("21_11_2026-10_30-2") == parse_timestamp("21_11_2026-10_30")
    assert parse_timestamp("31_02_2026-10_30") is None
    assert parse_timestamp("run") is None


def test_flattens_nested_settings():
    assert flatten({"a": {"b": [1, {"c": 2}], "d": {}}, "e": [1, 2]}) == {
        "a.b.0": 1,
        "a.b.1.c": 2,
        "a.d": {},
        "e": [1, 2],
    }


def test_the_end_of_a_file_tells_where_the_run_stands(tmp_path):
    rows = "".join(f"{row},{row * 10},{row / 2},{row if row % 5 == 0 else ''}\n" for row in range(1, 4001))
    names, summary = read_end(write(tmp_path / "run.csv", HEADER + rows + "4001,9"), counts_minutes=True)
    assert names == column_names(HEADER.encode())
    assert (summary.steps, summary.minutes, summary.last_evaluation_reward) == (40000, 2000, 4000)
    assert not summary.complete
    assert read_end(write(tmp_path / "empty.csv", ""), True)[0] == []


def test_summary_by_the_whole_file():
    summary = Summary()
    names = column_names(HEADER.encode())
    summary.add(parse(b"1,100,60,5\n2,200,120,\n", names)[0], counts_minutes=False)
    summary.add(parse(b"3,300,180,3\n", names)[0], counts_minutes=False)
    assert (summary.steps, summary.minutes, summary.steps_per_second) == (300, 3, 300 / 180)
    assert (summary.last_evaluation_reward, summary.best_evaluation_reward) == (3, 5)


def test_episodes_and_videos_of_a_run(tmp_path):
    path = write_run(tmp_path, "CartPole_DQN", "21_11_2026-10_30")
    assert episode_files(path) == {} and videos(path) == []
    write_episodes(path, range(9, 12))
    gif = write_gif(path, "episode")
    assert list(episode_files(path)) == [9, 10, 11]
    assert videos(path) == [gif]


def test_loads_tidy_frames(tmp_path):
    for seed in range(2):
        write_run(tmp_path, "CartPole_DQN", f"21_11_2026-10_3{seed}", seed=seed, rows=20)
    experiments = load(tmp_path)
    assert list(experiments.runs["seed"]) == [0, 1]
    assert experiments.runs.index.name == "run"
    assert len(experiments.signals) == 40
    assert experiments.parameters.loc["CartPole_DQN/21_11_2026-10_31", "seed"] == 1
    tidy = experiments.tidy("Training Reward", "Evaluation Reward")
    assert list(tidy.columns) == ["run", "episode", "iteration", "steps", "minutes", "signal", "value"]
    assert len(tidy[tidy.signal == "Training Reward"]) == 40
    assert len(tidy[tidy.signal == "Evaluation Reward"]) == 4
    with pytest.raises(CoachError, match="no signal 'Reward'; the signals are: ER #Episodes"):
        experiments.tidy("Reward")


def test_loads_single_files_and_says_what_is_missing(tmp_path):
    path = write_run(tmp_path, "CartPole_DQN", "21_11_2026-10_30", rows=5)
    assert len(load(path).runs) == 1
    assert len(load([path, path.parent]).signals) == 5
    with pytest.raises(CoachError, match="no file or directory"):
        load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CoachError, match="no signal CSV below"):
        load(tmp_path / "empty")


def test_an_experiment_of_coach_1_shows_agent_environment_and_that_it_has_finished(tmp_path):
    path = write_coach_1_run(tmp_path, "breakout", "03_05_2019-14_20")
    run = load(tmp_path).runs.iloc[0]
    assert (run["agent"], run["environment"], run["framework"]) == (
        "ClippedPPO",
        "BreakoutDeterministic-v4",
        "tensorflow",
    )
    assert (run["state"], run["seed"], run["preset"]) == ("finished", 7, "breakout")
    parameters = describe(path, tmp_path, "id").parameters
    assert parameters["agent.network_wrappers.main.learning_rate"] == 0.0003
    assert parameters["agent.network_wrappers.main.embedding_merger_type"] == "Concat"


@pytest.mark.parametrize("text", ["", "agent_params: \n", 'agent_params: \n"X" {\n    "a": \n}\n', "\xff", "[" * 5000])
def test_a_text_record_that_is_damaged_says_nothing(tmp_path, text):
    path = write_coach_1_run(tmp_path, "breakout", "03_05_2019-14_20")
    (path.parent / "worker_0.simple_rl_graph_0.json").write_text(text, encoding="latin-1")
    assert describe(path, tmp_path, "id").agent == ""


def test_a_copy_is_no_older_than_its_own_clock_says(tmp_path):
    about = describe(write_coach_1_run(tmp_path, "old", "03_05_2019-14_20"), tmp_path, "id")
    ended = about.start + 600
    summary = Summary(minutes=10.0)
    assert last_growth(about, summary, ended + 10 * COPIED_AFTER_SECONDS) == ended
    assert last_growth(about, summary, ended + 60) == ended + 60
    assert last_growth(about, Summary(), ended + 10 * COPIED_AFTER_SECONDS) == ended + 10 * COPIED_AFTER_SECONDS


@pytest.mark.parametrize(
    "asked", ["CartPole_DQN", "presets/CartPole_DQN.py", "a/b/CartPole_DQN.py:graph_manager", "my.presets.CartPole_DQN"]
)
def test_a_preset_has_one_name_however_it_was_asked_for(tmp_path, asked):
    path = write_run(tmp_path, "x", "21_11_2026-10_30", command_line=["coach", "-p", asked, "-cp", "a=1; b=2"])
    about = describe(path, tmp_path, "id")
    assert (about.preset, about.settings) == ("CartPole_DQN", "a=1; b=2")


def test_flags_are_read_as_runs_side_by_side_are_given_them(tmp_path):
    command_line = ["coach", "--preset=CartPole_DQN", "--custom_parameter=a=1; b=2", "--seed=0"]
    about = describe(write_run(tmp_path, "x", "21_11_2026-10_30", command_line=command_line), tmp_path, "id")
    assert (about.preset, about.settings) == ("CartPole_DQN", "a=1; b=2")


def test_a_run_that_only_evaluates_says_so(tmp_path):
    task = {"framework_type": "Frameworks.jax", "evaluate_only": 1000}
    about = describe(write_run(tmp_path, "x", "21_11_2026-10_30", task=task), tmp_path, "id")
    assert about.evaluates_only and about.framework == "jax"
    assert not describe(write_run(tmp_path, "y", "21_11_2026-10_30"), tmp_path, "id").evaluates_only
