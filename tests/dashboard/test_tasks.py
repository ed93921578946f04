"""What a user does with runs on the page, in Chromium: by mouse, by keyboard, on a narrow screen."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import time

import pandas as pd
import pytest

pytest.importorskip("panel")

from rl_coach.runs.annotations import ANNOTATIONS_FILE
from tests.dashboard.runs import write_coach_1_run, write_episodes, write_run
from tests.dashboard.test_browser import open_page, playwright, plot_when, press, rows, wait_for_text  # noqa: F401

FOCUSED = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  if (!at || at === document.body) return "";
  return [at.getAttribute("aria-label"), at.title, at.labels?.[0]?.textContent, at.textContent.trim()].join(" ");
}"""
OFF_SCREEN = """() => {
  const found = [];
  const look = (root) => root.querySelectorAll("*").forEach((e) => {
    if (e.shadowRoot) look(e.shadowRoot);
    if (!e.matches("button, input, select, .tabs, .said, canvas") || !e.checkVisibility()) return;
    const box = e.getBoundingClientRect(), scrolls = e.closest(".scroller, .grid");
    const isOff = box.left < -0.5 || box.right > innerWidth + 0.5;
    if (box.width && !scrolls && isOff) found.push(e.textContent || e.placeholder);
  });
  look(document);
  return found;
}"""

pytestmark = pytest.mark.slow  # a browser for each; make soak runs them


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "experiments"
    for seed in range(4):
        path = write_run(
            directory,
            "CartPole_DQN",
            f"21_11_2026-1{seed}_00",
            rows=60,
            seed=seed,
            best=100.0 + 30 * seed,
            parameters={"network": {"learning_rate": 10.0 ** -(seed + 1)}},
            command_line=["coach", "-p", ("cartpole_dqn", "CartPole_DQN")[seed % 2], "-cp", f"a.b={seed}"],
            status={"state": "finished"},
        )
    write_episodes(path, range(1, 3))
    return directory


RUN = "CartPole_DQN/21_11_2026-1{}_00"


def pick(page, *seeds):
    for seed in seeds:
        page.locator(f'.line[data-id="{RUN.format(seed)}"]').click()


