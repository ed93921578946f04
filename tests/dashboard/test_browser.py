"""The page as a user meets it, in Chromium."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from urllib.parse import urlencode

import pytest

pytest.importorskip("panel")

from tests.dashboard.runs import signal_rows, write_episodes, write_gif, write_run

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")

playwright.expect.set_options(timeout=60_000)

PLOT = """() => {
  const [view] = window.Bokeh?.index?.query((view) => view.model.name === "signals") ?? [];
  if (!view?.el.offsetHeight || !view.has_finished()) return null;
  const model = view.model;
  const lines = model.renderers.filter((r) => r.glyph.type === "Line" && r.name && r.data_source.data.x.length);
  return {
    lines: Object.fromEntries(lines.map((r) => [r.name, {
      points: r.data_source.data.x.length, last: [...r.data_source.data.x].at(-1),
      y: [...r.data_source.data.y].slice(0, 40), smoothed: Number.isFinite([...r.data_source.data.raw][0]),
      band: Number.isFinite([...r.data_source.data.low][0]), right: r.y_range_name === "right",
    }])),
    x: [model.x_range.start, model.x_range.end], y: [model.y_range.start, model.y_range.end],
    label: model.below[0].axis_label,
  };
}"""
FRAME = """() => {
  const [view] = Bokeh.index.query((view) => view.model.name === "signals");
  const {left, top} = view.el.getBoundingClientRect(), frame = view.frame.bbox;
  return [left + frame.left, top + frame.top, frame.width, frame.height];
}"""
POINT = """(place) => {
  const [view] = Bokeh.index.query((view) => view.model.name === "signals");
  const line = view.model.renderers.find((r) => r.glyph.type === "Line" && r.name), {left, top} =
    view.el.getBoundingClientRect(), {x, y} = line.data_source.data;
  return {
    left: left + view.frame.x_scale.compute(x[place]), top: top + view.frame.y_scale.compute(y[place]),
    x: x[place], y: y[place], name: line.name,
  };
}"""
PLOT_HEIGHT = """() => {
  const [view] = Bokeh.index.query((view) => view.model.name === "signals");
  return view?.el.offsetHeight ?? 0;
}"""
SORTED = """() => {
  const find = (root) => [...root.querySelectorAll(".line .cell.best"), ...[...root.querySelectorAll("*")]
    .flatMap((e) => (e.shadowRoot ? find(e.shadowRoot) : []))];
  const best = find(document).map((cell) => cell.textContent).filter(Boolean).map(Number);
  return best.length > 5 && best.every((value, place) => !place || best[place - 1] <= value);
}"""
SHOWS = "(want) => { const plot = (%s)(); return plot && (%s)(plot, want) && plot; }"
DQN, PPO = "CartPole_DQN/20_11_2026-1", "CartPole_ClippedPPO/21_11_2026-1"


def plot_when(page, condition="(plot, want) => Object.keys(plot.lines).length === want", want=None, timeout=60_000):
    """What the plot shows, once it fits a condition."""
    return page.wait_for_function(SHOWS % (PLOT, condition), arg=want, timeout=timeout).json_value()


def frame_of(page):
    """Where the plot's frame is on the page, once it stays there: left, top, width, height in pixels."""
    frame, before = page.evaluate(FRAME), None
    while frame != before:
        page.wait_for_timeout(200)
        frame, before = page.evaluate(FRAME), frame
    return frame


def point_at(page, right=0.5, down=0.5):
    """Move the mouse into the plot, to these parts of its width and height."""
    left, top, width, height = frame_of(page)
    page.mouse.move(left + right * width, top + down * height)


def rows(page):
    return page.locator(".runs .line")


def wait_for_text(page, selector, text, timeout=60_000):
    page.locator(selector, has_text=re.compile(text)).first.wait_for(timeout=timeout)


def press(page, name):
    page.locator("aside").get_by_role("button", name=name, exact=True).click()


