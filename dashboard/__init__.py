"""The web page over what runs write: every signal of every run, live, in a browser."""
