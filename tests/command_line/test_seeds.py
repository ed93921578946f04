from __future__ import annotations

import argparse

import pytest

from rl_coach.command_line.arguments import get_argument_parser, seeds_of


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("5", (0, 1, 2, 3, 4)), ("1-5", (1, 2, 3, 4, 5)), ("0,3,7", (0, 3, 7)), ("7,", None), ("2-2", (2,)),
     ("0-1, 9", (0, 1, 9)), ("1", (0,)), ("-1", None), ("1--3", None), ("", None), ("1.5", None), ("3-1", None),
     ("99999999999", None), ("0-99999999999999999999", None), ("0-900,1000-1900", None)],
)  # fmt: skip
def test_what_seeds_a_text_means(text, seeds):
    if seeds is None:
        with pytest.raises(argparse.ArgumentTypeError):
            seeds_of(text)
    else:
        assert seeds_of(text) == seeds
        assert get_argument_parser().parse_args([f"--seeds={text}"]).seeds == seeds
