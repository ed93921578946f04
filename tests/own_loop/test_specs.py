"""What specifications of TensorForce and RLgraph mean, and that what has no meaning is refused in one line."""

from __future__ import annotations

import itertools
import json
import math

import gymnasium
import numpy as np
import pytest

from rl_coach import Agent
from rl_coach.agents.apex_agent import ApexDQNAgent
from rl_coach.agents.dqfd_agent import DQfDAgent
from rl_coach.agents.impala_agent import IMPALAAgent
from rl_coach.agents.policy_optimization_agent import PolicyGradientRescaler
from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgent
from rl_coach.agents.rainbow_dqn_agent import RainbowDQNAgent
from rl_coach.agents.trpo_agent import TRPOAgent
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.own_loop import rlgraph, tensorforce
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

STATES = {"type": "float", "shape": [3]}
ACTIONS = {"type": "int", "num_actions": 2}
NETWORK = [{"type": "dense", "size": 8}]
SETTINGS = {"seed": 1, "framework": FRAMEWORK.name}

DQN = {
    "type": "dqn_agent",
    "states": STATES,
    "actions": ACTIONS,
    "network": [{"type": "dense", "size": 8, "activation": "tanh"}, {"type": "dense", "size": 4, "activation": "relu"}],
    "memory": {"type": "prioritized_replay", "capacity": 100, "prioritization_weight": 0.5},
    "optimizer": {"type": "rmsprop", "learning_rate": 0.01},
    "actions_exploration": {
        "type": "epsilon_anneal", "initial_epsilon": 0.5, "final_epsilon": 0.25, "timesteps": 10, "start_timestep": 4,
    },
    "discount": 0.9,
    "update_mode": {"unit": "timesteps", "batch_size": 4, "frequency": 2},
    "first_update": 6,
    "target_sync_frequency": 20,
    "target_update_weight": 0.5,
    "double_q_model": True,
    "huber_loss": None,
}  # fmt: skip
RLGRAPH_DQN = {
    "type": "dqn",
    "state_space": {"type": "float", "shape": [3]},
    "action_space": 2,
    "discount": 0.9,
    "double_q": False,
    "dueling_q": True,
    "memory_spec": {"type": "prioritized_replay", "capacity": 100, "alpha": 0.5, "beta": 0.25},
    "preprocessing_spec": [],
    "network_spec": [{"type": "dense", "units": 8, "activation": "tanh", "scope": "hidden"}],
    "exploration_spec": {
        "epsilon_spec": {
            "decay_spec": {
                "type": "linear_decay", "from": 0.5, "to": 0.25, "start_timestep": 4, "num_timesteps": 10
            }
        }
    },
    "observe_spec": {"buffer_size": 5},
    "update_spec": {
        "update_mode": "time_steps", "do_updates": True, "update_interval": 2, "steps_before_update": 6,
        "batch_size": 4, "sync_interval": 20,
    },
    "optimizer_spec": {"type": "adam", "learning_rate": 0.01},
    "execution_spec": {"seed": 7},
}  # fmt: skip


def parameters(agent):
    return agent.graph_manager.agent_params


def made(spec, **changes):
    return Agent.from_spec(spec, **{**SETTINGS, **changes})


def test_a_tensorforce_spec_of_dqn():
    agent = made(DQN)
    found, main = parameters(agent), parameters(agent).network_wrappers["main"]
    assert type(agent) is tensorforce.DQNAgent and type(found).__name__ == "DDQNAgentParameters"
    assert [repr(layer) for layer in main.middleware_parameters.scheme if "Dense" in repr(layer)] == [
        "Dense(units=8)", "Dense(units=4)",
    ]  # fmt: skip
    assert [one.activation_function for one in main.middleware_parameters.scheme[1::2]] == ["tanh", "relu"]
    assert (main.optimizer_type, main.learning_rate, main.batch_size) == ("RMSProp", 0.01, 4)
    assert found.memory.max_size == (MemoryGranularity.Transitions, 100) and found.memory.alpha == 0.5
    assert found.algorithm.discount == 0.9 and found.algorithm.rate_for_copying_weights_to_target == 0.5
    assert found.algorithm.num_consecutive_playing_steps == EnvironmentSteps(2)
    assert found.algorithm.num_steps_between_copying_online_weights_to_target == EnvironmentSteps(20)
    assert agent.spec.first_update == 6
    epsilon = found.exploration.epsilon_schedule
    assert [epsilon.value_at(step) for step in (0, 4, 9, 50)] == [0.5, 0.5, 0.375, 0.25]