def choose_signal(page, place, name):
    field = page.locator("aside .picker .field").nth(place)
    field.fill(name)
    page.locator("aside .option", has_text=name).first.click()
    page.keyboard.press("Escape")


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """Three experiments of five seeds."""
    root = tmp_path_factory.mktemp("groups") / "experiments"
    rates = (1e-3, 1e-4, 3e-4)
    for place, (name, best) in enumerate((("CartPole_DQN", 200), ("CartPole_ClippedPPO", 185), ("CartPole_A3C", 120))):
        for seed in range(5):
            path = write_run(
                root,
                name,
                f"2{place}_11_2026-1{seed}_0{seed}",
                rows=150 + seed * 20,
                seed=seed + 10 * place,
                best=best,
                parameters={"network": {"learning_rate": rates[place]}},
                status={"state": ("finished", "finished", "failed", "finished", "finished")[seed]},
            )
            if place == 0 and seed == 4:
                write_episodes(path, range(1, 12))
                write_gif(path, "CartPole_20_11_2026-14_04_00_000001")
                write_gif(path, "CartPole_20_11_2026-14_04_30_000001")
    return root


@pytest.fixture(scope="module")
def dashboard(groups, browser, start_dashboard):
    return start_dashboard(groups)


@pytest.fixture
def open_page(browser):
    """Opens pages; fails if one asks anything of another host, or raises an error."""
    contexts, problems = [], []

    def open_at(address, width=1280, height=800, theme="light", x="episode", left="Training Reward", **view):
        view |= {name: value for name, value in (("x", x), ("left", left)) if value is not None}
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, accept_downloads=True
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        host = address.split("/")[2]
        page.on("request", lambda request: problems.append(request.url) if _is_foreign(request.url, host) else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address if "?" in address else address + (f"?{urlencode(view, doseq=True)}" if view else ""))
        page.locator(".said").wait_for(state="attached")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert not problems


def _is_foreign(url, host):
    return url.startswith(("http", "ws")) and url.split("/")[2] != host


def test_opens_on_the_newest_run(dashboard, open_page, screenshot):
    page = open_page(dashboard.address, x=None, left=None)
    shown = plot_when(page, want=1)
    assert list(shown["lines"]) == ["CartPole_A3C"] and shown["label"] == "Environment steps"
    wait_for_text(page, ".said", r"^15 runs · 1 selected$")
    first = rows(page).first
    assert "CartPole_A3C" in first.inner_text() and "CartPole-v1" in first.inner_text()
    assert "left=Evaluation+Reward" in page.url
    screenshot(page)


def test_filters_by_words_and_by_regular_expression(dashboard, open_page):
    page = open_page(dashboard.address)
    search = page.locator(".search")
    search.fill("dqn finished")
    wait_for_text(page, ".said", "^4 of 15 runs")
    assert rows(page).count() == 4
    page.locator(".toggle").click()
    search.fill("^cartpole_(dqn|a3c).*failed")
    wait_for_text(page, ".said", "^2 of 15 runs")
    search.fill("(")
    page.locator(".search.wrong").wait_for()
    search.fill("no such run")
    page.get_by_text("No run matches this filter.").wait_for()


def test_sorts(dashboard, open_page):
    page = open_page(dashboard.address)
    page.locator(".title.best").click()
    page.wait_for_url("**sort=-best**")
    page.locator(".title.best").click()
    page.wait_for_url("**sort=best**")
    playwright.expect(page.locator(".line .cell.best").first).not_to_be_empty()
    page.wait_for_function(SORTED)


def test_selects_several_runs_and_colours_stay(dashboard, open_page):
    page = open_page(dashboard.address, runs=[f"{DQN}0_00", f"{DQN}1_01", f"{DQN}2_02"], left="Training Reward")
    plot_when(page, want=3)
    page.locator(".title.start").click()
    third = page.locator(f'.line[data-id="{DQN}2_02"] .swatch')
    playwright.expect(third).to_have_css("background-color", "rgb(13, 82, 18)")
    page.locator(f'.line[data-id="{DQN}1_01"]').click()
    plot_when(page, want=2)
    playwright.expect(third).to_have_css("background-color", "rgb(13, 82, 18)")
    page.locator(".head input").click()
    plot_when(page, want=15)
    swatches = page.locator(".line.on .swatch")
    colours = swatches.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    assert len(colours) == len(set(colours)) > 5
    page.get_by_text("Clear selection").click()
    page.get_by_text("Select a run in the table above to plot it.").wait_for()