def tab(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_tab_reaches_everything_and_is_never_trapped(root, start_dashboard, open_page):  # noqa: F811
    page = open_page(start_dashboard(root).address)
    plot_when(page, want=1)
    reached = []
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    for wanted in (
        *("Live", "Copy link", "theme", "Remove Training Reward", "Signals", "Signals on the right axis", "Episode"),
        *("Exponential", "Group runs by", "IQM, 95%", "Logarithmic x-axis", "Filter runs", "Regular expression"),
        *(
            "Edit",
            "Columns",
            "Export",
            "Best eval",
            "Select CartPole_DQN",
            "Height of the table",
            "Charts",
            "PNG",
            "CSV",
        ),
    ):
        assert any(wanted in name for name in reached), wanted
    assert sum("Remove Training Reward" in name for name in reached) >= 2, "Tab does not come round"


def test_the_keyboard_alone_picks_signals_and_runs_and_moves_the_split(root, start_dashboard, open_page):  # noqa: F811
    page = open_page(start_dashboard(root).address)
    plot_when(page, want=1)
    field = page.locator("aside .picker .field").first
    field.focus()
    page.keyboard.type("q/mean")
    page.keyboard.press("Enter")
    plot_when(page, want=2)
    page.keyboard.press("Backspace")
    plot_when(page, want=1)
    page.keyboard.press("Tab")
    assert not page.locator("aside .list").first.is_visible()
    page.locator('.line input[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    plot_when(page, want=3)
    before = page.locator(".shown").bounding_box()["height"]
    page.locator(".split").focus()
    page.keyboard.press("ArrowUp")
    assert page.locator(".shown").bounding_box()["height"] > before + 10


def test_signals_are_offered_by_use(root, start_dashboard, open_page):  # noqa: F811
    page = open_page(start_dashboard(root).address, x=None, left=None)
    plot_when(page, want=1)
    field, options = (page.locator(f"aside .picker {part}").first for part in (".field", ".option"))
    field.click()
    playwright.expect(options).to_have_text("Training Reward")
    field.fill("q/mean")
    page.keyboard.press("Enter")
    plot_when(page, want=2)
    page.keyboard.press("Backspace")
    playwright.expect(options).to_have_text("Q/Mean")
    plot_when(page, want=1)
    page.reload()
    plot_when(page, want=1)
    field.click()
    playwright.expect(options).to_have_text("Q/Mean")


def test_the_split_is_dragged_and_stays(root, start_dashboard, open_page):  # noqa: F811
    page = open_page(start_dashboard(root).address)
    plot_when(page, want=1)
    split = page.locator(".split").bounding_box()
    page.mouse.move(split["x"] + 300, split["y"] + 2)
    page.mouse.down()
    page.mouse.move(split["x"] + 300, 500, steps=4)
    page.mouse.up()
    assert abs(page.locator(".split").bounding_box()["y"] - 500) < 6
    page.reload()
    plot_when(page, want=1)
    assert abs(page.locator(".split").bounding_box()["y"] - 500) < 6


@pytest.mark.parametrize("width", [900, 620])
def test_nothing_is_off_screen_on_a_narrow_page(root, start_dashboard, open_page, screenshot, width):  # noqa: F811
    page = open_page(start_dashboard(root).address, width=width, height=800)
    plot_when(page, want=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("Charts", "Compare", "Plot"):
        tab(page, name)
        page.wait_for_timeout(200)
        assert page.evaluate(OFF_SCREEN) == []
        screenshot(page, f"{width}-{name}")
    page.get_by_role("button", name="Settings").click()
    press(page, "Steps")
    plot_when(page, "(plot) => plot.label === 'Environment steps'")
    assert page.evaluate(OFF_SCREEN) == []
    page.keyboard.press("Escape")
    assert not page.locator("aside").is_visible()


SLOW_DISK = """
import os, sys, time
from rl_coach.dashboard import app, store

read = store.Store._column_file

def read_when_let(self, *given, **named):
    while os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    return read(self, *given, **named)

store.Store._column_file = read_when_let
sys.exit(app.main(sys.argv[2:]))
"""


def test_a_plot_that_is_being_computed_says_so_and_shows_no_old_lines(root, start_dashboard, open_page, tmp_path):  # noqa: F811
    """Reading takes as long as the file ``held`` is there."""
    held = tmp_path / "held"
    address = start_dashboard(root, program=("-c", SLOW_DISK, str(held))).address
    page = open_page(address)
    plot_when(page, want=1)
    held.touch()
    press(page, "Iteration")
    veil = page.locator(".veil")
    playwright.expect(veil).to_have_text(re.compile("Computing|Reading"))
    assert veil.evaluate("e => e.offsetHeight === e.parentElement.offsetHeight && getComputedStyle(e).opacity") == "1"
    press(page, "Steps")
    held.unlink()
    plot_when(page, "(plot) => plot.label === 'Environment steps'")
    playwright.expect(veil).to_be_hidden()


UNCOVERED = """() => {
  const veil = document.querySelector(".veil");
  const drawn = () => {
    const [view] = Bokeh.index.query((view) => view.model.name === "signals");
    return view.model.renderers.filter((r) => r.name && r.data_source.data.x.length).map((r) => [
      r.name, [...r.data_source.data.x].at(-1),
    ]);
  };
  window.uncovered = [];
  new MutationObserver(() => { if (veil.hidden) window.uncovered.push(drawn()); }).observe(veil, {attributes: true});
}"""


def test_a_plot_is_uncovered_with_its_new_lines_not_before(root, start_dashboard, open_page, tmp_path):  # noqa: F811
    held = tmp_path / "held"
    page = open_page(start_dashboard(root, program=("-c", SLOW_DISK, str(held))).address)
    plot_when(page, want=1)
    page.evaluate(UNCOVERED)
    held.touch()
    press(page, "Steps")
    playwright.expect(page.locator(".veil")).to_be_visible()
    held.unlink()
    playwright.expect(page.locator(".veil")).to_be_hidden()
    lines = plot_when(page, "(plot) => plot.label === 'Environment steps'")["lines"]
    assert page.evaluate("window.uncovered") == [[[name, line["last"]] for name, line in lines.items()]]


def test_columns_are_chosen_and_kept_in_the_address(root, start_dashboard, open_page, screenshot):  # noqa: F811
    page = open_page(start_dashboard(root).address, width=1400, height=900)
    wait_for_text(page, ".said", "^4 runs")
    presets = page.locator(".line .cell.preset").all_text_contents()
    assert presets == ["CartPole_DQN"] * 4
    page.get_by_role("button", name="Columns").click()
    dialog = page.locator("dialog")
    for name in ("Framework", "-cp"):
        dialog.locator("label.choice", has=page.get_by_text(name, exact=True)).first.click()
    dialog.get_by_placeholder("Find a column").fill("agent preset")
    dialog.get_by_placeholder("Find a column").fill("steps/s")
    dialog.locator("label.choice").first.click()
    screenshot(page)
    dialog.get_by_role("button", name="Done").click()
    page.wait_for_url("**columns=parameter%3Aagent.network.learning_rate**".replace("%3A", ":"))
    first = rows(page).first
    playwright.expect(first).to_contain_text("tensorflow")
    playwright.expect(first).to_contain_text("a.b=3")
    playwright.expect(first).to_contain_text("0.0001")  # the setting that differs has been a column from the start
    assert page.locator(".title", has_text="Steps/s").count() == 0
    again = open_page(page.url)
    playwright.expect(rows(again).first).to_contain_text("a.b=3")
    again.locator(".title", has_text="learning_rate").click()
    again.wait_for_url("**sort=**")
    playwright.expect(rows(again).first).to_contain_text("0.1")


def test_the_table_is_exported_as_it_is_shown(root, start_dashboard, open_page, tmp_path):  # noqa: F811
    columns = ["seed", "best", "parameter:agent.network.learning_rate"]
    page = open_page(
        start_dashboard(root).address, columns=columns, filter="dqn", sort="parameter:agent.network.learning_rate"
    )
    wait_for_text(page, ".said", "^4 ")
    page.wait_for_function("document.querySelector('.said') || true")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "runs.csv")
    table = list(csv.DictReader((tmp_path / "runs.csv").open()))
    assert [row["agent.network.learning_rate"] for row in table] == ["0.0001", "0.001", "0.01", "0.1"]
    assert table[0]["id"] == RUN.format(3) and "Best eval" in table[0]


def test_runs_are_named_tagged_archived_and_found_again(root, start_dashboard, open_page, screenshot):  # noqa: F811
    page = open_page(start_dashboard(root).address, runs=RUN.format(3))
    plot_when(page, want=1)
    page.get_by_role("button", name="Edit").click()
    dialog = page.locator("dialog")
    dialog.get_by_label("Name").fill("the <b>good</b> one")
    dialog.get_by_label("Tags").fill("paper, seed study")
    dialog.get_by_label("Note").fill("as in figure 3")
    screenshot(page)
    dialog.get_by_role("button", name="Save").click()
    line = page.locator(f'.line[data-id="{RUN.format(3)}"]')
    playwright.expect(line).to_contain_text("the <b>good</b> one")
    playwright.expect(line.locator(".badge.tag").first).to_have_text("paper")
    kept = json.loads((root / RUN.format(3) / ANNOTATIONS_FILE).read_text())
    assert next(iter(kept.values()))["note"] == "as in figure 3"
    page.locator(".search").fill("paper")
    wait_for_text(page, ".said", "^1 of 4")
    page.get_by_role("button", name="Edit").click()
    page.locator("dialog").get_by_role("button", name="Archive").click()
    wait_for_text(page, ".said", "^0 of 4")
    page.get_by_text("1 archived").click()
    wait_for_text(page, ".said", "^1 of 4")
    page.wait_for_url("**archived=1**")
    again = open_page(page.url)
    wait_for_text(again, ".line .badge", "archived")


def test_a_run_is_deleted_to_the_trash_and_taken_back(root, start_dashboard, open_page):  # noqa: F811
    page = open_page(start_dashboard(root).address, runs=[RUN.format(0), RUN.format(1)])
    plot_when(page, want=2)
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="Delete …").click()
    page.get_by_text("Delete these 2 runs?").wait_for()
    page.locator("dialog").get_by_role("button", name="Cancel").click()
    assert (root / RUN.format(0)).is_dir()
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="Delete …").click()
    page.locator("dialog").get_by_role("button", name="Delete", exact=True).click()
    wait_for_text(page, ".said", "^2 runs")
    assert not (root / RUN.format(0)).exists() and len(list((root / ".trash").rglob("*.csv"))) == 2
    page.get_by_role("button", name="Undo").click()
    wait_for_text(page, ".said", "^4 runs")
    assert (root / RUN.format(1)).is_dir()


