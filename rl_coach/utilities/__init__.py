"""Tools that several rooms share."""
