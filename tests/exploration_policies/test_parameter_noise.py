import sys
import types

import numpy as np
import pytest

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.dqn_agent import DQNAlgorithmParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.base_parameters import NetworkComponentParameters, NetworkParameters
from rl_coach.exploration_policies.parameter_noise import ParameterNoise, ParameterNoiseParameters
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace, MultiSelectActionSpace
from rl_coach.utils import CoachError


class FakeNoisyNetDense:
    pass


@pytest.fixture(autouse=True)
def layers(monkeypatch):
    """Stands in for the module of layers, which needs a framework."""
    module = types.ModuleType("rl_coach.architectures.layers")
    module.NoisyNetDense = FakeNoisyNetDense
    monkeypatch.setitem(sys.modules, "rl_coach.architectures.layers", module)
    if "rl_coach.architectures" not in sys.modules:
        package = types.ModuleType("rl_coach.architectures")
        package.__path__ = []
        monkeypatch.setitem(sys.modules, "rl_coach.architectures", package)


def networks():
    return {
        "main": NetworkParameters(
            input_embedders_parameters={"observation": NetworkComponentParameters(None)},
            middleware_parameters=NetworkComponentParameters(None),
            heads_parameters=[NetworkComponentParameters(None), NetworkComponentParameters(None)],
        ),
        "without_middleware": NetworkParameters(),
    }


def test_all_dense_layers_become_noisy():
    network_params = networks()
    ParameterNoise(network_params, DiscreteActionSpace(3))
    main = network_params["main"]
    parts = [main.input_embedders_parameters["observation"], main.middleware_parameters, *main.heads_parameters]
    assert all(part.dense_layer is FakeNoisyNetDense for part in parts)


def test_it_acts_greedily():
    discrete = ParameterNoise(networks(), DiscreteActionSpace(3))
    assert discrete.get_action(np.array([0.0, 2.0, 1.0]))[0] == 1
    assert discrete.get_action(np.array([0.0, 2.0, 1.0]), np.array([1, 0, 1]))[0] == 2
    assert discrete.get_control_param() == 0
    box = ParameterNoise(networks(), BoxActionSpace(2, -1, 1))
    assert box.get_action([np.array([[0.1, 0.2]]), np.array([[1.0, 1.0]])]).tolist() == [0.1, 0.2]


def test_other_spaces_are_refused():
    with pytest.raises(CoachError, match="ParameterNoise cannot explore MultiSelectActionSpace"):
        ParameterNoise(networks(), MultiSelectActionSpace(3))


def test_parameters_take_the_agents_networks():
    agent_params = types.SimpleNamespace(algorithm=DQNAlgorithmParameters(), network_wrappers=networks())
    parameters = ParameterNoiseParameters(agent_params)
    assert parameters.network_params is agent_params.network_wrappers
    assert parameters.path == "rl_coach.exploration_policies.parameter_noise:ParameterNoise"


@pytest.mark.parametrize(
    "make", [ClippedPPOAgentParameters, ActorCriticAgentParameters, SoftActorCriticAgentParameters]
)
def test_agents_that_weigh_what_was_played_by_its_probability_are_refused(make):
    with pytest.raises(CoachError, match=f"ParameterNoiseParameters does not work with {make.__name__}"):
        ParameterNoiseParameters(make())
