from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as xml

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from rl_coach.coach import main
from rl_coach.runs import report
from rl_coach.runs.comparison import Comparison, Side, compare, compare_groups
from rl_coach.runs.mean_curve import mean_of
from rl_coach.utils import CoachError
from tests.dashboard.runs import write_run


@pytest.fixture
def experiments(tmp_path, monkeypatch):
    """Three seeds of two algorithms on CartPole, and of the first also on Acrobot."""
    monkeypatch.chdir(tmp_path)
    for experiment, best in (("CartPole_DQN", 200.0), ("CartPole_PG", 150.0), ("Acrobot_DQN", 90.0)):
        for seed in range(3):
            status = {"state": "finished"}
            write_run(tmp_path, experiment, f"0{seed + 1}_02_2026-10_00", seed=seed, best=best, status=status)
    return tmp_path


def last_evaluation(path):
    lines = [line.split(",") for line in next(path.glob("*.csv")).read_text().splitlines()]
    column = lines[0].index("Evaluation Reward")
    return float([line[column] for line in lines[1:] if line[column]][-1])


def test_sides_are_directories_and_scores_last_evaluations(experiments):
    found = compare(["CartPole_DQN", "CartPole_PG"])
    assert [side.name for side in found.sides] == ["CartPole_DQN", "CartPole_PG"]
    scores = [last_evaluation(path) for path in sorted((experiments / "CartPole_DQN").iterdir())]
    np.testing.assert_allclose(sorted(found.sides[0].scores["CartPole-v1"]), sorted(scores))
    every = [*found.sides[0].scores["CartPole-v1"], *found.sides[1].scores["CartPole-v1"]]
    assert found.ranges == {"CartPole-v1": (min(every), max(every))} and not found.notes
    assert found.improvement(found.sides[1], found.sides[0])[0] == 0.0
    best = compare(["CartPole_DQN", "CartPole_PG"], "best").sides[0].scores["CartPole-v1"]
    assert sum(best) > sum(scores)


def test_groups_of_runs_are_compared_as_directories_are(experiments):
    groups = {name: [str(path) for path in sorted((experiments / name).rglob("*.csv"))]
              for name in ("CartPole_DQN", "CartPole_PG")}  # fmt: skip
    found, expected = compare_groups(groups), compare(["CartPole_DQN", "CartPole_PG"])
    assert [side.name for side in found.sides] == ["CartPole_DQN", "CartPole_PG"] and found.ranges == expected.ranges
    for side, other in zip(found.sides, expected.sides):
        np.testing.assert_array_equal(np.sort(side.scores["CartPole-v1"]), np.sort(other.scores["CartPole-v1"]))
    acrobot = [str(path) for path in (experiments / "Acrobot_DQN").rglob("*.csv")]
    with pytest.raises(CoachError, match="no environment has scores of all compared groups"):
        compare_groups({"one": groups["CartPole_PG"], "other": acrobot})


def test_measures_are_on_the_scale_that_is_given(experiments):
    found = compare(["CartPole_DQN", "CartPole_PG"], ranges={"CartPole-v1": (0.0, 400.0)})
    scores = found.sides[0].scores["CartPole-v1"]
    measures = found.aggregates(found.sides[0])
    assert measures["mean"][0] == pytest.approx(scores.mean() / 400)
    assert measures["optimality gap"][0] == pytest.approx(1 - scores.mean() / 400)
    assert measures["IQM"][1] <= measures["IQM"][0] <= measures["IQM"][2]
    thresholds, profiles = found.profiles()
    share, low, high = profiles["CartPole_DQN"]
    assert share[0] == 1 and share[-1] == 0 and np.all(low <= share) and np.all(share <= high)
    assert share[np.searchsorted(thresholds, scores.min() / 400)] < 1


def test_only_environments_that_all_have_are_compared(experiments):
    (experiments / "both").mkdir()
    for name in ("CartPole_DQN", "Acrobot_DQN"):
        (experiments / name).rename(experiments / "both" / name)
    found = compare(["both", "CartPole_PG"])
    assert list(found.ranges) == ["CartPole-v1"]
    assert found.notes == ["not compared: Acrobot-v1, because not all groups have runs there"]
    with pytest.raises(CoachError, match="no environment has scores of all compared groups"):
        compare(["both/Acrobot_DQN", "CartPole_PG"])
    assert [side.name for side in compare(["CartPole_PG"]).sides] == ["CartPole_PG"]


