"""Benchmarks: the speed of Coach, compared with other libraries and with plain loops, and the scores of its presets."""
