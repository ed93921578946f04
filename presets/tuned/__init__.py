"""Today's best known settings, by algorithm and environment: those of rl-baselines3-zoo, or found by this project."""
