import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.spaces import (
    ActionMaskSpace,
    ActionSpace,
    AgentSelection,
    AttentionActionSpace,
    BoxActionSpace,
    CompoundActionSpace,
    DiscreteActionSpace,
    GoalsSpace,
    GoalToRewardConversion,
    ImageObservationSpace,
    InverseDistanceFromGoal,
    MultiSelectActionSpace,
    ObservationSpace,
    OneHotObservationSpace,
    PlanarMapsObservationSpace,
    ReachingGoal,
    RewardSpace,
    Space,
    SpacesDefinition,
    StateSpace,
    TensorObservationSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

SAMPLED = {
    "bounded": lambda: Space(3, -1, 2),
    "unbounded": lambda: Space((2, 2)),
    "above": lambda: Space(2, low=5),
    "below": lambda: Space(2, high=-5),
    "mixed": lambda: Space(3, np.array([0, -np.inf, 1]), np.array([np.inf, np.inf, 2])),
    "scalar": lambda: Space(None, 0, 1),
    "image": lambda: ImageObservationSpace((4, 5, 3), 255),
    "box": lambda: BoxActionSpace(2, -1, np.array([1.0, 3.0])),
    "attention": lambda: AttentionActionSpace(2, 0, 84),
    "forced attention": lambda: AttentionActionSpace(2, 0, 84, forced_attention_size=10),
    "discrete": lambda: DiscreteActionSpace(5),
    "multi select": lambda: MultiSelectActionSpace(4, 2),
    "compound": lambda: CompoundActionSpace([DiscreteActionSpace(3), BoxActionSpace(2, -1, 1)]),
}
every_sampled = pytest.mark.parametrize("make", SAMPLED.values(), ids=SAMPLED.keys())


@every_sampled
@given(seed=st.integers(0, 2**32))
def test_samples_belong_to_their_space(make, seed):
    space = make()
    space.seed(seed)
    for _ in range(3):
        assert space.contains(space.sample())


def flat(samples):
    return [
        np.ravel(np.asarray(part, dtype=float)).tolist() for s in samples for part in (s if type(s) is list else [s])
    ]


@every_sampled
def test_a_seed_repeats_the_samples(make):
    first, second = make(), make()
    first.seed(3)
    second.seed(3)
    expected = flat([first.sample() for _ in range(4)])
    assert flat([second.sample() for _ in range(4)]) == expected


class TestSpace:
    def test_shapes(self):
        assert Space(3).shape.tolist() == [3] and Space((2, 3)).num_dimensions == 2
        assert Space((2, 3)).num_elements == 6 and repr(Space((2, 3))) == "Space(shape=(2, 3))"
        scalar = Space(None)
        assert scalar.num_dimensions == 0 and scalar.num_elements == 1 and scalar.contains(4.0)

    def test_bounds(self):
        space = Space(2, low=np.array([0, 1]), high=3)
        assert space.low.tolist() == [0, 1] and space.high.tolist() == [3, 3]
        assert Space(2, None, None).low.tolist() == [-np.inf] * 2
        with pytest.raises(ValueError, match="low 2 is above its high 1"):
            Space(2, 2, 1)
        with pytest.raises(ValueError, match=r"a bound of shape \(3,\) does not fit a space of shape \(2,\)"):
            Space(2, np.zeros(3), 1)

    def test_membership(self):
        space = Space(2, 0, np.array([1, 2]))
        assert space.contains([1, 2]) and space.val_matches_space_definition(np.zeros(2))
        assert not space.contains([1.5, 1]) and not space.contains([-0.1, 1])
        assert not space.contains(np.zeros(3)) and not space.contains(np.zeros((1, 2)))
        assert not space.contains([None, 1]) and not space.contains([np.nan, 1]) and not space.contains(["a", 1])

    def test_indices(self):
        image = Space((4, 5))
        assert image.is_point_in_space_shape([3, 4]) and not image.is_point_in_space_shape([4, 4])
        assert not image.is_point_in_space_shape([-1, 0]) and not image.is_point_in_space_shape([1])
        assert Space(3).is_valid_index(2) and not Space(3).is_valid_index(3)

    def test_samples_of_half_open_spaces_reach_out(self):
        space = Space(1, low=5)
        space.seed(0)
        samples = np.array([space.sample() for _ in range(500)])
        assert samples.mean() == pytest.approx(6, abs=0.2)

    def test_fresh_spaces_are_equal_by_their_attributes(self):
        first, second = vars(Space(2, 0, 1)), vars(Space(2, 0, 1))
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[name], second[name]) for name in first)


