"""The distribution: what it is called, what it brings, and what works where parts of it are not installed."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata

import pytest

from rl_coach import installation
from rl_coach.coach import BAD_INPUT, DONE, CoachInterface, dashboard, main
from rl_coach.policy.export import export
from tests.environments.test_starcraft2_environment import WITH_PYSC2
from tests.frameworks import where_installed
from tests.zoo.presets import RECORDER
from tests.zoo.project import extras

ROOT = pathlib.Path(__file__).resolve().parents[1]
SETTINGS = "heatup_steps=EnvironmentSteps(60); improve_steps=EnvironmentSteps(60)"
PAGES = ("*.md", "docs/**/*.md", "docs/**/*.ipynb", "rl_coach/**/*.py", "dashboard/*.py")
_NOT_PASSED_ON = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS")
ACT = """\
import sys
import numpy as np
from rl_coach.policy import Policy
print("action", Policy.load(sys.argv[1]).act(np.array([0.01, -0.02, 0.03, 0.0])))
"""
STEP_ROBOSUITE = """\
import numpy as np
from rl_coach.environments.robosuite_environment import RobosuiteEnvironmentParameters
from tests.zoo.environments import environment_of
environment = environment_of(RobosuiteEnvironmentParameters("Lift", robot="Panda"))
print(environment.step(environment.get_random_action()).reward)
"""
BLOCK = """\
import sys
from importlib.machinery import PathFinder