def test_a_sweep_is_compared_by_its_settings(experiments):
    runs = []
    for number, path in enumerate(sorted((experiments / "CartPole_DQN").iterdir())):
        path.rename(path.with_name(f"run_{number}"))
        runs.append({"name": f"run_{number}", "setting": f"discount=0.{number // 2}"})
    (experiments / "CartPole_DQN" / "runs.json").write_text(json.dumps({"arguments": {}, "runs": runs}))
    sides = compare(["CartPole_DQN"]).sides
    assert [(side.name, len(side.scores["CartPole-v1"])) for side in sides] == [
        ("discount=0.0", 2),
        ("discount=0.1", 1),
    ]
    assert [side.name for side in compare(["CartPole_PG", "CartPole_DQN"]).sides][1:] == [
        "CartPole_DQN: discount=0.0", "CartPole_DQN: discount=0.1"
    ]  # fmt: skip


def test_runs_without_a_score_or_an_end_are_told_of(experiments):
    run = sorted((experiments / "CartPole_DQN").iterdir())[0]
    csv = next(run.glob("*.csv"))
    csv.write_text(csv.read_text().splitlines()[0] + "\n")
    (run / "status.json").write_text(json.dumps({"state": "stopped"}))
    found = compare(["CartPole_DQN", "CartPole_PG"])
    assert found.notes == [
        "CartPole_DQN: 1 of 3 runs have not finished; their scores so far count",
        "CartPole_DQN: 1 of 3 runs have no score yet and do not count",
    ]


def test_a_copy_of_a_run_does_not_count(experiments):
    expected = compare(["CartPole_DQN", "CartPole_PG"])
    run = sorted((experiments / "CartPole_DQN").iterdir())[0]
    shutil.copytree(run, run.with_name("copy_of_a_run"))
    found = compare(["CartPole_DQN", "CartPole_PG"])
    assert found.notes == ["CartPole_DQN: 1 of 4 runs are copies of other runs and do not count"]
    for side, other in zip(found.sides, expected.sides):
        np.testing.assert_array_equal(np.sort(side.scores["CartPole-v1"]), np.sort(other.scores["CartPole-v1"]))


def test_a_run_in_two_groups_is_told_of(experiments):
    run = sorted((experiments / "CartPole_DQN").iterdir())[0]
    shutil.copytree(run, experiments / "CartPole_PG" / "copy_of_a_run")
    found = compare(["CartPole_DQN", "CartPole_PG"])
    assert found.notes == ["CartPole_DQN and CartPole_PG: 1 runs are in both groups; compare separate runs"]


