"""Conversion of a traced JAX function to ONNX nodes.

JAX traces each network to a program of a few dozen primitive operations, so this module supports all layers and heads.
If the batch size is a symbol in the trace, the graph accepts batches of any size.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy as np
import onnx
from jax.extend import core
from onnx import helper, numpy_helper

from rl_coach.architectures.onnx_model import broadcast_shape, keep_outputs
from rl_coach.architectures.onnx_predictor import OPSET
from rl_coach.utils import CoachError

END = np.iinfo(np.int64).max  # ONNX limits this number to the length of the axis, also if the batch size is unknown
# these operations matter for gradients and for XLA; they do not change the float32 numbers of a prediction
IDENTITIES = ("copy", "copy_p", "stop_gradient", "reduce_precision", "optimization_barrier")
NESTED_PROGRAMS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
ELEMENTWISE = {
    "abs": "Abs", "add": "Add", "ceil": "Ceil", "cos": "Cos", "div": "Div", "eq": "Equal", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual", "log": "Log",
    "logistic": "Sigmoid", "lt": "Less", "min": "Min", "mul": "Mul", "ne": "Equal Not", "neg": "Neg", "pow": "Pow",
    "rsqrt": "Sqrt Reciprocal", "sign": "Sign", "sin": "Sin", "sqrt": "Sqrt", "sub": "Sub", "tanh": "Tanh",
}  # fmt: skip
LOGICAL = {"and": "And", "or": "Or", "not": "Not"}
REDUCTIONS = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    :param name: the tensor's name in the graph
    :param shape: the shape in ONNX. A dimension may be 1 or missing although JAX has a larger one, because ONNX
        broadcasts
    """

    name: str
    shape: tuple


