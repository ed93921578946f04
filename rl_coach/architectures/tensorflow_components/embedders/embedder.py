"""The embedders under Coach 1's import path; see ``rl_coach.architectures.embedders``."""

from rl_coach.architectures.retired import InputEmbedder, retired_names

__all__ = ["InputEmbedder"]

__getattr__ = retired_names(__name__, InputEmbedder)
