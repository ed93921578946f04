"""Names, arguments, defaults and methods of the class references of RLgraph and TensorForce (0.3)."""

from __future__ import annotations

import inspect

import gymnasium
import numpy as np
import pytest

from rl_coach.own_loop import rlgraph, tensorforce
from rl_coach.own_loop.rlgraph import BoolBox, Dict, FloatBox, IntBox, Space, Tuple
from tests.frameworks import FRAMEWORK

SETTINGS = {"framework": FRAMEWORK.name, "seed": 1}

RLGRAPH_METHODS = {
    "build": ["build_options"],
    "call_api_method": ["op", "inputs", "return_ops"],
    "export_graph": ["filename"],
    "get_action": ["states", "internals", "use_exploration", "apply_preprocessing", "extra_returns"],
    "get_policy_weights": [],
    "get_weights": [],
    "import_observations": [],
    "load_model": ["path"],
    "observe": ["preprocessed_states", "actions", "internals", "rewards", "next_states", "terminals", "env_id"],
    "preprocess_states": ["states"],
    "reset": [],
    "reset_env_buffers": ["env_id"],
    "set_policy_weights": ["weights"],
    "set_weights": ["weights"],
    "store_model": ["path", "add_timestep"],
    "terminate": [],
    "update": ["batch"],
    "from_spec": ["spec"],
    "from_file": ["filename"],
}
RLGRAPH_ATTRIBUTES = ["name", "auto_build", "graph_built", "state_space", "action_space", "discount", "timesteps",
                      "preprocessing_required", "update_spec"]  # fmt: skip
TENSORFORCE_METHODS = {
    "act": ["states", "deterministic"],
    "from_spec": ["spec", "kwargs"],
    "initialize_model": [],
    "observe": ["terminal", "reward"],
    "reset": [],
    "restore_model": ["directory", "file"],
    "save_model": ["directory", "append_timestep"],
    "import_observations": [],
    "import_demonstrations": ["demonstrations"],
    "set_demonstrations": ["batch"],
    "pretrain": ["steps"],
}

RLGRAPH_DEFAULTS = {
    "discount": 0.98, "preprocessing_spec": None, "network_spec": None, "internal_states_space": None,
    "policy_spec": None, "exploration_spec": None, "execution_spec": None, "optimizer_spec": None,
    "observe_spec": None, "update_spec": None, "summary_spec": None, "saver_spec": None, "auto_build": True,
    "name": "agent",
}  # fmt: skip
VALUES = {
    "double_q": True, "dueling_q": True, "huber_loss": False, "n_step": 1, "memory_spec": None,
    "store_last_memory_batch": False, "store_last_q_table": False,
}  # fmt: skip
TENSORFORCE_DEFAULTS = {
    "summary_spec": None, "network_spec": None, "discount": 0.99, "device": None, "session_config": None,
    "saver_spec": None, "distributed_spec": None, "variable_noise": None, "states_preprocessing_spec": None,
    "explorations_spec": None, "reward_preprocessing_spec": None, "distributions_spec": None,
    "entropy_regularization": None,
}  # fmt: skip
MEMORY = {
    "optimizer": None, "batch_size": 32, "memory": None, "first_update": 10000, "update_frequency": 4,
    "repeat_update": 1, "target_sync_frequency": 10000, "target_update_weight": 1.0, "huber_loss": None,
}  # fmt: skip
BATCH = {
    "batch_size": 1000, "keep_last_timestep": True, "baseline_mode": None, "baseline": None,
    "baseline_optimizer": None, "gae_lambda": None,
}  # fmt: skip
AGENTS = [
    (rlgraph.DQNAgent, {**RLGRAPH_DEFAULTS, **VALUES}),
    (rlgraph.ApexAgent, {**RLGRAPH_DEFAULTS, "memory_spec": None}),
    (
        rlgraph.IMPALAAgent,
        {
            **RLGRAPH_DEFAULTS, "discount": 0.99, "fifo_queue_spec": None, "architecture": "large",
            "environment_spec": None, "weight_pg": None, "weight_baseline": None, "weight_entropy": None,
            "worker_sample_size": 100, "dynamic_batching": False,
        },
    ),
    (rlgraph.PPOAgent, {**RLGRAPH_DEFAULTS, "clip_ratio": 0.2, "memory_spec": None, "value_function_spec": None}),
    (rlgraph.ActorCriticAgent, {**RLGRAPH_DEFAULTS, "value_function_optimizer_spec": None}),
    (rlgraph.SACAgent, {**RLGRAPH_DEFAULTS, "initial_alpha": 1.0, "target_entropy": None, "double_q": True}),
    (tensorforce.DQNAgent, {
        **TENSORFORCE_DEFAULTS, **MEMORY, "batched_observe": None, "scope": "dqn", "double_q_model": False}),
    (tensorforce.NAFAgent, {
        **TENSORFORCE_DEFAULTS, **MEMORY, "batched_observe": 1000, "scope": "naf", "double_q_model": False}),
    (tensorforce.DQFDAgent, {
        **TENSORFORCE_DEFAULTS, **MEMORY, "batched_observe": 1000, "scope": "dqfd", "expert_margin": 0.5,
        "supervised_weight": 0.1, "demo_memory_capacity": 10000, "demo_sampling_ratio": 0.2}),
    (tensorforce.VPGAgent, {
        **TENSORFORCE_DEFAULTS, **BATCH, "batched_observe": 1000, "scope": "vpg", "optimizer": None}),
    (tensorforce.TRPOAgent, {
        **TENSORFORCE_DEFAULTS, **BATCH, "scope": "trpo", "likelihood_ratio_clipping": None, "learning_rate": 0.001,
        "cg_max_iterations": 20, "cg_damping": 0.001, "cg_unroll_loop": False}),
]  # fmt: skip


