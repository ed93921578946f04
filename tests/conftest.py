import os
import signal

from hypothesis import settings

# Tests write to no directory of the user's.
os.environ.setdefault("COACH_COMPILATION_CACHE", "off")

# Tests share their machine with others: how long an example takes says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# A shell has what it starts in the background ignore Ctrl-C, and what the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
