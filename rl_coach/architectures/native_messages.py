"""Hides messages of TensorFlow's native code from the terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from typing import Iterator

from rl_coach.utilities.standard_streams import Output
from rl_coach.utilities.stop_signals import Terminated

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_SILENT = "3"
_SET_BY_TENSORFLOW = "1"  # TensorFlow's import sets the variable to this value if it is not set
_STDERR = 2
_NATIVE_LINE = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWE] |WARNING: All log messages before absl"
    rb"|To enable the following instructions:"
)
"""The first characters of lines that TensorFlow's native code logs, except for fatal errors, in several releases."""


def silence_tensorflow() -> None:
    """Make TensorFlow print only fatal errors. This has no effect if TensorFlow is already imported, or if the user has
    set the level.
    """
    os.environ.setdefault(_LEVEL, _SILENT)


@contextlib.contextmanager
def quiet_native_code() -> Iterator[None]:
    """Hide the log of TensorFlow's native code within a block. All other text on the standard error is written at the
    end of the block. If the block fails, all text is written. If the user has set ``TF_CPP_MIN_LOG_LEVEL`` to 0 or 2,
    nothing is hidden or delayed.

    This variable alone is not enough: TensorFlow writes its first lines before it reads the variable, and reads it only
    once. If a program has imported Keras before, TensorFlow would report each device and compilation. Therefore this
    function redirects the file descriptor.
    """
    silence_tensorflow()
    if os.environ[_LEVEL] not in (_SILENT, _SET_BY_TENSORFLOW):
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(_STDERR)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), _STDERR)
        has_failed = False
        try:
            yield
        except (KeyboardInterrupt, Terminated):
            raise  # the user has stopped the program: hide the log as usual
        except BaseException:
            has_failed = True
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, _STDERR)
            kept.seek(0)
            lines = [line for line in kept if has_failed or not _NATIVE_LINE.match(line)]
            with Output(terminal, "wb") as output:
                output.write(b"".join(lines))
