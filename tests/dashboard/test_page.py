"""What a page does with what its browser says, without a browser."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("panel")

from rl_coach.base_parameters import VisualizationParameters
from rl_coach.dashboard.page import Page
from rl_coach.dashboard.store import Store
from rl_coach.dashboard.view import from_query
from tests.dashboard.runs import write_run


@pytest.fixture
def store(tmp_path):
    for seed in range(2):
        write_run(tmp_path / "experiments", "CartPole_DQN", f"21_11_2026-10_3{seed}", rows=20, seed=seed)
    store = Store(tmp_path / "experiments")
    store.scan()
    return store


RUN = "CartPole_DQN/21_11_2026-10_3"


def test_what_changes_together_is_kept_together(store):
    page = Page(store, "")
    page.table.param.update(filter="a.c", regex=True, sort="name")
    assert (page.view.filter, page.view.regex, page.view.sort) == ("a.c", True, "name")
    assert (page.table.filter, page.table.regex, page.table.sort) == ("a.c", True, "name")


def test_an_address_that_is_visited_is_shown_whole(store):
    page = Page(store, f"?runs={RUN}0&left=Training+Reward&theme=dark")
    page.look()
    start = page.bar.query
    page.change(x="time", log_y=True)
    page.change(zoom=(1.0, 2.0, 3.0, 4.0))
    zoomed = page.bar.query
    page.change(runs=(f"{RUN}0", f"{RUN}1"))
    page.bar.query = start
    assert page.view == from_query(start) and page.view.x == "steps"
    assert page.x.value == "steps" and page.table.selected == [f"{RUN}0"]
    page.bar.query = zoomed
    assert page.view.zoom == (1.0, 2.0, 3.0, 4.0) and page.view.log_y
    assert page.bar.query == zoomed


def test_a_zoom_ends_with_the_axis_that_it_was_made_on(store):
    page = Page(store, f"?runs={RUN}0&zoom=1,2,3,4")
    page.change(x="time")
    assert page.view.zoom == ()


def test_the_table_gets_every_row_when_it_asks_and_then_only_what_changed(store):
    page = Page(store, "")
    page.look()
    assert page.table.sent == ""
    page.table.asked = 1
    sent = json.loads(page.table.sent)
    assert sent["whole"] and {row["id"] for row in sent["rows"]} == {f"{RUN}0", f"{RUN}1"}
    rows = [{"id": "a", "steps": 1}, {"id": f"{RUN}0", "steps": 2}]
    page.table.show_rows(rows)
    assert json.loads(page.table.sent)["gone"] == [f"{RUN}1"]
    page.table.show_rows([{"id": "a", "steps": 1}, {"id": f"{RUN}0", "steps": 3}])
    sent = json.loads(page.table.sent)
    assert (sent["rows"], sent["gone"], sent["whole"]) == ([{"id": f"{RUN}0", "steps": 3}], [], False)


def test_seeds_that_were_started_together_open_as_one_mean(tmp_path):
    for seed in range(3):
        write_run(tmp_path, "CartPole_DQN", f"21_11_2026-10_30/seed_{seed}", rows=20, seed=seed)
    write_run(tmp_path, "CartPole_DQN", "20_11_2026-10_30", rows=20)
    (tmp_path / "CartPole_DQN" / "21_11_2026-10_30" / "runs.json").write_text("{}")
    store = Store(tmp_path)
    store.scan()
    page = Page(store, "")
    page.look()
    assert sorted(page.view.runs) == [f"CartPole_DQN/21_11_2026-10_30/seed_{seed}" for seed in range(3)]
    assert (page.view.group, page.view.draw, page.view.left) == ("experiment", "iqm", ("Evaluation Reward",))
    asked = Page(store, "?draw=runs")
    asked.look()
    assert len(asked.view.runs) == 1 and asked.view.group == ""


def test_a_run_without_steps_of_episodes_says_which_setting_writes_them(store):
    page = Page(store, f"?runs={RUN}0&tab=episodes")
    page.look()
    assert "visualization_parameters.dump_in_episode_signals=True" in page.episodes.message.object
    assert VisualizationParameters().dump_in_episode_signals is False