def test_a_running_run_and_one_that_others_may_see_are_not_deleted(root, start_dashboard, open_page):  # noqa: F811
    now = time.strftime("%d_%m_%Y-%H_%M")  # a CSV that is much newer than its run is a copy, which does not run
    write_run(root, "Busy", now, rows=10)
    page = open_page(start_dashboard(root).address, runs=f"Busy/{now}")
    page.locator(".line .cell.state", has_text="running").wait_for()
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("button", name="Delete …").click()
    page.locator("dialog").get_by_role("button", name="Delete", exact=True).click()
    wait_for_text(page, ".toast", "is running: stop it before you delete it")
    page = open_page(start_dashboard(root, "--no-edit").address, runs=RUN.format(0))
    plot_when(page, want=1)
    assert not page.locator(".action.edit").is_visible()


def test_the_wall_shows_every_signal_and_finds_pins_and_opens_them(root, start_dashboard, open_page, screenshot):  # noqa: F811
    page = open_page(start_dashboard(root).address, x=None, left=None, tab="charts", width=1400, height=900)
    charts = page.locator(".chart")
    page.locator('.chart[data-name="Evaluation Reward"][data-lines="1"]').wait_for()
    assert [charts.nth(place).get_attribute("data-name") for place in range(4)] == [
        *("Evaluation Reward", "Training Reward", "Success Rate", "Episode Length"),
    ]
    pick(page, 0, 1)
    page.locator('.chart[data-name="Training Reward"][data-lines="3"]').wait_for()
    page.locator(".find").fill("loss mean")
    assert charts.count() == 1
    page.get_by_label("Pin Loss/Mean").click()
    page.wait_for_url("**pins=Evaluation+Reward&pins=Loss/Mean**")
    page.locator(".find").fill("")
    playwright.expect(charts.nth(1)).to_have_attribute("data-name", "Loss/Mean")
    screenshot(page)
    names = page.locator(".wall .legend span")
    playwright.expect(names).to_have_text(["learning_rate=0.0001", "learning_rate=0.1", "learning_rate=0.01"])
    press(page, "IQM, 95%")
    page.locator('.chart[data-name="Loss/Mean"][data-lines="3"]').wait_for()
    rates = ("0.0001", "0.1", "0.01")
    playwright.expect(names).to_have_text([f"learning_rate={rate} (1)" for rate in rates])
    page.get_by_title("Show Loss/Mean large").click()
    page.wait_for_url("**left=Loss/Mean**")
    plot_when(page, "(plot) => Object.values(plot.lines)[0]?.band && plot.label === 'Environment steps'")


