"""Named schemes, and the list of layers for each name."""

from __future__ import annotations

from typing import Any

from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, LayerNorm
from rl_coach.base_parameters import EmbedderScheme, MiddlewareScheme
from rl_coach.utils import CoachError

VECTOR_EMBEDDER = {
    EmbedderScheme.Empty: [],
    EmbedderScheme.Shallow: [Dense(128)],
    EmbedderScheme.Medium: [Dense(256)],
    EmbedderScheme.Deep: [Dense(128), Dense(128), Dense(128)],
}
IMAGE_EMBEDDER = {
    EmbedderScheme.Empty: [],
    EmbedderScheme.Shallow: [Conv2d(32, 3, 1)],
    EmbedderScheme.Medium: [Conv2d(32, 8, 4), Conv2d(64, 4, 2), Conv2d(64, 3, 1)],
    EmbedderScheme.Deep: [
        Conv2d(32, 5, 2),
        Conv2d(32, 3, 1),
        Conv2d(64, 3, 2),
        Conv2d(64, 3, 1),
        Conv2d(128, 3, 2),
        Conv2d(128, 3, 1),
        Conv2d(256, 3, 2),
        Conv2d(256, 3, 1),
    ],
}
TENSOR_EMBEDDER: dict = {EmbedderScheme.Empty: []}
MIDDLEWARE = {
    MiddlewareScheme.Empty: [],
    MiddlewareScheme.Shallow: [Dense(64)],
    MiddlewareScheme.Medium: [Dense(512)],
    MiddlewareScheme.Deep: [Dense(128), Dense(128), Dense(128)],
}


def resolve_layers(parameters: Any, schemes: dict) -> list:
    """The layers of an embedder or a middleware, with activations, batch normalisation and dropout.

    Each layer is followed by the batch normalisation, activation and dropout of ``parameters``. If a ``LayerNorm``
    follows the layer, they come after the ``LayerNorm``. If a ``BatchnormActivationDropout`` of the scheme follows the
    layer, nothing is added. ``parameters.dense_layer`` replaces ``Dense``.

    :param schemes: the lists of layers by scheme, for this kind of input
    :raises CoachError: if ``schemes`` does not have the scheme of ``parameters``
    """
    scheme = parameters.scheme
    if isinstance(scheme, (list, tuple)):
        layers = list(scheme)
    elif scheme in schemes:
        layers = schemes[scheme]
    else:
        raise CoachError(f"{parameters.name} has no scheme {scheme}: give a list of layers instead")
    default = BatchnormActivationDropout(parameters.batchnorm, parameters.activation_function, parameters.dropout_rate)
    return with_activations(layers, default, parameters.dense_layer)


def with_activations(layers: list, default: BatchnormActivationDropout, dense_layer: Any) -> list:
    """Add ``default`` after each layer, and replace ``Dense`` with ``dense_layer``; see ``resolve_layers``."""
    resolved: list = []
    for layer, following in zip(layers, [*layers[1:], None]):
        if isinstance(layer, Dense) and dense_layer is not None:
            layer = dense_layer(layer.units)
        resolved.append(layer)
        is_activation = isinstance(layer, BatchnormActivationDropout)
        if not is_activation and not isinstance(following, (BatchnormActivationDropout, LayerNorm)):
            resolved.append(default)
    return resolved
