"""Conditional imitation: its updates against NumPy, the branch of each command, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.cil_agent import CILAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, RunPhase, TrainingSteps, Transition
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import ActionSpace, BoxActionSpace, DiscreteActionSpace, VectorObservationSpace
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import adam_of, assert_equal, dense, float64, gradient, one_update, recorded_columns
from tests.frameworks import in_layers_of_keras
from tests.zoo.environments import SmallEnvironment
from tests.zoo.graphs import graph, schedule
from tests.zoo.states import weights_of

SIZE, UPDATES, COMMANDS = 12, 4, 3


def demonstrated(position: Any, command: Any) -> np.ndarray:
    """[B, 2], another action for each command."""
    position, command = np.asarray(position).ravel(), np.asarray(command).ravel()
    steering = np.choose(command.astype(int), [position, -position, 0.5 + 0 * position])
    return np.stack([steering, 0.2 * command], axis=1).astype(np.float32)


class Crossroads(SmallEnvironment):
    """A position, and a command at each step: the reward is minus the distance from the demonstrated action."""

    def observations(self) -> dict[str, Any]:
        return {name: VectorObservationSpace(1, low=-3.0, high=3.0) for name in ("observation", "high_level_command")}

    def actions(self) -> ActionSpace:
        return BoxActionSpace(2, -1.0, 1.0)

    def first_state(self) -> dict[str, np.ndarray]:
        numbers = {"observation": self.rng.uniform(-1, 1), "high_level_command": self.rng.integers(COMMANDS)}
        return {name: np.array([number], np.float32) for name, number in numbers.items()}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        wanted = demonstrated(self.state["observation"], self.state["high_level_command"])[0]
        self.state = self.first_state()
        return -float(np.abs(action - wanted).sum()), False, self.steps == 10


class DiscreteCrossroads(Crossroads):
    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(2)


def recorded(directory: Any, commands: int = COMMANDS) -> str:
    """The file of 300 steps, with commands of very different frequencies."""
    rng, memory = np.random.default_rng(0), ExperienceReplay((MemoryGranularity.Transitions, 1000))
    for command in rng.choice(commands, 300, p=np.array([8, *[1] * (commands - 1)]) / (7 + commands)):
        state = {"observation": rng.uniform(-1, 1, 1).astype(np.float32), "high_level_command": np.float32([command])}
        action = demonstrated(state["observation"], min(command, COMMANDS - 1))[0]
        memory.store(Transition(state, action, 0.0, state, True))
    memory.save(directory / "crossroads.npz")
    return str(directory / "crossroads.npz")


def imitating(path: str, updates: int = UPDATES) -> AgentParameters:
    agent = CILAgentParameters()
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    agent.algorithm.num_consecutive_training_steps = updates
    agent.memory.num_classes, agent.memory.state_key_with_the_class_index = COMMANDS, "high_level_command"
    agent.memory.allow_duplicates_in_batch_sampling = True
    agent.memory.load_memory_from_file_path = path
    agent.exploration = AdditiveNoiseParameters()
    agent.exploration.noise_schedule, agent.exploration.evaluation_noise = ConstantSchedule(0), 0.0
    main = agent.network_wrappers["main"]
    main.batch_size, main.learning_rate, main.optimizer_epsilon = SIZE, 0.01, 1e-4
    main.heads_parameters[0].num_output_head_copies = COMMANDS
    main.heads_parameters[0].scheme, main.heads_parameters[0].activation_function = [Dense(3)], "tanh"
    embedder = main.input_embedders_parameters["observation"]
    embedder.scheme, embedder.activation_function = [Dense(4)], "tanh"
    main.middleware_parameters.scheme = MiddlewareScheme.Empty
    return agent


def branch(weights: list[np.ndarray], states: np.ndarray, command: int) -> np.ndarray:
    """[B, 2], the output of a branch. The weights of a layer come for all branches before those of the next layer."""
    hidden = np.tanh(dense(weights, 0, states))
    return dense(weights, 1 + COMMANDS + command, np.tanh(dense(weights, 1 + command, hidden)))


@in_layers_of_keras
def test_several_updates_are_those_of_the_paper(tmp_path):
    path = recorded(tmp_path)
    agent, fresh = (graph(imitating(path), Crossroads, tmp_path).get_agent() for _ in range(2))
    batches = recorded_columns(agent)
    float(agent.update_loop.learn(UPDATES))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    weights = float64(fresh.networks["main"].state.arrays("weights"))
    optimizer = adam_of(fresh.ap.network_wrappers["main"], weights)
    for number in range(UPDATES):
        batch = one_update(columns, number, SIZE)
        assert np.bincount(batch["extra/commands"].astype(int)).tolist() == [SIZE // COMMANDS] * COMMANDS

        def loss(w: list, batch: Any = batch) -> float:
            rows = zip(batch["states/observation"], batch["actions"], batch["extra/commands"])
            return float(np.mean([(action - branch(w, s[None], int(c))[0]) ** 2 for s, action, c in rows]))

        weights = optimizer(weights, gradient(loss, weights))
    assert_equal(agent.networks["main"].state.arrays("weights"), weights)


@in_layers_of_keras
def test_only_the_branches_of_the_commands_in_a_batch_learn(tmp_path):
    agent = graph(imitating(recorded(tmp_path)), Crossroads, tmp_path).get_agent()
    before = [np.array(array) for array in agent.networks["main"].state.arrays("weights")]
    rows = agent.memory.transitions
    of_one = rows[rows.state_columns["high_level_command"][:, 0] == 1][:SIZE]
    agent.learn_from_batch(of_one)
    after = agent.networks["main"].state.arrays("weights")
    changed = [not np.array_equal(one, np.asarray(other)) for one, other in zip(before, after, strict=True)]
    assert changed == [True] * 2 + 2 * ([False] * 2 + [True] * 2 + [False] * 2)


def test_the_command_chooses_the_action(tmp_path):
    agent = imitating(recorded(tmp_path), 50)
    agent.network_wrappers["main"].heads_parameters[0].scheme = [Dense(32)]
    agent.network_wrappers["main"].input_embedders_parameters["observation"].scheme = [Dense(32)]
    manager = graph(agent, Crossroads, tmp_path, schedule(TrainingSteps(1500), evaluation=5))
    manager.improve()
    assert np.mean(manager.evaluation_rewards) > -1.5  # 0.075 for each element; without the command about -8
    learner, found = manager.get_agent(), []
    for command in range(COMMANDS):
        state = {"observation": np.float32([0.6]), "high_level_command": np.float32([command])}
        learner.episode.curr_state, learner.phase = state, RunPhase.TEST
        found += learner.choose_action(state).action.tolist()
    wanted = demonstrated([0.6] * COMMANDS, range(COMMANDS)).ravel()
    np.testing.assert_allclose(found, wanted, atol=0.15)


def test_commands_without_a_branch_are_refused(tmp_path):
    agent = imitating(recorded(tmp_path, commands=4))
    agent.memory.num_classes = 4
    with pytest.raises(CoachError, match=r"'high_level_command' is \[3.0\] in a state, but .* branches 0 to 2"):
        graph(agent, Crossroads, tmp_path).get_agent().update_loop.learn(1)


def test_states_without_a_command_and_discrete_actions_are_refused(tmp_path):
    agent = imitating(recorded(tmp_path))
    agent.algorithm.state_key_with_the_class_index = "high_level_comand"
    with pytest.raises(
        CoachError,
        match=r"reads the command from an observation 'high_level_comand'.*did you mean 'high_level_command'",
    ):
        graph(agent, Crossroads, tmp_path)
    agent.memory.state_key_with_the_class_index = "high_level_comand"
    with pytest.raises(CoachError, match="memory to the observation that contains the command"):
        graph(agent, Crossroads, tmp_path)
    agent.algorithm.state_key_with_the_class_index = "high_level_command"
    with pytest.raises(CoachError, match=r"set memory.state_key_with_the_class_index, or use another memory"):
        graph(agent, Crossroads, tmp_path)
    with pytest.raises(CoachError, match="imitates continuous actions"):
        graph(imitating(recorded(tmp_path)), DiscreteCrossroads, tmp_path)


def test_an_agent_that_goes_on_from_a_checkpoint_ends_as_one_in_one_go(tmp_path):
    path = recorded(tmp_path)
    whole, first, second = (graph(imitating(path), Crossroads, tmp_path) for _ in range(3))
    whole.train_and_act(TrainingSteps(4 * UPDATES))
    first.train_and_act(TrainingSteps(2 * UPDATES))
    second.set_state(first.get_state())
    second.train_and_act(TrainingSteps(2 * UPDATES))
    assert all(np.array_equal(one, other) for one, other in zip(weights_of(whole), weights_of(second), strict=True))
