"""The command line: its arguments, overrides of parameters, and the presets that there are."""
