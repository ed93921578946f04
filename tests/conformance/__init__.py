"""Every pair of features, in cells of a covering array. Coach refuses a cell in one line, or its agent learns from the
rows that the environment has logged. ``python -m tests.conformance --help`` shows how to run them."""
