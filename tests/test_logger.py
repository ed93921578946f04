from __future__ import annotations

import json
import os
import pathlib
import re
import sys

import imageio.v3 as imageio
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.logger import (
    EpisodeLogger,
    Logger,
    ScreenLogger,
    create_gif,
    create_mp4,
    get_experiment_name,
    get_experiment_path,
    remove_experiment_dir,
    summarize_experiment,
    two_digits,
)
from rl_coach.utils import CoachError
from tests.terminal import terminal


def logger_in(directory, **settings):
    logger = Logger()
    logger.set_logger_filenames(str(directory), "graph.level.agent", task_id=0, **settings)
    return logger


def table(logger):
    return pandas.read_csv(logger.csv_path, float_precision="round_trip")


def text_of(logger):
    return pathlib.Path(logger.csv_path).read_text()


def test_the_files_are_named_as_coach_names_them(tmp_path):
    logger = logger_in(tmp_path)
    assert logger.csv_path == str(tmp_path / "worker_0.graph.level.agent_0.csv")
    assert logger.doc_path == str(tmp_path / "worker_0.graph.level.agent_0.json")
    assert os.listdir(tmp_path) == []


def test_another_run_in_the_same_directory_gets_another_number(tmp_path):
    (tmp_path / "worker_0.graph.level.agent_0.csv").touch()
    assert logger_in(tmp_path).csv_path.endswith("agent_1.csv")


def test_a_row_is_written_once_its_index_is_past(tmp_path):
    logger = logger_in(tmp_path)
    logger.set_current_time(1)
    logger.create_signal_value("Reward", 1.5)
    logger.dump_output_csv()
    assert not os.path.exists(logger.csv_path)
    logger.set_current_time(2)
    logger.create_signal_value("Reward", 2)
    logger.dump_output_csv()
    assert table(logger).to_dict("list") == {"Episode #": [1], "Reward": [1.5]}
    logger.close()
    logger.close()
    assert table(logger).to_dict("list") == {"Episode #": [1, 2], "Reward": [1.5, 2.0]}


def test_lines_that_are_written_are_never_written_again(tmp_path):
    logger = logger_in(tmp_path)
    before, inode = b"", None
    for index in range(20):
        logger.set_current_time(index)
        logger.create_signal_value("Reward", index / 3)
        logger.dump_output_csv()
        if index:
            with open(logger.csv_path, "rb") as file:
                now = file.read()
            assert now.startswith(before) and now.endswith(b"\n")
            assert inode in (None, os.stat(logger.csv_path).st_ino)
            before, inode = now, os.stat(logger.csv_path).st_ino
    assert list(table(logger)["Reward"]) == [index / 3 for index in range(19)]


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.floats(allow_infinity=False) | st.integers(-9, 9)),
        min_size=1,
        max_size=12,
    )
)
def test_the_file_can_be_read_after_every_dump(tmp_path_factory, rows):
    logger = logger_in(tmp_path_factory.mktemp("csv"))
    for index, row in enumerate(rows):
        logger.set_current_time(index)
        logger.create_signal_value("Total steps", index)
        for name, value in row.items():
            logger.create_signal_value(name, value)
        logger.dump_output_csv()
        if index:
            assert list(table(logger)["Episode #"]) == list(range(index))
    logger.close()
    written = table(logger)
    for index, row in enumerate(rows):
        for name, value in row.items():
            np.testing.assert_equal(float(written[name][index]), float(value))


def test_a_late_signal_adds_a_column_at_the_right(tmp_path):
    logger = logger_in(tmp_path)
    for index, name in enumerate(["a", "a", "b"]):
        logger.set_current_time(index)
        logger.create_signal_value(name, index)
    logger.dump_output_csv()
    logger.close()
    text = text_of(logger)
    assert text == "Episode #,a,b\n0,0,\n1,1,\n2,,2\n"
    logger.set_current_time(3)
    logger.create_signal_value("c, d", "x")
    logger.close()
    assert text_of(logger) == 'Episode #,a,b,"c, d"\n0,0,,\n1,1,,\n2,,2,\n3,,,x\n'
    assert sorted(os.listdir(tmp_path)) == ["worker_0.graph.level.agent_0.csv"]


def test_announced_signals_need_no_second_header(tmp_path):
    logger = logger_in(tmp_path)
    logger.add_columns(["Reward", "Evaluation Reward", "Reward"])
    logger.create_signal_value("Reward", 1)
    logger.close()
    assert text_of(logger) == "Episode #,Reward,Evaluation Reward\n0,1,\n"


