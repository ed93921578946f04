"""Takes trained policies from finished runs, evaluates them, and writes their tables and videos for the pages.

    python -m benchmarks.trained_policies EXPERIMENT ...

This command writes the policy of each run's newest checkpoint to ``presets/policies``. With ``--best``, it writes the
policy of the best evaluation. It plays 100 episodes with the policy, and records the run and the mean reward in
``policies.json``. It also writes a video of one episode, and the tables on the pages of algorithms.

The largest size of a policy is 200 kB. The weights of a larger policy are stored in half precision, or in eight bits if
half precision is not small enough. If eight bits are not small enough, upload the policy to a repository of the Hugging
Face Hub (``coach push``).

``--table`` writes only the tables. ``--videos`` writes the videos of all policies again.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import itertools
import json
import pathlib
import shutil
from typing import Any, Callable, Iterator

import gymnasium as gym
import numpy as np
import onnx
from onnx import numpy_helper
from PIL import Image

from benchmarks.pages import ALGORITHMS, REPOSITORY, write_on_pages
from rl_coach.checkpoint import BEST
from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.trained_policies import INDEX_FILE
from rl_coach.environments.vector_levels import make_simulator
from rl_coach.policy import Policy, find_policy
from rl_coach.policy import files as policy_files
from rl_coach.runs import record

DIRECTORY = REPOSITORY / "presets" / "policies"
LARGEST = 200_000
EPISODES = 100
FIRST_SEED = 10_000
FILMED_SEED = 10_031  # in this episode, the pendulum hangs down at the beginning
VIDEOS = REPOSITORY / "docs" / "images" / "policies"
FRAMES, STEPS_PER_FRAME, WIDTH, COLOURS, MILLISECONDS = 100, 2, 200, 16, 50
BEGIN, END = "<!-- trained policies -->", "<!-- end of trained policies -->"
HEADER = "| trained policy | mean reward | run | an episode |\n|---|---|---|---|"


def main() -> None:
    """Write the policies of the given runs, and the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trained_policies", description=__doc__)
    parser.add_argument("experiments", metavar="EXPERIMENT", nargs="*", type=pathlib.Path, help="finished runs")
    parser.add_argument("--best", action="store_true", help="take the checkpoint of each run's best evaluation")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    parser.add_argument("--videos", action="store_true", help="film all policies again")
    options = parser.parse_args()
    known = read_index()
    for experiment in options.experiments if not options.table else ():
        name, entry = ship(experiment, options.best)
        known[name] = entry
        _write_index(known)
        film(name)
        print(f"{name}: {entry}")
    for name in known if options.videos else ():
        film(name)
    write_on_pages(
        ALGORITHMS, BEGIN, END, lambda named: table({name: known[name] for name in sorted(known) if name in named})
    )


def _write_index(known: dict[str, dict[str, Any]]) -> None:
    text = json.dumps(dict(sorted(known.items())), indent=2)
    (DIRECTORY / INDEX_FILE).write_text(f"{text}\n", encoding="utf-8")


