"""Coach: preset-driven training of reinforcement-learning agents."""

__version__ = "2.0.0"
