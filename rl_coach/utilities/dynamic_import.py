"""Imports modules, classes and objects by their names."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import logging
import os
import pathlib
import re
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, ContextManager, Iterator, Mapping, Sequence

from rl_coach.utilities.errors import CoachError, did_you_mean
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utilities.user_code import in_one_line


def list_all_classes_in_module(module: ModuleType) -> list[str]:
    """The names of the classes that ``module`` defines or imports."""
    return [name for name, _ in inspect.getmembers(module, inspect.isclass)]


def get_all_subclasses(cls: type) -> list[type]:
    """All subclasses of ``cls``, also indirect ones."""
    direct: list[type] = cls.__subclasses__()
    return direct + [below for subclass in direct for below in get_all_subclasses(subclass)]


def class_path(cls: type) -> str:
    """``'module:Class'``, the name of a class in files."""
    return f"{cls.__module__}:{cls.__qualname__}"


class _StandIn(ModuleType):
    """Replaces a module until one of its attributes is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def imported_at_first_use(*names: str) -> ContextManager[None]:
    """Inside this context, imported modules import some modules only at their first use.

    :param names: names of modules; modules that are imported already are not replaced
    """
    return _replaced({name: _StandIn(name) for name in names})


def hidden_modules(*names: str) -> ContextManager[None]:
    """Inside this context, some modules seem not to be installed.

    :param names: names of modules; modules that are imported already are not hidden
    """
    return _replaced(dict.fromkeys(names))  # None in sys.modules makes an import fail


@contextlib.contextmanager
def _replaced(replacements: Mapping[str, ModuleType | None]) -> Iterator[None]:
    modules: dict[str, Any] = sys.modules
    new = {name: module for name, module in replacements.items() if name not in modules}
    modules.update(new)
    try:
        yield
    finally:
        for name, module in new.items():
            if name in modules and modules[name] is module:
                del modules[name]


_MODULE_OF_A_FILE = re.compile(r"[^0-9a-zA-Z_]")
_written_at: dict[str, int] = {}  # the time of the last change of each imported file, by the name of its module


def import_file(path: str) -> ModuleType:
    """Import a Python file by its path, once; a second call returns the same module, with a warning if the file has
    changed. Like a script, the file may import other files of its directory, at any time."""
    try:
        file = pathlib.Path(path).expanduser().resolve()
        is_file = file.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # the name is too long, or has a NUL or an unknown user
        raise CoachError(f"no file '{path[:60]}…': {getattr(error, 'strerror', error)}") from None
    if not is_file:
        raise CoachError(f"no file '{path}'")
    name = "_coach_file_" + _MODULE_OF_A_FILE.sub("_", str(file))
    while name in sys.modules and sys.modules[name].__file__ != str(file):  # a/b.py and a_b.py
        name += "_"
    known, written_at = _written_at.get(name), file.stat().st_mtime_ns
    _written_at[name] = written_at
    if name in sys.modules:
        if known != written_at:
            text = "'%s' has changed, but this process continues with the version that it has imported: start a new one"
            logging.getLogger("rl_coach").warning(text, path)
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise CoachError(f"'{path}' is not a Python file")
    module = importlib.util.module_from_spec(specification)
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # at the end, so that files here do not hide installed packages
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def short_dynamic_import(module_path_and_attribute: str, ignore_module_case: bool = False) -> Any:
    """Import ``"package.module:attribute"`` or ``"path/to/file.py:attribute"``."""
    module_path, _, attribute = module_path_and_attribute.rpartition(":")
    if not module_path:
        raise CoachError(f"'{module_path_and_attribute}' must have the form 'module:attribute' or 'file.py:attribute'")
    return dynamic_import(module_path, attribute, ignore_module_case)


_PACKAGE = __name__.partition(".")[0]


def dynamic_import(module_path: str, class_name: str, ignore_module_case: bool = False) -> Any:
    """The attribute ``class_name`` of a module. :param module_path: the module's dotted name, or the path of its
    file"""
    try:
        module = _import(module_path, ignore_module_case)
    except (CoachError, ModuleNotFoundError):
        raise
    except (Exception, SystemExit) as error:
        if stop_signals.have_raised(error):
            raise
        raise CoachError(f"'{module_path}' cannot be imported: {in_one_line(error)}") from error
    try:
        return getattr(module, class_name)
    except AttributeError:
        suggestion = did_you_mean(class_name, vars(module))
        raise CoachError(f"'{module_path}' has no '{class_name}'{suggestion}") from None


def dynamic_import_from_full_path(module_path: str, class_name: str, ignore_module_case: bool = False) -> Any:
    """The same as ``dynamic_import``: its older name."""
    return dynamic_import(module_path, class_name, ignore_module_case)


def _import(module_path: str, ignore_case: bool) -> ModuleType:
    if module_path.endswith(".py") or "/" in module_path:
        return import_file(module_path)
    if ignore_case:
        package, _, name = module_path.rpartition(".")
        directory = pathlib.Path(str(importlib.import_module(package).__file__)).parent
        name = next((file.stem for file in directory.glob("*.py") if file.stem.lower() == name.lower()), name)
        module_path = f"{package}.{name}"
    try:
        return import_module(module_path)
    except ModuleNotFoundError as error:
        if error.name != module_path or not module_path.startswith(f"{_PACKAGE}."):
            raise  # a package that is not installed
        raise CoachError(f"there is no module '{module_path}'") from error


def import_module(name: str) -> ModuleType:
    """Import a module by its name. If it does not exist, look in the current directory, as ``python -m`` does. The
    current directory comes last, so that its files do not hide installed packages.

    :raises ModuleNotFoundError: if the current directory does not have the module either
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        here, package = os.getcwd(), name.partition(".")[0]
        if error.name != package or PathFinder.find_spec(package, [here]) is None:
            raise
        sys.path.append(here)
        return importlib.import_module(name)


def dynamic_import_and_instantiate_module_from_params(
    module_parameters: Any, path: str | None = None, positional_args: Sequence = (), extra_kwargs: dict | None = None
) -> Any:
    """Build the object that a ``Parameters`` object describes.

    The class is named by ``path``, or by ``module_parameters.path`` if ``path`` is None, as ``"module:Class"``.
    Attributes of the parameters become the constructor's arguments of the same names; ``extra_kwargs`` override these
    arguments.
    """
    cls = short_dynamic_import(path or module_parameters.path)
    accepted = inspect.signature(cls).parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values())
    positional = list(accepted)[: len(positional_args)]
    keywords = {
        name: value
        for name, value in {**public_attributes(module_parameters), **(extra_kwargs or {})}.items()
        if (takes_any or name in accepted) and name not in positional
    }
    return cls(*positional_args, **keywords)


def public_attributes(obj: Any) -> dict[str, Any]:
    """The attributes of an object that do not start with an underscore."""
    return {name: value for name, value in vars(obj).items() if not name.startswith("_")}
