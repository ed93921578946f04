"""An agent in a user's loop: what it accepts, what it refuses, and that looking at it changes nothing."""

from __future__ import annotations

import inspect
import json
import pathlib
import random
import re
import subprocess
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from rl_coach import Agent, make_agent
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent, ClippedPPOAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.ppo_agent import PPOAgent
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.agents.td3_agent import TD3AgentParameters
from rl_coach.agents.trpo_agent import TRPOAgentParameters
from rl_coach.architectures.layers import NoisyNetDense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.world_model import ModelSize
from rl_coach.base_parameters import Frameworks
from rl_coach.callbacks import SaveEvery, StopOnReward
from rl_coach.command_line.names_elsewhere import NAMES_HERE
from rl_coach.core_types import EnvironmentSteps, RunPhase
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.own_loop.agent import DEFINITION_FILE
from rl_coach.policy import Policy
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.own_loop.loops import AGENTS, Loop, agent_state, assert_equal, own_agent, small

PLACE = Box(-1, 1, (3,), np.float32)
agent_of = partial(make_agent, framework=FRAMEWORK.name)


def bandit(**arguments) -> Agent:
    """A DQN of three numbers and two actions."""
    small = {"middleware_parameters": {"scheme": []}, "batch_size": 4}
    return agent_of("DQN", observation_space=PLACE, action_space=Discrete(2), **{"seed": 1, **small, **arguments})


def test_the_random_generators_of_the_program_go_on():
    random.seed(5)
    np.random.seed(6)
    expected = random.Random(5).random(), np.random.RandomState(6).random()
    bandit(seed=3)
    assert (random.random(), np.random.random()) == expected


def state(number: float = 0.0) -> np.ndarray:
    return np.full(3, number, np.float32)


def play(agent: Agent, steps: int = 40) -> None:
    """Steps of episodes of eight."""
    for step in range(steps):
        agent.act(state(step % 8 / 8))
        agent.observe(1.0, step % 8 == 7, next_states=state((step % 8 + 1) / 8))


def test_predictions_and_evaluations_leave_training_as_it_was():
    plain, watched = own_agent("DQN"), own_agent("DQN")
    loop, other = Loop("DQN", plain), Loop("DQN", watched)
    env = gymnasium.make(AGENTS["DQN"][1])
    for step in range(150):
        loop.step()
        other.step()
        if step % 40 == 20:
            for deterministic in (True, False):
                watched.predict(other.states[0], deterministic=deterministic)
            with watched.evaluation() as rewards:
                observation, _ = env.reset(seed=step)
                for _ in range(30 if step == 20 else 500):
                    observation, reward, terminated, truncated, _ = env.step(watched.act(observation))
                    watched.observe(reward, terminated, truncated, observation)
                    if terminated or truncated:
                        break
            assert len(rewards) == int(terminated or truncated)
    assert_equal(agent_state(plain), agent_state(watched))


def test_predictions_and_evaluations_leave_the_statistics_of_filters_as_they_were():
    def normalized():
        agent = small(ClippedPPOAgentParameters())
        agent.pre_network_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
        return agent_of(agent, observation_space=PLACE, action_space=Discrete(2), seed=1)

    plain, watched = normalized(), normalized()
    for agent in (plain, watched):
        play(agent, 24)
        if agent is watched:
            agent.predict(state(0.7))
            agent.predict(np.stack([state(0.1), state(0.9)]), deterministic=False)
            with agent.evaluation():
                agent.act(state(0.9))
                agent.observe(1.0, True)
        play(agent, 24)
    assert plain.graph_manager.get_agent().get_state()["filters"]["pre_network_filter"]
    assert_equal(agent_state(plain), agent_state(watched))


def test_a_deterministic_action_is_that_of_the_exported_policy(tmp_path):
    agent = Loop("DQN", own_agent("DQN")).run(100)
    policy = Policy.load(agent.export_model(tmp_path / "policy"))
    rng = np.random.default_rng(0)
    states = rng.normal(size=(200, 4)).astype(np.float32)
    expected = [policy.act(one) for one in states]
    assert list(agent.predict(states)) == [agent.predict(one) for one in states] == expected
    agent.reset()
    with agent.evaluation():
        found = []
        for one in states:
            found.append(agent.act(one, deterministic=True))
            agent.observe(0.0, True)
    assert found == expected and len(set(expected)) == 2


def test_a_deterministic_action_has_no_noise_of_noisy_layers():
    noisy = FCMiddlewareParameters(scheme=[NoisyNetDense(32)], dense_layer=NoisyNetDense)
    spaces = {"observation_space": Box(-1, 1, (4,)), "action_space": Discrete(6)}
    agent = make_agent(
        "DQN", **spaces, network_wrappers={"main": {"middleware_parameters": noisy}}, seed=0, framework=FRAMEWORK.name
    )
    rng = np.random.default_rng(0)
    with agent.evaluation():
        for one in rng.uniform(-1, 1, (60, 4)).astype(np.float32):
            found = agent.act(one, deterministic=True)
            agent.observe(0.0, True)
            assert found == agent.predict(one)


@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize(
    "name",
    [name if name in ("DQN", "recurrent A2C") else pytest.param(name, marks=pytest.mark.slow) for name in AGENTS],
)
def test_a_saved_agent_goes_on_exactly_in_the_middle_of_an_episode(tmp_path, name, num_envs):
    uninterrupted, saved = (Loop(name, own_agent(name, num_envs), num_envs) for _ in range(2))
    uninterrupted.run(120)
    saved.run(60)
    saved.agent.save(tmp_path)
    make, _ = AGENTS[name]
    saved.agent = Agent.load(tmp_path, algorithm=make())
    saved.run(120)
    assert_equal(agent_state(uninterrupted.agent), agent_state(saved.agent))


