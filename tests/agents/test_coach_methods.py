"""Methods of agents, levels and graphs that programs written for Coach override or call."""

from __future__ import annotations

import copy
import os
import pathlib
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.base_parameters import TaskParameters, VisualizationParameters
from rl_coach.checkpoint import find_checkpoint
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.saver import Saver
from rl_coach.utilities.requirements import check
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.agents import of_class
from tests.zoo.environments import Bandit, SmallEnvironmentParameters
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import clipped_ppo, dqn, policy_gradients, ppo
from tests.zoo.states import weights_of


class Notes(Saver):
    """Saves a text."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def path(self):
        return "notes"

    def save(self, sess, save_path):
        pathlib.Path(save_path).write_text(self.text)
        return [save_path]

    def restore(self, sess, restore_path):
        self.text = pathlib.Path(restore_path).read_text()

    def merge(self, other):
        raise AssertionError("there is one")


class NotingAgent(DQNAgent):
    """Keeps notes in three ways that Coach offers: a saver, a file beside each checkpoint, and networks at hand."""

    def __init__(self, agent_parameters, parent=None):
        super().__init__(agent_parameters, parent)
        self.notes = Notes()
        self.restored = ""

    def initialize_session_dependent_components(self):
        super().initialize_session_dependent_components()
        self.had_networks = list(self.networks)

    def collect_savers(self, parent_path_suffix):
        savers = super().collect_savers(parent_path_suffix)
        savers.add(self.notes)
        return savers

    def _file(self, directory, prefix):
        return pathlib.Path(directory, f"{prefix}.{self.name}.txt")

    def save_checkpoint(self, checkpoint_prefix):
        file = self._file(self.ap.task_parameters.checkpoint_save_dir, checkpoint_prefix)
        file.write_text(f"{self.total_steps_counter} steps")

    def restore_checkpoint(self, checkpoint_dir):
        newest = pathlib.Path(find_checkpoint(checkpoint_dir)).name
        self.restored = self._file(checkpoint_dir, newest).read_text()


def noting(directory, steps=10, **task):
    return graph(of_class(dqn(), NotingAgent), Bandit, directory, schedule(steps, heatup=20), **task)


def test_what_an_agent_keeps_besides_its_state_goes_with_each_checkpoint(tmp_path):
    manager = noting(tmp_path)
    manager.checkpoints_to_keep = 1
    agent = manager.get_agent()
    assert agent.had_networks == ["main"]
    for text in ("first", "second"):
        manager.train_and_act(EnvironmentSteps(10))
        agent.notes.text = text
        path = manager.save_checkpoint()
    beside = {name for name in os.listdir(manager.checkpoint_dir) if not name.startswith(".")}
    assert beside == {os.path.basename(path), f"{os.path.basename(path)}.agent.txt"}
    assert os.listdir(os.path.join(path, "savers")) == ["saved.notes"]
    again = noting(tmp_path / "again", checkpoint_restore_path=manager.checkpoint_dir)
    assert again.get_agent().notes.text == "second" and again.get_agent().restored == "20 steps"


def test_a_changed_file_of_a_saver_is_found(tmp_path):
    manager = noting(tmp_path)
    manager.get_agent().notes.text = "mine"
    path = manager.save_checkpoint()
    pathlib.Path(path, "savers", "saved.notes").write_text("else")
    with pytest.raises(CoachError, match=r"saved\.notes"):
        noting(tmp_path / "again", checkpoint_restore_path=path)


def test_an_agents_savers_hold_its_networks(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    (level,) = manager.level_managers
    written = level.collect_savers().save(None, str(tmp_path / "weights"))
    assert [name.split("weights.")[1] for name in sorted(written)] == [
        f"{level.name}.agent.main.online", f"{level.name}.agent.main.target",
    ]  # fmt: skip


def test_small_questions_to_an_agent(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path, schedule(10, heatup=20))
    manager.heatup(EnvironmentSteps(20))
    agent = manager.get_agent()
    assert agent.get_current_time() == agent.current_episode > 0
    state = agent.curr_state
    q_values, probabilities = agent.get_all_q_values_for_states_and_softmax_probabilities([state, state])
    np.testing.assert_allclose(probabilities, np.exp(q_values) / np.exp(q_values).sum(axis=1, keepdims=True), rtol=1e-5)
    embedding = agent.get_state_embedding(state)
    assert embedding.shape == (1, 16)
    weights = agent.networks["main"].online_network.get_weights()
    hidden = np.maximum(np.asarray(state["observation"])[None] @ weights[0] + weights[1], 0)
    np.testing.assert_allclose(embedding, hidden, rtol=1e-5, atol=1e-6)
    before = agent.memory.num_transitions()
    assert isinstance(agent.memory, ExperienceReplay)
    agent.freeze_memory()
    assert agent.memory.num_transitions() == before


def test_sessions_and_graph_files(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    levels = manager.level_managers
    manager.create_session(manager.task_parameters)
    assert manager.level_managers is levels
    manager.save_onnx_graph()
    assert os.path.getsize(os.path.join(manager.checkpoint_dir, "model.onnx")) > 100
    with pytest.raises(CoachError, match=r"save_onnx_graph\(\)"):
        manager.save_graph()
    with pytest.raises(CoachError, match="parameter servers are not supported"):
        manager.create_worker_or_parameters_server(manager.task_parameters)


def test_sessions_are_accepted_by_graph_levels_and_agents(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    before = [array.copy() for array in weights_of(manager)]
    for part in (manager, *manager.level_managers, manager.get_agent()):
        assert part.set_session(object()) is None
    for one, other in zip(weights_of(manager), before):
        np.testing.assert_array_equal(one, other)


def test_an_agent_that_overrides_set_session_is_called(tmp_path):
    manager = graph(dqn(), Bandit, tmp_path)
    sessions: list[Any] = []
    manager.get_agent().set_session = sessions.append
    manager.set_session("a session")
    assert sessions == ["a session"]


@pytest.mark.parametrize("makes", ["constructor", "attribute", "dictionary"])
def test_a_program_that_evaluates_a_checkpoint(makes, tmp_path):
    """As scripts do that evaluate in the cloud: the task evaluates only, and the script says how long."""
    trained = graph(dqn(), Bandit, tmp_path / "trained", schedule(40, heatup=20))
    trained.improve()
    path = trained.save_checkpoint()
    directory = os.path.dirname(path)
    environment = SmallEnvironmentParameters(Bandit)
    manager = BasicRLGraphManager(dqn(), environment, schedule(10), VisualizationParameters(dump_csv=False))
    task = TaskParameters(FRAMEWORK, evaluate_only=True, experiment_path=str(tmp_path / "evaluated"), seed=3)
    if makes == "attribute":
        task = TaskParameters(FRAMEWORK, experiment_path=str(tmp_path / "evaluated"), seed=3)
        task.evaluate_only = True
    if makes == "dictionary":
        task.__dict__["checkpoint_restore_dir"] = directory
    else:
        task.checkpoint_restore_path = directory
    manager.create_graph(task)
    manager.evaluate(EnvironmentSteps(25))
    assert len(manager.evaluation_rewards) == 3 and manager.get_agent().training_iteration > 0
    for one, other in zip(weights_of(manager), weights_of(trained)):
        np.testing.assert_array_equal(one, other)
    # an agent that evaluates only counts its episodes and steps
    assert manager.get_agent().current_episode == trained.get_agent().current_episode + 3


@pytest.mark.parametrize(("value", "expected"), [(True, 0), (False, None), (None, None), (0, 0), (7, 7)])
def test_what_evaluate_only_means(value, expected):
    task = TaskParameters(evaluate_only=value)
    check(task)
    assert task.num_evaluation_steps == expected and type(task.num_evaluation_steps) is type(expected)


@pytest.mark.parametrize("make", [policy_gradients, clipped_ppo])
def test_agents_on_policy_ignore_when_targets_are_copied(make, tmp_path):
    """Presets for DeepRacer set episodes."""
    found = []
    for period in (None, EnvironmentEpisodes(20)):
        parameters = make()
        if period is not None:
            parameters.algorithm.num_steps_between_copying_online_weights_to_target = period
        manager = graph(parameters, Bandit, tmp_path / str(len(found)), schedule(130))
        manager.improve()
        assert manager.get_agent().training_iteration > 0
        found.append([network.online_network.get_weights() for network in manager.get_agent().networks.values()])
    for one, other in zip(*found):
        for array, expected in zip(one, other):
            np.testing.assert_array_equal(array, expected)


def test_targets_may_be_copied_after_episodes(tmp_path):
    parameters = dqn()
    parameters.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentEpisodes(3)
    manager = graph(parameters, Bandit, tmp_path, schedule(100))
    changes = []
    for _ in range(90):
        manager.train_and_act(EnvironmentSteps(1))
        network = manager.get_agent().networks["main"].target_network
        changes.append(network.get_weights()[0].copy())
    changed = [step + 1 for step in range(1, 90) if not np.array_equal(changes[step], changes[step - 1])]
    assert changed == [30, 60, 90]  # episodes of ten steps


def test_a_reward_model_learns_the_rewards_of_the_actions_taken(tmp_path):
    parameters = dqn()
    parameters.network_wrappers["reward_model"] = copy.deepcopy(parameters.network_wrappers["main"])
    manager = graph(parameters, Bandit, tmp_path, schedule(10, heatup=200))
    manager.heatup(EnvironmentSteps(200))
    agent = manager.get_agent()
    model, main = (agent.networks[name].online_network for name in ("reward_model", "main"))
    batch = next(agent.call_memory("get_shuffled_training_data_generator", 16))
    inputs, taken = batch.states(["observation"]), (np.arange(16), batch.actions())
    before, policy = model.predict(inputs), [a.copy() for a in main.get_weights()]
    squares = (before[taken] - batch.rewards()) ** 2
    assert agent.get_reward_model_loss(batch) == pytest.approx(squares.sum() / before.size, rel=1e-5)
    agent.improve_reward_model(30)
    after = model.predict(inputs)[taken]
    assert np.abs(after - batch.rewards()).max() < 0.1 < np.abs(before[taken] - batch.rewards()).max()
    for one, other in zip(policy, main.get_weights()):
        np.testing.assert_array_equal(one, other)


def test_ppos_critic_and_policy_learn_alone(tmp_path):
    manager = graph(ppo(), Bandit, tmp_path, schedule(100, heatup=0))
    agent = manager.get_agent()
    learned: dict[str, list[float]] = {"critic": [], "actor": []}

    def noting(name, train):
        def noted(columns, epochs):
            before = {one: copy.deepcopy(agent.networks[one].online_network.get_weights()) for one in learned}
            learned[name].append(epochs)
            loss = train(columns, epochs)
            changed = [
                one
                for one in learned
                if not all(map(np.array_equal, before[one], agent.networks[one].online_network.get_weights()))
            ]
            assert changed == [name]
            return loss

        return noted

    agent.train_value_network = noting("critic", agent.train_value_network)
    agent.train_policy_network = noting("actor", agent.train_policy_network)
    manager.improve()
    phases = agent.training_iteration
    assert phases > 0 and learned == {"critic": [1] * phases, "actor": [10] * phases}
    assert agent.update_loop.learner.num_compilations == 1


def test_states_with_the_number_of_their_step(tmp_path):
    manager = graph(ppo(), Bandit, tmp_path, schedule(100, heatup=25))
    manager.heatup(EnvironmentSteps(25))
    agent = manager.get_agent()
    batch = agent.memory.get_all_complete_episodes_transitions()
    found = agent.concat_state_and_timestep(batch)
    np.testing.assert_array_equal(found[:, :-1], batch.state_columns["observation"])
    np.testing.assert_array_equal(found[:, -1], [*range(10), *range(10), *range(len(batch) - 20)])
