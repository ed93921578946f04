"""Agents of the value family beside their update rules: what they refuse, store, look up and export."""

from __future__ import annotations

import operator
from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, EnvironmentSteps, RunPhase, Transition
from rl_coach.exploration_policies.bootstrapped import BootstrappedParameters
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.ucb import UCBParameters
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import (
    EpisodicHindsightExperienceReplayParameters,
    HindsightGoalSelectionMethod,
)
from rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay import (
    EpisodicHRLHindsightExperienceReplayParameters,
)
from rl_coach.memories.non_episodic.balanced_experience_replay import BalancedExperienceReplayParameters
from rl_coach.policy.export import policy_of
from rl_coach.policy.policy import Policy
from rl_coach.spaces import DiscreteActionSpace
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit, MaskedChain, Target
from tests.zoo.goals import WalkToGoal, places
from tests.zoo.graphs import graph
from tests.zoo.parameters import (
    actor_critic,
    bootstrapped,
    categorical,
    clipped_ppo,
    dqn,
    mixed_monte_carlo,
    munchausen,
    n_step_q,
    neural_episodic_control,
    normalized_advantages,
    persistent_advantage_learning,
    policy_gradients,
    pqn,
    quantile_regression,
    rainbow,
    upper_confidence_bounds,
)


def setting(part: str, name: str, value: Any) -> Callable[[AgentParameters], None]:
    """A change of one parameter."""
    return lambda agent: setattr(operator.attrgetter(part)(agent) if part else agent, name, value)


def single_head() -> AgentParameters:
    agent = bootstrapped()
    agent.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 1
    return agent


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        (categorical, setting("algorithm", "v_min", 10.0), "algorithm.v_min is 10.0; it must be below v_max"),
        (categorical, setting("algorithm", "atoms", 1), "algorithm.atoms is 1; it must be a whole number from 2"),
        (rainbow, setting("algorithm", "n_step", -2), "algorithm.n_step is -2; it must be a whole number from 1"),
        (quantile_regression, setting("algorithm", "huber_loss_interval", -1), "huber_loss_interval is -1; it must"),
        (n_step_q, setting("algorithm", "targets_horizon", "3-Step"), "targets_horizon is '3-Step'; it must be"),
        (bootstrapped, setting("exploration", "architecture_num_q_heads", 4), "among 4 Q heads .* has 3"),
        (
            bootstrapped,
            setting("", "exploration", EGreedyParameters()),
            "is EGreedyParameters, which does not choose among Q heads",
        ),
        (
            single_head,
            setting("", "exploration", EGreedyParameters()),
            "is EGreedyParameters, which does not choose among Q heads",
        ),
        (dqn, setting("", "exploration", BootstrappedParameters()), "among 10 Q heads .* has 1"),
        (categorical, setting("", "exploration", BootstrappedParameters()), "among 10 Q heads .* has 1"),
        (neural_episodic_control, setting("", "exploration", UCBParameters()), "among 10 Q heads .* has 1"),
        (neural_episodic_control, setting("algorithm", "number_of_knn", 151), "number_of_knn is 151; it must be"),
        (mixed_monte_carlo, setting("algorithm", "monte_carlo_mixing_rate", 1.5), "mixing_rate is 1.5; it must be"),
        (pqn, setting("algorithm", "q_lambda", 1.5), "algorithm.q_lambda is 1.5; it must be a number from 0 to 1"),
        (pqn, setting("algorithm", "optimization_epochs", 0), "optimization_epochs is 0; it must be a whole number"),
        (munchausen, setting("algorithm", "temperature", 0), "algorithm.temperature is 0; it must be a number above 0"),
        (munchausen, setting("algorithm", "munchausen_alpha", 1.5), "munchausen_alpha is 1.5; it must be"),
        (munchausen, setting("algorithm", "smallest_log_policy", 1.0), "smallest_log_policy is 1.0; it must be"),
        (persistent_advantage_learning, setting("algorithm", "pal_alpha", -1), "pal_alpha is -1; it must be"),
    ],
)
def test_what_cannot_be_is_refused_by_name(parameters, change, message, tmp_path):
    agent = parameters()
    change(agent)
    with pytest.raises(CoachError, match=message) as caught:
        graph(agent, Bandit, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "problem", "message"),
    [
        (normalized_advantages, Bandit, "NAF is for continuous actions"),
        (categorical, Target, "C51 is for discrete actions"),
        (quantile_regression, Target, "QR-DQN is for discrete actions"),
        (bootstrapped, Target, "BootstrappedDQN is for discrete actions"),
        (neural_episodic_control, Target, "NEC is for discrete actions"),
    ],
)
def test_other_actions_are_refused(parameters, problem, message, tmp_path):
    with pytest.raises(CoachError, match=message):
        graph(parameters(), problem, tmp_path)


