"""The best known settings for each algorithm and environment, from rl-baselines3-zoo or found by this project."""
