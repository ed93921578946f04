"""Settings that cannot work are one line at construction, which names the parameter."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.agents.td3_exp_agent import RandomAgentParameters, TD3GoalBasedAgentParameters
from rl_coach.architectures.head_parameters import (
    DDPGVHeadParameters,
    DuelingQHeadParameters,
    HeadParameters,
    PolicyHeadParameters,
    PPOHeadParameters,
    QHeadParameters,
    QuantileRegressionQHeadParameters,
    VHeadParameters,
)
from rl_coach.architectures.heads import Head, QHead
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters
from rl_coach.exploration_policies.categorical import Categorical, CategoricalParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.utils import CoachError
from tests.zoo import continuous, parameters
from tests.zoo.agents import CoachDQN, of_class
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import acer, dqn, ppo

Make = Callable[[], AgentParameters]


FOR_DISCRETE: list[Make] = [
    parameters.dqn, parameters.ddqn, parameters.dueling, parameters.mixed_monte_carlo, parameters.categorical,
    parameters.munchausen, parameters.persistent_advantage_learning, parameters.quantile_regression,
    parameters.rainbow, parameters.n_step_q, parameters.bootstrapped, parameters.upper_confidence_bounds,
    parameters.neural_episodic_control, parameters.direct_future_prediction, parameters.pqn, acer,
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
    assert "is for continuous actions" in message_of(make(), Bandit, tmp_path)


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
        assert "set middleware_parameters to FCMiddlewareParameters()" in message


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


def problem_of(make: Make) -> Any:
    of_boxes = (*FOR_CONTINUOUS, continuous.tqc, continuous.crossq, continuous.redq, continuous.wolpertinger)
    return Target if make in of_boxes else Bandit


# memories


NEED_RETURNS: list[Make] = [
    parameters.mixed_monte_carlo, parameters.persistent_advantage_learning, parameters.neural_episodic_control,
]  # fmt: skip


NEED_EPISODES: list[Make] = [*NEED_RETURNS, acer, parameters.pqn, parameters.clipped_ppo, ppo]


@pytest.mark.parametrize("make", NEED_EPISODES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("memory", [ExperienceReplayParameters, PrioritizedExperienceReplayParameters])
def test_memories_without_episodes_for_agents_that_learn_from_them(make, memory, tmp_path):
    agent = make()
    agent.memory = memory()
    message = message_of(agent, Bandit, tmp_path)
    assert "complete episodes" in message and "set memory to EpisodicExperienceReplayParameters()" in message


@pytest.mark.parametrize("kind", [RandomAgentParameters, TD3GoalBasedAgentParameters])
def test_memories_without_episodes_for_agents_that_measure_novelty(kind, tmp_path):
    agent = continuous.exploring(kind)
    agent.memory = ExperienceReplayParameters()
    message = message_of(agent, Target, tmp_path)
    assert "complete episodes" in message and "set memory to EpisodicExperienceReplayParameters()" in message


@pytest.mark.parametrize("make", NEED_RETURNS, ids=lambda make: make.__name__)
def test_any_memory_knows_returns_that_gets_whole_episodes(make, tmp_path):
    agent = make()
    agent.memory = ExperienceReplayParameters()
    agent.algorithm.store_transitions_only_when_episodes_are_terminated = True
    manager = graph(agent, Bandit, tmp_path, schedule(20, heatup=30))
    manager.improve()
    assert manager.get_agent().training_iteration > 0


@pytest.mark.parametrize("make", [parameters.actor_critic, parameters.policy_gradients, parameters.n_step_q])
def test_agents_that_replay_nothing_take_any_memory(make, tmp_path):
    agent = make()
    agent.memory = ExperienceReplayParameters()
    graph(agent, Bandit, tmp_path)


# settings that an agent does not know


@pytest.mark.parametrize(
    ("make", "rescaler", "known"),
    [
        (parameters.clipped_ppo, PolicyGradientRescaler.TOTAL_RETURN, ("A_VALUE", "GAE")),
        (ppo, PolicyGradientRescaler.TD_RESIDUAL, ("A_VALUE", "GAE")),
        (parameters.actor_critic, PolicyGradientRescaler.Q_VALUE, ("A_VALUE", "GAE")),
        (parameters.policy_gradients, PolicyGradientRescaler.GAE, ("TOTAL_RETURN", "FUTURE_RETURN")),
    ],
)
def test_rescalers_of_other_agents(make, rescaler, known, tmp_path):
    agent = make()
    agent.algorithm.policy_gradient_rescaler = rescaler
    message = message_of(agent, Bandit, tmp_path)
    assert f"policy_gradient_rescaler of agent 'agent' is {rescaler}" in message
    assert all(f"PolicyGradientRescaler.{name}" in message for name in known)


WITH_TARGETS: list[tuple[Make, str]] = [
    (parameters.dqn, "main"), (parameters.ddqn, "main"), (parameters.mixed_monte_carlo, "main"),
    (parameters.persistent_advantage_learning, "main"), (parameters.categorical, "main"), (parameters.rainbow, "main"),
    (parameters.munchausen, "main"),
    (parameters.quantile_regression, "main"), (parameters.bootstrapped, "main"), (parameters.n_step_q, "main"),
    (parameters.normalized_advantages, "main"), (acer, "main"), (parameters.soft_actor_critic, "v"),
    (continuous.ddpg, "critic"), (continuous.td3, "critic"), (continuous.td3, "actor"),
    (continuous.wolpertinger, "critic"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "network"), WITH_TARGETS, ids=lambda one: getattr(one, "__name__", one))
def test_networks_that_need_a_target(make, network, tmp_path):
    agent = make()
    agent.network_wrappers[network].create_target_network = False
    message = message_of(agent, problem_of(make), tmp_path)
    assert f"network '{network}' of agent 'agent' has no target network" in message
    assert "create_target_network" in message


WITHOUT_TARGETS: list[Make] = [
    continuous.crossq, parameters.neural_episodic_control, parameters.clipped_ppo, parameters.pqn,
]  # fmt: skip


@pytest.mark.parametrize("make", WITHOUT_TARGETS)
def test_networks_that_need_none(make, tmp_path):
    agent = make()
    for network in agent.network_wrappers.values():
        network.create_target_network = False
    graph(agent, problem_of(make), tmp_path)


OF_VALUES: list[Make] = [
    parameters.dqn, parameters.categorical, parameters.n_step_q, parameters.neural_episodic_control,
]  # fmt: skip


@pytest.mark.parametrize("make", OF_VALUES, ids=lambda make: make.__name__)
def test_probabilities_for_agents_of_values(make, tmp_path):
    agent = make()
    agent.exploration = CategoricalParameters()
    message = message_of(agent, Bandit, tmp_path)
    assert "exploration of agent 'agent' needs probabilities" in message


class Softmax(Categorical):
    """Values of its own making out of what the agent predicts."""

    def get_action(self, action_values: Any, action_mask: Any = None) -> Any:
        weights = np.exp(action_values - np.max(action_values))
        return super().get_action(weights / weights.sum(), action_mask)


class SoftmaxParameters(CategoricalParameters):
    @property
    def path(self) -> str:
        return f"{__name__}:Softmax"


def test_probabilities_of_an_exploration_policy_of_ones_own(tmp_path):
    agent = parameters.dqn()
    agent.exploration = SoftmaxParameters()
    graph(agent, Bandit, tmp_path)


# heads


class HalvedQHead(Head):
    """``q`` [B, A] of another network than Coach has."""

    public = ("q",)

    def __call__(self, layers: Any, features: Any, inputs: Any) -> Any:
        return {"q": 0.5 * layers.dense(features, self.num_actions)}


class HalvedQHeadParameters(HeadParameters):
    def __init__(self) -> None:
        super().__init__(parameterized_class_name=f"{__name__}:HalvedQHead")


class OwnQHead(QHead):
    """As Coach's."""


