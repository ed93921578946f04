"""Networks on PyTorch. Users' modules can be parts of these networks."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import onnx
import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from rl_coach.architectures.array_components.layers import ArrayLayers
from rl_coach.architectures.array_components.network import ArrayNetwork
from rl_coach.architectures.array_components.onnx_ops import BATCH, OnnxOps
from rl_coach.architectures.initializers import Constant
from rl_coach.architectures.onnx_predictor import OPSET
from rl_coach.architectures.torch_components import ops
from rl_coach.architectures.torch_components.compilation import traced
from rl_coach.utils import CoachError


class TorchLayers(ArrayLayers):
    """The layers of a network on PyTorch; see ``ArrayLayers``."""

    def module(self, module_class: Any, x: Any) -> Any:
        run = self.run
        module, initial = run.part(lambda: made(module_class, tuple(x.shape[1:]), self.rng))
        weights = {name: run.weight(tuple(one.shape), initial[name]) for name, one in module.named_parameters()}
        places = {name: run.buffer(tuple(one.shape), initial[name]) for name, one in module.named_buffers()}
        buffers = {name: run.buffers[place] for name, place in places.items()}
        if isinstance(self.ops, OnnxOps):
            return self.ops.include(exported(module, x.shape), x, weights | buffers)
        # copies, because a module writes to its buffers, and these belong to the state
        buffers = {name: ops.convert_to_tensor(buffer).clone() for name, buffer in buffers.items()}
        y = torch.func.functional_call(module.train(run.training), weights | buffers, (x,))
        for name, place in places.items():
            run.buffers[place] = buffers[name]
        return y


def made(
    module_class: Any, shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[torch.nn.Module, dict[str, Constant]]:
    """Make a user's module. Return the module, and its initial weights and buffers by name. They depend on ``rng``.

    :raises CoachError: if the module cannot be made, has branches that depend on data, or draws random numbers from
        PyTorch (checkpoints do not contain the state of PyTorch's generator)
    """
    # forked, because the random numbers in the user's program must not change
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        try:
            module = module_class(shape)
        except TypeError as error:
            raise CoachError(
                f"'{module_class.__name__}' cannot be made with the shape of one row of its input, {shape}: {error}"
            ) from error
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            raise CoachError(
                f"'{module_class.__name__}' has a {type(part).__name__}, and a resumed run cannot repeat its random "
                f"numbers: set dropout_rate of the parameters instead"
            )
    try:
        traced(module.eval(), torch.zeros((2, *shape)))
    except GuardOnDataDependentSymNode as error:
        raise CoachError(
            f"'{module_class.__name__}' has branches that depend on the values of a tensor. They cannot be compiled "
            f"or exported: use torch.where"
        ) from error
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return module, {name: Constant(tensor.detach().numpy()) for name, tensor in tensors}


def exported(module: torch.nn.Module, shape: tuple[Any, ...]) -> Any:
    """Export a module to an ONNX model (``onnx.ModelProto``), in evaluation mode. The module's weights and buffers are
    inputs of the ONNX graph and keep their names.
    """
    file: Any = io.BytesIO()
    example = torch.zeros((2, *shape[1:]))
    rows = {"x": {0: BATCH}, "y": {0: BATCH}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the newer exporter needs another package and gives weights other names
        # no folding, because folding replaces weights with constants of other names
        torch.onnx.export(
            module.eval(), (example,), file, input_names=["x"], output_names=["y"], dynamic_axes=rows, dynamo=False,
            opset_version=OPSET, do_constant_folding=False, keep_initializers_as_inputs=True,
        )  # fmt: skip
    return onnx.load_from_string(file.getvalue())


class TorchNetwork(ArrayNetwork):
    """A network on PyTorch; see ``ArrayNetwork``."""

    ops = ops
    layers_class = TorchLayers
