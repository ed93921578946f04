"""Every pair of features, in cells of a covering array: each cell is refused in one line, or its agent learns from what
the environment has logged. ``python -m tests.conformance --help`` runs them."""
