"""MARWIL: its update against the paper's equations in float64, equality with behavioural cloning, and its data."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.bc_agent import BCAgentParameters
from rl_coach.agents.marwil_agent import MARWILAgentParameters
from rl_coach.agents.rules.imitation import weighted_imitation_rule
from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.core_types import CsvDataset, EnvironmentSteps, TrainingSteps, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.utils import CoachError
from tests.agents import numpy_rules
from tests.agents.numpy_rules import FixedNetwork, gaussian_density, softmax_policy
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import shrink
from tests.zoo.states import weights_of

EPISODES = ([0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0])


class Normaliser:
    """The kept value c^2."""

    def __init__(self, value: float):
        self.value: Any = np.float32(value)

    def online(self, states: dict[str, Any]) -> Any:
        return [{"mean_squared_advantage": self.value}]

    def keep(self, mean_squared_advantage: Any) -> None:
        self.value = np.asarray(mean_squared_advantage)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_discrete", [True, False])
def test_losses_are_those_of_the_paper(is_discrete, seed):
    """Wang et al. 2018, algorithm 1, with the moving average of the squared advantage."""
    rng = np.random.default_rng(seed)
    count, beta, rate, start = 12, 1.7, 0.25, 4.0
    values, returns = rng.normal(size=count), rng.normal(0.5, 3.0, count)
    weights = np.where(np.arange(count) < 10, 1.0, 0.0)  # two rows fill up the batch
    if is_discrete:
        policy, actions = softmax_policy(rng.normal(size=(count, 3))), rng.integers(0, 3, count)
        density = policy["probabilities"].astype(np.float64)[np.arange(count), actions]
    else:
        mean, deviation, actions = (
            rng.normal(size=(count, 2)),
            rng.uniform(0.3, 2, (count, 2)),
            rng.normal(size=(count, 2)),
        )
        policy = {"mean": np.float32(mean), "standard_deviation": np.float32(deviation)}
        density = gaussian_density(np.float32(actions).astype(np.float64), *(policy[name] for name in policy))
    normaliser = Normaliser(start)
    networks = {
        "main": FixedNetwork([policy]),
        "value": FixedNetwork([{"v": np.float32(values)}]),
        "normaliser": normaliser,
    }
    batch = numpy_rules.batch(actions=actions, weights=weights, extra={"returns": returns})
    update = numpy_rules.run(weighted_imitation_rule(beta, rate), networks, batch)

    real = slice(0, 10)
    advantages = (np.float32(returns).astype(np.float64) - np.float32(values))[real]
    squared = start + rate * (np.mean(advantages**2) - start)
    counts = np.exp(beta * advantages / np.sqrt(squared))
    np.testing.assert_allclose(normaliser.value, squared, rtol=1e-5)
    np.testing.assert_allclose(update.losses["main"], -np.mean(counts * np.log(density[real])), rtol=1e-5)
    np.testing.assert_allclose(update.losses["value"], 0.5 * np.mean(advantages**2), rtol=1e-5)


def played(path: pathlib.Path, rewards: list[list[float]], is_discrete: bool = True, discount: float = 0.3) -> str:
    """Write a memory of episodes in two states, with returns of another discount than the agent's."""
    memory, rng = EpisodicExperienceReplay(), np.random.default_rng(len(rewards))
    memory.discount = discount
    for episode in rewards:
        for step, reward in enumerate(episode):
            state, following = ({"observation": rng.normal(size=2 if is_discrete else 1)} for _ in range(2))
            action = rng.integers(2) if is_discrete else rng.uniform(-1, 1, 1)
            memory.store(Transition(state, action, reward, following, game_over=step == len(episode) - 1))
    memory.save(str(path))
    return str(path)


def imitating(parameters: AgentParameters, recorded: Any, updates: int = 8) -> AgentParameters:
    values = {
        name: parameters.network_wrappers.pop(name) for name in {"normaliser"} & parameters.network_wrappers.keys()
    }
    agent = shrink(parameters, 0.01)
    agent.network_wrappers.update(values)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    agent.algorithm.num_consecutive_training_steps = updates
    agent.algorithm.discount = 0.9
    agent.memory.load_memory_from_file_path = recorded
    return agent


def marwil(recorded: Any, beta: float = 1.0, rate: float = 0.1) -> AgentParameters:
    parameters = MARWILAgentParameters()
    parameters.network_wrappers["normaliser"].kept["mean_squared_advantage"] = 1.0
    agent = imitating(parameters, recorded)
    agent.algorithm.beta, agent.algorithm.normaliser_rate = beta, rate
    return agent