def test_an_agent_saved_as_ppo_by_older_versions_is_still_the_one_with_a_penalty(tmp_path):
    agent_of("AdaptivePPO", "CartPole-v1", seed=0).save(tmp_path)
    file = tmp_path / DEFINITION_FILE
    saved = json.loads(file.read_text())
    saved["arguments"]["algorithm"] = "PPO"
    file.write_text(json.dumps(saved))
    assert isinstance(Agent.load(tmp_path).graph_manager.get_agent(), PPOAgent)


def test_an_agent_is_saved_by_its_class(tmp_path):
    agent_of("PPO", "CartPole-v1", seed=0).save(tmp_path)
    assert isinstance(Agent.load(tmp_path).graph_manager.get_agent(), ClippedPPOAgent)


def test_an_action_without_an_answer_and_one_without_its_next_state_are_saved_too(tmp_path):
    agents = [bandit(), bandit()]
    for agent in agents:
        agent.act(state(0))
        agent.observe(1.0, False)  # whose next state comes with the next act
    agents[1].save(tmp_path)
    agents[1] = Agent.load(tmp_path)
    for agent in agents:
        agent.act(state(0.5))
    agents[1].save(tmp_path)
    agents[1] = Agent.load(tmp_path)
    for agent in agents:
        agent.observe(1.0, True, next_states=state(1))
        assert agent.total_steps == 2
    assert_equal(*map(agent_state, agents))


def test_the_mask_of_a_state_that_comes_with_the_next_act_is_saved(tmp_path):
    spaces = {"observation_space": PLACE, "action_space": Discrete(20), "action_mask": True}
    agents = [agent_of("DQN", seed=1, **spaces) for _ in range(2)]
    for agent in agents:
        agent.act(state(0), infos={"action_mask": np.ones(20, np.int8)})
        agent.observe(1.0, False, infos={"action_mask": np.eye(20, dtype=np.int8)[7]})
    agents[1].save(tmp_path)
    assert [one.act(state(0.5)) for one in (agents[0], Agent.load(tmp_path))] == [7, 7]


def test_learning_in_its_environment_needs_one_and_reaches_its_steps(tmp_path):
    with pytest.raises(CoachError, match="learn needs an environment"):
        bandit().learn(10)
    seen = []
    agent = agent_of("DQN", "CartPole-v1", seed=0, heatup_steps=20, experiment_path=str(tmp_path), batch_size=8)
    assert agent.learn(300, evaluate_every=100, callback=lambda one: seen.append(one.total_steps)) is agent
    assert len(seen) == 3 and agent.total_steps - seen[0] == 200
    agent.learn(100)
    assert agent.total_steps == seen[-1] + 100  # no second heatup
    assert list(tmp_path.glob("*.csv")) and (tmp_path / "checkpoint").is_dir()
    agent.save(tmp_path / "saved")
    loaded = Agent.load(tmp_path / "saved")
    loaded.learn(50)
    assert loaded.total_steps == agent.total_steps + 50
    stopped = agent_of("DQN", gymnasium.make("CartPole-v1"), seed=0, batch_size=8)
    stopped.learn(300, evaluate_every=100, callback=lambda one: False)
    assert stopped.total_steps == 100


def test_an_agent_that_is_saved_in_the_last_episode_of_heatup_completes_it(tmp_path):
    agent = agent_of("DQN", observation_space=PLACE, action_space=Discrete(2), heatup_steps=3)
    for _ in range(5):
        agent.act(state())
        agent.observe(0.0, False, False, state())
    agent.save(tmp_path)
    for player in (agent, Agent.load(tmp_path)):
        for ends, phase in ((False, RunPhase.HEATUP), (True, RunPhase.HEATUP), (False, RunPhase.TRAIN)):
            player.act(state())
            assert player.graph_manager.phase is phase
            player.observe(0.0, ends, False, state())


def test_learning_after_a_loop_has_no_second_heatup():
    agent, env = agent_of("DQN", "CartPole-v1", seed=0, batch_size=8, heatup_steps=20), gymnasium.make("CartPole-v1")
    state, ended = env.reset(seed=agent.environment_seed)[0], False
    while agent.total_steps < 60 or not ended:
        state, reward, terminated, truncated, _ = env.step(agent.act(state))
        agent.observe(reward, terminated, truncated, state)
        if ended := terminated or truncated:
            state = env.reset()[0]
    before = agent.total_steps
    agent.learn(30)
    assert agent.total_steps == before + 30


def test_a_loop_may_follow_on_learning_and_learning_on_a_loop():
    agent = agent_of("DQN", "CartPole-v1", seed=0, batch_size=8)
    agent.learn(20)
    agent.act(np.zeros(4))  # begins an episode of its own
    agent.observe(1.0, False, next_states=np.ones(4))
    agent.learn(20)
    assert agent.total_steps == 41


def test_the_settings_of_a_parameters_object_are_saved(tmp_path):
    given = small(DQNAgentParameters())
    given.algorithm.discount = 0.5
    given.exploration.epsilon_schedule = LinearSchedule(0.3, 0.1, 500)
    given.network_wrappers["main"].learning_rate = 0.125
    agent = agent_of(given, observation_space=PLACE, action_space=Discrete(2), batch_size=16)
    agent.save(tmp_path)
    parameters = Agent.load(tmp_path).graph_manager.agent_params
    assert parameters.algorithm.discount == 0.5
    assert repr(parameters.exploration.epsilon_schedule) == repr(LinearSchedule(0.3, 0.1, 500))
    network = parameters.network_wrappers["main"]
    assert (network.learning_rate, network.batch_size) == (0.125, 16)
    assert repr(network.middleware_parameters.scheme) == repr(
        given.network_wrappers["main"].middleware_parameters.scheme
    )