def by_hindsight(memory: Any = None) -> EpisodicHindsightExperienceReplayParameters:
    memory = memory or EpisodicHindsightExperienceReplayParameters()
    memory.hindsight_transitions_per_regular_transition = 1
    memory.hindsight_goal_selection_method = HindsightGoalSelectionMethod.Final
    memory.goals_space = places()
    return memory


def balanced() -> BalancedExperienceReplayParameters:
    memory = BalancedExperienceReplayParameters()
    memory.num_classes, memory.state_key_with_the_class_index = 2, "command"
    return memory


@pytest.mark.parametrize(("make_memory", "missing"), [(by_hindsight, "desired_goal"), (balanced, "command")])
def test_a_memory_that_lacks_its_observation_is_refused_before_the_first_step(make_memory, missing, tmp_path):
    agent = dqn()
    agent.memory = make_memory()
    with pytest.raises(CoachError, match=f"needs the observation '{missing}', and the states of .* 'observation'"):
        graph(agent, Bandit, tmp_path)


@pytest.mark.parametrize("make", [clipped_ppo, actor_critic, policy_gradients])
def test_hindsight_is_refused_by_agents_that_learn_on_policy(make, tmp_path):
    agent = make()
    agent.memory = by_hindsight()
    with pytest.raises(CoachError, match="learns on-policy, and EpisodicHindsightExperienceReplay adds transitions"):
        graph(agent, WalkToGoal, tmp_path)


class StepsToGoal(WalkToGoal):
    """Has actions that are no places."""

    def actions(self) -> DiscreteActionSpace:
        return DiscreteActionSpace(2)


def test_goals_that_are_no_actions_are_refused_before_the_first_step(tmp_path):
    agent = dqn()
    agent.memory = by_hindsight(EpisodicHRLHindsightExperienceReplayParameters())
    with pytest.raises(CoachError, match=r"stores 'achieved_goal' of shape \(1,\) as actions, .* have the shape \(\)"):
        graph(agent, StepsToGoal, tmp_path)


def test_a_recurrent_network_is_refused_by_n_step_q(tmp_path):
    agent = n_step_q()
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters()
    with pytest.raises(CoachError, match="learns from each state without the states before it"):
        graph(agent, Bandit, tmp_path)


def test_segments_of_n_step_q_end_in_the_value_of_their_last_state(tmp_path):
    agent = graph(n_step_q(), Bandit, tmp_path).get_agent()
    states = np.random.default_rng(0).random((4, 2)).astype(np.float32)
    steps = [
        Transition({"observation": states[t]}, t % 2, float(t + 1), {"observation": states[t + 1]}, game_over=False)
        for t in range(3)
    ]
    columns = agent.learning_columns(Batch(steps))
    np.testing.assert_allclose(columns["rewards"], [1 + 0.5 * 2 + 0.25 * 3, 2 + 0.5 * 3, 3])
    np.testing.assert_allclose(columns["discounts"], [0.125, 0.25, 0.5])
    np.testing.assert_array_equal(columns["next_states/observation"], states[[3, 3, 3]])
    np.testing.assert_allclose(columns["weights"].sum(), 1.0)
    steps[-1] = Transition(steps[-1].state, 0, 3.0, steps[-1].next_state, game_over=True, terminated=True)
    np.testing.assert_array_equal(agent.learning_columns(Batch(steps))["discounts"], [0, 0, 0])
    agent.ap.algorithm.targets_horizon = "1-Step"
    columns = agent.learning_columns(Batch(steps))
    np.testing.assert_array_equal(columns["rewards"], [1, 2, 3])
    np.testing.assert_allclose(columns["discounts"], [0.5, 0.5, 0])
    np.testing.assert_array_equal(columns["next_states/observation"], states[1:])


