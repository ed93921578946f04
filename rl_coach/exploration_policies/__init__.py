"""Exploration policies: they choose actions from the outputs of an agent's networks."""