def test_a_parameter_is_compared_with_a_result(root, start_dashboard, open_page, screenshot):  # noqa: F811
    page = open_page(start_dashboard(root).address, tab="compare", width=1400, height=900)
    playwright.expect(page.locator(".scatter circle")).to_have_count(4)
    page.get_by_label("Parameter", exact=True).select_option("agent.network.learning_rate")
    page.wait_for_url("**across=agent.network.learning_rate**")
    page.get_by_label("Result", exact=True).select_option("Environment steps")
    page.wait_for_url("**result=Environment+steps**")
    page.locator(".scatter .title", has_text="network.learning_rate (logarithmic)").wait_for()
    lefts = page.locator(".scatter circle").evaluate_all(
        "(dots) => dots.map((dot) => [dot.dataset.run, +dot.getAttribute('cx')])"
    )
    ordered = [run for run, _ in sorted(lefts, key=lambda item: item[1])]
    assert ordered == [RUN.format(seed) for seed in (3, 2, 1, 0)]
    page.locator(".scatter circle").first.hover()
    page.locator(".compare .tip", has_text="learning_rate").wait_for()
    assert page.locator(".parallel path.run").count() == 4
    before = page.locator(".parallel .axis").count()
    page.locator("summary", has_text="Axes").click()
    page.locator(".axes label", has_text="agent.algorithm.discount").click()
    playwright.expect(page.locator(".parallel .axis")).to_have_count(before + 1)
    screenshot(page)
    pick(page, 0, 1)
    playwright.expect(page.locator(".scatter circle")).to_have_count(3)


