"""Experiments written as Coach writes them, for the dashboard's tests and its benchmark."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np

SIGNALS = (
    "Training Iter", "In Heatup", "ER #Transitions", "ER #Episodes", "Episode Length", "Total steps", "Epsilon",
    "Shaped Training Reward", "Training Reward", "Update Target Network", "Wall-Clock Time", "Evaluation Reward",
    "Shaped Evaluation Reward", "Success Rate", "Loss/Mean", "Loss/Stdev", "Loss/Max", "Loss/Min",
    "Learning Rate/Mean", "Q/Mean",
)  # fmt: skip
FILE_NAME = "worker_{worker}.simple_rl_graph.main_level.main_level.agent_0.csv"


def signal_rows(rows: int, seed: int = 0, best: float = 200.0, first: int = 1) -> list[str]:
    """CSV lines, header not included, of a run that learns up to about ``best``."""
    rng = np.random.default_rng(seed)
    episode = np.arange(first, first + rows)
    progress = 1 / (1 + np.exp(-(episode - 60 - 10 * rng.random()) / 22))
    reward = np.round(np.clip(best * (0.06 + 0.94 * progress) + rng.normal(0, best / 9, rows), 1, best), 2)
    steps = np.cumsum(reward.clip(8).astype(int))
    loss = np.abs(rng.normal(0.4, 0.2, rows)) * (1.1 - progress)
    lines = []
    for index in range(rows):
        evaluated = f"{reward[index] * 1.02:.2f}" if episode[index] % 10 == 0 else ""
        success = f"{min(1.0, reward[index] / best):.2f}" if evaluated else ""
        lines.append(
            f"{episode[index]},{steps[index] // 4},{int(index < 5)},{min(40000, steps[index])},{episode[index]},"
            f"{int(reward[index])},{steps[index]},{max(0.01, 1 - steps[index] / 9000):.4f},{reward[index]},"
            f"{reward[index]},{steps[index] // 100},{steps[index] / 54000:.5f},{evaluated},{evaluated},{success},"
            f"{loss[index]:.6f},{loss[index] / 3:.6f},{loss[index] * 3:.6f},{loss[index] / 9:.6f},0.00025,"
            f"{reward[index] / 7:.5f}"
        )
    return lines


def write_run(
    root: Path,
    experiment: str,
    start: str,
    *,
    rows: int = 200,
    seed: int = 0,
    best: float = 200.0,
    worker: int = 0,
    parameters: dict[str, Any] | None = None,
    command_line: list[str] | None = None,
    task: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
) -> Path:
    """Write a whole run below ``root``; its CSV.

    :param start: the run's directory, ``dd_mm_yyyy-hh_mm``
    """
    directory = root / experiment / start
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE_NAME.format(worker=worker)
    path.write_text("\n".join(["Episode #," + ",".join(SIGNALS), *signal_rows(rows, seed, best)]) + "\n")
    agent = experiment.rpartition("_")[2]
    document = {
        "run": {
            "start_time": datetime.datetime.strptime(start[:16], "%d_%m_%Y-%H_%M").isoformat(),
            "command_line": command_line or ["coach", "-p", experiment, "--seed", str(seed)],
            "versions": {"rl_coach": "2.0.0"},
        },
        "parameters": {
            "seed": seed,
            "task": {"framework_type": "Frameworks.tensorflow", "evaluate_only": None, **(task or {})},
            "agent": {
                "__class__": f"{agent}AgentParameters",
                "algorithm": {"discount": 0.99, "num_steps_between_copying_online_weights_to_target": 100},
                **(parameters or {}),
            },
            "environment": {"__class__": "GymVectorEnvironment", "level": experiment.partition("_")[0] + "-v1"},
        },
    }
    path.with_name(f"worker_{worker}.simple_rl_graph_0.json").write_text(json.dumps(document, indent=1))
    if status is not None:
        (directory / "status.json").write_text(json.dumps(status))
    return path


COACH_1_RECORD = """heatup_steps:
<rl_coach.core_types.EnvironmentSteps object at 0x7f1ae57a89b0>
environments:
0: <rl_coach.environments.gym_environment.GymEnvironment object at 0x7f1ae541c5c0>

env_params:
"Atari" {
    "frame_skip": 4,
    "level": "BreakoutDeterministic-v4",
    "max_over_num_frames": 2
}

graph_creation_time:
1556892000.9
agent_params:
"ClippedPPOAgentParameters" {
    "algorithm": {
        "discount": 0.99,
        "optimization_epochs": 10
    },
    "network_wrappers": {
        "main": {
            "embedding_merger_type": {
                "_name_": "Concat",
                "_value_": 0,
                "__objclass__": "<enum 'EmbeddingMergerType'>"
            },
            "learning_rate": 0.0003
        }
    },
    "visualization": {
        "max_reward_achieved": -Infinity
    }
}

name:
simple_rl_graph
_phase:
RunPhase.UNDEFINED
task_parameters:
"TaskParameters" {
    "evaluate_only": null,
    "framework_type": {
        "_name_": "tensorflow",
        "_value_": "TensorFlow",
        "__objclass__": "<enum 'Frameworks'>"
    },
    "seed": 7,
    "task_index": 0
}

""".replace(":\n", ": \n")
"""As Coach 1.0.1 writes it: named blocks, each name followed by a space and a new line."""


def write_coach_1_run(root: Path, experiment: str, start: str, rows: int = 60) -> Path:
    """Write a run as Coach 1.0.1 left it, which was copied here just now; its CSV."""
    directory = root / experiment / start
    directory.mkdir(parents=True)
    path = directory / FILE_NAME.format(worker=0)
    lines = []
    for line in signal_rows(rows):
        cells = line.split(",")
        cells[11] = f"{float(cells[11]) * 60:.5f}"  # seconds
        lines.append(",".join(cells))
    path.write_text("\n".join(["Episode #," + ",".join(SIGNALS), *lines]) + "\n")
    (directory / "worker_0.simple_rl_graph_0.json").write_text(COACH_1_RECORD)
    return path


def write_episodes(path: Path, episodes: range, steps: int = 60) -> None:
    """Write the in-episode signals of a run whose CSV is at ``path``."""
    folder = path.with_name(path.stem.rpartition("_")[0] + ".episodes")
    folder.mkdir(exist_ok=True)
    for episode in episodes:
        rng = np.random.default_rng(episode)
        angle = np.cumsum(rng.normal(0, 0.02, steps))
        rows = [f"{step},{angle[step]:.5f},{1.0},{int(angle[step] < 0)}" for step in range(steps)]
        text = "\n".join(["Episode Steps,Pole angle,Reward,Action", *rows]) + "\n"
        (folder / f"episode_{episode}.csv").write_text(text)


def write_gif(path: Path, name: str, frames: int = 8) -> Path:
    """Write a small GIF beside the CSV at ``path``."""
    from PIL import Image

    folder = path.parent / "gifs"
    folder.mkdir(exist_ok=True)
    images = []
    for frame in range(frames):
        picture = np.full((90, 120, 3), 245, np.uint8)
        picture[60:66, 20:100] = (90, 90, 100)
        picture[24:62, 50 + frame : 56 + frame] = (200, 120, 60)
        images.append(Image.fromarray(picture))
    file = folder / f"{name}.gif"
    images[0].save(file, save_all=True, append_images=images[1:], duration=100, loop=0)
    return file
