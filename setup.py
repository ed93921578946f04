"""Lists the packages; everything else about the distribution is in pyproject.toml."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["rl_coach", "rl_coach.*"]), "rl_coach.presets", "rl_coach.dashboard"])
