"""Off-policy evaluation: estimates the value of a policy from episodes of another policy."""
