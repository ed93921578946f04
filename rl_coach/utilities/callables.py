"""Checks of functions that users pass to Coach."""

from __future__ import annotations

import inspect
from typing import Any, Callable


def takes(callback: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """True if the signature of a function accepts these arguments."""
    try:
        inspect.signature(callback).bind(*arguments, **named)
    except (TypeError, ValueError):  # other arguments, or a builtin without a signature
        return False
    return True