def test_a_parameters_object_with_other_parts_is_asked_for(tmp_path):
    given = small(DQNAgentParameters())
    given.memory = PrioritizedExperienceReplayParameters()
    agent_of(given, observation_space=PLACE, action_space=Discrete(2)).save(tmp_path)
    with pytest.raises(CoachError, match=r"saved without algorithm: pass algorithm to Agent.load, as to make_agent"):
        Agent.load(tmp_path)
    memory = Agent.load(tmp_path, algorithm=given).graph_manager.agent_params.memory
    assert isinstance(memory, PrioritizedExperienceReplayParameters)


def test_settings_and_spaces_are_saved_and_what_cannot_be_is_asked_for(tmp_path):
    every_two = EnvironmentSteps(2)
    agent = bandit(num_consecutive_playing_steps=every_two, memory={"max_size": (MemoryGranularity.Transitions, 50)})
    agent.save(tmp_path)
    parameters = Agent.load(tmp_path).graph_manager.agent_params
    assert parameters.algorithm.num_consecutive_playing_steps == every_two
    assert parameters.memory.max_size == (MemoryGranularity.Transitions, 50)
    made = agent_of(small(DQNAgentParameters()), lambda: gymnasium.make("CartPole-v1"), seed=0)
    made.save(tmp_path)
    with pytest.raises(CoachError, match="saved without env: pass env to Agent"):
        Agent.load(tmp_path)
    assert Agent.load(tmp_path, env="CartPole-v1", algorithm=small(DQNAgentParameters())).total_steps == 0
    with pytest.raises(CoachError, match="no agent was saved in"):
        Agent.load(tmp_path / "elsewhere")
    with pytest.raises(CoachError, match="the package 'nowhere' is not installed"):
        agent_of("nowhere:Parameters", "CartPole-v1")


@pytest.mark.skipif(FRAMEWORK is Frameworks.mxnet, reason="DreamerV3 does not learn on MXNet")
def test_a_deterministic_action_draws_the_most_probable_states_of_a_world_model():
    size = ModelSize(deter=32, units=16)
    agent = make_agent(
        "DreamerV3",
        observation_space=Box(-1, 1, (4,)),
        action_space=Discrete(4),
        seed=0,
        framework=FRAMEWORK.name,
        **{"algorithm.size": size},
    )
    states = np.random.default_rng(0).uniform(-1, 1, (60, 4)).astype(np.float32)
    expected = [agent.predict(one) for one in states]
    with agent.evaluation():
        found = []
        for one, following in zip(states, [*states[1:], states[0]]):
            found.append(agent.act(one, deterministic=True))
            agent.observe(0.0, len(found) == len(states), next_states=following)
    assert found == expected


def test_a_framework_may_be_a_member_of_its_enum_and_an_agent_is_no_algorithm():
    spaces = {"observation_space": Box(-1, 1, (3,)), "action_space": Discrete(2)}
    agent = make_agent("DQN", **spaces, framework=FRAMEWORK)
    assert agent.graph_manager.task_parameters.framework_type is FRAMEWORK
    with pytest.raises(CoachError, match="there is no framework '3'"):
        make_agent("DQN", **spaces, framework=3)
    with pytest.raises(CoachError, match=r"an algorithm must be a name or AgentParameters, not <class .*PPOAgent'>"):
        make_agent(PPOAgent, **spaces)


def test_what_is_wrong_is_one_line_and_changes_nothing():
    agent, untouched = bandit(), bandit()
    for wrong, reason in [
        (np.zeros(4, np.float32), r"the observation 'observation' has the shape \(4,\), its space says \(3,\)"),
        ("left", "is 'left', which is not an array of numbers"),
        ([[1], [1, 2], [3]], "not an array of numbers"),
        (None, "not an array of numbers"),
    ]:
        with pytest.raises(CoachError, match=reason):
            agent.act(wrong)
    with pytest.raises(CoachError, match="the environment has received no action: call act before observe"):
        agent.observe(1.0, False)
    agent.act(state())
    with pytest.raises(CoachError, match="has not answered the last action: call observe first"):
        agent.act(state())
    with pytest.raises(CoachError, match="was truncated, and its value depends on its last state: give next_states"):
        agent.observe(1.0, False, True)
    with pytest.raises(CoachError, match="the reward of the environment is 'much', not a number"):
        agent.observe("much", False, next_states=state())
    with pytest.raises(CoachError, match="shape"):
        agent.observe(1.0, False, next_states=np.zeros(2))
    agent.observe(1.0, False, next_states=state(0.5))
    with pytest.raises(
        CoachError, match="differs from the state that observe received: call reset if you left its episode"
    ):
        agent.act(state(0.25))
    untouched.act(state())
    untouched.observe(1.0, False, next_states=state(0.5))
    assert_equal(agent_state(agent), agent_state(untouched))