def test_a_killed_migration_leaves_the_old_file(tmp_path, monkeypatch):
    logger = logger_in(tmp_path)
    logger.create_signal_value("a", 1)
    logger.close()
    logger.set_current_time(1)
    logger.create_signal_value("b", 1)

    def failing(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("rl_coach.logger.os.replace", failing)
    with pytest.raises(KeyboardInterrupt):
        logger.close()
    assert table(logger).to_dict("list") == {"Episode #": [0], "a": [1]}


def test_values_as_cells(tmp_path):
    logger = logger_in(tmp_path)
    values = {
        "nan": float("nan"),
        "empty": "",
        "float32": np.float32(0.5),
        "array": np.array([3]),
        "none": None,
        "bool": True,
        "exact": 0.1,
        "large": 10**12,
    }
    for name, value in values.items():
        logger.create_signal_value(name, value)
    logger.close()
    assert text_of(logger).splitlines()[1] == "0,,,0.5,3,,True,0.1,1000000000000"


def test_values_by_name():
    logger = Logger()
    logger.set_current_time(4)
    assert logger.create_signal_value("a", 1)
    assert not logger.create_signal_value("a", 2, overwrite=False)
    assert logger.get_signal_value("a") == logger.get_signal_value("a", 4) == 1
    assert logger.change_signal_value("a", 4, 3) and logger.get_signal_value("a") == 3
    assert not logger.change_signal_value("b", 4, 3)
    assert not logger.signal_value_exists("a", 5) and logger.get_signal_value("a", 5) is None


def test_what_comes_too_late_for_a_row_goes_to_the_next(tmp_path):
    logger = logger_in(tmp_path)
    logger.create_signal_value("a", 1)
    logger.close()
    logger.create_signal_value("a", 2, time=0)
    assert logger.signal_value_exists("a", 0) and logger.get_signal_value("a") == 2
    logger.close()
    assert table(logger).to_dict("list") == {"Episode #": [0, 1], "a": [1, 2]}


def test_the_wall_clock_time_is_in_minutes(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("rl_coach.logger.time.monotonic", lambda: now[0])
    logger = Logger()
    now[0] += 90
    logger.update_wall_clock_time(3)
    assert logger.get_signal_value("Wall-Clock Time", 3) == 1.5
    again = Logger()
    again.set_state(logger.get_state())
    now[0] += 30
    assert again.get_current_wall_clock_time() == 2.0


def test_a_resumed_run_continues_the_same_file_where_the_state_was_saved(tmp_path):
    logger = logger_in(tmp_path)
    for index in range(3):
        logger.set_current_time(index)
        logger.create_signal_value("a", index)
        logger.dump_output_csv()
    state = json.loads(json.dumps(logger.get_state()))
    for index in range(3, 6):  # lost: they came after the state was saved
        logger.set_current_time(index)
        logger.create_signal_value("late", index)
        logger.dump_output_csv()
    with open(logger.csv_path, "a") as file:
        file.write("5,1")  # a kill in the middle of a line
    again = logger_in(tmp_path, resume=True)
    assert again.csv_path == logger.csv_path
    again.set_state(state)
    again.set_current_time(3)
    again.create_signal_value("a", 33)
    again.close()
    assert list(table(again)["Episode #"]) == [0, 1, 2, 3]
    assert list(table(again)["a"]) == [0, 1, 2, 33]
    assert again.columns == ["a", "late"]


@pytest.mark.parametrize(
    "damage", [bytes(range(256)) * 40, b"\xff\xfe\n" * 9, b"Episode #,a\nx,1\n", b"no line", b"\0\n"]
)
def test_a_damaged_file_of_a_resumed_run_is_kept_aside(tmp_path, capsys, damage):
    logger = logger_in(tmp_path)
    logger.create_signal_value("a", 0)
    logger.close()
    pathlib.Path(logger.csv_path).write_bytes(damage)
    again = logger_in(tmp_path, resume=True)
    again.set_state(logger.get_state())
    again.set_current_time(1)
    again.create_signal_value("a", 11)
    again.close()
    assert pathlib.Path(f"{logger.csv_path}.damaged").read_bytes() == damage
    assert (list(table(again)["Episode #"]), list(table(again)["a"])) == ([1], [11])
    assert "the signals continue in a new file" in "".join(capsys.readouterr())


def test_a_file_that_is_damaged_before_a_new_signal_is_kept_aside(tmp_path):
    logger = logger_in(tmp_path)
    logger.create_signal_value("a", 0)
    logger.close()
    damage = pathlib.Path(logger.csv_path).read_bytes() + b"\xff\n"
    pathlib.Path(logger.csv_path).write_bytes(damage)
    logger.set_current_time(1)
    logger.create_signal_value("b", 1)
    logger.close()
    assert pathlib.Path(f"{logger.csv_path}.damaged").read_bytes() == damage
    assert (logger.columns, list(table(logger)["Episode #"]), list(table(logger)["b"])) == (["a", "b"], [1], [1])


def test_the_parameters_and_the_run_as_json(tmp_path):
    logger = logger_in(tmp_path)
    logger.dump_documentation({"visualization": VisualizationParameters(), "seed": 5})
    document = json.loads(pathlib.Path(logger.doc_path).read_text())
    assert document["parameters"]["visualization"]["dump_csv"] is True
    assert document["parameters"]["seed"] == 5
    assert {"start_time", "command_line", "git_revision", "platform", "versions"} <= document["run"].keys()
    assert document["run"]["versions"]["python"].startswith("3.")


def test_tensorboard_shows_signals_against_steps_and_the_hyper_parameters(tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

    logger = logger_in(tmp_path, tensorboard=True)
    logger.set_hyper_parameters({"agent": {"discount": 0.9, "scheme": "Medium", "nothing": None}, "seed": 3})
    logger.create_signal_value("Total steps", 1234)
    logger.create_signal_value("Training Reward", 3.0)
    logger.create_signal_value("text", "no number")
    logger.close()
    (path,) = (tmp_path / "tensorboard" / "worker_0.graph.level.agent_0").iterdir()
    found, hyper_parameters = {}, {}
    for record in records_of(path.read_bytes()):
        event = Event.FromString(record)
        for value in event.summary.value:
            if value.tag == "_hparams_/session_start_info":
                data = HParamsPluginData.FromString(value.metadata.plugin_data.content)
                hyper_parameters = {name: str(one) for name, one in data.session_start_info.hparams.items()}
            elif not value.tag.startswith("_hparams_"):
                found[value.tag] = (event.step, value.simple_value)
    assert found["Training_Reward"] == (1234, 3.0) and "text" not in found
    assert sorted(hyper_parameters) == ["agent.discount", "agent.scheme", "seed"]


def records_of(content):
    """The records of a file of TensorBoard: a length of 8 bytes, 4 of its checksum, the record, 4 of its checksum."""
    place = 0
    while place < len(content):
        length = int.from_bytes(content[place : place + 8], "little")
        yield content[place + 12 : place + 12 + length]
        place += length + 16


def test_the_steps_of_episodes_each_in_a_file(tmp_path):
    logger = EpisodeLogger()
    logger.set_logger_filenames(str(tmp_path), "graph.level.agent", task_id=0)
    for episode in (1, 2):
        logger.set_episode_idx(episode)
        for step in range(episode + 1):
            logger.set_current_time(step)
            logger.create_signal_value("Action", step * 10)
    logger.close()
    directory = tmp_path / "worker_0.graph.level.agent.episodes"
    assert (directory / "episode_2.csv").read_text() == "Episode Steps,Action\n0,0\n1,10\n2,20\n"
    assert len(pandas.read_csv(directory / "episode_1.csv")) == 2


def test_an_experiment_directory_is_never_shared(tmp_path):
    first, second = (get_experiment_path("name", str(tmp_path)) for _ in range(2))
    assert os.path.isdir(first) and os.path.isdir(second) and first != second
    assert os.path.dirname(first) == str(tmp_path / "name")
    assert not os.path.exists(get_experiment_path("other", str(tmp_path), create_path=False))


def test_an_experiment_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CoachError, match="cannot be written"):
        get_experiment_path("name", str(tmp_path / "file"))


def test_an_experiment_has_a_name_without_asking():
    assert get_experiment_name("mine") == "mine"
    assert get_experiment_name(None, default="CartPole_DQN") == "CartPole_DQN"
    with pytest.raises(CoachError, match=r"'\.\./up'"):
        get_experiment_name("../up")
    with pytest.raises(CoachError, match=r"'/tmp/x' cannot be an experiment's name"):
        get_experiment_name(None, default="/tmp/x")


def test_videos(tmp_path):
    frames = np.stack([np.full((31, 48, 3), 60 * number, dtype=np.uint8) for number in range(4)])
    gif = create_gif(frames, fps=5, name="Episode-1", directory=str(tmp_path))
    mp4 = create_mp4(list(frames), name="Episode-1", directory=str(tmp_path))
    for path, shape in ((gif, (4, 31, 48, 3)), (mp4, (4, 32, 48, 3))):
        read = imageio.imread(path)
        assert read.shape == shape
        np.testing.assert_allclose(read[:, 10, 10, 0], np.arange(4) * 60, atol=6)
    assert imageio.immeta(gif)["duration"] == 200


def test_videos_need_imageio(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio", None)
    with pytest.raises(CoachError, match="the package 'imageio' of the extra 'video' is not installed"):
        create_gif([], directory=str(tmp_path))


def test_lines_for_people(capsys):
    logger = ScreenLogger("coach")
    logger.log_dict({"Episode": 3, "Reward": 1.5}, prefix="Training")
    logger.print("one", 2)
    logger.log("[bold]no markup[/bold] " + "x" * 200)
    for line in (logger.log_title, logger.success, logger.warning, logger.announce):
        line("text")
    logger.separator()
    logger.error("bad", crash=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["coach: Training - Episode: 3  Reward: 1.5", "coach: one 2"]
    assert lines[2] == "coach: [bold]no markup[/bold] " + "x" * 200
    assert lines[3:6] == ["coach: text", "coach: text", "coach: warning: text"]
    assert lines[7] == "coach: error: bad"
    with pytest.raises(CoachError, match="bad"):
        logger.error("bad")
    assert not logger.is_live


def test_lines_are_kept_in_a_file_from_the_start(tmp_path, capsys):
    logger, kept = ScreenLogger("", use_colors=False), tmp_path / "console.log"
    logger.print("loading")
    logger.keep(kept)
    logger.warning("careful")
    logger.note("coach: only in the file")
    logger.keep(None)
    logger.print("of the next run")
    assert kept.read_text() == "loading\ncareful\ncoach: only in the file\n"
    assert capsys.readouterr().out == "loading\n!! careful\nof the next run\n"
    logger.keep(tmp_path / "next.log")
    assert (tmp_path / "next.log").read_text() == "of the next run\n"
    logger.keep(tmp_path / "gone" / "console.log")
    logger.print("a run goes on without its file")


def test_lines_for_programs(capsys):
    logger = ScreenLogger("")
    logger.set_use_colors(False)
    logger.log_dict({"Name": "main_level/agent", "Total reward": 31.0}, prefix="Training")
    for line in (logger.log_title, logger.success, logger.warning, logger.announce):
        line("text")
    logger.error("bad", crash=False)
    first, *others = capsys.readouterr().out.splitlines()
    time = r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{6}"
    assert re.fullmatch(rf"Training> {time} , Name=main_level/agent, Total reward=31\.0", first)
    assert others == ["## text", "** text", "!! text", "## text", "!!!! bad"]
    assert logger.is_read_by_programs and not logger.is_live


def test_nobody_is_asked_where_there_is_no_terminal(monkeypatch):
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        logger = ScreenLogger("")
        assert [logger.ask_yes_no("Go on?", default) for default in (None, True, False)] == [False, True, False]
        assert logger.ask_input("Name?") == "" and logger.ask_input_with_timeout("Name?", 9) is None


QUESTIONS = """
from rl_coach.logger import screen
print([screen.ask_yes_no("Go on?"), screen.ask_yes_no("Delete?", default=True), screen.ask_input("Name?")])
print([screen.ask_input_with_timeout("Still there?", 0.05)])
"""


def test_questions_on_a_terminal(tmp_path):
    with terminal([sys.executable, "-c", QUESTIONS], 80, tmp_path) as shown:
        for question, answer in (("(y/n)", "perhaps\nyes\n"), ("(Y/n)", "\n"), ("Name?", "Ada\n")):
            assert shown.watch(30, until=question)
            shown.type(answer)
        shown.watch(30)
        assert "[True, True, 'Ada']" in shown.lines()
        assert shown.lines()[-1] == "[None]" and "Timeout expired." in shown.lines()[-2]


def test_the_experiments_directory_can_be_removed_and_is_told(tmp_path, capsys):
    path = get_experiment_path("name", str(tmp_path))
    summarize_experiment()
    assert f"Results stored at: {path}" in capsys.readouterr().out and os.path.isdir(path)
    remove_experiment_dir()
    assert not os.path.exists(path) and os.path.isdir(tmp_path)
    with pytest.raises(CoachError, match="no experiment directory"):
        remove_experiment_dir()


def test_two_digits():
    assert [two_digits(number) for number in (0, 7, 42, 123)] == ["00", "07", "42", "123"]
