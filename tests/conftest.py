from hypothesis import settings

# Tests share their machine with others: how long an example takes says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