def test_the_interquartile_mean_has_a_band(tmp_path, start_dashboard, open_page):  # noqa: F811
    """Of runs that differ in nothing but the seed."""
    starts = [f"21_11_2026-1{seed}_00" for seed in range(4)]
    for seed, start in enumerate(starts):
        write_run(tmp_path, "CartPole_DQN", start, rows=60, seed=seed, best=100.0 + 30 * seed)
    page = open_page(start_dashboard(tmp_path).address, runs=[f"CartPole_DQN/{start}" for start in starts])
    plot_when(page, want=4)
    press(page, "IQM, 95%")
    shown = plot_when(page, "(plot) => Object.values(plot.lines)[0]?.band")
    assert list(shown["lines"]) == ["All runs (4)"]
    page.wait_for_url("**draw=iqm**")


def test_evaluations_and_runs_of_coach_1_are_told_apart(root, start_dashboard, open_page, screenshot):  # noqa: F811
    write_run(root, "Later", "25_11_2026-10_00", rows=5, task={"evaluate_only": 1000}, status={"state": "finished"})
    write_coach_1_run(root, "breakout", "03_05_2019-14_20")
    page = open_page(start_dashboard(root).address, x=None, left=None)
    plot_when(page, want=1)
    assert page.locator(".line.on").get_attribute("data-id") == RUN.format(3)
    playwright.expect(page.locator(".line", has_text="Later").locator(".badge")).to_have_text("evaluation")
    old = page.locator(".line", has_text="breakout")
    for text in ("ClippedPPO", "BreakoutDeterministic-v4", "finished"):
        playwright.expect(old).to_contain_text(text)
    screenshot(page)


def test_workers_of_a_run_are_shown_inside_its_row_and_drawn_as_one_line(root, start_dashboard, open_page, screenshot):  # noqa: F811
    run = "CartPole_A3C", "25_11_2026-10_00"
    workers = [write_run(root, *run, rows=30, seed=worker, worker=worker) for worker in range(2)]
    total = sum(float(pd.read_csv(path)["Total steps"].iloc[-1]) for path in workers)
    page = open_page(start_dashboard(root).address, x="steps")
    (line,) = plot_when(page, want=1)["lines"].values()
    assert line["points"] == 60 and line["last"] == total
    wait_for_text(page, ".said", "^5 runs")
    run = page.locator(".line", has_text="CartPole_A3C")
    playwright.expect(run).to_contain_text("2 workers")
    run.get_by_title("Show each worker").click()
    playwright.expect(page.locator(".line.part")).to_have_text([re.compile("^worker 0"), re.compile("^worker 1")])
    screenshot(page)
    wait_for_text(page, ".said", "1 selected")
    run.locator("input").focus()
    page.keyboard.press("ArrowLeft")
    playwright.expect(page.locator(".line.part")).to_have_count(0)
    press(page, "Mean, 95%")
    plot_when(page, "(plot, want) => plot.lines[want]", "All runs (1)")


