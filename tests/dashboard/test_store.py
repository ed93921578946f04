from __future__ import annotations

import json
import os
import pathlib
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("panel")

from rl_coach.dashboard import cache as cache_module
from rl_coach.dashboard import store as store_module
from rl_coach.dashboard.cache import ColumnCache
from rl_coach.dashboard.drawing import draw, groups_of, labels_of, sides_of
from rl_coach.dashboard.media import is_media, url_of
from rl_coach.dashboard.page import _age_of
from rl_coach.dashboard.panels import histograms_of, media_of, no_experiments, output, parameters_table
from rl_coach.dashboard.runs_table import group_of, group_options, rows_of, shown_columns, titles_of
from rl_coach.dashboard.store import Store
from rl_coach.dashboard.view import USUAL_COLUMNS, View
from rl_coach.runs import histogram_file, signal_file
from rl_coach.runs.differences import ranked_by_difference, varied_parameters
from rl_coach.runs.experiments import RunDescription, SignalFile
from rl_coach.runs.status import FAILED, FINISHED, RUNNING, RunStatus
from rl_coach.utils import CoachError
from tests.dashboard.runs import signal_rows, write_gif, write_run


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "experiments"
    for seed in range(2):
        write_run(directory, "CartPole_DQN", f"21_11_2026-10_3{seed}", seed=seed, rows=40, status={"state": "finished"})
    write_run(
        directory, "CartPole_A3C", "22_11_2026-09_00", rows=30, status={"state": "failed"}, parameters={"extra": 1}
    )
    write_run(directory, "CartPole_A3C", "22_11_2026-09_00", rows=30, worker=1)
    return directory


def scanned(root, **settings):
    store = Store(root, **settings)
    store.scan()
    while store.read_some():
        pass
    return store


def test_finds_runs_and_what_they_reached(root):
    store = scanned(root)
    run = store.runs["CartPole_DQN/21_11_2026-10_31"]
    whole = SignalFile(run.path)
    whole.refresh()
    assert run.state == FINISHED and run.summary.complete
    assert run.summary.steps == whole.column("Total steps")[-1]
    assert run.summary.best_evaluation_reward == np.nanmax(whole.column("Evaluation Reward"))
    assert sum(run.state == FAILED for run in store.runs.values()) == 1


def test_the_first_look_knows_the_last_values_and_reading_on_the_best(root):
    store = Store(root)
    store.scan()
    first = store.runs["CartPole_DQN/21_11_2026-10_30"].summary
    assert first.steps > 0 and not first.complete
    assert next(row for row in rows_of(store.runs, "", {}) if row["seed"] == 0)["best"] is None
    while store.read_some():
        pass
    assert store.runs["CartPole_DQN/21_11_2026-10_30"].summary.complete


def test_a_look_at_nothing_new_changes_nothing(root):
    store = scanned(root)
    version = store.version
    assert not store.scan() and store.version == version


def test_new_rows_new_runs_and_runs_that_vanish(root):
    store = scanned(root)
    run = store.runs["CartPole_DQN/21_11_2026-10_30"]
    with open(run.path, "a") as file:
        file.write("\n".join(signal_rows(5, first=41)) + "\n")
    (root / "CartPole_DQN" / "21_11_2026-10_30" / "status.json").unlink()
    assert store.scan()
    grown = store.runs[run.id]
    assert grown.summary.steps > 0 and grown.offset > run.offset and grown.state == RUNNING
    write_run(root, "New", "23_11_2026-09_00")
    shutil.rmtree(root / "CartPole_A3C")
    store.scan()
    assert set(store.runs) == {f"CartPole_DQN/21_11_2026-10_3{seed}" for seed in range(2)} | {"New/23_11_2026-09_00"}
    shutil.rmtree(root)
    store.scan()
    assert store.runs == {}


def test_columns_are_up_to_date_and_missing_runs_left_out(root):
    store = scanned(root)
    run_id = "CartPole_DQN/21_11_2026-10_30"
    assert store.columns([run_id, "../../etc/passwd"])[run_id].rows == 40
    with open(store.runs[run_id].path, "a") as file:
        file.write(signal_rows(1, first=41)[0] + "\n")
    assert store.columns([run_id])[run_id].rows == 41
    shutil.rmtree(root)
    assert store.columns([run_id]) == {}


