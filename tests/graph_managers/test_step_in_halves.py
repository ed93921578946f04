"""Loops outside of a graph, which ask their own environments between the two halves of a step."""

from __future__ import annotations

import itertools
from typing import Any, Iterable

import gymnasium
import numpy as np
import pytest

from rl_coach.core_types import EnvironmentSteps, EnvResponse, RunPhase
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.spaces import ActionSpace, DiscreteActionSpace, VectorObservationSpace
from tests.zoo.environments import SmallEnvironment
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn
from tests.zoo.states import weights_of

HEATUP, TRAINING = 40, 300
AGENTS = {"dqn": dqn, "clipped_ppo": clipped_ppo}


class Fed(SmallEnvironment):
    """Answers what it has been told, for a simulator that is stepped elsewhere."""

    told: tuple[np.ndarray, float, bool, bool] = (np.zeros(4, np.float32), 0.0, False, False)

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(4)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(2)

    def first_state(self) -> dict[str, np.ndarray]:
        return {"observation": self.told[0]}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        self.state = self.first_state()
        return self.told[1:]


class Simulator:
    """A CartPole of Gymnasium's, and the graph's environment, which is told of it."""

    def __init__(self, fed: Fed, seed: int):
        self.simulator = gymnasium.make("CartPole-v1")
        self.fed = fed
        self.seed: int | None = seed
        self.observations: list[list[np.ndarray]] = []

    def reset(self) -> None:
        observation, _ = self.simulator.reset(seed=self.seed)
        self.seed = None
        self.fed.told = (observation, 0.0, False, False)
        self.observations.append([observation])

    def step(self, action: int) -> EnvResponse:
        self.fed.told = self.simulator.step(action)[:4]
        self.observations[-1].append(self.fed.told[0])
        return self.fed.step(action)


def own_loop(manager: BasicRLGraphManager, phase: RunPhase, steps: int) -> None:
    """Act in one environment, in heatup to the end of the last episode."""
    (level,), (fed,) = manager.level_managers, manager.environments
    simulator = fed.simulator = getattr(fed, "simulator", None) or Simulator(fed, fed.seed)
    counts = manager.total_steps_counters[phase]
    with manager.phase_context(phase):
        while counts[EnvironmentSteps] < steps or (phase is RunPhase.HEATUP and not manager.reset_required):
            if manager.reset_required:
                simulator.reset()
            manager.begin_step()
            level.look()
            response = simulator.step(level.choose().action)
            level.take_in(response)
            manager.end_step(response, 1)
            if phase is RunPhase.TRAIN:
                manager.train()


def own_loop_in_copies(
    manager: BasicRLGraphManager, phase: RunPhase, steps: int, rounds: Iterable[list[int]] | None = None
) -> list[Simulator]:
    """Act in several environments.

    :param rounds: the copies that answer, in each round; None for all of them
    """
    (level,), (copies,) = manager.level_managers, manager.environments
    everybody = list(range(copies.num_copies))
    if not hasattr(copies, "simulators"):
        copies.simulators = [Simulator(fed, fed.seed) for fed in copies.copies]
    counts, rounds = manager.total_steps_counters[phase], iter(rounds or [])
    with manager.phase_context(phase):
        while counts[EnvironmentSteps] < steps:
            manager.begin_step()
            indices = next(rounds, everybody)
            for index in set(indices) & set(level.due):
                copies.simulators[index].reset()
            level.look_in(indices)
            chosen = level.choose_in(indices)
            responses = {index: copies.simulators[index].step(info.action) for index, info in chosen.items()}
            level.take_in_from(responses)
            manager.end_step(responses[indices[-1]], len(responses))
            if phase is RunPhase.TRAIN:
                manager.train()
    return copies.simulators


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_loop_outside_of_the_graph_learns_what_the_graphs_own_learns(agent, copies, tmp_path):
    plan = schedule(TRAINING, heatup=HEATUP)
    preset = graph(AGENTS[agent](), GymVectorEnvironment("CartPole-v1"), tmp_path / "a", plan, copies=copies)
    preset.improve()
    manager = graph(AGENTS[agent](), Fed, tmp_path / "b", plan, copies=copies)
    loop = own_loop if copies == 1 else own_loop_in_copies
    loop(manager, RunPhase.HEATUP, HEATUP)
    loop(manager, RunPhase.TRAIN, TRAINING)
    assert manager.get_agent().training_iteration == preset.get_agent().training_iteration > 1
    assert manager.total_steps_counters[RunPhase.TRAIN].counters == preset.total_steps_counters[RunPhase.TRAIN].counters
    for own, expected in zip(weights_of(manager), weights_of(preset)):
        np.testing.assert_array_equal(own, expected)


def some_of_three(seed: int) -> Iterable[list[int]]:
    """One to three of three copies, at random, for ever."""
    rng = np.random.default_rng(seed)
    while True:
        yield sorted(rng.choice(3, size=rng.integers(1, 4), replace=False).tolist())


def test_answers_may_come_from_some_of_the_copies(tmp_path):
    runs = [graph(dqn(), Fed, tmp_path / str(i), copies=3) for i in range(2)]
    for manager in runs:
        simulators = own_loop_in_copies(manager, RunPhase.TRAIN, 200, some_of_three(5))
        agent, (level,) = manager.get_agent(), manager.level_managers
        played = [episode for simulator in simulators for episode in simulator.observations]
        steps = sum(len(episode) - 1 for episode in played)
        counts = manager.total_steps_counters[RunPhase.TRAIN]
        assert steps == counts[EnvironmentSteps] == level.environment_steps == agent.total_steps_counter
        assert agent.memory.num_transitions() == steps and agent.training_iteration > 10
        follows = {tuple(before): after for episode in played for before, after in itertools.pairwise(episode)}
        for transition in (agent.memory.get_transition(row) for row in range(steps)):
            np.testing.assert_array_equal(
                transition.next_state["observation"], follows[tuple(transition.state["observation"])]
            )
        assert counts.counters == runs[0].total_steps_counters[RunPhase.TRAIN].counters
        assert manager.get_current_episodes_count() == agent.current_episode > 3
    for one, other in zip(*map(weights_of, runs)):
        np.testing.assert_array_equal(one, other)


def test_a_copy_that_does_not_answer_keeps_its_episode(tmp_path):
    manager = graph(clipped_ppo(), Fed, tmp_path, copies=3)
    simulators = own_loop_in_copies(manager, RunPhase.TRAIN, 130, some_of_three(6))
    agent = manager.get_agent()
    assert agent.training_iteration > 0
    for index in agent.parallel:
        if index not in manager.level_managers[0].due:
            np.testing.assert_array_equal(agent.curr_state["observation"], simulators[index].observations[-1][-1])


def test_nothing_is_chosen_once_the_agents_episode_is_over(tmp_path):
    manager = graph(dqn(), Fed, tmp_path)
    (level,), (fed,) = manager.level_managers, manager.environments
    with manager.phase_context(RunPhase.TRAIN):
        manager.begin_step()
        level.look()
        action = level.choose().action
        fed.told = (fed.told[0], 1.0, True, False)
        level.take_in(fed.step(action))
        assert level.episode_over and level.choose() is None
        manager.end_step(fed.last_env_response, 1)
    assert manager.reset_required and manager.get_current_episodes_count() == 1
