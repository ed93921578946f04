"""Memories whose unit is the episode."""
