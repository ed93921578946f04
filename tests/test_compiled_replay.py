"""Learning from replay in a loop that is compiled as a whole: the same rows give the updates of the ordinary loop."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.compiled_level_manager import CompiledLevelManager
from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.vector_level_manager import VectorLevelManager
from tests.frameworks import FRAMEWORK
from tests.zoo.graphs import compiled, next_phase, schedule
from tests.zoo.parameters import dqn
from tests.zoo.states import differences, rows, samples_and_leaves

pytestmark = pytest.mark.skipif(
    FRAMEWORK is not Frameworks.jax, reason="loops are compiled on JAX (COACH_TEST_FRAMEWORK)"
)


def replaying(playing: int = 4, training: int = 1, targets: Any = None, **algorithm: Any) -> AgentParameters:
    parameters = dqn()
    parameters.memory.max_size = (MemoryGranularity.Transitions, 400)
    parameters.algorithm.discount = 0.9
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(playing)
    parameters.algorithm.num_consecutive_training_steps = training
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = targets or EnvironmentSteps(40)
    parameters.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 400)
    parameters.exploration.evaluation_epsilon = 0.0
    for name, value in algorithm.items():
        setattr(parameters.algorithm, name, value)
    return parameters


def test_dqn_learns_in_exactly_the_steps_of_its_schedule(tmp_path):
    steps = schedule(1000, evaluate_every=500, evaluation=5, heatup=80)
    manager = compiled(replaying(), tmp_path, steps=steps)
    assert isinstance(manager.level_managers[0], CompiledLevelManager)
    manager.improve()
    counts = {
        phase: manager.total_steps_counters[phase][EnvironmentSteps] for phase in (RunPhase.HEATUP, RunPhase.TRAIN)
    }
    assert counts == {RunPhase.HEATUP: 80, RunPhase.TRAIN: 1000}
    agent, memory = manager.get_agent(), manager.level_managers[0]._carry["memory"]
    assert agent.training_iteration == 250
    assert agent.exploration_policy.epsilon_schedule.num_steps == 1000
    assert (int(memory["stored"]), int(memory["next"])) == (100, (1080 // 4) % 100)
    assert manager.evaluation_rewards == [1.0] * 5
    manager.close()
    written = rows(tmp_path)
    assert {row["In Heatup"] for row in written} == {"0", "1"}
    assert sum(int(row["Update Target Network"]) for row in written) > 10
    assert sum(bool(row["Loss/Mean"]) for row in written) > 100


@pytest.mark.parametrize(
    ("playing", "training", "period", "moves"),
    [
        (4, 1, EnvironmentSteps(8), [[False], [True], [False], [True]]),
        (1, 1, EnvironmentSteps(1), [[True] * 4] * 2),
        (
            4,
            4,
            TrainingSteps(3),
            [[False, False, True, False], [False, True, False, False], [True, False, False, True]],
        ),
        (4, 3, TrainingSteps(12), [[False] * 3, [False] * 3, [False] * 3, [False, False, True]]),
        (4, 2, TrainingSteps(1), [[True, True]] * 2),
        (4, 2, EnvironmentSteps(4), [[False, True]] * 2),
    ],
)
def test_targets_move_where_the_ordinary_loop_moves_them(playing, training, period, moves, tmp_path):
    manager = compiled(replaying(playing, training, period), tmp_path)
    agent, part = manager.get_agent(), manager.level_managers[0]._part
    clock = copy.copy(agent.clock)
    planned = []
    for _ in moves:
        clock.steps += 4
        planned.append(part.plan(clock, 0, 0, None))
    phases = part.phases(planned)
    found = [[bool(moved) for moved in rows[:count, -1]] for rows, count in zip(phases.scalars, phases.count)]
    assert found == moves
    manager.close()


def test_drawn_rows_give_the_updates_of_the_ordinary_loop(tmp_path):
    import jax

    manager = compiled(replaying(training=3, targets=TrainingSteps(2)), tmp_path)
    agent, loop = manager.get_agent(), manager.level_managers[0]
    manager.heatup(EnvironmentSteps(60))
    part, learner, memory = loop._part, agent.update_loop.learner, loop._carry["memory"]
    phase = next_phase(manager)
    state = {name: one.layout.unpack(learner.ops, one.variables) for name, one in learner.networks.items()}
    key = jax.random.key(1)
    made = jax.jit(part.learn)(key, state, memory, loop._carry["statistics"], phase)
    drawn = {name: np.asarray(column) for name, column in part.columns(key, memory, {})[0].items()}
    columns = {name: column.reshape(-1, *column.shape[2:]) for name, column in drawn.items()}
    stored = {tuple(row) for row in np.asarray(memory["states"]["observation"])[:15].reshape(-1, 3).round(5).tolist()}
    assert {tuple(row) for row in columns["states/observation"].round(5).tolist()} <= stored
    np.testing.assert_allclose(np.unique(columns["discounts"]), [0.0, 0.9])
    moving = {"main": [False, True, False]}
    result = learner.train(columns, num_updates=3, target_rates={"main": 1.0}, moving=moving)
    np.testing.assert_allclose(np.asarray(made.outputs)[:, 0], result.losses["main"], rtol=1e-5, atol=1e-6)
    for group in ("weights", "slots", "target_weights"):
        for one, other in zip(made.state["main"][group], agent.networks["main"].state.arrays(group), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    manager.close()


def test_replay_resumes_exactly(tmp_path):
    whole = compiled(replaying(), tmp_path / "whole", checkpoint_save_steps=10**6)
    whole.heatup(EnvironmentSteps(40))
    whole.train_and_act(EnvironmentSteps(300))
    first = compiled(replaying(), tmp_path / "first", checkpoint_save_steps=10**6)
    first.heatup(EnvironmentSteps(40))
    first.train_and_act(EnvironmentSteps(128))
    path = first.save_checkpoint()
    first.close()
    task = {"checkpoint_save_steps": 10**6, "checkpoint_restore_path": path, "resume": True}
    second = compiled(replaying(), tmp_path / "first", **task)
    assert isinstance(second.level_managers[0], CompiledLevelManager)
    second.train_and_act(EnvironmentSteps(300 - 128))
    one, other = (samples_and_leaves(manager) for manager in (whole, second))
    assert [path for path in differences(one, other) if not path.endswith("/seconds")] == []
    whole.close(), second.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p: setattr(p, "memory", PrioritizedExperienceReplayParameters()), "PrioritizedExperienceReplay"),
        (lambda p: setattr(p.algorithm, "n_step", 3), "n_step is 3"),
        (
            lambda p: setattr(p.algorithm, "num_consecutive_playing_steps", EnvironmentSteps(6)),
            "is neither a multiple nor a divisor",
        ),
    ],
)
def test_a_line_says_why_replay_is_not_compiled(change, reason, tmp_path, capsys):
    parameters = replaying()
    change(parameters)
    manager = compiled(parameters, tmp_path)
    assert type(manager.level_managers[0]) is VectorLevelManager
    assert reason in capsys.readouterr().out
    manager.close()
