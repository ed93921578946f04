"""``coach pack``: write a run into one file. ``coach reproduce``: train again from this file, and compare."""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import datetime
import importlib.util
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import time
from typing import Any, Iterable, Iterator, Mapping, Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.utilities.system import shell_command
from rl_coach.utils import CoachError

_SIGNAL_FILES = "worker_*.csv"
_DECISIVE = (
    "preset", "level", "framework", "environment_type", "exploration_policy_type", "custom_parameter", "callback",
    "apply_stop_condition", "use_cpu", "num_threads", "num_devices",
)  # fmt: skip
"""The flags that change the results."""
_OF_CHECKPOINTS = (
    "checkpoint_save_secs", "checkpoint_save_steps", "checkpoint_save_episodes", "checkpoint_keep", "checkpoint_memory",
)  # fmt: skip
_OF_A_MODULE = re.compile(r"[A-Za-z_][\w./]*:[A-Za-z_][\w-]*")
_NOT_WHEN_RESUMED = (*_DECISIVE, "checkpoint_restore_dir", "checkpoint_restore_file")
_TOLERANCE = 0.001


def pack(arguments: Sequence[str]) -> None:
    """Run ``coach pack``.

    :param arguments: the arguments after ``pack``
    :raises CoachError: if there is no run, the run cannot be repeated, or a file that the run needs does not exist
    """
    args = command_line.parser_of("pack").parse_args(arguments)
    from rl_coach.command_line import flag_checks
    from rl_coach.logger import screen
    from rl_coach.runs import packed_run, record

    flag_checks.require_run(args.directory)
    directory = pathlib.Path(args.directory)
    found = _repeatable(directory)
    run = found["run"]
    name = record.experiment_name(directory)
    given = {name: value for name, value in found["arguments"].items() if name in (*_DECISIVE, *_OF_CHECKPOINTS)}
    here = pathlib.Path(run["working_directory"])
    own = dict(_own_files(given, here))
    sources = _with_neighbours(own.values(), here)
    root = pathlib.Path(os.path.commonpath([here, *(file.parent for file in sources)])) if sources else here
    for file in sources:
        if file.stat().st_mtime > datetime.datetime.fromisoformat(run["began"]).timestamp():
            screen.warning(f"'{file}' was changed after the run began: the packed file may not be the file of the run")
    for text, file in own.items():
        for flag in (*record.PATHS, "callback"):
            if text.endswith(".py") and flag in given:
                given[flag] = given[flag].replace(text, os.path.relpath(file, here))
    packed = packed_run.PackedRun(
        name or directory.resolve().name,
        ["coach", *run["command_line"][1:]],
        run["seed"],
        given,
        here.relative_to(root).as_posix() if sources else ".",
        run["versions"],
        {fact: run.get(fact) for fact in ("processor", "cpu_count", "gpu", "platform")},
        run.get("git_revision"),
    )
    files = {f"{packed_run.SOURCE}/{file.relative_to(root).as_posix()}": file for file in sources}
    files |= {f"{packed_run.SIGNALS}/{file.name}": file for file in sorted(directory.glob(_SIGNAL_FILES))}
    policy = _policy_of(directory)
    if policy is not None:
        parts = [part for part in sorted(policy.rglob("*")) if part.is_file()]
        files |= {f"{packed_run.POLICY}/{part.relative_to(policy).as_posix()}": part for part in parts}
    output = pathlib.Path(args.output or f"{name}_{directory.resolve().name}.zip".lstrip("_"))
    packed_run.write(output, packed, files)
    print(f"packed {output}: preset {given['preset']}, seed {run['seed']}, {len(files)} files")
    print(f"train from it with: {shell_command('coach', 'reproduce', str(output))}")


