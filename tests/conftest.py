import os

from hypothesis import settings

# Tests write to no directory of the user's.
os.environ.setdefault("COACH_COMPILATION_CACHE", "off")

# Tests share their machine with others: how long an example takes says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
