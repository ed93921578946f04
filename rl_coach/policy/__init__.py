"""A trained policy: what acts without a training framework, its files, and how it is made of an agent."""

from rl_coach.policy.policy import POLICY_DIRECTORY, Policy, find_policy

__all__ = ["POLICY_DIRECTORY", "Policy", "find_policy"]
