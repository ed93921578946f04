"""The middlewares under Coach 1's import path; see ``rl_coach.architectures.middlewares``."""

from rl_coach.architectures.retired import Middleware, retired_names

__all__ = ["Middleware"]

__getattr__ = retired_names(__name__, Middleware)
