"""Methods of the graph manager of Intel's Coach, for programs that were written for Intel's Coach. Sessions and graph
files of TensorFlow 1 are not supported; the errors name the replacement.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any, Mapping, NoReturn, Union

from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, StepMethod, Transition
from rl_coach.data_stores.data_store import DataStore, DataStoreParameters, SyncFiles
from rl_coach.data_stores.data_store_impl import get_data_store
from rl_coach.memories.backend.memory import MemoryBackend
from rl_coach.memories.backend.memory_impl import get_memory_backend
from rl_coach.utils import CoachError


def take_deprecated_names(task: TaskParameters) -> None:
    """Read the old names that programs set directly in the ``__dict__`` of their task parameters."""
    task.checkpoint_restore_path = vars(task).pop("checkpoint_restore_dir", None) or task.checkpoint_restore_path


class CoachNames:
    """Methods that programs written for Intel's Coach call on a graph manager."""

    memory_backend: MemoryBackend | None = None

    def set_session(self: Any, sess: Any) -> None:
        """Do nothing, because there are no sessions. :param sess: anything"""
        for level in self.level_managers:
            level.set_session(sess)

    def create_session(self: Any, task_parameters: TaskParameters) -> None:
        """Create the graph if it does not exist. There are no sessions."""
        if self.top_level_manager is None:
            self.create_graph(task_parameters)

    def create_worker_or_parameters_server(self: Any, task_parameters: TaskParameters) -> NoReturn:
        """Always raises an error: parameter servers are not supported.

        :raises CoachError: always
        """
        raise CoachError(
            "TensorFlow 1's parameter servers are not supported: create_graph(task_parameters) builds a worker"
        )

    def save_graph(self: Any) -> NoReturn:
        """Always raises an error: files of TensorFlow 1 graphs are not supported.

        :raises CoachError: always
        """
        raise CoachError("TensorFlow 1's graph files are not supported: save_onnx_graph() writes the network as ONNX")

    def save_onnx_graph(self: Any) -> None:
        """Write the first agent's first network with its current weights to ``checkpoint/model.onnx``."""
        self.verify_graph_was_created()
        self.checkpoints.save_onnx_graph()

    # for trainers that receive single transitions, as in Intel's Coach

    def setup_memory_backend(self: Any) -> None:
        """Open the memory backend if the graph or the agent's memory has parameters of a memory backend."""
        of_memory = getattr(self.agent_params.memory, "memory_backend_params", None)
        parameters = getattr(self, "memory_backend_params", of_memory)
        if parameters is not None:
            self.memory_backend = get_memory_backend(parameters)

    def fetch_from_worker(self: Any, num_consecutive_playing_steps: Any = None) -> None:
        """Wait until the memory backend has the wanted number of transitions from rollout workers, and store them.
        Without a backend, this method has no effect.

        :param num_consecutive_playing_steps: steps or episodes; None for one step
        """
        if self.memory_backend is not None:
            for transition in self.memory_backend.fetch(num_consecutive_playing_steps):
                self.emulate_act_on_trainer(EnvironmentSteps(1), transition)

    def emulate_act_on_trainer(
        self: Any, steps: StepMethod, transition: Union[Transition, Mapping[str, Transition]]
    ) -> None:
        """Count and store a transition, as if this process had played it.

        :param steps: number of times that the transition is counted and stored
        :param transition: with several agents, a transition of each agent by its name
        """
        self.verify_graph_was_created()
        for _ in range(steps.num_steps):
            self.current_step_counter[EnvironmentSteps] += 1
            if self.top_level_manager.emulate_step_on_trainer(transition):
                self.current_step_counter[EnvironmentEpisodes] += 1

    def purge_memory_backend(self: Any) -> None:
        """Call ``memory_purge`` of the memory backend, if the backend has this method. The graph calls this after each
        checkpoint."""
        purge = getattr(self.memory_backend, "memory_purge", None)
        if purge is not None:
            purge()

    def get_data_store(self: Any, param: DataStoreParameters) -> DataStore:
        """Make the data store that the parameters describe."""
        return get_data_store(param)

    def signal_ready(self: Any) -> None:
        """Write a file to the directory of checkpoints to signal that the first checkpoint exists."""
        self._signal(SyncFiles.TRAINER_READY)

    def flush_finished(self: Any) -> None:
        """Write a file to the directory of checkpoints to signal that no more checkpoints follow."""
        self._signal(SyncFiles.FINISHED)

    def _signal(self: Any, file: SyncFiles) -> None:
        directory = self.task_parameters.checkpoint_save_dir
        if directory and os.path.isdir(directory):
            pathlib.Path(directory, file.value).touch()
            if self.data_store is not None:
                self.data_store.save_to_store()
