"""Memories whose unit is the transition."""