def test_groups_as_a_mean_in_a_band(dashboard, open_page, screenshot):
    page = open_page(dashboard.address, width=1920, height=1080)
    page.locator(".head input").click()
    plot_when(page, want=15)
    page.get_by_label("Group runs by").select_option(label="Experiment")
    wait_for_text(page, ".row.group", "CartPole_DQN.*5 runs")
    press(page, "Mean ± std")
    banded = "(plot, want) => Object.values(plot.lines).filter((line) => line.band).length === want"
    shown = plot_when(page, banded, 3)
    assert sorted(shown["lines"]) == ["CartPole_A3C (5)", "CartPole_ClippedPPO (5)", "CartPole_DQN (5)"]
    screenshot(page)
    page.get_by_label("Group runs by").select_option(label="agent.network.learning_rate")
    shown = plot_when(page, "(plot, want) => Object.keys(plot.lines).includes(want)", "0.001 (5)")
    assert len(shown["lines"]) == 3


def test_smooths_and_keeps_the_raw_line(dashboard, open_page):
    page = open_page(dashboard.address, runs=f"{DQN}0_00", left="Training Reward")
    raw = plot_when(page, want=1)["lines"]["CartPole_DQN"]
    for kind in ("Window", "Exponential"):
        press(page, kind)
        shown = plot_when(page, "(plot, want) => Object.values(plot.lines)[0]?.smoothed && plot.label === 'Episode'")
        smooth = shown["lines"]["CartPole_DQN"]
        assert _roughness(smooth["y"]) < _roughness(raw["y"]) / 2
    page.get_by_text("Also show the raw line").click()
    plot_when(page, "(plot) => Object.values(plot.lines)[0]?.smoothed === false")


def _roughness(values):
    return sum(abs(after - before) for before, after in itertools.pairwise(values))


def test_changes_the_x_axis_and_uses_a_second_y_axis(dashboard, open_page, screenshot):
    page = open_page(dashboard.address, runs=f"{DQN}0_00", left="Training Reward")
    plot_when(page, want=1)
    for name, label in (
        ("Steps", "Environment steps"),
        ("Iteration", "Training iteration"),
        ("Time", "Wall-clock time (minutes)"),
    ):
        press(page, name)
        plot_when(page, "(plot, want) => plot.label === want && Object.keys(plot.lines).length === 1", label)
    page.get_by_label("Or a signal").select_option(label="Episode Length")
    plot_when(page, "(plot, want) => plot.label === want && Object.keys(plot.lines).length === 1", "Episode Length")
    page.wait_for_url("**x=signal:Episode+Length**")
    press(page, "Time")
    plot_when(page, "(plot) => plot.label.startsWith('Wall-clock')")
    playwright.expect(page.get_by_label("Or a signal")).to_have_value("–")
    choose_signal(page, 1, "Loss/Mean")
    shown = plot_when(page, want=2)
    assert {name: line["right"] for name, line in shown["lines"].items()} == {
        "CartPole_DQN · Training Reward": False,
        "CartPole_DQN · Loss/Mean": True,
    }
    screenshot(page)
    page.get_by_text("Logarithmic y-axes").click()
    plot_when(page, "(plot) => Object.keys(plot.lines).length === 2 && plot.y[0] > 0")


