"""Stores that pass a trainer's policies to its workers."""
