"""The inputs of a network. They are the same on all frameworks."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass
from typing import Any

from rl_coach.architectures import schemes
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Conv2d
from rl_coach.base_parameters import EmbedderScheme, NetworkParameters
from rl_coach.spaces import ActionMaskSpace, PlanarMapsObservationSpace, Space, SpacesDefinition, VectorObservationSpace
from rl_coach.utils import CoachError, choose_from, did_you_mean

logger = logging.getLogger("rl_coach")

_DEFAULT_NAME = "observation"  # the name in the parameters of Coach's agents
_NO_OBSERVATIONS = ("action", "goal")

EMBEDDERS: dict[str, dict] = {
    "image": schemes.IMAGE_EMBEDDER,
    "vector": schemes.VECTOR_EMBEDDER,
    "tensor": schemes.TENSOR_EMBEDDER,
}


@dataclass(frozen=True)
class NetworkInput:
    """An input of a network.

    :param shape: the shape of one row
    :param kind: ``'image'``, ``'vector'`` or ``'tensor'``; it determines the default scale and the layers of a scheme
    """

    shape: tuple[int, ...]
    kind: str

    @classmethod
    def named(cls, name: str, spaces: SpacesDefinition, network: str) -> NetworkInput:
        """The input with the given name: an observation, the goal or the action.

        :param spaces: the agent's spaces
        :param network: the network's name, for messages
        :raises CoachError: if the input does not exist
        """
        space = _space(name, spaces, network)
        return cls(tuple(int(n) for n in space.shape), _kind(space))

    def normalized(self, ops: Any, x: Any, embedder: InputEmbedderParameters) -> Any:
        """Rescale ``x``: apply the embedder's divisor, offset and limits.

        :param ops: the framework's array operations
        """
        if embedder.input_rescaling.get(self.kind, 1.0) != 1.0:
            x = x / embedder.input_rescaling[self.kind]
        if embedder.input_offset.get(self.kind, 0.0) != 0.0:
            x = x - embedder.input_offset[self.kind]
        return x if embedder.input_clipping is None else ops.clip(x, *embedder.input_clipping)

    def layers(self, embedder: InputEmbedderParameters) -> list:
        """The layers that an embedder applies to this input.

        :raises CoachError: if the embedder's scheme does not exist for this kind of input
        """
        scheme, known = embedder.scheme, EMBEDDERS[self.kind]
        if isinstance(scheme, EmbedderScheme) and scheme not in known:
            raise CoachError(
                f"an input of the shape {self.shape} cannot have the scheme {scheme.name}: set scheme to a list of "
                f"layers, or add an ObservationRGBToYFilter before a filter that stacks images"
            )
        return schemes.resolve_layers(embedder, known)

    def is_too_small(self, embedder: InputEmbedderParameters) -> bool:
        """True if the input is an image and becomes smaller than a kernel of the embedder's convolutions."""
        if self.kind != "image":
            return False
        size = min(self.shape[:2])
        for layer in self.layers(embedder):
            if isinstance(layer, Conv2d):
                if size < layer.kernel_size:
                    return True
                size = (size - layer.kernel_size) // layer.strides + 1
        return False


def embed_what_is_there(networks: dict[str, NetworkParameters], spaces: SpacesDefinition) -> None:
    """Add missing embedders. If a network has no embedder for any observation of the environment, each observation gets
    one.

    This is for presets and agents that expect one observation with the name ``'observation'``: environments with
    several observations use other names. The function logs a warning about the change.

    :param networks: the agent's networks by name, changed in place
    :param spaces: the agent's spaces
    """
    # a mask limits the choice of actions, and is not embedded
    there = [name for name, space in spaces.state.sub_spaces.items() if not isinstance(space, ActionMaskSpace)]
    for network, parameters in networks.items():
        embedders = parameters.input_embedders_parameters
        absent = sorted(name for name in embedders if name not in _NO_OBSERVATIONS)
        if not absent or not spaces.state.sub_spaces.keys().isdisjoint(absent) or not there:
            continue
        if any(name != _DEFAULT_NAME and did_you_mean(name, there) for name in absent):
            continue  # the user probably mistyped a name: a later error message names it
        pattern = embedders[absent[0]]
        others = {name: embedder for name, embedder in embedders.items() if name in _NO_OBSERVATIONS}
        inputs = {name: NetworkInput.named(name, spaces, network) for name in there}
        own = {name: _adapted(pattern, given) for name, given in inputs.items()}
        parameters.input_embedders_parameters = own | others
        described = ", ".join(_described(name, inputs[name], own[name], pattern) for name in there)
        logger.warning(
            "network '%s' embeds %s, but the environment has no such observation: each observation of the "
            "environment gets an embedder: %s",
            network, ", ".join(map(repr, absent)), described,
        )  # fmt: skip


def _adapted(pattern: InputEmbedderParameters, given: NetworkInput) -> InputEmbedderParameters:
    """A copy of an embedder's settings. If the input is too small for the scheme, the copy has the smallest scheme."""
    # a copy for each observation, because the scheme may be changed for one of them
    embedder = copy.deepcopy(pattern)
    if given.is_too_small(embedder):
        embedder.scheme = EmbedderScheme.Shallow
    return embedder


def _described(
    name: str, given: NetworkInput, embedder: InputEmbedderParameters, pattern: InputEmbedderParameters
) -> str:
    if embedder.scheme == pattern.scheme:
        return f"'{name}' ({given.kind})"
    height, width = given.shape[:2]
    return f"'{name}' ({given.kind} of {height} x {width}, which is small: scheme Shallow)"


def embedded_names(parameters: NetworkParameters, network: str) -> list[str]:
    """The names of the inputs with an embedder, in the order in which the embeddings are joined.

    :param network: the network's name, for messages
    :raises CoachError: if the network has no inputs
    """
    if not parameters.input_embedders_parameters:
        raise CoachError(f"network '{network}' has no inputs: set input_embedders_parameters")
    return sorted(parameters.input_embedders_parameters)  # this order decides which weights belong to which input


def _space(name: str, spaces: SpacesDefinition, network: str) -> Space:
    if name == "action":
        return spaces.action
    if name == "goal" and spaces.goal is not None:
        return spaces.goal
    if name in spaces.state:
        return spaces.state[name]
    known = [*spaces.state.sub_spaces, *([] if spaces.goal is None else ["goal"]), "action"]
    suggestion = choose_from(name, known)
    raise CoachError(f"network '{network}' embeds '{name}', but no observation has this name{suggestion}")


def _kind(space: Space) -> str:
    if isinstance(space, PlanarMapsObservationSpace) and space.num_dimensions == 3:
        return "image"
    return "vector" if isinstance(space, VectorObservationSpace) or space.num_dimensions <= 1 else "tensor"
