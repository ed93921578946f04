"""The dashboard: a web page with all signals of all runs, also while the runs train."""
