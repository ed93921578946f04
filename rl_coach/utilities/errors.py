"""Errors that are shown to the user, and the suggestions in them."""

from __future__ import annotations

import difflib
from typing import Iterable


class CoachError(ValueError):
    """Error that the user can repair. The message names what is wrong, where, and what to do. It is a ValueError
    because Coach 1.0.1 raises a ValueError in many such cases, and code written for it catches that.

    The command line shows only the message, without a stack trace, and exits with 2.
    """


class CoachErrors(CoachError):
    """Error for several mistakes; the command line shows one line for each.

    :param mistakes: the lines
    """

    def __init__(self, mistakes: Iterable[str]):
        self.mistakes = list(mistakes)
        super().__init__("\n".join(self.mistakes))


class TrainingError(Exception):
    """Training itself failed, for instance a loss became NaN. The command line exits with 1."""


class LostPartError(TrainingError):
    """Another part of a distributed run, such as its Redis or all of its workers, is gone. What was trained is sound:
    the run saves it as one that is interrupted does. The command line exits with 1."""


class CallbackError(TrainingError):
    """A callback has failed. What was trained is sound: the run saves it as one that is interrupted does. The command
    line exits with 1."""


class CheckpointError(TrainingError):
    """Error if a checkpoint cannot be written to its directory; the message says where it was written."""


def nearest(name: str, candidates: Iterable[str], at_most: int = 3) -> list[str]:
    """The candidates that look most like ``name``, best first; the case of letters does not count."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=at_most, cutoff=0.6)
    return [by_lower[match] for match in close]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"``, or an empty string if no name is similar."""
    close = nearest(name, candidates)
    return f"; did you mean {' or '.join(repr(match) for match in close)}?" if close else ""


def refuse(unmet: Iterable[str]) -> None:
    """
    :param unmet: requirements that are not met, one line each
    :raises CoachError: there is one; the first is the message
    """
    for line in unmet:
        raise CoachError(line)
