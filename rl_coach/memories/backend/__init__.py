"""Streams in Redis that transport transitions from the workers to the trainer."""
