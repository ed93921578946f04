"""The checkpoints of a graph: their content and names, writing and removal, and the checks before a restore."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, NoReturn, Sequence

from rl_coach.base_parameters import TaskParameters
from rl_coach.checkpoint import (
    CHECKPOINT_DIRECTORY,
    CheckpointStateReader,
    checkpoint_name,
    find_checkpoint,
    keep_checkpoints,
    load_checkpoint,
    mark_best,
    save_checkpoint,
)
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TotalStepsCounter, TrainingSteps
from rl_coach.graph_managers.improvement import Improvement
from rl_coach.graph_managers.run_seeds import RunSeeds
from rl_coach.graph_managers.schedule_parameters import UNITS
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.policy.export import checkpoint_files, newest_model
from rl_coach.policy.files import MODEL_FILE
from rl_coach.runs.checkpoint_schedule import CheckpointSchedule
from rl_coach.runs.progress import Progress
from rl_coach.saver import SaverCollection
from rl_coach.utilities import files
from rl_coach.utilities.errors import refuse
from rl_coach.utils import CheckpointError, CoachError

SAVERS_DIRECTORY = "savers"
_SAVERS_PREFIX = "saved"
_CAUSES = ("framework", "agent", "observation space", "action space")
"""The order of the reasons why a checkpoint does not fit. Other spaces also cause other networks, so spaces come before
networks."""
FRAMEWORK = "framework"
MOVES = {"moves": True}
"""The entry in a manifest for a checkpoint that records the order of its networks' arrays. Any framework can read this
checkpoint."""


@dataclass
class GraphState:
    """The parts of a run that have a state.

    :param counters: the counters of each phase
    :param levels: the graph's levels, the top level first
    :param progress: the evaluations so far
    :param improvement: the part of the run after heatup: training and evaluation in turn
    :param seeds: the random streams
    """

    counters: Mapping[RunPhase, TotalStepsCounter]
    levels: Sequence[LevelManager]
    progress: Progress
    improvement: Improvement
    seeds: RunSeeds

    def get(self, reset_required: bool, force_next_reset: bool) -> dict[str, Any]:
        """The state of all parts, as nested dicts of arrays and plain values.

        :param reset_required: True if the next step begins an episode
        :param force_next_reset: True if the next reset also resets a simulator that could continue its episode
        """
        return {
            "counters": {
                phase.name: {unit.__name__: count for unit, count in counter.counters.items()}
                for phase, counter in self.counters.items()
                if phase is not RunPhase.WAITING  # nothing is counted in it
            },
            "reset_required": [reset_required, force_next_reset],
            "levels": {level.name: level.get_state() for level in self.levels},
            "progress": self.progress.get_state(),
            **self.improvement.get_state(),
            **self.seeds.get_state(),
        }

    def set(self, state: dict[str, Any]) -> None:
        """Restore the state of all parts. The next step must begin a new episode, except after ``resume_episode``."""
        for phase, counts in state["counters"].items():
            for unit, count in counts.items():
                self.counters[RunPhase[phase]][UNITS[unit]] = count
        for level in self.levels:
            level.set_state(state["levels"][level.name])
        self.improvement.set_state(state)
        self.progress.set_state(state["progress"])
        self.seeds.set_state(state)

    def resume_episode(self, state: dict[str, Any]) -> tuple[bool, bool]:
        """Continue the episode that was in progress when the state was saved. Call ``set`` before.

        :return: ``reset_required`` and ``force_next_reset``; no reset is required if the episode continues
        """
        is_over, is_forced = state["reset_required"]
        if is_over:
            return True, is_forced
        # the lowest level holds the environment; if the environment cannot continue, no level can
        levels = reversed(self.levels)
        is_resumed = all(level.resume_saved_episode(state["levels"][level.name]) for level in levels)
        if not is_resumed:
            screen.warning("the episode of the checkpoint cannot be continued: a new episode begins")
        return not is_resumed, not is_resumed


def lost_episode(state: dict[str, Any]) -> bool:
    """True if the state does not contain the episode that was in progress."""
    is_over, _ = state["reset_required"]
    return not is_over and any(level["episode"] is None for level in state["levels"].values())


def fits_of(levels: Iterable[LevelManager], task: TaskParameters) -> dict[str, str]:
    """The properties of a graph that a checkpoint must share: framework, agents, spaces, networks and so on.

    :return: descriptions by name
    """
    fits = {FRAMEWORK: task.framework_type.name}
    for level in levels:
        fits |= level.fits()
    return fits


def unmet_by(manifest: dict[str, Any], preset: str | None, fits: dict[str, str]) -> Iterator[str]:
    """The reasons why a checkpoint does not fit the graph. Each reason continues the sentence "the checkpoint …".

    :param manifest: the checkpoint's manifest
    :param preset: the name of the graph's preset, from ``preset_catalogue.name_of``; None for a graph without a preset
    :param fits: the result of ``fits_of`` for the graph
    """
    other, there = manifest.get("preset"), manifest.get("fits", {})
    if not isinstance(there, dict):
        yield f"is damaged: 'fits' in its manifest is {there!r}, not a JSON object"
        return
    moves = bool(manifest.get("moves"))
    if preset and other and preset != other:
        yield f"belongs to the preset {other}, not to {preset}: use -p {other}, with -cp and -lvl for other settings"
    for name in sorted({*fits, *there}, key=_importance):
        # each framework and each version of Coach may list the same layers in another order
        if moves and (name == FRAMEWORK or (name.startswith("network") and _has_equal_words(fits, there, name))):
            continue
        if not _is_same(fits.get(name), there.get(name)):
            was = f"has {there[name]} as its {name}" if name in there else f"has no {name}"
            is_here = f"here it is {fits[name]}" if name in fits else "here there is none"
            yield f"does not fit: it {was}, {is_here}"


def _is_same(here: str | None, there: Any) -> bool:
    """True for equal descriptions. Checkpoints of earlier versions do not contain the number of discrete actions."""
    return here == there or (here is not None and re.sub(r", num_actions=\d+\)$", ")", here) == there)


def _has_equal_words(one: dict[str, str], other: dict[str, str], name: str) -> bool:
    return name in one and name in other and sorted(one[name].split()) == sorted(other[name].split())


def _importance(name: str) -> tuple[int, str]:
    return next((i for i, start in enumerate(_CAUSES) if name.startswith(start)), len(_CAUSES)), name


class GraphCheckpoints:
    """Writes a graph's state to its checkpoint directory and reads it back.

    :param graph: the graph's name
    :param task: the task parameters, with the directory and the schedule of checkpoints, the preset and the framework
    :param counter: the training counters
    :param levels: the graph's levels
    :param advanced: returns the unit and the count of the run's progress for checkpoint names; see ``checkpoint_name``
    :param environment: a description of the environment for the manifest; None if there is none

    :ivar schedule: knows when the next checkpoint is due
    :ivar last_path: path of the newest checkpoint; None before the first checkpoint
    """

    def __init__(
        self,
        graph: str,
        task: TaskParameters,
        counter: TotalStepsCounter,
        levels: list[LevelManager],
        advanced: Callable[[], tuple[str, int]],
        environment: dict[str, Any] | None = None,
    ):
        self.schedule = CheckpointSchedule(
            counter, task.checkpoint_save_steps, task.checkpoint_save_episodes, task.checkpoint_save_secs
        )
        self.last_path: str | None = None
        self._graph, self._task, self._counter, self._levels = graph, task, counter, levels
        self._advanced, self._environment = advanced, environment
        # each function returns more files of a checkpoint, by path
        self._attachments: list[Callable[[dict[str, Any]], dict[str, bytes]]] = [self._exported, self._saved]
        self._next_number = 0
        self._told: set[str] = set()

    @property
    def directory(self) -> str:
        """The directory of checkpoints: ``checkpoint_save_dir``, or ``checkpoint/`` in the experiment directory if
        ``checkpoint_save_dir`` is None."""
        task = self._task
        return str(task.checkpoint_save_dir or os.path.join(str(task.experiment_path), CHECKPOINT_DIRECTORY))

    def save(
        self, state: dict[str, Any], reward: float | None, is_best: bool, keep: int, failed: bool = False
    ) -> str | None:
        """Write a checkpoint and remove old ones. A full disk does not end the run.

        :param state: the result of the graph's ``get_state``
        :param reward: reward of the last evaluation; None before the first
        :param is_best: True if no evaluation was better than the last evaluation
        :param keep: number of the newest checkpoints that are kept, in addition to the best; 0 keeps all
        :param failed: True if training has failed; then the state is saved for inspection, not as the newest checkpoint
        :return: the checkpoint's path; None if the checkpoint could not be written
        """
        try:
            path, attached = self._write(self.directory, state, reward, failed)
            if not failed:
                name = os.path.basename(path)
                for level in self._levels:
                    level.save_checkpoint(name)
                self._write_newest_model(attached)
                if is_best:
                    mark_best(self.directory, name)
                keep_checkpoints(self.directory, keep)
        except OSError as error:
            screen.warning(
                f"no checkpoint was saved in '{self.directory}': {error.strerror}; earlier checkpoints remain"
            )
            return None
        self.last_path = path
        if lost_episode(state):
            self._warn_once(
                "the episode in progress cannot be saved: a run that is resumed from this checkpoint begins a new "
                "episode"
            )
        return path

    def save_elsewhere(self, state: dict[str, Any], reward: float | None) -> NoReturn:
        """Write a checkpoint to the temporary directory, because the checkpoint directory cannot be written.

        :param state: the result of the graph's ``get_state``
        :param reward: reward of the last evaluation; None before the first
        :raises CheckpointError: always; the message contains the path of the checkpoint, or says that the temporary
            directory cannot be written either
        """
        trouble = f"no checkpoint could be written to '{self.directory}'"
        try:
            path, _ = self._write(tempfile.mkdtemp(prefix="coach-checkpoint-"), state, reward)
        except OSError as error:
            raise CheckpointError(
                f"{trouble}, nor to '{tempfile.gettempdir()}': {error.strerror}; the training since the last "
                f"checkpoint is lost"
            ) from error
        raise CheckpointError(f"{trouble}; the state was saved to '{path}'; restore it with -crd")

    def _write(
        self, directory: str, state: dict[str, Any], reward: float | None, failed: bool = False
    ) -> tuple[str, dict[str, bytes]]:
        """Write a checkpoint. :return: its path, and its attached files by path"""
        about, attached = self._about(reward), dict[str, bytes]()
        for attachment in [] if failed else self._attachments:
            attached |= attachment(about)
        manifest = {**about, "fits": fits_of(self._levels, self._task)}
        return save_checkpoint(directory, self._name(directory, failed), state, manifest, attached), attached

    def save_to(self, directory: str, state: dict[str, Any], reward: float | None) -> str:
        """Write a checkpoint to another directory, and delete older checkpoints there.

        :param directory: the directory
        :param state: the result of the graph's ``get_state``
        :param reward: reward of the last evaluation; None before the first
        :return: the checkpoint's path
        :raises OSError: if the checkpoint cannot be written
        """
        path, _ = self._write(directory, state, reward)
        keep_checkpoints(directory, 1)
        return path

    def load(self, path: str | None) -> tuple[str, dict[str, Any]]:
        """Read a checkpoint that fits the graph.

        :param path: a checkpoint, one of its files, or a directory of checkpoints (the newest is loaded); None uses
            the task's ``checkpoint_restore_path``
        :return: the checkpoint's path, and the state that was saved
        :raises CoachError: if the checkpoint does not exist, is damaged, belongs to another preset, or does not fit the
            graph
        """
        path = path or self._task.checkpoint_restore_path
        if path is None:
            raise CoachError("no checkpoint to restore: give its path, or set checkpoint_restore_path")
        path = find_checkpoint(path)
        state, manifest = load_checkpoint(path)
        unmet = unmet_by(manifest, self._task.preset, fits_of(self._levels, self._task))
        refuse(f"the checkpoint '{path}' {line}" for line in unmet)
        return path, state

    def restore_additions(self, path: str) -> None:
        """Let savers and agents read their additional files of a checkpoint. :param path: the checkpoint's path"""
        written = os.path.join(path, SAVERS_DIRECTORY)
        if self._savers is not None and os.path.isdir(written):
            self._savers.restore(None, os.path.join(written, _SAVERS_PREFIX))
        for level in self._levels:
            level.restore_checkpoint(os.path.dirname(path))

    def save_onnx_graph(self) -> None:
        """Write the first agent's first network to the directory of checkpoints, with its current weights."""
        os.makedirs(self.directory, exist_ok=True)
        self._write_newest_model(checkpoint_files(self._levels, self._about(None), with_networks=True)[0])

    def _exported(self, about: dict[str, Any]) -> dict[str, bytes]:
        """Files to deploy the policies; with ``export_onnx_graph`` also the networks."""
        exported, troubles = checkpoint_files(self._levels, about, self._task.export_onnx_graph)
        for trouble in troubles:
            self._warn_once(trouble)
        return exported

    def _saved(self, about: dict[str, Any]) -> dict[str, bytes]:
        """The files of savers."""
        if self._savers is None:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            self._savers.save(None, os.path.join(folder, _SAVERS_PREFIX))
            written = [file for file in pathlib.Path(folder).rglob("*") if file.is_file()]
            return {f"{SAVERS_DIRECTORY}/{file.relative_to(folder).as_posix()}": file.read_bytes() for file in written}

    @functools.cached_property
    def _savers(self) -> SaverCollection | None:
        """Savers of values that the graph's state does not contain; None if there are no such values."""
        found = SaverCollection()
        for saver in (saver for level in self._levels for saver in level.collect_savers()):
            if not saver.is_in_state:
                found.add(saver)
        return found if list(found) else None

    def _write_newest_model(self, attached: dict[str, bytes]) -> None:
        """Write the network's ONNX model to the path that programs written for Intel's Coach read."""
        model = newest_model(attached)
        if model is not None:
            with files.replaced(os.path.join(self.directory, MODEL_FILE)) as file:
                file.write(model)

    def _name(self, directory: str, failed: bool) -> str:
        """A checkpoint's name: the next free number, and the unit and count of the run's progress."""
        there = CheckpointStateReader(directory).get_all()
        number = self._next_number = max([self._next_number, *(c.num + 1 for c in there)])
        self._next_number += 1
        unit, count = self._advanced()
        name = checkpoint_name(number, count, unit)
        return name.replace(".ckpt", ".failed") if failed else name

    def _warn_once(self, warning: str) -> None:
        if warning not in self._told:
            self._told.add(warning)
            screen.warning(warning)

    def _about(self, reward: float | None) -> dict[str, Any]:
        """The part of the manifest that describes the run. :param reward: the reward of the last evaluation"""
        return {
            "graph": self._graph,
            "preset": self._task.preset,
            "framework": self._task.framework_type.name,
            "environment": self._environment,
            **MOVES,
            "steps": self._counter[EnvironmentSteps],
            "episodes": self._counter[EnvironmentEpisodes],
            "updates": self._counter[TrainingSteps],
            "evaluation_reward": reward,
        }
