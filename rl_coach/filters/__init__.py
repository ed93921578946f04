"""Filters of observations, rewards and actions, between an environment and an agent."""
