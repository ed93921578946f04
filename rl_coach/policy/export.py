"""Export of trained policies and networks for programs that only act."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Iterator

from rl_coach import __version__
from rl_coach.exploration_policies.exploration_policy import choice_override
from rl_coach.filters.description import (
    DescriptionReader,
    describe_input_filter,
    describe_output_filter,
    describe_space,
)
from rl_coach.policy import files as policy_files
from rl_coach.policy import frozen_graph
from rl_coach.policy.action_choice import CHOICES, PolicyDescription
from rl_coach.policy.policy import POLICY_DIRECTORY, Policy, find_policy
from rl_coach.spaces import DiscreteActionSpace, Space
from rl_coach.utilities.dynamic_import import class_path
from rl_coach.utilities.files import Path
from rl_coach.utilities.overrides import why_not_on_fast_path
from rl_coach.utils import CoachError

ONNX_DIRECTORY = "onnx"
README_FILE = "README.md"

_DISTRIBUTIONS = ("numpy", "onnx", "keras")


def checkpoint_files(
    levels: list[Any], about: dict[str, Any], with_networks: bool
) -> tuple[dict[str, bytes], list[str]]:
    """The files of a checkpoint for deployment: a policy for each agent with a ``policy_description``, and all networks
    as ONNX models if requested.

    :param levels: a graph's level managers
    :param about: facts about the run, as plain values
    :param with_networks: True adds the networks as ``onnx/<level>/<agent>/<network>/model.onnx``
    :return: the files by their path within the checkpoint, and a reason for each agent that has no policy
    """
    agents = list(_agents(levels))
    files: dict[str, bytes] = {}
    troubles = []
    for level, agent in agents:
        facts = _facts(level, agent, about)
        if with_networks:
            files |= _network_files(f"{ONNX_DIRECTORY}/{level}/{agent.name}", agent, facts)
        try:
            packed = policy_of(agent, facts)
        except CoachError as error:
            troubles.append(f"agent '{agent.name}' has no policy that can be deployed: {error}")
            continue
        if packed is None:
            if (override := override_beyond_description(agent)) is not None:
                troubles.append(
                    f"agent '{agent.name}' has no policy that can be deployed: a policy would not call {override}"
                )
            continue
        folder = POLICY_DIRECTORY if len(agents) == 1 else f"{POLICY_DIRECTORY}/{facts['agent']}"
        files |= {f"{folder}/{file}": data for file, data in packed.items()}
    return files, troubles


def newest_model(files: dict[str, bytes]) -> bytes | None:
    """The ONNX model that Coach 1.0.1 wrote as ``checkpoint/model.onnx``: the first network of the first agent.

    :param files: the result of ``checkpoint_files``
    :return: the model; None if no networks were requested
    """
    return next((data for path, data in files.items() if path.startswith(f"{ONNX_DIRECTORY}/")), None)


def _facts(level: str, agent: Any, about: dict[str, Any]) -> dict[str, Any]:
    return {
        **about,
        "versions": versions(about["framework"]),
        "agent": f"{level}.{agent.name}",
        "agent_class": class_path(type(agent)),
    }


def _network_files(folder: str, agent: Any, about: dict[str, Any]) -> dict[str, bytes]:
    metadata = _metadata(agent, about)
    return {
        f"{folder}/{name}/{policy_files.MODEL_FILE}": network.online_network.onnx_model(metadata)
        for name, network in agent.networks.items()
    }


def policy_of(agent: Any, about: dict[str, Any]) -> dict[str, bytes] | None:
    """The files of an agent's policy by name; None if the agent has no ``policy_description``.

    :param agent: the agent
    :param about: facts about the run, as plain values
    :raises CoachError: if a filter or a space cannot be described as data
    """
    found = _document_and_model(agent, about)
    return None if found is None else policy_files.as_files(*found)


def _document_and_model(agent: Any, about: dict[str, Any]) -> tuple[dict[str, Any], bytes] | None:
    description = agent.policy_description() if override_beyond_description(agent) is None else None
    if description is None:
        return None
    network, document = description.acting_network(agent.networks), _document(agent, description, about)
    return document, network.onnx_model(_metadata(agent, about), list(document["network"]["outputs"]))


def acting_now(agent: Any, about: dict[str, Any]) -> Policy:
    """The current policy of an agent, for use in this process.

    :param agent: the agent
    :param about: facts about the run, as plain values
    :raises CoachError: if the agent has no ``policy_description``, or a filter or a space cannot be described as data
    """
    return own_policy(*_required(agent, about))


def own_policy(document: dict[str, Any], model: bytes) -> Policy:
    """Make a policy from a description that this process has made, so that filters of all its modules are allowed.

    :param document: content of ``policy.json``
    :param model: the serialised ONNX model
    """
    described = [*document["filters"]["input"], *document["filters"]["pre_network"], *document["filters"]["output"]]
    modules = {one["class"].partition(":")[0] for one in described}  # they are imported already
    return Policy(document, model, DescriptionReader(modules))


def override_beyond_description(agent: Any) -> str | None:
    """The user's override (``Class.method``) that an exported policy would not call, so that its actions could differ
    from the agent's actions; None without such an override. An exported policy includes a user's filters, but no
    overridden methods of the filter chain."""
    if (override := agent.acts_otherwise) is not None or not hasattr(agent, "exploration_policy"):
        return override
    chains = (agent.input_filter, agent.pre_network_filter, agent.output_filter)
    found = (*(why_not_on_fast_path(chain, ()) for chain in chains), choice_override(agent.exploration_policy))
    return next((one for one in found if one is not None), None)


def _required(agent: Any, about: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    found = _document_and_model(agent, _facts("main_level", agent, about))
    if found is None:
        override = override_beyond_description(agent)
        undefined = "it has no policy_description, which defines how a policy acts"
        reason = undefined if override is None else f"a policy would not call {override}"
        raise CoachError(f"agent '{agent.name}' cannot be exported as a policy: {reason}")
    return found


def _document(agent: Any, description: PolicyDescription, about: dict[str, Any]) -> dict[str, Any]:
    spaces, exported = agent.environment_spaces, agent.networks[description.network].exported()
    recurrent = agent.networks[description.network].online_network.recurrent_outputs
    outputs = [*description.outputs, *recurrent.values()]
    kind = next(name for name, cls in CHOICES.items() if type(description.choice) is cls)
    return {
        "about": about,
        "observations": {name: describe_space(space) for name, space in spaces.state.sub_spaces.items()},
        "action": describe_space(spaces.action),
        "action_mask": spaces.state.action_mask_name,
        "filters": {
            "input": describe_input_filter(agent.input_filter),
            "pre_network": describe_input_filter(agent.pre_network_filter),
            "output": describe_output_filter(agent.output_filter),
        },
        "network": {
            "name": description.network,
            "head": _acting_head(agent, description),
            "inputs": {name: list(shape) for name, shape in exported.input_shapes.items()},
            "outputs": {name: list(exported.output_shapes[name]) for name in outputs},
            "recurrent": list(recurrent),
        },
        "choice": {"kind": kind, "settings": description.choice.settings()},
    }


def _acting_head(agent: Any, description: PolicyDescription) -> dict[str, Any] | None:
    """A description of the head that actions are chosen from; None if there are several heads."""
    parameters = agent.ap.network_wrappers[description.network]
    heads = parameters.heads_parameters
    places = {int(name.split("_")[1]) for name in description.outputs}
    if len(places) > 1 or any(head.num_output_head_copies > 1 for head in heads):
        return None
    (index,) = places
    head, has_own_network = heads[index].parameterized_class_name, parameters.use_separate_networks_per_head
    name = head if isinstance(head, str) else class_path(head)
    return {"class": name, "index": index, "has_own_network": has_own_network}


def export(path: Path, directory: Path, agent: str | None = None, *, as_frozen_graph: bool = False) -> pathlib.Path:
    """Write the policy of an experiment or a checkpoint into a new folder, with a README that explains its use.

    The folder is first written under another name. After an error there is no incomplete folder.

    :param path: see ``Policy.load``
    :param directory: the path of the new folder; an empty folder may exist
    :param agent: name of the agent, if there are several agents
    :param as_frozen_graph: True writes only the network, as TensorFlow's frozen graph with the names of Coach 1.0.1
    :return: the folder
    :raises CoachError: if there is no policy, the policy is damaged or has no frozen graph, or the folder cannot be
        written
    """
    source = find_policy(path, agent)
    document, model = policy_files.read(source)
    target = pathlib.Path(directory).expanduser().absolute()
    files = frozen_graph.as_files(document, model) if as_frozen_graph else _policy_files(source, document, target.name)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise CoachError(f"'{directory}' already exists and is not an empty directory: choose another directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            temporary.mkdir()
            for name, data in files.items():
                (temporary / name).write_bytes(data)
            os.replace(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise CoachError(f"'{directory}' cannot be written: {error.strerror}") from error
    return target


def export_acting(agent: Any, about: dict[str, Any], directory: Path) -> pathlib.Path:
    """Write the current policy of an agent into a new folder, as ``export`` does.

    :param agent: the agent
    :param about: facts about the run, as plain values
    :param directory: the path of the new folder
    :raises CoachError: as in ``export``, or if the agent has no ``policy_description``
    """
    files = policy_files.as_files(*_required(agent, about))
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            pathlib.Path(folder, name).write_bytes(data)
        return export(folder, directory)


def _policy_files(source: pathlib.Path, document: dict[str, Any], name: str) -> dict[str, bytes]:
    """All files of a policy's exported folder. :param name: the folder's name"""
    copied = (policy_files.POLICY_FILE, policy_files.ARRAYS_FILE, policy_files.MODEL_FILE)
    files = {file: (source / file).read_bytes() for file in copied}
    return {**files, README_FILE: _readme(document, name).encode()}


@functools.cache
def versions(framework: str) -> dict[str, str]:
    """The versions of Coach and of the packages that a policy was trained with."""
    found = {"rl_coach": __version__}
    for name in (framework, *_DISTRIBUTIONS):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _agents(levels: list[Any]) -> Iterator[tuple[str, Any]]:
    """All agents with networks, also the agents in a composite agent. Each agent comes with its level's name."""
    for level in levels:
        waiting = [level.agent]
        while waiting:
            agent = waiting.pop(0)
            waiting += getattr(agent, "agents", {}).values()
            if getattr(agent, "networks", None):
                yield level.name, agent