class TestObservationSpaces:
    def test_vectors_may_have_names(self):
        assert VectorObservationSpace(3).measurements_names == []
        assert VectorObservationSpace(3, measurements_names=["x", "y"]).measurements_names == ["x", "y"]
        with pytest.raises(ValueError, match="3 measurement names for a vector of 2 elements"):
            VectorObservationSpace(2, measurements_names=["x", "y", "z"])

    def test_planar_maps(self):
        maps = PlanarMapsObservationSpace((4, 84, 84), 0, 1, channels_axis=0)
        assert maps.channels == 4
        assert PlanarMapsObservationSpace((84, 84), 0, 1).channels == 1
        with pytest.raises(ValueError, match="three dimensions, or two for a single plane, not 4"):
            PlanarMapsObservationSpace((84, 84, 4, 4), 0, 1)
        with pytest.raises(ValueError, match="channels_axis 3 is not an axis"):
            PlanarMapsObservationSpace((84, 84, 4), 0, 1, 3)

    def test_images(self):
        image = ImageObservationSpace(np.array([84, 84, 3]), high=255)
        assert image.has_colors and image.low.max() == 0 and image.high.min() == 255
        assert not ImageObservationSpace((84, 84, 1), 255).has_colors
        assert not ImageObservationSpace((84, 84), 255).has_colors
        with pytest.raises(ValueError, match="images have 1, 3 or 4 channels, not 84: set channels_axis"):
            ImageObservationSpace((3, 84, 84), 255)

    def test_other_kinds(self):
        assert isinstance(TensorObservationSpace((1, 2, 3, 4)), ObservationSpace)
        assert RewardSpace(1, reward_success_threshold=195).reward_success_threshold == 195

    def test_states(self):
        state = StateSpace({"observation": VectorObservationSpace(3)})
        assert state.action_mask_name is None and "observation" in state and "mask" not in state
        state["mask"] = ActionMaskSpace(4)
        assert state.action_mask_name == "mask" and state["mask"].contains([0, 1, 1, 0])
        assert repr(state).startswith("StateSpace({'observation': VectorObservationSpace(shape=(3,))")

    def test_all_spaces_together(self):
        state, action, reward = StateSpace({}), DiscreteActionSpace(2), RewardSpace(1)
        spaces = SpacesDefinition(state, None, action, reward)
        assert (spaces.state, spaces.goal, spaces.action, spaces.reward) == (state, None, action, reward)


class TestDiscrete:
    def test_actions(self):
        space = DiscreteActionSpace(3, descriptions=["left", "right"])
        assert space.actions == [0, 1, 2] and space.default_action == 0
        assert space.get_description(1) == "right" and space.get_description(2) == "2"
        with pytest.raises(ValueError, match="action 3 does not exist"):
            space.get_description(3)
        assert DiscreteActionSpace(2, {0: "jump"}).get_description(0) == "jump"

    def test_membership(self):
        space = DiscreteActionSpace(3)
        assert space.contains(0) and space.contains(np.int64(2)) and space.val_matches_space_definition(1)
        assert not any(space.contains(value) for value in (-1, 3, 0.5, np.nan, [1], np.array([1]), None, "1", {}))

    def test_every_action_is_drawn_alike(self):
        space = DiscreteActionSpace(4)
        space.seed(0)
        counts = np.bincount([space.sample() for _ in range(2000)])
        assert counts.min() > 400
        assert space.sample_with_info().all_action_probabilities.tolist() == [0.25] * 4

    def test_agents_are_selected_by_number(self):
        assert AgentSelection(2).actions == [0, 1]