def test_only_the_files_asked_for(root):
    path = next(root.rglob("*.csv"))
    store = scanned(root, files=[path])
    assert [run.path for run in store.runs.values()] == [str(path)]


def test_what_was_read_is_kept_for_the_next_start(root, tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "SMALLEST_FILE_BYTES", 0)
    cache = ColumnCache(tmp_path / "cache", root)
    scanned(root, cache=cache).stop()
    again = Store(root, cache=ColumnCache(tmp_path / "cache", root))
    again.scan()
    assert all(run.summary.complete for run in again.runs.values())
    path = again.runs["CartPole_DQN/21_11_2026-10_30"].path
    kept = cache.read(path)
    assert kept.rows == 40 and not kept.refresh()
    with open(path, "a") as file:
        file.write(signal_rows(1, first=41)[0] + "\n")
    assert kept.refresh() and kept.rows == 41
    with open(path, "w") as file:
        file.write("Episode #,A\n1,2\n")
    assert cache.read(path).refresh()


def test_a_cache_that_cannot_be_written_keeps_nothing(root, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    scanned(root, cache=ColumnCache(blocked, root)).stop()


def test_groups_and_what_differs(root):
    store = scanned(root)
    runs = list(store.runs.values())
    assert {group_of(run, "experiment") for run in runs} == {"CartPole_DQN", "CartPole_A3C"}
    assert {group_of(run, "agent.extra") for run in runs} == {"", "1"}
    assert "seed" in store.differing_parameters and "agent.algorithm.discount" not in store.differing_parameters
    assert "agent.extra" in store.differing_parameters and "run.start_time" not in store.differing_parameters


def test_below_the_name_of_their_experiment_runs_are_called_by_their_directories(root):
    store = scanned(root)
    run = store.runs["CartPole_A3C/22_11_2026-09_00"]
    names = {group: rows_of({run.id: run}, group, {})[0]["name"] for group in ("experiment", "seed", "")}
    assert names == {"experiment": "22_11_2026-09_00", "seed": "CartPole_A3C", "": "CartPole_A3C"}
    store.annotate([run.id], {"name": "mine"})
    assert rows_of(store.runs, "experiment", {})[list(store.runs).index(run.id)]["name"] == "mine"


def test_the_workers_of_a_run_are_one_row_with_each_of_them_in_it(root):
    store = scanned(root)
    run = store.runs["CartPole_A3C/22_11_2026-09_00"]
    assert len(run.workers) == 2 and run.summary.steps == sum(worker.summary.steps for worker in run.workers)
    rows = [row for row in rows_of(store.runs, "experiment", {}) if row["group"] == "CartPole_A3C"]
    assert [(row["id"], row["detail"], row["steps"]) for row in rows] == [(run.id, "2 workers", run.summary.steps)]
    assert [(worker["name"], worker["steps"]) for worker in rows[0]["parts"]] == [
        (f"worker {place}", worker.summary.steps) for place, worker in enumerate(run.workers)
    ]


def test_the_workers_of_a_run_are_one_curve_over_all_their_steps(root):
    store = scanned(root)
    run_id = "CartPole_A3C/22_11_2026-09_00"
    view = View(runs=(run_id,), left=("Training Reward",), x="steps", draw="confidence")
    (curve,) = draw(view, store.runs, store.columns(view.runs), lambda key: 0).curves
    assert curve.label == "All runs (1)" and np.array_equal(curve.low, curve.high)
    assert curve.x[-1] == store.runs[run_id].summary.steps
    with open(store.runs[run_id].workers[1].path, "a") as file:
        file.write(signal_rows(1, first=31)[0] + "\n")
    before = store.runs[run_id].drawn
    assert store.scan() and store.runs[run_id].drawn != before
    assert store.columns(view.runs)[run_id].rows == 61


def test_agents_of_one_run_are_no_independent_runs(root):
    for run in ("22_11_2026-09_00", "22_11_2026-10_00"):
        path = write_run(root, "CartPole_A3C", run, rows=30)
        path.with_name(path.name.replace("agent_0", "other_0")).write_text(path.read_text())
    store = scanned(root)
    chosen = [run for run in store.runs.values() if run.description.experiment == "CartPole_A3C"]
    assert [run.id for run in chosen] == [f"CartPole_A3C/22_11_2026-{hour}_00" for hour in ("10", "09")]
    groups = groups_of([line for run in chosen for line in run.lines], "experiment")
    assert {name: len(runs) for name, runs in groups.items()} == {
        "CartPole_A3C · agent": 2,
        "CartPole_A3C · other": 2,
    }
    view = View(runs=(chosen[0].id,), left=("Training Reward",))
    curves = draw(view, store.runs, store.columns(view.runs), lambda key: 3).curves
    assert [(curve.label, curve.colour, curve.dash) for curve in curves] == [("agent", 3, 0), ("other", 3, 1)]


def test_a_run_has_the_figures_that_it_prints_and_its_agents_their_own(root):
    path = write_run(root, "Spread", "22_11_2026-10_00", rows=30)
    progress = {"steps": 2000, "seconds": 90.0, "last_evaluation": -100.14, "best_evaluation": -90, "total": "x"}
    (path.parent / "status.json").write_text(json.dumps({"state": "finished", "progress": progress}))
    document = next(path.parent.glob("*.json"))
    settings = json.loads(document.read_text())
    settings["parameters"]["agent_of"] = None
    document.write_text(json.dumps(settings))
    store = scanned(root)
    run = store.runs["Spread/22_11_2026-10_00"]
    (row,) = rows_of({run.id: run}, "", {})
    figures = row["steps"], row["minutes"], row["last"], row["best"], row["target"]
    assert figures == (2000, 1.5, -100.14, -90, None)
    (part,) = row["parts"]
    assert (part["name"], part["agent"], part["steps"]) == ("agent", "Spread", run.agents[0].summary.steps)
    view = View(runs=(run.id,), left=("Training Reward",))
    (curve,) = draw(view, store.runs, store.columns(view.runs), lambda key: 0).curves
    assert curve.label == "Spread · agent"


@pytest.mark.parametrize(
    "progress", ["text", {"steps": "many", "last_evaluation": float("inf"), "seconds": None}, None]
)
def test_figures_of_a_damaged_status_are_those_of_the_csv(root, progress):
    before = next(iter(scanned(root).runs.values()))
    (pathlib.Path(before.path).parent / "status.json").write_text(
        json.dumps({"state": "stopped", "progress": progress})
    )
    after = scanned(root).runs[before.id]
    assert after.summary == before.summary and after.state == "stopped"


def test_a_run_is_shown_before_its_first_row_with_what_it_does(tmp_path):
    directory = tmp_path / "CartPole_DQN" / "22_11_2026-10_00"
    path = write_run(tmp_path, "CartPole_DQN", directory.name, rows=5)
    rows = path.read_text()
    path.unlink()
    progress = {"phase": "Heatup", "steps": 400, "done": 400, "total": 1000}
    status = {"state": "running", "pid": os.getpid(), "updated": time.time(), "progress": progress}
    (directory / "status.json").write_text(json.dumps(status))
    for root, run_id in ((tmp_path, "CartPole_DQN/22_11_2026-10_00"), (directory, "22_11_2026-10_00")):
        store = scanned(root)
        (row,) = rows_of(store.runs, "", {})
        assert (row["id"], row["state"], row["doing"], row["steps"]) == (run_id, "running", "heatup 40%", 400)
        assert row["agent"] == "DQN" and row["seed"] == 0
        drawing = draw(View(runs=(run_id,), left=("Loss",)), store.runs, store.columns([run_id]), lambda key: 0)
        assert drawing.message.startswith("No values yet")
        with pytest.raises(CoachError, match="has no CSV yet"):
            store.annotate([run_id], {"name": "mine"})
        path.write_text(rows)
        assert store.scan() and list(store.runs) == [run_id] and store.runs[run_id].has_signals
        path.unlink()


def test_runs_that_differ_in_many_settings_are_called_by_their_directories(root):
    for trial in range(3):
        settings = {f"a_setting_with_a_long_name_{place}": trial + place for place in range(4)}
        write_run(root, "Tuned", f"22_11_2026-12_00/trial_{trial}", rows=20, seed=trial, parameters=settings)
    (root / "Tuned" / "22_11_2026-12_00" / "runs.json").write_text("{}")
    runs = [run for run in scanned(root).runs.values() if "trial" in run.id]
    assert sorted(labels_of(runs).values()) == sorted(groups_of(runs, "")) == ["trial_0", "trial_1", "trial_2"]


def test_a_run_of_several_workers_is_annotated_and_deleted_as_one(root):
    store = scanned(root)
    run = store.runs["CartPole_A3C/22_11_2026-09_00"]
    assert store.annotate([run.id], {"name": "two"}) == 1
    assert store.runs[run.id].title == "two"
    store.delete([run.id])
    assert run.id not in store.runs and not os.path.exists(os.path.dirname(run.path))


def test_labels_say_what_tells_runs_apart(root):
    runs = scanned(root).runs
    dqn = [run for run in runs.values() if run.description.preset == "CartPole_DQN"]
    assert sorted(labels_of(dqn).values()) == ["seed 0", "seed 1"]
    assert list(labels_of(dqn[:1]).values()) == ["CartPole_DQN"]
    assert len(set(labels_of(list(runs.values())).values())) == len(runs)


def test_labels_name_the_settings_that_differ(root):
    dqn = [run for run in scanned(root).runs.values() if run.description.preset == "CartPole_DQN"]
    first = dqn[0].description
    runs = []
    for number, (discount, seed) in enumerate(((0.9, 0), (0.99, 0), (0.99, 1))):
        changed = {"agent.algorithm.discount": discount, "agent.__class__": f"Kind{number}", "seed": seed}
        about = replace(first, id=str(number), seed=seed, parameters={**first.parameters, **changed})
        runs.append(replace(dqn[0], description=about, annotation=replace(dqn[0].annotation, name="one")))
    assert list(labels_of(runs[:2]).values()) == ["discount=0.9", "discount=0.99"]
    assert list(labels_of(runs).values()) == [
        "discount=0.9 · seed 0",
        "discount=0.99 · seed 0",
        "discount=0.99 · seed 1",
    ]
    other = replace(runs[0], description=replace(runs[0].description, id="3"))
    other = replace(other, annotation=replace(other.annotation, name="other"))
    assert labels_of([*runs[:2], other])["3"] == "other"  # its settings need not tell it from those of "one"


def test_runs_that_differ_in_nothing_but_seeds_are_one_side_of_a_report(root):
    runs = [run for run in scanned(root).runs.values() if run.description.preset == "CartPole_DQN"]
    assert list(sides_of(runs, "")) == ["CartPole_DQN"]
    about = runs[0].description
    changed = replace(about, id="b", parameters={**about.parameters, "agent.algorithm.discount": 0.5})
    sides = sides_of([*runs, replace(runs[0], description=changed)], "")
    assert {name: len(of_side) for name, of_side in sides.items()} == {"discount=0.99": len(runs), "discount=0.5": 1}
    assert {name: len(of_side) for name, of_side in sides_of(runs, "seed").items()} == {"0": 1, "1": 1}


def test_a_mean_is_over_runs_that_differ_in_nothing_but_their_seeds(root):
    for discount in (0.9, 0.99):
        for seed in range(2):
            name, settings = f"22_11_2026-12_00/run_{discount}_{seed}", {"algorithm": {"discount": discount}}
            write_run(root, "Sweep_DQN", name, rows=20, seed=seed, parameters=settings)
    write_run(root, "Other_DQN", "22_11_2026-12_00", rows=20)
    (root / "Sweep_DQN" / "22_11_2026-12_00" / "runs.json").write_text("{}")
    store = scanned(root)
    sweep = [run for run in store.runs.values() if "Sweep_DQN" in run.id]
    sizes = {f"Sweep_DQN/22_11_2026-12_00 · discount={discount}": 2 for discount in (0.9, 0.99)}
    assert {name: len(runs) for name, runs in groups_of(sweep, "experiment").items()} == sizes
    assert {name: len(runs) for name, runs in groups_of(sweep, "").items()} == {"discount=0.9": 2, "discount=0.99": 2}
    assert {name: len(runs) for name, runs in groups_of(sweep[:1], "").items()} == {"All runs": 1}
    both = groups_of([*sweep, *(run for run in store.runs.values() if run.title == "Other_DQN")], "")
    assert sorted(map(len, both.values())) == [1, 2, 2] and "Other_DQN" in " ".join(both)
    assert {name: len(runs) for name, runs in groups_of(sweep, "agent").items()} == {"DQN": 4}
    view = View(runs=tuple(run.id for run in sweep), left=("Training Reward",), group="experiment", draw="iqm")
    curves = draw(view, store.runs, store.columns(view.runs), lambda key: 0).curves
    assert sorted(curve.label for curve in curves) == [f"{name} (2)" for name in sizes]


@pytest.mark.parametrize(
    ("setting", "groups"),
    [
        ({"algorithm": {"discount": [1, 1.0, "1"]}}, {"discount=1": 2, "discount='1'": 1}),
        ({"algorithm": {"discount": [0.9999995, 0.9999999]}}, {"discount=0.9999995": 1, "discount=0.9999999": 1}),
        ({"note": [True, "True"]}, {"note=True": 1, "note='True'": 1}),
        ({"exploration": {"__class__": ["a:Noise", "b:Noise"]}}, {"exploration=a:Noise": 1, "exploration=b:Noise": 1}),
    ],
)
def test_settings_that_look_equal_are_not_averaged(root, setting, groups):
    ((place, values),) = setting.items()
    ((name, values),) = values.items() if isinstance(values, dict) else [("", values)]
    for number, value in enumerate(values):
        parameters = {place: {name: value} if name else value}
        write_run(root, "Sweep_DQN", f"22_11_2026-12_00/run_{number}", rows=20, parameters=parameters)
    (root / "Sweep_DQN" / "22_11_2026-12_00" / "runs.json").write_text("{}")
    sweep = [run for run in scanned(root).runs.values() if "Sweep_DQN" in run.id]
    assert {name: len(runs) for name, runs in groups_of(sweep, "").items()} == groups


def test_runs_with_several_frameworks_are_not_averaged(root):
    for framework in ("jax", "tensorflow"):
        name, task = f"22_11_2026-12_00/{framework}", {"framework_type": f"Frameworks.{framework}"}
        write_run(root, "Sweep_DQN", name, rows=20, task=task)
    (root / "Sweep_DQN" / "22_11_2026-12_00" / "runs.json").write_text("{}")
    sweep = [run for run in scanned(root).runs.values() if "Sweep_DQN" in run.id]
    assert sorted(groups_of(sweep, "")) == ["jax", "tensorflow"]


def test_runs_are_grouped_by_settings_that_differ_first():
    varied = ["agent.algorithm.discount", "agent.a.learning_rate", "agent.b.learning_rate"]
    differing = ["agent.algorithm.__class__", *varied, "agent.other", "task.seed"]
    options = group_options(varied, differing, "")
    assert list(options)[:5] == ["Nothing", "discount", "a.learning_rate", "b.learning_rate", "Experiment"]
    assert list(options)[-2:] == ["agent.other", "task.seed"]
    assert options["discount"] == "agent.algorithm.discount" and "agent.algorithm.__class__" not in options
    assert group_options(varied, differing, "agent.gone")["agent.gone"] == "agent.gone"


def test_settings_that_differ_are_columns_at_once_and_empty_columns_are_hidden(root):
    store = scanned(root)
    run = next(iter(store.runs.values()))
    varied = ["agent.algorithm.discount", "agent.gone"]
    columns = shown_columns(USUAL_COLUMNS, varied)
    assert columns.index("parameter:agent.algorithm.discount") == columns.index("target") + 1
    rows = [{**row, "agent": ""} for row in rows_of({run.id: run}, "", {}, columns)]
    shown = shown_columns(USUAL_COLUMNS, varied, rows)
    assert "parameter:agent.algorithm.discount" in shown
    assert not {"agent", "parameter:agent.gone"} & set(shown)
    assert shown_columns(("agent",), varied, rows) == ("agent",)


def test_varied_settings_are_those_that_differ_within_a_preset(root):
    runs = [run.description for run in scanned(root).runs.values()]
    assert len({about.preset for about in runs}) > 1
    assert varied_parameters(runs) == []
    first = runs[0]
    other = replace(first, parameters={**first.parameters, "agent.algorithm.discount": 0.5, "task.note": 1, "seed": 9})
    assert varied_parameters([*runs, other]) == ["agent.algorithm.discount"]


def test_a_run_in_progress_is_newer_than_those_that_ended(root):
    older, newer = sorted(scanned(root).runs.values(), key=_age_of)[-2:]
    assert _age_of(replace(older, state=RUNNING)) > _age_of(replace(newer, state=FINISHED))
    assert _age_of(replace(older, state=RUNNING)) < _age_of(replace(newer, state=RUNNING))


def test_draws_runs_and_groups(root):
    store = scanned(root)
    view = View(runs=tuple(store.runs), left=("Training Reward",), right=("Loss/Mean",), smoothing="window")
    files = store.columns(view.runs)
    drawn = draw(view, store.runs, files, lambda key: 0)
    assert len(drawn.curves) == 2 * len(store.runs)
    assert {curve.dash for curve in drawn.curves if curve.right} == {1}
    assert all(curve.raw is not None for curve in drawn.curves)
    grouped = View(runs=view.runs, left=view.left, group="experiment", draw="confidence")
    curves = draw(grouped, store.runs, files, lambda key: 0).curves
    assert sorted(curve.label for curve in curves) == ["CartPole_A3C (1)", "CartPole_DQN (2)"]
    assert all(np.all(curve.low <= curve.y) for curve in curves)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (View(left=("Loss/Mean",)), "Select a run"),
        (View(runs=("CartPole_DQN/21_11_2026-10_30",)), "Choose a signal"),
        (View(runs=("CartPole_DQN/21_11_2026-10_30",), left=("Nothing",)), "has no values of “Nothing”"),
    ],
)
def test_says_why_there_is_nothing_to_draw(root, view, message):
    store = scanned(root)
    drawn = draw(view, store.runs, store.columns(view.runs), lambda key: 0)
    assert not drawn.curves and message in drawn.message


