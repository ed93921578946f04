"""The dashboard: a web page with every signal of every run, also while the runs train."""
