"""``coach init``: write the first files of a new environment, or a preset to edit."""

from __future__ import annotations

import pathlib
import re
from typing import Sequence

from rl_coach.command_line import arguments as command_line
from rl_coach.command_line import preset_catalogue
from rl_coach.utilities.system import shell_command
from rl_coach.utils import CoachError, did_you_mean

_WITHOUT_PACKAGES = ("CartPole", "Pendulum", "Acrobot", "MountainCar")
"""The beginnings of the names of presets that need no extra, the fastest presets first."""

_TEMPLATES = pathlib.Path(__file__).with_name("templates")


def run(arguments: Sequence[str]) -> None:
    """Run ``coach init``.

    :param arguments: the arguments after ``init``
    :raises CoachError: if an argument is wrong or a file exists; then no file is written
    """
    args = command_line.parser_of("init").parse_args(arguments)
    if (args.file is None) == (args.preset is None):
        raise CoachError("give either a file for an environment or --preset ALGORITHM (see coach init --help)")
    if args.preset is None:
        write_new(_files_of_environment(pathlib.Path(args.file)))
        module = pathlib.Path(args.file).with_suffix("")
        print(f"train with: {shell_command('coach', '-p', f'{module}_preset.py', '-asc')}")
        return
    source = _preset_for(args.preset)
    file = pathlib.Path(f"{re.sub(r'[^a-z0-9]+', '_', args.preset.lower()).strip('_')}_preset.py")
    write_new({file: (preset_catalogue.preset_directory() / f"{source}.py").read_text(encoding="utf-8")})
    print(f"it is a copy of {source}; edit it, and train with: {shell_command('coach', '-p', str(file))}")


def _files_of_environment(file: pathlib.Path) -> dict[pathlib.Path, str]:
    module = file.stem
    if file.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9_]*", module):
        raise CoachError(
            f"the name of '{file}' must begin with a small letter, consist of small letters, digits and '_', and end "
            f"with .py, such as my_env.py"
        )
    title = "".join(word.capitalize() for word in module.split("_"))
    templates = {
        file: "environment.txt",
        file.with_name(f"test_{module}.py"): "environment_test.txt",
        file.with_name(f"{module}_preset.py"): "preset.txt",
        file.with_name(f"{module}_README.md"): "readme.txt",
    }
    return {
        path: (_TEMPLATES / template).read_text(encoding="utf-8").format(module=module, title=title)
        for path, template in templates.items()
    }


def _preset_for(algorithm: str) -> str:
    """The name of a preset for the algorithm. Presets that need no other packages are preferred, then tuned presets."""
    names = [*preset_catalogue.list_tuned_presets(), *preset_catalogue.list_all_presets()]
    names.sort(key=lambda name: not name.removeprefix("tuned/").startswith(_WITHOUT_PACKAGES[:2]))
    names.sort(key=lambda name: not name.removeprefix("tuned/").startswith(_WITHOUT_PACKAGES))
    known: dict[str, str] = {}
    for summary in preset_catalogue.summaries(names):
        for one in summary.algorithm.split(", "):
            known.setdefault(one, summary.name)
    by_lower = {one.lower(): name for one, name in known.items()}
    found = next((by_lower[one.lower()] for one in _names_of(algorithm) if one.lower() in by_lower), None)
    if found is None:
        suggestion = did_you_mean(algorithm, known)
        raise CoachError(f"no preset has the algorithm '{algorithm}'{suggestion} (coach --list shows all)")
    return found


def _names_of(algorithm: str) -> Sequence[str]:
    """The given name of an algorithm, and its other names in ``coach algorithms``."""
    from rl_coach.agents.algorithms import known_algorithms

    groups = (one.names for one in known_algorithms())
    others = next((names for names in groups if algorithm.lower() in map(str.lower, names)), ())
    return algorithm, *others


def write_new(files: dict[pathlib.Path, str]) -> None:
    """Write new files. :raises CoachError: if one of the files exists, or its directory cannot be written"""
    for file in files:
        if file.exists():
            raise CoachError(f"'{file}' exists already: choose another name, or remove it")
    for file, text in files.items():
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CoachError(f"'{file}' cannot be written: {error.strerror}") from None
        print(f"wrote {file}")
