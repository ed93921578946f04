"""``coach -dc``: from the flags to a distributed run."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Iterator

from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.arguments import arguments_of_a_process
from rl_coach.orchestrators import distributed_settings
from rl_coach.orchestrators.distributed_settings import DistributedSettings
from rl_coach.orchestrators.run_order import DataStoreOrder, RunOrder, new_run_id
from rl_coach.utils import CoachError

_OF_THIS_MACHINE = (
    "resume", "evaluated", "render", "open_dashboard", "checkpoint_restore_dir", "checkpoint_restore_file",
)  # fmt: skip
_OF_KUBERNETES = ("dry_run", "attach", "keep")

MakeGraph = Callable[[argparse.Namespace], Any]


def run(args: argparse.Namespace, defaults: dict[str, Any], make_graph: MakeGraph) -> int:
    """Train with rollout workers, where the settings say.

    :param defaults: what the flags are where they are not given
    :param make_graph: the preset's graph, changed as the flags say; raises CoachError where they are wrong
    :return: the exit code
    :raises CoachError: for bad input, or a run that cannot start
    :raises TrainingError: if training itself fails
    """
    path = args.distributed_coach_config_path
    settings = distributed_settings.read(path) if path else DistributedSettings()
    if settings.orchestrator == "kubernetes":
        _run_on_kubernetes(args, defaults, settings, make_graph)
        return 0
    given = [name for name in _OF_KUBERNETES if getattr(args, name)]
    if given:
        raise CoachError(f"--{given[0]}: only with orchestrator = kubernetes in the file of -dcp")
    make_graph(args)
    return _run_here(args, defaults, settings)


def _run_here(args: argparse.Namespace, defaults: dict[str, Any], settings: DistributedSettings) -> int:
    from rl_coach.orchestrators.local_orchestrator import LocalOrchestrator

    with _password_file(settings) as password_file:
        order = RunOrder(
            run=new_run_id(),
            arguments=arguments_of_a_process(args, defaults),
            redis_url=settings.redis_url,
            num_workers=args.num_workers,
            experiment_path=args.experiment_path,
            redis_password_file=password_file,
            data_store=_data_store(args, settings),
            resume=bool(args.resume),
        )
        return LocalOrchestrator(order, args.dump_worker_logs).run()


def _data_store(args: argparse.Namespace, settings: DistributedSettings) -> DataStoreOrder:
    experiment, directory = _place(args)
    if settings.data_store == "nfs":
        return DataStoreOrder("nfs", {"checkpoint_dir": os.path.join(settings.nfs_path, experiment, directory)})
    if settings.data_store == "s3":
        credentials = settings.s3_creds_file or None
        return settings.s3_order(args.experiment_path, f"{experiment}/{directory}", credentials)
    return DataStoreOrder()


@contextlib.contextmanager
def _password_file(settings: DistributedSettings) -> Iterator[str | None]:
    """A file that holds the password of an external Redis, and that nobody else can read."""
    if settings.redis_password is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="coach-") as directory:
        file = pathlib.Path(directory) / "password"
        file.touch(mode=0o600)
        file.write_text(settings.redis_password, encoding="utf-8")
        yield str(file)


def _run_on_kubernetes(
    args: argparse.Namespace, defaults: dict[str, Any], settings: DistributedSettings, make_graph: MakeGraph
) -> None:
    from rl_coach.orchestrators import kubernetes_orchestrator as kubernetes

    _check_flags(args, defaults)
    with contextlib.redirect_stdout(sys.stderr):  # what a dry run prints are manifests
        make_graph(args)
    experiment, directory = _place(args)
    arguments = arguments_of_a_process(args, defaults)
    parameters = kubernetes.parameters(settings, experiment, arguments, args.num_workers, directory)
    if args.dry_run:
        print(kubernetes.dry_run(parameters), end="")
        return
    logs = os.path.join(args.experiment_path, kubernetes.WORKER_LOGS) if args.dump_worker_logs else None
    kubernetes.run(parameters, args.keep, args.attach, logs)


def _place(args: argparse.Namespace) -> tuple[str, str]:
    """(name of the experiment, name of the run's directory in it)"""
    above, directory = os.path.split(args.experiment_path)
    return os.path.basename(above), directory


def _check_flags(args: argparse.Namespace, defaults: dict[str, Any]) -> None:
    """Refuse flags that mean something on this machine alone, and presets that the image cannot hold."""
    for name in _OF_THIS_MACHINE:
        if getattr(args, name) != defaults[name]:
            raise CoachError(f"--{name}: not with orchestrator = kubernetes, where nothing of this machine is seen")
    path = args.preset.partition(":")[0]
    is_named = preset_catalogue.expand(args.preset) != args.preset
    if path.endswith(".py") and not is_named and not os.path.isabs(path):
        raise CoachError(f"-p {args.preset}: on a cluster, name the file from the root, as it lies in the image")
