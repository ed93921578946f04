"""DDPG's and TD3's updates against the papers' equations in NumPy, and what their settings do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.agents.td3_bc_agent import TD3BCAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import AgentParameters, EmbedderScheme
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, RunPhase, TrainingSteps
from rl_coach.policy.export import acting_now
from rl_coach.schedules import ConstantSchedule
from rl_coach.utils import CoachError
from tests.agents.numpy_gradients import (
    adam_of,
    assert_equal,
    dense,
    float64,
    gradient,
    moved,
    one_update,
    recorded_columns,
)
from tests.frameworks import FRAMEWORK
from tests.zoo.continuous import ddpg, td3
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import graph, schedule

CENTRE, RADIUS = 1.0, 3.0  # of the problem's actions, from -2 to 4
SIZE, UPDATES = 6, 5


def tiny(agent: AgentParameters) -> AgentParameters:
    """Smooth networks, small enough to be differentiated by differences: an embedder of 4 units for the observation, a
    middleware of 3 units for each stream."""
    for network in agent.network_wrappers.values():
        network.batch_size, network.learning_rate, network.optimizer_epsilon = SIZE, 0.01, 1e-4
        embedder = InputEmbedderParameters(scheme=[Dense(4)], activation_function="tanh")
        network.input_embedders_parameters = {"observation": embedder}
        network.middleware_parameters.scheme = [Dense(3)]
        network.middleware_parameters.activation_function = "tanh"
    critic = agent.network_wrappers["critic"]
    critic.input_embedders_parameters["action"] = InputEmbedderParameters(scheme=EmbedderScheme.Empty)
    agent.algorithm.discount = 0.9
    agent.algorithm.rate_for_copying_weights_to_target = 0.3
    agent.algorithm.num_consecutive_training_steps = UPDATES
    agent.algorithm.action_penalty = 0.1
    return agent


def built(parameters: AgentParameters, directory: Any) -> Any:
    """The agent after some random steps in ``Target``."""
    manager = graph(parameters, Target, directory)
    manager.heatup(EnvironmentSteps(40))
    return manager.get_agent()


def actor_of(weights: list[np.ndarray], states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The action and the input of its squashing."""
    hidden = np.tanh(dense(weights, 1, np.tanh(dense(weights, 0, states))))
    pre_activation = dense(weights, 2, hidden)
    return CENTRE + RADIUS * np.tanh(pre_activation), pre_activation


def critics_of(weights: list[np.ndarray], states: np.ndarray, actions: np.ndarray, count: int) -> np.ndarray:
    """[B, count]: the layers come as embedder, then the middlewares, then the outputs."""
    joined = np.concatenate([actions, np.tanh(dense(weights, 0, states))], axis=1)
    streams = [np.tanh(dense(weights, 1 + i, joined)) for i in range(count)]
    return np.concatenate([dense(weights, 1 + count + i, x) for i, x in enumerate(streams)], axis=1)