def test_an_agent_explores_before_its_first_update():
    agent, state = made(DQN), np.zeros(3, np.float32)
    updates = []
    for _ in range(12):
        agent.act(state)
        agent.observe(False, 1.0)
        updates.append(agent.total_updates)
    assert updates[5] == 0 < updates[-1] and updates == sorted(updates)
    noisy = made(
        {"type": "ddpg_agent", "actions_exploration": {"type": "ornstein_uhlenbeck"}, "first_update": 100},
        states=STATES, actions={"type": "float", "min_value": -1.0, "max_value": 1.0},
    )  # fmt: skip
    actions = set()
    for _ in range(5):
        actions.add(noisy.act(state))
        noisy.observe(False, 1.0)
    assert len(actions) == 5 and noisy.total_updates == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "naf_agent", "actions": {"type": "float", "min_value": -1.0, "max_value": 1.0}, "double_q_model": None,
         "actions_exploration": None},
        {"network": [{"type": "dense", "size": 8}, {"type": "internal_lstm", "size": 4}]},
    ],
    ids=["naf", "lstm"],
)  # fmt: skip
def test_a_memory_of_episodes_has_no_priorities(changes, caplog):
    memory = parameters(made(DQN, **changes)).memory
    assert isinstance(memory, EpisodicExperienceReplayParameters)
    assert memory.max_size == (MemoryGranularity.Transitions, 100)
    reason = "is ignored: the agent's memory has whole episodes and no priorities"
    assert [one.message for one in caplog.records if reason in one.message] == [
        f"the spec's 'memory.{name}' {reason}" for name in ("type", "prioritization_weight")
    ]


def test_an_rlgraph_spec_of_dqn():
    agent = made(RLGRAPH_DQN, seed=None)
    found, main = parameters(agent), parameters(agent).network_wrappers["main"]
    assert type(agent) is rlgraph.DQNAgent and type(found).__name__ == "DQNAgentParameters"
    assert type(main.heads_parameters[0]).__name__ == "DuelingQHeadParameters"
    assert (main.learning_rate, main.batch_size) == (0.01, 4)
    assert found.memory.alpha == 0.5 and found.memory.beta.value_at(9) == 0.25
    assert found.algorithm.num_consecutive_playing_steps == EnvironmentSteps(2)
    assert [found.exploration.epsilon_schedule.value_at(step) for step in (0, 4, 9, 50)] == [0.5, 0.5, 0.375, 0.25]
    assert agent.spec.buffer_size == 5


def test_a_spec_is_a_dict_its_json_or_yaml_or_a_file_of_these(tmp_path):
    yaml = pytest.importorskip("yaml")
    (tmp_path / "spec.json").write_text(json.dumps(DQN))
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(DQN))
    texts = [json.dumps(DQN), yaml.safe_dump(DQN), str(tmp_path / "spec.json"), tmp_path / "spec.yaml"]
    documents = [made(text).spec.document for text in texts]
    assert documents == [made(DQN).spec.document] * 4


def test_policies_of_both():
    ppo = made(
        {
            "type": "ppo_agent", "states": STATES, "actions": ACTIONS, "network": NETWORK,
            "update_mode": {"unit": "episodes", "batch_size": 3}, "optimization_steps": 25, "subsampling_fraction": 0.2,
            "likelihood_ratio_clipping": 0.3, "gae_lambda": 0.97, "entropy_regularization": 0.02,
            "baseline_mode": "states", "baseline": {"type": "mlp", "sizes": [8]},
        }
    )  # fmt: skip
    algorithm = parameters(ppo).algorithm
    assert algorithm.num_consecutive_playing_steps == EnvironmentEpisodes(3) and algorithm.optimization_epochs == 5
    assert (algorithm.clip_likelihood_ratio_using_epsilon, algorithm.gae_lambda, algorithm.beta_entropy) == (
        0.3, 0.97, 0.02,
    )  # fmt: skip
    sac = made(
        {
            "type": "sac", "state_space": rlgraph.FloatBox(shape=3), "action_space": rlgraph.FloatBox(-2, 2, (1,)),
            "initial_alpha": 0.5, "target_entropy": -1.0, "double_q": True,
            "network_spec": [{"type": "dense", "units": 8}],
            "value_function_spec": [{"type": "dense", "units": 4}], "update_spec": {"sync_tau": 0.01, "batch_size": 8},
            "optimizer_spec": {"learning_rate": 0.001}, "value_function_optimizer_spec": {"learning_rate": 0.002},
        }
    )  # fmt: skip
    networks = parameters(sac).network_wrappers
    assert (networks["policy"].learning_rate, networks["q"].learning_rate) == (0.001, 0.002)
    assert tuple(networks["q"].heads_parameters[0].network_layers_sizes) == (4,)
    weights = sac.get_weights()
    np.testing.assert_allclose(np.ravel(weights["temperature"][0]), [math.log(0.5)], rtol=1e-6)
    a2c = made({"type": "actor_critic", "state_space": "float", "action_space": 2, "sample_episodes": True,
                "update_spec": {"batch_size": 7}, "gae_lambda": 0.5})  # fmt: skip
    assert parameters(a2c).algorithm.apply_gradients_every_x_episodes == 7


