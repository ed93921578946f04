"""``coach -dc``: from the flags to a distributed run."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any, Callable

from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.arguments import arguments_from_keywords
from rl_coach.orchestrators import distributed_settings
from rl_coach.orchestrators.distributed_settings import DistributedSettings
from rl_coach.utils import CoachError

_OF_THIS_MACHINE = (
    "resume", "evaluated", "play", "evaluate", "render", "open_dashboard", "checkpoint_restore_dir",
    "checkpoint_restore_file", "evaluation_worker",
)  # fmt: skip
_OF_KUBERNETES = ("dry_run", "attach", "keep")
_NOT_PASSED_ON = (
    "list", "experiment_name", "experiment_path", "checkpoint_save_dir", "num_workers", "distributed_coach",
    "distributed_coach_config_path", "distributed_coach_run_type", "memory_backend_params", "data_store_params",
    "dump_worker_logs", "trust", "no_summary", *_OF_KUBERNETES,
)  # fmt: skip


def run(args: argparse.Namespace, defaults: dict[str, Any], make_graph: Callable[[argparse.Namespace], Any]) -> None:
    """Train with rollout workers, where the settings say.

    :param defaults: what the flags are where they are not given
    :param make_graph: the preset's graph, changed as the flags say; raises CoachError where they are wrong
    :raises CoachError: for bad input, or a run that cannot start
    :raises TrainingError: if training itself fails
    """
    path = args.distributed_coach_config_path
    settings = distributed_settings.read(path) if path else DistributedSettings()
    if settings.orchestrator == "kubernetes":
        _run_on_kubernetes(args, defaults, settings, make_graph)
        return
    given = [name for name in _OF_KUBERNETES if getattr(args, name)]
    if given:
        raise CoachError(f"--{given[0]}: only with orchestrator = kubernetes in the file of -dcp")
    raise CoachError("-dc: distributed training on this machine is not in this version yet")


def graph_arguments(args: argparse.Namespace, defaults: dict[str, Any]) -> list[str]:
    """The flags from which trainer and workers make the same graph.

    :param defaults: what the flags are where they are not given
    """
    plain = {**vars(args), "framework": args.framework.name}
    given = {name: value for name, value in plain.items() if value != defaults[name] and name not in _NOT_PASSED_ON}
    return arguments_from_keywords(given)


def _run_on_kubernetes(
    args: argparse.Namespace,
    defaults: dict[str, Any],
    settings: DistributedSettings,
    make_graph: Callable[[argparse.Namespace], Any],
) -> None:
    from rl_coach.orchestrators import kubernetes_orchestrator as kubernetes

    _check_flags(args, defaults)
    with contextlib.redirect_stdout(sys.stderr):  # what is printed are manifests
        make_graph(args)
    above, directory = os.path.split(args.experiment_path)
    parameters = kubernetes.parameters(
        settings, os.path.basename(above), graph_arguments(args, defaults), args.num_workers, directory
    )
    if args.dry_run:
        print(kubernetes.dry_run(parameters), end="")
        return
    logs = os.path.join(args.experiment_path, "worker_logs") if args.dump_worker_logs else None
    kubernetes.run(parameters, args.keep, args.attach, logs)


def _check_flags(args: argparse.Namespace, defaults: dict[str, Any]) -> None:
    """Refuse flags that mean something on this machine alone, and presets that the image cannot hold."""
    for name in _OF_THIS_MACHINE:
        if getattr(args, name) != defaults[name]:
            raise CoachError(f"--{name}: not with orchestrator = kubernetes, where nothing of this machine is seen")
    path = args.preset.partition(":")[0]
    is_named = preset_catalogue.expand(args.preset) != args.preset
    if path.endswith(".py") and not is_named and not os.path.isabs(path):
        raise CoachError(f"-p {args.preset}: on a cluster, name the file from the root, as it lies in the image")
