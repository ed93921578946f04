"""The name of Coach's distribution, and commands that install missing packages."""

from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from typing import Any

from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.system import program, shell_command

DISTRIBUTION = "coach-rl"
PREDECESSOR = "rl-coach"
"""Intel's distribution. It contains a package with the same import name, so the two distributions exclude each
other."""

_FRAMEWORKS = ("tensorflow", "jax", "torch", "mxnet")
_EXTRA = re.compile(r"""\s*(?:and\s+)?extra\s*==\s*["']([^"']+)["']""")
_PACKAGES_OF_EXTRAS = {
    "gymnax": ("gymnax",), "playground": ("mujoco_playground",), "pgx": ("pgx",), "envpool": ("envpool",),
    "tensorflow": ("tensorflow", "tf2onnx"), "dashboard": ("panel", "bokeh"), "video": ("imageio", "imageio_ffmpeg"),
    "jax": ("jax",), "mxnet": ("mxnet",), "torch": ("torch",), "atari": ("ale_py",),
    "mujoco": ("mujoco", "gymnasium_robotics"),
    "doom": ("vizdoom",), "minigrid": ("minigrid",), "minari": ("minari",),
    "multi-agent": ("pettingzoo", "mpe2", "pymunk"),
    "control": ("dm_control",), "carla": ("carla",), "starcraft": ("pysc2",), "robosuite": ("robosuite",),
    "ray": ("ray",), "tune": ("optuna", "sklearn"), "wandb": ("wandb",), "mlflow": ("mlflow",),
    "hub": ("huggingface_hub",),
    "distributed": ("redis", "kubernetes", "boto3", "botocore"),
}  # fmt: skip
"""The import names of each extra's packages. A package that is not in this table has the name of its distribution."""


def pip_install(*requirements: str) -> str:
    """The command that installs packages in Coach's environment, even if the environment is not activated."""
    return shell_command("pip", "install", *requirements)


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra. The command does not install Coach again, except if Coach
    runs from a directory without an installation, or the installed version does not have the extra.

    :param extra: the extra's name in ``pyproject.toml``
    """
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        requirements = []
    wanted = [text for text in requirements if extra in _EXTRA.findall(text)]
    if not wanted:
        return f"{pip_install(f'.[{extra}]')} in Coach's repository"
    return pip_install(*(_EXTRA.sub("", text).rstrip("; ") for text in wanted))


def is_installed(package: str) -> bool:
    """True if a package can be imported. The function does not import the package."""
    return importlib.util.find_spec(package) is not None


def default_framework() -> str:
    """The framework of a run without ``-f``: the first of TensorFlow, JAX, PyTorch and MXNet that is installed, or
    ``tensorflow`` if none is installed.
    """
    return next((one for one in _FRAMEWORKS if is_installed(one)), _FRAMEWORKS[0])


def import_package(name: str) -> Any:
    """Import a package, or a module of it, that not all installations have.

    :raises CoachError: if the package is not installed; the message contains the command that installs it
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CoachError(missing_package(error)) from error


def missing_package(error: ModuleNotFoundError) -> str:
    """A message about a missing package, with the package's extra and the command that installs the package. If the
    package is installed, the message names the missing module.
    """
    if (message := missing_module(error)) is not None:
        return message
    package = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in _PACKAGES_OF_EXTRAS.items() if package in packages), None)
    if extra is None:
        return f"the package '{package}' is not installed: {pip_install(package)}"
    return f"the package '{package}' of the extra '{extra}' is not installed: {install_command(extra)}"


def missing_module(error: ModuleNotFoundError) -> str | None:
    """A message about a module that an installed package does not have; None if the package is not installed."""
    package = (error.name or "").partition(".")[0]
    if error.name == package or not is_installed(package):
        return None
    return f"the installed package '{package}' has no module '{error.name}'"


def predecessor_warning() -> str | None:
    """A warning that Intel's rl-coach is installed too; None if Intel's rl-coach is not installed."""
    try:
        version = metadata.version(PREDECESSOR)
    except metadata.PackageNotFoundError:
        return None
    if int(version.partition(".")[0]) >= 2:
        return None
    return (
        f"Intel's {PREDECESSOR} {version} is also installed and uses the same folder rl_coach: run "
        f"{program('pip')} uninstall {PREDECESSOR}, then install {DISTRIBUTION} again"
    )
