"""Coach's package of heads; see ``rl_coach.architectures.heads``."""

from rl_coach.architectures.retired import Head, retired_names

__all__ = ["Head"]

__getattr__ = retired_names(__name__, Head)