def test_zooms_into_the_address_and_resets(dashboard, open_page):
    page = open_page(dashboard.address, runs=f"{DQN}0_00", left="Training Reward")
    everything = plot_when(page, want=1)
    point_at(page)
    page.mouse.wheel(0, -400)
    page.wait_for_url("**zoom=**")
    zoomed = plot_when(
        page, "(plot, want) => plot.x[1] - plot.x[0] < 0.9 * want", everything["x"][1] - everything["x"][0]
    )
    again = open_page(page.url)
    shown = plot_when(again, want=1)
    assert shown["x"] == pytest.approx(zoomed["x"], rel=1e-6) and shown["y"] == pytest.approx(zoomed["y"], rel=1e-6)
    page.get_by_title("Reset").first.click()
    plot_when(page, "(plot, want) => Math.abs(plot.x[1] - want) < 1e-6", everything["x"][1])
    page.wait_for_url(lambda url: "zoom=" not in url)


def test_pans(dashboard, open_page):
    page = open_page(dashboard.address, runs=f"{DQN}0_00", left="Training Reward")
    everything = plot_when(page, want=1)
    page.get_by_title("Pan").first.click()
    playwright.expect(page.get_by_title("Pan").first).to_have_class(re.compile("active"))
    left, top, across, height = frame_of(page)
    page.mouse.move(left + 0.25 * across, top + 0.5 * height)
    page.mouse.down()  # and no waiting: a button that is held without moving is a press, not a drag
    page.mouse.move(left + 0.75 * across, top + 0.5 * height, steps=5)
    page.mouse.up()
    page.wait_for_url("**zoom=**")
    width = everything["x"][1] - everything["x"][0]
    panned = plot_when(page, "(plot, want) => plot.x[0] < want", everything["x"][0] - 0.4 * width)
    assert panned["x"][1] - panned["x"][0] == pytest.approx(width) and panned["y"] == pytest.approx(everything["y"])


def test_says_what_is_under_the_mouse(dashboard, open_page):
    page = open_page(dashboard.address, runs=[f"{DQN}0_00", f"{DQN}1_01"], left="Training Reward")
    plot_when(page, want=2)
    frame_of(page)
    point = page.evaluate(POINT, 75)
    page.mouse.move(point["left"], point["top"])
    said = page.locator(".plot-tip")
    playwright.expect(said.locator("span")).to_have_text([point["name"], "seed 1"])
    playwright.expect(said.locator(".nearest b")).to_have_text(f"{point['y']:g}")
    playwright.expect(said.locator(".at")).to_have_text(f"Episode: {point['x']:g}")
    page.mouse.move(5, 5)
    playwright.expect(said).to_be_hidden()


def test_exports_what_is_shown(dashboard, open_page, tmp_path):
    page = open_page(dashboard.address, runs=[f"{DQN}0_00", f"{DQN}1_01"], left="Training Reward", smoothing="window")
    plot_when(page, want=2)
    files = {}
    for kind in ("PNG", "SVG", "CSV"):
        with page.expect_download() as download:
            page.get_by_text(kind, exact=True).click()
        assert download.value.suggested_filename == f"signals.{kind.lower()}"
        files[kind] = tmp_path / f"signals.{kind.lower()}"
        download.value.save_as(files[kind])
    assert files["PNG"].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(files["SVG"]).getroot().tag.endswith("svg")
    lines = files["CSV"].read_text().splitlines()
    assert lines[0] == "run,signal,Episode,value,raw,low,high,runs"
    assert len(lines) == 1 + 150 + 170
    assert lines[1].startswith(f"{DQN}0_00,Training Reward,1,")


