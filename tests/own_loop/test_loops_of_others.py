"""Loops as the documentation of TensorForce and of RLgraph has them, with the import changed."""

from __future__ import annotations

import json
import time

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from rl_coach import Agent
from rl_coach.own_loop import Runner, make_agent, rlgraph, tensorforce
from rl_coach.own_loop.rlgraph import Environment, FloatBox, OpenAIGymEnv, SingleThreadedWorker
from rl_coach.own_loop.tensorforce import OpenAIGym
from rl_coach.policy import Policy
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK
from tests.own_loop.loops import agent_state, assert_equal

SETTINGS = {"seed": 1, "framework": FRAMEWORK.name}
TF_DQN = {
    "type": "dqn_agent",
    "network": [{"type": "dense", "size": 16}],
    "update_mode": {"unit": "timesteps", "batch_size": 8, "frequency": 2},
    "memory": {"type": "replay", "capacity": 1000, "include_next_states": True},
    "optimizer": {"type": "adam", "learning_rate": 1e-3},
    "target_sync_frequency": 20,
}
RL_DQN = {
    "type": "dqn",
    "memory_spec": {"type": "replay", "capacity": 128},
    "network_spec": [{"type": "dense", "units": 16, "activation": "tanh", "scope": "hidden"}],
    "dueling_q": False,
    "update_spec": {"update_interval": 4, "batch_size": 16, "sync_interval": 32},
    "optimizer_spec": {"type": "adam", "learning_rate": 0.02},
}


# TensorForce


def test_the_quick_start_of_tensorforce(capsys):
    from rl_coach.own_loop.tensorforce import OpenAIGym, PPOAgent, Runner  # from tensorforce.agents import PPOAgent

    environment = OpenAIGym("CartPole-v1", visualize=False)
    network_spec = [
        {"type": "dense", "size": 32, "activation": "tanh"},
        {"type": "dense", "size": 32, "activation": "tanh"},
    ]
    agent = PPOAgent(
        states=environment.states,
        actions=environment.actions,
        network=network_spec,
        states_preprocessing=None,
        actions_exploration=None,
        reward_preprocessing=None,
        update_mode={"unit": "episodes", "batch_size": 2, "frequency": 2},
        memory={"type": "latest", "include_next_states": False, "capacity": 5000},
        distributions=None,
        entropy_regularization=0.01,
        baseline_mode="states",
        baseline={"type": "mlp", "sizes": [32, 32]},
        baseline_optimizer={"type": "multi_step", "optimizer": {"type": "adam", "learning_rate": 1e-3}, "num_steps": 5},
        gae_lambda=0.97,
        likelihood_ratio_clipping=0.2,
        step_optimizer={"type": "adam", "learning_rate": 1e-3},
        subsampling_fraction=0.2,
        optimization_steps=25,
        execution={"type": "single", "session_config": None, "distributed_spec": None},
        **SETTINGS,
    )
    runner = Runner(agent=agent, environment=environment)

    def episode_finished(r):
        print(f"Finished episode {r.episode} after {r.episode_timestep} timesteps (reward: {r.episode_rewards[-1]})")
        return True

    runner.run(episodes=5, max_episode_timesteps=30, episode_finished=episode_finished)
    runner.close()
    assert "Finished episode 5 after" in capsys.readouterr().out
    assert runner.episode == len(runner.episode_rewards) == agent.episode == 5 and agent.total_updates > 0
    assert agent.timestep == runner.timestep == sum(runner.episode_timesteps) and max(runner.episode_timesteps) <= 30


def test_a_loop_of_tensorforces_readme():
    from rl_coach.own_loop.tensorforce import Agent  # from tensorforce.agents import Agent

    states, actions = {"type": "float", "shape": (10,)}, {"type": "int", "num_actions": 3}
    agent = Agent.from_spec(spec=TF_DQN, kwargs={"states": states, "actions": actions}, **SETTINGS)
    rng = np.random.default_rng(0)
    for _ in range(6):
        agent.reset()
        for step in range(8):
            action = agent.act(states=rng.normal(size=10), deterministic=False)
            assert action in (0, 1, 2)
            agent.observe(reward=float(action), terminal=step == 7)
    assert agent.timestep == 48 and agent.episode == 6 and agent.total_updates > 0 and not agent.should_stop()