class OwnQHeadParameters(QHeadParameters):
    head = f"{__name__}:OwnQHead"


@pytest.mark.parametrize(
    ("make", "network", "heads", "wanted"),
    [
        (parameters.categorical, "main", [DuelingQHeadParameters()], "CategoricalQHeadParameters()"),
        (parameters.rainbow, "main", [QHeadParameters()], "RainbowQHeadParameters()"),
        (parameters.quantile_regression, "main", [QHeadParameters()], "QuantileRegressionQHeadParameters()"),
        (parameters.dqn, "main", [PolicyHeadParameters()], "QHeadParameters()"),
        (parameters.n_step_q, "main", [VHeadParameters()], "QHeadParameters()"),
        (parameters.neural_episodic_control, "main", [QHeadParameters()], "DNDQHeadParameters()"),
        (parameters.normalized_advantages, "main", [VHeadParameters()], "NAFHeadParameters()"),
        (parameters.policy_gradients, "main", [QHeadParameters()], "PolicyHeadParameters()"),
        (
            parameters.actor_critic, "main", [PolicyHeadParameters(), VHeadParameters()],
            "VHeadParameters(), PolicyHeadParameters()",
        ),
        (parameters.clipped_ppo, "main", [PPOHeadParameters()], "VHeadParameters(), PPOHeadParameters()"),
        (
            parameters.clipped_ppo, "main", [VHeadParameters(), PPOHeadParameters(), VHeadParameters()],
            "VHeadParameters(), PPOHeadParameters()",
        ),
        (ppo, "critic", [QHeadParameters()], "VHeadParameters()"),
        (acer, "main", [VHeadParameters(), PolicyHeadParameters()], "QHeadParameters(), ACERPolicyHeadParameters()"),
        (continuous.ddpg, "actor", [PolicyHeadParameters()], "DDPGActorHeadParameters()"),
        (continuous.ddpg, "critic", [VHeadParameters()], "DDPGVHeadParameters()"),
        (parameters.soft_actor_critic, "q", [DDPGVHeadParameters()], "SACQHeadParameters()"),
        (parameters.soft_actor_critic, "policy", [PolicyHeadParameters()], "SACPolicyHeadParameters()"),
    ],
)  # fmt: skip
def test_heads_that_the_update_rule_cannot_read(make, network, heads, wanted, tmp_path):
    agent = make()
    agent.network_wrappers[network].heads_parameters = heads
    message = message_of(agent, problem_of(make), tmp_path)
    assert f"network '{network}' of agent 'agent'" in message
    assert f"set heads_parameters to [{wanted}]" in message


