"""Files that a run leaves behind, and their readers."""