blocked = sys.argv.pop(1).split(",")
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] in blocked else find(name, *rest)
"""


def run(*command: str | os.PathLike, cwd: pathlib.Path, **more: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON} | more
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=1200, check=False)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """The exported policy of a short run."""
    directory = tmp_path_factory.mktemp("trained")
    coach = CoachInterface(
        preset="CartPole_DQN", experiment_path=str(directory), no_summary=True, custom_parameter=SETTINGS
    )
    return export(coach.run().task_parameters.experiment_path, directory / "policy")


# names


def test_the_name_is_not_the_predecessors():
    assert installation.DISTRIBUTION == "coach-rl"
    name = re.search(r'^name = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert name is not None and name[1] == installation.DISTRIBUTION


def test_no_text_installs_the_predecessor():
    for page in [page for glob in PAGES for page in ROOT.glob(glob)]:
        for line in page.read_text(encoding="utf-8").splitlines():
            if not re.search(r"Not `pip install rl_coach`|pip uninstall|pip install rl_coach` brings", line):
                assert not re.search(r"pip install (--\S+ )*'?rl[_-]coach", line), (page, line)


def test_no_text_installs_from_the_index_what_is_not_published_there():
    for page in [page for glob in (*PAGES, "Makefile", "docker/*") for page in ROOT.glob(glob) if page.is_file()]:
        text = page.read_text(encoding="utf-8")
        assert not re.search(rf"(?<!un)install[^\n`]*[ '\"]{installation.DISTRIBUTION}\b", text), page


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        (("tensorflow", "jax", "torch"), "tensorflow"), (("jax", "torch"), "jax"), (("torch",), "torch"),
        (("mxnet",), "mxnet"), ((), "tensorflow"),
    ],
)  # fmt: skip
def test_the_default_framework_is_the_first_that_is_installed(monkeypatch, installed, chosen):
    monkeypatch.setattr(installation, "is_installed", lambda package: package in installed)
    assert installation.default_framework() == chosen


@where_installed("jax")
def test_without_tensorflow_a_run_is_on_jax_says_so_and_keeps_it(tmp_path):
    program = BLOCK + "from rl_coach.coach import main\nsys.exit(main())"

    def coach(blocked: str, *flags: str) -> str:
        done = run(sys.executable, "-c", program, blocked, *flags, cwd=tmp_path, PYTHONPATH=str(ROOT))
        assert done.returncode == DONE, done.stderr
        return done.stdout

    assert "framework: JAX, because TensorFlow is not installed" in coach(
        "tensorflow,tf2onnx", "-p", "CartPole_PG", "-cp", SETTINGS, "-s", "600", "-e", "run"
    )
    (directory,) = tmp_path.glob("experiments/run/*")
    assert "framework:" not in coach("nothing", "--resume", str(directory), "-cp", SETTINGS.replace("60", "90"))
    assert json.loads((directory / "experiment.json").read_text())["arguments"]["framework"] == "jax"


def test_without_any_framework_one_line_names_the_extras(tmp_path):
    program = BLOCK + "from rl_coach.coach import main\nsys.exit(main())"
    blocked = "tensorflow,tf2onnx,jax,torch,mxnet"
    done = run(
        sys.executable,
        "-c",
        program,
        blocked,
        "-p",
        "CartPole_PG",
        "-lvl",
        "CartPole-v1",
        cwd=tmp_path,
        PYTHONPATH=str(ROOT),
    )
    assert done.returncode == BAD_INPUT and done.stderr.count("\n") == 1
    assert "no framework is installed: install the extra tensorflow, jax or torch" in done.stderr


def test_a_run_beside_the_predecessor_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recorder.py").write_text(RECORDER)
    assert main(["-p", "recorder.py"]) == DONE
    assert "Intel" not in capsys.readouterr().out
    intels = tmp_path / "rl_coach-1.0.1.dist-info"
    intels.mkdir()
    (intels / "METADATA").write_text("Metadata-Version: 2.1\nName: rl-coach\nVersion: 1.0.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["-p", "recorder.py"]) == DONE
    said = [line for line in capsys.readouterr().out.splitlines() if "Intel" in line]
    assert len(said) == 1 and "rl-coach 1.0.1" in said[0] and "pip uninstall rl-coach" in said[0]


def test_an_extra_is_installed_by_the_packages_it_brings(monkeypatch):
    requirements = [
        "numpy>=1.26",
        'jax>=0.4.36; extra == "jax"',
        'mxnet==1.9.1; extra == "mxnet"',
        'setuptools; python_version >= "3.12" and extra == "mxnet"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    assert installation.install_command("jax").endswith("pip install 'jax>=0.4.36'")
    command = "pip install mxnet==1.9.1 'setuptools; python_version >= \"3.12\"'"
    assert installation.install_command("mxnet").endswith(command)
    assert installation.install_command("doom").endswith("pip install '.[doom]' in Coach's repository")  # came later


def test_an_extra_that_is_installed_later_leaves_mujoco_as_old_as_it_must_be():
    """dm-control alone would bring the newest, with which gymnasium-robotics breaks."""
    requirements = metadata.requires(installation.DISTRIBUTION)
    extras = ("mujoco", "control")
    bounds = [next(text.partition(";")[0] for text in requirements if _brings(text, extra)) for extra in extras]
    assert bounds[0] == bounds[1] and "<" in bounds[0]


def _brings(requirement: str, extra: str) -> bool:
    return requirement.startswith("mujoco") and extra in installation._EXTRA.findall(requirement)


def test_what_is_missing_is_installed_where_coach_runs(monkeypatch, tmp_path):
    """Also where the environment is not activated, in which ``make run`` leaves its user."""
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.with_name("pip").touch(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert installation.pip_install("panel") == f"{python.with_name('pip')} install panel"
    monkeypatch.chdir(tmp_path)
    assert installation.pip_install("panel", "a[b]") == "environment/bin/pip install panel 'a[b]'"
    monkeypatch.setenv("PATH", str(python.parent))
    assert installation.pip_install("panel") == "pip install panel"


# packages that are missing


@pytest.mark.parametrize("program, name", [(main, "coach"), (dashboard, "dashboard")])
def test_a_missing_package_is_one_line(program, name, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "needy.py").write_text(RECORDER.replace("def run(self):", "def run(self):\n        import panel"))
    monkeypatch.setitem(sys.modules, "panel", None)
    for module in [module for module in sys.modules if module.startswith("rl_coach.dashboard")]:
        monkeypatch.delitem(sys.modules, module)
    assert program(["-p", "needy.py"] if program is main else []) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith(f"{name}: the package 'panel' of the extra 'dashboard' is not installed: ")
    assert said.count("\n") == 1


def test_acting_needs_numpy_and_onnxruntime_alone(policy, tmp_path):
    blocked = "tensorflow,keras,jax,tf2onnx,onnx,gymnasium,pandas,rich,safetensors,msgpack,panel,pyarrow,imageio"
    done = run(sys.executable, "-c", BLOCK + ACT, blocked, policy, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout in ("action 0\n", "action 1\n"), done.stderr


@where_installed("jax")
def test_jax_trains_without_tensorflow(tmp_path):
    program = BLOCK + "from rl_coach.coach import main\nsys.exit(main())"
    blocked = "tensorflow,tf2onnx,pandas,panel,bokeh,pyarrow,tensorboardX,imageio,pygame"
    flags = ["-p", "CartPole_DQN", "-f", "jax", "-cp", SETTINGS]
    done = run(sys.executable, "-c", program, blocked, *flags, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == DONE, done.stderr
    assert "play it back" in done.stdout
    assert "dashboard" not in done.stdout
    assert list(tmp_path.glob("experiments/CartPole_DQN/*/checkpoint/*.ckpt/policy/model.onnx"))


# fresh environments


def copy_of_the_repository(directory: pathlib.Path) -> pathlib.Path:
    """The files that a fresh clone has."""
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).stdout.splitlines()
    for name in listed:
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target, follow_symlinks=False)
    return directory


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return copy_of_the_repository(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def built(clone, tmp_path_factory):
    """The sdist and the wheel."""
    directory = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--outdir", directory, ".", cwd=clone)
    assert done.returncode == 0, done.stderr
    (sdist,), (wheel,) = directory.glob("*.tar.gz"), directory.glob("*.whl")
    return sdist, wheel


@pytest.mark.install
def test_the_sdist_holds_docs_and_changelog(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "README.md", "docs/start.md", "docs/images/run.svg", "mkdocs.yml", "LICENSE"} <= names
    assert {"presets/CartPole_DQN.py", "dashboard/page.html", "tests/test_installation.py", "Makefile"} <= names
    assert not [name for name in names if name.endswith(".pyc")]


@pytest.mark.install
def test_the_wheel_holds_the_package_and_says_where_it_comes_from(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = archive.namelist()
        about = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    assert {"rl_coach/presets/CartPole_DQN.py", "rl_coach/dashboard/page.html", "rl_coach/py.typed"} <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]
    assert "\nName: coach-rl\n" in about
    assert "\nProject-URL: Coach 1.0.1 (Intel, archived), https://github.com/IntelLabs/coach\n" in about
    links = re.findall(r"\]\(([^)]+)\)", about)
    assert links and all(link.startswith("https://") for link in links)


@pytest.mark.install
def test_the_thin_environment_acts(clone, policy):
    assert run("make", "thin", f"PYTHON={sys.executable}", cwd=clone).returncode == 0
    python = clone / ".venv-thin" / "bin" / "python"
    assert run(python, "-c", ACT, policy, cwd=policy.parent).stdout in ("action 0\n", "action 1\n")
    assert run(python, "-c", "import tensorflow", cwd=policy.parent).returncode != 0


@pytest.mark.install
def test_the_thin_environment_with_jax_trains(clone, tmp_path):
    assert run("make", "thin-jax", f"PYTHON={sys.executable}", cwd=clone).returncode == 0
    coach = clone / ".venv-thin-jax" / "bin" / "coach"
    done = run(coach, "-p", "CartPole_DQN", "-f", "jax", "-cp", SETTINGS, cwd=tmp_path)
    assert done.returncode == DONE, done.stderr
    (line,) = re.findall(r"^play it back: (.*)$", done.stdout, re.MULTILINE)
    assert "evaluation: " in run(*line.split(), "--steps", "10", cwd=tmp_path).stdout
    assert "extra" in run(coach, "-p", "CartPole_DQN", "-f", "tensorflow", cwd=tmp_path).stderr
    assert run(coach.with_name("dashboard"), cwd=tmp_path).stderr.count("\n") == 1


# extras: each is installed into an empty environment, and one environment of it is stepped

SHORT = "heatup_steps=EnvironmentSteps(20); improve_steps=EnvironmentSteps(20); evaluation_steps=EnvironmentSteps(20)"
SMALL_MEMORY = f"agent_params.memory.max_size=(MemoryGranularity.Transitions, 100); {SHORT}"
AS_VECTOR = "env_params.observation_space_type=ObservationSpaceType.Vector"
TRAIN_ON_RAY = f"""
import pathlib, subprocess, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": 1}})
pathlib.Path("ray.ini").write_text(f"[coach]\\norchestrator = ray\\nray_address = {{cluster.address}}\\n")
coach = pathlib.Path(sys.executable).with_name("coach")
code = subprocess.call([coach, "-p", "CartPole_ClippedPPO", "-dc", "-dcp", "ray.ini", "-cp", "{SHORT}"])
cluster.shutdown()
sys.exit(code)
"""
PUSH_AND_FETCH = """
import os, pathlib, subprocess, sys
from rl_coach.command_line.trained_policies import policies_directory
from tests.zoo.hub import running_hub
coach, policy = pathlib.Path(sys.executable).with_name("coach"), policies_directory() / "CartPole_PPO"
with running_hub() as hub:
    settings = {"HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_right", "HF_HOME": "cache", "HF_HUB_DISABLE_XET": "1"}
    for command in (["push", policy, "me/pole"], ["fetch", "me/pole"]):
        subprocess.run([coach, *command], env={**os.environ, **settings}, check=True)