@pytest.mark.parametrize(
    "baseline, algorithm, rescaler",
    [
        ({}, "PolicyGradientsAgentParameters", None),
        ({"baseline_mode": "network"}, "ActorCriticAgentParameters", None),
        (
            {
                "baseline_mode": "states", "baseline": {"type": "mlp", "sizes": [8]}, "gae_lambda": 0.9,
                "baseline_optimizer": {"type": "adam", "learning_rate": 0.01},
            },
            "ActorCriticAgentParameters",
            PolicyGradientRescaler.GAE,
        ),
    ],
)  # fmt: skip
def test_vpg_learns_from_its_episodes_with_each_baseline(baseline, algorithm, rescaler):
    spec = {
        "type": "vpg_agent", "states": STATES, "actions": ACTIONS, "network": NETWORK, **baseline,
        "update_mode": {"unit": "episodes", "batch_size": 2}, "optimizer": {"type": "adam", "learning_rate": 0.01},
    }  # fmt: skip
    agent = made(spec)
    found, main = parameters(agent), parameters(agent).network_wrappers["main"]
    assert type(found).__name__ == algorithm and found.algorithm.apply_gradients_every_x_episodes == 2
    assert rescaler in (None, found.algorithm.policy_gradient_rescaler)
    assert main.use_separate_networks_per_head == (baseline.get("baseline_mode") == "states")
    weights = [agent.get_weights()["main"]]
    for _ in range(4):
        for step in range(5):
            agent.act(np.full(3, step / 5))
            agent.observe(reward=float(step), terminal=step == 4)
        weights.append(agent.get_weights()["main"])
    moved = [any(not np.array_equal(x, y) for x, y in zip(*pair)) for pair in itertools.pairwise(weights)]
    assert moved == [False, True, False, True]


@pytest.mark.parametrize(
    "actions, expected",
    [
        ({"type": "bool"}, (bool, ())),
        ({"type": "int", "shape": 2, "num_actions": 3}, (int, (2,))),
        ({"type": "float", "shape": [2, 2], "min_value": -1, "max_value": 1}, (float, (2, 2))),
        ({"type": "float", "min_value": -1, "max_value": 1}, (float, ())),
    ],
)
def test_actions_have_the_form_of_the_spec(actions, expected):
    agent = made({"type": "random_agent", "states": STATES, "actions": actions})
    action = agent.act(np.zeros(3))
    kind, shape = expected
    assert np.shape(action) == shape and isinstance(np.ravel(action)[0].item(), kind)
    agent.observe(terminal=True, reward=1.0)


def test_several_actions_and_states_by_name(tmp_path):
    spec = {
        "type": "ppo_agent",
        "states": {"eye": {"type": "float", "shape": [3]}, "mode": {"type": "int", "num_values": 4}},
        "actions": {"gear": {"type": "int", "num_actions": 3}, "brake": {"type": "bool"}},
        "network": NETWORK,
        "update_mode": {"unit": "timesteps", "batch_size": 8},
        "subsampling_fraction": 0.5,
    }
    agent = made(spec)
    for step in range(20):
        actions = agent.act({"eye": [0.0, 0.5, 1.0], "mode": step % 4})
        assert actions["gear"] in (0, 1, 2) and isinstance(actions["brake"], bool)
        agent.observe(reward=1.0, terminal=step % 5 == 4)
    assert agent.total_updates > 0
    agent.save_model(tmp_path, append_timestep=False)
    other = Agent.load(tmp_path)
    state = {"eye": [0.0, 0.5, 1.0], "mode": 2}
    assert other.predict(state) == agent.predict(state) and set(other.predict(state)) == {"gear", "brake"}
    flow = made({"type": "random_agent", "states": STATES, "actions": {
        "gas": {"type": "float", "min_value": 0, "max_value": 1},
        "wheel": {"type": "float", "shape": [2], "min_value": -5, "max_value": -4}}})  # fmt: skip
    actions = flow.act(np.zeros(3))
    assert 0 <= actions["gas"] <= 1 and np.all((actions["wheel"] >= -5) & (actions["wheel"] <= -4))


