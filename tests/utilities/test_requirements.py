"""Parameters out of range, of the wrong kind or too large are refused when the graph is made, each by its path."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest

import rl_coach
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.dqn_agent import DQNAgent, DQNAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.initializers import Orthogonal
from rl_coach.architectures.layers import Conv2d, Dense
from rl_coach.base_parameters import (
    AgentParameters,
    AlgorithmParameters,
    Parameters,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.command_line import preset_catalogue
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, Frames, TrainingSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule
from rl_coach.graph_managers.memory_requirements import MemoryUse, total_memory, unmet_by
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule, LinearSchedule, PieceWiseSchedule
from rl_coach.spaces import DiscreteActionSpace, SpacesDefinition, StateSpace, VectorObservationSpace
from rl_coach.utilities.errors import refuse
from rl_coach.utilities.requirements import check, check_arguments, constraints_of, number, whole
from rl_coach.utils import CoachError

MAIN = "agent_params.network_wrappers['main']"
EMBEDDER = f"{MAIN}.input_embedders_parameters['observation']"


def graph_of(agent: AgentParameters) -> BasicRLGraphManager:
    return BasicRLGraphManager(agent, GymVectorEnvironment("CartPole-v1"), SimpleSchedule(), VisualizationParameters())


def put(graph: BasicRLGraphManager, path: str, value: object) -> None:
    exec(f"graph.{path} = value", {"graph": graph, "value": value})


@pytest.mark.parametrize(
    ("path", "value", "allowed"),
    [
        ("agent_params.algorithm.discount", 1.2, "a number from 0 to 1"),
        ("agent_params.algorithm.discount", math.nan, "a number from 0 to 1"),
        ("agent_params.algorithm.discount", "0.9", "a number from 0 to 1"),
        ("agent_params.algorithm.discount", None, "a number from 0 to 1"),
        ("agent_params.algorithm.num_consecutive_playing_steps", 4, r"EnvironmentSteps\(n\) or .* from 0"),
        ("agent_params.algorithm.num_consecutive_playing_steps", Frames(4), "EnvironmentSteps"),
        ("agent_params.algorithm.num_consecutive_playing_steps", EnvironmentSteps(-1), "EnvironmentSteps"),
        (
            "agent_params.algorithm.num_steps_between_copying_online_weights_to_target",
            Frames(4),
            r"EnvironmentSteps\(n\) or .* or .* with n from 0",
        ),
        ("agent_params.algorithm.num_consecutive_training_steps", 0, "a whole number from 1"),
        ("agent_params.algorithm.rate_for_copying_weights_to_target", -0.1, "a number from 0 to 1"),
        ("agent_params.algorithm.n_step", 0, "a whole number from 1 or -1"),
        ("agent_params.algorithm.act_for_full_episodes", "no", "True or False"),
        (f"{MAIN}.batch_size", 0, "a whole number from 1"),
        (f"{MAIN}.batch_size", 32.5, "a whole number from 1"),
        (f"{MAIN}.batch_size", True, "a whole number from 1"),
        (f"{MAIN}.learning_rate", -1e-3, "a number from 0 or a schedule of numbers from 0"),
        (f"{MAIN}.learning_rate", math.inf, "a number from 0 or a schedule"),
        (f"{MAIN}.learning_rate", LinearSchedule(1e-3, -1e-3, 100), "a number from 0 or a schedule"),
        (f"{MAIN}.clip_gradients", -1, "None or a number from 0"),
        (f"{MAIN}.adam_optimizer_beta1", 1.0, "a number from 0 below 1"),
        (f"{MAIN}.optimizer_type", "Adamm", "Adam, LaProp, RMSProp or SGD"),
        (f"{MAIN}.softmax_temperature", 0, "a number above 0"),
        (f"{MAIN}.heads_parameters[0].num_output_head_copies", 0, "a whole number from 1"),
        (f"{MAIN}.middleware_parameters.scheme", [Dense(64), Dense(0)], "a whole number from 1"),
        (f"{MAIN}.middleware_parameters.scheme", 64, r"Scheme\.Deep or a list, each item a layer such as Dense"),
        (f"{MAIN}.middleware_parameters.dropout_rate", 1, "a number from 0 below 1"),
        (f"{EMBEDDER}.scheme", {64}, r"EmbedderScheme\.Deep or a list, each item a layer such as Dense\(64\)"),
        (f"{EMBEDDER}.activation_function", 3, "None or a text"),
        (f"{EMBEDDER}.input_rescaling", {"vector": None}, "a dictionary by kind of input, each value a number above 0"),
        (f"{EMBEDDER}.input_rescaling", {"vector": 0}, "each value a number above 0"),
        (f"{EMBEDDER}.input_offset", {"vector": [1]}, "a dictionary by kind of input, each value a number"),
        (f"{EMBEDDER}.input_offset", 0.5, "a dictionary by kind of input"),
        ("agent_params.exploration.epsilon_schedule", 0.1, "a schedule of numbers from 0 to 1, such as LinearSchedule"),
        ("agent_params.exploration.epsilon_schedule", LinearSchedule(1.5, 0.1, 100), "a schedule of numbers from 0 to"),
        ("agent_params.exploration.evaluation_epsilon", 2, "a number from 0 to 1"),
        ("agent_params.memory.max_size", 1000, "a pair such as"),
        ("agent_params.memory.max_size", (MemoryGranularity.Transitions, 0), "then a whole number from 1"),
        ("env_params.frame_skip", 0, "a whole number from 1"),
        ("env_params.target_success_rate", 90, "a number from 0 to 1"),
        ("env_params.num_environments", 1.5, "a whole number from 1"),
        ("env_params.vectorization", "threads", "sync, async or native"),
        ("env_params.random_initialization_steps", -1, "a whole number from 0"),
        ("visualization_parameters.dump_signals_to_csv_every_x_episodes", 0, "a whole number from 1"),
        ("checkpoints_to_keep", -1, "a whole number from 0"),
        ("heatup_steps", TrainingSteps(5), "EnvironmentSteps"),
        ("improve_steps", 1000, "EnvironmentSteps"),
        ("evaluation_steps", EnvironmentEpisodes(-1), "EnvironmentSteps"),
        ("steps_between_evaluation_periods", TrainingSteps(0), r"TrainingSteps\(n\) with n from 1"),
    ],
)
def test_it_is_refused_by_its_path(tmp_path, path, value, allowed):
    graph = graph_of(DQNAgentParameters())
    put(graph, path, value)
    shown = "scheme[1].units is 0" if isinstance(value, list) else f"{path} is "
    with pytest.raises(CoachError, match=allowed) as caught:
        graph.create_graph(TaskParameters(experiment_path=str(tmp_path)))
    assert shown in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("layer", "shown"), [(Conv2d(8, [3, 5], 1), "kernel_size"), (Conv2d(8, 3, [2, 1]), "strides")])
def test_a_convolution_has_one_size_for_both_axes(tmp_path, layer, shown):
    graph = graph_of(DQNAgentParameters())
    put(graph, f"{EMBEDDER}.scheme", [layer])
    with pytest.raises(CoachError, match=rf"scheme\[0\].{shown} is .*; it must be a whole number from 1"):
        graph.create_graph(TaskParameters(experiment_path=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "value"), [("checkpoint_save_steps", 0), ("checkpoint_keep", -1), ("num_threads", 0)])
def test_of_the_task(tmp_path, name, value):
    task = TaskParameters(experiment_path=str(tmp_path), **{name: value})
    with pytest.raises(
        CoachError, match=rf"task_parameters\.{name} is {value}; it must be None or a whole number from"
    ):
        graph_of(DQNAgentParameters()).create_graph(task)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("agent_params.algorithm.discount", np.float32(0.5)),
        ("agent_params.algorithm.num_steps_between_copying_online_weights_to_target", TrainingSteps(50000 / 128)),
        ("agent_params.algorithm.num_consecutive_playing_steps", EnvironmentSteps(0)),
        (f"{MAIN}.batch_size", np.int64(16)),
        (f"{MAIN}.clip_gradients", math.inf),
        (f"{MAIN}.optimizer_type", "adam"),
        (f"{MAIN}.learning_rate", LinearSchedule(1e-3, 0, 10)),
        (f"{MAIN}.heads_parameters[0].rescale_gradient_from_head_by_factor", [1]),
        (
            "agent_params.exploration.epsilon_schedule",
            PieceWiseSchedule([(ConstantSchedule(1), EnvironmentSteps(5)), (ConstantSchedule(0), EnvironmentSteps(5))]),
        ),
        ("env_params.custom_reward_threshold", math.inf),
        ("visualization_parameters.render", 0),
        ("checkpoints_to_keep", 0),
    ],
)
def test_what_worked_before_is_allowed(path, value):
    graph = graph_of(DQNAgentParameters())
    put(graph, path, value)
    check(graph)


@pytest.mark.parametrize("preset", preset_catalogue.list_all_presets())
def test_presets_are_allowed(preset):
    graph = preset_catalogue.load(preset)
    check(graph)


class _Explorer(AlgorithmParameters):
    constraints = {"curiosity": whole(2)}

    def __init__(self):
        super().__init__()
        self.curiosity = 3


def test_a_users_class_inherits_and_adds():
    agent = DQNAgentParameters()
    agent.algorithm = _Explorer()
    check(graph_of(agent))
    agent.algorithm.discount = 2
    with pytest.raises(CoachError, match=r"agent_params\.algorithm\.discount is 2"):
        check(graph_of(agent))
    agent.algorithm.discount, agent.algorithm.curiosity = 0.5, 1
    with pytest.raises(CoachError, match=r"algorithm\.curiosity is 1; it must be a whole number from 2"):
        check(graph_of(agent))


class _Range(AlgorithmParameters):
    constraints = {"low": whole(0), "high": whole(0)}

    def __init__(self):
        super().__init__()
        self.low, self.high = 1, 2

    def unmet(self):
        if self.low >= self.high:
            yield f"low is {self.low}; it must be below high, which is {self.high}"


def test_what_settings_require_of_each_other_is_checked_after_each_of_them():
    agent = DQNAgentParameters()
    agent.algorithm = _Range()
    check(graph_of(agent))
    agent.algorithm.low = 2
    with pytest.raises(CoachError, match=r"^agent_params\.algorithm\.low is 2; it must be below high, which is 2$"):
        check(graph_of(agent))
    agent.network_wrappers["main"].batch_size = 0
    with pytest.raises(CoachError, match="batch_size is 0"):
        check(graph_of(agent))


def test_an_agent_without_a_graph_is_checked_too():
    parameters = DQNAgentParameters()
    parameters.algorithm.discount = 2
    agent = DQNAgent(parameters)
    with pytest.raises(CoachError, match=r"^agent\.algorithm\.discount is 2; it must be a number from 0 to 1$"):
        agent.set_environment_parameters(
            SpacesDefinition(StateSpace({"observation": VectorObservationSpace(4)}), None, DiscreteActionSpace(2), None)
        )


def test_arguments_are_checked_by_the_constraints_of_the_settings():
    check_arguments(_Range, "it", low=3)
    with pytest.raises(CoachError, match=r"^it\.low is -1; it must be a whole number from 0$"):
        check_arguments(_Range, "it", low=-1)


def test_a_whole_number_beyond_all_floats_is_not_a_number():
    assert not number().holds(10**400)


def test_an_exploration_for_each_kind_of_action():
    agent = ClippedPPOAgentParameters()
    parameters = next(p for space, p in agent.exploration.items() if space.__name__ == "BoxActionSpace")
    parameters.evaluation_noise = -1
    with pytest.raises(CoachError, match=r"agent_params\.exploration\[BoxActionSpace\]\.evaluation_noise is -1"):
        check(graph_of(agent))


@pytest.mark.parametrize("gain", ["x", 0, -1, float("nan"), True, None])
def test_the_gain_of_initial_weights(gain):
    agent = DQNAgentParameters()
    network = agent.network_wrappers["main"]
    network.initial_weights = Orthogonal(gain=0.5)
    check(graph_of(agent))
    network.heads_parameters[0].initial_weights = Orthogonal(gain=gain)
    where = r"heads_parameters\[0\]\.initial_weights\.gain is .*; it must be a number above 0$"
    with pytest.raises(CoachError, match=where):
        check(graph_of(agent))


def test_a_number_where_a_schedule_stands_in_a_memory():
    agent = DQNAgentParameters()
    agent.memory = PrioritizedExperienceReplayParameters()
    agent.memory.beta = 0.4
    with pytest.raises(CoachError, match=r"agent_params\.memory\.beta is 0\.4; it must be a schedule"):
        check(graph_of(agent))


# chosen among classes, filled in by the graph, or checked where they are used
_FREE = {
    "parameterized_class_name", "output_bias_initializer", "initializer", "head",
    "in_action_space", "load_memory_from_file_path", "framework", "sess", "middleware_parameters", "action_space",
    "observation_space",
    "exploration", "memory",
    "task_parameters", "max_size", "experiment_path", "level", "default_input_filter", "default_output_filter",
    "checkpoint_restore_path", "checkpoint_save_dir", "trace_test_levels", "network_params", "normalization_stats",
    "continuous_exploration_policy_parameters", "clip_low", "clip_high", "state_key_with_the_class_index",
    "parameters_server_hosts", "worker_hosts", "job_type", "num_tasks", "num_training_tasks", "device",
    "worker_target", "dnd", "shared_memory_scratchpad", "heatup_steps", "evaluation_steps", "improve_steps",
    "steps_between_evaluation_periods", "rescale_gradient_from_head_by_factor", "blueprint", "initial_weights",
    "kept", "trained", "experiment_suite",
}  # fmt: skip


def _parameter_classes() -> list[type[Parameters]]:
    rooms = ("agents", "architectures", "environments", "exploration_policies", "graph_managers", "memories")
    for room in rooms:
        package = importlib.import_module(f"rl_coach.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "_components" not in module.name and ".robosuite." not in module.name:  # tasks, which robosuite imports
                importlib.import_module(module.name)
    found, todo = [], [Parameters]
    while todo:
        cls = todo.pop()
        found.append(cls)
        todo += [sub for sub in cls.__subclasses__() if sub.__module__.startswith(rl_coach.__name__)]
    return found


def _example(cls: type[Parameters]) -> Parameters | None:
    """One with all defaults, None where an argument has none."""
    arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return None if any(a.default is a.empty and a.kind is a.POSITIONAL_OR_KEYWORD for a in arguments) else cls()


def test_every_parameter_has_a_constraint_that_its_default_meets():
    left, unmet = set(), set()
    for cls in _parameter_classes():
        example = _example(cls)
        constraints = constraints_of(cls)
        for name, value in vars(example).items() if example is not None else ():
            if name.startswith("_"):
                continue
            if name in constraints:
                if value is not None and not constraints[name].holds(value):
                    unmet.add(f"{cls.__name__}.{name}")
            elif name not in _FREE:
                left.add(f"{cls.__name__}.{name}")
    assert (left, unmet - {"BalancedExperienceReplayParameters.num_classes"}) == (set(), set())


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (f"{MAIN}.batch_size", 10**12, f"{MAIN}.batch_size is 1000000000000"),
        (
            f"{MAIN}.middleware_parameters.scheme",
            [Dense(10**6), Dense(10**7)],
            f"{MAIN}.middleware_parameters.scheme[1]",
        ),
        ("agent_params.algorithm.num_consecutive_training_steps", 10**11, "num_consecutive_training_steps is 1000"),
        ("agent_params.memory.max_size", (MemoryGranularity.Transitions, 10**14), "agent_params.memory.max_size is"),
    ],
)
def test_what_cannot_fit_into_memory_is_refused_before_it_is_made(tmp_path, path, value, named):
    graph = graph_of(DQNAgentParameters())
    put(graph, path, value)
    with pytest.raises(CoachError, match="of memory; this machine has") as caught:
        graph.create_graph(TaskParameters(experiment_path=str(tmp_path)))
    assert str(caught.value).startswith(named) or named in str(caught.value)


def test_a_large_memory_that_a_short_run_does_not_fill(tmp_path):
    graph = graph_of(DQNAgentParameters())
    graph.agent_params.memory.max_size = (MemoryGranularity.Transitions, 10**14)
    graph.heatup_steps, graph.improve_steps = EnvironmentSteps(10), EnvironmentSteps(100)
    graph.create_graph(TaskParameters(experiment_path=str(tmp_path))).close()


def test_uses_of_memory_are_compared_together():
    uses = [MemoryUse("small", 1, 4 * 10**8), MemoryUse("large", 2, 7 * 10**8)]
    refuse(unmet_by(11 * 10**8, uses))
    with pytest.raises(CoachError) as refusal:
        refuse(unmet_by(10**9, uses))
    assert str(refusal.value) == (
        "large is 2, which needs at least 0.7 GB of memory, and all settings together need 1.1 GB; this machine has "
        "1.0 GB"
    )
    with pytest.raises(CoachError, match=r"^large is 2, which needs at least 0.7 GB of memory; this machine has 0.6 G"):
        refuse(unmet_by(6 * 10**8, uses))
    assert total_memory() > 10**8


def test_soft_actor_critic_has_three_networks():
    agent = SoftActorCriticAgentParameters()
    agent.network_wrappers["q"].batch_size = 0
    with pytest.raises(CoachError, match=r"agent_params\.network_wrappers\['q'\]\.batch_size is 0"):
        check(graph_of(agent))
