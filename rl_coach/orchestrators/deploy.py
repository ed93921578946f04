"""Base of the orchestrators: what starts the parts of a distributed run."""

from __future__ import annotations

from typing import NoReturn


class DeployParameters:
    """Settings of an orchestrator; each adds its own."""


class Deploy:
    """Base of the orchestrators. A subclass brings up the parts of a run and takes them down.

    :param deploy_parameters: settings of the orchestrator
    """

    def __init__(self, deploy_parameters: DeployParameters):
        self.deploy_parameters = deploy_parameters

    def setup(self) -> bool:
        """Bring up what the parts need before they start.

        :return: True if that worked
        """
        self._is_undefined("setup")

    def deploy(self) -> bool:
        """Start the parts.

        :return: True if that worked
        """
        self._is_undefined("deploy")

    def _is_undefined(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")
