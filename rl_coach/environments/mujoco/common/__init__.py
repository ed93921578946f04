"""Reading MuJoCo models, and the parts that several of them include."""

from __future__ import annotations

import pathlib

_MODELS = pathlib.Path(__file__).resolve().parent.parent
_SHARED_FILES = ["common/visual.xml"]

ASSETS: dict[str, bytes] = {name: (_MODELS / name).read_bytes() for name in _SHARED_FILES}


def read_model(model_filename: str) -> str:
    """The XML of a model next to this package, such as ``'pendulum_with_goals.xml'``; its included files are in
    ``ASSETS``."""
    return (_MODELS / model_filename).read_text(encoding="utf-8")
