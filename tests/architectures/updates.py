"""Ten updates of several networks from known weights on known data, in a process with one framework.

``test_jax.py`` runs it for each framework, with the directory that the weights are written to.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from rl_coach.agents.dqn_agent import DQNNetworkParameters
from rl_coach.agents.rules.q_learning import greedy_by_target, q_learning_rule
from rl_coach.agents.rules.soft_actor_critic import soft_actor_critic_rule
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.framework import load_framework
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, NoisyNetDense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.base_parameters import NetworkParameters
from rl_coach.spaces import ImageObservationSpace, SpacesDefinition
from tests.architectures.networks import BOX, DISCRETE, VECTOR, network_parameters, spaces
from tests.frameworks import FRAMEWORK

PROBLEMS = ("dqn", "sac", "convolutions", "lstm", "batchnorm")
BATCH, UPDATES = 32, 10
IMAGE = {"observation": ImageObservationSpace(np.array([12, 12, 3]), high=255)}
Q_RULE = q_learning_rule(False, None, greedy_by_target, False)


def q_network(**changes: Any) -> dict[str, NetworkParameters]:
    return {"main": network_parameters([QHeadParameters()], create_target_network=True, **changes)}


def embedding(*layers: Any) -> dict[str, InputEmbedderParameters]:
    return {"observation": InputEmbedderParameters(scheme=list(layers))}


def problem(kind: str) -> tuple[dict[str, NetworkParameters], UpdateRule, SpacesDefinition]:
    if kind == "sac":
        return SoftActorCriticAgentParameters().network_wrappers, soft_actor_critic_rule(), spaces(VECTOR, BOX)
    if kind == "convolutions":
        convolutions = embedding(Conv2d(4, 3, 2), Conv2d(8, 3, 1))
        return q_network(input_embedders_parameters=convolutions), Q_RULE, spaces(IMAGE, DISCRETE)
    if kind == "lstm":
        cells = LSTMMiddlewareParameters(number_of_lstm_cells=8)
        return q_network(middleware_parameters=cells), Q_RULE, spaces(VECTOR, DISCRETE)
    if kind == "dropout":
        dropped = embedding(NoisyNetDense(8), BatchnormActivationDropout(activation_function="tanh", dropout_rate=0.5))
        return q_network(input_embedders_parameters=dropped), Q_RULE, spaces(VECTOR, DISCRETE)
    if kind == "batchnorm":
        normalised = embedding(Dense(8), BatchnormActivationDropout(batchnorm=True, activation_function="tanh"))
        return q_network(input_embedders_parameters=normalised), Q_RULE, spaces(VECTOR, DISCRETE)
    return {"main": DQNNetworkParameters()}, Q_RULE, spaces(VECTOR, DISCRETE)


def columns(definition: SpacesDefinition, rng: np.random.Generator) -> dict[str, np.ndarray]:
    rows = BATCH * UPDATES
    shape = definition.state["observation"].shape
    continuous = definition.action is BOX
    found = {
        "states/observation": rng.uniform(0, 2, (rows, *shape)).astype(np.float32),
        "next_states/observation": rng.uniform(0, 2, (rows, *shape)).astype(np.float32),
        "actions": rng.uniform(-1, 1, (rows, 2)).astype(np.float32) if continuous else rng.integers(0, 4, rows),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "discounts": (0.99 * (rng.random(rows) > 0.1)).astype(np.float32),
        "weights": np.ones(rows, np.float32),
    }
    return found | ({"extra/noise": rng.normal(size=(rows, 2)).astype(np.float32)} if continuous else {})


def updated(kind: str) -> dict[str, np.ndarray]:
    """The weights before and after, half of the updates made in one call and half one by one."""
    framework = load_framework(FRAMEWORK)
    parameters, rule, definition = problem(kind)
    states = {
        name: framework.hold(
            framework.make_function(p, definition, name, np.random.default_rng(1)), p.create_target_network
        )
        for name, p in parameters.items()
    }
    found = weights_of("before", states)
    step = TrainingStep({name: state.function for name, state in states.items()}, parameters, rule)
    learner = framework.make_learner(step, states, tuple(states))
    data = columns(definition, np.random.default_rng(2))
    follow = {name: 0.1 for name, p in parameters.items() if p.create_target_network}
    half = BATCH * UPDATES // 2
    learner.train({name: column[:half] for name, column in data.items()}, num_updates=UPDATES // 2, target_rates=follow)
    for start in range(half, BATCH * UPDATES, BATCH):
        batch = {name: column[start : start + BATCH] for name, column in data.items()}
        learner.train(batch, target_rates=follow)
    return found | weights_of("after", states)


def weights_of(when: str, states: dict[str, Any]) -> dict[str, np.ndarray]:
    return {
        f"{when}/{name}/{group}/{i}": np.array(array)
        for name, state in states.items()
        for group in state.groups()
        if group != "slots"
        for i, array in enumerate(state.arrays(group))
        if array.dtype == np.float32
    }


def check_traces() -> None:
    """A step is traced once, whatever replaces the weights in between; tracing is what calls the rule."""
    traced = []

    def rule(*arguments: Any) -> Any:
        traced.append(True)
        return Q_RULE(*arguments)

    parameters, _, definition = problem("dqn")
    framework = load_framework(FRAMEWORK)
    function = framework.make_function(parameters["main"], definition, "main", np.random.default_rng(1))
    state = framework.hold(function, has_target=True)
    step = TrainingStep({"main": state.function}, parameters, rule)
    learner = framework.make_learner(step, {"main": state}, ("main",))
    batch = {name: column[:BATCH] for name, column in columns(definition, np.random.default_rng(2)).items()}
    learner.train(batch)
    assert len(traced) == 1
    state.set_arrays("weights", [array + 1 for array in state.arrays("weights")])
    learner.train(batch)
    state.update_target(1.0)
    learner.train(batch)
    state.update_target(0.5)
    learner.train(batch)
    assert len(traced) == learner.num_compilations == 1


if __name__ == "__main__":
    check_traces()
    for one in PROBLEMS:
        np.savez(f"{sys.argv[1]}/{FRAMEWORK.name}_{one}.npz", **updated(one))
