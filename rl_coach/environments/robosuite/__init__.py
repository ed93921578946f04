"""Environments of our own for robosuite."""
