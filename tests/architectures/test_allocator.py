"""Memory that JAX frees stays in the process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = """
import resource, threading
from rl_coach.architectures.framework import load_framework
from rl_coach.base_parameters import Frameworks

load_framework(Frameworks.{framework})


def use_memory():
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        _ = b"1" * 64_000_000
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        del _


thread = threading.Thread(target=use_memory)
thread.start()
thread.join()
"""


def new_pages(framework, **variables):
    """The page faults of two uses of 64 MB in a new thread."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC", "GLIBC", "LD_"))}
    command = [sys.executable, "-c", PROGRAM.format(framework=framework)]
    done = subprocess.run(command, env=environment | variables, check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these options")
def test_freed_memory_is_used_again_without_new_pages():
    first, second = new_pages("jax")
    assert second < first / 4


@pytest.mark.parametrize(("framework", "variables"), [("acting", {}), ("jax", {"MALLOC_ARENA_MAX": "2"})])
def test_other_frameworks_and_the_users_variables_keep_the_defaults(framework, variables):
    first, second = new_pages(framework, **variables)
    assert second > first / 2