def test_parameters_are_compared_and_escaped(root):
    runs = list(scanned(root).runs.values())
    table = parameters_table(runs, {}, "light", "", only_differences=True)
    assert "extra" in table and "discount" not in table
    assert "No parameter contains this text" in parameters_table(runs, {}, "light", "zzz", False)
    assert "<script>" not in parameters_table(runs, {}, "light", "<script>", False)


def test_videos_are_served_from_the_runs_alone(root, tmp_path):
    store = scanned(root)
    runs = list(store.runs.values())
    assert "No videos" in media_of(runs, {}, {}, root)["message"]
    gif = write_gif(root / "CartPole_DQN" / "21_11_2026-10_30" / "run.csv", "CartPole_21_11_2026-10_40_00_000001")
    later = write_gif(gif.parent.parent / "run.csv", "CartPole_21_11_2026-10_55_00_000001")
    write_gif(gif.parent.parent / "run.csv", ".recording-7-9")
    (found,) = media_of(runs, store.columns(list(store.runs)), {}, root)["runs"]
    assert [item["url"] for item in found["items"]] == [url_of(one, root) for one in (gif, later)]
    assert [item["when"] for item in found["items"]] == ["21.11.2026 10:40:00", "21.11.2026 10:55:00"]
    assert found["items"][1]["step"] == store.runs[found["id"]].summary.steps
    assert is_media(gif, root)
    outside = write_gif(tmp_path / "run.csv", "outside")
    assert not is_media(outside, root)
    assert not is_media(root / "CartPole_DQN" / "secret.gif", root)
    assert not is_media(gif.with_suffix(".csv"), root)
    os.symlink(outside, gif.with_name("link.gif"))
    assert not is_media(gif.with_name("link.gif").resolve(), root)


