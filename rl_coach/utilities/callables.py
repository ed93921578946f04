"""Facts about functions that a user gives."""

from __future__ import annotations

import inspect
from typing import Any, Callable


def takes(callback: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """True if a function says that it takes these arguments."""
    try:
        inspect.signature(callback).bind(*arguments, **named)
    except (TypeError, ValueError):  # it does not, or is a builtin that does not say what it takes
        return False
    return True