def test_each_head_of_an_ensemble_has_its_own_share_of_what_is_played(tmp_path):
    parameters = bootstrapped()
    parameters.exploration.bootstrapped_data_sharing_probability = 0.25
    manager = graph(parameters, Bandit, tmp_path)
    manager.heatup(EnvironmentSteps(400))
    masks = manager.get_agent().memory.transitions.info("mask")
    assert masks.shape == (400, 3)
    np.testing.assert_allclose(masks.mean(axis=0), 0.25, atol=0.08)


@pytest.mark.parametrize("recorded", ["alone", "first", "last"])
def test_each_head_of_an_ensemble_learns_from_recorded_steps(recorded, tmp_path):
    parameters = bootstrapped()
    parameters.exploration.bootstrapped_data_sharing_probability = 0.0
    manager = graph(parameters, Bandit, tmp_path)
    memory, state = manager.get_agent().memory, {"observation": np.zeros(2, np.float32)}
    played = 0 if recorded == "alone" else 20
    if recorded == "last":
        manager.heatup(EnvironmentSteps(played))
    for _ in range(5):
        memory.store(Transition(state, 0, 1.0, state, game_over=True))
    if recorded == "first":
        manager.heatup(EnvironmentSteps(played))
    masks = manager.get_agent().learning_columns(memory.transitions_at(np.arange(5 + played)))["extra/mask"]
    is_recorded = np.roll(np.arange(5 + played) < 5, played if recorded == "last" else 0)
    np.testing.assert_array_equal(masks, np.repeat(is_recorded[:, None], 3, axis=1))


@pytest.mark.parametrize("parameters", [bootstrapped, upper_confidence_bounds, categorical, quantile_regression])
def test_the_exported_policy_acts_as_the_evaluated_agent(parameters, tmp_path):
    agent = graph(parameters(), Bandit, tmp_path / "run").get_agent()
    for name, data in policy_of(agent, {"framework": FRAMEWORK.name}).items():
        (tmp_path / name).write_bytes(data)
    policy = Policy.load(tmp_path)
    agent.phase = RunPhase.TEST
    for state in np.random.default_rng(0).random((20, 2)).astype(np.float32):
        assert policy.act(state) == agent.choose_action({"observation": state}).action


def test_the_entries_of_an_episode_are_its_embeddings_and_returns(tmp_path):
    parameters = neural_episodic_control()
    manager = graph(parameters, Bandit, tmp_path)
    agent = manager.get_agent()
    manager.heatup(EnvironmentSteps(10))  # one episode
    played = agent.memory.get_last_complete_episode().transitions
    states = np.stack([step.state["observation"] for step in played])
    h = agent.networks["main"].online_network.predict({"observation": states})
    # no entry was there yet, so that what follows four rewards was worth nothing
    expected = [sum(0.5**k * reward for k, reward in enumerate(rewards_of(states, played, t))) for t in range(10)]
    for t, step in enumerate(played):
        keys, values, _ = agent.dnd.query(h[t : t + 1], int(step.action), 1, touch=False)
        np.testing.assert_array_equal(keys[0, 0], h[t])
        same = [i for i in range(10) if played[i].action == step.action and np.array_equal(states[i], states[t])]
        moved = expected[same[0]]
        for i in same[1:]:
            moved += 0.1 * (expected[i] - moved)
        assert values[0, 0] == pytest.approx(moved, rel=1e-5)


def rewards_of(states: np.ndarray, played: list, t: int) -> list[float]:
    """The four rewards from step t on, by the problem's own rule: the arm whose light is on pays."""
    return [float(states[i][played[i].action]) for i in range(t, min(t + 4, 10))]


def test_a_step_that_no_network_was_asked_about_is_stored_without_values(tmp_path):
    agent_parameters = neural_episodic_control()
    agent_parameters.algorithm.n_step = 1
    manager = graph(agent_parameters, MaskedChain, tmp_path)
    agent = manager.get_agent()
    manager.heatup(EnvironmentSteps(2))
    assert not {"action_value", "state_value", "max_action_value"} & set(agent.episode.buffer[0].info)
