"""Experiments that are ready to run. Each file defines an experiment in its ``graph_manager``."""
