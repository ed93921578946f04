"""Trained policies that act without a training framework, their files, and their export from an agent."""

from rl_coach.policy.policy import POLICY_DIRECTORY, Policy, find_policy

__all__ = ["POLICY_DIRECTORY", "Policy", "find_policy"]