LINES = """(lines) => lines.map((line) => [line.dataset.run, line.getAttribute("d"), getComputedStyle(line).stroke])"""


def test_no_run_is_left_out_of_parallel_coordinates(root, start_dashboard, open_page, screenshot):  # noqa: F811
    rate = "agent.network.learning_rate"
    for hour in range(3):
        write_run(root, "CartPole_A3C", f"22_11_2026-1{hour}_00", rows=60, seed=9, best=55.0)
    write_run(root, "CartPole_A3C", "22_11_2026-15_00", rows=5)  # never evaluated
    page = open_page(
        start_dashboard(root).address, tab="compare", width=1400, height=900, result="Last evaluation reward"
    )
    lines = page.locator(".parallel path.run")
    playwright.expect(lines).to_have_count(8)
    drawn = {run: (path, colour) for run, path, colour in lines.evaluate_all(LINES)}
    axes = page.locator(".parallel .axis").count()
    assert all(path.count("L") == axes - 1 and "undefined" not in path for path, _ in drawn.values())
    titles = page.locator(".parallel .title title").all_text_contents()
    assert titles == ["agent.__class__", rate, "seed", "Last evaluation reward"]
    assert page.locator(".parallel .mark", has_text="not set").count() == titles.count(rate)
    assert page.locator(".parallel .mark", has_text="none").count() == 1
    marks = page.locator(".parallel .mark").all_text_contents()
    assert {"0.001", "60", "80"} <= set(marks) and not [mark for mark in marks if len(mark) > 12]
    same = {drawn[f"CartPole_A3C/22_11_2026-1{hour}_00"][1] for hour in range(3)}
    assert len(same) == 1 and len({colour for _, colour in drawn.values()}) == 6
    assert page.locator(".scatter circle").count() == 8
    screenshot(page)
    scale = page.get_by_label("Scale of the result")
    scale.focus()
    scale.select_option("logarithmic")
    page.wait_for_url("**result_scale=log**")
    playwright.expect(page.locator(".scatter .title").last).to_have_text("Last evaluation reward (logarithmic)")
    playwright.expect(scale).to_be_focused()


@pytest.fixture
def sweep(tmp_path):
    """A sweep of three learning rates and two discounts with two seeds each; the learning rate decides the reward."""
    directory = tmp_path / "sweep"
    for number, (rate, discount, seed) in enumerate(itertools.product((1e-4, 1e-3, 1e-2), (0.9, 0.99), (0, 1))):
        write_run(
            directory,
            "CartPole_DQN",
            f"21_11_2026-1{number // 10}_0{number % 10}",
            rows=60,
            seed=seed,
            best={1e-4: 60.0, 1e-3: 200.0, 1e-2: 120.0}[rate],
            parameters={"network": {"learning_rate": rate}, "algorithm": {"discount": discount}},
            status={"state": "finished"},
        )
    return directory


