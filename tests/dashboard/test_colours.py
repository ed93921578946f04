from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("panel")

from rl_coach.dashboard.colours import LINES, PLOT, line_colour, lowest_free

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    ratio = XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    brighter, darker = sorted(((XYZ @ linear(colour))[1] for colour in (one, other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", LINES)
@pytest.mark.parametrize("vision", VISIONS)
def test_colours_can_be_told_apart(theme, vision):
    seen = [lab(np.asarray(VISIONS[vision]) @ linear(colour)) for colour in LINES[theme]]
    distances = {(i, j): np.linalg.norm(seen[i] - seen[j]) for i, j in itertools.combinations(range(len(seen)), 2)}
    assert len(seen) == 20
    assert min(distances.values()) > (20 if vision == "normal" else 13.5)
    assert min(distance for pair, distance in distances.items() if max(pair) < 10) > 14
    assert min(distance for pair, distance in distances.items() if max(pair) < 6) > 24


@pytest.mark.parametrize("theme", LINES)
def test_lines_and_words_stand_out_from_the_page(theme):
    paper = PLOT[theme]["paper"]
    assert min(contrast(colour, paper) for colour in LINES[theme]) >= 3
    assert contrast(PLOT[theme]["ink"], paper) >= 7
    assert contrast(PLOT[theme]["faint"], paper) >= 4.5


def test_the_lowest_free_colour_then_the_least_used():
    assert lowest_free([]) == 0
    assert lowest_free([0, 2]) == 1
    assert lowest_free([*range(20), 0]) == 1
    assert line_colour(22, "light") == line_colour(2, "light")
