"""Replay memories: they store transitions in columns and sample batches."""
