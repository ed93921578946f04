"""Tools that several packages share."""