def tensorforce_agent(**changes):
    env = gymnasium.make("CartPole-v1")
    spaces = {"states": env.observation_space, "actions": env.action_space}
    return Agent.from_spec(TF_DQN, **{**spaces, **SETTINGS, **changes}), env


def test_a_next_state_that_comes_with_the_next_act_makes_no_difference():
    (deferred, env), (at_once, _) = tensorforce_agent(), tensorforce_agent()
    state, _ = env.reset(seed=3)
    for _ in range(60):
        actions = {deferred.act(state), at_once.act(state)}
        assert len(actions) == 1
        state, reward, terminal, _, _ = env.step(actions.pop())
        deferred.observe(terminal, reward)
        # where the episode ends, the deferred form learns from the state before it
        Agent.observe(at_once, reward, terminal, next_states=None if terminal else state)
        if terminal:
            state, _ = env.reset()
            deferred.reset()
            at_once.reset()
    deferred.act(state)
    at_once.act(state)
    assert_equal(*(agent_state(one)["networks"] for one in (deferred, at_once)))
    assert deferred.total_updates == at_once.total_updates > 0


def test_a_saved_model_is_restored_exactly(tmp_path):
    agent, env = tensorforce_agent()
    runner = Runner(agent, env)
    runner.run(num_timesteps=30)
    path = agent.save_model(directory=tmp_path)
    assert path == str(tmp_path / f"timestep-{agent.timestep}")
    kept = agent_state(agent)
    runner.run(num_timesteps=30)
    agent.restore_model(directory=tmp_path)
    assert_equal(agent_state(agent), kept)
    runner.run(num_timesteps=30)
    agent.restore_model(directory=tmp_path.parent)  # the last part of what was saved to was the name of the files
    assert_equal(agent_state(agent), kept)
    other = Agent.load(path)
    assert type(other) is type(agent)
    assert_equal(agent_state(other), kept)
    with pytest.raises(CoachError, match="no agent was saved in"):
        agent.restore_model(directory=tmp_path, file="timestep-0")


def test_demonstrations_are_learned_from_before_acting():
    agent, _ = tensorforce_agent(states={"type": "float", "shape": 2})
    demonstrations = [
        {"states": [number % 2, 1.0], "internals": [], "actions": number % 2, "terminal": True, "reward": 1.0}
        for number in range(20)
    ]
    assert agent.import_demonstrations(demonstrations) == 20
    losses = agent.pretrain(steps=300)
    assert len(losses) == agent.total_updates == 300 and losses[-1] < losses[0] / 10 and agent.timestep == 0
    with pytest.raises(CoachError, match="internals are not supported"):
        agent.import_demonstrations({"states": [[0, 0]], "internals": [1]})


def test_an_independent_action_is_not_observed():
    agent, _ = tensorforce_agent()
    before = agent_state(agent)
    assert agent.act(np.zeros(4), deterministic=True, independent=True) in (0, 1)
    assert_equal(agent_state(agent), before)


class Corridor:
    """TensorForce's kind of environment: five steps to the right end it."""

    states = {"type": "float", "shape": 1}
    actions = {"type": "int", "num_actions": 2}

    def reset(self):
        self.place = 0
        return [0.0]

    def execute(self, action):
        self.place += 1
        return [self.place / 5], self.place == 5, float(action)