def reference(agent: Any, columns: dict[str, np.ndarray], updates: int) -> dict[str, Any]:
    """Lillicrap et al. 2016, algorithm 1, or with several critics Fujimoto et al. 2018, algorithm 1: the critic learns
    first, and the actor from the new one; or with a value's weight Fujimoto and Gu 2021, equations 4 and 5."""
    algorithm, parameters = agent.ap.algorithm, agent.ap.network_wrappers
    count = getattr(algorithm, "num_q_networks", 1)
    delay = getattr(algorithm, "update_policy_every_x_episode_steps", 1)
    rate = algorithm.rate_for_copying_weights_to_target
    weights = {name: float64(agent.networks[name].state.arrays("weights")) for name in ("actor", "critic")}
    targets = {name: float64(agent.networks[name].state.arrays("target_weights")) for name in weights}
    optimizers = {name: adam_of(parameters[name], weights[name]) for name in weights}
    losses: dict[str, list[float]] = {"actor": [], "critic": []}
    for number in range(updates):
        batch = one_update(columns, number, SIZE)
        s, s_t, a = batch["states/observation"], batch["next_states/observation"], batch["actions"]
        a_t = actor_of(targets["actor"], s_t)[0]
        if "extra/noise" in batch:
            limit = algorithm.noise_clipping
            a_t = np.clip(a_t + np.clip(algorithm.policy_noise * batch["extra/noise"], -limit, limit), -2, 4)
        q_t = critics_of(targets["critic"], s_t, a_t, count).min(axis=1)
        y = batch["rewards"] + batch["discounts"] * q_t

        def critic_loss(critic: list, y: Any = y, s: Any = s, a: Any = a) -> float:
            return float(np.mean(((critics_of(critic, s, a, count) - y[:, None]) ** 2).sum(axis=1)))

        losses["critic"].append(critic_loss(weights["critic"]))
        weights["critic"] = optimizers["critic"](weights["critic"], gradient(critic_loss, weights["critic"]))

        alpha = getattr(algorithm, "value_weight", None)
        first = critics_of(weights["critic"], s, actor_of(weights["actor"], s)[0], count)[:, 0]
        scale = 1.0 if alpha is None else alpha / np.mean(np.abs(first))  # lambda, which is not differentiated

        def actor_loss(
            actor: list, s: Any = s, a: Any = a, critic: Any = weights["critic"], scale: Any = scale, alpha: Any = alpha
        ) -> float:
            action, pre_activation = actor_of(actor, s)
            penalty = algorithm.action_penalty * np.mean(pre_activation**2)
            cloning = 0.0 if alpha is None else np.mean(((action - a) / RADIUS) ** 2)
            return float(penalty + cloning - scale * np.mean(critics_of(critic, s, action, count)[:, 0]))

        if (number + 1) % delay == 0:  # otherwise nothing descends it
            losses["actor"].append(actor_loss(weights["actor"]))
            weights["actor"] = optimizers["actor"](weights["actor"], gradient(actor_loss, weights["actor"]))
            targets = {name: moved(targets[name], weights[name], rate) for name in targets}
    return {"weights": weights, "targets": targets, "losses": losses}


