"""The directory that keeps compiled training steps from one run to the next."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from rl_coach.base_parameters import Frameworks
from rl_coach.utilities import files

VARIABLE = "COACH_COMPILATION_CACHE"
MOST_BYTES = 1_000_000_000
_OFF = ("off", "0", "")
_TENSORFLOW_FLAG = "--tf_xla_persistent_cache_directory"


def keep_compiled_steps(framework: Frameworks) -> None:
    """Make a framework store its compiled training steps on disk. Call this function before the framework compiles
    anything. If the user has set the framework's own variable for this, the user's setting stays.

    The environment variable ``COACH_COMPILATION_CACHE`` sets the directory; with ``off``, nothing is stored.
    """
    directory = compilation_cache(framework)
    if directory is None:
        return
    files.keep_newest(directory, MOST_BYTES)
    if framework == Frameworks.tensorflow and _TENSORFLOW_FLAG not in os.environ.get("TF_XLA_FLAGS", ""):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # training works without stored steps
        os.environ["TF_XLA_FLAGS"] = f"{os.environ.get('TF_XLA_FLAGS', '')} {_TENSORFLOW_FLAG}={directory}".strip()
    if framework == Frameworks.jax:
        chosen = os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(directory))
        # by default, JAX stores only functions that took a second or longer to compile; most of our steps take less
        shortest = os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        jax = sys.modules.get("jax")
        # an imported JAX does not read the variables again
        if jax is not None and jax.config.jax_compilation_cache_dir is None:
            jax.config.update("jax_compilation_cache_dir", chosen)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", float(shortest))


def forget_compiled_steps(framework: Frameworks) -> bool:
    """Delete the stored steps of this version of a framework. Return True if there were any."""
    directory = compilation_cache(framework)
    kept = list(directory.glob("xla_compile_cache*")) if directory is not None else []
    for file in kept:
        file.unlink(missing_ok=True)
    return bool(kept)


def compilation_cache(framework: Frameworks) -> Path | None:
    """The directory for this version of a framework on this kind of processor; None if nothing is stored."""
    chosen = os.environ.get(VARIABLE)
    if framework in (Frameworks.mxnet, Frameworks.acting) or (chosen is not None and chosen.lower() in _OFF):
        return None
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        version = importlib.metadata.version(framework.name)
    except importlib.metadata.PackageNotFoundError:
        return None  # a build under another package name: the stored code could be of another version
    return Path(chosen or user / "rl_coach" / "compiled").expanduser() / f"{framework.name}-{version}-{_processor()}"


def _processor() -> str:
    """A digest of the processor's features. Machines with different processors may share a home directory, and one may
    not be able to run the code that the other has compiled.
    """
    features = [platform.machine(), platform.processor()]
    try:
        with open("/proc/cpuinfo") as file:
            features += next(([line] for line in file if line.startswith(("flags", "Features"))), [])
    except OSError:
        features.append(platform.platform())
    return hashlib.sha256(" ".join(features).encode()).hexdigest()[:12]