@pytest.mark.parametrize("flag", ["False", float("nan"), 0.5, None, 2, [True, False]])
def test_an_end_that_is_neither_true_nor_false_is_one_line(flag):
    agent, batch = bandit(), recorded_batch()
    agent.act(state())
    for ends in ((flag, False), (False, flag)):
        with pytest.raises(CoachError, match=r"'(terminated|truncated)' of the environment is .*, not True or False"):
            agent.observe(1.0, *ends, next_states=state(0.5))
    for learn in (agent.update, agent.import_observations):
        with pytest.raises(CoachError, match=r"'terminals' of step 3 is .*, not True or False"):
            learn({**batch, "terminals": [0, np.False_, False, flag, *[1] * 4]})
    with pytest.raises(CoachError, match="'truncated' of step 1 is"):
        agent.import_observations({**batch, "truncated": [0, flag, *[1] * 6]})
    assert agent.graph_manager.get_agent().memory.num_transitions() == 0
    agent.observe(np.True_, np.array([0]), np.True_, next_states=state(0.5))


@pytest.mark.parametrize("action", [0.37, 1.9, "1", None, float("nan"), float("inf")])
def test_a_recorded_action_that_is_no_whole_number_is_one_line(action):
    agent, batch = bandit(), recorded_batch()
    for learn in (agent.update, agent.import_observations):
        with pytest.raises(CoachError, match=f"the action {action!r} is not in the action space"):
            learn({**batch, "actions": [0, 1.0, action, *[1] * 5]})


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        (lambda columns: 3, "the recorded steps are of the type int: give a dictionary of columns, or a list with"),
        (lambda columns: "steps.csv", "the recorded steps are of the type str: give a dictionary of columns"),
        (lambda columns: [(state(), 0, 1.0, True)], "the recorded steps are of the type list: give a dictionary"),
        (lambda columns: {**columns, "actions": [0, 1]}, "'actions' of the recorded steps has 2 rows, and 'rewards' h"),
        (lambda columns: {"states": columns["states"]}, "the recorded steps have no 'rewards': give one for each step"),
        (lambda columns: {**columns, "actions": 0}, "'actions' of the recorded steps has 1 rows, and 'rewards' has 8"),
    ],
)
def test_recorded_steps_of_another_form_are_one_line(recorded, message):
    agent = bandit()
    for learn in (agent.import_observations, agent.update):
        with pytest.raises(CoachError, match=re.escape(message)):
            learn(recorded(recorded_batch()))
    with pytest.raises(CoachError, match="the recorded steps are of the type NoneType"):
        agent.import_observations(None)


def test_one_update_can_have_a_dictionary_for_each_step():
    columns, rows = recorded_batch(), []
    for number in range(8):
        rows.append({name: column[number] for name, column in columns.items()})
    one, other = bandit().update(columns), bandit().update(rows)
    assert one == other and one.per_item.tolist() == other.per_item.tolist()


def test_rows_of_recorded_columns_are_in_their_order_and_not_in_the_order_of_labels():
    pandas, agent, batch = pytest.importorskip("pandas"), bandit(), recorded_batch()
    rewards = np.arange(8.0, dtype=np.float32)
    batch["rewards"] = pandas.Series(rewards, index=range(8)[::-1])
    agent.import_observations({**batch, "terminals": [True] * 8})
    assert agent.graph_manager.get_agent().memory.transitions.rewards().tolist() == rewards.tolist()


def test_recorded_columns_and_rewards_may_be_arrays_of_a_framework():
    jnp, agent = pytest.importorskip("jax.numpy"), bandit()
    columns = {name: jnp.asarray(column) for name, column in recorded_batch().items()}
    assert agent.import_observations(columns) == 8
    assert agent.import_observations({**columns, "rewards": columns["rewards"][:, None]}) == 8
    for reward in (jnp.float32(2.0), np.array([2.0]), np.array(2.0), 2):
        agent.act(state())
        agent.observe(reward, True, next_states=state(0.5))
        assert agent.graph_manager.get_agent().memory.transitions.rewards()[-1] == 2.0
    assert agent.import_observations([{name: column[0] for name, column in columns.items()}]) == 1


def test_several_environments_are_named_and_answer_when_they_want():
    agent = bandit(num_envs=3, env_ids=["north", "south", "west"])
    assert len(agent.act(np.zeros((3, 3), np.float32))) == 3
    agent.observe(1.0, True, env_ids="south", next_states=state())
    assert isinstance(agent.act(state(1), env_ids="south"), (int, np.integer))
    with pytest.raises(CoachError, match="environment 'south' has not answered"):
        agent.act(state(1), env_ids="south")
    agent.observe([0.0, 0.0], [False, True], env_ids=["north", "west"], next_states=[state(0.1), state(0.2)])
    for ids, reason in [
        ("east", "there is no environment 'east'"),
        ([["south"]], r"there is no environment \['south'\]"),
        (["west", "west"], "contains an environment twice"),
    ]:
        with pytest.raises(CoachError, match=reason):
            agent.act(np.zeros((2, 3), np.float32), env_ids=ids)
    with pytest.raises(CoachError, match="1 rows are given for 2 environments"):
        agent.act(np.zeros((1, 3), np.float32), env_ids=["north", "west"])
    assert agent.total_steps == 3


def test_arrays_that_the_user_reuses_are_copied():
    agent = bandit()
    reused = state()
    for number in (0.0, 0.25, 0.5):
        reused[:] = number
        agent.act(reused)
        reused[:] = number + 0.25
        agent.observe(1.0, False, next_states=reused)
    stored = agent.graph_manager.get_agent().memory.transitions
    np.testing.assert_array_equal(stored.states(["observation"])["observation"][:, 0], [0.0, 0.25, 0.5])


