"""The heads under Coach 1's import path; see ``rl_coach.architectures.heads``."""

from rl_coach.architectures.retired import Head, retired_names

__all__ = ["Head"]

__getattr__ = retired_names(__name__, Head)
