import os
import signal
import sys
import threading
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach import utils
from rl_coach.utils import CoachError, LazyArray, Signal


def test_suggestions():
    presets = ["CartPole_DQN", "CartPole_PAL", "Atari_DQN"]
    assert utils.nearest("cartpole_dnq", presets)[0] == "CartPole_DQN"
    assert utils.did_you_mean("CartPole_DNQ", presets[::2]).startswith("; did you mean 'CartPole_DQN'")
    assert utils.did_you_mean("zzz", presets) == ""


def test_all_names_are_listed_if_none_is_similar():
    assert utils.choose_from("rela", ["relu", "tanh"]) == "; did you mean 'relu'?"
    assert utils.choose_from("zzz", ["relu", "tanh"]) == "; choose from 'relu', 'tanh'"
    assert utils.choose_from("zzz", []) == "; there are none"


def test_a_lazy_array_is_read_by_any_use_and_not_before():
    reads = []

    def compute():
        reads.append(True)
        return np.array([1.0, 3.0])

    lazy, signal = LazyArray(compute), Signal("Loss")
    signal.add_sample(lazy)
    assert not reads
    assert signal.get_mean() == 2
    assert isinstance(signal.values[0], np.ndarray)
    np.testing.assert_array_equal(lazy + 1, [2, 4])
    np.testing.assert_array_equal(1 - lazy, [0, -2])
    assert np.isfinite(lazy).all() and np.sum(lazy) == 4
    assert float(LazyArray(lambda: 5)) == 5


class TestSignal:
    def test_statistics_of_numbers_and_arrays(self):
        signal = Signal("Loss")
        signal.add_sample(1)
        signal.add_sample(np.array([[2.0, 5.0], [0.0, 2.0]]))
        assert (signal.get_mean(), signal.get_max(), signal.get_min()) == (2, 5, 0)
        assert signal.get_stdev() == pytest.approx(np.std([1, 2, 5, 0, 2]))
        assert signal.get_last_value().shape == (2, 2)

    def test_without_samples_the_cell_is_empty(self):
        signal = Signal("Loss")
        signal.add_sample(3)
        signal.reset()
        assert signal.get_mean() == signal.get_max() == signal.get_min() == signal.get_stdev() == ""
        assert np.isnan(signal.get_last_value())

    @given(samples=st.lists(st.floats(-1e6, 1e6), min_size=1))
    def test_they_are_numpys(self, samples):
        signal = Signal("Loss")
        for sample in samples:
            signal.add_sample(sample)
        assert signal.get_mean() == np.mean(samples) and signal.get_stdev() == np.std(samples)


def test_lists():
    assert utils.force_list(3) == [3] and utils.force_list([3]) == [3]
    assert utils.squeeze_list([3]) == 3 and utils.squeeze_list([3, 4]) == [3, 4] and utils.squeeze_list(3) == 3


def test_names():
    assert utils.lower_under_to_upper("clipped_ppo_agent") == "ClippedPpoAgent"


def test_classes():
    class Base:
        pass

    class Middle(Base):
        pass

    class Leaf(Middle):
        pass

    assert utils.get_all_subclasses(Base) == [Middle, Leaf]
    module = types.ModuleType("some")
    module.Leaf, module.number = Leaf, 3
    assert utils.list_all_classes_in_module(module) == ["Leaf"]


@pytest.fixture
def file(tmp_path):
    """A user's file with a class and a function in it."""
    path = tmp_path / "my_agent.py"
    path.write_text(
        "class Agent:\n    def __init__(self, first, second=2, third=3):\n        self.got = (first, second, third)\n"
        "class Greedy:\n    def __init__(self, **kwargs):\n        self.got = kwargs\n"
    )
    yield path
    for name in [name for name in sys.modules if name.startswith("_coach_file_") and "my_agent" in name]:
        del sys.modules[name]


