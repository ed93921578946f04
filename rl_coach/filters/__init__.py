"""What stands between an environment and an agent: filters of observations, rewards and actions."""