def _repeatable(directory: pathlib.Path) -> dict[str, Any]:
    """The record of a run, if the run can be repeated. :raises CoachError: if the run cannot be repeated"""
    from rl_coach.runs import record, run_group
    from rl_coach.runs.status import FAILED, FINISHED, RUNNING, read_status, state_of

    run_group.refuse_group(directory, "pack")
    found = record.read(str(directory))
    arguments, run = found["arguments"], found.get("run")
    if (
        not isinstance(run, dict)
        or not {"seed", "versions", "command_line", "working_directory", "began"} <= run.keys()
    ):
        raise CoachError(f"'{directory}' has no record of the run's start, because an older version wrote it")
    if found["evaluate_only"]:
        raise CoachError(f"'{directory}' is an evaluation: pack the run that has trained the agent")
    if arguments.get("num_workers", 1) > 1 or arguments.get("evaluation_worker") or arguments.get("distributed_coach"):
        raise CoachError(f"'{directory}' had several workers, which act in random order, so it cannot be repeated")
    if "--play" in run["command_line"]:
        raise CoachError(f"'{directory}' was played by a person, so it cannot be repeated")
    if found.get("begins_from"):
        raise CoachError(f"'{directory}' began from '{found['begins_from']}', which a packed run does not contain")
    changed = {name for one in found["resumed"] for name in one.get("changed", ())} & {*_NOT_WHEN_RESUMED}
    if changed:
        raise CoachError(f"'{directory}' was resumed with another --{min(changed)}, so a single run cannot repeat it")
    status = read_status(directory)
    state = status.get("state")
    if state == RUNNING and state_of(status, 0.0, time.time()) != FAILED:
        raise CoachError(f"'{directory}' has not finished ({state}): pack it when it has finished")
    if state != FINISHED:
        command = shell_command("coach", "--resume", str(directory))
        raise CoachError(f"'{directory}' has not finished ({state}): continue it with {command}")
    if not any(directory.glob(_SIGNAL_FILES)):
        raise CoachError(f"'{directory}' has no signals to compare (*.csv)")
    return found


def _file_in(text: Any) -> str:
    """The Python file of ``path.py`` or ``path.py:name``; empty for other texts."""
    file = text.rpartition(":")[0] if isinstance(text, str) and ".py:" in text else text
    return file if isinstance(file, str) and file.endswith(".py") else ""


