"""Array operations that add nodes to an ONNX graph. A pass with these operations records the network's graph."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rl_coach.architectures.onnx_model import broadcast_shape
from rl_coach.architectures.onnx_predictor import OPSET

IR_VERSION = 8
BATCH = "batch"
Shape = tuple[Any, ...]


def _with_other(kind: str) -> Callable[[OnnxTensor, Any], OnnxTensor]:
    """Make an operator that adds a node with two inputs. :param kind: the ONNX operator"""
    return lambda x, other: x.graph.elementwise(kind, x, other)


class OnnxTensor:
    """A float tensor of the graph.

    :param graph: the ``OnnxOps`` that made the tensor
    :param name: the tensor's name in the graph
    :param shape: the tensor's shape; ``'batch'`` stands for the number of rows
    """

    def __init__(self, graph: OnnxOps, name: str, shape: Shape):
        self.graph = graph
        self.name = name
        self.shape = shape

    def __getitem__(self, parts: int | tuple[slice, ...]) -> OnnxTensor:
        return self.graph.row(self, parts) if isinstance(parts, int) else self.graph.part(self, parts)

    def __rsub__(self, other: Any) -> OnnxTensor:
        return self.graph.elementwise("Sub", other, self)

    __add__, __sub__, __mul__, __truediv__ = map(_with_other, ("Add", "Sub", "Mul", "Div"))
    __ge__ = _with_other("GreaterOrEqual")
    __radd__, __rmul__ = __add__, __mul__


def _of_shape(kind: str) -> Callable[[OnnxOps, OnnxTensor], OnnxTensor]:
    """Make a method that adds a node with one input. The output has the shape of the input.

    :param kind: the ONNX operator
    """
    return lambda ops, x: ops._node(kind, [x], x.shape)


def _over_axis(kind: str) -> Callable[..., OnnxTensor]:
    """Make a method with an optional axis, by default the last. The output has the shape of the input.

    :param kind: the ONNX operator
    """
    return lambda ops, x, axis=-1: ops._node(kind, [x], x.shape, axis=axis)


def _of_axes(kind: str) -> Callable[..., OnnxTensor]:
    """Make a method that reduces one axis or several axes. :param kind: the ONNX operator"""

    def reduced(ops: OnnxOps, x: OnnxTensor, axis: int | tuple[int, ...], keepdims: bool = False) -> OnnxTensor:
        # the last axis first, because a removed axis changes the numbers of the axes behind it
        for each in sorted(axis, reverse=True) if isinstance(axis, tuple) else (axis,):
            shape = tuple(1 if i == each % len(x.shape) else size for i, size in enumerate(x.shape))
            x = ops._node(kind, [x, ops._integers([each])], shape)
            x = x if keepdims else ops.squeeze(x, each)
        return x

    return reduced


class OnnxOps:
    """Records one graph. Methods with names from ``keras.ops`` have the same meaning as there."""

    relu, tanh, sigmoid, softplus = map(_of_shape, ("Relu", "Tanh", "Sigmoid", "Softplus"))
    abs, cos, exp, log, selu, sin, sqrt = map(_of_shape, ("Abs", "Cos", "Exp", "Log", "Selu", "Sin", "Sqrt"))
    sign = _of_shape("Sign")
    softmax, log_softmax = map(_over_axis, ("Softmax", "LogSoftmax"))
    mean, sum, min, max = map(_of_axes, ("ReduceMean", "ReduceSum", "ReduceMin", "ReduceMax"))

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []

    def input(self, name: str, shape: Shape) -> OnnxTensor:
        """A new input of the graph."""
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return OnnxTensor(self, name, shape)

    def model(self, outputs: dict[str, OnnxTensor]) -> onnx.ModelProto:
        """Return the graph with these outputs, after ONNX has checked it."""
        infos = []
        for name, tensor in outputs.items():
            # a copy under the name of the output: one tensor may be several outputs
            self._nodes.append(helper.make_node("Identity", [tensor.name], [name]))
            infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, tensor.shape))
        graph = helper.make_graph(self._nodes, "network", self._inputs, infos, self._constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="rl_coach"
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def include(self, model: onnx.ModelProto, x: OnnxTensor, given: Mapping[str, Any]) -> OnnxTensor:
        """Add the nodes of another model to this graph, and return the model's output.

        :param model: a model with the input ``x``, an input for each name in ``given``, and the output ``y``
        :param x: the tensor for the input ``x``
        :param given: values for the other inputs, by name
        """
        # names are unique in a graph, and one model may be included several times
        prefix = f"{self._new_name()}/"
        names = {"x": x.name} | {name: one.name for name, one in given.items() if isinstance(one, OnnxTensor)}

        def renamed(name: str) -> str:
            return names.get(name, name and prefix + name)

        for node in model.graph.node:
            copied = onnx.NodeProto()
            copied.CopyFrom(node)
            copied.name = renamed(node.name)
            copied.input[:], copied.output[:] = map(renamed, node.input), map(renamed, node.output)
            self._nodes.append(copied)
        for constant in model.graph.initializer:
            if constant.name not in names:
                self._constants.append(numpy_helper.from_array(numpy_helper.to_array(constant), renamed(constant.name)))
        sizes = [dimension.dim_value for dimension in model.graph.output[0].type.tensor_type.shape.dim]
        return OnnxTensor(self, renamed("y"), (BATCH, *sizes[1:]))

    def convert_to_tensor(self, x: Any) -> OnnxTensor:
        """Return ``x`` as a constant of the graph. A tensor of the graph is returned unchanged."""
        if isinstance(x, OnnxTensor):
            return x
        array = np.asarray(x, np.float32)
        return OnnxTensor(self, self._constant(array), array.shape)

    def elementwise(self, kind: str, x: Any, y: Any) -> OnnxTensor:
        """Add a node with two inputs, which are broadcast to one shape. :param kind: the ONNX operator"""
        x, y = self.convert_to_tensor(x), self.convert_to_tensor(y)
        return self._node(kind, [x, y], broadcast_shape([x.shape, y.shape]))

    def maximum(self, x: Any, y: Any) -> OnnxTensor:
        return self.elementwise("Max", x, y)

    def minimum(self, x: Any, y: Any) -> OnnxTensor:
        return self.elementwise("Min", x, y)

    def square(self, x: OnnxTensor) -> OnnxTensor:
        return self.elementwise("Mul", x, x)

    def elu(self, x: OnnxTensor, alpha: float = 1.0) -> OnnxTensor:
        return self._node("Elu", [x], x.shape, alpha=alpha)

    def leaky_relu(self, x: OnnxTensor, negative_slope: float = 0.2) -> OnnxTensor:
        return self._node("LeakyRelu", [x], x.shape, alpha=negative_slope)

    def clip(self, x: OnnxTensor, x_min: float, x_max: float) -> OnnxTensor:
        return self._node("Clip", [x, self.convert_to_tensor(x_min), self.convert_to_tensor(x_max)], x.shape)

    def cast(self, x: OnnxTensor, dtype: str) -> OnnxTensor:
        return self._node("Cast", [x], x.shape, to={"float32": TensorProto.FLOAT}[dtype])

    def cumsum(self, x: OnnxTensor, axis: int) -> OnnxTensor:
        return self._node("CumSum", [x, self._integers([axis % len(x.shape)])], x.shape)

    def stop_gradient(self, x: OnnxTensor) -> OnnxTensor:
        return x

    def matmul(self, x: OnnxTensor, y: OnnxTensor) -> OnnxTensor:
        return self._node("MatMul", [x, y], (*x.shape[:-1], y.shape[-1]))

    def concatenate(self, xs: Sequence[OnnxTensor], axis: int) -> OnnxTensor:
        shape = list(xs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in xs)
        return self._node("Concat", list(xs), tuple(shape), axis=axis)

    def repeat(self, x: OnnxTensor, repeats: int, axis: int) -> OnnxTensor:
        """Repeat each entry along an axis ``repeats`` times."""
        before, after = x.shape[1:axis], x.shape[axis + 1 :]
        single = self.reshape(x, (-1, *before, x.shape[axis], 1, *after))
        joined = self.concatenate([single] * repeats, axis + 1)
        return self.reshape(joined, (-1, *before, repeats * x.shape[axis], *after))

    def stack(self, xs: Sequence[OnnxTensor], axis: int) -> OnnxTensor:
        place = axis % (len(xs[0].shape) + 1)
        shape = (*xs[0].shape[:place], 1, *xs[0].shape[place:])
        return self.concatenate([self._node("Unsqueeze", [x, self._integers([place])], shape) for x in xs], place)

    def split(self, x: OnnxTensor, parts: int, axis: int) -> list[OnnxTensor]:
        shape = list(x.shape)
        shape[axis] //= parts
        names = [f"{self._new_name()}_{part}" for part in range(parts)]
        self._nodes.append(helper.make_node("Split", [x.name], names, axis=axis, num_outputs=parts))
        return [OnnxTensor(self, name, tuple(shape)) for name in names]

    def reshape(self, x: OnnxTensor, shape: Sequence[int]) -> OnnxTensor:
        """Change the shape of a tensor. A first size of -1 keeps the first dimension, the number of rows."""
        rows = x.shape[0] if shape[0] == -1 else shape[0]
        return self._node("Reshape", [x, self._integers(shape)], (rows, *shape[1:]))

    def part(self, x: OnnxTensor, parts: tuple[slice, ...]) -> OnnxTensor:
        """x[:, c:d, ...]. The slice of the first dimension is ignored: all rows are taken."""
        shape, places = [x.shape[0], *x.shape[1:]], []
        for axis, wanted in enumerate(parts[1:], start=1):
            start, stop, step = wanted.indices(x.shape[axis])
            places.append((start, stop, axis, step))
            shape[axis] = len(range(start, stop, step))
        return self._node("Slice", [x, *map(self._integers, zip(*places))], tuple(shape))

    def squeeze(self, x: OnnxTensor, axis: int) -> OnnxTensor:
        kept = [size for i, size in enumerate(x.shape) if i != axis % len(x.shape)]
        return self._node("Squeeze", [x, self._integers([axis])], tuple(kept))

    def row(self, x: OnnxTensor, index: int) -> OnnxTensor:
        """x[index]. The result has no first dimension."""
        return self.squeeze(self._node("Gather", [x, self._integers([index])], (1, *x.shape[1:]), axis=0), 0)

    def zeros_like(self, x: OnnxTensor) -> OnnxTensor:
        # the shape is read at run time, because the number of rows is not known before
        shape = self._node("Shape", [x], (len(x.shape),))
        return self._node("ConstantOfShape", [shape], x.shape)

    def ones_like(self, x: OnnxTensor) -> OnnxTensor:
        return self.zeros_like(x) + 1.0

    def conv(self, inputs: OnnxTensor, kernel: OnnxTensor, strides: int) -> OnnxTensor:
        """Convolve [B, height, width, channels] with a kernel [height, width, channels, filters], without padding."""
        batch, height, width, _ = inputs.shape
        size, filters = kernel.shape[0], kernel.shape[3]
        rows, columns = ((n - size) // strides + 1 for n in (height, width))
        x, k = self.transpose(inputs, (0, 3, 1, 2)), self.transpose(kernel, (3, 2, 0, 1))
        y = self._node("Conv", [x, k], (batch, filters, rows, columns), strides=[strides, strides])
        return self.transpose(y, (0, 2, 3, 1))

    def transpose(self, x: OnnxTensor, axes: Sequence[int]) -> OnnxTensor:
        return self._node("Transpose", [x], tuple(x.shape[axis] for axis in axes), perm=list(axes))

    def swapaxes(self, x: OnnxTensor, axis1: int, axis2: int) -> OnnxTensor:
        axes = list(range(len(x.shape)))
        axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
        return self.transpose(x, axes)

    def _node(self, kind: str, inputs: list[OnnxTensor], shape: Shape, **attributes: Any) -> OnnxTensor:
        name = self._new_name()
        self._nodes.append(helper.make_node(kind, [x.name for x in inputs], [name], **attributes))
        return OnnxTensor(self, name, shape)

    def _new_name(self) -> str:
        return f"tensor_{len(self._nodes)}"

    def _integers(self, values: Sequence[int]) -> OnnxTensor:
        return OnnxTensor(self, self._constant(np.asarray(values, np.int64)), (len(values),))

    def _constant(self, array: np.ndarray) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name