def test_a_mask_that_comes_with_the_info_is_declared_and_kept_to():
    agent = agent_of("DQN", observation_space=PLACE, action_space=Discrete(4), action_mask=True, seed=0, batch_size=4)
    mask = np.array([0, 0, 1, 0], np.int8)
    for _ in range(30):
        assert agent.act(state(), infos={"action_mask": mask}) == 2
        agent.observe(0.0, True, next_states=state(), infos={"action_mask": mask})
    assert agent.predict(state(), infos={"action_mask": mask}) == 2
    batch = [state(0.1), state(0.5)], [{"action_mask": mask}, {"action_mask": mask[::-1]}]
    assert list(agent.predict(np.stack(batch[0]), infos=batch[1])) == [2, 1]
    with pytest.raises(CoachError, match="infos must be an info with an 'action_mask'"):
        agent.predict(state(), infos={"mask": mask})
    with pytest.raises(CoachError, match="infos are only for discrete actions"):
        agent_of("SAC", observation_space=PLACE, action_space=Box(-1, 1, (2,))).predict(
            state(), infos={"action_mask": mask}
        )
    with pytest.raises(CoachError, match="predict needs the 'action_mask' of each state: give the infos"):
        agent.predict(state())
    with pytest.raises(CoachError, match="does not use the 'action_mask' of infos: make it with action_mask=True"):
        agent_of("DQN", observation_space=PLACE, action_space=Discrete(4)).predict(state(), infos={"action_mask": mask})
    with pytest.raises(CoachError, match="an action_mask needs a Discrete action_space"):
        agent_of("SAC", observation_space=PLACE, action_space=Box(-1, 1, (2,)), action_mask=True)


@pytest.mark.parametrize("env", ["CartPole-v1", lambda: gymnasium.make("CartPole-v1")])
def test_masks_that_an_environment_does_not_have_are_refused(env):
    with pytest.raises(CoachError, match=r"action_mask is True, but the infos of level '.*' have no action_mask"):
        agent_of("DQN", env, action_mask=True)
    assert agent_of("DQN", "Taxi-v4", action_mask=True).uses_masks_of_infos


def test_infos_are_one_for_each_environment():
    mask = {"action_mask": np.array([0, 1], np.int8)}
    one, two = bandit(action_mask=True), bandit(action_mask=True, num_envs=2)
    for infos, message in [
        ([mask], r"infos must be one info \(a dict\), not"),
        ("mask", r"must be one info \(a dict\)"),
    ]:
        with pytest.raises(CoachError, match=message):
            one.act(state(), infos=infos)
    states = np.stack([state()] * 2)
    both = {"action_mask": np.array([[0, 1], [1, 0]], np.int8)}
    for call in (lambda infos: two.act(states[:1], [1], infos=infos), lambda infos: two.act(states, infos=infos)):
        for infos in ([mask] * 3, {"action_mask": [mask["action_mask"]] * 3}):
            with pytest.raises(CoachError, match=r"infos has 3 rows, and there are (1|2) environments"):
                call(infos)
    with pytest.raises(CoachError, match="infos must be a list of infos or a dict, not"):
        two.act(states, infos=3)
    assert two.act(states, infos=both) == [1, 0]
    with pytest.raises(CoachError, match="infos has 2 rows, and there are 1 environments"):
        two.observe([1.0], [True], [False], states[:1], [1], infos=both)
    two.observe([1.0] * 2, [True] * 2, [False] * 2, states, infos=[None, mask])


def test_masks_of_parts_are_kept_to_in_each_form():
    parts = np.array([0, 0, 1], np.int8), np.array([0, 1], np.int8)
    joined = np.concatenate(parts)
    agent = agent_of(
        "DQN", observation_space=PLACE, action_space=MultiDiscrete([3, 2]), action_mask=True, num_envs=2, seed=0,
        batch_size=4,
    )  # fmt: skip
    agent.autoreset_mode = "disabled"
    states = np.zeros((2, 3), np.float32)
    for masks in (
        np.stack([joined] * 2), [joined] * 2, [parts] * 2, tuple(np.stack([part] * 2) for part in parts),
    ) * 4:  # fmt: skip
        assert np.array_equal(agent.act(states, infos={"action_mask": masks}), [[2, 1]] * 2)
        agent.observe([1.0] * 2, [True] * 2, [False] * 2, states, infos={"action_mask": masks})
        agent.reset()
    for mask in (parts, joined):
        assert np.array_equal(agent.predict(state(), infos={"action_mask": mask}), [2, 1])
        assert np.array_equal(agent.predict(states, infos=[{"action_mask": mask}] * 2), [[2, 1]] * 2)


def test_observations_by_name_and_actions_in_other_forms():
    space = Dict({"camera": Box(0, 255, (40, 40, 3), np.uint8), "speed": Box(-9, 9, (2,), np.float32)})
    agent = agent_of("DQN", observation_space=space, action_space=Discrete(3, start=5), seed=0, batch_size=2)
    for _ in range(4):
        action = agent.act({"camera": np.zeros((40, 40, 3), np.uint8), "speed": [0.5, 1.0]})
        assert action in (5, 6, 7)
        agent.observe(1, False, next_states={"camera": np.zeros((40, 40, 3), np.uint8), "speed": [0.5, 1.0]})
    with pytest.raises(CoachError, match="the observation 'speed' is missing"):
        agent.act({"camera": np.zeros((40, 40, 3), np.uint8)})