class TestImports:
    def test_a_file_is_imported_once(self, file):
        assert utils.import_file(str(file)) is utils.import_file(str(file))
        assert utils.short_dynamic_import(f"{file}:Agent") is utils.import_file(str(file)).Agent

    def test_a_file_that_has_changed_since_its_import_gives_a_warning(self, file, caplog):
        module = utils.import_file(str(file))
        file.write_text("class Agent:\n    changed = True\n")
        os.utime(file, ns=(1, 1))
        assert utils.import_file(str(file)) is module and utils.import_file(str(file)) is module
        (record,) = caplog.records
        assert record.getMessage().startswith(f"'{file}' has changed, but this process continues with the version")

    def test_files_whose_paths_differ_only_in_signs_are_different_modules(self, tmp_path):
        first, second = tmp_path / "my_agent.py", tmp_path / "my-agent.py"
        for path in (first, second):
            path.write_text(f"name = {path.name!r}")
        assert [utils.import_file(str(path)).name for path in (first, second, first)] == [
            "my_agent.py",
            "my-agent.py",
            "my_agent.py",
        ]

    def test_a_file_that_fails_is_tried_again(self, tmp_path):
        path = tmp_path / "broken_my_agent.py"
        path.write_text("raise RuntimeError('broken')")
        for _ in range(2):
            with pytest.raises(RuntimeError, match="broken"):
                utils.import_file(str(path))

    def test_modules(self):
        assert utils.short_dynamic_import("rl_coach.utils:Signal") is Signal
        assert utils.short_dynamic_import("rl_coach.UTILS:Signal", ignore_module_case=True) is Signal

    def test_mistakes(self, file, tmp_path):
        with pytest.raises(CoachError, match=r"no file '.*gone\.py'"):
            utils.import_file(str(tmp_path / "gone.py"))
        with pytest.raises(CoachError, match="has no 'Agnet'; did you mean 'Agent'"):
            utils.short_dynamic_import(f"{file}:Agnet")
        with pytest.raises(CoachError, match="'Signal' must have the form 'module:attribute'"):
            utils.short_dynamic_import("Signal")

    def test_objects_from_parameters(self, file):
        parameters = types.SimpleNamespace(path=f"{file}:Agent", first=1, third=5, unknown=7, _private=8)
        build = utils.dynamic_import_and_instantiate_module_from_params
        assert build(parameters).got == (1, 2, 5)
        assert build(parameters, extra_kwargs={"second": 9, "first": 0}).got == (0, 9, 5)
        assert build(parameters, positional_args=["a"]).got == ("a", 2, 5)
        assert build(parameters, path=f"{file}:Greedy").got.keys() == {"path", "first", "third", "unknown"}


def test_public_attributes():
    assert utils.public_attributes(types.SimpleNamespace(a=1, _b=2)) == {"a": 1}


def test_the_package_directory():
    assert utils.get_base_dir().endswith("rl_coach")


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """An interpreter in ``bin`` below the working directory, with a program ``coach`` beside it."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "coach"):
        (tmp_path / "bin" / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_by_its_path_where_its_name_does_not_find_it(installation):
    assert utils.program("coach") == "bin/coach"


def test_by_a_path_that_a_shell_finds_beside_it(installation, monkeypatch):
    monkeypatch.chdir(installation / "bin")
    assert utils.program("coach") == "./coach"


def test_by_its_full_path_from_elsewhere(installation, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert utils.program("coach") == str(installation / "bin" / "coach")


def test_by_its_name_where_that_finds_it(installation, monkeypatch):
    monkeypatch.setenv("PATH", str(installation / "bin"))
    assert utils.program("coach") == "coach"


def test_by_its_path_where_its_name_finds_another(installation, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    (other / "coach").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(other))
    assert utils.program("coach") == "bin/coach"


def test_by_its_name_where_it_is_not_installed(installation):
    assert utils.program("dashboard") == "dashboard"


class TestCommands:
    def ended(self, result):
        for _ in range(400):
            if result[0] != [None]:
                return result[0]
            threading.Event().wait(0.02)
        raise AssertionError("the command has not ended")

    def test_the_exit_code_of_a_command_in_bash(self):
        result = [[None]]
        utils.cmd_line_run(result, "[[ a == a ]] && exit 7")
        assert result == [7]

    def test_a_command_beside_the_program_ends_by_itself_or_is_killed(self):
        assert self.ended(utils.threaded_cmd_line_run("exit 3")) == 3
        running = utils.threaded_cmd_line_run("sleep 60", id=41)
        assert running == [[None]]
        utils.killed_processes.append(41)
        assert self.ended(running) == -signal.SIGKILL


def test_all_presets_are_listed():
    found = utils.list_all_presets()
    assert {"CartPole_DQN", "CartPole_ClippedPPO"} <= set(found) and not [name for name in found if name[0] == "_"]