def has_method(agent_class, name, arguments):
    parameters = inspect.signature(getattr(agent_class, name)).parameters
    assert [one for one in arguments if one not in parameters] == []


@pytest.mark.parametrize("name", RLGRAPH_METHODS)
def test_a_method_of_rlgraph(name):
    has_method(rlgraph.Agent, name, RLGRAPH_METHODS[name])


@pytest.mark.parametrize("name", TENSORFORCE_METHODS)
def test_a_method_of_tensorforce(name):
    has_method(tensorforce.Agent, name, TENSORFORCE_METHODS[name])
    assert issubclass(tensorforce.DQNAgent, tensorforce.MemoryAgent) and tensorforce.BatchAgent.reset_batch


@pytest.mark.parametrize("agent_class, defaults", AGENTS, ids=[f"{a.__module__[-7:]}-{a.__name__}" for a, _ in AGENTS])
def test_an_agent_accepts_its_documented_defaults_in_silence(agent_class, defaults, caplog):
    takes_numbers = agent_class in (rlgraph.SACAgent, tensorforce.NAFAgent)
    states = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    actions = gymnasium.spaces.Box(-1, 1, (1,), np.float32) if takes_numbers else gymnasium.spaces.Discrete(2)
    agent = agent_class(states, actions, **defaults, **SETTINGS)
    assert type(agent) is agent_class and not [one for one in caplog.messages if "is ignored" in one]
    names = RLGRAPH_ATTRIBUTES if agent_class.family.name == "RLgraph" else ["timestep", "episode"]
    assert all(hasattr(agent, name) for name in names)
    agent.close()


def test_boxes():
    box = FloatBox(low=-1.0, high=2.0, shape=(3,))
    assert (box.shape, box.dtype, box.low, box.high, box.rank, box.flat_dim) == ((3,), np.float32, -1.0, 2.0, 1, 3)
    batch = box.with_batch_rank()
    assert batch.has_batch_rank and not box.has_batch_rank and batch.with_batch_rank(False) == box
    assert batch.sample(5).shape == (5, 3) and box.sample().shape == (3,) and box.sample(4).shape == (4, 3)
    assert box.contains(box.sample()) and batch.contains(batch.sample(2)) and not box.contains(np.full(3, 9.0))
    assert box.force_batch(np.zeros(3)).shape == (1, 3) and box.force_batch(np.zeros((2, 3))).shape == (2, 3)
    assert box.with_extra_ranks().sample((2, 4)).shape == (2, 4, 3)
    choice = IntBox(4)
    assert (choice.low, choice.high, choice.num_categories, choice.dtype) == (0, 4, 4, np.int32)
    assert {int(choice.sample()) for _ in range(100)} == {0, 1, 2, 3} and not choice.contains(4)
    assert IntBox(3, 5).contains(3) and BoolBox().contains(True) and FloatBox().low == -np.inf
    assert FloatBox(add_batch_rank=True).sample(6).shape == (6,)
    assert (FloatBox(2.0).low, FloatBox(2.0).high) == (0.0, 2.0)  # as in RLgraph


def test_containers():
    space = Dict(eye=FloatBox(shape=(2,)), arm={"angle": float, "grip": IntBox(3)}, add_batch_rank=True)
    assert sorted(space.flatten()) == ["/arm/angle", "/arm/grip", "/eye"] and space["eye"].has_batch_rank
    drawn = space.sample(3)
    assert drawn["arm"]["grip"].shape == (3,) and space.contains(drawn) and not space.contains({"eye": 1})
    pair = Tuple(float, IntBox(2))
    assert len(pair) == 2 and pair.contains(pair.sample()) and pair.shape == ((), ())


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Box(-1, 1, (2, 3), np.float32), gymnasium.spaces.Discrete(3, start=2),
        gymnasium.spaces.MultiDiscrete([2, 5]), gymnasium.spaces.MultiBinary((2,)),
        gymnasium.spaces.Dict(a=gymnasium.spaces.Discrete(2), b=gymnasium.spaces.Box(0, 1, (1,), np.float32)),
        gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(0, 1, (), np.float32)]),
    ],
)  # fmt: skip
def test_spaces_of_gymnasium_and_back(space):
    ours = Space.from_spec(space)
    assert ours.to_gymnasium() == space and ours.contains(space.sample()) and space.contains(ours.sample())