def test_the_address_can_be_shared(dashboard, open_page):
    page = open_page(dashboard.address, theme="dark")
    page.locator(".search").fill("ppo")
    wait_for_text(page, ".said", "^5 of 15")
    page.locator(".head input").click()
    plot_when(page, want=6)
    press(page, "Exponential")
    press(page, "Iteration")
    page.wait_for_url("**x=iteration**")
    mine = plot_when(page, "(plot) => Object.values(plot.lines).every((line) => line.smoothed && line.last > 250)")
    other = open_page(page.url)
    same = "(plot, want) => JSON.stringify(plot) === JSON.stringify(want)"
    plot_when(other, same, mine)
    assert other.locator(".search").input_value() == "ppo"
    assert other.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_browser_goes_back_and_forward(dashboard, open_page):
    page = open_page(dashboard.address, runs=f"{DQN}0_00", left="Training Reward")
    plot_when(page, want=1)
    page.locator(f'.line[data-id="{DQN}1_01"]').click()
    plot_when(page, want=2)
    press(page, "Iteration")
    plot_when(page, "(plot) => plot.label === 'Training iteration'")
    page.get_by_text("Logarithmic y-axes").click()
    page.wait_for_url("**log_y=1**")
    page.go_back()
    page.wait_for_url(lambda url: "log_y" not in url and "x=iteration" in url)
    plot_when(page, "(plot) => plot.label === 'Training iteration'")
    page.go_back()
    plot_when(page, "(plot) => plot.label === 'Episode' && Object.keys(plot.lines).length === 2")
    page.go_back()
    plot_when(page, want=1)
    playwright.expect(page.locator(".line.on")).to_have_count(1)
    page.go_forward()
    plot_when(page, want=2)
    page.go_forward()
    plot_when(page, "(plot) => plot.label === 'Training iteration' && Object.keys(plot.lines).length === 2")


def test_themes(dashboard, open_page, screenshot):
    page = open_page(dashboard.address, width=1920, height=1080, theme="dark")
    plot_when(page, want=1)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    screenshot(page)
    page.get_by_label("Change to the light theme").click()
    page.wait_for_url("**theme=light**")
    page.wait_for_function(
        """() => {
          const [view] = Bokeh.index.query((view) => view.model.name === "signals");
          return view.model.background_fill_color === "#ffffff";
        }"""
    )


def test_shows_the_steps_of_an_episode(dashboard, open_page, screenshot):
    page = open_page(dashboard.address, runs=f"{DQN}4_04", tab="episodes")
    line = page.wait_for_function(
        """() => {
          const [view] = window.Bokeh?.index?.query((view) => view.model.name === "episode") ?? [];
          const line = view?.model.renderers.find((r) => r.name);
          return line && {name: line.name, points: line.data_source.data.x.length};
        }"""
    ).json_value()
    assert line == {"name": "Reward", "points": 60}
    page.get_by_text("‹", exact=True).click()
    page.wait_for_url("**episode=10**")
    screenshot(page)


def test_shows_videos(dashboard, open_page):
    page = open_page(dashboard.address, runs=f"{DQN}4_04", tab="videos")
    page.locator(".figures img").wait_for()
    page.wait_for_function(
        """() => {
          const find = (root) => root.querySelector(".figures img")
            ?? [...root.querySelectorAll("*")].map((e) => e.shadowRoot && find(e.shadowRoot)).find(Boolean);
          return find(document)?.naturalWidth > 0;
        }"""
    )
    told, slider = page.locator(".media .told"), page.get_by_label("Environment steps")
    newest = told.text_content()
    page.get_by_label("Earlier").click()
    playwright.expect(told).not_to_have_text(newest)
    playwright.expect(page.locator(".figures figcaption")).to_contain_text("20.11.2026 14:04:00")
    slider.press("End")
    playwright.expect(told).to_have_text(newest)
    playwright.expect(page.locator(".figures figcaption")).to_contain_text("20.11.2026 14:04:30")


def test_compares_parameters(dashboard, open_page, screenshot):
    page = open_page(dashboard.address, runs=[f"{DQN}4_04", f"{PPO}0_00"], tab="parameters")
    wait_for_text(page, ".parameters .differs", "learning_rate")
    wait_for_text(page, ".parameters tr", "discount")
    screenshot(page)
    page.get_by_text("Only what differs").click()
    page.locator(".parameters tr", has_text="discount").wait_for(state="detached")
    page.get_by_placeholder("Find a parameter").fill("seed")
    page.locator(".parameters tr", has_text="learning_rate").wait_for(state="detached")


