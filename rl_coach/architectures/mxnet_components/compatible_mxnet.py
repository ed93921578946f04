"""MXNet as it can be imported today; everything else takes ``mxnet`` from here."""

from __future__ import annotations

import numpy as np

from rl_coach.installation import install_command
from rl_coach.utils import CoachError

if int(np.__version__.split(".")[0]) >= 2:
    raise CoachError(f"MXNet 1.9.1 needs numpy<2, and this is numpy {np.__version__}: {install_command('mxnet')}")
if "bool" not in vars(np):
    # MXNet 1.9.1 is older than NumPy 1.24, which took this alias away
    vars(np)["bool"] = np.bool_

import mxnet

#: Decorates what works on ``mx.np`` arrays: NumPy's meaning of shapes is a setting of each thread, off at first.
numpy_semantics = mxnet.util.use_np

__all__ = ["mxnet", "numpy_semantics"]