def test_updates_by_hand_and_its_own_share_a_clock():
    itself, by_hand = bandit(), bandit(updates_itself=False)
    play(itself)
    play(by_hand)
    assert itself.total_updates == 10 and by_hand.total_updates == 0  # one after each four steps
    assert by_hand.update() > 0 and by_hand.total_updates == 1
    clock = by_hand.graph_manager.get_agent().clock
    assert clock.last_phase == clock.steps == 40
    columns = {
        "states": np.zeros((6, 3), np.float32), "actions": [0, 1, 0, 1, 0, 1], "rewards": np.ones(6),
        "terminals": [True] * 6, "next_states": np.zeros((6, 3), np.float32),
    }  # fmt: skip
    losses = [by_hand.update(columns) for _ in range(300)]
    assert losses[-1] < losses[0] / 10 and by_hand.total_updates == 301
    with pytest.raises(CoachError, match="have no 'next_states'"):
        by_hand.update({name: column for name, column in columns.items() if name != "next_states"})
    with pytest.raises(CoachError, match="cannot use recorded data"):
        own_agent("ClippedPPO").update(columns)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "from the segments that it plays") for name in ("IMPALA", "ACER", "NStepQ")),
        ("NEC", "as it plays"),
        *([("DreamerV3", "as it plays")] if FRAMEWORK is not Frameworks.mxnet else []),
    ],
)
def test_an_agent_that_learns_from_the_steps_it_plays_refuses_recorded_steps(name, reason):
    agent = agent_of(name, observation_space=PLACE, action_space=Discrete(2), seed=1)
    recorded = {"states": np.zeros((3, 3)), "actions": [0, 1, 0], "rewards": np.ones(3), "terminals": [0, 0, 1]}
    with pytest.raises(CoachError, match=f"learns {reason}: .* cannot use recorded data"):
        agent.import_observations(recorded)


def test_an_agent_of_full_episodes_learns_from_recorded_steps_by_hand():
    agent = agent_of(small(TD3AgentParameters()), observation_space=PLACE, action_space=Box(-1, 1, (1,), np.float32))
    agent.import_observations({
        "states": np.zeros((6, 3), np.float32), "actions": np.zeros((6, 1), np.float32), "rewards": np.ones(6),
        "terminals": [False] * 5 + [True], "next_states": np.zeros((6, 3), np.float32),
    })  # fmt: skip
    assert agent.update() != 0 and agent.total_updates == 1


@pytest.mark.parametrize("accumulates", [False, True])
def test_recorded_steps_are_stored_as_if_the_agent_had_played_them(accumulates):
    settings = {"updates_itself": False, "use_accumulated_reward_as_measurement": accumulates}
    played, imported = bandit(**settings), bandit(**settings)
    rows = []
    for step in range(20):
        now, after = state(step % 5 / 5), state((step % 5 + 1) / 5)
        action = played.act(now)
        played.observe(float(step), step % 5 == 4, next_states=after)
        rows.append((now, action, float(step), step % 5 == 4, after))
    names = ("states", "actions", "rewards", "terminals", "next_states")
    columns = {name: np.stack([np.asarray(row[i]) for row in rows]) for i, name in enumerate(names)}
    assert imported.import_observations(columns) == 20
    memories = [one.graph_manager.get_agent().memory.get_state() for one in (played, imported)]
    assert_equal(*({k: v for k, v in memory.items() if k != "rng"} for memory in memories))
    dicts = [dict(zip(names, row)) for row in rows]
    assert imported.import_observations(dicts) == 20 and imported.total_steps == 0
    with pytest.raises(CoachError, match="is not in the action space"):
        imported.import_observations([{**dicts[0], "actions": 7}])


def test_given_states_are_stored_where_steps_are_not_in_order(capsys):
    agent = bandit()
    states = np.array([[0.0, 0, 0], [0.1, 0, 0], [0.5, 0, 0], [0.6, 0, 0]], np.float32)
    following = np.array([[0.1, 0, 0], [0.2, 0, 0], [0.6, 0, 0], [0.7, 0, 0]], np.float32)
    data = {"states": states, "next_states": following, "actions": [0, 1, 0, 1], "rewards": np.ones(4)}
    agent.import_observations({**data, "terminals": [False, False, False, True]})
    batch = agent.graph_manager.get_agent().memory.transitions
    np.testing.assert_array_equal(batch.state_columns["observation"], states)
    np.testing.assert_array_equal(batch.next_state_columns["observation"], following)
    assert batch.game_overs().tolist() == [False, True, False, True]
    assert batch.terminateds().tolist() == [False, False, False, True]
    assert "1 steps do not begin in the next state of the step before" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"weigths": np.zeros(8)}, "unknown column 'weigths'"),
        ({"actions": np.full(8, 2)}, "not in the action space"),
        ({"states": np.full((8, 3), np.nan, np.float32)}, "step 0: the state 'observation' is element 0 is nan"),
        ({"importance_weights": np.full(8, -1)}, "finite numbers of at least 0"),
        ({"rewards": np.full(8, np.inf)}, "the reward is inf"),
    ],
)
def test_a_batch_that_is_wrong_is_one_line_and_changes_nothing(changes, message):
    agent, batch = bandit(), recorded_batch()
    before = agent.get_weights()
    with pytest.raises(CoachError) as raised:
        agent.update({**batch, **changes})
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert_equal(agent.get_weights(), before)


@pytest.mark.parametrize(("algorithm", "others"), [("A2C", 2), ("PG", 4)])
@pytest.mark.parametrize("rescaler", ["Q_VALUE", PolicyGradientRescaler.Q_VALUE])
def test_the_error_lists_the_rescalers_of_the_agent(algorithm, others, rescaler):
    with pytest.raises(CoachError, match="policy_gradient_rescaler") as raised:
        make_agent(algorithm, "CartPole-v1", framework=FRAMEWORK.name, policy_gradient_rescaler=rescaler)
    listed = re.findall(r"PolicyGradientRescaler\.(\w+)", str(raised.value).replace(str(rescaler), ""))
    assert len(listed) == others and "Q_VALUE" not in listed


