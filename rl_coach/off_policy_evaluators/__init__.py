"""Off-policy evaluation: how good a policy is, estimated from episodes of another policy."""