def test_a_directory_without_runs_says_how_to_make_one(tmp_path):
    assert "coach -p CartPole_DQN" in no_experiments(tmp_path, True)
    assert "does not exist" in no_experiments(tmp_path / "<b>", False)
    assert "<b>" not in no_experiments(tmp_path / "<b>", False)


def test_a_run_shows_what_its_status_says_though_no_row_is_new(root):
    store = scanned(root)
    run_id = "CartPole_DQN/21_11_2026-10_30"
    RunStatus(root / run_id).set_by(ValueError("no such\nlevel"))
    assert store.scan()
    assert (store.runs[run_id].state, store.runs[run_id].error) == (FAILED, "ValueError: no such level")
    assert not store.scan()
    RunStatus(root / run_id).set(RUNNING)
    assert store.scan()
    assert (store.runs[run_id].state, store.runs[run_id].error) == (RUNNING, "")
    RunStatus(root / run_id).set(RUNNING)
    assert not store.scan()


def test_the_first_look_shows_the_newest_runs_before_it_is_through(root, monkeypatch):
    monkeypatch.setattr(store_module, "_SHOW_FOUND_EVERY_SECONDS", 0.0)
    for age, path in enumerate(sorted(root.rglob("*.csv"))):
        os.utime(path, (1e9 - age, 1e9 - age))
    shown = []
    store = Store(root)
    publish = store._publish
    monkeypatch.setattr(store, "_publish", lambda *of, **named: [publish(*of, **named), shown.append(list(store.runs))])
    store.scan()
    assert [len(runs) for runs in shown] == [1, 1, 2, 3, 3][: len(shown)] and len(shown) > 2
    assert shown[-1] == sorted(shown[-1], key=lambda run_id: -store.runs[run_id].modified)
    shown.clear()
    store.scan()
    assert shown == []


