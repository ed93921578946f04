"""A network as a complete ONNX model, with its weights as constants and its description as metadata."""

from __future__ import annotations

from typing import Any, Collection, Iterator, Mapping, Sequence

import numpy as np

from rl_coach.architectures.onnx_predictor import ExportedNetwork


def with_weights(
    exported: ExportedNetwork,
    weights: Sequence[np.ndarray],
    metadata: Mapping[str, str],
    outputs: Sequence[str] | None = None,
) -> bytes:
    """Return an ONNX model with the weights as constants (initialisers).

    :param exported: the graph with its weights as inputs
    :param weights: float32 arrays in the order of ``exported.weight_names``
    :param metadata: the model's ``metadata_props``
    :param outputs: names of the outputs to keep; None for all. Nodes and weights of other outputs are removed.
    :return: the serialised ``ModelProto``
    """
    import onnx  # imported here because the import is slow, and only needed to write a model

    model = onnx.load_from_string(exported.model)
    graph = model.graph
    if outputs is not None:
        keep_outputs(graph, outputs)
    needed = {name for node in graph.node for name in _names_read(node)} | {output.name for output in graph.output}
    values = dict(zip(exported.weight_names, exported.arranged(weights)))
    _replace(graph.input, [one for one in graph.input if one.name not in values and one.name in needed])
    graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        for name, array in values.items()
        if name in needed
    )
    onnx.helper.set_model_props(model, dict(metadata))
    return model.SerializeToString()


def hoist_transposes(model: Any, weights: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Change a graph so that it expects weights in transposed form, if it uses them only transposed. Without this, the
    graph transposes them at each prediction: for DQN's Nature network, this takes as long as all convolutions.

    :param model: the ``ModelProto``; its nodes and inputs are changed
    :param weights: the names of the inputs that may be transposed
    :return: the axes for ``numpy.transpose``, by the name of each weight that the graph now expects in transposed form
    """
    readers: dict[str, list] = {}
    for node in model.graph.node:
        for name in _names_read(node):
            readers.setdefault(name, []).append(node)
    axes: dict[str, tuple[int, ...]] = {}
    for given in model.graph.input:
        nodes = readers.get(given.name, [])
        permutations = {_permutation(node) for node in nodes}
        permutation = permutations.pop() if len(permutations) == 1 else None
        if given.name not in weights or permutation is None:
            continue
        axes[given.name] = permutation
        for node in nodes:
            # replaced by an identity, so that other nodes find the name; ONNX Runtime removes the identity
            node.op_type = "Identity"
            del node.attribute[:]
        sizes = [dimension.dim_value for dimension in given.type.tensor_type.shape.dim]
        for dimension, axis in zip(given.type.tensor_type.shape.dim, permutation):
            dimension.dim_value = sizes[axis]
    return axes


def _permutation(node: Any) -> tuple[int, ...] | None:
    """The permutation of a Transpose node; None for another node or if the node has no permutation."""
    if node.op_type != "Transpose" or not node.attribute:
        return None
    return tuple(node.attribute[0].ints)


def keep_outputs(graph: Any, outputs: Sequence[str]) -> None:
    """Remove all other outputs from a ``GraphProto``, with the nodes and constants that only these outputs need."""
    declared = {output.name: output for output in graph.output}
    _replace(graph.output, [declared[name] for name in outputs])
    needed = set(outputs)
    kept = []
    for node in reversed(graph.node):  # backwards: each node comes after the nodes that it depends on
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_names_read(node))
    _replace(graph.node, kept[::-1])
    _replace(graph.initializer, [constant for constant in graph.initializer if constant.name in needed])
    _replace(graph.value_info, [])


def broadcast_shape(shapes: Sequence[tuple]) -> tuple:
    """The shape of the result of an elementwise operation, by NumPy's rules. Dimensions may be symbols."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((n for n in sizes if not (isinstance(n, int) and n == 1)), 1) for sizes in zip(*padded))


def _names_read(node: Any) -> Iterator[str]:
    """The names that a node reads, also in graphs within the node such as the body of a loop."""
    yield from node.input
    for attribute in node.attribute:
        for inner in [attribute.g, *attribute.graphs]:
            for inner_node in inner.node:
                yield from _names_read(inner_node)
            yield from (output.name for output in inner.output)


def _replace(repeated: Any, items: list[Any]) -> None:
    # copied first, because emptying the field destroys its items
    copies = [type(item)() for item in items]
    for duplicate, item in zip(copies, items):
        duplicate.CopyFrom(item)
    del repeated[:]
    repeated.extend(copies)
