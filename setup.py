"""Lists the packages, and gives the README links that hold anywhere; the rest is in pyproject.toml."""

import pathlib
import re

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).parent
PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)]+\)\n*")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)([^)]+)\)")
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)([^)]+)\)")
PICTURES = (".svg", ".png")


def repository() -> str | None:
    """The repository's address, if it has one; Python 3.10 has no reader of TOML."""
    match = re.search(r'^Repository = "(.+)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    return match and match[1]


def readme() -> str:
    """README.md as it can be shown away from the repository: with absolute links, or without links and pictures."""
    address, text = repository(), (HERE / "README.md").read_text(encoding="utf-8")
    if address is None:
        return LINK.sub(r"\1", PICTURE.sub("", text))

    def absolute(match: re.Match) -> str:
        kind = "raw" if match[1].endswith(PICTURES) else "blob"
        return f"]({address}/{kind}/main/{match[1]})"

    return RELATIVE_LINK.sub(absolute, text)


setup(
    packages=find_packages(include=["rl_coach", "rl_coach.*"]),
    long_description=readme(),
    long_description_content_type="text/markdown",
)
