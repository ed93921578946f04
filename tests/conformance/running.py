"""Running of a cell: it is refused before the first step, or it plays and learns while a log is kept."""

from __future__ import annotations

import logging
import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator

import numpy as np

from rl_coach import make_agent
from rl_coach.base_parameters import AgentParameters, Frameworks, TaskParameters, TaskRole, VisualizationParameters
from rl_coach.callbacks import Callback
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, Episode, RunPhase, TrainingSteps, Transition
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.batch_rl_graph_manager import BatchRLGraphManager
from rl_coach.graph_managers.graph_manager import GraphManager, ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.orchestrators.asynchronous_workers import trains_asynchronously
from rl_coach.own_loop import Agent
from rl_coach.policy import Policy
from rl_coach.utils import CoachError
from tests.conformance.axes import FROM_FILES, Cell
from tests.conformance.environment import ACTIONS, OBSERVATIONS, Logged
from tests.conformance.log import record
from tests.conformance.parts import MeanFilter, agent_parameters
from tests.conformance.recording import DIRECTORY, record_learning
from tests.conformance.seen import agents_action, filtered, named

STEPS, HEATUP = 60, 10
_HERE = "tests.conformance.environment"
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_COPIES = {"3 copies sync": "sync", "3 copies native": "native", "3 copies async": "async"}
RECORDED = ("recorded", 0)
DEMONSTRATED = ("DQfD", "GAIL")
_ACT_IN_PARTS = ("BC", "GAIL")
COMMANDS = {"-n 2": ["-n", "2"], "-dc -n 2": ["-dc", "-n", "2"]}


@dataclass
class Outcome:
    """The result of a cell.

    :param refusal: the line that refused it; None if it ran
    :param counted: the run's own counts, by name
    :param weights: the weights of its networks at its end
    :param equal: pairs of other results that must be equal, by name
    :param seen: the counts of a callback, by name
    """

    refusal: str | None = None
    counted: dict[str, int] = field(default_factory=dict)
    weights: list[np.ndarray] = field(default_factory=list)
    equal: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    updates: int = 0


class Counting(Callback):
    """Counts its calls."""

    def __init__(self) -> None:
        self.seen = {"steps": 0, "episodes": 0, "updates": 0}

    def on_step(self, run: Any) -> None:
        self.seen["steps"] = run.steps

    def on_episode_end(self, run: Any) -> None:
        self.seen["episodes"] += 1

    def on_update(self, run: Any) -> None:
        self.seen["updates"] = run.updates


def _parameters(cell: Cell) -> AgentParameters:
    parameters = agent_parameters(cell)
    if cell.agent in DEMONSTRATED or is_from_file(cell):
        parameters.memory.load_memory_from_file_path = _demonstrations(cell)
    return parameters


def is_from_file(cell: Cell) -> bool:
    """True if a graph learns from a data file. Otherwise, an agent of a loop imports recorded steps."""
    return cell.way == "recorded data" and (cell.agent in FROM_FILES or cell.extra == "callback")


def _demonstrations(cell: Cell) -> str:
    """A file with what somebody played at random, after the filters that do not count."""
    memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 256))
    environment, episode, history = _environment(cell), Episode(), []
    for step in _random_steps(environment, 4):
        ends = step["terminated"] or step["truncated"]
        history = history or [named(cell, step["before"])]
        state = _in_file(cell, history)
        history.append(named(cell, step["after"]))
        action = agents_action(environment.action_space, step["action"], cell.agent in _ACT_IN_PARTS)
        episode.insert(Transition(
            state=state, action=action, reward=step["reward"], next_state=_in_file(cell, history), game_over=ends,
            terminated=step["terminated"],
        ))  # fmt: skip
        if ends:
            episode.is_complete = True
            memory.store_episode(episode)
            episode, history = Episode(), []
    path = os.path.join(os.environ[DIRECTORY], "demonstrations.npz")
    memory.save(path)
    return path