def _own_files(arguments: Mapping[str, str], working_directory: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """The files of the user in flags of the form ``file.py``, ``file.py:Class`` or ``module:Class``.

    :return: pairs of the file or module in the flag, and the path of the file
    """
    from rl_coach.runs.record import PATHS

    callbacks = [part.partition("(")[0].strip() for part in arguments.get("callback", "").split(";")]
    for text in (*(arguments.get(flag, "") for flag in PATHS), *callbacks):
        module = text.rpartition(":")[0]
        file = working_directory / f"{module.replace('.', '/')}.py"
        if _file_in(text):
            yield _file_in(text), working_directory / _file_in(text)
        elif module and file.is_file():
            yield module, file


def _with_neighbours(files: Iterable[pathlib.Path], working_directory: pathlib.Path) -> list[pathlib.Path]:
    """All files that a run needs: the given files, the files that these import or mention, and so on.

    :raises CoachError: if a file does not exist, or imports a module that cannot be found
    """
    found: dict[pathlib.Path, None] = {}
    waiting = list(files)
    roots = [*dict.fromkeys(file.parent for file in waiting), working_directory]
    if (gone := next((file for file in waiting if not file.is_file()), None)) is not None:
        raise CoachError(f"the run needs '{gone}', which does not exist any more")
    while waiting:
        file = pathlib.Path(os.path.abspath(waiting.pop()))
        if file not in found:
            found[file] = None
            if file.suffix == ".py":
                waiting += _neighbours(file, [file.parent, *roots])
    return list(found)


def _neighbours(file: pathlib.Path, roots: Sequence[pathlib.Path]) -> Iterator[pathlib.Path]:
    """The files that a Python file imports or mentions. :param roots: the directories that may contain these files"""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        raise CoachError(f"'{file}' cannot be read: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = _file_in(node.value) or node.value
            if text and len(text) < 200 and "\n" not in text and "\0" not in text:
                yield from (root / text for root in roots if (root / text).is_file())
        for module in _modules(node):
            here = [one for root in roots for one in _files_of(root.joinpath(*module.split(".")))]
            yield from here
            if node in tree.body and not here and importlib.util.find_spec(module.partition(".")[0]) is None:
                raise CoachError(f"'{file}' imports '{module}', which is not installed and not in the same directory")


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _files_of(place: pathlib.Path) -> Iterator[pathlib.Path]:
    """The files of a module; for a package, all its Python files. :param place: the module's path without suffix"""
    if place.with_name(f"{place.name}.py").is_file():
        yield place.with_name(f"{place.name}.py")
    elif (place / "__init__.py").is_file():
        yield from sorted(place.rglob("*.py"))


def _policy_of(directory: pathlib.Path) -> pathlib.Path | None:
    """The folder of the policy in the last checkpoint; None without a policy."""
    from rl_coach.checkpoint import find_checkpoint
    from rl_coach.policy.policy import POLICY_DIRECTORY

    try:
        folder = pathlib.Path(find_checkpoint(directory)) / POLICY_DIRECTORY
    except CoachError:
        return None
    return folder if folder.is_dir() else None


def reproduce(arguments: Sequence[str], launcher: Any) -> int:
    """Run ``coach reproduce``.

    :param arguments: the arguments after ``reproduce``
    :param launcher: a ``CoachLauncher``, which trains
    :return: the exit code: 0 if the results are equal, otherwise 1. With other versions or another processor, results
        may differ within a tolerance
    :raises CoachError: if the file is damaged, or the run cannot start on this machine
    """
    args = command_line.parser_of("reproduce").parse_args(arguments)
    import tempfile

    from rl_coach.policy import files as policy_files
    from rl_coach.runs import packed_run
    from rl_coach.runs.experiment_directory import ExperimentDirectory

    with tempfile.TemporaryDirectory() as folder:
        packed = pathlib.Path(folder)
        run = packed_run.unpack(args.file, packed)
        for policy in (packed / packed_run.POLICY).rglob(policy_files.POLICY_FILE):
            policy_files.read(policy.parent)  # check before the training that the file is not damaged
        names = argparse.Namespace(preset=None, experiment_name=run.name, experiment_path="")
        new = ExperimentDirectory(command_line.free_experiment_path(names), may_exist=False)
        new.release()  # the training locks the directory again
        try:
            _train(run, packed / packed_run.SOURCE, new.path, launcher, args.trust)
        finally:
            if not new.has_begun():
                new.remove()
        return 0 if _compare(run, packed, new.path) else 1


def _train(run: Any, source: pathlib.Path, directory: pathlib.Path, launcher: Any, trusts: bool) -> None:
    """Train with the flags of a packed run.

    :param source: the directory of the unpacked programs
    :param directory: the directory of the new run
    :param trusts: True if the programs of the packed run may be executed
    :raises CoachError: if a flag is unknown or needs a file that is not packed, or programs are not trusted
    """
    here = directory / source.name
    if source.is_dir():
        shutil.copytree(source, here)
    given = {name: value for name, value in run.arguments.items() if name in (*_DECISIVE, *_OF_CHECKPOINTS)}
    start = here / run.working_directory if source.is_dir() else directory
    for flag, value in given.items():
        if not isinstance(value, (str, int)):
            raise CoachError(f"the packed run is damaged: {flag} is {value!r}")
        file = _file_in(value) if flag != "callback" else ""
        if file and not ((start / file).is_file() and (start / file).resolve().is_relative_to(here.resolve())):
            raise CoachError(f"the packed run is damaged: '{file}' is not packed")
    programs = ", ".join(_programs(given, source))
    if programs and not trusts:
        raise CoachError(f"the file needs programs: read them, then use --trust to run them ({programs})")
    with _in_directory(start, here) if source.is_dir() else contextlib.nullcontext():
        flags = {**given, "seed": run.seed, "run_directory": str(directory)}
        launcher.launch(command_line.arguments_from_keywords(flags))


def _programs(flags: Mapping[str, Any], source: pathlib.Path) -> list[str]:
    """The programs that a packed run executes: the packed Python files, and classes of installed modules in flags."""
    from rl_coach.environments.gym_levels import FUNCTION_LEVEL

    files = sorted(str(file.relative_to(source)) for file in source.rglob("*.py"))
    named = [text for value in flags.values() for text in _OF_A_MODULE.findall(str(value)) if ".py:" not in text]
    return [*files, *dict.fromkeys(text for text in named if not FUNCTION_LEVEL.fullmatch(text))]


@contextlib.contextmanager
def _in_directory(directory: pathlib.Path, above: pathlib.Path) -> Iterator[None]:
    """A context with another working directory, because settings may contain paths relative to it.

    :raises CoachError: if ``directory`` is not in ``above``
    """
    if not directory.resolve().is_relative_to(above.resolve()):
        raise CoachError(f"the packed run is damaged: its working directory is '{directory}'")
    directory.mkdir(parents=True, exist_ok=True)
    before = os.getcwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def _compare(run: Any, packed: pathlib.Path, directory: pathlib.Path) -> bool:
    """Compare a new run with a packed run, and print the result.

    :param packed: the directory of the unpacked file
    :param directory: the directory of the new run
    :return: True if the results are equal; if versions or the processor differ, equal within a tolerance
    """
    from rl_coach.runs import packed_run, record

    found = record.read(str(directory))["run"]
    others = list(_changes(run, found))
    before, after = packed / packed_run.SIGNALS, directory
    verdict = _first_difference(before, after, 0.0) or _policy_difference(packed / packed_run.POLICY, directory)
    if verdict is None:
        beyond = f", although {'; '.join(others)}" if others else ""
        rows, signals = _size(before)
        same = f"{rows:,} rows of {signals} signals{' and the policy' if (packed / packed_run.POLICY).is_dir() else ''}"
        print(f"equal: {same} are the same, bit for bit{beyond}")
        return True
    if not others:
        print(f"differs {verdict}")
        return False
    about = f"{'; '.join(others)}: compared within {_TOLERANCE:.1%} only"
    verdict = _first_difference(before, after, _TOLERANCE)
    print(f"{about}; {'all signals agree' if verdict is None else f'differs {verdict}'}")
    return verdict is None


def _changes(run: Any, here: Mapping[str, Any]) -> Iterator[str]:
    """The differences between the packed run and this machine that can change the last bits of numbers."""
    names = sorted(run.versions.keys() & here["versions"].keys())
    was, now = run.versions, here["versions"]
    yield from (f"{name} was {was[name]}, here {now[name]}" for name in names if was[name] != now[name])
    for fact in ("processor", "cpu_count", "gpu"):
        if run.machine.get(fact) != here.get(fact):
            yield f"{fact.replace('cpu_count', 'number of cores')} was {run.machine.get(fact)}, here {here.get(fact)}"
    if here.get("gpu"):
        yield "a GPU adds numbers in any order"
    if any("--seeds_program" in word for word in run.command):
        yield "the run and other seeds were computed in one program"


def _table(file: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a signal CSV, without the columns of the wall-clock time."""
    if not file.is_file():
        return []
    with open(file, newline="", encoding="utf-8", errors="replace") as stream:
        return [
            {str(name): str(cell) for name, cell in row.items() if not str(name).startswith("Wall-Clock Time")}
            for row in csv.DictReader(stream)
        ]


def _size(signals: pathlib.Path) -> tuple[int, int]:
    """The number of rows, and of signals with values."""
    tables = [_table(file) for file in signals.glob(_SIGNAL_FILES)]
    return sum(map(len, tables)), sum(len({name for row in table for name in row if row[name]}) for table in tables)


def _first_difference(before: pathlib.Path, after: pathlib.Path, tolerance: float) -> str | None:
    """The first difference between the signals of two runs, as ``first in row N of SIGNAL: was VALUE, here VALUE``.
    None without a difference.

    :param before: the directory with the signals of the packed run
    :param after: the directory of the new run
    :param tolerance: the relative difference that is allowed; 0 compares the texts
    """
    for file in sorted({one.name for folder in (before, after) for one in folder.glob(_SIGNAL_FILES)}):
        nothing: dict[str, str] = {}
        rows = itertools.zip_longest(_table(before / file), _table(after / file), fillvalue=nothing)
        for number, (was, now) in enumerate(rows, 1):
            if not was or not now:
                missing = "the packed run" if not was else "the new run"
                return f"first in row {number} of {file}: {missing} has no such row"
            for name in dict.fromkeys([*was, *now]):
                if not _agree(was.get(name), now.get(name), tolerance):
                    return f"first in row {number} of '{name}': was {was.get(name)}, here {now.get(name)}"
    return None


def _agree(one: str | None, other: str | None, tolerance: float) -> bool:
    if one == other:
        return True
    try:
        return tolerance > 0 and math.isclose(float(one or ""), float(other or ""), rel_tol=tolerance, abs_tol=1e-6)
    except ValueError:
        return False


def _policy_difference(before: pathlib.Path, directory: pathlib.Path) -> str | None:
    """The difference between two policies, as ``in the policy: …``; None without a difference.

    :param before: the directory with the policy of the packed run
    :param directory: the directory of the new run
    """
    after = _policy_of(directory)
    if not before.is_dir() and after is None:
        return None
    if not before.is_dir() or after is None:
        return "in the policy: only one of the two runs has a policy"
    from rl_coach.policy import files

    for file in sorted({one.relative_to(folder) for folder in (before, after) for one in folder.rglob("policy.json")}):
        if not all((folder / file).is_file() for folder in (before, after)):
            return f"in the policy: only one of the two runs has {file.parent}"
        (was, its_model), (now, new_model) = (files.read((folder / file).parent) for folder in (before, after))
        if _weights_of(its_model) != _weights_of(new_model):
            return f"in the weights of the policy {file.parent}".removesuffix(" .")
        if _content(was) != _content(now):
            return f"in the filters of the policy {file.parent}".removesuffix(" .")
    return None


def _weights_of(model: bytes) -> list[tuple[tuple[int, ...], bytes]]:
    """The arrays of a network, without their names, which contain the number of the network in its process."""
    import onnx

    arrays = [onnx.numpy_helper.to_array(one) for one in onnx.load_from_string(model).graph.initializer]
    return sorted((array.shape, array.tobytes()) for array in arrays)


def _content(document: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """The content of a policy without the facts about its run, in a form that can be compared."""
    from rl_coach.utilities.plain_data import separate

    body, arrays = separate({name: part for name, part in document.items() if name != "about"}, numbered=True)
    return json.dumps(body, sort_keys=True), {name: array.tobytes() for name, array in arrays.items()}
