"""Coach's package of embedders; see ``rl_coach.architectures.embedders``."""

from rl_coach.architectures.retired import InputEmbedder, retired_names

__all__ = ["InputEmbedder"]

__getattr__ = retired_names(__name__, InputEmbedder)