def recorded_batch() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    states, following = rng.uniform(-1, 1, (2, 8, 3)).astype(np.float32)
    return {
        "states": states, "actions": np.arange(8) % 2, "rewards": np.ones(8), "terminals": np.zeros(8, bool),
        "next_states": following,
    }  # fmt: skip


def test_importance_weights_weigh_the_rows_of_a_batch():
    agent, batch = bandit(), recorded_batch()
    before = agent.get_weights()
    agent.update({**batch, "importance_weights": np.zeros(8)})
    assert_equal(agent.get_weights(), before)
    first, second = bandit(), bandit()
    first.update({**batch, "importance_weights": np.ones(8)})
    second.update(batch)
    assert_equal(first.get_weights(), second.get_weights())


def test_a_batch_may_have_masks():
    masks = np.array([[1, 1], [0, 1], [1, 0]], np.int8)
    losses = []
    for mask in masks:
        agent = bandit(action_mask=True)
        infos = {"action_mask": np.stack([mask] * 8)}
        losses.append(agent.update({**recorded_batch(), "next_info": infos}).per_item.tolist())
    assert losses[0] == bandit(action_mask=True).update(recorded_batch()).per_item.tolist()
    assert len({tuple(one) for one in losses}) == 3


def test_an_agent_with_priorities_learns_from_a_batch_of_the_user():
    agent = agent_of("Rainbow", observation_space=PLACE, action_space=Discrete(2), seed=1)
    before = agent.get_weights()
    agent.update(recorded_batch())
    assert any(np.any(one != other) for one, other in zip(before["main"], agent.get_weights()["main"]))


@pytest.mark.parametrize("name", ["IMPALA", "MMC", "DQfD", "DecisionTransformer", "DreamerV3", "NStepQ", "ACER"])
def test_an_agent_that_needs_other_steps_of_the_episode_refuses_a_batch(name):
    agent = agent_of(name, observation_space=PLACE, action_space=Discrete(2), seed=1)
    with pytest.raises(CoachError, match="learns from several steps of an episode, so") as refused:
        agent.update(recorded_batch())
    can_store = name in ("MMC", "DQfD", "DecisionTransformer")
    assert ("store whole episodes with import_observations" in str(refused.value)) is can_store
    if can_store:  # the advice works
        agent.import_observations(recorded_batch())
        assert agent.update() > 0


def test_targets_that_wait_for_steps_that_nobody_plays_are_named(capsys):
    agent = bandit(num_steps_between_copying_online_weights_to_target=EnvironmentSteps(3))
    for _ in range(4):
        agent.update(recorded_batch())
    said = "".join(capsys.readouterr())
    assert said.count("has made 3 updates and played no step") == 1 and "TrainingSteps(3)" in said


def test_weights_are_carried_over():
    one, other = bandit(), bandit(seed=5)
    play(one)
    weights = one.get_weights()
    other.set_weights(weights)
    assert_equal(weights, other.get_weights())
    assert [one.predict(state(n)) for n in (0, 0.3, 0.9)] == [other.predict(state(n)) for n in (0, 0.3, 0.9)]
    with pytest.raises(CoachError, match="network 'main' needs weights of the shapes"):
        other.set_weights({"main": weights["main"][:-1]})


def test_an_agent_without_a_description_of_its_policy_only_acts_with_exploration():
    agent = agent_of("Wolpertinger", observation_space=PLACE, action_space=Discrete(2), seed=0)
    with pytest.raises(CoachError, match=r"cannot act without exploration, because its policy_description\(\) returns"):
        agent.act(state(0), deterministic=True)


def test_learn_takes_a_list_of_callbacks(tmp_path):
    seen = []
    agent = agent_of("DQN", "CartPole-v1", seed=0, experiment_path=str(tmp_path))
    agent.learn(300, 100, [SaveEvery(steps=100), lambda one: seen.append(one.total_steps), StopOnReward(reward=0)])
    # the evaluation of 20 new episodes at the end is one more
    assert seen == [100, 100] and (tmp_path / "checkpoint" / "0_Step-100.ckpt").is_dir()


def test_a_checkpoint_that_has_no_directory_is_a_warning(capsys):
    agent_of("DQN", "CartPole-v1", seed=0).learn(100, callback=SaveEvery(steps=20))
    assert capsys.readouterr().out.count("no checkpoint is saved: pass experiment_path to make_agent") == 1


def test_settings_have_short_names_paths_and_levels():
    agent = bandit(learning_rate=0.5, **{"algorithm.discount": 0.9}, exploration={"evaluation_epsilon": 0.25})
    parameters = agent.graph_manager.agent_params
    assert parameters.network_wrappers["main"].learning_rate == 0.5 and parameters.algorithm.discount == 0.9
    assert parameters.exploration.evaluation_epsilon == 0.25
    for settings, reason in [
        ({"learning_rat": 1}, "did you mean 'learning_rate'"),
        ({"algorithm.discout": 1}, "did you mean 'discount'"),
        ({"learning_rate": "much"}, "must be a number"),
        ({"discount": 7}, "discount"),
        ({"gamma": 0.9}, "no setting 'gamma'.*; in Coach, 'gamma' of Stable-Baselines3 is discount"),
        ({"lr": 0.9}, "no setting 'lr'; in Coach, 'lr' of other libraries is learning_rate"),
        ({"verbose": 1}, "leave out 'verbose': make_agent prints nothing"),
        ({"policy": "MlpPolicy"}, "leave out 'policy': the networks are made for the spaces"),
        ({"device": "cuda"}, "leave out 'device': a GPU is used"),
    ]:
        with pytest.raises(CoachError, match=reason):
            bandit(**settings)
    with pytest.raises(CoachError, match="no algorithm 'DQM'; did you mean 'DrQ' or 'DQN'"):
        agent_of("DQM", "CartPole-v1")
    with pytest.raises(CoachError, match=r"it is 'SAC' with settings: from rl_coach\.presets\.tuned\.Pendulum_TQC"):
        agent_of("TQC", "Pendulum-v1")


