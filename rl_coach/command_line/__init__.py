"""The command line: its arguments, overrides of parameters, and the catalogue of presets."""
