"""``coach -dc``: start a distributed run."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Iterator, NoReturn

from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.arguments import ROLLOUT_WORKER, arguments_of_a_process
from rl_coach.orchestrators import distributed_settings
from rl_coach.orchestrators.distributed_settings import DistributedSettings
from rl_coach.orchestrators.private_directory import private_directory, write_secret
from rl_coach.orchestrators.run_order import (
    ROLLOUT_PROGRAM,
    TRAINING_PROGRAM,
    DataStoreOrder,
    RunOrder,
    new_run_id,
)
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.data_stores.data_store import DataStore
    from rl_coach.memories.backend.memory import MemoryBackendParameters
    from rl_coach.orchestrators.local_orchestrator import LocalOrchestrator

_OF_THIS_MACHINE = (
    "resume", "evaluated", "render", "open_dashboard", "checkpoint_restore_dir", "checkpoint_restore_file",
)  # fmt: skip
_OF_KUBERNETES = ("dry_run", "attach", "keep")

MakeGraph = Callable[[argparse.Namespace], Any]


def run(args: argparse.Namespace, defaults: dict[str, Any], make_graph: MakeGraph) -> int:
    """Train with rollout workers on this machine, on Ray or on Kubernetes.

    :param make_graph: makes the preset's graph with the flags applied; raises CoachError if a flag is wrong
    :return: the exit code
    :raises CoachError: if a flag is wrong, or the run cannot start
    :raises TrainingError: if training itself fails
    """
    path = args.distributed_coach_config_path
    settings = distributed_settings.read(path) if path else DistributedSettings()
    if settings.orchestrator == "kubernetes":
        _run_on_kubernetes(args, defaults, settings, make_graph)
        return 0
    given = [name for name in _OF_KUBERNETES if getattr(args, name)]
    if given:
        raise CoachError(f"--{given[0]} works only with orchestrator = kubernetes in the file of -dcp")
    make_graph(args)
    return _run_here(args, defaults, settings)


def _run_here(args: argparse.Namespace, defaults: dict[str, Any], settings: DistributedSettings) -> int:
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
            command_line=sys.argv,
            config_path=args.distributed_coach_config_path,
        )
        return _orchestrator(order, settings, args.dump_worker_logs).run()


def _orchestrator(order: RunOrder, settings: DistributedSettings, keeps_logs: bool) -> LocalOrchestrator:
    if settings.orchestrator == "ray":
        from rl_coach.orchestrators.ray_orchestrator import RayOrchestrator

        return RayOrchestrator(order, settings, keeps_logs)
    from rl_coach.orchestrators.local_orchestrator import LocalOrchestrator

    return LocalOrchestrator(order, keeps_logs)


def take_part(args: argparse.Namespace, defaults: dict[str, Any]) -> NoReturn:
    """Replace this process by the trainer or a rollout worker of a run that an orchestrator of Coach 1.0.1 has started.

    :raises CoachError: if the JSON of a flag is invalid, or contains an unknown backend or store
    """
    backend, store = _described(args)
    password = backend.orchestrator_params.get("redis_password")
    order = RunOrder(
        run=backend.channel,
        arguments=arguments_of_a_process(args, defaults),
        redis_url=f"redis://{backend.redis_address or 'localhost'}:{backend.redis_port}/0",
        num_workers=args.num_workers,
        experiment_path=args.experiment_path,
        redis_password_file=None if password is None else _open_file(password),
        data_store=store,
        resume=bool(args.resume),
    )
    command = [sys.executable, "-m", TRAINING_PROGRAM, "--order", _open_file(order.as_json())]
    if args.distributed_coach_run_type == ROLLOUT_WORKER:
        command[2] = ROLLOUT_PROGRAM
        command += ["--name", name_of_this_worker()]
    os.execv(sys.executable, command)


def name_of_this_worker() -> str:
    """A name for this worker, made of the names of its host and process."""
    return f"worker-{socket.gethostname()}-{os.getpid()}"


def open_backend_and_store(args: argparse.Namespace) -> tuple[MemoryBackendParameters, DataStore]:
    """The parameters of the memory backend, and the data store, from the flags of an orchestrator of Coach 1.0.1.

    :raises CoachError: if the JSON of a flag is invalid, or contains an unknown backend or store
    """
    from rl_coach.data_stores.data_store_impl import open_data_store

    backend, store = _described(args)
    return backend, open_data_store(store.kind, store.settings, backend.channel, backend.connect())


def _described(args: argparse.Namespace) -> tuple[Any, DataStoreOrder]:
    """The parameters of the memory backend, and the settings of the data store for the run order."""
    from rl_coach.data_stores.data_store_impl import construct_data_store_params
    from rl_coach.memories.backend.memory_impl import construct_memory_params

    backend = _parameters("--memory_backend_params", args.memory_backend_params, construct_memory_params)
    if not args.data_store_params:
        return backend, DataStoreOrder()
    store = _parameters("--data_store_params", args.data_store_params, construct_data_store_params)
    if store.store_type == "redis":
        return backend, DataStoreOrder()
    names = ("checkpoint_dir", "end_point", "bucket_name", "creds_file", "prefix", "expt_dir")
    settings = {name: getattr(store, name) for name in names if hasattr(store, name)}
    return backend, DataStoreOrder(store.store_type, settings)


def _parameters(flag: str, text: str | None, construct: Callable[[str], Any]) -> Any:
    if not text:
        raise CoachError(f"{flag}: the JSON is missing")
    try:
        return construct(text)
    except (ValueError, TypeError, AttributeError) as error:
        if isinstance(error, CoachError):
            raise
        example = '{"store_type": "NAME", "parameter": "value"}'
        raise CoachError(f"{flag}: give a JSON object such as '{example}' ({error})") from error


def _open_file(text: str) -> str:
    """Write a text to a deleted file. :return: a path for the program that replaces this process by ``exec``"""
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        handle = os.dup(file.fileno())
    os.lseek(handle, 0, os.SEEK_SET)
    os.set_inheritable(handle, True)
    return f"/dev/fd/{handle}"


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
    """A context with the path of a private file with the password of an external Redis; None without a password."""
    if settings.redis_password is None:
        yield None
        return
    with private_directory() as directory:
        file = directory / "password"
        write_secret(file, settings.redis_password)
        yield str(file)


def _run_on_kubernetes(
    args: argparse.Namespace, defaults: dict[str, Any], settings: DistributedSettings, make_graph: MakeGraph
) -> None:
    from rl_coach.orchestrators import kubernetes_orchestrator as kubernetes

    check_flags(args, defaults)
    with contextlib.redirect_stdout(sys.stderr):  # the standard output of a dry run must contain only manifests
        make_graph(args)
    experiment, directory = _place(args)
    arguments = arguments_of_a_process(args, defaults)
    config_path = os.path.abspath(args.distributed_coach_config_path)
    parameters = kubernetes.parameters(
        settings, experiment, arguments, args.num_workers, directory, sys.argv, config_path
    )
    if args.dry_run:
        print(kubernetes.dry_run(parameters), end="")
        return
    logs = os.path.join(args.experiment_path, kubernetes.WORKER_LOGS) if args.dump_worker_logs else None
    kubernetes.run(parameters, args.keep, args.attach, logs)


def _place(args: argparse.Namespace) -> tuple[str, str]:
    """The name of the experiment, and the name of the run's directory in it."""
    above, directory = os.path.split(args.experiment_path)
    return os.path.basename(above), directory


def check_flags(args: argparse.Namespace, defaults: dict[str, Any]) -> None:
    """Check the flags of a run on Kubernetes.

    :raises CoachError: if a flag works only on this machine, or the preset is a file on this machine
    """
    for name in _OF_THIS_MACHINE:
        if getattr(args, name) != defaults[name]:
            hint = "; to continue here, use -dcp FILE with orchestrator = local" if name == "resume" else ""
            raise CoachError(
                f"--{name} does not work with orchestrator = kubernetes: a cluster cannot see this machine{hint}"
            )
    path = args.preset.partition(":")[0]
    is_named = preset_catalogue.expand(args.preset) != args.preset
    if path.endswith(".py") and not is_named and not os.path.isabs(path):
        raise CoachError(f"-p {args.preset}: on a cluster, give the file's absolute path in the image")
