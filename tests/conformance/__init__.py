"""Every pair of features, in cells of a covering array: each cell is refused in one line, or it learns from exactly what
its environment has logged. ``python -m tests.conformance --help`` runs them."""