def test_nothing_is_read_while_a_page_is_made(root):
    store = Store(root)
    store.rest()
    store.start()
    assert not store.scanned.wait(0.1)
    store.go_on()
    assert store.scanned.wait(60)
    store.stop()


def test_a_store_that_is_stopped_reads_no_file_to_its_end(tmp_path, monkeypatch):
    path = write_run(tmp_path, "Long", "21_11_2026-10_30", rows=400)
    monkeypatch.setattr(signal_file, "_BLOCK_BYTES", 2000)
    store = Store(tmp_path)
    store.scan()
    blocks = []
    line_blocks = signal_file.line_blocks

    def stops_in_between(file):
        for block in line_blocks(file):
            blocks.append(block)
            if len(blocks) == 3:
                store.stop()
            yield block

    monkeypatch.setattr(signal_file, "line_blocks", stops_in_between)
    with pytest.raises(InterruptedError):
        store.columns(list(store.runs))
    assert len(blocks) == 3 and path.stat().st_size > 10 * 2000


def test_of_many_runs_only_what_is_drawn_is_read(tmp_path, monkeypatch):
    for seed in range(3):
        write_run(tmp_path, "Many", f"2{seed}_11_2026-10_30", rows=50)
    store = Store(tmp_path)
    store.scan()
    one = next(iter(store.runs))
    store.columns([one], ["Q/Mean"])
    monkeypatch.setattr(store_module, "LARGEST_COLUMNS_BYTES", 10_000)
    told = []
    files = store.columns(store.runs, ["Q/Mean"], lambda done, total, files: told.append((done, total, len(files))))
    assert told == [(1, 3, 1), (2, 3, 2), (3, 3, 3)]
    assert [file.rows for file in files.values()] == [50, 50, 50]
    read = {run_id: bool(np.isfinite(file.column("Loss/Mean")).any()) for run_id, file in files.items()}
    assert read == {run_id: run_id == one for run_id in files}
    again = store.columns(store.runs, ["Loss/Mean"])
    assert all(np.isfinite(file.column("Loss/Mean")).any() for file in again.values())