def test_integers_of_rlgraph_begin_where_they_are_said_to():
    agent = made({"type": "random", "state_space": 5, "action_space": rlgraph.IntBox(3, 5)})
    seen = set()
    for _ in range(30):
        action = agent.get_action(2)
        seen.add(action)
        agent.observe(2, action, [], 1.0, 3, True)
    assert seen == {3, 4}


def test_images_get_the_convolutions():
    agent = made(
        {
            "type": "dqn_agent", "actions": ACTIONS, "memory": "replay",
            "states": {"type": "float", "shape": [12, 12, 3], "min_value": 0, "max_value": 255},
            "network": [{"type": "conv2d", "size": 4, "window": 4, "stride": 2}, {"type": "flatten"},
                        {"type": "dense", "size": 8}, {"type": "lstm", "size": 4}],
        }
    )  # fmt: skip
    main = parameters(agent).network_wrappers["main"]
    assert repr(main.input_embedders_parameters["observation"].scheme[0]).startswith("SameConv2d(num_filters=4")
    assert main.middleware_parameters.number_of_lstm_cells == 4
    assert agent.act(np.zeros((12, 12, 3), np.uint8)) in (0, 1)


# what is refused

BAD = [None, True, -1, 0.5, math.nan, math.inf, 10**5000, "much", b"bytes", [], [1, "a"], {}, {"type": "none"},
       {"type": ["dqn"]}, {1: 2}, object(), lambda: 0, np.zeros((2, 2)), "a\nb", {"type": "replay\n"}]  # fmt: skip
CYCLE: dict = {"type": "dqn_agent"}
CYCLE["states"] = CYCLE["network"] = CYCLE
LONG = [{"type": "dense", "size": 1}] * 10**6
DEEP, DEEP_SPACE, CYCLE_OF_NETWORKS, CYCLE_OF_OPTIMIZERS = [], {"type": "float"}, {}, {"type": "multi_step"}
for _ in range(5000):
    DEEP, DEEP_SPACE = [DEEP], {"a": DEEP_SPACE}
