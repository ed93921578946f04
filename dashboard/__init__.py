"""The web page over the signals that runs write."""
