"""Settings that cannot work are one line at construction, which names the parameter."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.utils import CoachError
from tests.zoo import continuous, parameters
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph
from tests.zoo.parameters import acer, ppo

Make = Callable[[], AgentParameters]


FOR_DISCRETE: list[Make] = [
    parameters.dqn, parameters.ddqn, parameters.dueling, parameters.mixed_monte_carlo, parameters.categorical,
    parameters.persistent_advantage_learning, parameters.quantile_regression, parameters.rainbow, parameters.n_step_q,
    parameters.bootstrapped, parameters.upper_confidence_bounds, parameters.neural_episodic_control, acer,
]  # fmt: skip
FOR_CONTINUOUS: list[Make] = [
    parameters.normalized_advantages, parameters.soft_actor_critic, continuous.ddpg, continuous.td3,
    continuous.maximum_entropy,
]  # fmt: skip
WITHOUT_MEMORY_OF_STATES: list[Make] = [
    parameters.dqn, parameters.categorical, parameters.quantile_regression, parameters.rainbow, parameters.n_step_q,
    parameters.bootstrapped, parameters.neural_episodic_control, acer, parameters.clipped_ppo, ppo,
    parameters.soft_actor_critic, continuous.ddpg, continuous.td3, continuous.maximum_entropy, continuous.wolpertinger,
]  # fmt: skip
WITHOUT_EPISODES: list[Make] = [
    parameters.dqn, parameters.categorical, parameters.quantile_regression, parameters.rainbow, parameters.bootstrapped,
]  # fmt: skip


def message_of(agent: AgentParameters, environment: Any, directory: Any) -> str:
    with pytest.raises(CoachError) as caught:
        graph(agent, environment, directory)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("make", FOR_DISCRETE, ids=lambda make: make.__name__)
def test_continuous_actions_for_agents_that_choose_one_of_several(make, tmp_path):
    message = message_of(make(), Target, tmp_path)
    assert "DiscreteActionSpace" in message or "discrete" in message
    assert "choose" in message or "filter" in message


@pytest.mark.parametrize("make", FOR_CONTINUOUS, ids=lambda make: make.__name__)
def test_discrete_actions_for_agents_that_choose_a_point(make, tmp_path):
    assert "continuous actions with finite bounds" in message_of(make(), Bandit, tmp_path)


@pytest.mark.parametrize("make", WITHOUT_MEMORY_OF_STATES, ids=lambda make: make.__name__)
def test_recurrent_networks_where_they_cannot_be(make, tmp_path):
    agent = make()
    for network in agent.network_wrappers.values():
        if network.middleware_parameters is not None:
            network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=4)
    of_boxes = (*FOR_CONTINUOUS, continuous.wolpertinger)
    message = message_of(agent, Target if make in of_boxes else Bandit, tmp_path)
    if make is parameters.clipped_ppo:
        assert message == (
            "network 'main': separate networks per head cannot each have an LSTM: "
            "set use_separate_networks_per_head to False"
        )
    elif make in WITHOUT_EPISODES:
        assert "set memory to EpisodicExperienceReplayParameters()" in message
    else:
        assert "set middleware_parameters to FCMiddlewareParameters" in message


@pytest.mark.parametrize("make", [parameters.dqn, parameters.soft_actor_critic], ids=lambda make: make.__name__)
def test_a_batch_larger_than_the_memory(make, tmp_path):
    agent = make()
    agent.memory.max_size = (MemoryGranularity.Transitions, 10)
    message = message_of(agent, Bandit if make is parameters.dqn else Target, tmp_path)
    assert "batch_size of network" in message and "is 16, and memory.max_size is 10" in message


@pytest.mark.parametrize(("low", "high"), [(10.0, 10.0), (5.0, -5.0)])
@pytest.mark.parametrize("make", [parameters.categorical, parameters.rainbow], ids=lambda make: make.__name__)
def test_supports_without_width(make, low, high, tmp_path):
    agent = make()
    agent.algorithm.v_min, agent.algorithm.v_max = low, high
    assert f"v_min is {low}; it must be below v_max, which is {high}" in message_of(agent, Bandit, tmp_path)


@pytest.mark.parametrize("n", [0, -2])
@pytest.mark.parametrize("make", [parameters.dqn, parameters.neural_episodic_control], ids=lambda make: make.__name__)
def test_returns_of_less_than_one_step(make, n, tmp_path):
    agent = make()
    agent.algorithm.__dict__["n_step"] = n  # as a preset does that replaces the whole object
    assert f"n_step is {n}" in message_of(agent, Bandit, tmp_path)


# settings that contradict each other


@pytest.mark.parametrize("make", [continuous.ddpg, continuous.td3], ids=lambda make: make.__name__)
@pytest.mark.parametrize("bounds", [[0, -50], [3, 3]])
def test_bounds_of_targets_in_the_wrong_order(make, bounds, tmp_path):
    agent = make()
    agent.algorithm.clip_critic_targets = bounds
    message = message_of(agent, Target, tmp_path)
    assert f"algorithm.clip_critic_targets is {bounds}" in message and "the lower number first" in message


def with_subset_of_quantiles(agent: AgentParameters) -> None:
    agent.algorithm.num_critics_in_target = 2


def with_target_entropy(agent: AgentParameters) -> None:
    agent.algorithm.target_entropy = 0.0


def without_temperature(agent: AgentParameters) -> None:
    del agent.network_wrappers["temperature"]


@pytest.mark.parametrize(
    ("make", "change", "names"),
    [
        (continuous.tqc, with_subset_of_quantiles, ["num_critics_in_target is 2", "num_quantiles 5"]),
        (parameters.soft_actor_critic, with_target_entropy, ["target_entropy", "use_value_network=False"]),
        (continuous.maximum_entropy, without_temperature, ["temperature is None", "network_wrappers"]),
    ],
)
def test_settings_of_soft_actor_critic_that_contradict_each_other(make, change, names, tmp_path):
    agent = make()
    change(agent)
    message = message_of(agent, Target, tmp_path)
    assert all(name in message for name in names)


def test_a_fixed_temperature_needs_no_network(tmp_path):
    agent = continuous.maximum_entropy()
    without_temperature(agent)
    agent.algorithm.temperature = 0.1
    graph(agent, Target, tmp_path)
