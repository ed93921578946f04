"""Methods of a graph manager that programs written for Coach call, where TensorFlow 1 had sessions and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NoReturn

from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.base_parameters import TaskParameters
    from rl_coach.graph_managers.checkpointing import GraphCheckpoints


class CoachMethods:
    """Meaning of Coach's sessions and graph files today, or a hint at what took their place."""

    top_level_manager: Any
    checkpoints: GraphCheckpoints
    create_graph: Callable[..., Any]

    def verify_graph_was_created(self) -> None:
        """Create the graph with the default task parameters, if nobody has created it."""
        if self.top_level_manager is None:
            self.create_graph()

    def create_session(self, task_parameters: TaskParameters) -> None:
        """Create the graph, if nobody has created it; there is no session beside it."""
        if self.top_level_manager is None:
            self.create_graph(task_parameters)

    def create_worker_or_parameters_server(self, task_parameters: TaskParameters) -> NoReturn:
        """Tell that parameter servers are gone.

        :raises CoachError: always
        """
        raise CoachError("TensorFlow 1's parameter servers are gone: create_graph(task_parameters) builds a worker")

    def save_graph(self) -> NoReturn:
        """Tell that files of TensorFlow 1 graphs are gone.

        :raises CoachError: always
        """
        raise CoachError("TensorFlow 1's graph files are gone: save_onnx_graph() writes the network as ONNX")

    def save_onnx_graph(self) -> None:
        """Write the first agent's first network, as it is now, to ``model.onnx`` in the directory of checkpoints."""
        self.verify_graph_was_created()
        self.checkpoints.save_onnx_graph()
