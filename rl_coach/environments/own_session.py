"""A program that replaces itself by another program, in a new session.

A child process receives the terminal's signals together with its parent, so a Ctrl-C would end a simulator before the
run is saved. A process in its own session receives no signals of the terminal. On Linux, the process in its own session
ends together with the process that started it.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

if __name__ == "__main__":
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execv(sys.argv[1], sys.argv[1:])
