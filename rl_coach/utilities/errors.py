"""Errors that are shown to the user, and the suggestions in them."""

from __future__ import annotations

import difflib
from typing import Iterable


class CoachError(Exception):
    """A mistake that the user can mend: the message names what was wrong, where, and what to do.

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
