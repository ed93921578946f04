"""Replay memories: transitions in columns, sampled as batches."""