CYCLE_OF_NETWORKS["network_spec"] = CYCLE_OF_NETWORKS
CYCLE_OF_OPTIMIZERS["optimizer"] = CYCLE_OF_OPTIMIZERS
HOSTILE_DOCUMENTS = [
    None, 3, [], "", "{", "[1]", "type: dqn: x", "no_such_file.json", "x\0y.json", "/", "a\nb", {"type": None},
    {"type": 3}, {"type": "dqm"}, {"type": "trpo_agent"}, {"type": "apex"}, {"type": "impala"}, {1: 2}, b"dqn",
    "[" * 100_000, "{'type': *a}", {"type": "dqn_agent"}, {"type": "dqn"}, {**DQN, "states": None},
    {**DQN, "typ": 1}, {**DQN, "discout": 1}, {**RLGRAPH_DQN, "memory": {}}, {**DQN, "memory_spec": {"type": "replay"}},
    {**DQN, "batch_size": 3},
    {**DQN, "actions": {"a": {"type": "int", "num_actions": 2}, "b": {"type": "float"}}},
    {**DQN, "actions": {}}, {**DQN, "states": {}}, {**DQN, "states": {"type": "float", "shape": [10**12]}},
    {**DQN, "actions": {"type": "int", "num_actions": 10**9}},
    {**DQN, "actions": {"type": "int", "shape": 99, "num_actions": 9}},
    {**DQN, "actions": {"type": "float", "min_value": 2, "max_value": 1}}, {**DQN, "actions": {"type": "float"}},
    {**DQN, "network": [{"type": "dense"}]}, {**DQN, "network": [{"type": "dense", "size": 10**9}]},
    {**DQN, "network": [{"type": "lstm", "size": 2}, {"type": "dense", "size": 2}]},
    {**DQN, "network": [{"type": "dense", "size": 2}, {"type": "conv2d", "size": 2}]},
    {**DQN, "network": [{"type": "conv2d", "size": 2, "windw": 3}]},
    {**DQN, "optimizer": {"type": "clipped_step", "clipping_value": 1}}, {**DQN, "optimizer": {"learning_rat": 1}},
    {**DQN, "optimizer": {"type": "multi_step", "optimizer": {"type": "multi_step"}}},
    {**DQN, "huber_loss": 0.5}, {**DQN, "framework": "tensorflo"}, {**DQN, "num_envs": 0}, {**DQN, "seed": "x"},
    {**DQN, "memory": {"type": "latest"}}, {**DQN, "update_mode": {"unit": "years"}},
    {**DQN, "states_preprocessing": [{"type": "grayscale"}]}, {**DQN, "type": "ddqn_agent", "double_q_model": False},
    {**DQN, "type": "naf_agent"}, {**DQN, "entropy_regularization": 0.1}, {**DQN, "execution": {"type": "distributed"}},
    {"type": "vpg_agent", "states": STATES, "actions": ACTIONS, "batch_size": 10, "update_mode": {}},
    {"type": "vpg_agent", "states": STATES, "actions": ACTIONS, "gae_lambda": 0.5},
    {"type": "ppo_agent", "states": STATES, "actions": ACTIONS, "baseline": {"type": "mlp"}},
    {"type": "ppo_agent", "states": STATES, "actions": ACTIONS, "network": NETWORK, "baseline_mode": "states",
     "baseline": {"type": "mlp", "sizes": "many"}},
    {**RLGRAPH_DQN, "n_step": 0}, {**DQN, "network": [{"type": "conv2d", "size": 2}]},
    {**RLGRAPH_DQN, "network_spec": [{"type": "dense", "units": 1}] * 10**6}, CYCLE,
    {"type": "dqn", "state_space": CYCLE, "action_space": 2}, {**DQN, "states_preprocessing": CYCLE},
    {**DQN, "network": CYCLE}, {**RLGRAPH_DQN, "action_space": {"type": "float", "shape": 2}},
    {**RLGRAPH_DQN, "state_space": {"a": {"b": {"type": "float"}}}}, {**RLGRAPH_DQN, "action_space": -1},
    {**RLGRAPH_DQN, "preprocessing_spec": [{"type": "grayscale"}]},
    {**RLGRAPH_DQN, "state_space": gymnasium.spaces.Text(3)}, {**DQN, "discount": 10**400},
    {**DQN, "discount": math.nan}, {**DQN, "discount": "0.9"}, {**RLGRAPH_DQN, "discount": [0.9]},
    {**DQN, "network": LONG}, {**DQN, "network": [LONG]}, {**DQN, "network": DEEP}, {**DQN, "network": "dense"},
    {**RLGRAPH_DQN, "network_spec": {"layers": DEEP}}, {**RLGRAPH_DQN, "network_spec": CYCLE_OF_NETWORKS},
    {**RLGRAPH_DQN, "policy_spec": CYCLE}, {**RLGRAPH_DQN, "policy_spec": [1]},
    {**RLGRAPH_DQN, "preprocessing_spec": LONG}, {**RLGRAPH_DQN, "preprocessing_spec": DEEP},
    {**RLGRAPH_DQN, "preprocessing_spec": [{"type": "sequence", "length": 10**9}]},
    {**RLGRAPH_DQN, "preprocessing_spec": [{"type": "divide", "divisor": 0}]},
    {**RLGRAPH_DQN, "preprocessing_spec": [{"type": "reshape", "new_shape": [10**6, 10**6]}]},
    {**RLGRAPH_DQN, "preprocessing_spec": [{"type": "multiply", "factor": math.nan}]},
    {**RLGRAPH_DQN, "optimizer_spec": {"type": "adam", "learning_rate": math.nan}},
    {**RLGRAPH_DQN, "optimizer_spec": {"type": "adam", "learning_rate": -1.0}},
    {**RLGRAPH_DQN, "optimizer_spec": {"type": "adam", "learning_rate": ["linear", 1.0, math.inf]}},
    {**RLGRAPH_DQN, "optimizer_spec": CYCLE_OF_OPTIMIZERS}, {**DQN, "optimizer": CYCLE_OF_OPTIMIZERS},
    {**RLGRAPH_DQN, "optimizer_spec": 7}, {**RLGRAPH_DQN, "memory_spec": {"type": "replay", "capacity": 0}},
    {**RLGRAPH_DQN, "memory_spec": {"type": "replay", "capacity": 10**30}}, {**RLGRAPH_DQN, "memory_spec": [1]},
    {**RLGRAPH_DQN, "exploration_spec": {"epsilon_spec": {"decay_spec": CYCLE}}},
    {**RLGRAPH_DQN, "exploration_spec": {"epsilon_spec": {"decay_spec": ["linear", 2.0, 0.0]}}},
    {**RLGRAPH_DQN, "execution_spec": {"mode": "ray"}}, {**RLGRAPH_DQN, "execution_spec": {"seed": -1}},
    {**RLGRAPH_DQN, "state_space": DEEP_SPACE}, {**RLGRAPH_DQN, "action_space": DEEP_SPACE},
    {**RLGRAPH_DQN, "state_space": {"type": "float", "shape": [-1]}},
    {**RLGRAPH_DQN, "action_space": {"type": "int", "low": 5, "high": 5}},
    {**RLGRAPH_DQN, "action_space": math.nan}, {**RLGRAPH_DQN, "update_spec": {"batch_size": 10**30}},
    {**RLGRAPH_DQN, "num_envs": 10**9.5}, {**RLGRAPH_DQN, "double_q": "yes"}, {**RLGRAPH_DQN, "huber_loss": 2},
]  # fmt: skip
NESTED = ("memory", "optimizer", "update_mode", "actions_exploration", "memory_spec", "optimizer_spec", "update_spec",
          "exploration_spec", "execution_spec", "observe_spec")  # fmt: skip