class TestBox:
    def test_clipping_and_range(self):
        box = BoxActionSpace(2, np.array([-1, -5]), np.array([2, 3]))
        assert box.clip_action_to_space(np.array([7, -7])).tolist() == [2, -5]
        assert box.max_abs_range.tolist() == [2, 5]
        assert box.sample_with_info().action.shape == (2,)

    def test_the_default_action_is_the_nearest_to_nothing(self):
        assert BoxActionSpace(2, np.array([-1, 3]), 5).default_action.tolist() == [0, 3]
        assert BoxActionSpace(1, -1, 1, default_action=np.array([0.5])).default_action.tolist() == [0.5]

    def test_actions_that_cannot_be_counted(self):
        with pytest.raises(NotImplementedError, match="of a BoxActionSpace cannot be counted"):
            list(BoxActionSpace(1).actions)
        assert BoxActionSpace(1).get_description(np.array([1.0])) == "[1.]"
        assert ActionSpace(1).clip_action_to_space(9) == 9


class TestAttention:
    def test_boxes(self):
        space = AttentionActionSpace(2, 0, np.array([84, 90]))
        assert space.contains([[0, 0], [84, 90]]) and not space.contains([[0, 0], [85, 90]])
        assert not space.contains([[0, 0]])
        clipped = space.clip_action_to_space([[-3, 5], [100, 100]])
        assert [corner.tolist() for corner in clipped] == [[0, 5], [84, 90]]
        assert [corner.tolist() for corner in space.default_action] == [[0, 0], [84, 90]]

    def test_a_forced_size(self):
        space = AttentionActionSpace(2, 0, 84, forced_attention_size=10)
        low, high = space.sample()
        np.testing.assert_allclose(high - low, 10)
        with pytest.raises(ValueError, match="forced_attention_size is larger than high - low"):
            AttentionActionSpace(2, 0, 84, forced_attention_size=85)

    def test_the_lower_corner_comes_first(self):
        space = AttentionActionSpace(2, 0, 84)
        low, high = space.sample()
        assert np.all(low <= high)


class TestMultiSelect:
    def test_subsets(self):
        space = MultiSelectActionSpace(3, 2)
        assert [action.tolist() for action in space.actions] == [
            [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1],
        ]  # fmt: skip
        assert space.num_actions == 7
        assert MultiSelectActionSpace(3, 2, allow_no_action_to_be_selected=False).num_actions == 6

    def test_descriptions(self):
        space = MultiSelectActionSpace(3, 2, descriptions=["jump", "run"])
        assert space.get_description([1, 1, 0]) == "jump + run"
        assert space.get_description([0, 0, 1]) == "2" and space.get_description([0, 0, 0]) == "no-op"

    def test_samples(self):
        info = MultiSelectActionSpace(3).sample_with_info()
        assert info.action.sum() <= 1 and info.all_action_probabilities.tolist() == [0.25] * 4

    def test_only_listed_subsets_belong(self):
        space = MultiSelectActionSpace(3, 1, allow_no_action_to_be_selected=False)
        assert space.contains([1, 0, 0])
        assert not any(space.contains(action) for action in ([1, 1, 0], [0, 0, 0], [0.5, 0, 0], [1, 0]))


class TestCompound:
    space = CompoundActionSpace([DiscreteActionSpace(2, ["stay", "go"]), BoxActionSpace(1, -1, 1)])

    def test_one_action_of_each(self):
        assert self.space.contains([1, [0.5]]) and not self.space.contains([2, [0.5]])
        assert not self.space.contains([1])
        assert self.space.val_matches_space_definition([0, np.array([0.0])])
        assert self.space.get_description([1, np.array([0.5])]) == "go, [0.5]"
        clipped = self.space.clip_action_to_space([1, np.array([7.0])])
        assert clipped[0] == 1 and clipped[1].tolist() == [1]
        assert self.space.default_action[0] == 0 and self.space.default_action[1].tolist() == [0]


