"""Measures exploration without a reward: how much of an environment the exploring agents of TD3 see.

    python -m benchmarks.exploration [--agents novelty,random] [--seeds 0,1,2]

This command trains each agent in MountainCarContinuous-v0, where only reaching the goal has a positive reward. One of
the agents acts at random, for comparison. The script adds each result to a file, and writes the table of
docs/algorithms/td3_exploration.md. If it is interrupted, the next call continues with the missing results. Position and
velocity are divided into 20 × 20 cells, and the script counts the cells that an agent has seen.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Callable, Iterable

import gymnasium as gym
import numpy as np

from benchmarks.pages import ALGORITHMS, write_between
from rl_coach.agents.td3_exp_agent import (
    RandomAgentParameters,
    TD3ExplorationAgentParameters,
    TD3GoalBasedAgentParameters,
    TD3IntrinsicRewardAgentParameters,
)
from rl_coach.base_parameters import EmbedderScheme, TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule
from rl_coach.presets.tuned._networks import two_layers
from rl_coach.runs.progress import duration
from rl_coach.schedules import ConstantSchedule

RESULTS = pathlib.Path(__file__).with_name("exploration.jsonl")
PAGE = ALGORITHMS / "td3_exploration.md"
BEGIN, END = "<!-- exploration -->", "<!-- end of exploration -->"
LEVEL = "MountainCarContinuous-v0"
STEPS, RANDOM_STEPS = 20_000, 1_000
PARTS = (0.25, 0.5, 1.0)
CELLS = 20
NOISE = 0.5  # standard deviation, for actions from -1 to 1: the last value in Coach 1.0.1's presets of these agents
LOWEST, HIGHEST = np.array([-1.2, -0.07]), np.array([0.6, 0.07])
GOAL = 2 * (0.45 - LOWEST[0]) / (HIGHEST[0] - LOWEST[0]) - 1
HEADER = (
    f"| agent | cells seen after {', '.join(f'{part * STEPS:,.0f}' for part in PARTS)} steps | mean ± deviation "
    "| goal first reached at step | goals reached | wall time | day |\n|---|---|---|---|---|---|---|"
)


class MountainCar(gym.ObservationWrapper):
    """The mountain car in episodes of 200 steps. Position and velocity are scaled to -1 to 1. The observation
    ``with_goal`` has two more numbers: the agent writes its goal into them.
    """

    def __init__(self) -> None:
        super().__init__(gym.make(LEVEL, max_episode_steps=200))
        room = {"observation": 2, "with_goal": 4}
        self.observation_space = gym.spaces.Dict({k: gym.spaces.Box(-1, 1, (n,), np.float32) for k, n in room.items()})

    def observation(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        seen = ((observation - LOWEST) / (HIGHEST - LOWEST) * 2 - 1).astype(np.float32)
        return {"observation": seen, "with_goal": np.concatenate([seen, seen])}


AGENTS: dict[str, tuple[str, Callable[[], Any], str]] = {
    "novelty": ("novelty is the reward", TD3IntrinsicRewardAgentParameters, "observation"),
    "goals": ("goals of its own", TD3GoalBasedAgentParameters, "with_goal"),
    "reward": ("the environment's reward", TD3ExplorationAgentParameters, "observation"),
    "random": ("at random", RandomAgentParameters, "observation"),
}


@dataclass(frozen=True)
class Exploration:
    """The result of a run.

    :param cells: number of cells that the agent has seen after each share ``PARTS`` of the steps
    :param goals: number of times that the goal was reached
    :param first_goal: the step at which the goal was first reached; None if it was never reached
    :param seconds: wall time
    :param day: date of the run, ``YYYY-MM-DD``
    """

    agent: str
    seed: int
    cells: list[int]
    goals: int
    first_goal: int | None
    seconds: float
    day: str


def parameters_of(agent: str) -> Any:
    """Parameters of an agent of ``AGENTS``. Networks have two layers of 64 units. The predictor learns after every 500
    steps.
    """
    _, make, seen = AGENTS[agent]
    parameters = make()
    for name in ("actor", "critic"):
        network = parameters.network_wrappers[name]
        network.input_embedders_parameters[seen] = network.input_embedders_parameters.pop("observation")
        two_layers(network, (64, 64))
    parameters.network_wrappers["critic"].input_embedders_parameters["action"].scheme = EmbedderScheme.Empty
    parameters.network_wrappers["predictor"].learning_rate = 0.001
    if agent != "random":
        parameters.exploration.noise_schedule = ConstantSchedule(NOISE)
    algorithm = parameters.algorithm
    algorithm.env_obs_key, algorithm.agent_obs_key = "observation", seen
    algorithm.rnd_sample_size, algorithm.rnd_batch_size, algorithm.rnd_optimization_epochs = 500, 100, 4
    return parameters


def explore(agent: str, seed: int, steps: int = STEPS) -> Exploration:
    """Train an agent for ``steps`` environment steps. The first ``RANDOM_STEPS`` actions are random."""
    environment = GymVectorEnvironment(level="benchmarks.exploration:MountainCar")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        manager = BasicRLGraphManager(parameters_of(agent), environment, SimpleSchedule())
        manager.create_graph(TaskParameters(experiment_path=directory, seed=seed))
        manager.heatup(EnvironmentSteps(RANDOM_STEPS))
        manager.train_and_act(EnvironmentSteps(steps - RANDOM_STEPS))
        manager.train_and_act(EnvironmentEpisodes(1))  # the memory returns complete episodes only
        memory: Any = manager.get_agent().memory
        seen = memory.get_all_complete_episodes_transitions().next_state_columns["observation"][:steps]
        manager.close()
    goals = np.flatnonzero(seen[:, 0] >= GOAL - 1e-6)
    cells = [num_cells(seen[: int(part * steps)]) for part in PARTS]
    first = int(goals[0]) + 1 if len(goals) else None
    return Exploration(agent, seed, cells, len(goals), first, time.monotonic() - began, date.today().isoformat())


def num_cells(seen: np.ndarray) -> int:
    """The number of different cells with an observation. :param seen: observations [T, 2], from -1 to 1"""
    cells = np.clip((seen + 1) / 2 * CELLS, 0, CELLS - 1).astype(int)
    return len(np.unique(cells, axis=0))


def table(runs: Iterable[Exploration]) -> str:
    """A Markdown table with a row for each agent. A cell of the table has a value for each seed; the column of cells
    seen has several values for each seed, and semicolons between seeds.
    """
    by_agent = {name: [run for run in runs if run.agent == name] for name in AGENTS}
    return "\n".join([HEADER, *(_row(name, found) for name, found in by_agent.items() if found)])


def _row(agent: str, runs: list[Exploration]) -> str:
    cells = np.array([run.cells for run in runs])
    row = [
        AGENTS[agent][0],
        "; ".join(", ".join(map(str, one)) for one in cells),
        f"{cells[:, -1].mean():.4g} ± {cells[:, -1].std(ddof=1) if len(cells) > 1 else 0:.3g}",
        "; ".join("never" if run.first_goal is None else f"{run.first_goal:,}" for run in runs),
        ", ".join(str(run.goals) for run in runs),
        ", ".join(duration(run.seconds) for run in runs),
        max(run.day for run in runs),
    ]
    return f"| {' | '.join(row)} |"


def read(results: pathlib.Path) -> list[Exploration]:
    """The newest result of each agent and seed, sorted by seed; empty if there is no file."""
    if not results.exists():
        return []
    lines = [Exploration(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return sorted({(one.agent, one.seed): one for one in lines}.values(), key=lambda one: one.seed)


def main() -> None:
    """Measure the missing results and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exploration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agents", default=",".join(AGENTS), help="the agents (default %(default)s)")
    parser.add_argument("--seeds", default="0,1,2", help="the seeds (default %(default)s)")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="file of results (default %(default)s)")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="page with the table (default %(default)s)")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the table")
    options = parser.parse_args()
    agents, seeds = options.agents.split(","), [int(seed) for seed in options.seeds.split(",")]
    if unknown := sorted(set(agents) - set(AGENTS)):
        parser.error(f"no agent '{unknown[0]}': there are {', '.join(AGENTS)}")
    known = {(run.agent, run.seed) for run in read(options.results)}
    for agent, seed in [] if options.table else [(agent, seed) for seed in seeds for agent in agents]:
        if (agent, seed) not in known:
            _explore_and_add(agent, seed, options.results)
    write_between(options.page, BEGIN, END, table(read(options.results)))


def _explore_and_add(agent: str, seed: int, results: pathlib.Path) -> None:
    run = explore(agent, seed)
    with open(results, "a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(run)) + "\n")
    print(f"{agent}, seed {seed}: {run.cells[-1]} cells, {run.goals} goals, {duration(run.seconds)}", flush=True)


if __name__ == "__main__":
    main()
