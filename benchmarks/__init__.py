"""Speed against the peers, on the same work, and against the floor of the machine."""
