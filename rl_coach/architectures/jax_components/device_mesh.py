"""The devices that share a computation."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rl_coach.utils import CoachError


class DeviceMesh:
    """The first devices of JAX, which share a computation. A device has a part of an array or the whole array.

    :param num_devices: the number of devices
    :ivar everywhere: the sharding of an array that each device has as a whole
    :raises CoachError: if JAX has fewer devices
    """

    def __init__(self, num_devices: int):
        available = jax.devices()
        if num_devices > len(available):
            found = "one device" if len(available) == 1 else f"{len(available)} devices"
            raise CoachError(
                f"num_devices is {num_devices}, but JAX has only {found} ({available[0].platform}): use fewer"
            )
        self.num_devices = num_devices
        self._mesh = Mesh(np.array(available[:num_devices]), ("parts",))
        self.everywhere = NamedSharding(self._mesh, PartitionSpec())

    def divided(self, axis: int = 0) -> NamedSharding:
        """The sharding of an array that is divided along an axis. The number of devices must divide the axis'
        length.
        """
        return NamedSharding(self._mesh, PartitionSpec(*[None] * axis, "parts"))
