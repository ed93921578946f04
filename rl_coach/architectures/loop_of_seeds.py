"""The compiled loop of one seed. Another process computes the loops of all seeds in one program."""

from __future__ import annotations

import socket
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from rl_coach.architectures.compiled_loop import Plan, Played
from rl_coach.architectures.learner import Learner
from rl_coach.filters.pure import PureFilters
from rl_coach.utilities.errors import TrainingError

# a placeholder, because only the other process has the carry
_CARRY = {"is": "in the other process"}


class LoopOfSeeds:
    """The compiled loop of one seed, with the methods of ``JaxCompiledLoop``. Another process computes the loops: it
    has the networks, memories and environments of all seeds. It sends the networks' variables when this process asks
    for them.

    :param address: the socket of the other process
    :param name: the name of the seed
    :param learner: the learner of the seed's networks
    :param network_filters: the pre-network filters of the seed
    :raises TrainingError: if the other process has ended; each method may raise this
    """

    num_devices = 1

    def __init__(self, address: str, name: str, learner: Learner, network_filters: PureFilters):
        self._learner, self._networks, self._network_filters = learner, learner.networks, network_filters
        self._versions: dict[str, int] = {}  # versions of the variables that the other process has
        self._num_calls = 0
        own = socket.socket(socket.AF_UNIX)
        try:
            own.connect(address)
        except OSError as error:
            raise _lost() from error
        self._other = Connection(own.detach())  # the connection now owns the file descriptor and closes it
        self._tell(name)

    def agreed_steps(self, steps: int, place: int) -> int:
        """The number of steps that the next call makes. It is the same for all seeds. The method waits until all seeds
        have asked, and until no seed has made fewer steps than this seed.

        :param steps: the largest number that this seed wants
        :param place: number of steps of the run before this call
        """
        return self._ask("agree", steps, place)

    def begin(self, seed: int) -> Any:
        """Begin with an empty memory and an episode in each copy of the environment.

        :return: a placeholder for the carry (the state of the loop)
        """
        self._ask("begin", seed, {name: network.updates for name, network in self._networks.items()})
        return _CARRY

    def begin_episodes(self, carry: Any) -> Any:
        """Begin an episode in each copy. Episodes in progress are cut off."""
        self._ask("begin_episodes")
        return carry

    def run(self, carry: Any, plan: Plan) -> tuple[Any, int]:
        """Ask for the planned steps and updates. The other process starts when all seeds have asked.

        :return: the carry, and an object for ``read``
        """
        self._tell("run", plan, self._changed_variables())
        self._num_calls += 1
        return carry, self._num_calls

    def read(self, played: int) -> Played:
        """Wait until the oldest call that has not been read is done. Return its record."""
        record = self._ask("read")
        # the other process knows the names after it has traced the first call
        if played == 1:
            self._learner.output_names = self._ask("output_names")
        return record

    def take_results(self, carry: Any) -> None:
        """Copy the variables and statistics of the other process to the networks and filters of this process."""
        variables, statistics = self._ask("results")
        for name, network in self._networks.items():
            network.hold(variables[name])
            # the other process already has these variables, so the next call need not send them
            self._versions[name] = network.version
        if statistics:
            self._network_filters.take(statistics)

    def leaves(self, carry: Any) -> list[np.ndarray]:
        """The arrays of the carry (the state of the loop), for a checkpoint."""
        return self._ask("leaves")

    def with_leaves(self, carry: Any, leaves: list[np.ndarray]) -> Any:
        """Replace the arrays of the carry. :raises ValueError: if their number or a shape does not fit"""
        self._ask("set_leaves", leaves)
        return carry

    def _changed_variables(self) -> dict[str, list[np.ndarray]] | None:
        """The variables of all networks; None if no variable has changed since the last exchange with the other
        process.
        """
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
        # the other process does not end if a checkpoint does not fit: the seed that restores it gets the error
        if isinstance(answer, ValueError):
            raise answer
        return answer


def _lost() -> TrainingError:
    return TrainingError(
        "the process that computes all seeds has ended: read its output in program.log in the experiment's directory"
    )