@pytest.mark.parametrize("steps", [UPDATES, 1])
@pytest.mark.parametrize("make", [DDPGAgentParameters, TD3AgentParameters, TD3BCAgentParameters])
def test_several_updates_are_those_of_the_paper(make, steps, tmp_path):
    parameters = tiny(make())
    if make is DDPGAgentParameters:
        parameters.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
    else:
        parameters.algorithm.policy_noise = 2.0
        parameters.algorithm.act_for_full_episodes = False
    parameters.algorithm.num_consecutive_training_steps = steps
    agent = built(parameters, tmp_path)
    batches = recorded_columns(agent)
    columns_then = {name: float64(agent.networks[name].state.arrays("weights")) for name in agent.networks}
    agent.phase = RunPhase.TRAIN
    results = [agent.update_loop.learn(steps) for _ in range(UPDATES // steps)]
    total = sum(float(loss) for loss in results)
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    after = {name: agent.networks[name].get_state() for name in agent.networks}
    # the reference begins where the agent began
    fresh = built(parameters, tmp_path)
    for name, weights in columns_then.items():
        assert_equal(fresh.networks[name].state.arrays("weights"), weights, 0)
    expected = reference(fresh, columns, UPDATES)
    for name in ("actor", "critic"):
        assert_equal([after[name]["weights"][key] for key in sorted(after[name]["weights"])], expected["weights"][name])
        target = after[name]["target_weights"]
        assert_equal([target[key] for key in sorted(target)], expected["targets"][name])
    assert total == pytest.approx(sum(map(sum, expected["losses"].values())), rel=1e-4)


def test_td3_learns_as_many_updates_as_an_episode_had_steps(tmp_path):
    manager = graph(td3(), Target, tmp_path, schedule(20, heatup=12))
    manager.improve()
    agent = manager.get_agent()
    assert agent.training_iteration == agent.total_steps_counter - 15  # the heatup's last episode is finished
    assert agent.networks["actor"].state.updates == agent.training_iteration // 2


def test_targets_are_clipped_and_do_not_end_where_tasks_have_no_end(tmp_path):
    parameters = ddpg()
    parameters.algorithm.clip_critic_targets = [-0.5, 0]
    parameters.algorithm.use_non_zero_discount_for_terminal_states = True
    agent = built(parameters, tmp_path)
    batches = recorded_columns(agent)
    agent.phase = RunPhase.TRAIN
    agent.update_loop.learn(1)
    np.testing.assert_allclose(batches[0]["discounts"], parameters.algorithm.discount)
    (signal,) = (signal for signal in agent.episode_signals if signal.name == "TD targets")
    assert -0.5 <= signal.get_mean() <= 0


def test_without_an_end_a_sum_of_rewards_is_followed_by_as_many_steps_discount(tmp_path):
    parameters = ddpg()
    parameters.algorithm.use_non_zero_discount_for_terminal_states = True
    parameters.algorithm.n_step, parameters.algorithm.discount = 3, 0.9
    manager = graph(parameters, Target, tmp_path)
    manager.heatup(EnvironmentSteps(10))
    agent = manager.get_agent()
    discounts = agent.learning_columns(agent.memory.transitions)["discounts"]
    np.testing.assert_allclose(discounts, 2 * [0.9**3, 0.9**3, 0.9**3, 0.9**2, 0.9], rtol=1e-6)


def test_actions_are_remembered_as_they_are_played(tmp_path):
    parameters = td3()
    parameters.exploration.noise_schedule = ConstantSchedule(50.0)
    manager = graph(parameters, Target, tmp_path, schedule(20, heatup=40))
    manager.improve()
    actions = manager.get_agent().memory.get_all_complete_episodes_transitions().actions()
    assert actions.min() == -2 and actions.max() == 4


def test_acting_with_the_target_network(tmp_path):
    parameters = ddpg()
    parameters.algorithm.use_target_network_for_evaluation = True
    agent = graph(parameters, Target, tmp_path).get_agent()
    state = {"observation": np.array([0.5], np.float32)}
    actor = agent.networks["actor"]
    actor.online_network.set_weights([weight + 0.5 for weight in actor.online_network.get_weights()])
    agent.phase = RunPhase.TEST
    expected = actor.target_network.predict({"observation": state["observation"][None]})[0]
    np.testing.assert_allclose(agent.choose_action(state).action, expected, rtol=1e-5)
    exported = acting_now(agent, {"framework": FRAMEWORK.name})
    np.testing.assert_allclose(exported.act(state), expected, rtol=1e-5)


def test_another_process_acts_with_the_target_network(tmp_path):
    agents = []
    for seed in (1, 2):
        parameters = ddpg()
        parameters.algorithm.use_target_network_for_evaluation = True
        agents.append(graph(parameters, Target, tmp_path / str(seed), seed=seed).get_agent())
        agents[-1].phase = RunPhase.TEST
    trainer, worker = agents
    worker.take_policy(trainer.acting_policy())
    state = {"observation": np.array([0.5], np.float32)}
    np.testing.assert_allclose(worker.choose_action(state).action, trainer.choose_action(state).action, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("policy_noise", -1, r"algorithm\.policy_noise is -1; it must be a number from 0"),
        ("update_policy_every_x_episode_steps", 0, r"update_policy_every_x_episode_steps is 0; it must be a whole"),
        ("clip_critic_targets", 5, r"clip_critic_targets is 5; it must be None or a pair such as \[-50, 0\]"),
        ("num_q_networks", 3, r"num_q_networks of agent 'agent' is 3, and its critic has 2 streams: set num_streams"),
    ],
)
def test_bad_settings_are_refused_by_name(name, value, message, tmp_path):
    parameters = td3()
    setattr(parameters.algorithm, name, value)
    with pytest.raises(CoachError, match=message) as caught:
        graph(parameters, Target, tmp_path)
    assert "\n" not in str(caught.value)


def test_streams_need_a_head_that_takes_them(tmp_path):
    parameters = ddpg()
    parameters.network_wrappers["critic"].middleware_parameters.num_streams = 2
    with pytest.raises(
        CoachError, match=r"'critic' has several streams, .* DDPGVHead supports only one: set num_streams"
    ):
        graph(parameters, Target, tmp_path)


@pytest.mark.parametrize("parameters", [ddpg, td3])
def test_discrete_actions_are_refused(parameters, tmp_path):
    with pytest.raises(CoachError, match="is for continuous actions"):
        graph(parameters(), Bandit, tmp_path)


@pytest.mark.parametrize("parameters", [ddpg, td3])
def test_a_saved_policy_acts_as_the_agent_does(parameters, tmp_path):
    from rl_coach.policy import Policy

    manager = graph(parameters(), Target, tmp_path, schedule(20, heatup=40))
    manager.improve()
    agent = manager.get_agent()
    agent.exploration_policy.evaluation_noise = 0.0
    manager.save_checkpoint()
    policy = Policy.load(str(tmp_path))
    agent.phase = RunPhase.TEST
    state = {"observation": np.array([0.5], np.float32)}
    np.testing.assert_allclose(policy.act(state["observation"]), agent.choose_action(state).action, rtol=1e-5)
    manager.evaluate(EnvironmentEpisodes(1))
