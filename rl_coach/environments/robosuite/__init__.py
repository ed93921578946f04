"""Coach's environments for robosuite."""
