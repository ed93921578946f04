"""What kind of input a space is, how an embedder scales it, and in which order embeddings are merged."""

from __future__ import annotations

import numpy as np
import pytest

from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.network_inputs import NetworkInput, embed_what_is_there, embedded_names
from rl_coach.base_parameters import EmbedderScheme, NetworkParameters
from rl_coach.spaces import (
    ActionMaskSpace,
    DiscreteActionSpace,
    ObservationSpace,
    PlanarMapsObservationSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError


def spaces(goal: ObservationSpace | None = None) -> SpacesDefinition:
    state = {
        "observation": VectorObservationSpace(4),
        "camera": PlanarMapsObservationSpace(np.array([8, 6, 3]), 0, 255),
        "table": TensorObservationSpace(np.array([2, 3]), 0, 1),
    }
    return SpacesDefinition(StateSpace(state), goal, DiscreteActionSpace(3), RewardSpace(1))


def network_parameters(**embedders) -> NetworkParameters:
    parameters = NetworkParameters()
    parameters.input_embedders_parameters = embedders
    return parameters


@pytest.mark.parametrize(
    ("name", "shape", "kind"),
    [
        ("observation", (4,), "vector"),
        ("camera", (8, 6, 3), "image"),
        ("table", (2, 3), "tensor"),
        ("goal", (2,), "vector"),
    ],
)
def test_an_input_is_told_by_its_space(name, shape, kind):
    assert NetworkInput.named(name, spaces(goal=VectorObservationSpace(2)), "main") == NetworkInput(shape, kind)


def test_a_plane_without_channels_is_no_image_for_a_network():
    with_plane = spaces()
    with_plane.state["plane"] = PlanarMapsObservationSpace(np.array([8, 6]), 0, 255)
    assert NetworkInput.named("plane", with_plane, "main").kind == "tensor"


def test_a_scheme_is_refused_for_stacked_images_of_colours():
    stacked = NetworkInput((8, 6, 3, 4), "tensor")
    with pytest.raises(
        CoachError, match=r"shape \(8, 6, 3, 4\) cannot have the scheme Medium: .* ObservationRGBToYFilter"
    ):
        stacked.layers(InputEmbedderParameters(scheme=EmbedderScheme.Medium))
    assert stacked.layers(InputEmbedderParameters(scheme=EmbedderScheme.Empty)) == []


def test_each_observation_gets_an_embedder_where_none_has_one(caplog):
    those = spaces()
    del those.state.sub_spaces["observation"]
    those.state["mask"] = ActionMaskSpace(3)
    tanh, of_action = InputEmbedderParameters(activation_function="tanh"), InputEmbedderParameters()
    networks = {
        "main": network_parameters(observation=tanh),
        "q": network_parameters(observation=tanh, action=of_action),
        "seeing": network_parameters(camera=tanh, action=of_action),
    }
    embed_what_is_there(networks, those)
    assert list(networks["main"].input_embedders_parameters) == ["camera", "table"]
    camera, table = networks["main"].input_embedders_parameters.values()
    assert camera is not table and camera.activation_function == table.activation_function == "tanh"
    assert list(networks["q"].input_embedders_parameters) == ["camera", "table", "action"]
    assert list(networks["seeing"].input_embedders_parameters) == ["camera", "action"]
    assert caplog.records[0].getMessage() == (
        "network 'main' embeds 'observation', but the environment has no such observation: each observation of the "
        "environment gets an embedder: 'camera' (image of 8 x 6, which is small: scheme Shallow), 'table' (tensor)"
    )
    embed_what_is_there(networks, those)
    assert len(caplog.records) == 2


@pytest.mark.parametrize(("side", "scheme"), [(2, "Shallow"), (7, "Shallow"), (35, "Shallow"), (36, "Medium")])
def test_an_image_that_is_too_small_gets_a_small_scheme(side, scheme, caplog):
    """Kernels of 8, 4 and 3 with strides of 4, 2 and 1 need 36 rows."""
    those = spaces()
    those.state.sub_spaces.clear()
    those.state["image"] = PlanarMapsObservationSpace(np.array([side, 40, 3]), 0, 255)
    networks = {"main": network_parameters(observation=InputEmbedderParameters(activation_function="tanh"))}
    embed_what_is_there(networks, those)
    (embedder,) = networks["main"].input_embedders_parameters.values()
    assert embedder.scheme is EmbedderScheme[scheme] and embedder.activation_function == "tanh"
    said = f"'image' (image of {side} x 40, which is small: scheme Shallow)"
    assert caplog.records[0].getMessage().endswith(said if scheme == "Shallow" else "'image' (image)")


@pytest.mark.parametrize(
    ("name", "advice"),
    [("camra", "; did you mean 'camera'"), ("goal", "; choose from 'observation', 'camera', 'table', 'action'")],
)
def test_an_input_that_there_is_not(name, advice):
    with pytest.raises(CoachError, match=f"network 'main' embeds '{name}', but no observation has this name{advice}"):
        NetworkInput.named(name, spaces(), "main")


def test_a_goal_is_among_the_inputs_to_choose_from():
    with_goal = spaces()
    with_goal.goal = VectorObservationSpace(2)
    with pytest.raises(CoachError, match="choose from 'observation', 'camera', 'table', 'goal', 'action'"):
        NetworkInput.named("nothing_like_it", with_goal, "main")


def test_an_input_is_divided_then_offset_then_clipped():
    embedder = InputEmbedderParameters(
        input_rescaling={"vector": 2.0}, input_offset={"vector": 1.0}, input_clipping=(-0.5, 2.0)
    )
    x = np.array([[0.0, 2.0, 4.0, 10.0]])
    np.testing.assert_array_equal(NetworkInput((4,), "vector").normalized(np, x, embedder), [[-0.5, 0.0, 1.0, 2.0]])
    np.testing.assert_array_equal(NetworkInput((4,), "tensor").normalized(np, x, embedder), [[0.0, 2.0, 2.0, 2.0]])


def test_only_images_are_scaled_unless_the_embedder_says_more():
    x, embedder = np.array([[51.0]]), InputEmbedderParameters()
    assert NetworkInput((1,), "image").normalized(np, x, embedder) == 51 / 255
    assert NetworkInput((1,), "vector").normalized(np, x, embedder) is x


def test_embeddings_are_merged_in_the_order_of_their_names():
    parameters = network_parameters(goal=InputEmbedderParameters(), camera=InputEmbedderParameters())
    assert embedded_names(parameters, "main") == ["camera", "goal"]


def test_a_network_without_inputs():
    with pytest.raises(CoachError, match="network 'main' has no inputs"):
        embedded_names(network_parameters(), "main")
