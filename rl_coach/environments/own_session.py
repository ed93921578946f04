"""A program that starts another one in a session of its own, in its own process.

A child process gets each signal of the terminal that its parent gets: with Ctrl-C a simulator would end before the run
is saved. In a session of its own it gets none. It ends with the process that started it, however that ends (Linux).
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
