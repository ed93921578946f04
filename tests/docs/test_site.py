"""``make docs``: the site builds without a warning, its reference is complete, and its search finds pages."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = "https://git.example.org/coach"

SEARCHED = {
    "normalise": "filters",
    "normalize": "filters",
    "frame stack": "filters",
    "vectorized": "several_environments",
    "reproducibility": "reproducibility",
    "seed": "reproducibility",
    "Colab": "supported_systems",
    "macOS": "supported_systems",
    "Windows": "supported_systems",
    "GPU": "supported_systems",
    "mixed precision": "supported_systems",
    "C++": "deployment",
    "export": "deployment",
    "ONNX": "deployment",
    "curriculum": "adding_an_environment",
    "custom environment": "adding_an_environment",
    "action mask": "adding_an_environment",
    "custom network": "networks",
    "LSTM": "networks",
    "hyperparameters": "hyperparameters",
    "batch size": "hyperparameters",
    "learning rate": "hyperparameters",
    "install": "start",
    "callback": "callbacks",
    "early stopping": "callbacks",
    "resume": "checkpoints",
    "replay buffer": "memories",
    "offline": "batch_rl",
    "Minari": "data_sets",
    "multi-agent": "several_agents",
    "self-play": "several_agents",
    "tensorboard": "tracking",
    "Optuna": "sweeps",
    "SAC": "algorithms/soft_actor_critic",
    "fp16": "supported_systems",
    "minibatch": "hyperparameters",
    "invalid actions": "adding_an_environment",
    "save a model": "checkpoints",
    "fetch": "deployment",
    "port": "from_stable_baselines3",
    "pack": "reproducibility",
    "doctor": "troubleshooting",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The directory of the built site."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: pip install '.[docs]'")
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    addresses = {"COACH_REPOSITORY": REPOSITORY, "COACH_EDIT_URI": "edit/main/docs/"}
    environment = os.environ | addresses | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.fixture
def address(site):
    """The address of a server of the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def read(site: pathlib.Path, page: str) -> str:
    return (site / page / "index.html").read_text(encoding="utf-8")


def test_pages_have_what_they_promise(site):
    for page, name in {
        "coach": "CoachInterface",
        "memories": "ExperienceReplayParameters",
        "filters": "ObservationStackingFilter",
        "exploration": "EGreedyParameters",
        "policy": "Policy",
    }.items():
        assert name in read(site, f"reference/{page}"), page
    for page in ("tutorials/compare_settings", "from_stable_baselines3", "troubleshooting"):
        assert (site / page / "index.html").exists(), page
    memories = read(site, "reference/memories")
    parts = [memories.index(f'<h2 id="{part}">') for part in ("to-call", "to-override", "internal")]
    assert parts == sorted(parts)
    assert "images/curves/tuned-CartPole_PPO.svg" in read(site, "benchmarks")
    assert (site / "images" / "curves" / "tuned-CartPole_PPO.svg").exists()


def test_a_page_leads_to_its_neighbours_and_to_its_source(site):
    page = read(site, "sweeps")
    assert f'href="{REPOSITORY}/edit/main/docs/sweeps.md"' in page
    assert f'href="{REPOSITORY}"' in page
    assert 'rel="edit"' in page and "Previous: " in page and "Next: " in page
    assert 'src="../images/logo.svg"' in page


def test_the_reference_has_the_parameters_of_every_agent_before_the_agent(site):
    inventory = (site / "objects.inv").read_bytes()
    listed = zlib.decompress(inventory.split(b"\n", 4)[4]).decode()
    places = dict(re.findall(r"^(\S+) py:class \S+ (\S+) ", listed, re.M))
    for file in (ROOT / "rl_coach" / "agents").glob("*_agent.py"):
        for name in re.findall(r"^class ([A-Z]\w*Parameters)\b", file.read_text(encoding="utf-8"), re.M):
            assert f"rl_coach.agents.{file.stem}.{name}" in places, name
    for page in ("values", "distributions", "policies", "continuous", "data", "others"):
        order = re.findall(r'<h4 id="rl_coach\.agents\.(\w+)\.(\w+)"', read(site, f"reference/agents/{page}"))
        for module in dict.fromkeys(module for module, _ in order):
            are_parameters = [name.endswith("Parameters") for of, name in order if of == module]
            assert are_parameters == sorted(are_parameters, reverse=True), module


def test_the_search_finds_the_page_of_a_subject_first(address, browser):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    query = page.locator("[data-md-component=search-query]")
    results = page.locator(".md-search-result__item > a")
    query.click()
    wrong = {}
    for words, wanted in SEARCHED.items():
        for text, state in {"": "detached", words: "attached"}.items():
            query.fill(text)
            query.dispatch_event("keyup")
            results.first.wait_for(state=state, timeout=60_000)
        found = urllib.parse.urlparse(results.first.get_attribute("href")).path.strip("/")
        if found != wanted:
            wrong[words] = found
    page.close()
    assert wrong == {}


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*"):
        if page.suffix in (".md", ".ipynb"):
            assert f"- {page.relative_to(ROOT / 'docs').as_posix()}\n" in navigation, page