def test_a_runner_takes_either_kind_of_environment_and_any_agent():
    corridor = Corridor()
    agent = Agent.from_spec(TF_DQN, states=corridor.states, actions=corridor.actions, **SETTINGS)
    runner = Runner(agent, corridor, repeat_actions=2)
    runner.run(num_episodes=10, episode_finished=lambda r: r.episode < 4)
    assert runner.episode == runner.global_episode == 4 and runner.episode_timesteps == [3] * 4
    seen: list[tuple[Runner, int]] = []
    runner.run(num_timesteps=4, max_episode_timesteps=2, episode_finished=lambda r, worker: seen.append((r, worker)))
    assert seen == [(runner, 0)] * 2 and 0 < runner.start_time <= time.time()
    assert runner.episode_timesteps[4:] == [2, 2] and runner.global_timestep == 16
    plain = make_agent("DQN", "CartPole-v1", batch_size=8, **SETTINGS)
    runner = Runner(plain, gymnasium.make("CartPole-v1"))
    runner.run(num_episodes=2, max_episode_timesteps=5)
    assert runner.episode_timesteps == [5, 5] and plain.total_steps == 10
    for wrong in (lambda: Runner(plain, object()), lambda: runner.run(), lambda: Runner(plain, corridor, 0)):
        with pytest.raises(CoachError):
            wrong()


# RLgraph


def test_the_loop_of_rlgraphs_readme(tmp_path):
    from rl_coach.own_loop.rlgraph import DQNAgent, OpenAIGymEnv  # from rlgraph.agents import DQNAgent

    (tmp_path / "config.json").write_text(json.dumps(RL_DQN))
    environment = OpenAIGymEnv("CartPole-v1")
    agent = DQNAgent(
        str(tmp_path / "config.json"),
        state_space=environment.state_space,
        action_space=environment.action_space,
        **SETTINGS,
    )
    state, losses = environment.reset(), []
    for _ in range(60):
        action, preprocessed_state = agent.get_action(states=state, extra_returns="preprocessed_states")
        next_state, reward, terminal, _info = environment.step(action)
        agent.observe(
            preprocessed_states=preprocessed_state, actions=action, internals=[], next_states=next_state,
            rewards=reward, terminals=terminal,
        )  # fmt: skip
        losses.append(agent.update())
        state = environment.reset() if terminal else next_state
    assert agent.timesteps == 60 and agent.total_updates > 30 and losses[-1] > 0


def rlgraph_agent(**changes):
    spec = {**RL_DQN, "state_space": {"type": "float", "shape": [2]}, "action_space": 3}
    return Agent.from_spec(spec, **{**SETTINGS, **changes})


def test_each_environment_has_a_buffer_by_its_name():
    agent, rng = rlgraph_agent(num_envs=2), np.random.default_rng(0)
    states = rng.normal(size=(2, 2))
    for step in range(5):
        actions = agent.get_action(states)
        after = rng.normal(size=(2, 2))
        for row, name in enumerate(("one", "other")):
            ends = name == "one" and step == 2
            agent.observe(states[row], actions[row], [], 1.0, after[row], ends, env_id=name)
        states = after
    assert agent.total_steps == 10
    agent.reset_env_buffers("other")
    states = np.stack([states[0], [9.0, 9.0]])  # the other one begins an episode
    actions = agent.get_action(states)
    agent.observe(states, actions, [], [1.0, 1.0], rng.normal(size=(2, 2)), [True, False])
    assert agent.total_steps == 12
    with pytest.raises(CoachError, match="there are 2 environments, and 'third' is one more: set a larger num_envs"):
        agent.observe(states[0], 0, [], 1.0, states[0], False, env_id="third")


def test_an_episode_keeps_the_name_of_its_environment_when_it_is_saved(tmp_path):
    agent, states = rlgraph_agent(num_envs=2), np.random.default_rng(0).normal(size=(6, 2))
    for name, row in (("one", 0), ("other", 1), ("other", 2)):
        agent.observe(states[row], 1, [], 1.0, states[row + 1], False, env_id=name)
    path = agent.store_model(tmp_path / "model")
    other = rlgraph_agent(num_envs=2)
    other.load_model(path)
    for player in (agent, Agent.load(path), other):
        player.observe(states[3], 0, [], 1.0, states[4], False, env_id="other")
        assert [len(steps) for steps in player.states_buffer.values()] == [1, 3]


