"""Copies the weights of policies from Stable-Baselines3 into Coach's networks of the same shape."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any, Iterator, Mapping

import numpy as np

from rl_coach.utils import CoachError

WEIGHTS_FILE = "policy.pth"
Weights = Mapping[str, np.ndarray]


def read(path: str | Path) -> dict[str, np.ndarray]:
    """Read the weights of a policy, by the names of Stable-Baselines3. No code from the file is executed.

    :param path: the ``.zip`` that ``model.save`` has written
    :raises CoachError: if the file cannot be read, or is not a policy of Stable-Baselines3
    :raises ModuleNotFoundError: if PyTorch is not installed
    """
    import torch  # reads its own format

    try:
        with zipfile.ZipFile(path) as archive:
            if WEIGHTS_FILE not in archive.namelist():
                raise zipfile.BadZipFile(f"it contains no {WEIGHTS_FILE}")
            loaded = torch.load(io.BytesIO(archive.read(WEIGHTS_FILE)), map_location="cpu", weights_only=True)
        return {str(name): tensor.detach().numpy() for name, tensor in loaded.items()}
    except OSError as error:
        raise CoachError(f"'{path}' cannot be read: {error.strerror or error}") from error
    except Exception as error:  # PyTorch's reader may raise ValueError, AttributeError and many others
        raise CoachError(
            f"'{path}' is not a file that model.save of Stable-Baselines3 has written: {_cause(error)}"
        ) from error


def _cause(error: Exception) -> str:
    """The cause in one line. PyTorch's messages are not used, because they advise to run the code in the file."""
    if isinstance(error, zipfile.BadZipFile):
        return str(error)
    return f"{WEIGHTS_FILE} is damaged, or contains other data than a dict of tensors ({type(error).__name__})"


def take(networks: Mapping[str, Any], weights: Weights, path: str | Path) -> None:
    """Replace the weights of an agent's networks and target networks.

    :param networks: the agent's ``NetworkWrapper`` objects by name
    :param weights: the result of ``read``
    :param path: the file of the weights, for messages
    :raises CoachError: if a network has another shape, or the policy was trained with another algorithm
    """
    changes = []
    for name, network in networks.items():
        heads = network.head_outputs or []
        if not network.state.function.input_shapes:
            continue  # a network without inputs is a single value, such as a temperature
        for group, is_target in (("weights", False), ("target_weights", True)):
            if group in network.state.groups():
                made = [array for head in heads for array in _layers(weights, head, is_target, path)]
                changes.append((network.state, group, _in_own_order(network, name, made, path)))
    for state, group, arrays in changes:  # all or nothing
        state.set_arrays(group, arrays)


def _layers(weights: Weights, head: tuple[str, ...], is_target: bool, path: str | Path) -> Iterator[np.ndarray]:
    """The weights of the layers before a head and of the head's layers, in the order in which Coach creates them."""
    for prefix in _prefixes(weights, head, is_target, path):
        if prefix == "log_std":
            yield weights[prefix].ravel()  # a matrix with state-dependent noise
            continue
        names = [name for name in weights if name.startswith(prefix + ".")]
        if not names:
            raise CoachError(
                f"'{path}' has no weights '{prefix}', which the preset's agent needs: choose a preset with the same "
                f"algorithm"
            )
        for name in names:
            # PyTorch multiplies by the transposed matrix
            yield weights[name].T if name.endswith(".weight") else weights[name]


def _prefixes(weights: Weights, head: tuple[str, ...], is_target: bool, path: str | Path) -> list[str]:
    if "actor.latent_pi.0.weight" in weights:  # soft actor-critic
        critic = "critic_target" if is_target else "critic"
        if "log_deviation" in head:
            return ["actor.latent_pi", "actor.mu", "actor.log_std"]
        if "q1" in head:
            return [f"{critic}.qf0", f"{critic}.qf1"]
    if "mlp_extractor.policy_net.0.weight" in weights:  # PPO and A2C
        if "v" in head:
            return ["mlp_extractor.value_net", "value_net"]
        if "probabilities" in head or "mean" in head:
            deviation = ["log_std"] if "log_std" in weights else []
            return ["mlp_extractor.policy_net", "action_net", *deviation]
    if "q_net.q_net.0.weight" in weights and "q" in head:  # DQN
        return ["q_net_target.q_net" if is_target else "q_net.q_net"]
    raise CoachError(
        f"'{path}' has no weights for the agent's head with the outputs {', '.join(head)}: Coach reads policies of "
        f"PPO, A2C, DQN and SAC with vectors as observations, and the agent must have the same algorithm"
    )


def _in_own_order(network: Any, name: str, made: list[np.ndarray], path: str | Path) -> list[np.ndarray]:
    own, order = network.state.arrays("weights"), network.state.function.order["weights"]
    there = [own[order.index(place)].shape for place in range(len(own))]
    if [array.shape for array in made] != there:
        raise CoachError(
            f"'{path}' has layers {_shapes([array.shape for array in made])}, but network '{name}' of the preset has "
            f"{_shapes(there)}: choose another preset, or set the same layers with -cp"
        )
    return [made[place] for place in order]


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    return " ".join("x".join(map(str, shape)) for shape in shapes)
