"""Coach's package of embedders; see ``rl_coach.architectures.embedders``."""

from rl_coach.architectures.retired import InputEmbedder

__all__ = ["InputEmbedder"]
