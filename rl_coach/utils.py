"""Small tools without a home of their own: signals, dynamic imports, lists."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pathlib
import re
import shutil
import sys
from types import ModuleType
from typing import Any, Callable, Iterable, Sequence

import numpy as np

eps = np.finfo(np.float32).eps


class CoachError(ValueError):
    """A mistake that the user can mend: the message names what was wrong, where, and what to do. Coach raises a
    ValueError in many such cases, and code written for it catches that.

    The command line shows the message alone, without a stack trace, and exits with 2.
    """


class TrainingError(Exception):
    """Training itself failed, for instance a loss became NaN. The command line exits with 1."""


def nearest(name: str, candidates: Iterable[str], at_most: int = 3) -> list[str]:
    """The candidates that look most like ``name``, best first; the case of letters does not count."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=at_most, cutoff=0.6)
    return [by_lower[match] for match in close]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"``, or an empty string where nothing comes close."""
    close = nearest(name, candidates)
    return f"; did you mean {' or '.join(repr(match) for match in close)}?" if close else ""


class LazyArray(np.lib.mixins.NDArrayOperatorsMixin):
    """Numbers that may still be computed: any use as an array or as a number waits for them.

    :param compute: waits and gives them
    """

    def __init__(self, compute: Callable[[], Any]):
        self._compute = compute

    def read(self) -> np.ndarray:
        """The numbers."""
        return np.asarray(self._compute())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.read(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        read = [one.read() if isinstance(one, LazyArray) else one for one in inputs]
        return getattr(ufunc, method)(*read, **kwargs)

    def __float__(self) -> float:
        return float(self.read())


class Signal:
    """Numbers gathered over one episode, read as statistics when it ends.

    Adding a sample costs one list append; arrays are kept as they come and flattened only when read.
    """

    def __init__(self, name: str):
        self.name = name
        self.values: list = []

    def reset(self) -> None:
        """Forget all samples."""
        self.values = []

    def add_sample(self, sample: Any) -> None:
        """Add a number or an array of numbers."""
        self.values.append(sample)

    def read(self) -> list:
        """All samples; waits for those that are still computed."""
        self.values = [value.read() if isinstance(value, LazyArray) else value for value in self.values]
        return self.values

    def _flat(self) -> np.ndarray:
        values = self.read()
        if all(type(value) is float for value in values):
            return np.asarray(values, np.float64)
        return np.concatenate([np.ravel(value) for value in values])

    def get_last_value(self) -> Any:
        """The newest sample, NaN if there is none."""
        return self.values[-1] if self.values else np.nan

    def get_mean(self) -> float | str:
        """The mean, or an empty string (an empty CSV cell) if there is no sample."""
        return self._statistic(np.mean)

    def get_max(self) -> float | str:
        """The largest sample, or an empty string."""
        return self._statistic(np.max)

    def get_min(self) -> float | str:
        """The smallest sample, or an empty string."""
        return self._statistic(np.min)

    def get_stdev(self) -> float | str:
        """The population standard deviation, or an empty string."""
        return self._statistic(np.std)

    def get_statistics(self) -> dict[str, float | str]:
        """All four by the names of their columns, the samples read once."""
        flat = self._flat()
        functions: dict[str, Callable[..., Any]] = {"Mean": np.mean, "Stdev": np.std, "Max": np.max, "Min": np.min}
        return {name: float(function(flat)) if flat.size else "" for name, function in functions.items()}

    def _statistic(self, function: Any) -> float | str:
        flat = self._flat()
        return float(function(flat)) if flat.size else ""


def force_list(var: Any) -> list:
    """``var`` itself if it is a list, otherwise a list that holds it."""
    return var if isinstance(var, list) else [var]


def squeeze_list(var: Sequence) -> Any:
    """The only item of a list of one, otherwise the list."""
    return var[0] if isinstance(var, (list, tuple)) and len(var) == 1 else var


def lower_under_to_upper(s: str) -> str:
    """``"clipped_ppo_agent"`` becomes ``"ClippedPpoAgent"``."""
    return "".join(part.title() for part in s.split("_"))


def list_all_classes_in_module(module: ModuleType) -> list[str]:
    """The names of the classes that ``module`` defines or imports."""
    return [name for name, _ in inspect.getmembers(module, inspect.isclass)]


def get_all_subclasses(cls: type) -> list[type]:
    """Every class below ``cls``, at any depth."""
    direct: list[type] = cls.__subclasses__()
    return direct + [below for subclass in direct for below in get_all_subclasses(subclass)]


def program(name: str) -> str:
    """How to call a program that was installed with Coach: by its name where that finds it, otherwise by its path."""
    installed = pathlib.Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if not installed.exists() or (found and installed.samefile(found)):
        return name
    return str(installed.relative_to(pathlib.Path.cwd()) if installed.is_relative_to(pathlib.Path.cwd()) else installed)


def get_base_dir() -> str:
    """The directory of the ``rl_coach`` package."""
    return str(pathlib.Path(__file__).resolve().parent)


_MODULE_OF_A_FILE = re.compile(r"[^0-9a-zA-Z_]")


def import_file(path: str) -> ModuleType:
    """Import a Python file by its path, once; a second call returns the same module."""
    file = pathlib.Path(path).expanduser().resolve()
    if not file.is_file():
        raise CoachError(f"no file '{path}'")
    name = "_coach_file_" + _MODULE_OF_A_FILE.sub("_", str(file))
    if name in sys.modules:
        return sys.modules[name]
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise CoachError(f"'{path}' is not a Python file")
    module = importlib.util.module_from_spec(specification)
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
        raise CoachError(f"'{module_path_and_attribute}' is not of the form 'module:attribute' or 'file.py:attribute'")
    return dynamic_import(module_path, attribute, ignore_module_case)


def dynamic_import(module_path: str, class_name: str, ignore_module_case: bool = False) -> Any:
    """The attribute ``class_name`` of a module given by its dotted name or its file's path."""
    if module_path.endswith(".py") or "/" in module_path:
        module = import_file(module_path)
    else:
        module = _import_module(module_path, ignore_module_case)
    try:
        return getattr(module, class_name)
    except AttributeError:
        suggestion = did_you_mean(class_name, vars(module))
        raise CoachError(f"'{module_path}' has no '{class_name}'{suggestion}") from None


def _import_module(module_path: str, ignore_case: bool) -> ModuleType:
    if ignore_case:
        package, _, name = module_path.rpartition(".")
        directory = pathlib.Path(str(importlib.import_module(package).__file__)).parent
        name = next((file.stem for file in directory.glob("*.py") if file.stem.lower() == name.lower()), name)
        module_path = f"{package}.{name}"
    return importlib.import_module(module_path)


def dynamic_import_and_instantiate_module_from_params(
    module_parameters: Any, path: str | None = None, positional_args: Sequence = (), extra_kwargs: dict | None = None
) -> Any:
    """Build the object that a ``Parameters`` object describes.

    The class is named by ``module_parameters.path`` (or ``path``), as ``"module:Class"``. Those of the
    parameters' attributes that its constructor takes by name are handed over; ``extra_kwargs`` win over them.
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