def test_parameters_are_ranked_by_how_many_runs_differ():
    values = [{"a": 1, "often": seed, "seldom": int(seed == 0), "task.seed": seed} for seed in range(4)]
    values[3]["only"] = 7
    found = [RunDescription(str(place), pathlib.Path("x.csv"), "x", parameters=of) for place, of in enumerate(values)]
    assert ranked_by_difference(found) == ["often", "seldom", "only", "task.seed"]


def test_the_load_of_the_system_is_drawn_over_the_steps_of_the_run(root):
    run_id = "CartPole_A3C/22_11_2026-09_00"
    before = scanned(root).runs[run_id]
    minutes = before.summary.minutes
    lines = ["Wall-Clock Time,Processor (%),Memory (MB),GPU (%),GPU memory (MB)"]
    lines += [f"{minutes * share:.6f},{40 + 10 * share},500.0,," for share in (0.0, 0.5, 2.0)]
    (root / run_id / "system.metrics").write_text("\n".join(lines) + "\n")
    store = scanned(root)
    run = store.runs[run_id]
    assert run.names == before.names and {"Processor (%)", "GPU (%)"} <= set(run.signals)
    view = View(runs=(run_id,), left=("Processor (%)",), x="steps")
    (curve,) = draw(view, store.runs, store.columns(view.runs, ["Processor (%)"]), lambda key: 0).curves
    assert curve.y.tolist() == [40, 45, 60]
    assert curve.x[0] == 0 < curve.x[1] < curve.x[2] == run.summary.steps
    reward = View(runs=(run_id,), left=("Training Reward",), x="steps")
    for columns in (store.columns(reward.runs, ["Training Reward"]), store.columns(reward.runs, ["Processor (%)"])):
        assert draw(reward, store.runs, columns, lambda key: 0).curves[0].y.size == 60


