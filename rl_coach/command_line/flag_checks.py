"""Checks that find flags of ``coach`` that contradict each other."""

from __future__ import annotations

import argparse
import glob
import os
from typing import TYPE_CHECKING, Iterator

from rl_coach.command_line.arguments import ROLLOUT_WORKER, TRAINER
from rl_coach.installation import is_installed, missing_package
from rl_coach.runs.record import RECORD_FILE
from rl_coach.runs.run_group import is_group, refuse_group
from rl_coach.utilities.errors import CoachError
from rl_coach.utilities.system import shell_command

if TYPE_CHECKING:
    from rl_coach.graph_managers.graph_manager import GraphManager

_ABOUT_TRAINED_AGENTS = (
    "evaluate", "apply_stop_condition", "export_onnx_graph", "checkpoint_restore_dir", "checkpoint_restore_file",
    "checkpoint_save_secs", "checkpoint_save_steps", "checkpoint_save_episodes",
)  # fmt: skip


def unmet(args: argparse.Namespace) -> Iterator[str]:
    """A message for each contradiction between flags. The checks are fast and write nothing."""
    if not args.preset:
        yield "no preset given: select a preset with -p; coach --list shows all presets"
    is_part, distributes = was_started_as_a_part(args), args.distributed_coach
    for name in ("memory_backend_params", "data_store_params"):
        if getattr(args, name) and not is_part:
            parts = f"{TRAINER} or {ROLLOUT_WORKER}"
            yield f"--{name}: only with --distributed_coach_run_type {parts}; use -dcp for the address of Redis"
    if is_part and not args.memory_backend_params:
        yield "--distributed_coach_run_type: --memory_backend_params is missing, which contains the address of Redis"
    for name in ("distributed_coach_config_path", "dry_run", "attach", "keep", "dump_worker_logs"):
        if getattr(args, name) and not distributes:
            yield f"--{name}: only with -dc, which starts a distributed run"
    if distributes and args.evaluation_worker:
        yield "-ew has no effect with -dc, because the trainer evaluates: leave out -ew"
    if args.budget and (distributes or wants_workers(args)):
        yield "--budget works only without workers: leave it out, or leave out -dc, -n and -ew"
    for name, is_given in (("evaluate", args.evaluate is not None), ("play", args.play), ("resume", args.resume)):
        if is_given and args.budget:
            reason = "the number of steps cannot change" if name == "resume" else "--budget is for training"
            yield f"--budget and --{name}: {reason}: leave one out"
        if is_given and distributes and name != "resume":
            yield f"-dc trains: leave out --{name}"
        if is_given and wants_workers(args):
            yield f"-n and -ew start workers that train from the beginning, or from -crd: leave out --{name}"
    if args.open_dashboard and not is_installed("panel"):
        yield f"-d: {missing_package(ModuleNotFoundError(name='panel'))}"
    for name in _ABOUT_TRAINED_AGENTS:
        if args.play and getattr(args, name) not in (None, False):
            yield f"--play lets you act instead of a trained agent: leave out --{name}"
    if args.checkpoint_restore_dir and args.checkpoint_restore_file:
        yield "-crd and -crf both select a checkpoint: give only one of them"
    for flag, path in (("-crd", args.checkpoint_restore_dir), ("-crf", args.checkpoint_restore_file)):
        if path and not os.path.exists(path) and os.path.basename(path) != "best":
            yield f"{flag}: no checkpoint at '{path}'"
    if args.checkpoint_restore_file and os.path.exists(os.path.join(args.checkpoint_restore_file, ".coach_checkpoint")):
        yield "-crf needs a checkpoint, not a directory of checkpoints: use -crd for the newest checkpoint"


def refuse_budget(args: argparse.Namespace, what: str) -> None:
    """Raise an error if ``--budget`` is given. :param what: the reason, and what to do instead"""
    if args.budget:
        raise CoachError(f"--budget: {what}")


def refuse_several(args: argparse.Namespace, command: str) -> None:
    """Raise an error if flags of a command that needs one run select several runs, or only a list."""
    if args.seeds or args.list is not None:
        raise CoachError(f"{command} needs a single run: leave out --{'seeds' if args.seeds else 'list'}")
    if args.resume:
        refuse_group(args.resume, "use")


def was_started_as_a_part(args: argparse.Namespace) -> bool:
    """True if an orchestrator written for Intel's Coach has started this process as the trainer or a rollout worker."""
    return args.distributed_coach_run_type in (TRAINER, ROLLOUT_WORKER)


def wants_workers(args: argparse.Namespace) -> bool:
    """True if the flags ask for several workers on this machine."""
    is_distributed = args.distributed_coach or was_started_as_a_part(args)
    return bool(args.num_workers > 1 or args.evaluation_worker) and not is_distributed


def wants_rollout_workers(graph_manager: GraphManager, args: argparse.Namespace) -> bool:
    """True if the flags ask for several workers, but the agent cannot train on shared weights. Then the workers are
    rollout workers of a trainer.
    """
    if not wants_workers(args) or args.evaluation_worker:
        return False
    from rl_coach.orchestrators.asynchronous_workers import trains_asynchronously

    return not trains_asynchronously(graph_manager)


def unmet_by_workers(graph_manager: GraphManager, args: argparse.Namespace) -> Iterator[str]:
    """A message for each reason why workers with shared weights cannot train the preset."""
    import multiprocessing

    from rl_coach.orchestrators.asynchronous_workers import trains_asynchronously

    flag = f"-n {args.num_workers}" if args.num_workers > 1 else "-ew"
    if multiprocessing.parent_process() is not None:
        yield f"{flag}: a script that starts workers must do so under if __name__ == '__main__':"
    if not trains_asynchronously(graph_manager) and args.evaluation_worker:
        yield "-ew: workers that share weights need actor-critic or a similar agent; for other agents, leave out -ew"
    elif not trains_asynchronously(graph_manager):
        yield (
            f"{flag}: workers that share weights need actor-critic or a similar agent; for other agents, "
            f"act in several copies of the environment: -cp 'env_params.num_environments = {max(2, args.num_workers)}'"
        )
    if args.evaluation_worker and not graph_manager.evaluation_steps.num_steps:
        yield "-ew: evaluation_steps is 0, so there is nothing to evaluate: set evaluation_steps, or leave out -ew"


def is_policy(directory: str) -> bool:
    """True for the folder of an exported policy."""
    return os.path.isfile(os.path.join(directory, "policy.json"))


def require_run(directory: str) -> None:
    """Check that the user has given the directory of a run, not the name of a preset.

    :param directory: the text that the user has given
    :raises CoachError: if the text is the name of a preset
    """
    from rl_coach.command_line import preset_catalogue

    if os.path.exists(directory) or preset_catalogue.expand(directory) == directory:
        return
    name = preset_catalogue.name_of(directory)
    runs = sorted(glob.glob(os.path.join("experiments", name, "*", RECORD_FILE)), key=os.path.getmtime)
    if runs:
        raise CoachError(f"'{directory}' is a preset, not a run; did you mean {os.path.dirname(runs[-1])}?")
    raise CoachError(
        f"'{directory}' is a preset, not a run: train it first with {shell_command('coach', '-p', directory)}"
    )


def are_several(args: argparse.Namespace) -> bool:
    """True if the flags start or resume several runs."""
    return bool(args.seeds) or bool(args.resume and is_group(args.resume))
