"""Settings at today's best known values, by algorithm and environment: those of rl-baselines3-zoo carried over."""
