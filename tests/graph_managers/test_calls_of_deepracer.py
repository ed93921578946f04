"""Calls of the multi-agent fork of Coach on a graph manager, and checkpoints of one agent of several."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, Transition
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo import parameters
from tests.zoo.graphs import schedule
from tests.zoo.players import SideBySide, players_graph


def made(directory: Any, seed: int = 1, **settings: Any) -> Any:
    return players_graph(
        [parameters.dqn(), parameters.dqn()], SideBySide, directory, schedule(60, heatup=40), seed=seed, **settings
    )


def weights(graph: Any, name: str) -> list[bytes]:
    return [array.tobytes() for array in graph.get_agents()[name].networks["main"].online_network.get_weights()]


def transition(game_over: bool = False) -> Transition:
    state = {"observation": np.ones(2, np.float32)}
    return Transition(state=state, action=1, reward=1.0, next_state=dict(state), game_over=game_over)


def test_physics_run_while_the_graph_is_made(tmp_path):
    calls: list[tuple[str, str]] = []
    graph = made(tmp_path, create=False)
    graph.create_graph(
        TaskParameters(FRAMEWORK, experiment_path=str(tmp_path), seed=1),
        stop_physics=lambda argument: calls.append(("stop", argument)),
        start_physics=lambda argument: calls.append(("start", argument)),
        empty_service_call=lambda: "empty",
    )
    assert calls == [("start", "empty"), ("stop", "empty")] and len(graph.get_agents()) == 2
    with pytest.raises(CoachError, match="need empty_service_call"):
        made(tmp_path, create=False).create_graph(start_physics=calls.append)


def test_a_trainer_takes_in_a_transition_of_each_agent(tmp_path):
    graph = made(tmp_path, done_condition=all)
    assert graph.agent_params is graph.agents_params["agent_0"]
    with graph.phase_context(RunPhase.TRAIN):
        counter = graph.current_step_counter
        graph.emulate_act_on_trainer(EnvironmentSteps(1), {"agent_0": transition(), "agent_1": transition()})
        graph.emulate_act_on_trainer(EnvironmentSteps(1), {"agent_0": transition(True), "agent_1": transition()})
        assert (counter[EnvironmentSteps], counter[EnvironmentEpisodes]) == (2, 0)
        graph.emulate_act_on_trainer(EnvironmentSteps(1), {"agent_1": transition(True)})
        assert (counter[EnvironmentSteps], counter[EnvironmentEpisodes]) == (3, 1)
        with pytest.raises(CoachError, match="there is no agent 'agent_2'; did you mean"):
            graph.emulate_act_on_trainer(EnvironmentSteps(1), {"agent_2": transition()})
        with pytest.raises(CoachError, match="agent 'agent_1' has no transition"):
            graph.emulate_act_on_trainer(EnvironmentSteps(1), {"agent_0": transition()})
    agents = graph.get_agents()
    assert agents["agent_1"].memory.num_transitions() == 3 and agents["agent_1"].clock.episodes == 1


class Backend:
    """A memory backend of the fork, which gives transitions by agent."""

    def __init__(self):
        self.purged = 0

    def fetch(self, steps):
        yield from ({"agent_0": transition(end), "agent_1": transition(end)} for end in (False, True))

    def memory_purge(self):
        self.purged += 1


def test_a_backend_gives_transitions_by_agent_and_is_purged_with_each_checkpoint(tmp_path):
    graph = made(tmp_path)
    graph.memory_backend = backend = Backend()
    with graph.phase_context(RunPhase.TRAIN):
        graph.fetch_from_worker(EnvironmentSteps(2))
        assert graph.current_step_counter[EnvironmentEpisodes] == 1
    assert graph.save_checkpoint() is not None and backend.purged == 1


def test_the_savers_of_one_agent_save_and_restore_it_alone(tmp_path):
    one, other = made(tmp_path / "one"), made(tmp_path / "other", seed=2)
    files = one.checkpoint_saver["agent_1"].save(None, str(tmp_path / "alone"))
    assert files and set(one.checkpoint_saver) == {"agent_0", "agent_1"}
    assert len(list(one.level_managers[0].collect_savers("agent_1"))) == len(files)
    first = weights(other, "agent_0")
    other.collect_savers("agent_1").restore(None, str(tmp_path / "alone"))
    assert weights(other, "agent_1") == weights(one, "agent_1") and weights(other, "agent_0") == first
    with pytest.raises(CoachError, match="has no agent 'agent_7'"):
        one.collect_savers("agent_7")


def test_one_agent_of_several_is_restored_from_its_own_directory(tmp_path, capsys):
    trained = made(tmp_path / "trained")
    trained.improve()
    trained.save_checkpoint()
    saved = tmp_path / "trained" / "checkpoint"
    assert {"agent_0", "agent_1"} <= {place.name for place in saved.iterdir()}
    (tmp_path / "alone").mkdir()
    shutil.copytree(saved / "agent_1", tmp_path / "alone" / "agent_1")
    fresh = made(tmp_path / "fresh", seed=2)
    first, memory = weights(fresh, "agent_0"), fresh.get_agents()["agent_1"].memory.num_transitions()
    fresh.task_parameters.checkpoint_restore_path = str(tmp_path / "alone")
    fresh.restore_checkpoint()
    assert weights(fresh, "agent_1") == weights(trained, "agent_1") != weights(fresh, "agent_0") == first
    assert fresh.get_agents()["agent_1"].memory.num_transitions() == memory, "its memory is not restored"
    assert "has no checkpoint of agent_0: these agents start without training" in capsys.readouterr().out
    fresh.restore_agent("agent_0", str(saved / "agent_0"))
    assert weights(fresh, "agent_0") == weights(trained, "agent_0")
    fresh.improve()


def test_a_checkpoint_of_the_whole_graph_comes_first(tmp_path):
    trained = made(tmp_path / "trained")
    trained.improve()
    trained.save_checkpoint()
    fresh = made(tmp_path / "fresh", seed=2)
    vars(fresh.task_parameters)["checkpoint_restore_dir"] = str(tmp_path / "trained" / "checkpoint")
    fresh.restore_checkpoint()
    agents = fresh.get_agents()
    assert all(weights(fresh, name) == weights(trained, name) for name in agents)
    assert agents["agent_1"].memory.num_transitions() == trained.get_agents()["agent_1"].memory.num_transitions() > 0


def test_checkpoints_that_are_not_of_this_agent_are_refused(tmp_path):
    graph = made(tmp_path)
    graph.save_checkpoint()
    saved = tmp_path / "checkpoint"
    with pytest.raises(CoachError, match="there is no agent 'agent_3'"):
        graph.restore_agent("agent_3", str(saved / "agent_0"))
    with pytest.raises(CoachError, match="belongs to a whole graph, not to one agent"):
        graph.restore_agent("agent_0", str(saved))
    with pytest.raises(CoachError, match="no checkpoint at"):
        graph.restore_agent("agent_0", str(saved / "nothing"))