def test_nothing_is_clipped_and_nothing_jumps(dashboard, open_page):
    """No header of the table and no button is cut off, and the plot stays where it is while runs are selected."""
    for width, theme in ((1280, "light"), (1920, "dark")):
        page = open_page(dashboard.address, width=width, height=1000, theme=theme)
        wait_for_text(page, ".said", "^15 runs")
        plot_when(page, want=1)
        clipped = page.evaluate(
            """() => {
              const found = [];
              const look = (root) => root.querySelectorAll("*").forEach((e) => {
                if (e.shadowRoot) look(e.shadowRoot);
                const words = e.matches("button, .title, .said, .cell, label, td") && e.textContent.trim();
                if (words && e.offsetParent && e.scrollWidth > e.clientWidth + 1) found.push(words);
              });
              look(document);
              return found;
            }"""
        )
        assert clipped == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        before = page.locator(".shown").bounding_box()
        page.locator(".head input").click()
        plot_when(page, want=15)
        assert page.locator(".shown").bounding_box() == before


def test_live_rows_arrive_and_zoom_and_selection_stay(browser, start_dashboard, open_page, tmp_path):
    root = tmp_path / "experiments"
    path = write_run(root, "CartPole_DQN", "21_11_2026-10_30", rows=50)
    page = open_page(start_dashboard(root).address)
    assert plot_when(page, want=1)["lines"]["CartPole_DQN"]["last"] == 50
    with open(path, "a") as file:
        file.write("\n".join(signal_rows(10, first=51)) + "\n61,")
    followed = plot_when(page, "(plot, want) => Object.values(plot.lines)[0]?.last === want", 60)
    assert followed["x"][1] > 60
    point_at(page)
    page.mouse.wheel(0, -400)
    page.wait_for_url("**zoom=**")
    zoomed = plot_when(page, "(plot, want) => plot.x[1] < want", followed["x"][1])
    with open(path, "a") as file:
        file.write("15,1,0,1,61\n" + "\n".join(signal_rows(10, first=62)) + "\n")
    write_run(root, "CartPole_A3C", "22_11_2026-10_30", rows=5)
    shown = plot_when(page, "(plot, want) => Object.values(plot.lines)[0]?.last === want", 71)
    assert shown["x"] == zoomed["x"] and shown["y"] == zoomed["y"]
    wait_for_text(page, ".said", "^2 runs · 1 selected$")
    page.locator(".live").click()
    page.wait_for_url("**live=0**")
    with open(path, "a") as file:
        file.write("\n".join(signal_rows(10, first=72)) + "\n")
    another = open_page(page.url.replace("live=0", "live=1"))
    plot_when(another, "(plot, want) => Object.values(plot.lines)[0]?.last === want", 81)
    assert plot_when(page, want=1)["lines"]["CartPole_DQN"]["last"] == 71
    page.locator(".live").click()
    plot_when(page, "(plot, want) => Object.values(plot.lines)[0]?.last === want", 81)


def train(directory, name, *settings):
    command = [sys.executable, "-m", "rl_coach.coach", "-p", "CartPole_DQN", "-e", name, "--seed", "1", "-cp"]
    return subprocess.Popen([*command, "; ".join(settings)], cwd=directory, stdout=subprocess.DEVNULL)


def wait_for_state(page, name, state):
    cell = page.locator(".line", has_text=name).locator(".cell.state")
    playwright.expect(cell).to_have_text(state)
    return cell


