"""Recurrent agents that learn from sequences out of a memory: they start from the states that acted, and remember."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.bootstrapped_dqn_agent import BootstrappedDQNAgentParameters
from rl_coach.agents.categorical_dqn_agent import CategoricalDQNAgentParameters
from rl_coach.agents.core.sequences import Sequences, rows_of
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.mmc_agent import MixedMonteCarloAgentParameters
from rl_coach.agents.munchausen_dqn_agent import MunchausenDQNAgentParameters
from rl_coach.agents.pal_agent import PALAgentParameters
from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgentParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import MiddlewareScheme
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule, LinearSchedule
from rl_coach.utils import CoachError
from tests.zoo import parameters as zoo
from tests.zoo.environments import Bandit, Lottery, Recall, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import recurrent_dqn, recurrent_penalized_ppo, recurrent_ppo, with_normalized_observations

LARGEST_DIFFERENCE = 1e-6  # between the policy that acted and the policy that is learned from


def test_episodes_are_cut_into_sequences_that_begin_anew():
    """Episodes of 5 and 2 steps in sequences of 3: rows 0-2, 3-4, 5-6."""
    sequences = Sequences(np.array([4, 6]), 3)
    column = np.arange(7.0)
    assert sequences.starts.tolist() == [0, 3, 5]
    np.testing.assert_array_equal(sequences.cut({"x": column})["x"], [[0, 1, 2], [3, 4, 4], [5, 6, 6]])
    np.testing.assert_array_equal(sequences.joined(sequences.cut({"x": column})["x"]), column)
    columns = sequences.learning_columns({"x": column, "weights": np.full(7, 2.0, np.float32)})
    np.testing.assert_array_equal(columns["x"], [0, 1, 2, 3, 4, 4, 5, 6, 6])
    np.testing.assert_array_equal(columns["weights"], [2, 2, 2, 2, 2, 0, 2, 2, 0])
    np.testing.assert_array_equal(rows_of(np.array([[1, -1]]), 3), [[3, 4, 5, -1, -1, -1]])


def policies(agent: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A number of the policy at each step as it acted, and at each row as each update sees it."""
    acted: list[Any] = []
    learned: list[Any] = []
    predict, rule, network = agent.acting_prediction, agent.make_update_rule(), agent.policy_network

    def noted_prediction(state: Any) -> Any:
        outputs = predict(state)
        acted.append(np.ravel(outputs[0])[0])
        return outputs

    def rule_with_policy(ops: Any, networks: Any, batch: Any) -> Any:
        found, outputs = rule(ops, networks, batch), networks[network].online(batch.states)[-1]
        found.values["policy"] = (outputs["mean"] if "mean" in outputs else outputs["probabilities"])[:, 0]
        return found

    def noted_training(columns: Any, *scalars: Any, indices: Any, **how: Any) -> Any:
        result = train(columns, *scalars, indices=indices, **how)
        rows = indices[: how["count"]] if all(how.get("learning", {}).get(network, [True])) else indices[:0]
        learned.extend(result.values["policy"][: len(rows)][(rows >= 0) & (columns["weights"][rows] > 0)])
        return result

    agent.acting_prediction, agent.make_update_rule = noted_prediction, lambda: rule_with_policy
    learner = agent.update_loop.learner
    train, learner.train = learner.train, noted_training
    return acted, learned


def two_epochs() -> Any:
    parameters = recurrent_ppo()
    parameters.algorithm.optimization_epochs = 2
    return parameters


def left_to_soak(*arguments: Any) -> Any:
    return pytest.param(*arguments, marks=pytest.mark.slow)