def test_an_agent_shows_its_algorithm_its_spaces_and_its_steps():
    shown = repr(bandit())
    assert shown.startswith("Agent(DQN, observations {observation: VectorObservationSpace")
    assert "actions DiscreteActionSpace" in shown and shown.endswith("0 steps, 0 updates)")


def test_names_of_stable_baselines_are_those_of_settings_here():
    agents = [one() for one in (DQNAgentParameters, ClippedPPOAgentParameters, TD3AgentParameters)]
    algorithms, networks = [one.algorithm for one in agents], agents[1].network_wrappers["main"]
    made = set(inspect.signature(make_agent).parameters)
    for name, text in NAMES_HERE.items():
        here = re.match(r"\w+", text)[0]
        assert here in made or any(hasattr(one, here) for one in (*algorithms, networks, agents[0])), name
        if here in ("memory", "exploration") and (setting := re.search(r"'(\w+)'", text)):
            assert hasattr(getattr(agents[0], here), setting[1]), name


def test_a_name_of_stable_baselines_that_differs_between_agents_is_that_of_each():
    for name, algorithm, here in [
        ("ent_coef", SoftActorCriticAgentParameters().algorithm, "temperature"),
        ("target_kl", TRPOAgentParameters().algorithm, "max_kl_divergence"),
        ("train_freq", TD3AgentParameters().algorithm, "act_for_full_episodes"),
    ]:
        first = re.match(r"\w+", NAMES_HERE[name])[0]
        assert here in NAMES_HERE[name] and hasattr(algorithm, here)
        assert hasattr(algorithm, first) is (name == "train_freq")


SETTINGS_OF_STABLE_BASELINES = re.search(
    r"^## Settings\n.*?^(\|.*?)\n\n",
    (pathlib.Path(__file__).parents[2] / "docs" / "from_stable_baselines3.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)[1]


def test_each_setting_of_stable_baselines_that_the_page_lists_exists_or_is_translated():
    rows = [row.partition(" | ")[0] for row in SETTINGS_OF_STABLE_BASELINES.splitlines()[2:]]
    names = [name for row in rows for name in re.findall(r"`(\w+)", row)]
    assert "gamma" in names and "policy_kwargs" in names
    for name in names:
        try:
            agent_of("ClippedPPO", "CartPole-v1", seed=0, **{name: "of a wrong kind"})
        except CoachError as error:
            refusal = str(error)
        assert f"'{name}' of Stable-Baselines3 is" in refusal or "no setting" not in refusal, name


def test_a_name_that_several_networks_have_sets_all_and_says_so(caplog):
    agent = agent_of("TD3", observation_space=PLACE, action_space=Box(-1, 1, (2,)), seed=0, learning_rate=0.01)
    assert {one.learning_rate for one in agent.graph_manager.agent_params.network_wrappers.values()} == {0.01}
    assert "'learning_rate' is set in agent_params.network_wrappers['actor'].learning_rate and" in caplog.text


def test_reset_leaves_the_episode():
    agent = bandit()
    agent.act(state(0))
    agent.observe(1.0, False, next_states=state(0.5))
    agent.act(state(0.5))
    agent.reset()
    agent.act(state(1))
    assert agent.graph_manager.get_agent().memory.num_transitions() == 1
    assert agent.total_steps == 1


def test_its_import_brings_no_framework():
    check = (
        "import sys; import rl_coach; before = len(sys.modules); from rl_coach import make_agent, Agent; "
        "print(before < 150, sorted({'tensorflow', 'keras', 'jax', 'mxnet'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert found.stdout == "True []\n"


@pytest.mark.parametrize("algorithm", ["DQN", "ClippedPPO", "A2C"])
def test_a_learning_rate_may_be_a_schedule_which_ends_learning_at_0(algorithm):
    agent = make_agent(
        algorithm, "CartPole-v1", seed=1, framework=FRAMEWORK.name, learning_rate=LinearSchedule(1e-2, 0.0, 2),
        num_consecutive_playing_steps=EnvironmentSteps(16),
    )  # fmt: skip
    before = agent.get_weights()["main"]
    agent.learn(400)
    after = agent.get_weights()["main"]
    agent.learn(200)
    assert any(np.any(one != other) for one, other in zip(before, after))
    for one, other in zip(agent.get_weights()["main"], after):
        np.testing.assert_array_equal(one, other)


def test_a_schedule_and_a_decay_of_the_learning_rate_are_refused_together():
    with pytest.raises(CoachError, match="learning_rate is a schedule, and learning_rate_decay_rate"):
        make_agent(
            "DQN", "CartPole-v1", framework=FRAMEWORK.name, learning_rate=LinearSchedule(1e-2, 0.0, 2),
            learning_rate_decay_rate=0.5, learning_rate_decay_steps=3,
        )  # fmt: skip