def test_the_output_of_runs_is_text(root):
    store = scanned(root)
    first, second, third = list(store.runs.values())[:3]
    directory = pathlib.Path(first.path).parent
    (directory / "console.log").write_text("\x1b[1mloading\x1b[0m <b>CartPole</b>\n")
    (directory / "git.diff").write_text("+# <script>alert(1)</script>\n-old\n")
    pathlib.Path(second.path).parent.with_suffix(".log").write_text("of a sweep\n" * 50_000)
    text = output([first, second, third])
    assert "loading &lt;b&gt;CartPole&lt;/b&gt;" in text and "\x1b" not in text
    assert '<span class="added">+# &lt;script&gt;' in text and '<span class="removed">-old' in text
    assert 100_000 < text.count("of a sweep") * 11 < 250_000 and "<p>No output.</p>" in text
    assert "Select a run" in output([])


def test_distributions_are_shown_for_each_run_that_has_them(root):
    runs = list(scanned(root).runs.values())
    assert (
        "--callback Histograms" in histograms_of(runs, {})["message"] and "Select" in histograms_of([], {})["message"]
    )
    histogram_file.append(pathlib.Path(runs[0].path).parent, 100, {"agent: <b>actions</b>": np.array([0, 1, 1])})
    (chart,) = histograms_of(runs[:1], {runs[0].id: "#123456"})["charts"]
    assert (chart["name"], chart["colour"], chart["rows"][0]["counts"]) == ("agent: <b>actions</b>", "#123456", [1, 2])
    (chart,) = histograms_of(runs, {})["charts"]
    assert chart["name"] == f"{labels_of(runs)[runs[0].id]} · agent: <b>actions</b>"


def test_a_status_that_is_none_of_a_run_is_no_run_and_names_are_one_line(root):
    for name, text in (("cut", "{broken"), ("list", "[1, 2]"), ("other", '{"state": "open"}')):
        (root / name).mkdir()
        (root / name / "status.json").write_text(text)
    write_run(root, "two\nlines", "22_11_2026-11_00", rows=10)
    store = scanned(root)
    assert {run.title for run in store.runs.values()} == {"CartPole_DQN", "CartPole_A3C", "two lines"}


def test_only_runs_of_one_experiment_are_told_apart(root):
    runs = list(scanned(root).runs.values())
    assert set(labels_of(runs).values()) == {"CartPole_DQN · seed 0", "CartPole_DQN · seed 1", "CartPole_A3C"}


def test_titles_of_columns():
    titles = titles_of(["last", "parameter:agent.q.rate", "parameter:agent.policy.rate", "parameter:agent.discount"])
    assert titles["last"] == "Last eval" and titles["name"] == "Run"
    parameters = {key: title for key, title in titles.items() if key.startswith("parameter:")}
    assert list(parameters.values()) == ["q.rate", "policy.rate", "discount"]
