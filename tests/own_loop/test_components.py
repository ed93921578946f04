"""Parts of RLgraph's agents, which are built, called and read alone."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from rl_coach.own_loop.rlgraph import (
    AdamOptimizer,
    Agent,
    ApexAgent,
    BoolBox,
    Dict,
    FloatBox,
    IntBox,
    NeuralNetwork,
    Policy,
    PreprocessorStack,
    PrioritizedReplay,
    ReplayMemory,
    SACAgentComponent,
    Synchronizable,
    SyncSpecification,
    Tuple,
    ValueFunction,
    config_from_path,
)
from rl_coach.testing import ComponentTest
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK

CONFIGS = pathlib.Path(__file__).parent / "configs"
ON = {"framework": FRAMEWORK.name}


def test_a_policy_for_discrete_actions():
    state_space, action_space = FloatBox(shape=(4,), add_batch_rank=True), IntBox(5, add_batch_rank=True)
    policy = Policy(network_spec=config_from_path(CONFIGS / "simple_network.json"), action_space=action_space)
    test = ComponentTest(component=policy, input_spaces={"nn_input": state_space}, action_space=action_space, **ON)
    params = test.read_variable_values(policy.variable_registry)

    states = np.array([[-0.08, 0.4, -0.05, -0.55], [13.0, -14.0, 10.0, -16.0]])
    output = np.matmul(states, params["policy/test-network/hidden-layer/dense/kernel"])
    test.test(("get_nn_output", states), expected_outputs={"output": output}, decimals=6)
    logits = np.matmul(output, params["policy/action-adapter/action-layer/dense/kernel"])
    test.test(("get_action_layer_output", states), expected_outputs={"output": logits}, decimals=5)
    actions = np.argmax(logits, axis=-1)
    test.test(("get_action", states), expected_outputs={"action": actions, "last_internal_states": None})
    probabilities = softmax(logits, axis=-1)
    expected = {"logits": logits, "parameters": probabilities, "log_probs": np.log(probabilities)}
    test.test(("get_logits_parameters_log_probs", states, [0, 1, 2]), expected_outputs=expected, decimals=5)
    for name in ("get_deterministic_action", "get_stochastic_action"):
        out = test.test((name, states), expected_outputs=None)
        assert out["action"].dtype == np.int32 and out["action"].shape == (2,)
    out = test.test(("get_entropy", states), expected_outputs=None)
    assert out["entropy"].dtype == np.float32 and out["entropy"].shape == (2,)
    np.testing.assert_allclose(out["entropy"], -np.sum(probabilities * np.log(probabilities), axis=-1), atol=1e-4)


def test_a_policy_for_numbers_is_a_gaussian():
    space = FloatBox(low=-2.0, high=2.0, shape=(2,))
    policy = Policy([{"type": "dense", "units": 3, "activation": "tanh"}], deterministic=False)
    test = ComponentTest(component=policy, input_spaces={"states": FloatBox(shape=2)}, action_space=space, **ON)
    states = np.ones((6, 2))
    parts = test.test(("get_logits_parameters_log_probs", states))
    mean, deviation = parts["parameters"]
    np.testing.assert_allclose(policy.get_deterministic_action(states)["action"], mean)
    drawn = test.test(("get_action", states))["action"]
    assert drawn.shape == (6, 2) and len(np.unique(drawn)) > 6 and np.all(np.abs(drawn) <= 2)
    expected = np.sum(0.5 * np.log(2 * np.pi * np.e) + np.log(deviation), axis=-1)
    test.test(("get_entropy", states), expected_outputs={"entropy": expected}, decimals=5)


def test_variables_are_named_and_set():
    value = ValueFunction.from_spec({"network_spec": [{"type": "dense", "units": 2, "scope": "first"}]})
    test = ComponentTest(component=value, input_spaces={"nn_input": FloatBox(shape=3)}, **ON)
    names = ["neural-network/first/dense/kernel", "neural-network/first/dense/bias",
             "action-adapter/action-layer/dense/kernel", "action-adapter/action-layer/dense/bias"]  # fmt: skip
    assert list(test.read_variable_values()) == [f"value-function/{name}" for name in names]
    value.sync({name: np.ones_like(one) for name, one in value.variables().items()})
    test.test(("value_output", np.ones((2, 3))), [[9.0], [9.0]])
    network = NeuralNetwork.from_spec(config_from_path(CONFIGS / "simple_network.json"))
    test = ComponentTest(component=network, input_spaces={"inputs": IntBox(3)}, **ON)
    kernel = test.read_variable_values()["test-network/hidden-layer/dense/kernel"]
    test.test(("call", np.array([0, 2])), kernel[[0, 2]])


def test_a_memory_and_a_stack():
    records = Dict(states=FloatBox(shape=1), actions=IntBox(2), rewards=float, terminals=BoolBox(), add_batch_rank=True)
    memory = ReplayMemory.from_spec({"capacity": 3})
    test = ComponentTest(component=memory, input_spaces={"records": records, "num_records": int}, **ON)
    given = {**records.sample(5), "next_states": np.ones((5, 1), np.float32), "rewards": np.arange(5.0)}
    test.test(("insert_records", given))
    found = test.test(("get_records", 40))
    assert set(found["rewards"]) == {2.0, 3.0, 4.0} and found["states"].shape == (40, 1)
    for change, message in [
        ({"rewards": np.arange(4.0)}, "'states' of the recorded steps has 5 rows, and 'rewards' has 4"),
        ({"terminals": np.full(5, 2)}, "'terminals' of record 0 is .*2.*, not True or False"),
    ]:
        with pytest.raises(CoachError, match=message):
            memory.insert_records({**given, **change})
    with pytest.raises(CoachError, match="the records have no 'rewards': give states, actions, rewards, next_states"):
        memory.insert_records({name: column for name, column in given.items() if name != "rewards"})
    stack = PreprocessorStack.from_spec([{"type": "multiply", "factor": 2.0}, {"type": "sequence", "length": 2}])
    test = ComponentTest(component=stack, input_spaces={"inputs": FloatBox(shape=1, add_batch_rank=True)}, **ON)
    assert stack.get_preprocessed_space(FloatBox(shape=1)).shape == (2,)
    for _ in range(2):
        test.test(("preprocess", np.array([[1.0], [3.0]])), [[2, 2], [2, 6]])
        test.test("reset")


@pytest.mark.parametrize("kind", [ReplayMemory, PrioritizedReplay])
def test_a_memory_of_states_with_several_parts(kind):
    states = {"eye": FloatBox(shape=2), "hand": float}
    records = Dict(states=states, next_states=states, actions=2, rewards=float, terminals=BoolBox(),
                   add_batch_rank=True)  # fmt: skip
    memory, given = kind.from_spec({"capacity": 9}), records.sample(5)
    ComponentTest(component=memory, input_spaces={"records": records, "num_records": int}, **ON)
    memory.insert_records(given)
    found = memory.get_records(20)
    for name in ("states", "next_states"):
        assert {part: column.shape for part, column in found[name].items()} == {"eye": (20, 2), "hand": (20,)}
    rows = [given["states"]["hand"].tolist().index(hand) for hand in found["states"]["hand"]]
    assert np.array_equal(found["states"]["eye"], given["states"]["eye"][rows])
    assert np.array_equal(found["rewards"], given["rewards"][rows])
    with pytest.raises(CoachError, match="one action for each step, not a dict of actions"):
        memory.insert_records({**given, "actions": {"left": np.zeros(5), "right": np.zeros(5)}})


def test_a_stack_and_a_policy_for_the_parts_of_a_tuple():
    space = Tuple(FloatBox(shape=2), IntBox(3))
    stack = PreprocessorStack.from_spec([{"type": "divide", "divisor": 2.0}])
    assert stack.get_preprocessed_space(space) == Tuple(FloatBox(shape=2), FloatBox(shape=3))
    states = (np.array([[2.0, 4.0]]), np.array([1]))
    numbers, choice = stack.preprocess(states)
    assert np.array_equal(numbers, [[1, 2]]) and np.array_equal(choice, [[0, 0.5, 0]])
    policy = Policy.from_spec({"network_spec": [{"type": "dense", "units": 4}]}, action_space=IntBox(2))
    ComponentTest(component=policy, input_spaces={"nn_input": space.with_batch_rank()}, action_space=IntBox(2), **ON)
    assert policy.get_action(states)["action"].shape == (1,)
    agent = Agent.from_spec(
        {"type": "dqn", "preprocessing_spec": [{"type": "divide", "divisor": 2.0}]},
        state_space=space, action_space=2, framework=FRAMEWORK.name,
    )  # fmt: skip
    assert agent.preprocessed_state_space == Tuple(FloatBox(shape=2), FloatBox(shape=3))


def sac_component(state_space, action_space, rewards_space):
    config = config_from_path(CONFIGS / "sac_component.json")
    policy = Policy.from_spec(config["policy"], action_space=action_space)
    policy.add_components(Synchronizable(), expose_apis="sync")
    q_function = ValueFunction.from_spec(config["value_function"])
    agent_component = SACAgentComponent(
        agent=None,
        policy=policy,
        q_function=q_function,
        preprocessor=PreprocessorStack.from_spec([]),
        memory=ReplayMemory.from_spec(config["memory"]),
        discount=config["discount"],
        initial_alpha=config["initial_alpha"],
        target_entropy=None,
        optimizer=AdamOptimizer.from_spec(config["optimizer"]),
        vf_optimizer=AdamOptimizer.from_spec(config["value_function_optimizer"], scope="vf-optimizer"),
        alpha_optimizer=None,
        q_sync_spec=SyncSpecification(sync_interval=10, sync_tau=1.0),
        num_q_functions=2,
    )
    batch = state_space.with_batch_rank()
    return ComponentTest(
        component=agent_component,
        input_spaces={
            "states": batch, "preprocessed_states": batch, "env_actions": action_space.with_batch_rank(),
            "actions": action_space.with_batch_rank(), "rewards": rewards_space, "next_states": batch,
            "terminals": BoolBox(add_batch_rank=True), "batch_size": int, "preprocessed_s_prime": batch,
            "importance_weights": FloatBox(add_batch_rank=True), "preprocessed_next_states": batch,
            "deterministic": bool,
            "weights": f"variables:{policy.scope}",
        },
        action_space=action_space,
        build_kwargs={
            "optimizer": agent_component._optimizer, "build_options": {"vf_optimizer": agent_component.vf_optimizer}
        },
        **ON,
    )  # fmt: skip


def update(test, state_space, actions, rewards):
    count = len(rewards)
    inputs = [state_space.sample(count), actions, rewards, [True] * count, state_space.sample(count), [1.0] * count]
    return test.test(("update_from_external_batch", inputs))


def test_the_functions_of_soft_actor_critic_as_a_component():
    states, actions = FloatBox(shape=(8,)), FloatBox(shape=(1,), low=-2.0, high=2.0)
    rewards = FloatBox(add_batch_rank=True)
    test = sac_component(states, actions, rewards)
    result = update(test, states, actions.with_batch_rank().sample(10), rewards.sample(10))
    assert result["actor_loss"].dtype == result["critic_loss"].dtype == np.float32
    q_values = test.test(("get_q_values", [states.sample(10), np.linspace(-1, 1, 10).reshape((10, 1))]))
    assert [(q.dtype, q.shape) for q in q_values] == [(np.float32, (10, 1))] * 2
    sample, _ = test.test(("action_from_preprocessed_state", [states.sample(10), False]))
    assert sample.dtype == np.float32 and sample.shape == (10, 1)


def test_soft_actor_critic_as_a_component_learns_where_the_reward_is():
    np.random.seed(0)
    states, actions, target = FloatBox(shape=(2,)), FloatBox(low=-1.0, high=1.0), stats.norm(loc=0.5, scale=0.2)
    test, losses = sac_component(states, actions, FloatBox(add_batch_rank=True)), []
    for _ in range(1200):
        drawn = actions.sample(100)
        result = update(test, states, drawn, target.pdf(drawn))
        losses.append((result["actor_loss"], result["critic_loss"]))
    assert np.all(np.mean(losses[:100], axis=0) > np.mean(losses[-100:], axis=0))
    drawn = np.linspace(-1, 1, 100)
    for q in test.test(("get_q_values", [states.sample(100), drawn])):
        np.testing.assert_allclose(q.flatten(), target.pdf(drawn), atol=0.3)
    sample, _ = test.test(("action_from_preprocessed_state", [states.sample(100), False]))
    np.testing.assert_allclose(np.mean(sample), 0.5, atol=0.1)


def test_the_loss_of_a_batch_and_of_its_rows():
    agent = ApexAgent(FloatBox(shape=2), 3, network_spec=[{"type": "dense", "units": 8}], seed=1, **ON)
    rng = np.random.default_rng(0)
    batch = {
        "states": rng.normal(size=(6, 2)), "actions": [0, 1, 2, 0, 1, 2], "rewards": [3.0, 0, 1, 0, 1, 0],
        "terminals": [True] * 6, "next_states": rng.normal(size=(6, 2)), "importance_weights": [1, 1, 1, 2, 2, 2],
    }  # fmt: skip
    before = agent.get_weights()["main"]
    loss, per_item = agent.get_td_loss(batch)
    assert all(map(np.array_equal, before, agent.get_weights()["main"])) and per_item.shape == (6,)
    assert loss == pytest.approx(np.mean(per_item * batch["importance_weights"]), rel=1e-5)
    updated = agent.update(batch)
    assert isinstance(updated, float) and updated == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(updated.per_item, per_item, rtol=1e-4)
    assert agent.get_td_loss(batch) < loss and list(updated.by_network) == ["main"]


def test_what_a_component_cannot_do_is_one_line():
    states = {"nn_input": FloatBox(shape=2)}
    for wrong, reason in [
        (lambda: Policy.from_spec({"network_spec": [], "typ": 1}), "'policy_spec.typ' is not supported"),
        (lambda: Policy.from_spec(3), "the spec of a Policy must be a dict, not 3"),
        (lambda: AdamOptimizer.from_spec([]), "the spec of a AdamOptimizer must be a dict"),
        (lambda: ComponentTest(component=Policy([{"type": "lstm", "units": 2}]), input_spaces=states, **ON), "LSTM"),
        (lambda: ComponentTest(component=Policy([{"type": "dense"}]), input_spaces=states, **ON), "size' is missing"),
        (lambda: Policy([]).add_components(3), "supports only Synchronizable, not 3"),
        (lambda: SACAgentComponent(1, Policy([]), ValueFunction([]), [], ReplayMemory(), 0.9, 1.0), "agent=None"),
        (
            lambda: SACAgentComponent(None, Policy(), ValueFunction(), [], ReplayMemory(), 1, 1, num_q_functions=3),
            "num_q_functions must be 1 or 2, not 3",
        ),
        (lambda: Agent.from_spec("dqn", state_space="float", action_space=2, **ON).policy, "Policy is a policy"),
    ]:  # fmt: skip
        with pytest.raises(CoachError, match=reason) as caught:
            wrong()
        assert len(str(caught.value).splitlines()) == 1
