"""The tensor names of Coach 1.0.1 for the network of a policy, and the files of its frozen graph."""

from __future__ import annotations

from typing import Any

from rl_coach.utils import CoachError

FROZEN_GRAPH_FILE = "frozen_graph.pb"

_HEADS = {
    "DuelingQHead": ("dueling_q_values_head", {"q": ["output"]}),
    "PolicyHead": (
        "policy_values_head",
        {"probabilities": ["sub_action_0/policy"], "mean": ["sub_action_0/output_mean"]},
    ),
    "PPOHead": ("ppo_head", {"probabilities": ["policy"], "mean": ["policy", "policy_mean/BiasAdd"]}),
    "QHead": ("q_values_head", {"q": ["output/BiasAdd"]}),
    "SACPolicyHead": ("sac_policy_head", {"mean": ["policy", "policy_mean"]}),
}
"""The name scope that Coach 1.0.1 gave a head, and the names within it of what the head computes.

In Coach 1.0.1, a continuous policy's mean was ``policy_mean``; programs for DeepRacer call it ``policy``.
"""

_SUPPORTED = "DQN (also double, dueling), policy gradients, actor-critic, PPO, clipped PPO and soft actor-critic"


def tensor_names(document: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The names of the inputs' placeholders by observation, and the names of the output, as in Coach 1.0.1.

    :param document: content of ``policy.json``
    :raises CoachError: if Coach 1.0.1 has no names for the agent's network, or an earlier version wrote the policy
    """
    network, about = document["network"], document["about"]
    if "head" not in network:
        raise CoachError(
            "the policy does not name its network, an earlier version wrote it: train on to write it again"
        )
    head = network["head"]
    if head is None or head["class"] not in _HEADS or network["recurrent"]:
        kind = about["agent_class"].partition(":")[2]
        with_lstm = " with an LSTM" if network["recurrent"] else ""
        raise CoachError(
            f"no frozen graph for an agent of class {kind}{with_lstm}: supported are {_SUPPORTED}, without LSTM"
        )
    scope = scope_of(document)
    place = (head["index"], 0) if head["has_own_network"] else (0, head["index"])
    head_scope, names = _HEADS[head["class"]]
    output = acting_output(document).split("_", 2)[2]
    inputs = {name: f"{scope}/network_0/{name}/{name}" for name in network["inputs"]}
    return inputs, [f"{scope}/network_{place[0]}/{head_scope}_{place[1]}/{name}" for name in names[output]]


def scope_of(document: dict[str, Any]) -> str:
    """The name scope of the network: level, agent and network."""
    return f"{document['about']['agent'].replace('.', '/', 1)}/{document['network']['name']}/online"


def acting_output(document: dict[str, Any]) -> str:
    """The output of the policy's ``model.onnx`` that acts: values, probabilities or a mean."""
    return str(next(iter(document["network"]["outputs"])))


def as_files(document: dict[str, Any], model: bytes) -> dict[str, bytes]:
    """The frozen graph and a README that names its tensors, by file name.

    :param document: content of ``policy.json``
    :param model: the serialised ONNX model
    :raises CoachError: if the agent's network has no names in Coach 1.0.1, or an operation that is not converted
    """
    inputs, outputs = tensor_names(document)
    from rl_coach.architectures.tensorflow_components.frozen_graph import frozen_graph  # needs TensorFlow

    graph = frozen_graph(model, f"{scope_of(document)}/operations", inputs, acting_output(document), outputs)
    return {FROZEN_GRAPH_FILE: graph, "README.md": _readme(document, inputs, outputs).encode()}


def _readme(document: dict[str, Any], inputs: dict[str, str], outputs: list[str]) -> str:
    shapes = document["network"]["inputs"]
    fed = [f"- input `{tensor}:0`, shape {['batch', *shapes[name]]}" for name, tensor in inputs.items()]
    given = [f"- output `{tensor}:0`" for tensor in outputs]
    return f"""# The network of a trained policy

`{FROZEN_GRAPH_FILE}` is a TensorFlow graph with the weights inside and the tensor names of Coach 1.0.1:

{chr(10).join(fed + given)}

All outputs that are listed are the same. The graph has no filters: its inputs are what those of the training give.
"""
