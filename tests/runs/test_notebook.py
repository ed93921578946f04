"""What a notebook shows of runs: well-formed HTML and SVG, with nothing in it that a name could break out of."""

from __future__ import annotations

import xml.etree.ElementTree as tree

import numpy as np
import pytest

from rl_coach.coach import CoachInterface
from rl_coach.runs import experiments
from rl_coach.runs.plot import Line, SignalPlot, line
from rl_coach.utils import CoachError

SVG = "{http://www.w3.org/2000/svg}"
SETTINGS = "heatup_steps=EnvironmentSteps(30); improve_steps=EnvironmentSteps(60)"


def parts(text: str) -> tree.Element:
    return tree.fromstring(f"<div>{text}</div>")


def test_points_lie_where_the_axes_say():
    drawn = parts(SignalPlot([line("a", np.array([0.0, 50.0, 100.0]), np.array([-1.0, np.nan, 3.0]))])._repr_svg_())
    (curve,) = drawn.iter(f"{SVG}polyline")
    assert curve.get("points") == "64.0,200.0 628.0,12.0"
    assert [text.text for text in drawn.iter(f"{SVG}text")][:4] == ["-1", "3", "0", "100"]


def test_a_band_lies_around_its_line_and_widens_the_axes():
    x, low, high = np.array([0.0, 100.0]), np.array([0.0, 1.0]), np.array([2.0, 4.0])
    drawn = parts(SignalPlot([Line("a", x, np.array([1.0, 2.0]), (low, high))], "episodes", "white")._repr_svg_())
    (band,), (curve,) = drawn.iter(f"{SVG}polygon"), drawn.iter(f"{SVG}polyline")
    assert band.get("points") == "64.0,200.0 628.0,153.0 628.0,12.0 64.0,106.0"
    assert curve.get("points") == "64.0,153.0 628.0,106.0"
    assert "episodes" in [text.text for text in drawn.iter(f"{SVG}text")]
    assert next(drawn.iter(f"{SVG}rect")).get("fill") == "white"


def test_long_signals_are_thinned():
    many = np.arange(100_000.0)
    assert line("a", many, many).x.size <= 600


def test_without_values():
    assert "no values yet" in SignalPlot([line("a", np.array([]), np.array([]))])._repr_svg_()


def test_a_name_is_text():
    text = SignalPlot([line("<img src=x onerror=alert(1)>", np.arange(2.0), np.arange(2.0))])._repr_svg_()
    assert "<img" not in text and parts(text) is not None


def test_a_run_shows_itself(tmp_path):
    coach = CoachInterface(
        preset="CartPole_DQN", experiment_path=str(tmp_path), custom_parameter=SETTINGS, no_summary=True, seed=0
    )
    assert "no results yet" in coach._repr_html_()
    manager = coach.run()
    for shown in (coach._repr_html_(), manager._repr_html_()):
        document = parts(shown)
        cells = dict(zip((cell.text for cell in document.iter("th")), (cell.text for cell in document.iter("td"))))
        assert (cells["preset"], cells["state"], cells["kind"]) == ("CartPole_DQN", "finished", "training")
        assert [text.text for text in document.iter(f"{SVG}text")].count("Training Reward") == 1
    found = experiments.load(tmp_path)
    assert "<svg" in found._repr_html_() and "CartPole_DQN" in found._repr_html_()
    assert len(list(parts(found.plot("Training Reward")._repr_svg_()).iter(f"{SVG}polyline"))) == 1
    with pytest.raises(CoachError, match="did you mean 'Training Reward'"):
        found.plot("Training Rewards")
