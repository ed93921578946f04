"""Lists the packages, and gives the README links that hold anywhere; the rest is in pyproject.toml."""

import pathlib
import re

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^)]+)\)")
PICTURES = (".svg", ".png")


def repository() -> str:
    """The repository's address; Python 3.10 has no reader of TOML."""
    match = re.search(r'^Repository = "(.+)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError("pyproject.toml names no Repository under [project.urls]")
    return match[1]


def readme() -> str:
    """README.md as it can be shown away from the repository."""
    address = repository()

    def absolute(match: re.Match) -> str:
        kind = "raw" if match[1].endswith(PICTURES) else "blob"
        return f"]({address}/{kind}/main/{match[1]})"

    text = (HERE / "README.md").read_text(encoding="utf-8").replace("<repo>", address)
    return RELATIVE_LINK.sub(absolute, text)


setup(
    packages=[
        *find_packages(include=["rl_coach", "rl_coach.*"]),
        "rl_coach.presets",
        "rl_coach.presets.tuned",
        "rl_coach.dashboard",
    ],
    long_description=readme(),
    long_description_content_type="text/markdown",
)