def changed():
    """Specs in which one value, at whatever depth, is a bad one."""
    places = [(one, name) for one in (DQN, RLGRAPH_DQN) for name in one]
    for number, (spec, name) in enumerate(places):
        for offset in range(4):
            yield {**spec, name: BAD[(number * 7 + offset * 5) % len(BAD)]}
        for offset, key in enumerate(spec[name] if name in NESTED else ()):
            yield {**spec, name: {**spec[name], key: BAD[(number + 3 * offset) % len(BAD)]}}
            yield {**spec, name: {**spec[name], key + "x": 1}}


@pytest.mark.parametrize("spec", HOSTILE_DOCUMENTS, ids=range(len(HOSTILE_DOCUMENTS)))
def test_a_hostile_spec_is_one_line(spec):
    with pytest.raises(CoachError) as caught:
        Agent.from_spec(spec)
    assert len(str(caught.value).splitlines()) == 1 and len(HOSTILE_DOCUMENTS) >= 100


def test_a_bad_value_anywhere_is_one_line_or_has_a_meaning():
    refused, specs = 0, list(changed())
    for spec in specs:
        try:
            made(spec).close()
        except CoachError as error:
            assert len(str(error).splitlines()) == 1, error
            refused += 1
    assert refused > 100 and len(specs) > 130


def test_the_nearest_key_is_named():
    for spec, reason in [
        ({**DQN, "discout": 1}, "the spec's 'discout' is not supported; did you mean 'discount'"),
        ({**DQN, "type": "dqn_agnt"}, "did you mean 'dqn_agent'"),
        (
            {**DQN, "optimizer": {"type": "adma"}},
            "the spec's 'optimizer.type' 'adma' is not supported; did you mean 'adam'",
        ),
        ({**RLGRAPH_DQN, "update_spec": {"batch_sze": 1}}, "'update_spec.batch_sze' is not supported; did you mean"),
    ]:
        with pytest.raises(CoachError, match=reason):
            made(spec)


