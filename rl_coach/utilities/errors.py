"""Errors that are shown to the user, and their suggestions."""

from __future__ import annotations

import difflib
from typing import Iterable


class CoachError(ValueError):
    """Error that the user can correct. The message names the problem, the place, and the solution. This class is a
    ValueError, because Coach 1.0.1 raises a ValueError in many of these cases, and code for Coach 1.0.1 catches it.

    The command line shows only the message, without a stack trace, and exits with 2.
    """


class CoachErrors(CoachError):
    """Error for several mistakes. The command line shows one line for each mistake.

    :param mistakes: the lines
    """

    def __init__(self, mistakes: Iterable[str]):
        self.mistakes = list(mistakes)
        super().__init__("\n".join(self.mistakes))


class TrainingError(Exception):
    """Training itself failed, for instance because a loss became NaN. The command line exits with 1."""


class LostPartError(TrainingError):
    """Another part of a distributed run has ended, such as its Redis or all of its workers. The training so far is
    valid: the run saves a checkpoint, as after an interruption. The command line exits with 1."""


class CallbackError(TrainingError):
    """A callback has failed. The training so far is valid: the run saves a checkpoint, as after an interruption. The
    command line exits with 1."""


class CheckpointError(TrainingError):
    """A checkpoint cannot be written to its directory. The message names another place where the state was saved, if
    there is one."""


def nearest(name: str, candidates: Iterable[str], at_most: int = 3, similarity: float = 0.6) -> list[str]:
    """The candidates that look most like ``name``, best first; the case of letters does not count.

    :param similarity: the smallest similarity of a candidate, from 0 to 1 (``difflib.SequenceMatcher.ratio``)
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=at_most, cutoff=similarity)
    return [by_lower[match] for match in close]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"``, or an empty string if no name is similar."""
    return suggested(nearest(name, candidates))


def suggested(names: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"``, or an empty string if there is no name."""
    shown = " or ".join(map(repr, names))
    return f"; did you mean {shown}?" if shown else ""


def choose_from(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: ``did_you_mean``, or all names if no name is similar."""
    names = list(known)
    listed = f"choose from {', '.join(map(repr, names))}" if names else "there are none"
    return did_you_mean(name, names) or f"; {listed}"


def reason_of(error: BaseException) -> str:
    """An error of a library, such as Redis' client, in one line."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def refuse(unmet: Iterable[str]) -> None:
    """Raise the first line as an error, if there is one.

    :param unmet: lines about requirements that are not met
    :raises CoachError: if a requirement is not met; the first line is the message
    """
    for line in unmet:
        raise CoachError(line)
