"""Settings at today's best known values, by algorithm and environment: rl-baselines3-zoo's, or found here."""
