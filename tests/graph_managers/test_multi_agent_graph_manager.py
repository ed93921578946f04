"""Several agents in one environment."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.runs import experiments
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo import parameters
from tests.zoo.environments import Bandit, SmallEnvironmentParameters
from tests.zoo.graphs import schedule
from tests.zoo.players import Leaving, SideBySide, players_graph

SCHEDULE = schedule(120, heatup=40, evaluate_every=EnvironmentSteps(50), evaluation=2)
LEARNED = ("networks", "memory", "exploration", "rng", "clock", "counters")


def flat(state: dict[str, Any]) -> dict[str, Any]:
    """A state as plain values and bytes by path."""
    found: dict[str, Any] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                walk(f"{path}/{key}", part)
        elif isinstance(value, (list, tuple)):
            for index, part in enumerate(value):
                walk(f"{path}/{index}", part)
        elif isinstance(value, (np.ndarray, np.generic)):
            found[path] = (str(np.asarray(value).dtype), np.asarray(value).tobytes())
        else:
            found[path] = value

    walk("", state)
    return found


def learned(agent: Any) -> dict[str, Any]:
    return flat({name: part for name, part in agent.get_state().items() if name in LEARNED})


AGENTS = [
    parameters.dqn,
    parameters.clipped_ppo,
    pytest.param(parameters.recurrent_dqn, marks=pytest.mark.slow),
    pytest.param(parameters.prioritized, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("make", AGENTS)
def test_two_players_of_independent_environments_learn_as_two_runs_do(tmp_path, make):
    together = players_graph([make(), make()], SideBySide, tmp_path / "both", SCHEDULE, create=False)
    # the seeds of the environment, of that for evaluation, and of each agent
    both = iter([0, 1, 2, 3])
    together.spawn_seed = lambda: np.random.SeedSequence(next(both))
    together.env_params.seed = 50
    together.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(tmp_path)))
    together.improve()
    for index, (name, agent) in enumerate(together.get_agents().items()):
        alone = graph_with_seeds(make(), [0, 1, 2 + index], 50 + index, tmp_path / name)
        alone.improve()
        assert learned(agent) == learned(alone.get_agent())
        assert agent.clock.updates > 0


def graph_with_seeds(agent: Any, seeds: list[int], environment_seed: int, directory: Any) -> Any:
    environment = SmallEnvironmentParameters(Bandit)
    environment.seed = environment_seed
    manager = BasicRLGraphManager(agent, environment, SCHEDULE, VisualizationParameters(dump_csv=False))
    own = iter(seeds)
    manager.spawn_seed = lambda: np.random.SeedSequence(next(own))
    return manager.create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory)))


def rows(directory: Any, agent: str) -> list[dict[str, str]]:
    (path,) = directory.glob(f"worker_0.multi_agent_graph.main_level.main_level.{agent}_0.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Stays(Leaving):
    """Player 0 stays longest."""

    lengths = (5, 2, 3)


def test_players_leave_one_after_the_other(tmp_path):
    agents = [parameters.dqn() for _ in range(3)]
    manager = players_graph(agents, Leaving, tmp_path, schedule(20), done_condition=all)
    manager.improve()
    assert manager.total_steps_counters[RunPhase.TRAIN][EnvironmentSteps] == 20
    assert manager.total_steps_counters[RunPhase.TRAIN][EnvironmentEpisodes] == 4
    assert {name: agent.clock.steps for name, agent in manager.get_agents().items()} == {
        "agent_0": 8, "agent_1": 20, "agent_2": 12,
    }  # fmt: skip
    for name, length, reward in (("agent_0", 2, 2), ("agent_1", 5, 50), ("agent_2", 3, 300)):
        memory = manager.get_agents()[name].memory
        ends = [bool(memory.get_transition(index).game_over) for index in range(memory.num_transitions())]
        assert ends == ([False] * (length - 1) + [True]) * 4
        found = rows(tmp_path, name)
        assert [float(row["Training Reward"]) for row in found] == [reward] * 4
        assert [float(row["Episode Length"]) for row in found] == [length] * 4


def test_an_episode_that_another_player_ends_is_bootstrapped(tmp_path):
    agents = [parameters.dqn() for _ in range(3)]
    manager = players_graph(agents, Leaving, tmp_path, schedule(20))
    manager.improve()
    assert manager.total_steps_counters[RunPhase.TRAIN][EnvironmentEpisodes] == 10
    for name, agent in manager.get_agents().items():
        last = [agent.memory.get_transition(index) for index in range(1, 20, 2)]
        assert all(transition.game_over for transition in last)
        assert {bool(transition.terminated) for transition in last} == {name == "agent_0"}
    assert manager.progress.best_evaluation is None


@pytest.mark.parametrize("make", [*AGENTS, pytest.param(parameters.actor_critic, marks=pytest.mark.slow)])
@pytest.mark.parametrize("done_condition", [any, all])
def test_one_policy_of_all_players(tmp_path, make, done_condition):
    manager = players_graph(make(), Leaving, tmp_path, SCHEDULE, done_condition=done_condition)
    manager.improve()
    agent = manager.get_agents()["agent"]
    steps = manager.total_steps_counters
    played = sum(steps[phase][EnvironmentSteps] for phase in (RunPhase.HEATUP, RunPhase.TRAIN))
    assert played == 160
    assert agent.clock.steps == (played * 3 if done_condition is any else played // 5 * 10)
    assert agent.clock.updates > 0
    assert manager.evaluation_rewards == [222.0 if done_condition is any else 352.0] * 2


def test_an_agent_that_ends_its_own_episode_is_told_no_more(tmp_path):
    agents = [parameters.dqn() for _ in range(3)]
    manager = players_graph(agents, Leaving, tmp_path, schedule(20), done_condition=all)
    agent = manager.get_agents()["agent_1"]
    observe = agent.observe
    agent.observe = lambda response: observe(response) or agent.episode.steps >= 3
    manager.improve()
    assert {name: agent.clock.steps for name, agent in manager.get_agents().items()} == {
        "agent_0": 14, "agent_1": 20, "agent_2": 20,
    }  # fmt: skip
    assert [float(row["Episode Length"]) for row in rows(tmp_path, "agent_1")] == [3] * 6


def test_teams_share_a_policy_each(tmp_path):
    agents = {"red": parameters.dqn(), "blue": parameters.clipped_ppo()}
    seats = {"agent_0": "red", "agent_1": "blue", "agent_2": "red"}
    manager = players_graph(agents, Leaving, tmp_path, SCHEDULE, agent_of=seats, reward_of="red")
    manager.improve()
    assert {name: agent.clock.steps for name, agent in manager.get_agents().items()} == {"red": 320, "blue": 160}
    assert manager.evaluation_rewards == [202.0] * 2
    assert {row["Episode Length"] for row in rows(tmp_path, "red") if row["Episode Length"]} == {"2"}


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"agents": 2}, "2 agents for 3 players (agent_0, agent_1, agent_2): give agent_of, a dictionary"),
        ({"agent_of": {"agent_0": "agent"}}, "agent_of: no agent plays 'agent_1'; the players are agent_0, agent_1"),
        ({"agent_of": {"agent_9": "agent"}}, "agent_of: there is no player 'agent_9'; did you mean"),
        ({"agents": 3, "agent_of": dict.fromkeys(["agent_0", "agent_1", "agent_2"], "agent_0")},
         "agent_of: agent 'agent_1' plays no player: name a player for it, or remove the agent"),
        ({"agent_of": dict.fromkeys(["agent_0", "agent_1", "agent_2"], "agnt")}, "agent_of: there is no agent 'agnt'"),
        ({"reward_of": "agnet"}, "reward_of: there is no agent or player 'agnet'"),
    ],
)  # fmt: skip
def test_agents_that_do_not_fit_the_players_are_refused(tmp_path, settings, message):
    agents = [parameters.dqn() for _ in range(settings.pop("agents", 1))]
    with pytest.raises(CoachError) as refusal:
        players_graph(agents, Leaving, tmp_path, **settings)
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("done_condition", [any, all])
@pytest.mark.parametrize("make", AGENTS)
def test_a_run_goes_on_exactly_in_the_middle_of_an_episode(tmp_path, make, done_condition):
    def at(steps: int) -> Any:
        return schedule(steps, heatup=41, evaluate_every=EnvironmentSteps(50), evaluation=1)

    def agents() -> dict[str, Any]:
        return {"red": make(), "blue": make()}

    seats = {"agent_0": "red", "agent_1": "blue", "agent_2": "red"}
    settings: dict[str, Any] = {"agent_of": seats, "done_condition": done_condition}
    whole = players_graph(agents(), Leaving, tmp_path / "whole", at(123), **settings)
    whole.improve()
    first = players_graph(agents(), Leaving, tmp_path / "parts", at(63), **settings)
    first.improve()
    path = first.last_checkpoint_path
    second = players_graph(agents(), Leaving, tmp_path / "parts", at(123), seed=9, restore=path, **settings)
    second.improve()
    for name, agent in whole.get_agents().items():
        assert learned(second.get_agents()[name]) == learned(agent)


def test_an_evaluation_in_the_middle_of_an_episode_changes_nothing(tmp_path):
    seats = {"agent_0": "red", "agent_1": "blue", "agent_2": "red"}
    found = []
    for number, evaluations in enumerate((0, 3)):
        agents = {"red": parameters.dqn(), "blue": parameters.recurrent_dqn()}
        manager = players_graph(
            agents, Leaving, tmp_path / str(number), schedule(10**6), agent_of=seats, done_condition=all
        )
        manager.train_and_act(EnvironmentSteps(43))
        for _ in range(evaluations):
            manager.evaluate(EnvironmentEpisodes(2))
        manager.train_and_act(EnvironmentSteps(40))
        found.append({name: learned(agent) for name, agent in manager.get_agents().items()})
    assert found[0] == found[1]


def test_each_agent_has_files_a_curve_and_a_policy_of_its_own(tmp_path):
    manager = players_graph(
        [parameters.dqn(), parameters.dqn()], SideBySide, tmp_path, schedule(60, heatup=20), create=False
    )
    manager.visualization_parameters.tensorboard = True
    task = TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1, checkpoint_save_secs=3600)
    manager.create_graph(task)
    manager.improve()
    manager.close()
    stems = {f"worker_0.multi_agent_graph.main_level.main_level.agent_{index}_0" for index in range(2)}
    assert {path.stem for path in tmp_path.glob("*agent*.csv")} == stems
    assert {path.name for path in (tmp_path / "tensorboard").iterdir() if any(path.rglob("events*"))} == stems
    found = experiments.load(tmp_path)
    assert len(found.runs) == 2
    curves = {run: rows["Training Reward"].dropna().to_list() for run, rows in found.signals.groupby("run")}
    assert len(curves) == 2 and all(curves.values())
    (checkpoint,) = (tmp_path / "checkpoint").glob("*.ckpt")
    assert {path.parent.name for path in checkpoint.rglob("policy.json")} == {
        "main_level.agent_0",
        "main_level.agent_1",
    }
    assert [name for name, _ in manager.other_fields()] == ["agent_0", "agent_1"]