@pytest.mark.parametrize(
    "head", [DuelingQHeadParameters, QuantileRegressionQHeadParameters, HalvedQHeadParameters, OwnQHeadParameters]
)
def test_heads_of_any_class_that_give_what_is_read(head, tmp_path):
    agent = parameters.dqn()
    agent.network_wrappers["main"].heads_parameters = [head()]
    graph(agent, Bandit, tmp_path)


def test_agents_that_learn_in_their_own_way_have_their_own_needs(tmp_path):
    agent = of_class(parameters.dqn(), CoachDQN)
    agent.network_wrappers["main"].heads_parameters = [VHeadParameters()]
    agent.network_wrappers["main"].create_target_network = False
    graph(agent, Bandit, tmp_path)


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


# batch sizes


@pytest.mark.parametrize(
    ("make", "network", "counts"),
    [
        (continuous.ddpg, "critic", "actor"),
        (parameters.soft_actor_critic, "q", "policy"),
        (continuous.maximum_entropy, "q", "policy"),
        (ppo, "critic", "actor"),
    ],
)
def test_batch_sizes_without_effect_are_a_warning(make, network, counts, tmp_path, capsys):
    agent = make()
    agent.network_wrappers[network].batch_size = 32
    graph(agent, problem_of(make), tmp_path)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "batch_size" in line]
    assert f"batch_size of network '{network}' (32) has no effect" in line
    assert f"batches of 16, the batch_size of network '{counts}'" in line


@pytest.mark.parametrize("chain", ["input_filter", "pre_network_filter"])
def test_filters_of_an_observation_that_does_not_exist_are_a_warning(chain, tmp_path, capsys):
    agent = dqn()
    filters = InputFilter()
    for name in ("observation", "position"):
        filters.add_observation_filter(name, "normalize", ObservationNormalizationFilter())
    setattr(agent, chain, filters)
    graph(agent, Bandit, tmp_path)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "position" in line]
    assert f"agent 'agent': {chain} has filters of the observation 'position', which have no effect" in line
    assert line.endswith("because the observations are 'observation'")


def test_statistics_of_one_worker_are_a_warning(tmp_path, capsys):
    agent = continuous.ddpg()
    agent.algorithm.share_statistics_between_workers = False
    graph(agent, problem_of(continuous.ddpg), tmp_path)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "statistics" in line]
    assert "agent 'agent': algorithm.share_statistics_between_workers = False has no effect" in line


@pytest.mark.parametrize("make", [continuous.ddpg, continuous.maximum_entropy, ppo], ids=lambda make: make.__name__)
def test_equal_batch_sizes_are_none(make, tmp_path, capsys):
    graph(make(), problem_of(make), tmp_path)
    assert "batch_size" not in capsys.readouterr().out
