"""What the documentation shows works: its Python runs, its command lines are understood, its links lead somewhere."""

from __future__ import annotations

import json
import pathlib
import re
import shlex

import pytest

from rl_coach.agents.algorithms import known_algorithms
from rl_coach.coach import CoachLauncher, main
from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import custom_parameters, init, preset_catalogue, search_space, trained_policies, tune
from tests.zoo.project import extras

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "algorithms").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\S+)\n")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def blocks(page: pathlib.Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def write_files(page: pathlib.Path, directory: pathlib.Path) -> None:
    """Write the blocks that begin with ``# file: name`` under that name."""
    for text in blocks(page, "python"):
        named = FILE.match(text)
        if named:
            (directory / named[1]).write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_runs(page, tmp_path):
    write_files(page, tmp_path)
    names: dict = {"__name__": "documentation"}
    for text in blocks(page, "python"):
        if not FILE.match(text):
            exec(compile(text, page.name, "exec"), names)


ONLY_PARSED = (
    "export", "watch", "push", "check-env", "pack", "reproduce", "doctor", "compare",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_command_lines_are_understood(page, tmp_path, monkeypatch):
    write_files(page, tmp_path)
    (tmp_path / "checkpoint").mkdir()
    record = {"arguments": {"preset": "CartPole_DQN"}, "evaluate_only": False, "resumed": []}
    (tmp_path / "checkpoint" / "experiment.json").write_text(json.dumps(record))
    launcher = CoachLauncher()
    for line in "".join(blocks(page, "bash")).splitlines():
        words = shlex.split(re.sub(r"experiments/\S*<date>\S*", "checkpoint", line), comments=True)
        if words[:1] != ["coach"]:
            continue
        if words[1] in ONLY_PARSED:
            command_line.parser_of(words[1]).parse_args(words[2:])
            continue
        if words[1] == "evaluate" and words[2].endswith("_policy"):
            command_line.parser_of("evaluate POLICY").parse_args(words[3:])
            continue
        if words[1:2] == ["fetch"]:
            name = command_line.parser_of("fetch").parse_args(words[2:]).name
            assert name in (None, "OWNER/NAME", *trained_policies.index())
            continue
        if words[1:2] == ["init"]:
            monkeypatch.chdir(tmp_path)
            init.run(words[2:])
            continue
        if words[1:2] == ["tune"]:
            given = command_line.parser_of("tune").parse_args(words[2:])
            assert given.resume or tune.space_of(launcher.get_graph_manager_from_args(given), given.space, 10_000)
            continue
        if words[1:2] == ["sweep"]:
            given = command_line.parser_of("sweep").parse_args(words[2:])
            dimensions = search_space.parse(given.settings, "sweep")
            drawn = search_space.draw(dimensions, given.random or 10)
            graph_manager = launcher.get_graph_manager_from_args(given)
            assert search_space.settings(graph_manager, [(dimensions, values) for values in drawn])
            continue
        if words[1:2] == ["dataset"]:
            args, words[1:] = command_line.get_dataset_parser().parse_known_args(words[2:])
            if args.command != command_line.RECORD:
                continue
        if words[1:2] == ["import"]:
            _, words[1:] = command_line.parser_of("import").parse_known_args(words[2:])
        if words[1:2] == ["evaluate"]:
            evaluated, flags = command_line.evaluation_arguments(words[2:])
            words[1:] = ["--resume", evaluated[0], *flags]
        args = launcher.get_config_args(launcher.get_argument_parser(), words[1:])
        if args.list is None:
            launcher.get_graph_manager_from_args(args)


SESSIONS = blocks(ROOT / "docs" / "troubleshooting.md", "console")


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.splitlines()[0])
def test_mistakes_are_answered_as_the_page_says(session, capsys):
    command, *answer = session.splitlines()
    assert main(shlex.split(command)[2:]) == 2
    assert capsys.readouterr().err.splitlines()[-1:] == answer


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_extra_is_in_the_table_of_extras():
    table = (ROOT / "docs" / "start.md").read_text(encoding="utf-8").partition("| extra |")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"`([\w-]+)`", row.partition(" | ")[0])}
    assert listed == extras()


def test_all_that_may_be_constructed_is_documented():
    text = (ROOT / "docs" / "presets_and_cli.md").read_text(encoding="utf-8")
    for name in [*custom_parameters.CONSTRUCTORS, *custom_parameters.ENUMS]:
        assert f"`{name}" in text, name