def _metadata(agent: Any, about: dict[str, Any]) -> dict[str, str]:
    """The metadata of an ONNX model, as texts by name."""
    spaces = agent.environment_spaces
    facts = {
        **about,
        "observation_spaces": {name: _brief(space) for name, space in spaces.state.sub_spaces.items()},
        "action_space": _brief(spaces.action),
    }
    return {name: fact if isinstance(fact, str) else json.dumps(fact) for name, fact in facts.items()}


def _brief(space: Space) -> dict[str, Any]:
    found: dict[str, Any] = {"class": type(space).__name__, "shape": [int(length) for length in space.shape]}
    if isinstance(space, DiscreteActionSpace):
        found["num_actions"] = space.num_actions
    return found


def _readme(document: dict[str, Any], name: str) -> str:
    about = document["about"]
    lines = [f"- {key}: {json.dumps(value)}" for key, value in about.items() if value is not None]
    return f"""# A trained policy

```python
from rl_coach.policy import Policy
policy = Policy.load("{name}")  # this folder
action = policy.act(observation)
```

Call `policy.reset()` at the start of each episode. The policy needs Coach, NumPy and ONNX Runtime, but no training
framework. Run this in Coach's repository, or replace the dot by the path of a wheel:

```bash
pip install --no-deps .
pip install numpy onnxruntime
```

Not `pip install rl_coach`: this installs Intel's release, which cannot read the policy. `model.onnx` contains only the
network, for any ONNX runtime. `policy.json` and `arrays.npz` describe the filters and the choice of an action.

{chr(10).join(lines)}
"""
