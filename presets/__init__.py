"""Experiments that are ready to run; each file defines one in its `graph_manager`."""