def test_the_settings_of_a_sweep_are_columns_and_the_first_groups(sweep, start_dashboard, open_page, screenshot):  # noqa: F811
    page = open_page(start_dashboard(sweep).address, x=None, left=None, width=1400, height=900)
    wait_for_text(page, ".said", "^12 runs")
    titles = page.locator(".head .title").all_text_contents()
    assert {"learning_rate", "discount"} <= set(titles) and "Duration" in titles
    offered = page.get_by_label("Group runs by").locator("option").all_text_contents()
    assert offered[:4] == ["Nothing", "learning_rate", "discount", "Experiment"]
    page.get_by_label("Group runs by").select_option("learning_rate")
    press(page, "IQM, 95%")
    page.get_by_title("Select every run shown").click()
    shown = plot_when(page, want=3)
    assert set(shown["lines"]) == {"0.0001 (4)", "0.001 (4)", "0.01 (4)"}
    screenshot(page)


def test_columns_of_settings_with_the_same_last_name_are_told_apart(tmp_path, start_dashboard, open_page):  # noqa: F811
    for place, rate in enumerate((0.1, 0.01)):
        networks = {"policy": {"learning_rate": rate}, "q": {"learning_rate": rate}, "discount": rate}
        write_run(tmp_path, "Pendulum_SAC", f"21_11_2026-10_0{place}", parameters=networks)
    page = open_page(start_dashboard(tmp_path).address, width=1400)
    wait_for_text(page, ".said", "^2 runs")
    titles = page.locator(".head .title").all_text_contents()
    assert {"policy.learning_rate", "q.learning_rate", "discount"} <= set(titles)


def test_numbers_of_steps_are_read_in_the_table_and_long_names_leave_it_room(tmp_path, start_dashboard, open_page):  # noqa: F811
    copying = "num_steps_between_copying_online_weights_to_target"
    for number in (400, 1500):
        settings = {copying: f"EnvironmentSteps({number})", "schedule": f"TrainingSteps({number})"}
        write_run(tmp_path, "CartPole_DQN", f"21_11_2026-10_{number % 60}", rows=3, parameters={"algorithm": settings})
    page = open_page(start_dashboard(tmp_path).address, x=None, left=None, width=1400, height=900)
    wait_for_text(page, ".said", "^2 runs")
    shown = page.locator(".runs .line .cell").all_text_contents()
    assert {"400 steps", "1500 steps", "400 updates", "1500 updates"} <= set(shown)
    title = page.locator(".head .title", has_text=copying)
    assert title.bounding_box()["width"] <= 180 and copying in title.get_attribute("title")


def test_an_empty_column_is_hidden_until_it_has_values(sweep, start_dashboard, open_page):  # noqa: F811
    for path in sweep.rglob("*.csv"):
        lines = path.read_text().splitlines()
        path.write_text("\n".join(lines[:6]) + "\n")  # the first evaluation is after ten episodes
    page = open_page(start_dashboard(sweep).address, x=None, left=None, width=1400, height=900)
    wait_for_text(page, ".said", "^12 runs")
    titles = page.locator(".head .title")
    playwright.expect(titles.filter(has_text="eval")).to_have_count(0)
    path.write_text("\n".join(lines) + "\n")
    playwright.expect(titles.filter(has_text="eval")).to_have_text(["Last eval", "Best eval"])


def test_a_run_that_only_evaluated_is_compared_if_it_is_selected(sweep, start_dashboard, open_page):  # noqa: F811
    write_run(sweep, "evaluation", "22_11_2026-10_00", rows=3, best=200.0, task={"evaluate_only": 100})
    page = open_page(start_dashboard(sweep).address, tab="compare", width=1400, height=900)
    wait_for_text(page, ".said", "^13 runs")
    playwright.expect(page.locator(".which")).to_have_text(re.compile("^12 runs in the colours"))
    page.get_by_title("Select every run shown").click()
    playwright.expect(page.locator(".which")).to_have_text("13 selected runs")


