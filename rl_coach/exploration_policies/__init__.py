"""Exploration policies: from the outputs of an agent's networks to actions, exploring or not."""
