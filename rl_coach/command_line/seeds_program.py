"""The process that ``SeedsProcess`` starts."""

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
    """Compute the loops of several seeds until all have ended.

    :param handles: of the socket that seeds connect to, and of the connection to the process that started this one
    :param launcher: a ``CoachLauncher``, which builds the graph
    """
    ignore()  # signals go to the seeds, and this process ends after them
    listening, parent = socket.socket(fileno=int(handles[0])), Connection(int(handles[1]))
    flags, names = parent.recv()
    devices = math.gcd(len(names), num_cores())
    # each core is a device, which computes as many seeds as the others; nothing is said of GPUs
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    with tempfile.TemporaryDirectory() as directory:
        level = _level([*flags, f"--run_directory={directory}", f"--num_threads={devices}"], launcher)
    if level is not None:
        screen.log(f"{len(names)} seeds in one program, on {devices} devices")
        SeedsServer(listening, parent, names, level.for_seeds(len(names))).serve()


def _level(flags: Sequence[str], launcher: Any) -> CompiledLevelManager | None:
    """The level with the compiled loop; None if it is not compiled, and each seed's process has said so."""
    args = launcher.get_config_args(launcher.get_argument_parser(), flags)
    graph_manager = launcher.get_graph_manager_from_args(args)
    graph_manager.callbacks = []  # the seeds have their own
    graph_manager.create_graph(launcher.create_task_parameters(graph_manager, args))
    level = graph_manager.level_managers[0]
    return level if isinstance(level, CompiledLevelManager) else None
