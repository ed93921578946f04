import copy
import json
from enum import Enum

import pytest

from rl_coach.base_parameters import (
    AgentParameters,
    AlgorithmParameters,
    Device,
    DeviceType,
    DistributedTaskParameters,
    Frameworks,
    NetworkComponentParameters,
    NetworkParameters,
    Parameters,
    PresetValidationParameters,
    RunType,
    TaskParameters,
    VisualizationParameters,
    iterable_to_items,
    unfold_dict_or_list,
)
from rl_coach.core_types import EnvironmentSteps
from rl_coach.filters.filter import NoInputFilter
from rl_coach.schedules import LinearSchedule
from rl_coach.utils import CoachError


class Base(Parameters):
    def __init__(self):
        self.learning_rate = 0.1


class Derived(Base):
    def __init__(self):
        super().__init__()
        self.discount = 0.99  # new attributes are allowed until the whole __init__ chain has run


class TestParameters:
    def test_a_typing_mistake_is_an_error_that_suggests_the_right_name(self):
        with pytest.raises(TypeError, match="Derived has no parameter 'learning_rte'; did you mean 'learning_rate'"):
            Derived().learning_rte = 3
        with pytest.raises(TypeError, match=r"no parameter 'xyz'; register_var\(\) adds a new one"):
            Derived().xyz = 3

    def test_what_exists_can_be_set(self):
        parameters = Derived()
        parameters.discount = 0.5
        parameters.learning_rate = 3
        assert (parameters.discount, parameters.learning_rate) == (0.5, 3)

    def test_a_new_parameter_can_be_registered(self):
        parameters = Base()
        parameters.register_var("mine", 1)
        parameters.mine = 2
        assert parameters.mine == 2

    def test_a_copy_is_as_strict(self):
        duplicate = copy.deepcopy(Base())
        assert duplicate.learning_rate == 0.1
        with pytest.raises(TypeError, match="no parameter"):
            duplicate.learning_rte = 3

    def test_what_it_is_for_must_be_said(self):
        with pytest.raises(NotImplementedError, match="Base does not say which class"):
            str(Base().path)

    def test_it_shows_its_values(self):
        assert str(Base()) == '"Base"\n    learning_rate: 0.1'


def agent_parameters():
    return AgentParameters(AlgorithmParameters(), None, None, {"main": NetworkParameters()})


class TestDefaults:
    def test_two_objects_share_nothing(self):
        first, second = NetworkParameters(), NetworkParameters()
        assert first.input_embedders_parameters is not second.input_embedders_parameters
        assert first.heads_parameters is not second.heads_parameters
        assert agent_parameters().visualization is not agent_parameters().visualization
        assert agent_parameters().pre_network_filter is not agent_parameters().pre_network_filter

    def test_agents(self):
        parameters = agent_parameters()
        assert parameters.input_filter is None and parameters.output_filter is None
        assert isinstance(parameters.pre_network_filter, NoInputFilter)

    def test_parameters_of_no_agent_say_what_to_give_them(self):
        with pytest.raises(CoachError, match="AgentParameters names no agent: give it a property 'path'"):
            _ = agent_parameters().path

    def test_the_older_name_of_the_dump_filters(self):
        parameters = VisualizationParameters(video_dump_methods=["a"])
        assert parameters.video_dump_filters == ["a"] == parameters.video_dump_methods
        parameters.video_dump_methods = ["b"]
        assert parameters.video_dump_filters == ["b"]

    def test_the_older_name_of_the_checkpoint(self):
        assert TaskParameters(checkpoint_restore_dir="old").checkpoint_restore_path == "old"
        assert TaskParameters(checkpoint_restore_path="new").checkpoint_restore_path == "new"
        assert TaskParameters().checkpoint_restore_path is None
        with pytest.raises(TypeError, match="did you mean 'checkpoint_restore_path'"):
            TaskParameters().checkpoint_restore_dir = "old"

    def test_distributed_tasks_are_tasks(self):
        task = DistributedTaskParameters(
            Frameworks.tensorflow, "host:1", "host:2,host:3", "worker", 1, num_tasks=2, seed=7
        )
        assert (task.task_index, task.num_tasks, task.seed, task.framework_type) == (1, 2, 7, Frameworks.tensorflow)
        assert isinstance(task, TaskParameters)

    def test_presets_without_a_test(self):
        assert PresetValidationParameters().test is False

    def test_names_for_people(self):
        assert str(RunType.ROLLOUT_WORKER) == "rollout-worker"
        assert repr(Device(DeviceType.GPU, 1)) == "gpu1"


class TestUnfolding:
    def test_plain_data_is_what_json_holds(self):
        class Colour(Enum):
            Red = 1

        network = NetworkParameters(
            learning_rate=LinearSchedule(1, 0, 5),
            heads_parameters=[NetworkComponentParameters(int)],
            input_embedders_parameters={"observation": NetworkComponentParameters(None)},
        )
        unfolded = unfold_dict_or_list({1: network, "colour": Colour.Red, "steps": (EnvironmentSteps(3), None)})
        assert json.loads(json.dumps(unfolded)) == unfolded
        assert unfolded["1"]["__class__"] == "NetworkParameters"
        assert unfolded["1"]["learning_rate"]["decay_steps"] == 5
        assert unfolded["1"]["heads_parameters"][0]["dense_layer"] == str(int)
        assert unfolded["colour"] == "Colour.Red"
        assert unfolded["steps"][1] is None

    def test_items(self):
        assert list(iterable_to_items({"a": 1})) == [("a", 1)]
        assert list(iterable_to_items([5, 6])) == [(0, 5), (1, 6)]
        with pytest.raises(ValueError, match="a int has no items"):
            iterable_to_items(3)
