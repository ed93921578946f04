"""The base class of orchestrators, which start the processes of a distributed run."""

from __future__ import annotations

from typing import NoReturn


class DeployParameters:
    """Base class of the settings of an orchestrator."""


class Deploy:
    """Base class of the orchestrators. A subclass starts and stops the processes of a run.

    :param deploy_parameters: settings of the orchestrator
    """

    def __init__(self, deploy_parameters: DeployParameters):
        self.deploy_parameters = deploy_parameters

    def setup(self) -> bool:
        """Create all objects that the processes need before they start.

        :return: True on success
        """
        self._is_undefined("setup")

    def deploy(self) -> bool:
        """Start the processes.

        :return: True on success
        """
        self._is_undefined("deploy")

    def _is_undefined(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")