def test_the_command_prints_a_table_and_writes_a_report(experiments, capsys):
    assert main(["compare", "CartPole_DQN", "CartPole_PG", "--range", "CartPole-v1=0,200", "-o", "out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "CartPole-v1" and lines[2].startswith("CartPole_DQN  ") and lines[3].endswith("1.00")
    assert lines[-1] == "report: out/report.md, out/report.html"
    text = (experiments / "out" / report.MARKDOWN_FILE).read_text()
    assert "CartPole-v1: 0 is 0, 200 is 1" in text and "| CartPole_PG | 3 |" in text
    figures = re.findall(r"!\[.*?\]\((\S+)\)", text)
    assert len(figures) == 5
    for figure in figures:
        drawn = xml.parse(experiments / "out" / figure).getroot()
        assert "CartPole_PG" in "".join(drawn.itertext())
    page = (experiments / "out" / report.HTML_FILE).read_text()
    assert page.count("<svg") == 5 and "<td>CartPole_PG</td>" in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere"], "no file or directory 'nowhere'"),
        (
            ["CartPole_DQN", "CartPole_PG", "./CartPole_DQN"],
            "the same directory is given twice: 'CartPole_DQN', './CartPole_DQN'\n",
        ),
        (["CartPole_DQN", "--range", "CartPole-v1"], "does not have the form ENVIRONMENT=LOW,HIGH"),
        (["CartPole_DQN", "--range", "CartPole-v1=2,1"], "with LOW below HIGH"),
        (["CartPole_DQN", "--range", "CartPole-v1=0,inf"], "with LOW below HIGH"),
        (["CartPole_DQN", "--range", "Pong=1,2"], "a range is given for 'Pong'"),
        (["CartPole_DQN", "-o", "CartPole_DQN/01_02_2026-10_00/status.json"], "cannot be written"),
    ],
)
def test_bad_input_is_one_line(experiments, capsys, given, said):
    assert main(["compare", *given]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_equal_scores_have_no_scale(experiments, capsys):
    for name in ("CartPole_DQN", "CartPole_PG"):
        for csv in (experiments / name).rglob("*.csv"):
            head, *rows = [line.split(",") for line in csv.read_text().splitlines()]
            place = head.index("Evaluation Reward")
            same = [[*row[:place], "12" if row[place] else "", *row[place + 1 :]] for row in rows]
            csv.write_text("\n".join(map(",".join, [head, *same])) + "\n")
    assert main(["compare", "CartPole_DQN", "CartPole_PG", "-o", "report"]) == 0
    report = (experiments / "report" / "report.md").read_text()
    for text in (capsys.readouterr().out, report):
        assert "all scores in CartPole-v1 are 12, so there is no scale" in text and " is 0, " not in text
    assert "Aggregate measures" not in report and "Probability of improvement" in report
    assert main(["compare", "CartPole_DQN", "CartPole_PG", "-o", "other", "--range", "CartPole-v1=0,200"]) == 0
    assert "0.060 (0.060 to 0.060)" in (experiments / "other" / "report.md").read_text()


def test_two_runs_have_no_interval(experiments):
    for name in ("CartPole_DQN", "CartPole_PG"):
        shutil.rmtree(experiments / name / "03_02_2026-10_00")
    assert main(["compare", "CartPole_DQN", "CartPole_PG", "-o", "report"]) == 0
    assert " to " not in (experiments / "report" / "report.md").read_text().split("## Performance profiles")[0].replace(
        "scale of 0 to 1", ""
    )


def printed(path, **progress):
    """The status of a run of CartPole-v0 that has ended."""
    progress = {"steps": 2000, "seconds": 60.0, "reward_range": [0.0, 200.0], **progress}
    (path / "status.json").write_text(json.dumps({"state": "finished", "progress": progress}))


def test_figures_are_those_of_sweep_and_dashboard_and_intervals_stay_inside_the_range_of_rewards(experiments, capsys):
    rewards = {"CartPole_DQN": (200.0, 190.0, 150.0), "CartPole_PG": (170.0, 120.0, 60.0)}
    targets = {"CartPole_DQN": (1000, 2000, 3001), "CartPole_PG": (1500, None, None)}
    for name, scores in rewards.items():
        for path, score, target in zip(sorted((experiments / name).iterdir()), scores, targets[name]):
            printed(path, last_evaluation=score, best_evaluation=200.0, steps_to_target=target)
    assert main(["compare", "CartPole_DQN", "CartPole_PG", "-o", "report"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # the table is wider than 80 columns, so the names of the settings are above their numbers
    assert lines[1].split() == ["runs", "to", "target", "mean", "IQM", "95%", "interval", "P(best", ">", "this)"]
    assert [lines[2], lines[4]] == ["CartPole_DQN", "CartPole_PG"]
    assert lines[3].split() == ["3", "2,000", "180", "180", "114.27", "to", "200"]
    assert lines[5].split() == ["3", "1,500", "(1", "of", "3)", "116.67", "116.67", "0", "to", "200", "0.89"]
    for side in compare(["CartPole_DQN", "CartPole_PG"], ranges={"CartPole-v1": (0.0, 400.0)}).sides:
        assert side.reward_ranges == {"CartPole-v1": (0.0, 200.0)}
    measures = compare(["CartPole_DQN", "CartPole_PG"], ranges={"CartPole-v1": (0.0, 400.0)})
    assert measures.aggregates(measures.sides[0])["mean"] == pytest.approx((0.45, 114.27 / 400, 0.5), abs=1e-3)
    pytest.importorskip("panel")
    from rl_coach.dashboard.runs_table import rows_of
    from rl_coach.dashboard.store import Store

    store = Store(experiments)
    store.scan()
    rows = sorted((row["experiment"], -row["last"], row["target"], row["steps"]) for row in rows_of(store.runs, "", {}))
    shown = [row for row in rows if row[0] in rewards]
    assert shown == [(name, -score, target, 2000) for name, scores in sorted(rewards.items())
                     for score, target in zip(scores, targets[name])]  # fmt: skip


def test_runs_of_one_side_with_several_settings_are_told_of(experiments, capsys):
    for seed, discount in enumerate((0.9, 0.99, 1)):
        parameters, status = {"algorithm": {"discount": discount}}, {"state": "finished"}
        start = f"0{seed + 1}_02_2026-10_00"
        write_run(experiments, "CartPole_PG", start, seed=seed, best=150.0, parameters=parameters, status=status)
    assert main(["compare", "CartPole_DQN", "CartPole_PG", "-o", "report"]) == 0
    told = (
        "note: CartPole_PG: its runs have several values of agent.algorithm.discount; its scores are of all these runs"
    )
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("note")] == [told]


def test_intervals_over_environments_stay_inside_the_range_of_each_measure():
    """With 3 and 10 runs, the largest mean is not the mean of both largest rewards, and the IQM may be above it."""
    scores = {"a": np.array([0.0, 1.0, 1.0]), "b": np.array([0.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 10.0])}
    ranges = {"a": (0.0, 1.0), "b": (0.0, 10.0)}
    side = Side("one", scores, {}, reward_ranges=ranges)
    found = Comparison([side], ["a", "b"], dict.fromkeys(scores, (0.0, 10.0))).aggregates(side)
    for value, low, high in found.values():
        assert 0.0 <= low <= value <= high <= 1.0
    assert found["mean"][2] <= (3 * 0.1 + 10 * 1.0) / 13


def test_a_range_of_rewards_that_a_score_contradicts_is_ignored(experiments):
    for path in (experiments / "CartPole_DQN").iterdir():
        printed(path, last_evaluation=250.0 + int(path.name[1]), best_evaluation=260.0)
    found = compare(["CartPole_DQN"])
    assert found.sides[0].reward_ranges == {}
    value, low, high = found.aggregates(found.sides[0])["mean"]
    assert low < value < high


def test_agents_that_play_together_are_one_run_with_the_score_that_it_prints(experiments, capsys):
    for path in sorted((experiments / "CartPole_DQN").iterdir()):
        document = next(path.glob("*.json"))
        settings = json.loads(document.read_text())
        settings["parameters"]["agent_of"] = None
        next(path.glob("worker_*.json")).write_text(json.dumps(settings))
        csv = next(path.glob("*.csv"))
        csv.with_name(csv.name.replace("agent_0", "other_0")).write_text(csv.read_text())
        printed(path, last_evaluation=-100.0 - len(path.name), reward_range=None)
    (side,) = compare(["CartPole_DQN"]).sides
    assert side.scores["CartPole-v1"].tolist() == [-116.0] * 3 and side.steps["CartPole-v1"].tolist() == [2000.0] * 3


def test_a_band_of_intervals_stays_inside_the_range_of_rewards():
    lines = [(np.array([0.0, 1.0]), np.array(values)) for values in ((0.0, 200.0), (0.0, 200.0), (40.0, 150.0))]
    for band in ("confidence", "iqm"):
        free, bounded = mean_of(lines, band), mean_of(lines, band, within=(0.0, 200.0))
        assert free["low"][0] < 0 and free["high"][1] > 200
        assert (bounded["low"][0], bounded["high"][1]) == (0.0, 200.0)
        wrong = mean_of(lines, band, within=(0.0, 100.0))
        np.testing.assert_array_equal(wrong["high"], free["high"])