@pytest.mark.parametrize("is_discrete", [True, False])
def test_without_beta_it_is_behavioural_cloning(is_discrete, tmp_path):
    """Bit for bit, except on TensorFlow: its compiler rounds the larger program of MARWIL in another order."""
    recorded = played(tmp_path / "steps.npz", [*EPISODES], is_discrete)
    clone = BCAgentParameters()
    clone.memory = MARWILAgentParameters().memory
    weights = []
    for number, parameters in enumerate((marwil(recorded, beta=0.0), imitating(clone, recorded))):
        manager = graph(
            parameters, Bandit if is_discrete else Target, tmp_path / str(number), schedule(TrainingSteps(40))
        )
        before = [np.array(array) for array in manager.get_agent().networks["main"].state.arrays("weights")]
        manager.improve()
        after = [np.array(array) for array in manager.get_agent().networks["main"].state.arrays("weights")]
        assert any(not np.array_equal(one, other) for one, other in zip(before, after))
        weights.append(after)
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 if FRAMEWORK is Frameworks.tensorflow else 0)


def test_it_prefers_the_better_actions_of_bad_data(tmp_path):
    """Both actions are equally common. The action with the reward becomes exp(2 beta / c) times as probable."""
    memory = EpisodicExperienceReplay()
    for row in range(400):
        state = {"observation": np.eye(2, dtype=np.float32)[0]}
        memory.store(Transition(state, row % 2, float(2 * (row % 2)), state, game_over=True))
    memory.save(str(tmp_path / "both.npz"))
    agent = marwil(str(tmp_path / "both.npz"), beta=1.0, rate=0.0)
    agent.network_wrappers["main"].batch_size = 200
    manager = graph(agent, Bandit, tmp_path, schedule(TrainingSteps(800)))
    manager.improve()
    (probabilities,) = manager.get_agent().get_prediction([{"observation": np.float32([1, 0])}])
    expected = np.exp(2.0) / (1 + np.exp(2.0))  # advantages are 1 and -1, and c is 1
    np.testing.assert_allclose(probabilities[0], [1 - expected, expected], atol=0.05)


def as_csv(path: pathlib.Path, rewards: list[float]) -> CsvDataset:
    """Write an episode; the last row is only the state after it."""
    lines = ["action,all_action_probabilities,episode_id,reward,state_feature_0,state_feature_1"]
    lines += [f'{step % 2},"[0.5, 0.5]",0,{reward},{step},0' for step, reward in enumerate([*rewards, 0.0])]
    path.write_text("\n".join(lines))
    return CsvDataset(str(path))


@pytest.mark.parametrize("write", [lambda path, rewards: played(path, [rewards]), as_csv])
def test_episodes_of_several_files_have_returns_of_its_own_discount(write, tmp_path):
    files = [write(tmp_path / f"{number}.npz", episode) for number, episode in enumerate(EPISODES)]
    learner = graph(marwil(files), Bandit, tmp_path).get_agent()
    returns = [sum(0.9**k * r for k, r in enumerate(episode[t:])) for episode in EPISODES for t in range(len(episode))]
    batch = learner.memory.transitions_at(np.arange(len(returns)))
    np.testing.assert_allclose(learner.learning_columns(batch)["extra/returns"], returns, rtol=1e-6)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_probabilities_in_only_some_of_the_files_are_one_line(order, tmp_path):
    files = [as_csv(tmp_path / "with.csv", EPISODES[0]), as_csv(tmp_path / "without.csv", EPISODES[0])]
    without = tmp_path / "without.csv"
    without.write_text(without.read_text().replace("all_action_probabilities,", "").replace('"[0.5, 0.5]",', ""))
    with pytest.raises(CoachError, match=r"\.csv': only some of the files have 'all_action_probabilities'"):
        graph(marwil(files[order]), Bandit, tmp_path)


def test_it_learns_from_recorded_episodes_and_from_its_own(tmp_path):
    agent = marwil(played(tmp_path / "steps.npz", [*EPISODES]))
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    manager = graph(agent, Bandit, tmp_path, schedule(1000))
    manager.train_and_act(EnvironmentSteps(40))
    learner = manager.get_agent()
    assert learner.memory.num_transitions() == 12 + 40 and learner.training_iteration >= 40


def test_a_checkpoint_continues_exactly(tmp_path):
    recorded, managers = played(tmp_path / "steps.npz", [*EPISODES]), []
    for name in ("one", "other"):
        managers.append(graph(marwil(recorded), Bandit, tmp_path / name, schedule(TrainingSteps(1000))))
    first, second = (manager.get_agent() for manager in managers)
    managers[0].train_and_act(TrainingSteps(16))
    second.set_state(first.get_state())
    assert float(first.networks["normaliser"].state.arrays("buffers")[0]) != 1.0
    for manager in managers:
        manager.train_and_act(TrainingSteps(16))
    for one, other in zip(*map(weights_of, managers), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agent: setattr(agent.algorithm, "beta", -1), "algorithm.beta is -1"),
        (lambda agent: setattr(agent.algorithm, "normaliser_rate", 2), "algorithm.normaliser_rate is 2"),
        (lambda agent: setattr(agent.algorithm, "n_step", 3), "n_step is 3"),
        (lambda agent: setattr(agent, "memory", ExperienceReplayParameters()), "the returns of complete episodes"),
        (lambda agent: agent.network_wrappers.pop("value"), "needs a network 'value'"),
        (lambda agent: agent.network_wrappers.pop("normaliser"), "needs a network 'normaliser'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, tmp_path):
    agent = MARWILAgentParameters()
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, Bandit, tmp_path)
