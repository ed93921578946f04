"""Export of a policy's network as a frozen graph of TensorFlow, with the tensor names of Coach 1.0.1."""

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
"""The name scope of each head in Coach 1.0.1, and the names of the head's outputs within this scope.

The mean of a continuous policy has two names: ``policy_mean`` as in Coach 1.0.1, and ``policy`` for programs for
DeepRacer.
"""

_SUPPORTED = "DQN (also double, dueling), policy gradients, actor-critic, PPO, clipped PPO and soft actor-critic"


def tensor_names(document: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The tensor names of a policy's network in Coach 1.0.1.

    :param document: content of ``policy.json``
    :return: the names of the input tensors by observation, and all names of the output tensor
    :raises CoachError: if Coach 1.0.1 has no names for the agent's network, or an earlier version wrote the policy
    """
    network, about = document["network"], document["about"]
    if "head" not in network:
        raise CoachError(
            "an earlier version wrote this policy, so the type of its network is unknown: continue the training to "
            "write the policy again"
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
    """The name of the output in ``model.onnx`` that actions are chosen from: values, probabilities or a mean."""
    return str(next(iter(document["network"]["outputs"])))


def as_files(document: dict[str, Any], model: bytes) -> dict[str, bytes]:
    """The frozen graph and a README with the names of its tensors, by file name.

    :param document: content of ``policy.json``
    :param model: the serialised ONNX model
    :raises CoachError: if Coach 1.0.1 has no names for the agent's network, or the network has an operation that cannot
        be converted
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

All listed outputs have the same values. The graph contains no filters: its inputs are observations that the filters of
the training have already changed.
"""
