"""Files that a run writes, and the functions that read them."""