def test_follows_a_real_training(browser, start_dashboard, open_page, tmp_path, screenshot):
    """From an empty directory to runs of Coach's own that appear, grow, fail and are stopped, with nothing touched."""
    root = tmp_path / "experiments"
    root.mkdir()
    page = open_page(start_dashboard(root).address)
    page.get_by_text("No experiments yet").wait_for()
    often = "visualization_parameters.dump_signals_to_csv_every_x_episodes=1"
    training = train(tmp_path, "watched", "improve_steps=EnvironmentSteps(1000000)", often)
    try:
        wait_for_text(page, ".said", "^1 run · 1 selected$")
        seen = plot_when(page, want=1)["lines"]["watched"]["last"]
        plot_when(page, "(plot, want) => Object.values(plot.lines)[0]?.last > want + 5", seen)
        screenshot(page)
        assert "CartPole_DQN" in rows(page).first.inner_text()
        wait_for_state(page, "watched", "running")
        too_fast = "agent_params.network_wrappers['main'].learning_rate=1e18"
        assert train(tmp_path, "broken", "heatup_steps=EnvironmentSteps(100)", too_fast).wait() == 1
        failed = wait_for_state(page, "broken", "failed")
        playwright.expect(failed).to_have_attribute("title", re.compile("network 'main' became nan"))
    finally:
        training.terminate()
        training.wait(60)
    wait_for_state(page, "watched", "stopped")
    page.get_by_role("button", name="Output", exact=True).click()
    wait_for_text(page, ".output pre", "building the graph on")
    press(page, "Time")
    page.get_by_role("button", name="Plot", exact=True).click()
    choose_signal(page, 1, "Memory (MB)")
    plot_when(page, "(plot) => Object.keys(plot.lines).some((name) => name.endsWith('Memory (MB)'))")


def test_no_experiments_says_how_to_make_one(browser, start_dashboard, open_page, tmp_path, screenshot):
    root = tmp_path / "none yet"
    root.mkdir()
    page = open_page(start_dashboard(root).address)
    page.get_by_text("No experiments yet").wait_for()
    page.get_by_text("coach -p CartPole_DQN").wait_for()
    screenshot(page)
    write_run(root, "CartPole_DQN", "21_11_2026-10_30", rows=30)
    plot_when(page, want=1)
    page.get_by_text("No experiments yet").wait_for(state="hidden")
    shutil.rmtree(root)
    page.get_by_text("No experiments yet").wait_for()


def test_bad_files(browser, start_dashboard, open_page, tmp_path, screenshot):
    root = tmp_path / "experiments"
    good = write_run(root, "Good", "21_11_2026-10_30", rows=40)
    bad = {
        "empty": "",
        "header_only": "Episode #,Training Reward\n",
        "half_a_header": "Episode #,Train",
        "truncated": good.read_text()[:3000],
        "other_columns": "step,score\n1,2\n2,nan\n3,4\n",
        "words": "Episode #,Training Reward\n1,good\n2,\n3,NaN\n",
        "binary": "\0\1\2\n\0\0,\n",
    }
    for name, text in bad.items():
        (root / name).mkdir()
        (root / name / "run.csv").write_text(text)
    write_run(root / "copy", "Good", "21_11_2026-10_30", rows=20)
    dashboard = start_dashboard(root)
    page = open_page(dashboard.address, left="Training Reward")
    wait_for_text(page, ".said", "^9 runs")
    page.locator(".head input").click()
    wait_for_text(page, ".said", "9 selected")
    shown = plot_when(page, want=3)
    assert {"Good", "truncated"} <= {name.split(" · ")[0] for name in shown["lines"]}
    screenshot(page)
    page = open_page(dashboard.address, runs="words", left="Training Reward")
    page.get_by_text("This run has no values of “Training Reward” yet.").wait_for()
    assert page.evaluate(PLOT_HEIGHT) == 0
    page = open_page(dashboard.address, runs="other_columns", left="score")
    assert plot_when(page, want=1)["lines"]["other_columns"]["points"] == 2
    page = open_page(dashboard.address, runs="other_columns", left="score", x="steps")
    page.get_by_text("has no column for “Environment steps”").wait_for()


def test_paths_outside_are_refused(dashboard, open_page):
    page = open_page(dashboard.address, runs=["../../../etc/passwd", f"{DQN}0_00"], left="Training Reward")
    plot_when(page, want=1)
    page.get_by_text("Not in this directory: ../../../etc/passwd").wait_for()
