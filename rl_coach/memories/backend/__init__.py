"""Redis streams that transport transitions from the workers to the trainer."""