def test_a_recurrent_agent_is_saved_between_action_and_answer(tmp_path):
    layers = [{"type": "dense", "units": 4}, {"type": "lstm", "units": 3}]
    agent = Agent.from_spec(
        {"type": "ppo", "network_spec": layers}, state_space=FloatBox(shape=2), action_space=3, **SETTINGS
    )
    state = np.zeros(2, np.float32)
    action = agent.get_action(state)
    for player in (agent, Agent.load(agent.store_model(tmp_path / "model"))):
        with pytest.raises(CoachError, match="an agent with an LSTM can only observe actions of its get_action"):
            player.observe(state, (action + 1) % 3, [], 1.0, state + 1, False)
        player.observe(state, action, [], 1.0, state + 1, False)
        assert player.total_steps == 1


def test_names_of_environments_in_any_form_are_saved(tmp_path):
    for number, names in enumerate((range(5, 7), iter("ab"), {"x": 1, "y": 2})):
        agent = rlgraph_agent(num_envs=2, env_ids=names)
        agent.save(tmp_path / str(number))
        assert Agent.load(tmp_path / str(number)).env_names == agent.env_names
    spaces = {"observation_space": Box(-1, 1, (2,)), "action_space": Discrete(2)}
    make_agent("DQN", num_envs=2, env_ids=iter("ab"), framework=FRAMEWORK.name, **spaces).save(tmp_path / "plain")
    assert Agent.load(tmp_path / "plain").act(np.zeros(2, np.float32), "b") in (0, 1)


def probabilities(how, steps=6, **changes):
    """The actions of IMPALA in two environments, and the logarithms of their probabilities that it has stored.

    :param how: ``together`` asks for the actions of both at once, ``alone`` for one action, and ``later`` observes all
        steps of an environment in one call
    """
    spec = {"type": "impala", "network_spec": [{"type": "dense", "units": 8}], "worker_sample_size": 100}
    agent = Agent.from_spec(spec, state_space=FloatBox(shape=1), action_space=3, num_envs=2, **SETTINGS, **changes)
    rng, actions, rows = np.random.default_rng(0), [], {"one": [], "other": []}
    states = rng.normal(size=(2, 1)).astype(np.float32)
    for _ in range(steps):
        chosen = [agent.get_action(one) for one in states] if how == "alone" else agent.get_action(states)
        actions.extend(map(int, chosen))
        after = rng.normal(size=(2, 1)).astype(np.float32)
        for row, name in enumerate(rows):
            rows[name].append((states[row], chosen[row], 1.0, after[row]))
            if how != "later":
                agent.observe(states[row], chosen[row], [], 1.0, after[row], False, env_id=name)
        states = after
    for name in rows if how == "later" else ():
        before, chosen, rewards, after = map(np.array, zip(*rows[name]))
        agent.observe(before, chosen, [], rewards, after, np.zeros(steps, bool), env_id=name)
    return actions, [[float(step.info["behaviour_log_prob"]) for step in agent._transitions(index)] for index in (0, 1)]


@pytest.mark.parametrize("steps", [[], [{"type": "sequence", "sequence_length": 3}]], ids=["plain", "frames"])
def test_single_states_belong_to_the_environment_that_is_in_them(steps):
    together = probabilities("together", preprocessing_spec=steps)
    assert probabilities("alone", preprocessing_spec=steps) == together
    if not steps:
        assert probabilities("later") == together
    assert all(one < 0 for row in together[1] for one in row)


class Counted(Agent):
    observed = 0

    def observe(self, reward, *others, **named):
        self.observed += 1
        super().observe(reward, *others, **named)


