"""Traced functions that are shared by all callers with an equal graph.

XLA keeps compiled code until the process ends, about 7 MB for a training step. XLA compiles each function, also if it
has compiled an equal graph before. Therefore this module first looks for a function with an equal graph.
"""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Iterable

from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef

# never emptied, because XLA keeps the compiled code until the process ends
_shared: dict[bytes, Any] = {}


def shared(function: Any, is_compiled: bool) -> Any:
    """The first function of this process with a graph that equals the graph of ``function``. Call the result with the
    tensors that ``function`` has captured.

    :param function: a concrete function
    :param is_compiled: True if XLA compiles the function
    """
    key = fingerprint(function.graph.as_graph_def()) + bytes([is_compiled])
    return _shared.setdefault(key, function.inference_fn)


def fingerprint(graph: GraphDef) -> bytes:
    """A digest of a graph's operations. It does not depend on names, because Keras and TensorFlow give equal graphs
    different names.
    """
    functions = {function.signature.name: function for function in graph.library.function}
    known: dict[str, bytes] = {}

    def of_function(name: str) -> bytes:
        if name not in known:
            function = functions[name]
            arguments = [argument.name for argument in function.signature.input_arg]
            known[name] = _digest(arguments, function.node_def, of_function, _ends(function))
        return known[name]

    return _digest((), graph.node, of_function, ())


def _ends(function: FunctionDef) -> Iterable[tuple[str, str]]:
    """The outputs of a function as pairs (output name, node name), then its attributes."""
    yield from ((argument.name, function.ret[argument.name]) for argument in function.signature.output_arg)
    yield from (("", f"{name}={function.attr[name]}") for name in sorted(function.attr))


def _digest(
    arguments: Iterable[str],
    nodes: Iterable[NodeDef],
    of_function: Callable[[str], bytes],
    ends: Iterable[tuple[str, str]],
) -> bytes:
    nodes = list(nodes)
    names = [*arguments, *(node.name for node in nodes)]
    numbers = {name: str(number) for number, name in enumerate(names)}
    digest = hashlib.sha256()
    for node in nodes:
        copy = NodeDef(op=node.op, device=node.device, input=[_renamed(source, numbers) for source in node.input])
        for name, value in node.attr.items():
            if name != "_class":  # this attribute only names another node
                copy.attr[name].CopyFrom(_without_names(value, of_function))
        digest.update(copy.SerializeToString(deterministic=True))
    for _, source in ends:
        digest.update(_renamed(source, numbers).encode())
    return digest.digest()


def _renamed(source: str, numbers: dict[str, str]) -> str:
    """An input such as ``^name`` or ``name:output:0``, with the name replaced by the node's number."""
    mark = "^" if source.startswith("^") else ""
    name, colon, output = source.removeprefix("^").partition(":")
    return f"{mark}{numbers.get(name, name)}{colon}{output}"


def _without_names(value: AttrValue, of_function: Callable[[str], bytes]) -> AttrValue:
    if not value.HasField("func"):
        return value
    anonymous = AttrValue()
    anonymous.CopyFrom(value)
    anonymous.func.name = of_function(value.func.name).hex()
    return anonymous