@pytest.mark.parametrize(
    ("base", "thin", "spec"),
    [(tensorforce.Agent, tensorforce.DQNAgent, DQN), (rlgraph.Agent, rlgraph.DQNAgent, RLGRAPH_DQN)],
)
def test_classes_and_subclasses_are_real(base, thin, spec, tmp_path):
    class Own(base):
        def act(self, *arguments, **settings):
            return "own"

    class OwnThin(thin):
        pass

    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert type(Own.from_spec(spec, **SETTINGS)) is Own and Own.from_spec(spec, **SETTINGS).act() == "own"
    assert thin.__name__ == "DQNAgent" and issubclass(thin, base)
    for agent in (
        base.from_spec(spec, **SETTINGS), thin.from_file(tmp_path / "spec.json", **SETTINGS),
        base.create(spec, **SETTINGS), OwnThin.from_spec(spec, **SETTINGS), OwnThin(**{**spec, **SETTINGS}),
    ):  # fmt: skip
        assert isinstance(agent, thin) and callable(agent.update)
    states, actions = (spec[name] for name in thin.family.positional[:2])
    rest = {name: one for name, one in spec.items() if name not in (*thin.family.positional[:2], "type")}
    assert type(thin(states, actions, **rest, **SETTINGS)) is thin
    with pytest.raises(CoachError, match=f"type is 'ppo', and DQNAgent needs the type '{thin.kind}': change"):
        thin.from_spec({**spec, "type": "ppo"}, **SETTINGS)
    with pytest.raises(CoachError, match="received two values"):
        thin(states, actions, **{thin.family.positional[1]: actions}, **SETTINGS)


def test_an_agent_uses_the_framework_of_its_process():
    agent = Agent.from_spec({**DQN, "seed": 1})
    assert agent.graph_manager.task_parameters.framework_type is FRAMEWORK


def test_hyphens_are_underscores_and_an_agent_may_be_named_with_its_suffix():
    for kind in ("actor-critic", "actor_critic", "actor-critic-agent"):
        agent = made({"type": kind, "state_space": "float", "action_space": 2})
        assert isinstance(agent, rlgraph.ActorCriticAgent)


@pytest.mark.parametrize(
    "given, expected",
    [
        ([1.0, 0.5], {0: 1.0, 5000: 0.75, 10_000: 0.5}),
        (["linear", 1.0, 0.5, 10], {0: 1.0, 5: 0.75, 10: 0.5}),
        ({"type": "linear-decay", "from": 1.0, "to": 0.0, "num_timesteps": 4}, {0: 1.0, 2: 0.5, 4: 0.0}),
        ({"type": "constant_decay", "constant_value": 0.25}, {0: 0.25, 9: 0.25}),
        ({"type": "exponential", "from": 1.0, "to": 0.5, "num_timesteps": 10, "half_lives": 2}, {0: 1.0, 5: 0.75}),
    ],
)
def test_schedules(given, expected):
    agent = made({**RLGRAPH_DQN, "exploration_spec": {"epsilon_spec": {"decay_spec": given}}})
    schedule = parameters(agent).exploration.epsilon_schedule
    assert {step: schedule.value_at(step) for step in expected} == pytest.approx(expected)


def test_a_learning_rate_of_a_spec_is_a_schedule():
    agent = made({**RLGRAPH_DQN, "optimizer_spec": {"type": "adam", "learning_rate": ["linear", 0.1, 0.001, 10]}})
    rate = parameters(agent).network_wrappers["main"].learning_rate
    assert [rate.value_at(step) for step in (0, 10)] == [0.1, 0.001]


@pytest.mark.parametrize(
    "steps, shape, image, expected",
    [
        ([{"type": "divide", "divisor": 2}], (2,), [2.0, 4.0], [1.0, 2.0]),
        ([{"type": "multiply", "factor": 3}, {"type": "clip", "min": 0, "max": 5}], (2,), [-1.0, 2.0], [0.0, 5.0]),
        ([{"type": "normalize"}], (2,), [1.0, 3.0], [0.0, 1.0]),
        ([{"type": "center"}], (2,), [1.0, 3.0], [-1.0, 1.0]),
        ([{"type": "standardize"}], (2,), [1.0, 3.0], [-1.0, 1.0]),
        ([{"type": "reshape", "flatten": True}, "convert_type"], (2, 2), [[1, 2], [3, 4]], [1, 2, 3, 4]),
        ([{"type": "sequence", "length": 2}], (2,), [1.0, 2.0], [1, 1, 2, 2]),
        ([{"type": "grayscale"}, {"type": "divide", "scale": 10}], (1, 1, 3), [[[10, 10, 10]]], [[[1.0]]]),
        ([{"type": "crop", "x": 1, "y": 0, "width": 1, "height": 1}], (1, 2, 1), [[[1], [7]]], [[[7.0]]]),
    ],
)
def test_preprocessing_is_done_by_filters(steps, shape, image, expected):
    agent = made({**RLGRAPH_DQN, "state_space": {"type": "float", "shape": shape}, "network_spec": [],
                  "preprocessing_spec": steps, "memory_spec": None})  # fmt: skip
    seen = agent.preprocess_states(np.asarray(image, np.float32))
    np.testing.assert_allclose(seen, expected, atol=1e-5)
    batch = agent.preprocess_states(np.asarray([image] * 3, np.float32))
    assert batch.shape == (3, *np.shape(expected))
    action, given = agent.get_action(np.asarray(image, np.float32), extra_returns="preprocessed_states")
    agent.observe(given, action, [], 1.0, np.asarray(image, np.float32), False)
    stored = agent.graph_manager.get_agent().episode.buffer.transitions[0].state["observation"]
    np.testing.assert_allclose(stored, expected, atol=1e-5)


