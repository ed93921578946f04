"""What strangers put into links, files and headers, met by a real browser and a real server."""

from __future__ import annotations

import http.client
import subprocess
import sys
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

pytest.importorskip("panel")

from rl_coach.dashboard import store as store_module
from rl_coach.dashboard.protection import host_of, known_hosts, origins
from rl_coach.dashboard.store import Store
from rl_coach.runs.signal_file import SignalFile
from tests.dashboard.runs import write_run
from tests.dashboard.test_browser import open_page, plot_when, wait_for_text  # noqa: F401

INJECTION = "<img src=x onerror=\"window.injected='%s'\">"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Experiments whose every name is HTML, and two damaged ones."""
    root = tmp_path_factory.mktemp("hostile") / "experiments"
    evil = INJECTION.replace("'", "").replace("/", "")
    path = write_run(root, (evil % 1)[:80], "21_11_2026-10_30", rows=30, parameters={evil % 2: evil % 3, "x": 1})
    text = path.read_text().replace("Q/Mean", '"' + (INJECTION % "column").replace('"', '""') + '"')
    path.write_text(text)
    write_run(root, "Good", "20_11_2026-10_30", rows=40, parameters={"x": 2})
    return root


@pytest.fixture(scope="module")
def dashboard(hostile, browser, start_dashboard):
    return start_dashboard(hostile)


FIELDS = ("left", "right", "runs", "filter", "group", "columns", "pins", "across", "axes", "steps")


@pytest.mark.parametrize("tab", ["plot", "charts", "compare"])
def test_a_link_runs_no_script(dashboard, open_page, tab):  # noqa: F811
    link = "&".join(f"{field}={quote(INJECTION % field)}" for field in FIELDS)
    page = open_page(f"{dashboard.address}?{link}&tab={tab}")
    wait_for_text(page, ".said", "2 runs")
    page.wait_for_timeout(300)
    assert page.evaluate("window.injected") is None
    assert page.locator('img[src="x"]').count() == 0


def test_names_in_files_are_text(dashboard, open_page):  # noqa: F811
    page = open_page(dashboard.address, left=INJECTION % "column", x="steps")
    plot_when(page, want=1)
    page.locator(".picker .chip", has_text="<img src=x").wait_for()
    page.locator("aside .picker .field").first.click()
    page.locator("aside .option").first.wait_for()
    page.keyboard.press("Escape")
    for tab in ("Charts", "Compare", "Parameters"):
        page.get_by_role("button", name=tab, exact=True).click()
        page.wait_for_url(f"**tab={tab.lower()}**")
    page.get_by_text("Columns", exact=True).click()
    page.locator("dialog .choice").first.wait_for()
    assert page.evaluate("window.injected") is None
    assert page.locator('img[src="x"]').count() == 0


def test_the_page_runs_no_script_but_its_own(dashboard, open_page):  # noqa: F811
    page = open_page(dashboard.address)
    plot_when(page, want=1)
    ran = page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.injected = 1";
          document.body.append(script);
          document.body.insertAdjacentHTML("beforeend", '<img src="x" onerror="window.injected = 2">');
          return new Promise((done) => setTimeout(() => done(window.injected ?? null), 300));
        }"""
    )
    assert ran is None


