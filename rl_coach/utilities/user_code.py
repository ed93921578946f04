"""Users' code: the arguments that a function takes, and errors in one line with the place in the user's file."""

from __future__ import annotations

import functools
import inspect
import pathlib
import traceback
from typing import Any, Callable

_COACH = pathlib.Path(__file__).resolve().parent.parent
_SHAPE_OF_ANSWERS = "step() returns (observation, reward, terminated, truncated, info), reset() (observation, info)"


def takes(callback: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """True if the signature of a function accepts these arguments."""
    try:
        inspect.signature(callback).bind(*arguments, **named)
    except (TypeError, ValueError):  # other arguments, or a builtin without a signature
        return False
    return True


@functools.cache
def _installed() -> tuple[pathlib.Path, ...]:
    """The directories of installed packages."""
    import sysconfig  # slow to import, and exported policies do not need it

    return tuple(pathlib.Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))


def users_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame of the user's code, outside of Coach and installed packages; None if there is none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return frames[-1] if frames else None


def _is_users(filename: str) -> bool:
    file = pathlib.Path(filename).resolve()
    return file.is_file() and not any(file.is_relative_to(place) for place in (_COACH, *_installed()))


def in_one_line(error: BaseException) -> str:
    """``file.py:12: ZeroDivisionError: division by zero``; without the place if no line of the user is involved."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}:{error.lineno}: {error.msg}"
    said = _said(error)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    frame = users_frame(error)
    place = "" if frame is None else f"{frame.filename}:{frame.lineno}: "
    return place + " ".join(text.split())


def _said(error: BaseException) -> str:
    """The text of an error. The ``__str__`` of an exception class can fail, too."""
    try:
        return str(error)
    except Exception:
        return "it has no text, because its __str__ fails"


def environment_error(error: BaseException) -> str:
    """The error as in ``in_one_line``. If an environment returned a wrong number of values, the text also has the
    values that Gymnasium expects."""
    text = in_one_line(error)
    is_wrong_answer = isinstance(error, (TypeError, ValueError)) and "unpack" in _said(error)
    return f"{text}; {_SHAPE_OF_ANSWERS}" if is_wrong_answer else text