def test_a_runner_calls_overridden_methods_or_says_that_it_does_not(caplog):
    agent = make_agent("DQN", "CartPole-v1", agent_class=Counted, framework=FRAMEWORK.name, seed=1)
    runner = Runner(agent, gymnasium.make("CartPole-v1"))
    runner.run(num_episodes=1)
    assert agent.observed == runner.timestep > 0 and not caplog.records
    environment = OpenAIGymEnv("CartPole-v1")
    for base, name in ((tensorforce.DQNAgent, "observe"), (rlgraph.DQNAgent, "get_action")):
        kind = type("Mine", (base,), {name: None})
        agent = kind(environment.state_space, environment.action_space, **SETTINGS)
        caplog.clear()
        Runner(agent, environment)
        assert f"do not call Mine.{name}: call it in your own loop" in caplog.text


def test_a_full_buffer_is_truncated_and_never_terminated():
    agent, rng = rlgraph_agent(observe_spec={"buffer_size": 3}), np.random.default_rng(0)
    state = rng.normal(size=2)
    for _ in range(7):
        action, after = agent.get_action(state), rng.normal(size=2)
        agent.observe(state, action, [], 1.0, after, False)
        state = after
    stored = agent.graph_manager.get_agent().memory.transitions
    ends = [(bool(one.game_over), bool(one.terminated)) for one in (stored[row] for row in range(6))]
    assert ends == [(False, False), (False, False), (True, False)] * 2


def test_the_buffer_of_an_episode_is_saved_and_begins_with_the_episode(tmp_path):
    agent = rlgraph_agent(observe_spec={"buffer_size": 3})
    zero, one = np.zeros(2, np.float32), np.ones(2, np.float32)
    for state, after in ((zero, one), (one, zero)):
        agent.observe(state, 0, [], 1.0, after, False)
    agent.save(tmp_path)
    for player in (agent, Agent.load(tmp_path)):
        player.observe(zero, 0, [], 1.0, one, False)
        for state in (zero, zero, zero):  # each begins an episode, because it is not the last state of the last step
            player.observe(state, 0, [], 1.0, one, False)
        player.observe(one, 0, [], 1.0, zero, False)
        player.observe(zero, 0, [], 1.0, one, False)
        ends = player.graph_manager.get_agent().memory.transitions.game_overs().tolist()
        assert ends[:3] == ends[-3:] == [False, False, True]


def test_an_action_without_exploration_is_counted_once_it_is_observed():
    agent = rlgraph_agent()
    state = np.array([0.5, -0.5], np.float32)
    before = agent_state(agent)
    best = agent.get_action(state, use_exploration=False)
    assert best == agent.get_action(state, None, False) == agent.predict(state)
    assert_equal(agent_state(agent), before)
    agent.observe(state, best, None, 1.0, state, False)
    assert agent.total_steps == 1


def test_what_cannot_be_given_is_refused_in_one_line():
    agent, state = rlgraph_agent(), np.zeros(2)
    action = agent.get_action(state)
    for wrong, reason in [
        (
            lambda: agent.get_action(state, internals=[np.zeros(3)]),
            "internals are not supported: the agent keeps its recurrent state itself",
        ),
        (lambda: agent.get_action(state, extra_returns={"logits"}), "extra_returns has 'logits': only "),
        (
            lambda: agent.observe(state, action, [1], 1.0, state),
            "internals are not supported: the agent keeps its recurrent state itself",
        ),
        (lambda: agent.observe(state, 7, [], 1.0, state), "the action 7 is not in the action space"),
        (lambda: agent.observe(np.zeros(5), action, [], 1.0, state), "the observation"),
        (lambda: agent.call_api_method("no_method"), "the agent has no method 'no_method'"),
        (lambda: agent.build({"a": 1}), "build_options are not supported"),
        (lambda: agent.export_graph(), "export_graph needs a directory: give filename"),
    ]:
        with pytest.raises(CoachError, match=reason) as caught:
            wrong()
        assert len(str(caught.value).splitlines()) == 1
    agent.observe(state, action, [], 1.0, state)


