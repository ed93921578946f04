"""Places where a trainer leaves policies for its workers."""
