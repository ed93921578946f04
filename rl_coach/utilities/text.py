"""Names and values as text."""

from __future__ import annotations

from typing import Any, Iterable, Mapping


def lower_under_to_upper(s: str) -> str:
    """``"clipped_ppo_agent"`` becomes ``"ClippedPpoAgent"``."""
    return "".join(part.title() for part in s.split("_"))


def parse_bool(value: str) -> bool | str:
    """``"true"`` and ``"false"``, in upper or lower case, as a boolean; other text unchanged."""
    return {"true": True, "false": False}.get(value.strip().lower(), value)


def parse_int(value: str) -> int | float | str:
    """A text as a number if Python writes the number with the same text; otherwise the text unchanged: ``"3"`` becomes
    3, ``"03"`` stays a text."""
    for number in (int, float):
        try:
            parsed = number(value)
        except ValueError:
            continue
        if str(parsed) == value:
            return parsed
    return value


def convert_to_ascii(data: Any) -> Any:
    """Strings within dicts and containers as ``str``: bytes are decoded, other values are unchanged."""
    if isinstance(data, bytes):
        return data.decode("ascii")
    if isinstance(data, Mapping):
        return {convert_to_ascii(key): convert_to_ascii(value) for key, value in data.items()}
    if isinstance(data, Iterable) and not isinstance(data, str):
        return type(data)(convert_to_ascii(item) for item in data)  # type: ignore[call-arg]
    return data


def is_empty(str: str) -> bool:
    """True for an empty text, and for a text that consists of quotation marks."""
    return not str.replace("'", "").replace('"', "")


def remove_suffix(name: str, suffix_start: Iterable[str]) -> str | None:
    """``name`` up to the first of ``suffix_start`` that it contains; None if it contains none of them."""
    return next((name[: name.find(start)] for start in suffix_start if start in name), None)


def indent_string(string: str) -> str:
    """Text with a tab before each line."""
    return "\t" + string.replace("\n", "\n\t")