def read_index() -> dict[str, dict[str, Any]]:
    """The contents of ``policies.json``: the record of each policy, by the name of its preset; empty if there is no
    file.
    """
    path = DIRECTORY / INDEX_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def ship(experiment: pathlib.Path, is_best: bool) -> tuple[str, dict[str, Any]]:
    """Write the policy of a run, and evaluate it.

    :param is_best: True: take the policy of the best evaluation. False: take the newest policy
    :return: the name of the preset, and the record for ``policies.json``
    :raises SystemExit: if the policy is too large, or the run did not train a tuned preset
    """
    arguments = record.read(str(experiment))["arguments"]
    name = str(arguments["preset"])
    if name not in preset_catalogue.list_tuned_presets():
        raise SystemExit(f"'{experiment}' trained {name}, which is no tuned preset")
    document, model = policy_files.read(find_policy(experiment / BEST if is_best else experiment))
    candidates = (model, in_half_precision(model), in_eight_bits(model))
    sizes = [sum(map(len, policy_files.as_files(document, one).values())) for one in candidates]
    small = next((one for one, size in zip(candidates, sizes) if size <= LARGEST), None)
    if small is None:
        raise SystemExit(f"the policy of {name} has {sizes[-1]:,} bytes or more: upload it with coach push")
    folder = DIRECTORY / _short(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, data in policy_files.as_files(document, small).items():
        (folder / file).write_bytes(data)
    about, seed = document["about"], int(arguments.get("seed") or 0)
    started = datetime.datetime.fromtimestamp((experiment / record.RECORD_FILE).stat().st_mtime)
    return name, {
        "mean_reward": round(mean_reward(folder, name), 2),
        "episodes": EPISODES,
        "run": {
            "command": f"coach -p {name} -f {about['framework']} --seed {seed}",
            "day": started.date().isoformat(),
            "steps": about["steps"],
            **({"is_best_of_run": True} if is_best else {}),
            "versions": about["versions"],
        },
        "sha256": hashlib.sha256((folder / policy_files.POLICY_FILE).read_bytes()).hexdigest(),
    }


def in_half_precision(model: bytes) -> bytes:
    """An ONNX model with weights that are stored as float16. It computes in float32."""

    def pack(name: str, values: np.ndarray) -> tuple[dict[str, np.ndarray], onnx.NodeProto]:
        half = f"{name}_half"
        node = onnx.helper.make_node("Cast", [half], [name], to=onnx.TensorProto.FLOAT)
        return {half: values.astype(np.float16)}, node

    return _with_packed_weights(model, pack)


def in_eight_bits(model: bytes) -> bytes:
    """An ONNX model with large matrices that are stored as integers of eight bits, with a scale for each output of a
    layer. It computes in float32.

    A matrix with fewer weights than a tenth of the largest matrix does not change. So the first and the last layer do
    not change: they have few weights, but would cause half of the error of the actions.
    """

    def pack(name: str, values: np.ndarray) -> tuple[dict[str, np.ndarray], onnx.NodeProto]:
        output = 1 if values.ndim == 2 else 0  # matrices are [inputs, outputs], kernels [outputs, inputs, ...]
        others = tuple(axis for axis in range(values.ndim) if axis != output)
        scales = np.maximum(np.abs(values).max(others, keepdims=True), np.finfo(np.float32).tiny) / np.float32(127)
        stored = {f"{name}_8_bits": np.rint(values / scales).astype(np.int8), f"{name}_scales": scales.ravel()}
        return stored, onnx.helper.make_node("DequantizeLinear", [*stored], [name], axis=output)

    return _with_packed_weights(model, pack, least_share=0.1)


def _with_packed_weights(
    model: bytes,
    pack: Callable[[str, np.ndarray], tuple[dict[str, np.ndarray], onnx.NodeProto]],
    least_share: float = 0.0,
) -> bytes:
    """An ONNX model in which other arrays replace each matrix. New nodes at the beginning compute the matrices from the
    arrays.

    :param pack: a function from the name and the values of a matrix to the arrays, by their names, and the node
    :param least_share: the smallest number of weights of a replaced matrix, as a share of the largest matrix's number
    """
    parsed = onnx.load_from_string(model)
    least = least_share * max(numpy_helper.to_array(weight).size for weight in parsed.graph.initializer)
    kept, unpacking = [], []
    for weight in parsed.graph.initializer:
        values = numpy_helper.to_array(weight)
        if values.dtype != np.float32 or values.ndim < 2 or values.size < least:
            kept.append(weight)
            continue
        arrays, node = pack(weight.name, values)
        kept.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
        unpacking.append(node)
    nodes = [*unpacking, *parsed.graph.node]
    for field, content in ((parsed.graph.initializer, kept), (parsed.graph.node, nodes)):
        del field[:]
        field.extend(content)
    onnx.checker.check_model(parsed)
    return parsed.SerializeToString()


def mean_reward(folder: pathlib.Path, preset: str, episodes: int = EPISODES) -> float:
    """The mean return of a policy in the environment of its preset, with actions without noise."""
    policy, environment = Policy.load(folder), _environment(preset)
    returns = [sum(rewards(policy, environment, FIRST_SEED + episode)) for episode in range(episodes)]
    environment.close()
    return float(np.mean(returns))


def rewards(policy: Policy, environment: gym.Env, seed: int) -> Iterator[float]:
    """Play an episode, and yield the reward after each step."""
    observation, _ = environment.reset(seed=seed)
    policy.reset()
    is_over = False
    while not is_over:
        observation, reward, is_terminated, is_truncated, _ = environment.step(policy.act(observation))
        is_over = is_terminated or is_truncated
        yield float(reward)


def _environment(preset: str, render_mode: str | None = None) -> gym.Env:
    parameters = preset_catalogue.load(preset).env_params
    return make_simulator(parameters.level, parameters.additional_simulator_parameters or {}, 1, render_mode)


def film(preset: str) -> None:
    """Write a video (GIF) of the first ``FRAMES * STEPS_PER_FRAME`` steps of an episode of a policy."""
    policy, environment = Policy.load(DIRECTORY / _short(preset)), _environment(preset, "rgb_array")
    frames = []
    for _ in itertools.islice(rewards(policy, environment, FILMED_SEED), 0, FRAMES * STEPS_PER_FRAME, STEPS_PER_FRAME):
        frame: Any = environment.render()
        height = round(frame.shape[0] * WIDTH / frame.shape[1])
        frames.append(Image.fromarray(frame).resize((WIDTH, height)).quantize(COLOURS))
    environment.close()
    VIDEOS.mkdir(parents=True, exist_ok=True)
    path = VIDEOS / f"{_short(preset)}.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=MILLISECONDS, loop=0)


def _short(preset: str) -> str:
    return preset.rpartition("/")[2]


def table(known: dict[str, dict[str, Any]]) -> str:
    """A Markdown table with a row for each policy; empty if there are no policies."""
    rows = [
        f"| `coach fetch {name}` | {entry['mean_reward']:,.6g} in {entry['episodes']} episodes "
        f"| `{entry['run']['command']}`, {entry['run']['day']}{_of_run(entry['run'])} "
        f"| ![{name} plays](../images/policies/{_short(name)}.gif) |"
        for name, entry in known.items()
    ]
    return "\n".join([HEADER, *rows]) if rows else ""


def _of_run(run: dict[str, Any]) -> str:
    return f"; its best evaluation, after {run['steps']:,} steps" if run.get("is_best_of_run") else ""


if __name__ == "__main__":
    main()
