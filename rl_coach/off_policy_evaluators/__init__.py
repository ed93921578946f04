"""Off-policy evaluation: how good a policy is, from what another one has played."""