def test_the_importance_of_settings_ranks_the_axes(sweep, start_dashboard, open_page, screenshot):  # noqa: F811
    pytest.importorskip("sklearn")
    page = open_page(start_dashboard(sweep).address, tab="compare", width=1400, height=900)
    weights = page.locator(".weight")
    playwright.expect(weights).to_have_count(2)
    assert "learning_rate" in weights.first.text_content() and "discount" in weights.last.text_content()
    assert int(weights.first.locator("b").text_content().rstrip("%")) > 80
    playwright.expect(page.locator(".importance p")).to_contain_text("shows no causes")
    titles = page.locator(".parallel .title title")
    playwright.expect(titles.first).to_have_text("agent.network.learning_rate")
    page.locator(".scatter .title", has_text="network.learning_rate").wait_for()
    screenshot(page)
    weights.last.click()
    page.wait_for_url("**across=agent.algorithm.discount**")
    page.get_by_label("Result", exact=True).select_option("Minutes")
    playwright.expect(page.locator(".importance h3")).to_have_text("Importance for minutes")


def test_a_report_on_the_runs_is_saved(sweep, start_dashboard, open_page, tmp_path):  # noqa: F811
    page = open_page(start_dashboard(sweep).address, tab="compare", group="agent.network.learning_rate")
    playwright.expect(page.locator(".scatter circle")).to_have_count(12)
    with page.expect_download() as download:
        page.get_by_text("Report", exact=True).click()
    download.value.save_as(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<h2>Scores in CartPole-v1</h2>" in text and "<svg" in text
    table = pd.read_html(io.StringIO(text))[0]
    assert table.iloc[:, 0].tolist() == [0.001, 0.01, 0.0001] and table["runs"].tolist() == [4, 4, 4]


def test_views_are_saved_for_all_opened_and_removed(root, start_dashboard, open_page, screenshot):  # noqa: F811
    dashboard = start_dashboard(root)
    page = open_page(dashboard.address, runs=[RUN.format(0), RUN.format(1)], log_y="1")
    plot_when(page, want=2)
    page.get_by_text("Views", exact=True).click()
    page.get_by_label("Name of the view").fill("two <i>runs</i>")
    page.keyboard.press("Enter")
    page.get_by_title("Open two <i>runs</i>").wait_for()
    screenshot(page)
    page.keyboard.press("Escape")
    playwright.expect(page.get_by_label("Name of the view")).to_be_hidden()
    other = open_page(dashboard.address, runs=RUN.format(3))
    plot_when(other, want=1)
    other.get_by_text("Views", exact=True).click()
    other.get_by_title("Open two <i>runs</i>").click()
    plot_when(other, want=2)
    other.wait_for_url("**log_y=1**")
    other.go_back()
    plot_when(other, want=1)
    page.get_by_text("Views", exact=True).click()
    page.get_by_label("Remove two <i>runs</i>").click()
    page.get_by_text("No saved views yet.").wait_for()
    only_read = open_page(start_dashboard(root, "--no-edit").address, runs=RUN.format(0))
    only_read.get_by_text("Views", exact=True).click()
    only_read.get_by_text("No saved views yet.").wait_for()
    assert not only_read.get_by_label("Name of the view").is_visible()


def test_a_long_view_has_a_short_link_that_lasts(sweep, start_dashboard, open_page):  # noqa: F811
    runs = [path.parent.relative_to(sweep).as_posix() for path in sorted(sweep.rglob("*.csv"))]
    dashboard = start_dashboard(sweep)
    page = open_page(dashboard.address, runs=runs, log_y="1")
    plot_when(page, want=12)
    page.wait_for_url("**/?view=*")
    query = page.url.partition("?")[2]
    assert len(query) < 30
    press(page, "Iteration")
    # the long address comes first, and the short one replaces it
    page.wait_for_url(lambda url: "?view=" in url and query not in url)
    page.go_back()
    page.wait_for_url(f"**/?{query}")
    plot_when(page, want=12)
    dashboard.stop()
    again = open_page(f"{start_dashboard(sweep).address}?{query}")
    plot_when(again, want=12)
    elsewhere = open_page(f"{start_dashboard(sweep, '--no-edit').address}?view=unknown")
    wait_for_text(elsewhere, ".warning", "The view of this link is unknown")
