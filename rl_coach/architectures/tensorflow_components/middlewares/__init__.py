"""Coach's package of middlewares; see ``rl_coach.architectures.middlewares``."""

from rl_coach.architectures.retired import Middleware

__all__ = ["Middleware"]