@pytest.mark.parametrize(("make", "epochs", "problem", "copies", "batch_size"), [
    left_to_soak(two_epochs, 2, Lottery, 1, 12),
    (two_epochs, 2, Bandit, 1, 1000),
    (two_epochs, 2, Lottery, 3, 16),
    (two_epochs, 2, Target, 2, 16),
    (recurrent_penalized_ppo, 10, Lottery, 3, 16),
    left_to_soak(recurrent_penalized_ppo, 10, Bandit, 1, 1000),
    left_to_soak(recurrent_penalized_ppo, 10, Target, 2, 16),
])  # fmt: skip
def test_ppo_learns_from_the_states_that_acted(make, epochs, problem, copies, batch_size, tmp_path):
    """Episodes of 1 to 10 steps in sequences of 4, cut off in the middle where there are several copies."""
    parameters = make()
    for network in parameters.network_wrappers.values():
        network.learning_rate, network.batch_size = 0.0, batch_size
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(30)
    manager = graph(parameters, problem, tmp_path, schedule(1000), seed=0, copies=copies)
    agent = manager.get_agent()
    acted, learned = policies(agent)
    manager.train_and_act(EnvironmentSteps(90))
    assert agent.training_iteration >= 2 and len(learned) >= epochs * 60
    used = np.sort(acted[: len(learned) // epochs])
    for epoch in range(epochs):
        np.testing.assert_allclose(np.sort(learned)[epoch::epochs], used, rtol=0, atol=LARGEST_DIFFERENCE)


@pytest.mark.parametrize("make", [left_to_soak(recurrent_ppo), recurrent_penalized_ppo])
def test_the_ratio_of_ppo_starts_at_one_though_filters_learn(make, tmp_path):
    """Statistics between memory and network change what it sees, and what came before acted with older ones."""
    parameters = with_normalized_observations(make())
    for network in parameters.network_wrappers.values():
        network.learning_rate = 0.0
    manager = graph(parameters, Lottery, tmp_path, schedule(200), seed=0)
    manager.train_and_act(EnvironmentSteps(200))
    assert manager.get_agent().training_iteration > 1
    assert manager.get_agent().learning.divergence < 1e-7


def test_a_step_in_which_the_network_is_not_asked_is_remembered_too(tmp_path):
    """The heatup acts at random, and the state that is stored goes on."""
    manager = graph(recurrent_ppo(), Bandit, tmp_path, schedule(100, heatup=10), seed=0)
    manager.heatup(EnvironmentSteps(10))
    agent = manager.get_agent()
    batch = agent.memory.get_all_complete_episodes_transitions()
    states = np.asarray(batch.info("recurrent_state_lstm_h"))
    agent.reset_internal_state()
    network = agent.networks["main"].online_network
    for row, state in enumerate(states):
        np.testing.assert_array_equal(network.recurrent_state["lstm_h"][0], state)
        network.predict({"observation": batch.state_columns["observation"][row : row + 1]})


def recalled(parameters: Any, steps: int, directory: Any) -> float:
    """The mean return of 40 evaluated episodes of ``Recall`` after so many steps."""
    manager = graph(parameters, Recall, directory, schedule(steps), seed=0)
    manager.train_and_act(EnvironmentSteps(steps))
    manager.evaluate(EnvironmentEpisodes(40))
    return float(np.mean(manager.evaluation_rewards))


def ppo_that_remembers() -> Any:
    parameters = recurrent_ppo(16)
    parameters.algorithm.discount, parameters.algorithm.beta_entropy = 0.95, 0.005
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    parameters.network_wrappers["main"].batch_size = 64
    parameters.network_wrappers["main"].middleware_parameters.sequence_length = 8
    return parameters


def without_memory(parameters: Any) -> Any:
    parameters.network_wrappers["main"].middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
    return parameters


def test_ppo_with_an_lstm_remembers_what_it_saw(tmp_path):
    assert recalled(ppo_that_remembers(), 4000, tmp_path) > 0.9


def test_ppo_without_one_does_not(tmp_path):
    assert recalled(without_memory(ppo_that_remembers()), 1000, tmp_path) < 0.6


def penalized_ppo_that_remembers() -> Any:
    parameters = recurrent_penalized_ppo(16)
    parameters.algorithm.discount, parameters.algorithm.beta_entropy = 0.95, 0.005
    parameters.algorithm.target_kl_divergence = 0.05
    parameters.algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    for network in parameters.network_wrappers.values():
        network.batch_size = 64
    parameters.network_wrappers["actor"].middleware_parameters.sequence_length = 8
    return parameters


@pytest.mark.slow
def test_ppo_with_a_penalty_remembers_with_an_actor_that_does(tmp_path):
    assert recalled(penalized_ppo_that_remembers(), 4000, tmp_path / "with") > 0.9
    parameters = penalized_ppo_that_remembers()
    parameters.network_wrappers["actor"].middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
    assert recalled(parameters, 1000, tmp_path / "without") < 0.6


def test_a_critic_that_is_never_asked_when_acting_cannot_remember(tmp_path):
    parameters = recurrent_penalized_ppo()
    parameters.network_wrappers["critic"].middleware_parameters = parameters.network_wrappers[
        "actor"
    ].middleware_parameters
    with pytest.raises(CoachError, match="network 'critic' of agent 'agent' does not act"):
        graph(parameters, Bandit, tmp_path)


def values_of(agent: Any) -> list[dict[str, np.ndarray]]:
    """For each update the rows that its rule learned from: the observation's first number, the first number that the
    network gives (the first action's value, say) as online and target network see it in state and next state, and the
    columns that the learner got."""
    rule, update, found = agent.make_update_rule(), agent.update_loop.update, []

    def first_number(heads: Any) -> Any:
        return heads[0]["q" if "q" in heads[0] else "mean"][:, 0]

    def rule_with_values(ops: Any, networks: Any, batch: Any) -> Any:
        result, main = rule(ops, networks, batch), networks["main"]
        result.values["observation"] = batch.states["observation"][:, 0]
        result.values["following"] = batch.next_states["observation"][:, 0]
        result.values["online"] = first_number(main.online(batch.states))
        result.values["online after"] = first_number(main.online(batch.next_states))
        result.values["target after"] = first_number(main.target(batch.next_states))
        result.values["weights"] = batch.weights
        result.values["discounts"] = batch.discounts
        result.values |= {name: column for name, column in batch.extra.items() if len(column.shape) == 1}
        return result

    def noted_update(columns: Any, **how: Any) -> Any:
        result = update(columns, **how)
        found.append({"columns": columns, **{name: value[0] for name, value in result.values.items()}})
        return result

    agent.make_update_rule, agent.update_loop.update = lambda: rule_with_values, noted_update
    return found


def recurrent_without_learning(agent: Any) -> Any:
    parameters = recurrent_dqn(agent)
    parameters.network_wrappers["main"].learning_rate = 0.0
    parameters.exploration.epsilon_schedule = ConstantSchedule(0.0)
    return parameters


def naf() -> Any:
    parameters, lstm = zoo.normalized_advantages(), recurrent_dqn().network_wrappers["main"].middleware_parameters
    parameters.network_wrappers["main"].middleware_parameters = lstm
    parameters.network_wrappers["main"].learning_rate = 0.0
    return parameters


def dueling() -> Any:
    parameters = DDQNAgentParameters()
    parameters.network_wrappers["main"].heads_parameters = [DuelingQHeadParameters()]
    return parameters


def bootstrapped() -> Any:
    parameters = BootstrappedDQNAgentParameters()
    parameters.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 3
    parameters.exploration.architecture_num_q_heads = 3
    return parameters


VALUE_AGENTS = [
    (DQNAgentParameters, Lottery, 1),
    left_to_soak(DDQNAgentParameters, Lottery, 3),
    (DQNAgentParameters, Bandit, 2),
    (CategoricalDQNAgentParameters, Lottery, 1),
    left_to_soak(bootstrapped, Lottery, 1),
    left_to_soak(dueling, Bandit, 1),
    left_to_soak(QuantileRegressionDQNAgentParameters, Bandit, 1),
    left_to_soak(MixedMonteCarloAgentParameters, Lottery, 1),
    left_to_soak(PALAgentParameters, Bandit, 2),
    left_to_soak(MunchausenDQNAgentParameters, Bandit, 1),
]


def assert_replayed_as_played(parameters: Any, problem: Any, copies: int, directory: Any) -> None:
    """Weights stand still, so that what is replayed gives the values that it had when it was played: of each state
    as the online network and of each next state as the target network unroll them, burn-in or not."""
    manager = graph(parameters, problem, directory, schedule(1000), seed=0, copies=copies)
    agent = manager.get_agent()
    acted: dict[float, list[float]] = {}
    predict = agent.acting_prediction

    def noted_prediction(state: Any) -> Any:
        values = predict(state)
        acted.setdefault(float(state["observation"][0]), []).append(float(np.ravel(values[0])[0]))
        return values

    agent.acting_prediction = noted_prediction
    updates = values_of(agent)
    manager.train_and_act(EnvironmentSteps(120))
    assert len(updates) > 20

    def nearest(observation: float, value: float) -> float:
        return min(abs(one - value) for one in acted[float(observation)])

    compared = 0
    for update in updates:
        for row in np.flatnonzero(update["weights"]):
            assert nearest(update["observation"][row], update["online"][row]) <= LARGEST_DIFFERENCE
            np.testing.assert_allclose(
                update["target after"][row], update["online after"][row], rtol=0, atol=LARGEST_DIFFERENCE
            )
            if row + 1 < len(update["weights"]) and (row + 1) % 4 and update["weights"][row + 1]:
                assert abs(update["online"][row + 1] - update["target after"][row]) <= LARGEST_DIFFERENCE
                compared += 1
    assert compared > 50


@pytest.mark.parametrize(("agent", "problem", "copies"), VALUE_AGENTS)
def test_dqn_learns_from_the_states_that_acted(agent, problem, copies, tmp_path):
    assert_replayed_as_played(recurrent_without_learning(agent()), problem, copies, tmp_path)


def test_returns_of_mixed_monte_carlo_are_those_of_the_steps_that_are_learned_from(tmp_path):
    """Summed up here from the rewards of each episode, whose observations differ from step to step."""
    parameters = recurrent_without_learning(MixedMonteCarloAgentParameters())
    manager = graph(parameters, Lottery, tmp_path, schedule(1000), seed=0)
    agent = manager.get_agent()
    updates = values_of(agent)
    manager.train_and_act(EnvironmentSteps(60))
    expected = {}
    for episode in agent.memory.get_all_complete_episodes():
        total = 0.0
        for step in reversed(episode.transitions):
            total = step.reward + parameters.algorithm.discount * total
            expected[float(step.state["observation"][0])] = total
    for update in updates:
        rows = np.flatnonzero(update["weights"])
        found = [expected[float(observation)] for observation in update["observation"][rows]]
        np.testing.assert_allclose(update["returns"][rows], found, rtol=1e-6)
    assert len(updates) > 10


@pytest.mark.slow
def test_rainbow_replays_sequences_without_priorities(tmp_path):
    parameters = zoo.rainbow()
    parameters.memory, parameters.algorithm.n_step = EpisodicExperienceReplayParameters(), 1
    parameters.network_wrappers["main"].middleware_parameters = (
        recurrent_dqn().network_wrappers["main"].middleware_parameters
    )
    manager = graph(parameters, Lottery, tmp_path, schedule(1000), seed=0)
    updates = values_of(manager.get_agent())
    manager.train_and_act(EnvironmentSteps(60))
    assert len(updates) > 10 and all(np.isfinite(update["online"]).all() for update in updates)


@pytest.mark.slow
def test_naf_learns_from_the_states_that_acted(tmp_path):
    assert_replayed_as_played(naf(), Target, 1, tmp_path)


def test_a_burn_in_brings_stored_states_up_to_date(tmp_path):
    """After a change of the weights values are those of the new network, unrolled from the state stored two steps
    before; where the stretch begins an episode, from zero."""
    parameters = recurrent_without_learning(DQNAgentParameters())
    manager = graph(parameters, Bandit, tmp_path, schedule(1000), seed=0)
    agent = manager.get_agent()
    updates = values_of(agent)
    manager.train_and_act(EnvironmentSteps(60))
    network, rng = agent.networks["main"].online_network, np.random.default_rng(1)
    network.set_weights([weight + rng.normal(0, 0.3, weight.shape) for weight in network.get_weights()])
    updates.clear()
    for _ in range(5):
        agent.update_loop.learn(1)
    seen = set()
    for update in updates:
        columns = {name: column.reshape(-1, 7, *column.shape[1:]) for name, column in update["columns"].items()}
        values = update["online"].reshape(-1, 4)
        for number, begins in enumerate(columns["extra/begins_episode"][:, 2] > 0):
            first = 2 if begins else 0
            before = {name: columns[f"states/{name}"][number, first][None] for name in ("lstm_h", "lstm_c")}
            assert not begins or not before["lstm_h"].any()
            rows = {"observation": columns["states/observation"][number, first:6]}
            expected = network.predict_sequence(rows, network.output_names[0], before)[:, 0]
            np.testing.assert_allclose(values[number], expected[-4:], rtol=0, atol=1e-5)
            seen.add(bool(begins))
    assert seen == {True, False}


def categorical() -> Any:
    parameters = CategoricalDQNAgentParameters()
    parameters.algorithm.v_min, parameters.algorithm.v_max, parameters.algorithm.atoms = -1.5, 1.5, 31
    return parameters


def dqn_that_remembers(agent: Any = None) -> Any:
    parameters = recurrent_dqn(agent, 16)
    network = parameters.network_wrappers["main"]
    network.batch_size, network.learning_rate = 64, 0.005
    parameters.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 1500)
    parameters.memory.max_size = (parameters.memory.max_size[0], 5000)
    return parameters


@pytest.mark.parametrize("agent", [
    DQNAgentParameters,
    left_to_soak(DDQNAgentParameters),
    left_to_soak(categorical),
    left_to_soak(QuantileRegressionDQNAgentParameters),
    left_to_soak(MixedMonteCarloAgentParameters),
])  # fmt: skip
def test_dqn_with_an_lstm_remembers_what_it_saw(agent, tmp_path):
    assert recalled(dqn_that_remembers(agent()), 3000, tmp_path) > 0.9


def test_a_users_batch_may_have_any_number_of_sequences(tmp_path):
    """A batch of single steps is padded to 32, 64, 128, ... rows. Sequences stay whole."""
    manager = graph(recurrent_dqn(), Recall, tmp_path, schedule(1, heatup=20))
    manager.heatup(EnvironmentSteps(20))
    agent = manager.get_agent()
    assert np.isfinite(agent.learn_from_batch(agent.batches.sample(3, 8))[0])


def test_several_updates_of_a_phase_are_one_call(tmp_path):
    """And one that is cut by the end of the run is the same compiled call."""
    parameters = recurrent_dqn()
    parameters.algorithm.num_consecutive_training_steps = 3
    manager = graph(parameters, Lottery, tmp_path, schedule(TrainingSteps(11), heatup=40))
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration == agent.networks["main"].state.updates == 11
    assert agent.update_loop.learner.num_compilations == 1


def test_settings_with_which_dqn_cannot_replay_sequences(tmp_path):
    parameters = recurrent_dqn()
    parameters.memory = ExperienceReplayParameters()
    with pytest.raises(CoachError, match=r"set memory to EpisodicExperienceReplayParameters\(\)"):
        graph(parameters, Bandit, tmp_path)
    parameters = recurrent_dqn()
    parameters.algorithm.n_step = 3
    with pytest.raises(CoachError, match=r"algorithm\.n_step is 3"):
        graph(parameters, Bandit, tmp_path)
    parameters = recurrent_dqn()
    parameters.network_wrappers["main"].middleware_parameters.burn_in = 5
    with pytest.raises(CoachError, match="burn_in is 5 and sequence_length 4"):
        graph(parameters, Bandit, tmp_path)