def test_get_action_changes_nothing_and_takes_batches():
    agent, states = rlgraph_agent(), np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    first = agent.get_action(states[0])
    assert isinstance(first, int) and agent.get_action(states[1]) in (0, 1, 2) and agent.timesteps == 0
    actions, seen, internals, explored = agent.get_action(
        states, extra_returns=["preprocessed_states", "internal_states", "used_exploration"]
    )
    assert actions.shape == (5,) and np.array_equal(seen, states) and internals == [] and explored is True
    assert agent.get_action(states, use_exploration=False).tolist() == [agent.predict(one) for one in states]


def test_observe_takes_any_steps():
    agent, rng = rlgraph_agent(num_envs=2), np.random.default_rng(0)
    states = rng.normal(size=(6, 2)).astype(np.float32)
    agent.observe(states[:3], [0, 1, 2], [], [1.0, 2.0, 3.0], states[1:4], [False, False, True], env_id="a")
    agent.observe(states[4], 2, [], 4.0, states[5], False, env_id="b")
    agent.observe(states[0], 1, [], 5.0, states[1], True, env_id="b")  # which begins an episode
    memory = agent.graph_manager.get_agent().memory
    stored = [memory.transitions[row] for row in range(memory.num_transitions())]
    found = sorted((float(one.reward), int(one.action), bool(one.terminated)) for one in stored)
    assert found == [(1.0, 0, False), (2.0, 1, False), (3.0, 2, True), (4.0, 2, False), (5.0, 1, True)]
    assert agent.call_api_method("get_action", {"states": states[0], "use_exploration": False}) in (0, 1, 2)


def test_steps_that_others_recorded_are_stored_under_the_names_of_both_systems():
    steps = [
        {"state": np.zeros(2), "action": 0, "reward": 1.0, "terminal": i % 4 == 3, "internal": []} for i in range(12)
    ]
    agent = rlgraph_agent()
    assert agent.import_observations(steps) == 12
    columns = {name + "s": [one[name] for one in steps] for name in ("state", "action", "terminal", "reward")}
    assert agent.import_observations(columns) == 12


def test_a_policy_can_be_stored_without_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = rlgraph_agent()
    assert agent.store_model() == "rlgraph-model-0"
    agent.load_model()
    agent.terminate()


def test_models_and_weights_of_rlgraph(tmp_path):
    agent, other, state = rlgraph_agent(), rlgraph_agent(seed=2), np.zeros(2, np.float32)
    for _ in range(20):
        agent.observe(state, agent.get_action(state), [], 1.0, state, True)
        agent.update()
    path = agent.store_model(tmp_path / "model")
    assert path == str(tmp_path / "model-20")
    other.set_policy_weights(agent.get_policy_weights())
    states = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    assert [agent.predict(one) for one in states] == [other.predict(one) for one in states]
    other = rlgraph_agent(seed=3)
    other.load_model(path)
    assert_equal(agent_state(agent), agent_state(other))
    policy = Policy.load(agent.export_graph(tmp_path / "policy"))
    assert [policy.act(one) for one in states] == [agent.predict(one) for one in states]


class Ladder:
    """RLgraph's kind of environment: each rung pays its number, the fourth is the last; cut at the second."""

    state_space = {"type": "float", "shape": [1]}
    action_space = 2

    def __init__(self, is_cut=False):
        self.is_cut, self.rung = is_cut, 0

    def reset(self):
        self.rung = 0
        return np.zeros(1, np.float32)

    def step(self, actions):
        self.rung += 1
        info = {"TimeLimit.truncated": True} if self.is_cut and self.rung == 2 else None
        return np.full(1, self.rung / 4, np.float32), float(self.rung), self.rung == 4 or info is not None, info


def climber(**changes):
    spec = {**RL_DQN, "state_space": Ladder.state_space, "action_space": Ladder.action_space}
    return Agent.from_spec(spec, **{**SETTINGS, **changes})


