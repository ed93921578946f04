"""Compiles training steps to machine code: PyTorch traces the step, Inductor compiles the trace, and the result is
stored on disk.

``torch.compile`` would check guards at each call: an update of DQN with 64 x 64 units takes 240 us with
``torch.compile`` and 120 us with this module. A later run loads the stored step in milliseconds.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Callable, Mapping, Sequence

import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from rl_coach.architectures.compilation_cache import compilation_cache
from rl_coach.base_parameters import Frameworks
from rl_coach.logger import screen
from rl_coach.utilities import files
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utils import CoachError

VARIABLE = "COACH_TORCH_COMPILE"
_SECONDS_BETWEEN_LOOKS = 0.1
Tensors = Sequence[torch.Tensor]
Step = Callable[[Tensors], Tensors]
"""A function of tensors. It may write to its arguments."""


def traced(function: Callable, *tensors: torch.Tensor) -> GraphModule:
    """Trace a function. Tensors that are not arguments, such as tensors in a user's module, become constants."""
    # fake tensors: with real ones, numbers that a rule computes in NumPy would become constants
    return make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)


def compiled(function: Step, tensors: Tensors) -> Step:
    """Compile a function to machine code. The function itself is returned if there is no C++ compiler, if the
    environment variable ``COACH_TORCH_COMPILE`` is ``off``, or if the run is asked to stop during compilation.

    :param tensors: an example of the arguments
    :raises CoachError: if Inductor fails
    """
    if os.environ.get(VARIABLE) == "off":
        return function
    graph = traced(lambda *given: function(given), *tensors)
    directory = compilation_cache(Frameworks.torch)
    package = None if directory is None else directory / f"{_digest(graph, tensors)}.pt2"
    if package is not None and package.exists():
        with contextlib.suppress(RuntimeError):  # a damaged package is replaced below
            return _loaded(package)
    with tempfile.TemporaryDirectory() as scratch:
        made = _compile(graph, tensors, scratch)
        if made is None:
            return function
        if package is not None:
            _keep(made, package)
        return _loaded(made)


def _loaded(package: pathlib.Path) -> Step:
    # not PyTorch's documented function, because it imports all of Inductor, which takes seconds
    loader = torch._C._aoti.AOTIModelPackageLoader(str(package), "model", True, 1, -1)
    return lambda given: loader.run(list(given))


def _digest(graph: GraphModule, tensors: Tensors) -> str:
    """A digest of everything that the machine code depends on, except for PyTorch's version and the processor."""
    constants = [(name, value) for name, value in vars(graph).items() if isinstance(value, torch.Tensor)]
    constants += list(graph.named_buffers())
    # the number of threads is a constant of the machine code; see _COMPILE
    known = [_COMPILE, graph.code, str(torch.get_num_threads())]
    known += [f"{tuple(tensor.shape)} {tensor.stride()} {tensor.dtype}" for tensor in tensors]
    known += [f"{name} {value.dtype} {value.tolist()}" for name, value in constants]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:32]


def _keep(made: pathlib.Path, package: pathlib.Path) -> None:
    """Copy the package to the directory of stored steps. If the directory cannot be written, later runs compile
    again.
    """
    with contextlib.suppress(OSError):
        package.parent.mkdir(parents=True, exist_ok=True)
        # replaced as a whole, because another run must not load an unfinished file
        with files.replaced(package, synced=False) as file:
            file.write(made.read_bytes())


@functools.cache
def _warn_of_missing_compiler(compiler: str) -> None:
    """Log the warning once in a process."""
    screen.warning(
        f"training steps are not compiled and run several times slower, because the C++ compiler '{compiler}' is "
        f"missing: install it{' (on Debian: apt install g++)' if compiler == 'g++' else ''}"
    )


def _compile(graph: GraphModule, tensors: Tensors, scratch: str) -> pathlib.Path | None:
    """Compile in a child process, which can be stopped.

    :return: the path of the package; None if there is no compiler, or if the child process was stopped
    :raises CoachError: if PyTorch cannot compile the step
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        _warn_of_missing_compiler(compiler)
        return None
    program, written, errors = (pathlib.Path(scratch) / name for name in ("program.pt2", "step.pt2", "errors"))
    torch.export.save(torch.export.export(graph, tuple(tensors)), program)
    # Inductor's usual directory may not be writable; the finished step is stored by ``_keep``
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": scratch}
    threads = str(torch.get_num_threads())
    code = _exit_code([sys.executable, "-c", _COMPILE, str(program), str(written), threads], environment, errors)
    if code is None:
        return None
    if code:
        last_line = errors.read_text(errors="replace").strip().rpartition("\n")[2]
        raise CoachError(
            f"PyTorch could not compile the training step: {last_line}; set {VARIABLE}=off to train without compilation"
        )
    return written


def _exit_code(command: Sequence[str], environment: Mapping[str, str], output: pathlib.Path) -> int | None:
    """Run a program to its end, or until the run is asked to stop.

    :param output: the file for the program's output
    :return: the exit code; None if the program and its child processes were stopped
    """
    with open(output, "wb") as file:
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        while child.poll() is None and stop_signals.asked is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_SECONDS_BETWEEN_LOOKS)
    finally:
        if is_left := child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return None if is_left or stop_signals.asked is not None else child.returncode


# Inductor needs the number of threads: by default it reserves a place for each processor in its sums. At the call,
# OpenMP may start more threads than there are processors, and these threads would overwrite the stack.
_COMPILE = """
import sys, torch
torch._inductor.config.cpp.threads = int(sys.argv[3])
program = torch.export.load(sys.argv[1])
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[2])
"""
