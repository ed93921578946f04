"""Streams of Redis that bring transitions from the processes that play to the one that learns."""
