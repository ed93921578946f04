"""One seed gives the same networks and the same updates on every framework: those of ``agreement.json``.

``python -m tests.architectures.test_agreement`` writes that file anew.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any, Callable

import numpy as np
import pytest

from rl_coach.agents.actor_critic_agent import actor_critic_rule
from rl_coach.agents.ddqn_agent import DDQNAgent
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.agents.rules.proximal_policy import clipped_ppo_rule
from rl_coach.agents.rules.q_learning import q_learning_rule
from rl_coach.agents.rules.soft_actor_critic import soft_actor_critic_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import (
    DuelingQHeadParameters,
    PolicyHeadParameters,
    PPOHeadParameters,
    QHeadParameters,
    SACPolicyHeadParameters,
    SACQHeadParameters,
    VHeadParameters,
)
from rl_coach.architectures.layers import Conv2d
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import TrainingStep, UpdateRule
from rl_coach.core_types import GradientClippingMethod
from rl_coach.spaces import ImageObservationSpace
from tests.architectures.networks import (
    BOX,
    DISCRETE,
    TWO_VECTORS,
    VECTOR,
    network_parameters,
    random_inputs,
    spaces,
    wrap,
)

NUMBERS = pathlib.Path(__file__).with_name("agreement.json")
UPDATES, B = 3, 4
Networks = dict[str, NetworkWrapper]


def q_learning(heads: list, agent: type[DQNAgent], **changes: Any) -> tuple[Networks, UpdateRule]:
    network = network_parameters(heads, TWO_VECTORS, create_target_network=True, **changes)
    rule = q_learning_rule(True, None, *agent.bootstrap_actions)
    return {"main": wrap(network, spaces(TWO_VECTORS, DISCRETE))}, rule


def of_images() -> tuple[Networks, UpdateRule]:
    images = {"observation": ImageObservationSpace(np.array([12, 11, 3]), high=255)}
    layers = [Conv2d(4, 4, 2), Conv2d(5, 3, 1)]
    network = network_parameters(
        [QHeadParameters()], create_target_network=True, optimizer_type="RMSProp",
        input_embedders_parameters={"observation": InputEmbedderParameters(scheme=layers, batchnorm=True)},
        clip_gradients=0.1, gradients_clipping_method=GradientClippingMethod.ClipByNorm,
    )  # fmt: skip
    rule = q_learning_rule(False, None, *DQNAgent.bootstrap_actions)
    return {"main": wrap(network, spaces(images, DISCRETE))}, rule


def clipped_ppo(action: Any) -> tuple[Networks, UpdateRule]:
    network = network_parameters(
        [VHeadParameters(), PPOHeadParameters()], use_separate_networks_per_head=True, clip_gradients=0.5
    )
    return {"main": wrap(network, spaces(VECTOR, action))}, clipped_ppo_rule(0.2, 0.01, 1.0, 1.0, None)


def actor_critic_with_memory() -> tuple[Networks, UpdateRule]:
    network = network_parameters([VHeadParameters(loss_weight=0.5), PolicyHeadParameters()], optimizer_type="SGD")
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=6, scheme=[])
    return {"main": wrap(network, spaces(VECTOR, BOX))}, actor_critic_rule(0.5, 1.0, 0.01, None)


def soft_actor_critic() -> tuple[Networks, UpdateRule]:
    parameters = {
        "policy": network_parameters([SACPolicyHeadParameters()]),
        "q": network_parameters([SACQHeadParameters(layers_sizes=(7, 5))], l2_regularization=0.01),
        "v": network_parameters([VHeadParameters(initializer="xavier")], create_target_network=True),
    }
    definition = spaces(VECTOR, BOX)
    networks = {name: wrap(network, definition, seed) for seed, (name, network) in enumerate(parameters.items())}
    return networks, soft_actor_critic_rule()


CASES: dict[str, Callable[[], tuple[Networks, UpdateRule]]] = {
    "dqn": lambda: q_learning([QHeadParameters(output_bias_initializer=0.5)], DQNAgent),
    "dueling ddqn": lambda: q_learning([DuelingQHeadParameters()], DDQNAgent, l2_regularization=0.1),
    "dqn of images": of_images,
    "clipped ppo, discrete": lambda: clipped_ppo(DISCRETE),
    "clipped ppo, continuous": lambda: clipped_ppo(BOX),
    "actor-critic with an lstm": actor_critic_with_memory,
    "soft actor-critic": soft_actor_critic,
}


def columns(networks: Networks, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Everything that any of the rules asks for."""
    rows = UPDATES * B
    found: dict[str, np.ndarray] = {}
    for wrapper in networks.values():
        for group in ("states", "next_states"):
            inputs = random_inputs(wrapper, rows, rng)
            inputs.pop("action", None)
            found |= {f"{group}/{name}": value for name, value in inputs.items() if f"{group}/{name}" not in found}
    is_discrete = next(iter(networks.values())).state.function.spaces.action is DISCRETE
    found["actions"] = rng.integers(0, 4, rows) if is_discrete else rng.normal(size=(rows, 2)).astype(np.float32)
    for name in ("rewards", "extra/advantages", "extra/returns", "extra/behaviour_log_probs"):
        found[name] = rng.normal(size=rows).astype(np.float32)
    found["extra/noise"] = rng.normal(size=(rows, 2)).astype(np.float32)
    found["discounts"] = (0.9 * (rng.random(rows) < 0.8)).astype(np.float32)
    found["weights"] = rng.random(rows).astype(np.float32)
    return found


def numbers(case: str) -> dict[str, list]:
    """Outputs of every network before and after some updates, and the updates' losses and gradients' norms."""
    networks, rule = CASES[case]()
    rng = np.random.default_rng(5)
    rows = {name: random_inputs(wrapper, 1, rng) for name, wrapper in networks.items()}

    def outputs() -> dict[str, list]:
        return {
            f"{name} {what}": value.ravel()
            for name, wrapper in networks.items()
            for what, value in zip(
                wrapper.online_network.output_names,
                wrapper.online_network.predict(rows[name], squeeze_output=False),
            )
        }

    found = {f"{name} at first": value for name, value in outputs().items()}
    functions = {name: wrapper.state.function for name, wrapper in networks.items()}
    parameters = {name: wrapper.network_parameters for name, wrapper in networks.items()}
    states = {name: wrapper.state for name, wrapper in networks.items()}
    first = next(iter(networks.values()))
    learner = first.framework.make_learner(TrainingStep(functions, parameters, rule), states, tuple(networks))
    follow = {name: 0.5 for name, wrapper in networks.items() if wrapper.has_target}
    result = learner.train(columns(networks, rng), {"clipping_decay": 0.5}, num_updates=UPDATES, target_rates=follow)
    found |= {f"{name} loss": value for name, value in result.losses.items()}
    found |= {f"{name} norm": value for name, value in result.gradient_norms.items()}
    for wrapper in networks.values():
        wrapper.online_network.reset_internal_memory()
    found |= {f"{name} at last": value for name, value in outputs().items()}
    return {name: [float(f"{number:.7g}") for number in value] for name, value in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_networks_and_updates_are_those_of_every_framework(case):
    expected = json.loads(NUMBERS.read_text())[case]
    found = numbers(case)
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-3, atol=1e-5, err_msg=name)


if __name__ == "__main__":
    NUMBERS.write_text(json.dumps({case: numbers(case) for case in CASES}, indent=1) + "\n")