def test_the_worker_of_rlgraphs_documentation():
    from rl_coach.own_loop.rlgraph import DQNAgent

    env = OpenAIGymEnv("CartPole-v1")
    agent = DQNAgent(RL_DQN, state_space=env.state_space, action_space=env.action_space, **SETTINGS)
    ended = []
    worker = SingleThreadedWorker(
        env_spec=lambda: env,
        agent=agent,
        render=False,
        worker_executes_preprocessing=False,
        episode_finish_callback=lambda episode_return, duration, timesteps, env_num: ended.append(
            (episode_return, timesteps, env_num)
        ),
    )
    results = worker.execute_timesteps(num_timesteps=60, use_exploration=True)
    assert results["timesteps_executed"] == results["env_frames"] == agent.timesteps == 60
    assert results["episodes_executed"] == len(ended) > 0 and agent.total_updates == 60 / 4
    # each step pays 1
    assert all(total == steps and index == 0 for total, steps, index in ended)
    assert results["mean_episode_reward"] == pytest.approx(np.mean([total for total, *_ in ended]))
    assert results["ops_per_second"] == pytest.approx(60 / results["runtime"])


def test_the_cartpole_example_of_rlgraph():
    """Its environment and agent are made of specifications, with an episode's loop in the user's hands."""
    env = Environment.from_spec({"type": "openai", "gym_env": "CartPole-v1"})
    assert type(env) is type(OpenAIGymEnv.from_spec("openai", gym_env="CartPole-v1"))
    agent = Agent.from_spec(RL_DQN, state_space=env.state_space, action_space=env.action_space, **SETTINGS)
    state = env.reset()
    for _ in range(40):
        action, preprocessed = agent.get_action(state, extra_returns="preprocessed_states")
        following, reward, terminal, _ = env.step(action)
        agent.observe(
            preprocessed_states=preprocessed, actions=action, internals=[], rewards=reward, next_states=following,
            terminals=terminal,
        )  # fmt: skip
        state = env.reset() if terminal else following
    assert agent.timesteps == 40
    for spec, reason in [
        ({"type": "openia", "gym_env": "CartPole-v1"}, "did you mean 'openai'"),
        ({"type": "openai", "gym_en": "CartPole-v1"}, "did you mean 'gym_env'"),
        (7, "a dict with 'type' and 'gym_env', not 7"),
    ]:
        with pytest.raises(CoachError, match=reason):
            OpenAIGymEnv.from_spec(spec)


def test_statistics_of_a_worker_are_those_of_the_episodes():
    # 1 + 2 + 3 + 4 of each episode of four steps
    agent = climber()
    worker = SingleThreadedWorker(Ladder(), agent)
    results = worker.execute_episodes(3)
    assert (results["timesteps_executed"], results["episodes_executed"], results["env_frames"]) == (12, 3, 12)
    assert results["mean_episode_reward"] == results["max_episode_reward"] == results["final_episode_reward"] == 10
    # the fourth episode is cut after two actions of two frames: 1 + 2, 3 + 4
    results = worker.execute_episodes(1, frameskip=2)
    assert (results["timesteps_executed"], results["env_frames"], results["final_episode_reward"]) == (2, 4, 10)
    # three actions leave an episode in which 1 + 2 + 3 was paid; the next three end it, and begin another
    results = worker.execute_timesteps(3)
    assert results["episodes_executed"] == 0 and results["final_episode_reward"] == 6
    results = worker.execute_timesteps(3, reset=False)
    assert results["episodes_executed"] == 1 and results["final_episode_reward"] == 10
    assert worker.execute_timesteps(3)["final_episode_reward"] == 6  # begun anew


def test_a_worker_truncates_and_does_not_terminate():
    for environment, longest, expected in [
        (Ladder(), 3, (True, False)),
        (Ladder(), None, (True, True)),
        (Ladder(is_cut=True), None, (True, False)),
    ]:
        agent = climber()
        SingleThreadedWorker(environment, agent).execute_episodes(1, max_timesteps_per_episode=longest)
        last = agent.graph_manager.get_agent().memory.transitions[-1]
        assert (bool(last.game_over), bool(last.terminated)) == expected


