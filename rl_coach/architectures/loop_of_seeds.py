"""The compiled loop of a seed that is computed by another process, in one program with the loops of other seeds."""

from __future__ import annotations

import socket
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rl_coach.architectures.compiled_loop import Plan, Played
from rl_coach.architectures.learner import Learner
from rl_coach.filters.pure import PureFilters
from rl_coach.utilities.errors import TrainingError

# this process does not have the carry, so any object serves
_CARRY = {"is": "in the other process"}


class LoopOfSeeds:
    """The compiled loop of one seed, with the methods of ``JaxCompiledLoop``. Another process holds the networks, the
    memory and the environments of all seeds. It sends the variables of the networks on request.

    :param address: the other process' socket
    :param name: the name of the seed
    :param learner: the learner of the seed's networks
    :param network_filters: the pre-network filters of the seed
    :raises TrainingError: if the other process has ended; each method may raise this
    """

    num_devices = 1

    def __init__(self, address: str, name: str, learner: Learner, network_filters: PureFilters):
        self._learner, self._networks, self._network_filters = learner, learner.networks, network_filters
        self._versions: dict[str, int] = {}  # of the variables that the other process has
        self._num_calls = 0
        own = socket.socket(socket.AF_UNIX)
        try:
            own.connect(address)
        except OSError as error:
            raise _lost() from error
        self._other = Connection(own.detach())  # which closes the file descriptor from now on
        self._tell(name)

    def agreed_steps(self, steps: int, place: int) -> int:
        """The number of steps that the next call makes, the same for all seeds. Waits until all seeds have asked, and
        until no seed is behind this one.

        :param steps: the largest number that this seed wants
        :param place: number of steps of the run before this call
        """
        return self._ask("agree", steps, place)

    def begin(self, seed: int) -> Any:
        """An empty memory, and an episode that begins in each copy of the environment."""
        self._ask("begin", seed, {name: network.updates for name, network in self._networks.items()})
        return _CARRY

    def begin_episodes(self, carry: Any) -> Any:
        """Begin an episode in each copy, whether or not the last one has ended."""
        self._ask("begin_episodes")
        return carry

    def run(self, carry: Any, plan: Plan) -> tuple[Any, int]:
        """Ask for the planned work. The other process starts as soon as all seeds have asked.

        :return: an object for ``read``
        """
        self._tell("run", plan, self._changed_variables())
        self._num_calls += 1
        return carry, self._num_calls

    def read(self, played: int) -> Played:
        """The record of the oldest call that has not been read; waits until it is done."""
        record = self._ask("read")
        # the other process knows the names once it has traced its first call
        if played == 1:
            self._learner.output_names = self._ask("output_names")
        return record

    def take_results(self, carry: Any) -> None:
        """Bring variables and statistics into the networks and filters of this process."""
        variables, statistics = self._ask("results")
        for name, network in self._networks.items():
            network.hold(variables[name])
            # these variables came from the other process, so that the next call need not send them back
            self._versions[name] = network.version
        if statistics:
            self._network_filters.take(statistics)

    def leaves(self, carry: Any) -> list[np.ndarray]:
        """The arrays of the carry, for a checkpoint."""
        return self._ask("leaves")

    def with_leaves(self, carry: Any, leaves: list[np.ndarray]) -> Any:
        """Continue with other arrays.

        :raises ValueError: if the number of arrays or a shape does not fit
        """
        self._ask("set_leaves", leaves)
        return carry

    def _changed_variables(self) -> dict[str, list[np.ndarray]] | None:
        """The variables of all networks, if any has changed since the last exchange with the other process."""
        versions = {name: network.version for name, network in self._networks.items()}
        if versions == self._versions:
            return None
        self._versions = versions
        return {name: [np.asarray(one) for one in network.variables] for name, network in self._networks.items()}

    def _tell(self, *message: Any) -> None:
        try:
            self._other.send(message)
        except OSError as error:
            raise _lost() from error

    def _ask(self, *message: Any) -> Any:
        self._tell(*message)
        try:
            answer = self._other.recv()
        except (EOFError, OSError) as error:
            raise _lost() from error
        if isinstance(answer, ValueError):
            raise answer
        return answer


def _lost() -> TrainingError:
    return TrainingError(
        "the process that computes all seeds in one program has ended; its output is in the experiment's program.log"
    )
