"""Noise that is a function of the state: the same for equal states until a new one is drawn, with the deviation that
the policy is learned with."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.core_types import Batch, RunPhase, Transition
from rl_coach.exploration_policies.state_dependent_noise import StateDependentNoise, StateDependentNoiseParameters
from rl_coach.spaces import BoxActionSpace
from rl_coach.utils import CoachError
from tests.zoo.continuous import maximum_entropy, td3, with_state_dependent_noise
from tests.zoo.environments import Target
from tests.zoo.graphs import graph, schedule
from tests.zoo.parameters import actor_critic, clipped_ppo, ppo

BOX = BoxActionSpace(2, low=-np.ones(2), high=np.ones(2))


def policy(steps: int | None = None) -> StateDependentNoise:
    made = StateDependentNoise(BOX, steps, 0.5, TD3AgentParameters().network_wrappers)
    made.seed(3)
    made.change_phase(RunPhase.TRAIN)
    return made


MEAN, FEATURES = np.array([0.1, -0.2]), np.array([1.0, 2.0, -1.0])


def test_equal_states_get_equal_noise_until_the_episode_ends():
    explores = policy()
    first, again, other = (explores.get_action((MEAN, z)) for z in (FEATURES, FEATURES, 2 * FEATURES))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(other - MEAN, 2 * (first - MEAN), rtol=1e-5)
    explores.reset()
    assert not np.allclose(explores.get_action((MEAN, FEATURES)), first)


def test_a_new_function_every_few_steps():
    explores = policy(2)
    actions = [explores.get_action((MEAN, FEATURES)).tolist() for _ in range(6)]
    assert actions[0] == actions[1] != actions[2] == actions[3] != actions[4] == actions[5]


def test_the_deviation_is_that_of_the_weights():
    explores = policy(1)
    noise = np.array([explores.get_action((MEAN, FEATURES)) for _ in range(4000)]) - MEAN
    np.testing.assert_allclose(noise.std(axis=0), 0.5 * np.sqrt(6.0), rtol=0.05)


def test_other_phases_take_the_mean():
    explores = policy()
    explores.change_phase(RunPhase.TEST)
    np.testing.assert_allclose(explores.get_action((MEAN, FEATURES)), MEAN, rtol=1e-6)


def test_its_state_goes_on_exactly():
    one, other = policy(3), policy(3)
    one.get_action((MEAN, FEATURES))
    other.set_state(one.get_state())
    for _ in range(5):
        np.testing.assert_array_equal(one.get_action((MEAN, FEATURES)), other.get_action((MEAN, FEATURES)))


def test_sac_acts_with_the_deviation_that_it_learns(tmp_path):
    parameters = with_state_dependent_noise(maximum_entropy())
    parameters.exploration.steps_between_draws = 1
    agent = graph(parameters, Target, tmp_path).get_agent()
    agent.phase = RunPhase.TRAIN
    state = {"observation": np.array([0.5], np.float32)}
    mean, log_deviation, features, scales = (output[0] for output in agent.get_prediction(state))
    assert features.shape == (256,) or features.shape == (16,)
    expected = np.sqrt(np.sum(features**2 * scales**2) + 1e-6)
    assert np.exp(log_deviation[0]) == pytest.approx(expected, rel=1e-4)
    actions = np.array([agent.choose_action(state).action[0] for _ in range(3000)])
    u = np.arctanh((actions - 1) / 3)
    assert u.mean() == pytest.approx(mean[0], abs=4 * expected / np.sqrt(3000))
    assert u.std() == pytest.approx(expected, rel=0.06)


def test_td3_keeps_its_noise_through_an_episode(tmp_path):
    agent = graph(with_state_dependent_noise(td3()), Target, tmp_path).get_agent()
    agent.phase = RunPhase.TRAIN
    state = {"observation": np.array([0.5], np.float32)}
    one, same = agent.choose_action(state).action, agent.choose_action(state).action
    np.testing.assert_array_equal(one, same)
    agent.phase = RunPhase.TEST
    assert not np.allclose(agent.choose_action(state).action, one)


OF_POLICY_GRADIENTS = {"ClippedPPO": clipped_ppo, "PPO": ppo, "actor-critic": actor_critic}


@pytest.mark.parametrize("name", OF_POLICY_GRADIENTS)
def test_policies_act_with_the_deviation_that_they_learn(name, tmp_path):
    parameters = with_state_dependent_noise(OF_POLICY_GRADIENTS[name]())
    parameters.exploration.steps_between_draws = 1
    agent = graph(parameters, Target, tmp_path).get_agent()
    network = agent.networks[agent.policy_network]
    agent.phase = RunPhase.TRAIN
    state = {"observation": np.array([0.5], np.float32)}
    mean, deviation, features, scales = (
        output[0]
        for name, output in zip(network.online_network.output_names, agent.get_prediction(state))
        if not name.endswith("_v")
    )
    expected = np.sqrt(np.sum(features**2 * scales**2) + 1e-6)
    np.testing.assert_allclose(scales, np.exp(-2.0), rtol=1e-6)
    assert deviation[0] == pytest.approx(expected, rel=1e-5)
    actions = np.array([agent.choose_action(state).action[0] for _ in range(3000)])
    assert actions.mean() == pytest.approx(mean[0], abs=4 * expected / np.sqrt(3000))
    assert actions.std() == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("name", ["ClippedPPO", "PPO"])
def test_the_ratio_is_of_the_density_of_an_action_over_all_functions(name, tmp_path):
    """Not over the one function that was drawn: N(mean, features^2 scales^2), Raffin et al. 2022, equation 7."""
    agent = graph(with_state_dependent_noise(OF_POLICY_GRADIENTS[name]()), Target, tmp_path).get_agent()
    rng = np.random.default_rng(1)
    states = rng.uniform(-1, 1, (8, 1)).astype(np.float32)
    actions = rng.normal(1, 1, (8, 1)).astype(np.float32)
    outputs = dict(
        zip(
            agent.networks[agent.policy_network].online_network.output_names,
            agent.get_prediction([{"observation": s} for s in states]),
        )
    )
    mean, features, scales = (
        next(value for key, value in outputs.items() if key.endswith(end))
        for end in ("mean", "_features", "noise_scales")
    )
    variance = np.square(features.astype(np.float64)) @ np.square(scales[0])[:, None] + 1e-6
    expected = -0.5 * ((actions - mean) ** 2 / variance + np.log(2 * np.pi * variance))[:, 0]
    steps = [
        Transition({"observation": s}, a, 1.0, {"observation": s}, game_over=i == 7, terminated=i == 7)
        for i, (s, a) in enumerate(zip(states, actions))
    ]
    columns = agent.fill_advantages(Batch(steps))
    np.testing.assert_allclose(columns["extra/behaviour_log_probs"], expected, rtol=2e-4)


def test_a_new_policy_of_the_trainer_leaves_the_noise_of_the_episode_in_progress():
    trainer, worker = policy(), policy()
    first = worker.get_action((MEAN, FEATURES))
    worker.take_schedules(trainer.get_schedules())
    np.testing.assert_array_equal(worker.get_action((MEAN, FEATURES)), first)


@pytest.mark.parametrize("name", OF_POLICY_GRADIENTS)
def test_the_scales_are_learned(name, tmp_path):
    manager = graph(with_state_dependent_noise(OF_POLICY_GRADIENTS[name]()), Target, tmp_path, schedule(200))
    manager.improve()
    agent = manager.get_agent()
    scales = agent.get_prediction({"observation": np.zeros(1, np.float32)})[-1]
    assert agent.training_iteration > 0 and not np.allclose(scales, np.exp(-2.0), rtol=1e-3)


@pytest.mark.parametrize(
    "make, reason",
    [
        (DQNAgentParameters, "DQN is for discrete actions"),
        (NAFAgentParameters, "state-dependent noise needs a policy head with state_dependent_noise"),
    ],
)
def test_agents_without_such_a_policy_are_refused(make, reason, tmp_path):
    parameters = make()
    parameters.exploration = StateDependentNoiseParameters(parameters)
    with pytest.raises(CoachError, match=reason):
        graph(parameters, Target, tmp_path)
