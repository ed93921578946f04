"""Decision Transformer: its loss against float64, its contexts, its causality, and how it acts and learns."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from rl_coach.agents.core.episode_replay import ContextPass, contexts
from rl_coach.agents.decision_transformer_agent import DecisionTransformerAgentParameters
from rl_coach.agents.rules.decision_transformer import trajectory_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.middleware_parameters import TransformerMiddlewareParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import EnvironmentSteps, EnvResponse, RunPhase, TrainingSteps, Transition
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.utils import CoachError
from tests.agents import numpy_rules
from tests.agents.numpy_rules import FixedNetwork
from tests.architectures.test_transformer import Weights, normalised, shaken, transformed
from tests.frameworks import not_on_mxnet
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import decision_transformer
from tests.zoo.states import weights_of

pytestmark = not_on_mxnet("a transformer is refused")
EPISODES = ([0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0])
K = 3


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_of_discrete_actions_is_the_mean_cross_entropy(seed):
    rng = np.random.default_rng(seed)
    logits, actions = rng.normal(size=(4, K, 2)).astype(np.float32), rng.integers(0, 2, (4, K))
    is_step, weights = np.float32([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]), np.float32([1, 1, 1, 0])
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    policy = {"probabilities": np.exp(log_probabilities), "log_probabilities": log_probabilities, "logits": logits}
    batch = numpy_rules.batch(actions=actions, weights=weights, extra={"is_step": is_step})
    update = numpy_rules.run(trajectory_rule(0.5), {"main": FixedNetwork([policy])}, batch)
    exact, losses = logits.astype(np.float64), []
    for row, step in np.argwhere(is_step * weights[:, None]):
        losses.append(np.log(np.exp(exact[row, step]).sum()) - exact[row, step, actions[row, step]])
    assert len(losses) == 6
    np.testing.assert_allclose(update.losses["main"], 0.5 * np.mean(losses), rtol=1e-5)


def test_the_loss_of_continuous_actions_is_the_mean_squared_error():
    rng = np.random.default_rng(0)
    mean, actions = rng.normal(size=(2, 2, K, 2)).astype(np.float32)
    is_step = np.float32([[1, 1, 1], [1, 1, 0]])
    batch = numpy_rules.batch(actions=actions, weights=np.ones(2), extra={"is_step": is_step})
    update = numpy_rules.run(trajectory_rule(), {"main": FixedNetwork([{"mean": mean}])}, batch)
    errors = np.square(mean.astype(np.float64) - actions)[is_step > 0]
    np.testing.assert_allclose(update.losses["main"], errors.mean(), rtol=1e-5)


def played(path: pathlib.Path, rewards: Any = EPISODES, is_discrete: bool = True) -> str:
    memory, rng = EpisodicExperienceReplay(), np.random.default_rng(len(rewards))
    for episode in rewards:
        for step, reward in enumerate(episode):
            state, following = ({"observation": rng.normal(size=2 if is_discrete else 1)} for _ in range(2))
            action = int(rng.integers(2)) if is_discrete else rng.uniform(-1, 1, 1)
            memory.store(Transition(state, action, reward, following, game_over=step == len(episode) - 1))
    memory.save(str(path))
    return str(path)


def small(recorded: str | None, updates: int = 8, dropout: float = 0.0) -> AgentParameters:
    agent = decision_transformer()
    agent.network_wrappers["main"].middleware_parameters.dropout_rate = dropout
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(0)
    agent.algorithm.num_consecutive_training_steps = updates
    agent.memory.load_memory_from_file_path = recorded
    return agent


def test_a_context_begins_at_each_step_and_ends_with_the_episode(tmp_path):
    agent = graph(small(played(tmp_path / "steps.npz")), Bandit, tmp_path).get_agent()
    batch = contexts(agent.memory, np.array([0, 3, 4, 5, 11]), K)
    columns, stored = agent.learning_columns(batch), agent.memory.transitions_at(np.arange(12))
    np.testing.assert_array_equal(
        batch.info("timestep").reshape(5, K), [[0, 1, 2], [3, 4, 4], [4, 4, 4], [0, 1, 2], [3] * 3]
    )
    np.testing.assert_array_equal(columns["extra/is_step"], [[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]])
    # the returns of the rest of the episode without a discount, divided by the scale
    np.testing.assert_allclose(
        columns["states/return_to_go"][[0, 1, 3]][..., 0], [[1.5, 1.5, 1], [1, 0.5, 0.5], [1.5, 1, 0.5]]
    )
    np.testing.assert_array_equal(columns["actions"][0], stored.action_column[:3])
    np.testing.assert_array_equal(columns["states/actions"][0], np.eye(2)[stored.action_column[:3]])
    np.testing.assert_allclose(columns["states/observation"][0], stored.state_columns["observation"][:3], rtol=1e-6)
    assert agent.best_return == 3.0
    steps = ContextPass(agent.memory, K).sample(1, 12).info("timestep").reshape(12, K)[:, 0]
    assert sorted(steps) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4]


def inputs_of(agent: Any, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    shapes = agent.networks["main"].state.function.input_shapes
    found = {name: rng.normal(size=(rows, *shape)).astype(np.float32) for name, shape in shapes.items()}
    found["timestep"] = rng.integers(0, 9, (rows, K, 1)).astype(np.float32)
    return found


def outputs(agent: Any, inputs: dict[str, np.ndarray]) -> np.ndarray:
    return np.array(agent.networks["main"].online_network.predict(inputs, squeeze_output=False)[0])


@pytest.mark.parametrize("is_discrete", [True, False])
def test_the_network_is_its_computation_in_numpy(is_discrete, tmp_path):
    recorded = played(tmp_path / "steps.npz", is_discrete=is_discrete)
    agent = graph(small(recorded), Bandit if is_discrete else Target, tmp_path).get_agent()
    wrapper, rng = shaken(agent.networks["main"]), np.random.default_rng(1)
    inputs, weights = inputs_of(agent, 4, rng), Weights(wrapper)
    given = {name: array.astype(np.float64) for name, array in inputs.items()}
    # embedders are in alphabetical order
    own = {"actions": weights.dense(given["actions"]), "state": weights.dense(given["observation"])}
    own["return"] = weights.dense(given["return_to_go"])
    time = weights.dense(np.eye(6)[np.minimum(inputs["timestep"][..., 0].astype(int), 5)])
    tokens = np.stack([own["return"] + time, own["state"] + time, own["actions"] + time], 2).reshape(4, 3 * K, 8)
    states = transformed(weights, normalised(tokens, *weights.next()), 1, 1)[:, 1::3]
    found, expected = outputs(agent, inputs), weights.dense(states)
    assert weights.are_used_up
    if is_discrete:
        expected = np.exp(expected) / np.exp(expected).sum(-1, keepdims=True)
    else:
        low, high = agent.spaces.action.low, agent.spaces.action.high
        expected = (low + high) / 2 + (high - low) / 2 * np.tanh(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "step", "first"),
    [("observation", 1, 1), ("return_to_go", 1, 1), ("timestep", 2, 2), ("actions", 0, 1), ("actions", 2, 3)],
)
def test_a_later_token_does_not_change_an_earlier_output(changed, step, first, tmp_path):
    """An action is the last token of its step, so it changes the outputs of the next step on."""
    agent = graph(small(played(tmp_path / "steps.npz")), Bandit, tmp_path).get_agent()
    shaken(agent.networks["main"])
    inputs = inputs_of(agent, 4, np.random.default_rng(2))
    inputs["timestep"] = np.minimum(inputs["timestep"], 4)
    before = outputs(agent, inputs)
    inputs[changed][:, step] += 1
    after = outputs(agent, inputs)
    np.testing.assert_array_equal(before[:, :first], after[:, :first])
    assert first == K or (before[:, first:] != after[:, first:]).all()


def test_it_acts_on_the_last_steps_and_on_the_return_that_is_left(tmp_path):
    parameters = small(played(tmp_path / "steps.npz"))
    parameters.algorithm.target_return = 9.0
    agent = graph(parameters, Bandit, tmp_path).get_agent()
    seen: list[dict[str, np.ndarray]] = []
    predict = agent.get_prediction

    def recorded(states: Any) -> Any:
        seen.append(states)
        return predict(states)

    agent.get_prediction = recorded
    agent.phase = RunPhase.TEST
    agent.begin_episode()
    rewards, states, actions = [1.0, 2.0, 3.0, 4.0], np.arange(10.0).reshape(5, 2), []
    agent.observe(EnvResponse({"observation": states[0]}, 0.0, False))
    for step, reward in enumerate(rewards):
        actions.append(agent.act().action)
        agent.observe(EnvResponse({"observation": states[step + 1]}, reward, False))
    agent.act()
    np.testing.assert_array_equal(seen[1]["timestep"][:, 0], [0, 1, 0])
    np.testing.assert_array_equal(seen[1]["observation"], [*states[:2], [0, 0]])
    np.testing.assert_array_equal(seen[1]["actions"], [np.eye(2)[actions[0]], [0, 0], [0, 0]])
    np.testing.assert_array_equal(seen[1]["return_to_go"][:, 0], [4.5, 4.0, 0])
    np.testing.assert_array_equal(seen[4]["timestep"][:, 0], [2, 3, 4])
    np.testing.assert_array_equal(seen[4]["observation"], states[2:])
    np.testing.assert_array_equal(seen[4]["actions"], [*np.eye(2)[actions[2:]], [0, 0]])
    np.testing.assert_array_equal(seen[4]["return_to_go"][:, 0], [3.0, 1.5, -0.5])


def test_the_return_that_it_asks_for_chooses_the_action(tmp_path):
    """Both actions are equally common in the data, and only one has a reward."""
    memory = EpisodicExperienceReplay()
    for row in range(200):
        state = {"observation": np.eye(2, dtype=np.float32)[0]}
        memory.store(Transition(state, row % 2, float(2 * (row % 2)), state, game_over=True))
    memory.save(str(tmp_path / "both.npz"))
    chosen = {}
    for target in (0.0, 2.0, None):
        parameters = small(str(tmp_path / "both.npz"))
        parameters.algorithm.target_return = target
        manager = graph(parameters, Bandit, tmp_path, schedule(TrainingSteps(200)))
        manager.improve()
        agent = manager.get_agent()
        agent.phase = RunPhase.TEST
        agent.begin_episode()
        agent.episode.steps = 1
        probabilities = agent.acting_prediction({"observation": np.float32([1, 0])})[0]
        assert probabilities.max() > 0.9
        chosen[target] = int(probabilities.argmax())
    assert chosen == {0.0: 0, 2.0: 1, None: 1}


def shots(path: pathlib.Path, rng: np.random.Generator) -> str:
    """Episodes of ``Target``. All shots of half of them hit the target, the others miss it by 1."""
    memory = EpisodicExperienceReplay()
    for episode in range(100):
        states, miss = rng.uniform(-1, 1, (6, 1)).astype(np.float32), float(episode % 2)
        for step in range(5):
            state, following = ({"observation": one} for one in states[step : step + 2])
            memory.store(Transition(state, 1 + 2 * states[step] - miss, -miss, following, game_over=step == 4))
    memory.save(str(path))
    return str(path)


def test_a_continuous_action_is_the_one_of_the_return_that_is_asked_for(tmp_path):
    recorded, rewards = shots(tmp_path / "shots.npz", np.random.default_rng(0)), {}
    for target in (-5.0, None):
        parameters = small(recorded)
        parameters.algorithm.target_return = target
        manager = graph(parameters, Target, tmp_path, schedule(TrainingSteps(2000), evaluation=10))
        manager.improve()
        rewards[target] = np.mean(manager.evaluation_rewards[-10:])
    assert rewards[None] > -1 and -6 < rewards[-5.0] < -4


@pytest.mark.parametrize("is_discrete", [True, False])
def test_an_evaluation_takes_the_predicted_action_by_default(is_discrete, tmp_path):
    parameters = small(played(tmp_path / "steps.npz", is_discrete=is_discrete))
    agent = graph(parameters, Bandit if is_discrete else Target, tmp_path).get_agent()
    agent.phase = RunPhase.TEST
    agent.begin_episode()
    agent.observe(EnvResponse({"observation": np.float32([0.5, -0.5] if is_discrete else [0.5])}, 0.0, False))
    for _ in range(100):
        action = agent.act().action
        [output] = agent.acting_prediction(agent.episode.curr_state)
        np.testing.assert_array_equal(action, output.argmax() if is_discrete else output)


@pytest.mark.parametrize("is_discrete", [True, False])
def test_a_checkpoint_continues_exactly(is_discrete, tmp_path):
    recorded, managers = played(tmp_path / "steps.npz", is_discrete=is_discrete), []
    problem = Bandit if is_discrete else Target
    for name in ("one", "other"):
        steps = schedule(TrainingSteps(1000))
        managers.append(graph(small(recorded, dropout=0.1), problem, tmp_path / name, steps))
    first, second = (manager.get_agent() for manager in managers)
    managers[0].train_and_act(TrainingSteps(16))
    second.set_state(first.get_state())
    assert second.best_return == first.best_return == 3.0
    for manager in managers:
        manager.train_and_act(TrainingSteps(16))
    for one, other in zip(*map(weights_of, managers), strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_learns_from_its_own_episodes_too(tmp_path):
    agent = small(played(tmp_path / "steps.npz"))
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(1)
    manager = graph(agent, Bandit, tmp_path, schedule(1000))
    manager.train_and_act(EnvironmentSteps(40))
    learner = manager.get_agent()
    assert learner.memory.num_transitions() == 12 + 40 and learner.training_iteration >= 40


def without_embedders(agent: AgentParameters) -> None:
    agent.network_wrappers["main"].input_embedders_parameters = {"observation": InputEmbedderParameters()}


def with_another_middleware(agent: AgentParameters) -> None:
    agent.network_wrappers["main"].middleware_parameters = TransformerMiddlewareParameters()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda agent: setattr(agent.algorithm, "context_length", 0), "algorithm.context_length is 0"),
        (lambda agent: setattr(agent.algorithm, "discount", 0.9), "algorithm.discount is 0.9"),
        (lambda agent: setattr(agent.algorithm, "n_step", 1), "algorithm.n_step is 1, .* set algorithm.n_step to -1"),
        (lambda agent: setattr(agent, "memory", ExperienceReplayParameters()), "learns from complete episodes"),
        (without_embedders, "InputEmbedderParameters makes no tokens: leave input_embedders_parameters empty"),
        (with_another_middleware, "TransformerMiddlewareParameters cannot do it: keep the default middleware"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, tmp_path):
    agent = DecisionTransformerAgentParameters()
    change(agent)
    with pytest.raises(CoachError, match=message):
        graph(agent, Bandit, tmp_path)