def test_a_worker_learns_as_update_spec_says():
    updates = {"do_updates": True, "update_interval": 2, "batch_size": 4}
    agent, silent = climber(update_spec=updates), climber(update_spec={**updates, "do_updates": False})
    SingleThreadedWorker(Ladder(), agent).execute_timesteps(40)
    worker = SingleThreadedWorker(Ladder(), silent)
    worker.execute_timesteps(40)
    assert agent.total_updates == 20 and silent.total_updates == 0
    worker.execute_timesteps(40, update_spec={"do_updates": True})
    assert silent.total_updates == 20 and not silent.updates_itself
    before = agent_state(silent)["networks"]
    worker.execute_timesteps(8, use_exploration=False)
    assert_equal(agent_state(silent)["networks"], before)


def test_a_worker_of_several_environments():
    agent = climber(num_envs=2)
    seen = []
    worker = SingleThreadedWorker(
        Ladder, agent, num_environments=2, episode_finish_callback=lambda **about: seen.append(about["env_num"])
    )
    results = worker.execute_timesteps(16)
    assert results["episodes_executed"] == 4 and seen == [0, 1, 0, 1] and agent.total_steps == 16
    spec = {"type": "openai", "gym_env": "CartPole-v1"}
    agent = rlgraph_agent(state_space=gymnasium.make("CartPole-v1").observation_space, action_space=2, num_envs=2)
    assert SingleThreadedWorker(spec, agent, 2).execute_timesteps(20)["timesteps_executed"] == 20


def test_what_a_worker_cannot_do_is_refused_in_one_line():
    agent, ladder = climber(), Ladder()
    worker = SingleThreadedWorker(ladder, agent)
    for wrong, reason in [
        (lambda: SingleThreadedWorker(ladder), "needs an env_spec and an agent"),
        (lambda: SingleThreadedWorker(object(), agent), "object has no method step or execute"),
        (lambda: SingleThreadedWorker(ladder, agent, 2), "the agent has 1 environments, the worker 2"),
        (lambda: SingleThreadedWorker(ladder, climber(num_envs=2), 2), "set env_spec to a function that makes"),
        (lambda: SingleThreadedWorker({"type": "openai"}, agent), "gym_env' must be the id"),
        (lambda: SingleThreadedWorker(ladder, agent, preprocessing_spec=[{"type": "grayscale"}]), "give it to the"),
        (lambda: worker.execute_timesteps(0), "num_timesteps must be 1 or more, not 0"),
        (lambda: worker.execute_timesteps(1, frameskip=0), "frameskip must be 1 or more, not 0"),
        (lambda: worker.execute_timesteps(1, reset=False), "execute with reset=True first"),
        (
            lambda: worker.execute_timesteps(1, update_spec={"update_interval": 3}),
            "set it in the agent's specification",
        ),
        (lambda: worker.execute_timesteps(1, update_spec={"do_update": False}), "did you mean 'do_updates'"),
    ]:
        with pytest.raises(CoachError, match=reason) as caught:
            wrong()
        assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "make", [OpenAIGym, OpenAIGymEnv, lambda name: SingleThreadedWorker({"gym_env": name}, climber())]
)
def test_environments_by_name_are_found_as_those_of_presets_are(make):
    with pytest.raises(CoachError, match="no level 'CartPoel-v1'; did you mean 'CartPole-v1'") as caught:
        make("CartPoel-v1")
    assert len(str(caught.value).splitlines()) == 1


def test_older_names_of_environments_have_their_time_limit():
    assert OpenAIGym("CartPole-v0").gym.spec.max_episode_steps == 200
    assert OpenAIGymEnv("Pendulum-v0").state_space.shape == (3,)
