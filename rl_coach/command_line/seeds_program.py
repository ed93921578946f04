"""The process that ``SeedsProcess`` starts. It computes the compiled loops of several seeds in one program."""

from __future__ import annotations

import math
import os
import socket
import tempfile
from multiprocessing.connection import Connection
from typing import Any, Sequence

from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.logger import screen
from rl_coach.orchestrators.seeds_server import SeedsServer
from rl_coach.runs.side_by_side import num_cores
from rl_coach.utilities.stop_signals import ignore


def run(handles: Sequence[str], launcher: Any) -> None:
    """Compute the loops of several seeds until the processes of all seeds have ended.

    :param handles: the file descriptors of the socket for the seeds, and of the connection to the parent process
    :param launcher: a ``CoachLauncher``, which builds the graph
    """
    ignore()  # the processes of the seeds handle signals; this process ends after them
    listening, parent = socket.socket(fileno=int(handles[0])), Connection(int(handles[1]))
    flags, names = parent.recv()
    devices = math.gcd(len(names), num_cores())
    # on a CPU each core is a device, and each device computes the same number of seeds
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    with tempfile.TemporaryDirectory() as directory:
        level = _level([*flags, f"--run_directory={directory}", f"--num_threads={devices}"], launcher)
    if level is not None:
        seeds = level.for_seeds(len(names))
        many = "one device" if seeds.num_devices == 1 else f"{seeds.num_devices} devices"
        screen.log(f"{len(names)} seeds in one program, on {many}")
        SeedsServer(listening, parent, names, seeds).serve()


def _level(flags: Sequence[str], launcher: Any) -> CompiledLevelManager | None:
    """The level with the compiled loop; None if the loop cannot be compiled. Each seed's process prints the reason."""
    args = launcher.get_config_args(launcher.get_argument_parser(), flags)
    graph_manager = launcher.get_graph_manager_from_args(args)
    graph_manager.callbacks = []  # the seeds' processes call the callbacks
    graph_manager.create_graph(launcher.create_task_parameters(graph_manager, args))
    level = graph_manager.level_managers[0]
    return level if isinstance(level, CompiledLevelManager) else None
