"""Makes objects of the user's classes in flags, such as ``-et module:Class`` or ``-ept file.py:Class``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Callable

from rl_coach.utilities.dynamic_import import short_dynamic_import
from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utilities.user_code import in_one_line

if TYPE_CHECKING:
    from rl_coach.callbacks import Callback


def make_callbacks(text: str) -> list[Callback]:
    """Make the callbacks of ``--callback``.

    :param text: ``module:Class(argument=value); …``; classes of ``rl_coach.callbacks`` need no module
    :raises CoachError: if a class does not exist, is not a callback, or does not accept the arguments
    """
    return [_make_callback(part.strip()) for part in text.split(";") if part.strip()]


def _make_callback(text: str) -> Callback:
    from rl_coach.callbacks import Callback
    from rl_coach.command_line.custom_parameters import literal_arguments

    path, bracket, arguments = text.partition("(")
    module_and_class = path.strip() if ":" in path else f"rl_coach.callbacks:{path.strip()}"
    offered = literal_arguments(f"--callback {text}", bracket + arguments) if bracket else {}
    return make(module_and_class, "--callback", Callback, offered, takes_all=True)


def make(module_and_class: str, flag: str, base: type, offered: dict[str, Any], takes_all: bool = False) -> Any:
    """Make an object of the class in a flag.

    :param module_and_class: ``module:Class`` or ``file.py:Class``
    :param base: the base class that the class must have
    :param offered: arguments for the class, by name
    :param takes_all: True passes all offered arguments; False passes only the arguments that the class requires
    :raises CoachError: if the class does not exist, has another base class, or does not accept the arguments
    """
    where = f"{flag} {module_and_class}"
    try:
        found = short_dynamic_import(module_and_class)
        arguments = offered if takes_all else _needed(found, offered)
        is_of_another_kind = isinstance(found, type) and not issubclass(found, base)
        made = found(**arguments) if callable(found) and not is_of_another_kind else None
        if not isinstance(made, base):
            raise CoachError(f"the class must be a subclass of {base.__name__}")
        return made
    except CoachError as error:
        raise CoachError(f"{where}: {error}") from None
    except ModuleNotFoundError as error:
        raise CoachError(f"{where}: no module '{error.name}'") from None
    except BaseException as error:  # the module may call sys.exit, too
        if stop_signals.have_raised(error):
            raise
        raise CoachError(f"{where}: {in_one_line(error)}") from error


def _needed(found: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """The offered arguments that a class or function requires, because they have no default."""
    if not offered or not callable(found):
        return {}
    takes = found.__init__ if isinstance(found, type) else found  # type: ignore[misc]
    parameters = inspect.signature(takes).parameters.values()
    needed = {one.name for one in parameters if one.default is inspect.Parameter.empty}
    return {name: value for name, value in offered.items() if name in needed}