def _in_file(cell: Cell, history: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The newest observations in the dtypes of a file. Normalised observations are floats."""
    found = filtered(cell, history)
    if cell.filters == "normalisation" and "observation" in found:
        return {**found, "observation": np.asarray(found["observation"], np.float32)}
    return found


def _random_steps(environment: Logged, seed: int) -> Iterator[dict[str, Any]]:
    """Sixty steps of random actions, each with the observations before and after it."""
    environment.number = RECORDED
    environment.action_space.seed(seed)
    observation, _ = environment.reset(seed=seed)
    for step in range(STEPS):
        before = {"observation": observation, "mask": environment.mask}
        action = environment.action_space.sample(*([] if environment.mask is None else [environment.mask]))
        observation, reward, terminated, truncated, _ = environment.step(action)
        after = {"observation": observation, "mask": environment.mask}
        yield {"before": before, "action": action, "reward": reward, "terminated": terminated,
               "truncated": truncated, "after": after}  # fmt: skip
        if (terminated or truncated) and step < STEPS - 1:
            observation, _ = environment.reset()


def graph_of(cell: Cell) -> GraphManager:
    """The graph of a cell, which is not created yet."""
    schedule = ScheduleParameters()
    schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(HEATUP), EnvironmentSteps(STEPS)
    schedule.evaluation_steps = EnvironmentEpisodes(1 if cell.extra == "evaluation" else 0)
    schedule.steps_between_evaluation_periods = EnvironmentSteps(25)
    shown = VisualizationParameters(dump_parameters_documentation=False)
    settings = {"actions": cell.actions, "observations": cell.observations, "log": os.environ[DIRECTORY]}
    if cell.way == "two players":
        players = PettingZooEnvironmentParameters(f"{_HERE}:players")
        players.additional_simulator_parameters = settings
        return MultiAgentGraphManager([_parameters(cell)], players, schedule, shown)
    level = {"3 copies native": f"{_HERE}:native", "compiled": "tests.conformance.functional:Functional"}
    environment = GymVectorEnvironment(level.get(cell.way, f"{_HERE}:Logged"))
    environment.additional_simulator_parameters = settings
    if cell.way in _COPIES:
        environment.num_environments, environment.vectorization = 3, _COPIES[cell.way]
    if cell.way == "compiled":
        environment.num_environments = 4
        schedule.heatup_steps = EnvironmentSteps(0)
    if cell.way == "recorded data":
        schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(0), TrainingSteps(2)
        schedule.steps_between_evaluation_periods = TrainingSteps(1)
        return BatchRLGraphManager(_parameters(cell), environment, schedule, shown)
    return BasicRLGraphManager(_parameters(cell), environment, schedule, shown)


def run(cell: Cell, directory: pathlib.Path, seed: int = 1, is_played: bool = True) -> Outcome:
    """Run a cell. Its log is written to a directory.

    :param is_played: False only looks whether it is refused
    """
    directory.mkdir(parents=True, exist_ok=True)
    os.environ[DIRECTORY] = str(directory)
    record_learning()
    logger = logging.getLogger("rl_coach")
    level = logger.level
    logger.setLevel(logging.ERROR)
    recorded = _graph if is_from_file(cell) else _recorded
    way = {"own loop": _own_loop, "recorded data": recorded, **dict.fromkeys(COMMANDS, _command)}.get(cell.way, _graph)
    try:
        return way(cell, directory, seed, is_played)
    except CoachError as error:
        return Outcome(str(error))
    finally:
        logger.setLevel(level)
        if cell.way == "compiled" and "jax" in sys.modules:
            sys.modules["jax"].effects_barrier()  # the log is written when the loop has time
        del os.environ[DIRECTORY]


def _task(cell: Cell, directory: pathlib.Path, seed: int, **more: Any) -> TaskParameters:
    return TaskParameters(Frameworks[cell.framework], experiment_path=str(directory / "run"), seed=seed, **more)


def _graph(cell: Cell, directory: pathlib.Path, seed: int, is_played: bool) -> Outcome:
    manager = graph_of(cell)
    watch = Counting()
    if cell.extra == "callback":
        manager.callbacks = [watch]
    manager.create_graph(_task(cell, directory, seed))
    if not is_played:
        return Outcome()
    if cell.extra == "kill and resume":
        return _killed_and_resumed(cell, directory, seed, manager)
    manager.improve()
    outcome = _outcome(manager)
    outcome.seen = watch.seen if cell.extra == "callback" else {}
    if cell.extra == "export and act":
        _export(cell, outcome, manager.export_policy, directory)
    return outcome


def _killed_and_resumed(cell: Cell, directory: pathlib.Path, seed: int, manager: GraphManager) -> Outcome:
    """The steps after the checkpoint are lost, as in a killed run. The resumed run plays them again."""
    if cell.way == "recorded data":
        manager.improve()
    else:
        manager.heatup(EnvironmentSteps(HEATUP))
        manager.train_and_act(EnvironmentSteps(20))
        manager.save_checkpoint()
        record(os.environ[DIRECTORY], "saved")
        manager.train_and_act(EnvironmentSteps(STEPS - 20))
    outcome = _outcome(manager)
    record(os.environ[DIRECTORY], "resumed")
    again = graph_of(cell)
    again.create_graph(_task(cell, directory, seed, resume=True, checkpoint_restore_path=str(directory / "run")))
    if cell.way != "recorded data":
        again.train_and_act(EnvironmentSteps(STEPS - 20))
    resumed = _outcome(again)
    again.close()
    if cell.way != "3 copies native":  # their episodes cannot be resumed, as docs/several_environments.md says
        what = "of the resumed run and of the run without a break"
        outcome.equal[f"weights {what}"] = (outcome.weights, resumed.weights)
        outcome.equal[f"counts {what}"] = (outcome.counted, resumed.counted)
    return outcome


def _outcome(manager: GraphManager) -> Outcome:
    counts = manager.total_steps_counters
    counted = {
        name: sum(counts[phase][unit] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
        for name, unit in (("steps", EnvironmentSteps), ("episodes", EnvironmentEpisodes))
    }
    agents = list(manager.level_managers[-1].agents.values())
    weights = [array for agent in agents for array in _weights(agent)]
    return Outcome(counted=counted, weights=weights, updates=sum(agent.training_iteration for agent in agents))


def _weights(agent: Any) -> list[np.ndarray]:
    states = [network.state for network in agent.networks.values()]
    return [np.array(array) for state in states for group in state.groups() for array in state.arrays(group)]


def _export(cell: Cell, outcome: Outcome, export: Callable[[str], Any], directory: pathlib.Path) -> None:
    path = str(directory / "policy")
    export(path)
    policy = Policy.load(path, allow_filters_from=[MeanFilter.__module__])
    environment = _environment(cell)
    observation, _ = environment.reset(seed=3)
    for _ in range(3):
        action = policy.act(_with_mask({"observation": observation, "mask": environment.mask}))
        observation = environment.step(action)[0]


def _environment(cell: Cell) -> Logged:
    return Logged(cell.actions, cell.observations, os.environ[DIRECTORY])


def _with_mask(seen: dict[str, Any]) -> Any:
    if seen["mask"] is None:
        return seen["observation"]
    observation = seen["observation"]
    named = observation if isinstance(observation, dict) else {"observation": observation}
    return {**named, "action_mask": seen["mask"]}


def _info(seen: dict[str, Any]) -> dict[str, Any]:
    return {} if seen["mask"] is None else {"action_mask": seen["mask"]}


def _own_agent(cell: Cell, directory: pathlib.Path, seed: int, heatup: int = HEATUP) -> Agent:
    return make_agent(
        _parameters(cell), observation_space=OBSERVATIONS[cell.observations], action_space=ACTIONS[cell.actions],
        action_mask=cell.actions == "masked", heatup_steps=heatup, seed=seed, framework=cell.framework,
        experiment_path=str(directory / "run"),
    )  # fmt: skip


def _own_loop(cell: Cell, directory: pathlib.Path, seed: int, is_played: bool) -> Outcome:
    if cell.extra == "callback":
        raise CoachError("act and observe call no callbacks: call your function in your loop")
    agent = _own_agent(cell, directory, seed)
    if not is_played:
        return Outcome()
    environment = _environment(cell)
    _play(agent, environment, 40, True)
    if cell.extra == "evaluation":
        with agent.evaluation():
            _play(agent, _environment(cell), 9, True)
    outcome = Outcome()
    if cell.extra == "kill and resume":
        agent.save(directory / "saved")
        resumed = Agent.load(directory / "saved", algorithm=_parameters(cell))
        outcome.equal["weights of the saved and of the loaded agent"] = tuple(
            _weights(one.graph_manager.get_agent()) for one in (agent, resumed)
        )
    _play(agent, environment, STEPS + HEATUP - 40, False)
    found = _outcome(agent.graph_manager)
    found.equal = outcome.equal
    if cell.extra == "export and act":
        _export(cell, found, agent.export_model, directory)
    return found


def _play(agent: Agent, environment: Logged, steps: int, begins: bool) -> None:
    if begins:
        environment.now = environment.reset(seed=agent.environment_seed)
    for _ in range(steps):
        state, info = environment.now
        action = agent.act(state, infos=info)
        state, reward, terminated, truncated, info = environment.step(action)
        agent.observe(reward, terminated, truncated, state, infos=info)
        environment.now = environment.reset() if terminated or truncated else (state, info)


def _recorded(cell: Cell, directory: pathlib.Path, seed: int, is_played: bool) -> Outcome:
    """Random steps are recorded, and an agent learns from them."""
    agent = _own_agent(cell, directory, seed, 0)
    steps = [
        {
            "states": step["before"]["observation"],
            "actions": step["action"],
            "rewards": step["reward"],
            "terminals": step["terminated"],
            "truncated": step["truncated"],
            "next_states": step["after"]["observation"],
            "info": _info(step["before"]),
            "next_info": _info(step["after"]),
        }
        for step in _random_steps(_environment(cell), 4)
    ]
    agent.import_observations(steps)
    if not is_played:
        return Outcome()
    for _ in range(4):
        agent.update()
    found = _outcome(agent.graph_manager)
    found.counted = {}
    if cell.extra == "evaluation":
        with agent.evaluation():
            _play(agent, _environment(cell), 9, True)
    if cell.extra == "kill and resume":
        agent.save(directory / "saved")
        resumed = Agent.load(directory / "saved", algorithm=_parameters(cell))
        found.equal["weights of the saved and of the loaded agent"] = tuple(
            _weights(one.graph_manager.get_agent()) for one in (agent, resumed)
        )
    if cell.extra == "export and act":
        _export(cell, found, agent.export_model, directory)
    return found


def _command(cell: Cell, directory: pathlib.Path, seed: int, is_played: bool) -> Outcome:
    manager = graph_of(cell)
    environment = {**os.environ, "CONFORMANCE_CELL": str(cell), "PYTHONPATH": str(_ROOT)}
    extra = {
        "evaluation": [], "callback": ["--callback", "tests.conformance.running:Counting"],
        "export and act": ["--export_onnx_graph"], "kill and resume": ["--checkpoint_save_steps", "20"],
    }.get(cell.extra, [])  # fmt: skip
    command = [
        sys.executable, "-m", "rl_coach", "-p", str(pathlib.Path(__file__).with_name("preset.py")), "-e", "run", "-ep",
        str(directory), "-f", cell.framework, "--seed", str(seed), *COMMANDS[cell.way], *extra,
    ]  # fmt: skip
    if not is_played:
        task = _task(cell, directory, seed)
        if cell.way == "-dc -n 2" or not trains_asynchronously(manager):
            task.role = TaskRole.TRAINING
        manager.create_graph(task)
        return Outcome()
    done = subprocess.run(command, env=environment, cwd=_ROOT, capture_output=True, text=True, timeout=900)
    if done.returncode == 2:
        raise CoachError((done.stderr.strip() or done.stdout.strip()).removeprefix("coach: "))
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}: {done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return Outcome()