def test_same_padding_keeps_the_size():
    agent = made({**DQN, "memory": "replay", "states": {"type": "float", "shape": [5, 7, 1]},
                  "network": [{"type": "conv2d", "size": 2, "window": 3, "stride": 2},
                              {"type": "dense", "size": 4}]})  # fmt: skip
    kernels = [one for one in agent.get_weights()["main"] if one.ndim == 2]
    assert kernels[0].shape == (3 * 4 * 2, 4)  # ceil(5 / 2) x ceil(7 / 2) positions of 2 filters
    agent.act(np.ones((5, 7, 1)))


def test_mixed_actions_and_choices_of_sac_are_rounded_numbers(tmp_path):
    spec = {"type": "ppo_agent", "states": STATES, "network": NETWORK, "actions": {
        "gear": {"type": "int", "num_actions": 3},
        "gas": {"type": "float", "min_value": 0, "max_value": 1}}}  # fmt: skip
    agent = made(spec)
    for _ in range(20):
        action = agent.act(np.zeros(3))
        assert action["gear"] in (0, 1, 2) and isinstance(action["gear"], int) and 0 <= action["gas"] <= 1
        agent.observe(terminal=False, reward=1.0)
    agent.save(tmp_path)
    assert set(Agent.load(tmp_path).predict(np.zeros(3))) == {"gear", "gas"}
    sac = made({"type": "sac", "state_space": STATES, "action_space": 4, "update_spec": {"batch_size": 4}})
    seen = {sac.get_action(np.zeros(3)) for _ in range(40)}
    assert seen <= {0, 1, 2, 3} and len(seen) > 1
    sac.observe(np.zeros(3), 3, [], 1.0, np.zeros(3), True)


def test_an_argument_without_a_meaning_gives_a_line_unless_it_is_the_default(caplog):
    made({**RLGRAPH_DQN, "store_last_q_table": False, "auto_build": True, "saver_spec": None})
    assert not [one for one in caplog.messages if "is ignored" in one]
    made({**RLGRAPH_DQN, "store_last_q_table": True})
    assert any("'store_last_q_table' is ignored: update returns only the loss" in one for one in caplog.messages)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("trpo_agent", TRPOAgent), ("qr-dqn", QuantileRegressionDQNAgent), ("RainbowAgent", RainbowDQNAgent)],
)
def test_tensorforce_knows_every_algorithm_by_name(name, kind):
    agent = tensorforce.Agent.from_spec(
        {"type": name, "states": STATES, "actions": ACTIONS, "discount": 0.9}, **SETTINGS
    )
    assert type(agent.graph_manager.get_agent()) is kind and parameters(agent).algorithm.discount == 0.9


@pytest.mark.parametrize(("name", "kind"), [("apex", ApexDQNAgent), ("IMPALA", IMPALAAgent), ("dqfd", DQfDAgent)])
def test_rlgraph_knows_every_algorithm_by_name(name, kind):
    spaces = {key: RLGRAPH_DQN[key] for key in ("state_space", "action_space")}
    agent = rlgraph.Agent.from_spec({"type": name, **spaces}, **SETTINGS)
    assert type(agent.graph_manager.get_agent()) is kind


def test_a_field_without_meaning_for_an_algorithm_is_named():
    with pytest.raises(CoachError, match="the spec's 'learning_speed' is not supported"):
        made({"type": "trpo_agent", "states": STATES, "actions": ACTIONS, "learning_speed": 1})