def test_every_flag_that_is_documented_exists():
    text = (ROOT / "docs" / "presets_and_cli.md").read_text(encoding="utf-8")
    flags = {flag for action in CoachLauncher().get_argument_parser()._actions for flag in action.option_strings}
    for flag in re.findall(r"^\| `(-\S+?)[`\s]", text, re.MULTILINE):
        assert flag in flags


def test_every_name_of_an_algorithm_is_in_the_table():
    text = (ROOT / "docs" / "own_loop.md").read_text(encoding="utf-8").partition("| names | page |")[2]
    rows = [row.split(" | ")[0] for row in text.partition("\n\n")[0].splitlines()[2:]]
    listed = [tuple(re.findall(r"`([^`]+)`", row)) for row in rows]
    assert listed == [algorithm.names for algorithm in known_algorithms()]


ALGORITHMS = sorted((ROOT / "docs" / "algorithms").glob("*.md"))


@pytest.mark.parametrize("page", ALGORITHMS, ids=lambda page: page.stem)
def test_an_algorithms_page_says_all_that_one_asks(page):
    """What it is, when to use it, from which paper, with which parameters and presets, and what was measured."""
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^(\*\*|## )When to use it", text, re.MULTILINE)
    assert re.search(r"et al\.\s+\d{4}|\w+ \d{4}, \"", text)
    assert re.search(r"^\| .* \|$", text, re.MULTILINE)
    assert "Preset" in text and "Measured" in text


def test_every_agent_and_every_preset_has_its_page():
    pages = [*ALGORITHMS, ROOT / "docs" / "several_agents.md", ROOT / "docs" / "simulators.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for preset in (*preset_catalogue.list_all_presets(), *preset_catalogue.list_tuned_presets()):
        assert f"`{preset}`" in text, preset
    agents = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rl_coach" / "agents").glob("*.py"))
    for name in set(re.findall(r"^class (\w+AgentParameters)", agents, re.MULTILINE)) - {"HumanAgentParameters"}:
        assert name in text, name


def test_the_readme_counts_on_presets_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"-p (\w+)", text):
        assert name.lower() in map(str.lower, preset_catalogue.list_all_presets())


_WITHOUT_A_RUN = ("sweep", "tune", "fetch", "watch")


def test_the_readmes_runs_end_by_themselves():
    launcher = CoachLauncher()
    for line in "".join(blocks(ROOT / "README.md", "bash")).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["coach"] and words[1] not in _WITHOUT_A_RUN:
            args = launcher.get_config_args(launcher.get_argument_parser(), words[1:])
            if args.list is not None:
                continue
            steps = launcher.get_graph_manager_from_args(args).improve_steps
            assert args.apply_stop_condition or steps.num_steps < 10**7, line


def test_the_first_results_of_the_benchmarks_are_those_of_the_tables():
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    summary, _, tables = text.partition("## Golden runs")
    assert re.search(r"(\d+ of \d+) presets reach", summary)[1] == re.search(r"(\d+ of \d+) presets reach", tables)[1]
    rows = re.findall(r"^\| `(tuned/\w+)` \| (\S+) \| (\S+) \|$", summary, re.MULTILINE)
    assert rows
    for preset, mean, published in rows:
        of_coach = (row for row in re.findall(rf"^\| `{preset}` .*", tables, re.MULTILINE) if "| Coach" in row)
        found = [(cells[3], cells[6].split(" ")[0]) for cells in (row.split(" | ") for row in of_coach)]
        assert (published, mean) in found


def test_every_path_in_the_tables_of_hyperparameters_can_be_set():
    text = (ROOT / "docs" / "hyperparameters.md").read_text(encoding="utf-8")
    sections = {
        "All agents": "CartPole_DQN",
        "DQN and its variants": "CartPole_DQN",
        "PPO (`ClippedPPO`)": "CartPole_ClippedPPO",
    }
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [*sections]
    for section, preset in sections.items():
        rows = re.findall(r"\| `(\S+)` \| `(.+)` \|$", text.partition(f"## {section}\n")[2].partition("\n## ")[0], re.M)
        assert rows
        settings = "; ".join(f"{path}={value}" for path, value in rows)
        launcher = CoachLauncher()
        args = launcher.get_config_args(launcher.get_argument_parser(), ["-p", preset, "-cp", settings])
        assert launcher.get_graph_manager_from_args(args)
