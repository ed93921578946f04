"""Today's best known settings, by algorithm and environment: from rl-baselines3-zoo or found by this project."""
