"""MXNet with a correction for newer NumPy. All other modules import ``mxnet`` from here."""

from __future__ import annotations

import numpy as np

from rl_coach.installation import install_command
from rl_coach.utils import CoachError

if int(np.__version__.split(".")[0]) >= 2:
    raise CoachError(f"MXNet 1.9.1 needs numpy<2, but numpy {np.__version__} is installed: {install_command('mxnet')}")
if "bool" not in vars(np):
    # MXNet 1.9.1 uses this alias, which NumPy 1.24 has removed
    vars(np)["bool"] = np.bool_

import mxnet

#: Decorator of functions on ``mx.np`` arrays: sets NumPy's meaning of shapes, which is off in each new thread.
numpy_semantics = mxnet.util.use_np

__all__ = ["mxnet", "numpy_semantics"]
