"""Finding and loading presets: names in any case, files, variables, modules, and mistakes in them."""

from __future__ import annotations

import os
import sys

import pytest

from rl_coach.command_line import preset_catalogue
from rl_coach.installation import pip_install
from rl_coach.utils import CoachError, get_base_dir

PRESET = """\
from rl_coach.graph_managers.graph_manager import GraphManager, SimpleSchedule

class Quiet(GraphManager):
    def _create_graph(self, task_parameters):
        return [], []

graph_manager = Quiet("first", SimpleSchedule())
other = Quiet("second", SimpleSchedule())
number = 3
"""


def test_presets_lie_in_the_package_as_users_list_them():
    listed = os.listdir(os.path.join(get_base_dir(), "presets"))
    assert {f"{name}.py" for name in preset_catalogue.list_all_presets()} <= set(listed)


@pytest.fixture
def preset(tmp_path):
    file = tmp_path / "my_preset.py"
    file.write_text(PRESET)
    return str(file)


def test_names_in_any_case():
    assert preset_catalogue.expand("cartpole_dqn").endswith("CartPole_DQN.py")
    assert preset_catalogue.expand("CARTPOLE_DQN") == preset_catalogue.expand("CartPole_DQN")
    assert preset_catalogue.expand("something/else.py") == "something/else.py"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cartpole_dqn", "CartPole_DQN"),
        ("presets/Mine.py", "Mine"),
        ("presets/Mine.py:graph_manager", "Mine"),
        ("presets/Mine.py:second", "Mine_second"),
        ("package.of.mine", "mine"),
    ],
)
def test_the_name_for_experiments(text, name):
    assert preset_catalogue.name_of(text) == name


def test_a_file(preset):
    assert preset_catalogue.load(preset).name == "first"


def test_a_variable_of_a_file(preset):
    assert preset_catalogue.load(f"{preset}:other").name == "second"


def test_a_dotted_module(preset, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "mine.py").write_text(PRESET)
    try:
        assert preset_catalogue.load("shelf.mine").name == "first"
        assert preset_catalogue.load("shelf.mine:other").name == "second"
    finally:
        sys.modules.pop("shelf.mine", None)
        sys.modules.pop("shelf", None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("CartPole_DNQ", "no preset 'CartPole_DNQ'; did you mean 'CartPole_DQN'"),
        ("ppo", "no preset 'ppo'; did you mean 'CartPole_APPO' or 'CartPole_ClippedPPO' or 'Mujoco_ClippedPPO' or "),
        ("nothing_like_it", "no preset 'nothing_like_it' (coach --list shows all)"),
        ("no/such/file.py", "no file 'no/such/file.py'"),
        ("no.such.module", "no preset 'no.such.module'"),
        ("", "no preset ''"),
    ],
)
def test_what_is_not_there(text, part):
    with pytest.raises(CoachError) as error:
        preset_catalogue.load(text)
    assert part in str(error.value)


def test_a_variable_that_is_not_there(preset):
    with pytest.raises(CoachError, match="no graph manager called 'third'; it has graph_manager, other"):
        preset_catalogue.load(f"{preset}:third")


def test_a_variable_that_is_something_else(preset):
    with pytest.raises(CoachError, match="no graph manager called 'number'"):
        preset_catalogue.load(f"{preset}:number")


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("x = (", "mistake.py:1:"),
        ("\nimport sys\nsys.exit(3)", "mistake.py:3: SystemExit: 3: a preset must not end the program"),
        (
            "\nimport no_such_package",
            f"mistake.py': the package 'no_such_package' is not installed: {pip_install('no_such_package')}",
        ),
        ("import rl_coach.agents.dqn_agnet", "the installed package 'rl_coach' has no module 'rl_coach.agents.dqn_agn"),
        ("x = 1\nx.y.z", "mistake.py:2: AttributeError"),
        (
            "from rl_coach.base_parameters import AlgorithmParameters\nAlgorithmParameters().discont = 1",
            "mistake.py:2: TypeError: AlgorithmParameters has no parameter 'discont'; did you mean 'discount'",
        ),
    ],
)
def test_mistakes_in_a_preset_are_one_line(tmp_path, source, part):
    file = tmp_path / "mistake.py"
    file.write_text(source)
    with pytest.raises(CoachError) as error:
        preset_catalogue.load(str(file))
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_what_breaks_deeper_names_the_presets_line_and_keeps_its_stack(tmp_path):
    file = tmp_path / "deeper.py"
    file.write_text("import json\njson.loads('{')")
    with pytest.raises(CoachError, match=r"deeper\.py:2: JSONDecodeError: .*property name") as caught:
        preset_catalogue.load(str(file))
    assert isinstance(caught.value.__cause__, ValueError)