def ask(address, path="/", **headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection.getresponse()


def test_every_page_has_a_policy_with_a_number_of_its_own(dashboard):
    policies = {ask(dashboard.address).getheader("Content-Security-Policy") for _ in range(2)}
    assert len(policies) == 2
    for policy in policies:
        assert "default-src 'none'" in policy and "unsafe-eval" not in policy
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/bokeh.min.js", "/media/x/gifs/y.gif"])
def test_another_name_is_refused(dashboard, path):
    port = urlsplit(dashboard.address).port
    for host in (f"evil.example:{port}", "evil.example", f"localhost.evil.example:{port}", "", "[::1"):
        answer = ask(dashboard.address, path, Host=host)
        assert answer.status == 403 and b"--allow-host" in answer.read()
    for host in (f"localhost:{port}", "127.0.0.1:8000", "LOCALHOST", "[::1]:80"):
        assert ask(dashboard.address, "/static/js/bokeh.min.js", Host=host).status == 200


NAMES = ("%00", "a%00b", "..%2f..%2fetc%2fpasswd", "%2e%2e", "a" * 3000, "%ff", "%C3%28", "os/path/join", "a..b/B/_esm")
PLACES = (
    "/",
    "/media/",
    "/static/",
    "/static/js/",
    "/static/extensions/panel/",
    "/components/",
    "/autoload.js/",
    "/ws/",
)
QUERIES = (
    "runs=%00",
    "zoom=nan",
    "colours=-1,x",
    f"episode={'9' * 4000}",
    "window=",
    "theme=%ff",
    "bokeh-session-id=x",
)


@pytest.mark.parametrize("place", PLACES)
def test_addresses_that_fit_nothing_are_answered_in_one_line(dashboard, place):
    for name in NAMES:
        answer = ask(dashboard.address, place + name)
        assert answer.status in (400, 403, 404) and answer.read().count(b"\n") <= 1, name


def test_no_query_is_a_failure_of_the_server(dashboard):
    for path in ("/", "/autoload.js", "/ws", "/metadata"):
        for query in QUERIES:
            assert ask(dashboard.address, f"{path}?{query}").status < 500, (path, query)


def test_names_that_are_allowed():
    assert known_hosts("127.0.0.1") == {"localhost", "127.0.0.1", "::1"}
    assert {"box.example", "10.0.0.5"} <= known_hosts("10.0.0.5", ["Box.Example"])
    assert "0.0.0.0" not in known_hosts("0.0.0.0") and len(known_hosts("0.0.0.0")) > 3
    assert origins({"::1", "a"}) == ["[::1]:*", "a:*"]
    assert [host_of(header) for header in ("A:1", "[::1]:2", "", "[bad")] == ["a", "::1", "", ""]


def test_a_damaged_csv_stops_nothing_and_is_told_of_beside_its_run(browser, start_dashboard, open_page, tmp_path):  # noqa: F811
    root = tmp_path / "experiments"
    for name in ("Good", "Bytes", "Long"):
        write_run(root, name, "21_11_2026-10_30", rows=40, status={"state": "finished"})
    for name, damage in (("Bytes", b"41,\xff\xfe,1,2,3\n" * 3), ("Long", b"41," + b"x" * (5 << 20) + b"\n")):
        with open(next((root / name).rglob("*.csv")), "ab") as file:
            file.write(damage)
    page = open_page(start_dashboard(root).address)
    wait_for_text(page, ".line .badge.wrong", "3 damaged lines left out")
    wait_for_text(page, ".line .badge.wrong", "1 damaged line left out")
    page.locator(".head input").click()
    shown = plot_when(page, want=3)
    assert {line["points"] for line in shown["lines"].values()} == {40}
    with open(next((root / "Good").rglob("*.csv")), "ab") as file:
        file.write(b"41," + b"1," * 19 + b"1\n")
    plot_when(page, "(plot) => Object.values(plot.lines).some((line) => line.last === 41)")


def test_twenty_thousand_columns_do_not_hold_the_page(browser, start_dashboard, open_page, tmp_path):  # noqa: F811
    path = write_run(tmp_path / "experiments", "Wide", "21_11_2026-10_30", rows=1)
    names = ["Episode #", "Total steps", *(f"Signal {place}" for place in range(20_000))]
    rows = "".join(f"{row},{row * 10}," + ",".join(["0.5"] * 20_000) + "\n" for row in range(1, 9))
    path.write_text(",".join(names) + "\n" + rows)
    page = open_page(start_dashboard(tmp_path / "experiments").address, left="Signal 19999", x="steps")
    assert plot_when(page, want=1)["lines"]["Wide"]["points"] == 8
    page.locator("aside .picker .field").first.fill("19998")
    page.locator("aside .option", has_text="Signal 19998").wait_for()
    assert page.locator("aside .option").count() == 1
    page.keyboard.press("Enter")
    plot_when(page, want=2)
    page.get_by_role("button", name="Charts", exact=True).click()
    page.locator('.chart[data-lines="1"]').first.wait_for()
    assert page.locator(".chart").count() <= 500


def scanned(root, **settings):
    store = Store(root, **settings)
    store.scan()
    while store.read_some():
        pass
    return store


def test_a_file_that_cannot_be_read_at_all_is_one_run_in_trouble(tmp_path, monkeypatch, caplog):
    for name in ("Good", "Bad"):
        write_run(tmp_path, name, "21_11_2026-10_30", rows=20, status={"state": "finished"})
    describe = store_module.describe

    def fails(path, root, run_id):
        if "Bad" in str(path):
            raise RuntimeError("no such luck")
        return describe(path, root, run_id)

    monkeypatch.setattr(store_module, "describe", fails)
    store = scanned(tmp_path)
    assert {run.title: run.remark for run in store.runs.values() if run.remark} == {
        "Bad/21_11_2026-10_30": "cannot be read: RuntimeError: no such luck"
    }
    assert len(store.runs) == 2 and "no such luck" in caplog.text


def test_a_look_that_fails_is_said_and_the_next_one_goes_on(tmp_path, monkeypatch, caplog):
    write_run(tmp_path, "Good", "21_11_2026-10_30", rows=20)
    monkeypatch.setattr(store_module, "_LONGEST_PAUSE_SECONDS", 0.01)
    store = Store(tmp_path)
    find, calls = store._find, []

    def fails_once():
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a strange disk")
        assert len(calls) > 2 or "a strange disk" in store.trouble
        return find()

    monkeypatch.setattr(store, "_find", fails_once)
    store.start()
    assert store.scanned.wait(30)
    store.stop()
    assert len(store.runs) == 1 and "a strange disk" in caplog.text


def test_of_a_large_file_only_what_is_drawn_is_read(tmp_path, monkeypatch):
    write_run(tmp_path, "Large", "21_11_2026-10_30", rows=3000, seed=1)
    whole = scanned(tmp_path)
    monkeypatch.setattr(store_module, "LARGEST_WHOLE_BYTES", 1000)
    monkeypatch.setattr(store_module, "MOST_ROWS", 500)
    store = scanned(tmp_path)
    run_id = next(iter(store.runs))
    assert store.runs[run_id].summary == whole.runs[run_id].summary
    assert "only some of them are drawn" in store.runs[run_id].remark
    file = store.columns([run_id], ["Loss/Mean"])[run_id]
    assert np.isnan(file.column("Q/Mean")).all() and file.rows <= 1500
    again = store.columns([run_id], ["Q/Mean"])[run_id]
    every = SignalFile(store.runs[run_id].path)
    every.refresh()
    assert again.column("Q/Mean").min() == every.column("Q/Mean").min()
    assert file.column("Loss/Mean").max() == every.column("Loss/Mean").max()


MEASURE = """
import resource, sys
from rl_coach.dashboard.store import Store
from rl_coach.runs.signal_file import SignalFile
store = Store(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store.scan()
while store.read_some():
    pass
run_id = next(iter(store.runs))
file = store.columns([run_id], ["B"])[run_id]
run = store.runs[run_id]
assert run.summary.complete and run.is_condensed and file.column("B").max() == 7.0
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_memory_is_bounded_however_long_the_file(tmp_path):
    """160 MB of text, four times as many rows as a plot is drawn from."""
    path = tmp_path / "long.csv"
    block = "".join(f"{row},0.25,3.5,1.0\n" for row in range(10_000_000, 10_100_000)).encode()
    with open(path, "wb") as file:
        file.write(b"Episode #,A,B,C\n")
        for _ in range(80):
            file.write(block)
        file.write(b"20000000,1,7,1\n")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, timeout=300, check=True
    )
    assert int(done.stdout) < 240
