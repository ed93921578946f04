"""Orchestrators: they start, watch and end the processes of a run."""