"""
OF_EXTRAS: dict[str, tuple[str, ...]] = {
    "tensorflow": ("coach", "-p", "CartPole_DQN", "-f", "tensorflow", "-cp", SHORT),
    "dashboard": ("dashboard", "--help"),
    "video": ("coach", "watch", str(ROOT / "presets" / "policies" / "CartPole_PPO"), "--gif", "episode.gif"),
    "jax": ("coach", "-p", "CartPole_DQN", "-f", "jax", "-cp", SHORT),
    "gymnax": ("coach", "-p", "CartPole_DQN", "-lvl", "gymnax:CartPole-v1", "-f", "jax", "-cp", SHORT),
    "playground": ("coach", "-p", "Mujoco_DDPG", "-lvl", "playground:CartpoleBalance", "-f", "jax", "-cp", SHORT),
    "pgx": ("coach", "-p", "CartPole_DQN", "-lvl", "pgx:tic_tac_toe", "-f", "jax", "-cp", f"{AS_VECTOR}; {SHORT}"),
    "mxnet": ("coach", "-p", "CartPole_DQN", "-f", "mxnet", "-cp", SHORT),
    "torch": ("coach", "-p", "CartPole_DQN", "-f", "torch", "-cp", SHORT),
    "atari": ("coach", "-p", "Atari_DQN", "-lvl", "pong", "-cp", SMALL_MEMORY),
    "nec": ("coach", "-p", "CartPole_NEC", "-cp", f"agent_params.algorithm.dnd_size=100; {SHORT}"),
    "envpool": ("coach", "-p", "CartPole_DQN", "-lvl", "envpool:CartPole-v1", "-cp", SHORT),
    "mujoco": ("coach", "-p", "Mujoco_DDPG", "-lvl", "inverted_pendulum", "-cp", SHORT),
    "multi-agent": ("coach", "-p", "Spread_PPO", "-cp", SHORT),
    "minari": ("coach", "dataset", "record", "-p", "CartPole_DQN", "--steps", "50", "-o", "minari:cartpole/random-v0"),
    "doom": ("coach", "-p", "Doom_Basic_DQN", "-cp", SMALL_MEMORY),
    "minigrid": ("coach", "-p", "CartPole_DQN", "-lvl", "minigrid:MiniGrid-Empty-5x5-v0", "-cp", SHORT),
    "control": ("coach", "-p", "ControlSuite_DDPG", "-lvl", "cartpole:swingup", "-cp", SHORT),
    "tune": ("coach", "tune", "-p", "CartPole_DQN", "--trials", "1", "--steps", "100", "--space", "discount=0.9,0.99"),
    "wandb": ("coach", "-p", "CartPole_DQN", "--track", "wandb", "-cp", SHORT),
    "mlflow": ("coach", "-p", "CartPole_DQN", "--track", "mlflow", "-cp", SHORT),
    "hub": ("python", "-c", PUSH_AND_FETCH),
    "distributed": ("coach", "-p", "CartPole_ClippedPPO", "-dc", "-n", "1", "-cp", SHORT),
    "ray": ("python", "-c", TRAIN_ON_RAY),
    "robosuite": ("python", "-c", STEP_ROBOSUITE),
    # neither game is a package: pysc2's own stand-in for it is stepped, and CARLA's client asks for a server
    "starcraft": ("python", "-c", WITH_PYSC2),
    "carla": ("coach", "-p", "CARLA_DDPG", "-cp", SHORT),
}
_WITHOUT_AN_ENVIRONMENT = {"all", "test", "docs", "bench"}
_BESIDE = {"ray": "distributed,ray"}
_ACTS = {
    "tensorflow",
    "jax",
    "torch",
    "mxnet",
    "gymnax",
    "playground",
    "pgx",
    "dashboard",
    "video",
    "starcraft",
    "robosuite",
}
"""Extras with a framework, or that need none. All others are tried with TensorFlow."""
_NOT_ON_PYTHON_3_13 = {"mxnet", "control", "carla"}


def test_each_extra_is_tried():
    assert {*OF_EXTRAS} == extras() - _WITHOUT_AN_ENVIRONMENT


@pytest.mark.install
@pytest.mark.parametrize("extra", OF_EXTRAS)
def test_an_extra_in_an_empty_environment_steps_one_of_its_environments(extra, clone, tmp_path):
    if extra in _NOT_ON_PYTHON_3_13 and sys.version_info >= (3, 13):
        pytest.skip(f"nothing of {extra} can be installed for this version of Python")
    environment = tmp_path / "environment"
    try:
        venv.create(environment, with_pip=True)
        extras = _BESIDE.get(extra, extra) if extra in _ACTS else f"tensorflow,{_BESIDE.get(extra, extra)}"
        installed = run(environment / "bin" / "pip", "install", "--quiet", f"{clone}[{extras}]", cwd=tmp_path)
        assert installed.returncode == 0, installed.stderr
        program, *words = OF_EXTRAS[extra]
        more = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"} if extra == "starcraft" else {}
        done = run(environment / "bin" / program, *words, cwd=tmp_path, PYTHONPATH=str(clone), **more)
        if extra == "carla":
            assert done.returncode == BAD_INPUT
            assert "coach: the CARLA server at localhost:2000 does not answer: time-out" in done.stderr, done.stderr
        else:
            assert done.returncode == DONE, done.stderr
    finally:
        shutil.rmtree(environment, ignore_errors=True)  # of 2 GB or more