class TestGoals:
    def goals(self, metric=GoalsSpace.DistanceMetric.Euclidean, reward=None):
        space = GoalsSpace("achieved_goal", reward or ReachingGoal(0.5, default_reward=-1), metric)
        space.set_target_space(VectorObservationSpace(2, -10, np.array([5, 20])))
        return space

    def test_it_takes_the_shape_and_bounds_of_its_target(self):
        space = self.goals()
        assert space.shape.tolist() == [2] and space.high.tolist() == [5, 20]
        assert space.max_abs_range.tolist() == [10, 20] and space.default_action.tolist() == [0, 0]
        assert isinstance(space, (VectorObservationSpace, ActionSpace)) and space.contains(space.sample())

    @pytest.mark.parametrize(
        "metric, distance",
        [
            (GoalsSpace.DistanceMetric.Euclidean, 5),
            (GoalsSpace.DistanceMetric.Manhattan, 7),
            (lambda goal, reached: np.max(np.abs(goal - reached)), 4),
        ],
    )
    def test_distances(self, metric, distance):
        state = {"achieved_goal": np.array([[1.0, 2.0]])}
        assert self.goals(metric).distance_from_goal(np.array([4.0, 6.0]), state) == pytest.approx(distance)

    def test_cosine_distance(self):
        space = self.goals(GoalsSpace.DistanceMetric.Cosine)

        def distance(goal, reached):
            return space.distance_from_goal(np.array(goal), {"achieved_goal": np.array(reached)})

        assert distance([1.0, 0.0], [5.0, 0.0]) == pytest.approx(0)
        assert distance([1.0, 0.0], [0.0, 2.0]) == pytest.approx(1)
        assert distance([1.0, 0.0], [-3.0, 0.0]) == pytest.approx(2)
        assert np.isfinite(distance([0.0, 0.0], [1.0, 0.0]))

    def test_an_unknown_metric_is_refused(self):
        with pytest.raises(CoachError, match="'near' is not a"):
            self.goals("near").distance_from_goal(np.zeros(2), {"achieved_goal": np.zeros(2)})

    def test_rewards(self):
        state = {"achieved_goal": np.array([1.0, 2.0])}
        assert self.goals().get_reward_for_goal_and_state(np.array([1.0, 2.4]), state) == (0, True)
        assert self.goals().get_reward_for_goal_and_state(np.array([1.0, 4.0]), state) == (-1, False)
        inverse = self.goals(reward=InverseDistanceFromGoal(0.1, max_reward=3))
        reward, reached = inverse.get_reward_for_goal_and_state(np.array([1.0, 4.0]), state)
        assert reward == pytest.approx(0.5) and not reached
        assert inverse.get_reward_for_goal_and_state(np.array([1.0, 2.0]), state) == (3, True)

    def test_a_threshold_for_each_element(self):
        reaching = ReachingGoal(np.array([1.0, 0.1]), goal_reaching_reward=5)
        assert reaching.convert_distance_to_reward(np.array([0.5, 0.05])) == (5, True)
        assert reaching.convert_distance_to_reward(np.array([0.5, 0.5])) == (-1, False)
        with pytest.raises(NotImplementedError):
            GoalToRewardConversion().convert_distance_to_reward(1.0)


def test_numbers_as_one_hot_vectors():
    space = OneHotObservationSpace(np.array([2, 3]), np.array([0, 5]), (2,))
    assert tuple(space.shape) == (5,)
    np.testing.assert_array_equal(space.encode([1, 6]), [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(space.encode([[0, 5], [1, 7]]), [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1]])
    single = OneHotObservationSpace(np.array([3]), np.array([-1]), ())
    np.testing.assert_array_equal(single.encode(-1), [1, 0, 0])
    np.testing.assert_array_equal(single.encode([0, 1]), [[0, 1, 0], [0, 0, 1]])
    assert space.contains(space.encode([1, 6])) and single.contains(single.encode(1))


@pytest.mark.parametrize(("numbers", "fits"), [([1, 7], True), ([2, 5], False), ([0, 4], False), ([0.5, 5], False)])
def test_numbers_outside_their_range_cannot_be_encoded(numbers, fits):
    space = OneHotObservationSpace(np.array([2, 3]), np.array([0, 5]), (2,))
    assert space.can_encode(np.asarray(numbers)) is fits
    assert space.can_encode(np.asarray([[0, 5], numbers])) is fits
