"""What brings transitions from the processes that play to the one that learns: streams of Redis."""
