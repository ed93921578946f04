"""Coach's package of heads; see ``rl_coach.architectures.heads``."""

from rl_coach.architectures.retired import Head

__all__ = ["Head"]
