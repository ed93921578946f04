"""Each name, argument, method, attribute and example of the published references, by one probe each.

RLgraph: the class reference of its agents, and examples of its sources. TensorForce: the reference of its agents and of
its model (0.3). A name without meaning here gives one line that names the replacement.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

from rl_coach.own_loop import rlgraph, tensorforce
from rl_coach.own_loop.rlgraph import BoolBox, Dict, FloatBox, IntBox
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

SETTINGS = {"framework": FRAMEWORK.name, "seed": 1}
DENSE = [{"type": "dense", "units": 4}]
SIZED = [{"type": "dense", "size": 4}]
STATE = np.array([0.5, -0.5], np.float32)
BATCH = {
    "states": np.ones((4, 2)), "actions": np.array([0, 1, 0, 1]), "rewards": np.ones(4),
    "terminals": np.ones(4, bool), "next_states": np.ones((4, 2)),
}  # fmt: skip


def one_line(call, reason="does not support"):
    """The name is not supported: the message has one line, which names a replacement."""
    with pytest.raises(CoachError, match=reason) as caught:
        call()
    line = str(caught.value)
    assert len(line.splitlines()) == 1 and (": " in line or "; " in line)


# RLgraph

R_COMMON = {
    "discount": 0.9, "preprocessing_spec": [{"type": "multiply", "factor": 2.0}], "network_spec": DENSE,
    "internal_states_space": None, "action_adapter_spec": {"type": "action-adapter"},
    "policy_spec": {"network_spec": DENSE}, "value_function_spec": DENSE,
    "exploration_spec": {"epsilon_spec": {"decay_spec": {"type": "linear_decay", "from": 1.0, "to": 0.1}}},
    "execution_spec": {"mode": "single", "seed": 3}, "optimizer_spec": {"type": "adam", "learning_rate": 0.01},
    "value_function_optimizer_spec": {"type": "adam", "learning_rate": 0.01},
    "observe_spec": {"buffer_enabled": True, "buffer_size": 10},
    "update_spec": {"do_updates": True, "update_interval": 4, "batch_size": 4}, "summary_spec": {"directory": None},
    "saver_spec": {"directory": None}, "auto_build": False, "name": "mine",
}  # fmt: skip
R_ARGUMENTS = {
    "DQNAgent": {
        **{name: one for name, one in R_COMMON.items() if not name.startswith("value_function")}, "double_q": False,
        "dueling_q": False, "huber_loss": True, "n_step": 3, "memory_spec": {"type": "replay", "capacity": 100},
        "store_last_memory_batch": True, "store_last_q_table": True,
    },
    "ApexAgent": {"memory_spec": {"type": "prioritized_replay", "capacity": 100, "alpha": 0.6}},
    "PPOAgent": {
        "clip_ratio": 0.1, "memory_spec": {"type": "ring_buffer", "capacity": 100},
        "value_function_spec": DENSE, "value_function_optimizer_spec": {"type": "adam", "learning_rate": 0.01},
    },
    "IMPALAAgent": {
        "discount": 0.99, "fifo_queue_spec": {"capacity": 1}, "architecture": "large",
        "environment_spec": {"type": "openai"}, "weight_pg": 1.0, "weight_baseline": 0.5, "weight_entropy": 0.01,
        "worker_sample_size": 20, "dynamic_batching": False,
    },
    "SACAgent": {"initial_alpha": 0.5, "target_entropy": -1.0, "discount": 0.95},
}  # fmt: skip
R_ATTRIBUTES = {
    "name": "dqn-agent", "auto_build": True, "graph_built": True, "timesteps": 0, "train_time_steps": 0,
    "discount": 0.99, "state_space": FloatBox(shape=2), "action_space": IntBox(3), "flat_state_space": None,
    "flat_action_space": None, "preprocessed_state_space": FloatBox(shape=2), "preprocessing_required": False,
    "input_spaces": {"states": FloatBox(shape=2, add_batch_rank=True)}, "build_options": {},
    "record_space": Dict(states=FloatBox(shape=2), actions=IntBox(3), rewards=float, terminals=BoolBox()),
    "internal_states_space": None, "policy_spec": None, "network_spec": DENSE, "action_adapter_spec": None,
    "execution_spec": None, "observe_spec": None, "update_spec": {"batch_size": 4}, "default_env": 0,
    "states_buffer": {0: []}, "actions_buffer": {0: []}, "internals_buffer": {0: []}, "rewards_buffer": {0: []},
    "next_states_buffer": {0: []}, "terminals_buffer": {0: []}, "value_function_optimizer": None,
}  # fmt: skip
R_OBJECTS = ["logger", "preprocessor", "neural_network", "optimizer", "exploration", "memory", "optimizer_spec"]
R_METHODS = {
    "build": (["build_options"], lambda agent: agent.build()),
    "call_api_method": (
        ["op", "inputs", "return_ops"],
        lambda agent: agent.call_api_method("preprocess_states", [STATE[None]]),
    ),
    "get_action": (
        ["states", "internals", "use_exploration", "apply_preprocessing", "extra_returns"],
        lambda agent: agent.get_action(STATE, None, False),
    ),
    "get_policy_weights": ([], lambda agent: agent.get_policy_weights()["main"]),
    "set_policy_weights": (["weights"], lambda agent: agent.set_policy_weights(agent.get_policy_weights())),
    "import_observations": (["observations"], lambda agent: agent.import_observations(BATCH)),
    "observe": (
        ["preprocessed_states", "actions", "internals", "rewards", "next_states", "terminals", "env_id"],
        lambda agent: agent.observe(STATE, 1, [], 1.0, STATE, False),
    ),
    "_observe_graph": (
        ["preprocessed_states", "actions", "internals", "rewards", "next_states", "terminals"],
        lambda agent: agent._observe_graph(STATE[None], [1], [], [1.0], STATE[None], [True]),
    ),
    "preprocess_states": (["states"], lambda agent: agent.preprocess_states(STATE)),
    "reset": ([], lambda agent: agent.reset()),
    "reset_env_buffers": (["env_id"], lambda agent: agent.reset_env_buffers()),
    "update": (["batch"], lambda agent: agent.update(BATCH)),
    "get_td_loss": (["batch"], lambda agent: agent.get_td_loss(BATCH)),
    "terminate": ([], lambda agent: r_agent.__wrapped__().terminate()),
    "from_spec": (
        ["spec"],
        lambda agent: rlgraph.Agent.from_spec({"type": "dqn"}, state_space=2, action_space=2, **SETTINGS),
    ),
}  # fmt: skip
R_WITHOUT_MEANING = [
    "define_api_methods", "define_graph_api", "_build_graph", "define_api_methods_actor", "define_api_methods_learner",
    "define_api_methods_single", "root_component", "graph_builder", "graph_executor", "loss_function", "merger",
    "splitter", "vars_merger", "vars_splitter", "policy", "value_function",
]  # fmt: skip
R_NAMES = [
    "Agent", "DQNAgent", "ApexAgent", "IMPALAAgent", "PPOAgent", "SACAgent", "SACAgentComponent", "Policy",
    "ValueFunction", "NeuralNetwork", "Memory", "ReplayMemory", "PreprocessorStack", "Exploration", "Optimizer",
    "AdamOptimizer", "SyncSpecification", "Synchronizable", "Component", "Space", "ContainerSpace", "FloatBox",
    "IntBox", "BoolBox", "Dict", "Tuple", "config_from_path", "read_config_file", "SingleThreadedWorker",
]  # fmt: skip
R_NAMES_WITHOUT_MEANING = [
    "PPOLossFunction", "IMPALALossFunction", "GraphBuilder", "GraphExecutor", "rlgraph_api", "Specifiable",
    "DictMerger", "ContainerMerger", "ContainerSplitter", "parse_execution_spec", "parse_observe_spec",
    "parse_update_spec", "get_backend", "FIFOQueue", "StagingArea", "EnvironmentStepper", "ActionAdapter",
    "ApexExecutor", "SyncBatchExecutor", "DADSWorker", "MLAgentsEnv",
]  # fmt: skip


def r_make(name, /, **settings):
    actions = FloatBox(-1.0, 1.0, (1,)) if name == "SACAgent" else 3
    return getattr(rlgraph, name)(FloatBox(shape=2), actions, **{**SETTINGS, **settings})


@functools.cache
def r_agent():
    small = {"update_spec": {"batch_size": 4}, "optimizer_spec": {"type": "adam"}}
    return r_make("DQNAgent", network_spec=DENSE, **small)


def r_arguments():
    return [(name, argument) for name, arguments in R_ARGUMENTS.items() for argument in arguments]


@pytest.mark.parametrize("name", R_NAMES)
def test_a_name_of_rlgraph(name):
    assert name in rlgraph.__all__ and callable(getattr(rlgraph, name))


@pytest.mark.parametrize("name", R_NAMES_WITHOUT_MEANING)
def test_a_name_of_rlgraph_without_meaning(name):
    one_line(lambda: getattr(rlgraph, name))


@pytest.mark.parametrize(("name", "argument"), r_arguments())
def test_an_argument_of_rlgraph(name, argument):
    agent = r_make(name, **{argument: R_ARGUMENTS[name][argument]})
    assert type(agent) is getattr(rlgraph, name) and agent.action_space.contains(agent.get_action(STATE))


@pytest.mark.parametrize("name", R_ATTRIBUTES)
def test_an_attribute_of_rlgraph(name):
    agent = r_make("DQNAgent", network_spec=DENSE, update_spec={"batch_size": 4})
    found = getattr(agent, name)
    assert found == R_ATTRIBUTES[name]


@pytest.mark.parametrize("name", R_OBJECTS)
def test_a_part_of_an_agent_of_rlgraph(name):
    assert getattr(r_agent(), name) is not None


@pytest.mark.parametrize("name", R_METHODS)
def test_a_method_of_rlgraph(name):
    arguments, call = R_METHODS[name]
    parameters = inspect.signature(getattr(rlgraph.Agent, name)).parameters
    assert [one for one in arguments if one not in parameters] == []
    call(r_agent())


@pytest.mark.parametrize("name", R_WITHOUT_MEANING)
def test_an_attribute_of_rlgraph_without_meaning(name):
    one_line(lambda: getattr(r_agent(), name))
    assert not hasattr(r_agent(), name)


@pytest.mark.parametrize("wanted", ["preprocessed_states", "internal_states", "used_exploration"])
def test_a_value_that_get_action_returns_besides(wanted):
    action, found = r_agent().get_action(STATE, extra_returns=wanted)
    assert action in (0, 1, 2) and (found == [] if wanted == "internal_states" else np.all(np.equal(found, found)))


def test_models_of_rlgraph_are_stored_loaded_and_exported(tmp_path):
    agent = r_agent()
    for flag in (True, False):
        agent.load_model(agent.store_model(path=tmp_path / "model", add_timestep=flag))
    assert agent.export_graph(filename=tmp_path / "policy").is_dir()


def test_the_defaults_of_impala():
    kind = rlgraph.IMPALAAgent
    assert [one.shape for one in kind.default_internal_states_space] == [(256,), (256,)]
    assert kind.default_environment_spec["frameskip"] == 4
    agent = r_make("IMPALAAgent")
    assert agent.get_action(STATE, internal_states=None, use_exploration=True, extra_returns=None) in (0, 1, 2)


def test_an_agent_of_the_users_own_begins_as_the_published_one():
    class Own(rlgraph.PPOAgent):
        def __init__(self, clip_ratio, memory_spec=None, **kwargs):
            super().__init__(
                name=kwargs.pop("name", "own-agent"), clip_ratio=clip_ratio, memory_spec=memory_spec, **kwargs
            )
            self.steps = self.train_time_steps

    agent = Own(0.2, {"type": "ring_buffer"}, state_space=FloatBox(shape=2), action_space=3, **SETTINGS)
    assert agent.name == "own-agent" and agent.steps == 0


# TensorForce

ADAM = {"type": "adam", "learning_rate": 0.01}
T_COMMON = {
    "batched_observe": 1000, "scope": "mine", "summary_spec": {"directory": None}, "network_spec": SIZED,
    "discount": 0.9, "device": "cpu", "session_config": None, "saver_spec": {"directory": None},
    "distributed_spec": None, "variable_noise": 0.1,
    "states_preprocessing_spec": [{"type": "divide", "scale": 2.0}],
    "reward_preprocessing_spec": [{"type": "clip", "min_value": -1, "max_value": 1}],
    "distributions_spec": {"type": "categorical"},
}  # fmt: skip
T_VALUES = {
    "optimizer": ADAM, "explorations_spec": {"type": "constant", "epsilon": 0.2}, "entropy_regularization": None,
    "batch_size": 4, "memory": {"type": "replay", "capacity": 100}, "first_update": 10, "update_frequency": 2,
    "repeat_update": 2, "target_sync_frequency": 10, "target_update_weight": 0.5, "huber_loss": 1.0,
}  # fmt: skip
T_PHASES = {
    "optimizer": ADAM, "entropy_regularization": 0.01, "batch_size": 20, "keep_last_timestep": True,
    "baseline_mode": "states", "explorations_spec": None,
}  # fmt: skip
T_BASELINE = {"baseline_mode": "states", "baseline": {"type": "mlp", "sizes": [4]}}
T_ARGUMENTS = {
    "DQNAgent": {**T_COMMON, **T_VALUES, "double_q_model": True},
    "NAFAgent": {**T_VALUES, "double_q_model": False, "explorations_spec": {"type": "ornstein_uhlenbeck_process"}},
    "DQFDAgent": {
        **T_VALUES, "expert_margin": 0.4, "supervised_weight": 0.2, "demo_memory_capacity": 100,
        "demo_sampling_ratio": 0.1,
    },
    "VPGAgent": {
        **T_PHASES, "baseline": T_BASELINE, "baseline_optimizer": {**T_BASELINE, "baseline_optimizer": ADAM},
        "gae_lambda": {**T_BASELINE, "gae_lambda": 0.9},
    },
    "TRPOAgent": {
        **{name: one for name, one in T_PHASES.items() if name != "optimizer"}, "baseline": T_BASELINE,
        "baseline_optimizer": {**T_BASELINE, "baseline_optimizer": ADAM},
        "gae_lambda": {**T_BASELINE, "gae_lambda": 0.9}, "likelihood_ratio_clipping": 0.2, "learning_rate": 0.002,
        "cg_max_iterations": 10, "cg_damping": 0.01, "cg_unroll_loop": False,
    },
}  # fmt: skip
T_METHODS = {
    "act": (["states", "deterministic"], lambda agent: (agent.act(states=STATE, deterministic=True), agent.reset())),
    "observe": (["reward", "terminal"], lambda agent: (agent.act(STATE), agent.observe(1.0, True))),
    "reset": ([], lambda agent: agent.reset()),
    "initialize_model": ([], lambda agent: agent.initialize_model()),
    "from_spec": (
        ["spec", "kwargs"],
        lambda agent: tensorforce.Agent.from_spec(
            {"type": "dqn_agent"}, {"states_spec": T_STATES, "actions_spec": T_ACTIONS, **SETTINGS}
        ),
    ),
    "import_observations": (["observations"], lambda agent: agent.import_observations(T_STEPS)),
    "import_demonstrations": (["demonstrations"], lambda agent: agent.import_demonstrations(T_STEPS)),
    "set_demonstrations": (["batch"], lambda agent: agent.set_demonstrations(T_COLUMNS)),
    "pretrain": (["steps"], lambda agent: agent.pretrain(steps=2)),
}  # fmt: skip
T_STATES, T_ACTIONS = {"type": "float", "shape": (2,)}, {"type": "int", "num_actions": 3}
T_STEPS = [
    {"state": STATE, "action": number % 3, "reward": 1.0, "terminal": True, "internal": []} for number in range(8)
]  # fmt: skip
T_COLUMNS = {
    "states": np.ones((8, 2)), "actions": np.arange(8) % 3, "rewards": np.ones(8), "terminals": np.ones(8, bool),
    "internals": [],
}  # fmt: skip
T_NAMES = [
    "Agent", "LearningAgent", "MemoryAgent", "BatchAgent", "DQNAgent", "NAFAgent", "DQFDAgent", "VPGAgent",
    "TRPOAgent", "PPOAgent", "DDPGAgent", "RandomAgent", "ConstantAgent", "Runner", "SingleRunner",
]  # fmt: skip
T_MODEL = [
    "act", "create_output_operations", "get_optimizer_kwargs", "get_summaries", "get_variables", "initialize",
    "observe", "reset", "restore", "save", "setup", "tf_action_exploration", "tf_actions_and_internals",
    "tf_discounted_cumulative_reward", "tf_loss", "tf_loss_per_instance", "tf_optimization", "tf_preprocess_reward",
    "tf_preprocess_states", "tf_regularization_losses", "update",
]  # fmt: skip


def t_make(name, /, **settings):
    actions = {"type": "float", "shape": 1, "min_value": -1, "max_value": 1} if name == "NAFAgent" else T_ACTIONS
    kind = getattr(tensorforce, name)
    return kind(**{"states_spec": T_STATES, "actions_spec": actions, **SETTINGS, **settings})


@functools.cache
def t_agent():
    return t_make("DQFDAgent", network_spec=SIZED, batch_size=4)


def t_arguments():
    return [(name, argument) for name, arguments in T_ARGUMENTS.items() for argument in arguments]


@pytest.mark.parametrize("name", T_NAMES)
def test_a_name_of_tensorforce(name):
    assert name in tensorforce.__all__ and callable(getattr(tensorforce, name))


@pytest.mark.parametrize(("name", "argument"), t_arguments())
def test_an_argument_of_tensorforce(name, argument):
    value = T_ARGUMENTS[name][argument]
    together = argument in ("baseline", "baseline_optimizer", "gae_lambda")
    agent = t_make(name, **(value if together else {argument: value}))
    agent.act(STATE)
    agent.observe(reward=1.0, terminal=True)
    assert type(agent) is getattr(tensorforce, name) and agent.timestep == 1


@pytest.mark.parametrize("name", T_METHODS)
def test_a_method_of_tensorforce(name):
    arguments, call = T_METHODS[name]
    parameters = inspect.signature(getattr(tensorforce.DQFDAgent, name)).parameters
    assert [one for one in arguments if one not in parameters] == []
    call(t_agent())


def test_models_of_tensorforce_are_saved_and_restored(tmp_path):
    agent = t_agent()
    for flag in (True, False):
        path = agent.save_model(directory=tmp_path, append_timestep=flag)
        agent.restore_model(directory=path)
    agent.restore_model(directory=tmp_path.parent, file=tmp_path.name)


def test_a_batch_agent_leaves_its_batch():
    agent = t_make("VPGAgent")
    agent.act(STATE)
    agent.reset_batch()
    agent.act(STATE)


@pytest.mark.parametrize("name", T_MODEL)
def test_a_method_of_tensorforces_model(name):
    """The model is a graph of TensorFlow 1: most of its methods give a line with the agent's method."""
    if name in ("get_variables", "observe", "reset", "restore", "save"):
        assert callable(getattr(t_agent().model, name)) and t_agent().model.get_variables()[0].shape == (2, 4)
    else:
        one_line(lambda: getattr(t_agent().model, name))


@pytest.mark.parametrize(
    "name", ["Model", "Configuration", "Network", "layered_network_builder", "ThreadedRunner", "DistributedRunner"]
)
def test_a_name_of_tensorforce_without_meaning(name):
    one_line(lambda: getattr(tensorforce, name))


@pytest.mark.parametrize("base", ["Agent", "MemoryAgent", "BatchAgent", "LearningAgent"])
def test_an_agent_of_the_users_own_inherits_from_a_base(base):
    """The reference: "If you want to build your own agent, it should always inherit from Agent"."""

    class Own(getattr(tensorforce, base)):
        def observe(self, terminal, reward):
            self.seen = reward
            super().observe(terminal, reward)

    kind = "vpg_agent" if base == "BatchAgent" else "dqn_agent"
    agent = Own(T_STATES, T_ACTIONS, SIZED, type=kind, **SETTINGS)
    agent.act(STATE)
    agent.observe(True, 2.0)
    assert type(agent) is Own and agent.seen == 2.0 and agent.timestep == 1
    one_line(lambda: Own(T_STATES, T_ACTIONS), "type")
