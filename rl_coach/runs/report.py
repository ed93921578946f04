"""The report of a comparison: Markdown and HTML with SVG figures."""

from __future__ import annotations

import html
import math
import pathlib
import re
from dataclasses import dataclass
from typing import Sequence

from rl_coach.runs.comparison import Comparison, Measure, rows_of_scores
from rl_coach.runs.mean_curve import mean_of
from rl_coach.runs.plot import Interval, IntervalPlot, Line, SignalPlot
from rl_coach.utilities import files

MARKDOWN_FILE, HTML_FILE = "report.md", "report.html"
_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;"
    "padding:0 1rem}table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .7rem;text-align:right;"
    "border-bottom:1px solid #8884}td:first-child,th:first-child{text-align:left}svg{max-width:100%}"
)


@dataclass(frozen=True)
class Section:
    """Part of a report: a paragraph, a table that begins with the names of its columns, and a plot."""

    title: str
    text: str
    rows: Sequence[Sequence[str]] = ()
    figure: SignalPlot | IntervalPlot | None = None


def write(comparison: Comparison, directory: pathlib.Path) -> list[pathlib.Path]:
    """Write the report. :return: the Markdown file and the HTML file"""
    directory.mkdir(parents=True, exist_ok=True)
    sections = sections_of(comparison)
    for section in sections:
        if section.figure is not None:
            files.write_text(directory / _figure_file(section), section.figure._repr_svg_() + "\n")
    written = [directory / MARKDOWN_FILE, directory / HTML_FILE]
    files.write_text(written[0], markdown(sections))
    files.write_text(written[1], as_html(sections))
    return written


def sections_of(comparison: Comparison) -> list[Section]:
    """The parts of the report."""
    sections = [_about(comparison)]
    for task in comparison.tasks:
        rows = rows_of_scores(*comparison.figures(task))
        about = (
            "Scores of the runs. The column 'steps' has the mean number of environment steps. If evaluations reached "
            "the target and ended training, the column is 'to target': the mean number of steps until then. The "
            "interval is for the mean, by Student's t; fewer than three runs have none. IQM is the interquartile mean. "
            "P(best > this) is the probability that a run of the first line scores more than a run of this line."
        )
        sections.append(Section(f"Scores in {task}", about, rows))
        lines = []
        for side in comparison.sides:
            mean = mean_of(side.curves.get(task, ()), "iqm", within=side.reward_ranges.get(task))
            if mean["x"].size:
                lines.append(Line(side.name, mean["x"], mean["y"], (mean["low"], mean["high"])))
        curves = SignalPlot(lines)
        if curves.lines:
            about = "Interquartile means of the evaluation rewards, with 95% intervals."
            sections.append(Section(f"Learning curves in {task}", about, figure=curves))
    if not comparison.ranges:  # measures over environments need a scale
        return [*sections, _improvements(comparison)]
    return [*sections, *_aggregates(comparison), _improvements(comparison), _profiles(comparison)]


def _about(comparison: Comparison) -> Section:
    ranges = "; ".join(f"{task}: {low:.6g} is 0, {high:.6g} is 1" for task, (low, high) in comparison.ranges.items())
    about = (
        "Measures follow Agarwal et al. 2021 (rliable). Intervals of scores are 95% intervals by Student's t, "
        "for three or more runs. Intervals of probabilities are 95% intervals after Newcombe (1998, 2006)."
    )
    if ranges:
        about += f" Measures over environments use scores on a scale of 0 to 1: {ranges}."
    return Section("Comparison of runs", " ".join([about, *(f"Note: {note}." for note in comparison.notes)]))