class OnnxGraph:
    """Converts the JAX operations of a function to the nodes of an ONNX graph.

    :param batch_input: the name of an input with the batch as its first dimension
    """

    def __init__(self, batch_input: str):
        self._batch_input = batch_input
        self._nodes: list[Any] = []
        self._constants: dict[tuple, tuple[str, np.ndarray]] = {}

    def add(self, program: Any, constants: Sequence, inputs: list[Value]) -> list[Value]:
        """Add the nodes of a program. :return: the outputs of the program, in their full shapes"""
        values = self._run(program, constants, inputs)
        shapes = [outcome.aval.shape for outcome in program.outvars]
        return [Value(self._full(value, shape), shape) for value, shape in zip(values, shapes)]

    def model(self, inputs: list[Any], outputs: list[tuple[Any, Value]]) -> onnx.ModelProto:
        """The whole graph, without nodes that no output needs.

        :param inputs: results of ``onnx.helper.make_tensor_value_info``
        :param outputs: pairs of a result of the same function and its ``Value``
        """
        for info, value in outputs:
            # a copy under the name of the output: one value may be several outputs
            self._nodes.append(helper.make_node("Identity", [value.name], [info.name]))
        constants = [numpy_helper.from_array(array, name) for name, array in self._constants.values()]
        graph = helper.make_graph(self._nodes, "network", inputs, [info for info, _ in outputs], constants)
        keep_outputs(graph, [info.name for info, _ in outputs])
        # the lowest version, because older releases of ONNX Runtime refuse models of a newer one
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))

    def _run(self, program: Any, constants: Sequence, inputs: list[Value]) -> list[Value]:
        known: dict[Any, Value] = dict(zip(program.invars, inputs))
        known |= {var: self._constant(np.asarray(array)) for var, array in zip(program.constvars, constants)}

        def value_of(atom: Any) -> Value:
            is_literal = isinstance(atom, core.Literal)
            return self._constant(np.asarray(atom.val, atom.aval.dtype)) if is_literal else known[atom]

        for equation in program.eqns:
            found = self._operation(equation, [value_of(atom) for atom in equation.invars])
            known |= dict(zip(equation.outvars, found))
        return [value_of(atom) for atom in program.outvars]

    def _operation(self, equation: Any, values: list[Value]) -> list[Value]:
        name = equation.primitive.name
        for nested in NESTED_PROGRAMS:
            if nested in equation.params:
                program = equation.params[nested]
                return self._run(getattr(program, "jaxpr", program), getattr(program, "consts", ()), values)
        if name in IDENTITIES:
            return values
        if name in ELEMENTWISE:
            for kind in ELEMENTWISE[name].split():
                values = [self._elementwise(kind, values)]
            return values
        handler: Callable | None = getattr(self, f"_jax_{name}", None)
        if name in LOGICAL and equation.outvars[0].aval.dtype == np.bool_:
            return [self._elementwise(LOGICAL[name], values)]
        if name in REDUCTIONS:
            inputs = [*self._inputs(equation, values), self._integers(equation.params["axes"])]
            return [self._node(REDUCTIONS[name], inputs, equation.outvars[0].aval.shape, keepdims=0)]
        if handler is None:
            raise CoachError(
                f"the network uses JAX's operation '{name}', which cannot be exported to ONNX: "
                f"use other operations, or use -f tensorflow"
            )
        found = handler(equation, values)
        return found if isinstance(found, list) else [found]

    def _node(self, kind: str, inputs: list[str], shape: tuple, **attributes: Any) -> Value:
        name = f"value_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return Value(name, tuple(shape))

    def _constant(self, array: np.ndarray) -> Value:
        # with type and shape, because the integer 0 and the float 0.0 have the same bytes
        key = (array.dtype.str, array.shape, array.tobytes())
        name, _ = self._constants.setdefault(key, (f"constant_{len(self._constants)}", array))
        return Value(name, array.shape)

    def _integers(self, numbers: Sequence) -> str:
        return self._constant(np.array(numbers, np.int64)).name

    def _float(self, number: float) -> Value:
        return self._constant(np.array(number, np.float32))

    def _elementwise(self, kind: str, values: list[Value], **attributes: Any) -> Value:
        return self._node(kind, [v.name for v in values], broadcast_shape([v.shape for v in values]), **attributes)

    def _full(self, value: Value, shape: tuple) -> str:
        """The name of a tensor with the value, expanded to the shape that JAX uses."""
        if value.shape == tuple(shape):
            return value.name
        sizes = [self._integers([n]) if isinstance(n, int) else self._batch_size() for n in shape]
        target = self._node("Concat", sizes, (len(shape),), axis=0) if sizes else Value(self._integers([]), (0,))
        return self._node("Expand", [value.name, target.name], shape).name

    def _inputs(self, equation: Any, values: list[Value]) -> list[str]:
        return [self._full(value, atom.aval.shape) for value, atom in zip(values, equation.invars)]

    def _batch_size(self) -> str:
        return self._node("Shape", [self._batch_input], (1,), start=0, end=1).name

    def _reshaped(self, name: str, shape: tuple) -> Value:
        if sum(not isinstance(n, int) for n in shape) > 1:
            raise CoachError(
                f"cannot export to ONNX: a network reshapes to {shape}, and several of these sizes depend on the batch "
                f"size: use -f tensorflow"
            )
        # -1: ONNX computes one size of the new shape itself, here the batch size
        target = [n if isinstance(n, int) else -1 for n in shape]
        return self._node("Reshape", [name, self._integers(target)], shape)

    def _jax_max(self, equation: Any, values: list[Value]) -> Value:
        for atom, other in zip(equation.invars, values[::-1]):
            if isinstance(atom, core.Literal) and np.ndim(atom.val) == 0 and atom.val == 0:
                return self._elementwise("Relu", [other])
        return self._elementwise("Max", values)

    def _jax_square(self, equation: Any, values: list[Value]) -> Value:
        return self._elementwise("Mul", [values[0], values[0]])

    def _jax_integer_pow(self, equation: Any, values: list[Value]) -> Value:
        return self._elementwise("Pow", [values[0], self._float(equation.params["y"])])

    def _jax_log1p(self, equation: Any, values: list[Value]) -> Value:
        # ONNX has neither log1p nor expm1
        return self._elementwise("Log", [self._elementwise("Add", [values[0], self._float(1)])])

    def _jax_expm1(self, equation: Any, values: list[Value]) -> Value:
        return self._elementwise("Sub", [self._elementwise("Exp", values), self._float(1)])

    def _jax_clamp(self, equation: Any, values: list[Value]) -> Value:
        low, x, high = values
        return self._elementwise("Min", [self._elementwise("Max", [x, low]), high])

    def _jax_select_n(self, equation: Any, values: list[Value]) -> Value:
        condition, if_false, if_true = values
        return self._elementwise("Where", [condition, if_true, if_false])

    def _jax_convert_element_type(self, equation: Any, values: list[Value]) -> Value:
        old, new = equation.invars[0].aval.dtype, np.dtype(equation.params["new_dtype"])
        if old == new:
            return values[0]
        return self._elementwise("Cast", values, to=helper.np_dtype_to_tensor_dtype(new))

    def _jax_iota(self, equation: Any, values: list[Value]) -> Value:
        dimension, shape = equation.params["dimension"], equation.params["shape"]
        row = np.arange(shape[dimension], dtype=equation.params["dtype"])
        # ONNX broadcasts the other dimensions
        return self._constant(row.reshape([-1] + [1] * (len(shape) - dimension - 1)))

    def _jax_dim_as_value(self, equation: Any, values: list[Value]) -> Value:
        """The batch size as a number. JAX compares indices with it."""
        dtype = helper.np_dtype_to_tensor_dtype(equation.outvars[0].aval.dtype)
        size = self._node("Squeeze", [self._batch_size()], ())
        return self._elementwise("Cast", [size], to=dtype)

    def _jax_broadcast_in_dim(self, equation: Any, values: list[Value]) -> Value:
        shape, places = equation.params["shape"], equation.params["broadcast_dimensions"]
        # only leading dimensions are new: ONNX adds them itself where the value is used
        if tuple(places) == tuple(range(len(shape) - len(places), len(shape))):
            return values[0]
        sizes = [1] * (len(places) - len(values[0].shape)) + list(values[0].shape)
        target: list = [1] * len(shape)
        for place, size in zip(places, sizes):
            target[place] = size
        return self._reshaped(values[0].name, tuple(target))

    def _jax_reshape(self, equation: Any, values: list[Value]) -> Value:
        return self._reshaped(self._inputs(equation, values)[0], equation.outvars[0].aval.shape)

    _jax_squeeze = _jax_expand_dims = _jax_reshape

    def _jax_transpose(self, equation: Any, values: list[Value]) -> Value:
        permutation = list(equation.params["permutation"])
        return self._node("Transpose", self._inputs(equation, values), equation.outvars[0].aval.shape, perm=permutation)

    def _jax_concatenate(self, equation: Any, values: list[Value]) -> Value:
        axis = equation.params["dimension"]
        return self._node("Concat", self._inputs(equation, values), equation.outvars[0].aval.shape, axis=axis)

    def _jax_stack(self, equation: Any, values: list[Value]) -> Value:
        axis, shape = equation.params["axis"], equation.outvars[0].aval.shape
        one, axes = (*shape[:axis], 1, *shape[axis + 1 :]), self._integers([axis])
        parts = [self._node("Unsqueeze", [name, axes], one).name for name in self._inputs(equation, values)]
        return self._node("Concat", parts, shape, axis=axis)

    def _jax_split(self, equation: Any, values: list[Value]) -> list[Value]:
        axis, start, parts = equation.params["axis"], 0, []
        (name,) = self._inputs(equation, values)
        for size, outcome in zip(equation.params["sizes"], equation.outvars):
            inputs = [name, *(self._integers([n]) for n in (start, start + size, axis))]
            parts.append(self._node("Slice", inputs, outcome.aval.shape))
            start += size
        return parts

    def _jax_slice(self, equation: Any, values: list[Value]) -> Value:
        starts, limits = equation.params["start_indices"], equation.params["limit_indices"]
        strides = equation.params["strides"] or [1] * len(starts)
        ends = [n if isinstance(n, int) else END for n in limits]
        inputs = [self._integers(numbers) for numbers in (starts, ends, range(len(starts)), strides)]
        return self._node("Slice", [*self._inputs(equation, values), *inputs], equation.outvars[0].aval.shape)

    def _jax_dynamic_slice(self, equation: Any, values: list[Value]) -> Value:
        """A block of an array, such as ``x[0]``. Its position is a tensor of the graph. JAX keeps positions within the
        array.
        """
        sizes = [n if isinstance(n, int) else END for n in equation.params["slice_sizes"]]
        x, *places = self._inputs(equation, values)
        whole = [self._node("Cast", [place], (), to=onnx.TensorProto.INT64).name for place in places]
        first = [self._node("Unsqueeze", [place, self._integers([0])], (1,)).name for place in whole]
        starts = self._node("Concat", first, (len(first),), axis=0).name
        ends = self._node("Add", [starts, self._integers(sizes)], (len(first),)).name
        return self._node("Slice", [x, starts, ends], equation.outvars[0].aval.shape)

    def _jax_gather(self, equation: Any, values: list[Value]) -> Value:
        """Indexing that returns one block of an array, such as ``x[:, i]``."""
        where, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
        if len(equation.invars[1].aval.shape) != 1 or where.operand_batching_dims:
            raise CoachError("a network indexes with an array, which cannot be exported: use -f tensorflow")
        x, indices = self._inputs(equation, values)
        starts = self._node("Cast", [indices], (), to=onnx.TensorProto.INT64).name
        lengths = self._integers([sizes[axis] for axis in where.start_index_map])
        ends = self._node("Add", [starts, lengths], ()).name
        block = self._node("Slice", [x, starts, ends, self._integers(where.start_index_map)], sizes)
        return self._reshaped(block.name, equation.outvars[0].aval.shape)

    def _jax_argmax(self, equation: Any, values: list[Value]) -> Value:
        (axis,), shape = equation.params["axes"], equation.outvars[0].aval.shape
        # cast, because ArgMax of ONNX always returns int64
        index = self._node("ArgMax", self._inputs(equation, values), shape, axis=axis, keepdims=0)
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(equation.params["index_dtype"]))
        return self._node("Cast", [index.name], shape, to=dtype)

    def _jax_cumsum(self, equation: Any, values: list[Value]) -> Value:
        inputs = [*self._inputs(equation, values), self._constant(np.array(equation.params["axis"])).name]
        return self._node("CumSum", inputs, values[0].shape, reverse=int(equation.params["reverse"]))

    def _jax_dot_general(self, equation: Any, values: list[Value]) -> Value:
        numbers, shape = equation.params["dimension_numbers"], equation.outvars[0].aval.shape
        inputs = self._inputs(equation, values)
        left, right = (len(atom.aval.shape) for atom in equation.invars)
        if right == 2 and numbers == (((left - 1,), (0,)), ((), ())):
            return self._node("MatMul", inputs, shape)
        return self._node("Einsum", inputs, shape, equation=_einsum(numbers, left, right))

    def _jax_conv_general_dilated(self, equation: Any, values: list[Value]) -> Value:
        p = equation.params
        numbers, shape = p["dimension_numbers"], equation.outvars[0].aval.shape
        if p["batch_group_count"] != 1 or any(n != 1 for n in p["lhs_dilation"]):
            raise CoachError("a network has a transposed convolution, which cannot be exported: use -f tensorflow")
        x, kernel = self._inputs(equation, values)
        # ONNX has the channels before height and width, the networks have them last
        x = self._node("Transpose", [x], (), perm=list(numbers.lhs_spec)).name
        kernel = self._node("Transpose", [kernel], (), perm=list(numbers.rhs_spec)).name
        # ONNX wants the paddings before all axes first, then the paddings after them
        pads = [before for before, _ in p["padding"]] + [after for _, after in p["padding"]]
        result = self._node(
            "Conv", [x, kernel], (), strides=list(p["window_strides"]), pads=pads, dilations=list(p["rhs_dilation"]),
            group=p["feature_group_count"],
        )  # fmt: skip
        return self._node("Transpose", [result.name], shape, perm=[int(n) for n in np.argsort(numbers.out_spec)])


def _einsum(dimension_numbers: Any, left_rank: int, right_rank: int) -> str:
    """The einsum equation of a product. The result has the batched dimensions first, then the rest of the left operand,
    then the rest of the right operand.
    """
    (left_contracted, right_contracted), (left_batched, right_batched) = dimension_numbers
    left = list(string.ascii_lowercase[:left_rank])
    right = list(string.ascii_uppercase[:right_rank])
    for i, j in [*zip(left_contracted, right_contracted), *zip(left_batched, right_batched)]:
        right[j] = left[i]
    batched = [left[i] for i in left_batched]
    summed = [left[i] for i in left_contracted]
    kept = [letter for letter in left + right if letter not in batched + summed]
    return f"{''.join(left)},{''.join(right)}->{''.join(batched + kept)}"
