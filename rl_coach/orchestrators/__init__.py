"""Starters of the processes of a run, which watch over them and end them."""