def _aggregates(comparison: Comparison) -> list[Section]:
    found = {side.name: comparison.aggregates(side) for side in comparison.sides}
    measures = list(next(iter(found.values())))
    rows = [["", *measures]]
    rows += [[name, *(_written(of_side[measure]) for measure in measures)] for name, of_side in found.items()]
    about = (
        "Over all environments, on the scale of 0 to 1. The optimality gap is the mean shortfall of the runs below 1: "
        "the smaller, the better."
    )
    sections = [Section("Aggregate measures", about, rows)]
    for measure in ("IQM", "optimality gap"):
        drawn = [Interval(name, *_drawn(of_side[measure]), at) for at, (name, of_side) in enumerate(found.items())]
        ends = (min(0.0, *(one.low for one in drawn)), max(1.0, *(one.high for one in drawn)))
        plot = IntervalPlot(drawn, f"{measure}, on the scale of 0 to 1", ends)
        sections.append(Section(f"{measure[0].upper()}{measure[1:]}", "", figure=plot))
    return sections


def _improvements(comparison: Comparison) -> Section:
    first, *others = comparison.sides
    found = {side.name: comparison.improvement(side, first) for side in others}
    about = (
        f"The probability that a run scores more than a run of {first.name} in the same environment. "
        "An interval that does not contain 0.5 shows a difference."
    )
    if not found:
        return Section("Probability of improvement", "There is nothing to compare with: give another directory.")
    rows = [["", f"P(this > {first.name})"], *([name, _written(one)] for name, one in found.items())]
    drawn = [Interval(name, *_drawn(one), at) for at, (name, one) in enumerate(found.items(), 1)]
    plot = IntervalPlot(drawn, "probability of improvement", (0, 1), mark=0.5)
    return Section("Probability of improvement", about, rows, plot)


def _profiles(comparison: Comparison) -> Section:
    thresholds, profiles = comparison.profiles()
    lines = [Line(name, thresholds, share, (low, high)) for name, (share, low, high) in profiles.items()]
    about = "The share of runs that score more than a threshold. A line above another is better at every threshold."
    return Section("Performance profiles", about, figure=SignalPlot(lines, "score on the scale of 0 to 1"))


def _written(measure: Measure) -> str:
    value, low, high = measure
    if math.isnan(low):
        return f"{value:.3f}"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _drawn(measure: Measure) -> Measure:
    """A measure for drawing: a point if it has no interval."""
    value, low, _ = measure
    return (value, value, value) if math.isnan(low) else measure


def _figure_file(section: Section) -> str:
    return re.sub(r"\W+", "_", section.title.lower()).strip("_") + ".svg"


def markdown(sections: Sequence[Section]) -> str:
    """The report as Markdown; figures are separate files."""
    parts = []
    for number, section in enumerate(sections):
        parts.append(f"{'##' if number else '#'} {section.title}")
        if section.text:
            parts.append(section.text)
        if section.rows:
            names, *rows = ([cell.replace("|", "\\|") for cell in row] for row in section.rows)
            rule = ["---", *["---:"] * (len(names) - 1)]
            parts.append("\n".join(f"| {' | '.join(row)} |" for row in (names, rule, *rows)))
        if section.figure is not None:
            parts.append(f"![{section.title}]({_figure_file(section)})")
    return "\n\n".join(parts) + "\n"


def as_html(sections: Sequence[Section]) -> str:
    """The report as one HTML page that contains its figures."""
    parts = []
    for number, section in enumerate(sections):
        level = "h2" if number else "h1"
        parts.append(f"<{level}>{html.escape(section.title)}</{level}>")
        if section.text:
            parts.append(f"<p>{html.escape(section.text)}</p>")
        if section.rows:
            parts.append(f"<table>{''.join(_html_row(row, not at) for at, row in enumerate(section.rows))}</table>")
        if section.figure is not None:
            parts.append(section.figure._repr_svg_())
    title = html.escape(sections[0].title)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _html_row(cells: Sequence[str], is_head: bool) -> str:
    kind = "th" if is_head else "td"
    return f"<tr>{''.join(f'<{kind}>{html.escape(cell)}</{kind}>' for cell in cells)}</tr>"
