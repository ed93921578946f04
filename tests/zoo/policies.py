"""Agents without an environment, in evaluation: tests compare them with the policies and ONNX models they leave."""

from __future__ import annotations

import copy
import pathlib
from typing import Any

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.core_types import EnvResponse, RunPhase
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.filters.action.box_discretization import BoxDiscretization
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.observation.observation_rescale_to_size_filter import ObservationRescaleToSizeFilter
from rl_coach.filters.observation.observation_rgb_to_y_filter import ObservationRGBToYFilter
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.policy import export as policy_export
from rl_coach.spaces import (
    ActionMaskSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    ImageObservationSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import short_dynamic_import
from tests.zoo.continuous import with_state_dependent_noise
from tests.zoo.parameters import shrink, with_normalized_observations

VECTOR = {"observation": VectorObservationSpace(3)}
IMAGE = {"observation": ImageObservationSpace(np.array([20, 16, 3]), high=255)}
MASKED = {**VECTOR, "action_mask": ActionMaskSpace(4)}
SEVERAL = {**VECTOR, "camera": ImageObservationSpace(np.array([12, 12, 1]), high=255)}
DISCRETE = DiscreteActionSpace(4)
BOX = BoxActionSpace(2, low=np.array([-1, 0], np.float32), high=np.array([1, 4], np.float32))


def small(agent: Any, **embedders: Any) -> Any:
    """The agent with networks of 8 units in each part, and no exploration when it is evaluated."""
    agent = shrink(agent, embedders=embedders or {"observation": [Dense(8)]}, middleware=[Dense(8)])
    exploration = agent.exploration
    for one in exploration.values() if isinstance(exploration, dict) else [exploration]:
        if hasattr(one, "evaluation_epsilon"):
            one.evaluation_epsilon = 0.0
        if hasattr(one, "evaluation_noise"):
            one.evaluation_noise = 0.0
    return agent


def dqn() -> tuple[Any, ...]:
    return small(DQNAgentParameters()), VECTOR, DISCRETE


def dueling_ddqn_from_frames() -> tuple[Any, ...]:
    parameters = small(DDQNAgentParameters(), observation=[Conv2d(4, 4, 2)])
    parameters.network_wrappers["main"].heads_parameters = [DuelingQHeadParameters()]
    parameters.input_filter = InputFilter()
    size = ImageObservationSpace(np.array([12, 12, 3]), high=255)
    parameters.input_filter.add_observation_filter("observation", "size", ObservationRescaleToSizeFilter(size))
    parameters.input_filter.add_observation_filter("observation", "grey", ObservationRGBToYFilter())
    parameters.input_filter.add_observation_filter("observation", "stack", ObservationStackingFilter(3))
    return parameters, IMAGE, DISCRETE


def masked_dqn_of_several_observations() -> tuple[Any, ...]:
    parameters = small(DQNAgentParameters(), observation=[Dense(8)], camera=[Conv2d(2, 4, 4)])
    return parameters, {**SEVERAL, **MASKED}, DISCRETE


def dqn_in_a_grid() -> tuple[Any, ...]:
    parameters = small(DQNAgentParameters())
    parameters.output_filter = OutputFilter()
    parameters.output_filter.add_action_filter("grid", BoxDiscretization(3))
    return parameters, VECTOR, BOX


def policy_gradients() -> tuple[Any, ...]:
    return small(PolicyGradientsAgentParameters()), MASKED, DISCRETE


def continuous_policy_gradients() -> tuple[Any, ...]:
    return small(PolicyGradientsAgentParameters()), VECTOR, BOX


def actor_critic_with_lstm() -> tuple[Any, ...]:
    parameters = small(ActorCriticAgentParameters())
    middleware = LSTMMiddlewareParameters(number_of_lstm_cells=6, scheme=[Dense(5)])
    parameters.network_wrappers["main"].middleware_parameters = middleware
    return parameters, VECTOR, BOX  # continuous actions show every number of the state


def clipped_ppo() -> tuple[Any, ...]:
    parameters = ClippedPPOAgentParameters()
    parameters.exploration = {DiscreteActionSpace: CategoricalParameters(), BoxActionSpace: AdditiveNoiseParameters()}
    return with_normalized_observations(small(parameters)), VECTOR, BOX


def clipped_ppo_with_state_dependent_noise() -> tuple[Any, ...]:
    return with_state_dependent_noise(small(ClippedPPOAgentParameters())), VECTOR, BOX


def discrete_clipped_ppo() -> tuple[Any, ...]:
    return small(ClippedPPOAgentParameters()), VECTOR, DISCRETE


def soft_actor_critic() -> tuple[Any, ...]:
    return small(SoftActorCriticAgentParameters()), VECTOR, BOX


AGENTS = [
    dqn,
    dueling_ddqn_from_frames,
    masked_dqn_of_several_observations,
    dqn_in_a_grid,
    policy_gradients,
    continuous_policy_gradients,
    actor_critic_with_lstm,
    clipped_ppo,
    clipped_ppo_with_state_dependent_noise,
    discrete_clipped_ppo,
    soft_actor_critic,
]


def build(parameters: Any, observations: dict[str, Any], action: Any, seed: int = 0) -> Any:
    """The agent in evaluation, at the start of an episode; its statistics have seen something."""
    parameters = copy.deepcopy(parameters)
    parameters.input_filter = parameters.input_filter or InputFilter()
    parameters.output_filter = parameters.output_filter or OutputFilter()
    agent = short_dynamic_import(parameters.path)(parameters)
    agent.seed(seed)
    state = StateSpace({name: copy.deepcopy(space) for name, space in observations.items()})
    agent.set_environment_parameters(SpacesDefinition(state, None, copy.deepcopy(action), RewardSpace(1)))
    rng = np.random.default_rng(seed)
    for network in agent.networks.values():
        weights = network.online_network.get_weights()
        network.online_network.set_weights([w + 0.5 * rng.normal(size=w.shape).astype(np.float32) for w in weights])
    if agent.pre_network_filter.observation_filters:
        column = rng.normal(2, 3, (50, *observations["observation"].shape))
        agent.pre_network_filter.filter_columns({"observation": column}, True)
    agent.phase = RunPhase.TEST
    agent.reset_internal_state()
    return agent


def observe(agent: Any, state: dict[str, np.ndarray]) -> None:
    agent.observe(EnvResponse(dict(state), 0.0, False))


def draw(observations: dict[str, Any], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One raw observation."""
    found: dict[str, np.ndarray] = {}
    for name, space in observations.items():
        if isinstance(space, ImageObservationSpace):
            found[name] = rng.integers(0, 256, tuple(space.shape), dtype=np.uint8)
        elif isinstance(space, ActionMaskSpace):
            found[name] = np.roll([1, 0, 1, 0], int(rng.integers(4))).astype(np.int8)
        else:
            found[name] = rng.normal(size=tuple(space.shape)).astype(np.float32)
    return found


ABOUT = {"preset": "a_preset", "framework": "tensorflow", "steps": 7}


def write(agent: Any, folder: pathlib.Path) -> pathlib.Path:
    """Write the agent's policy as a checkpoint carries it."""
    files = policy_export.policy_of(agent, dict(ABOUT))
    assert files is not None
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder
