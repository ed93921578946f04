"""Environments, agents and graphs that tests share: each is here once, with numbers that can be predicted or a problem
that is learned in seconds."""
