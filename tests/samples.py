"""Samples of long lists of cases: ``make test`` runs a few of the cases, ``make soak`` runs the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def one_in(share: int, cases: Sequence[Any]) -> list[Any]:
    """The cases, of which all but every ``share``-th are slow.

    :param cases: values or ``pytest.param`` of a parametrised test
    """
    return [case if index % share == 0 else _slow(case) for index, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    if hasattr(case, "marks"):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
    return pytest.param(*case if isinstance(case, tuple) else [case], marks=pytest.mark.slow)
