"""Data sets of recorded steps: one form is read as another, and agents learn from each as they should."""

import sys

import gymnasium as gym
import numpy as np
import pytest

from rl_coach.agents.core.experience import Experience
from rl_coach.agents.ddpg_agent import DDPGAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.base_parameters import TaskParameters
from rl_coach.core_types import CsvDataset, EnvironmentSteps, RunPhase, TrainingSteps, Transition
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.action.linear_box_to_box_map import LinearBoxToBoxMap
from rl_coach.filters.filter import InputFilter, OutputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.recording import record
from rl_coach.memories import data_set_files, minari_files
from rl_coach.memories.data_set import DataSet
from rl_coach.memories.episodic.episodic_experience_replay import (
    EpisodicExperienceReplay,
    EpisodicExperienceReplayParameters,
)
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.space_values import mask_space_of
from rl_coach.spaces import (
    DiscreteActionSpace,
    MultiDiscreteActionSpace,
    RewardSpace,
    SpacesDefinition,
    StateSpace,
    VectorObservationSpace,
)
from rl_coach.utils import CoachError

minari = pytest.importorskip("minari")


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def collected(level: str, dataset_id: str, episodes: int = 4, **arguments) -> list:
    """A data set that Minari's own collector recorded, and (observation, action, reward, next, terminated) of it."""
    environment = minari.DataCollector(gym.make(level, **arguments))
    environment.action_space.seed(3)
    steps = []
    for seed in range(episodes):
        observation, _ = environment.reset(seed=seed)
        is_over = False
        while not is_over:
            action = environment.action_space.sample()
            following, reward, terminated, truncated, _ = environment.step(action)
            steps.append((observation, action, reward, following, terminated))
            observation, is_over = following, terminated or truncated
    with pytest.warns(UserWarning):
        environment.create_dataset(dataset_id)
    return steps


def equal(one: DataSet, other: DataSet) -> None:
    assert one.episode_lengths.tolist() == other.episode_lengths.tolist() and one.is_raw == other.is_raw
    for name in ("action_column", "reward_column", "terminated_column", "game_over_column"):
        assert np.array_equal(getattr(one.columns, name), getattr(other.columns, name)), name
    for columns in ("state_columns", "next_state_columns", "info_columns"):
        first, second = getattr(one.columns, columns), getattr(other.columns, columns)
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[name], second[name]) for name in first), columns


@pytest.mark.parametrize("level", ["CartPole-v1", "Pendulum-v1"])
def test_what_minari_collected_is_read_as_it_was_played(level):
    steps = collected(level, "tests/played-v0", max_episode_steps=30)
    found = data_set_files.read("minari:tests/played-v0")
    columns = [
        found.columns.state_columns["observation"], found.columns.action_column, found.columns.reward_column,
        found.columns.next_state_columns["observation"], found.columns.terminated_column,
    ]  # fmt: skip
    assert found.is_raw and len(found.columns) == len(steps) == found.episode_lengths.sum()
    for column, values in zip(columns, zip(*steps)):
        assert np.array_equal(column, np.asarray(values, column.dtype))
    ends = np.cumsum(found.episode_lengths) - 1
    assert np.flatnonzero(found.columns.game_over_column).tolist() == ends.tolist()
    if level == "Pendulum-v1":  # nothing ends it but its limit
        assert not found.columns.terminated_column.any() and found.episode_lengths.tolist() == [30] * 4


def of_two_observations() -> DataSet:
    """Vectors and a vector as action; one episode terminated, the other was cut off."""
    episodes = []
    for length, terminated in ((3, True), (2, False)):
        states = [{"observation": np.array([step, 0.1]), "goal": np.array([length + step / 3])} for step in range(4)]
        episodes.append(
            [
                Transition(
                    states[row], np.array([0.5, -row]), reward=0.25 * row, next_state=states[row + 1],
                    game_over=row == length - 1, terminated=terminated and row == length - 1,
                )
                for row in range(length)
            ]
        )  # fmt: skip
    return DataSet.of_episodes(episodes, is_raw=False)


@pytest.mark.parametrize("place", ["minari:tests/written-v0", "FILE.csv"])
def test_what_is_written_is_read_again(tmp_path, place):
    place = place.replace("FILE", str(tmp_path / "data"))
    written = of_two_observations()
    data_set_files.write(written, place)
    equal(data_set_files.read(place), written)
    with pytest.raises(CoachError, match="already"):
        data_set_files.write(written, place)


def of_states(named: dict, spaces=None) -> DataSet:
    """One episode of two steps with these observations."""
    steps = [Transition(dict(named), 1, reward=1.0, next_state=dict(named), game_over=last) for last in (False, True)]
    return DataSet.of_episodes([steps], True, spaces)


@pytest.mark.parametrize("names", [("observation/action", "observation"), ("a/b", "a/c/d", "1"), ("observation/x",)])
def test_every_name_of_an_observation_can_be_written_to_minari(names):
    written = of_states({name: np.full(2, number, np.float32) for number, name in enumerate(names)})
    data_set_files.write(written, "minari:tests/names-v0")
    found = data_set_files.read("minari:tests/names-v0")
    assert {name: column.tolist() for name, column in found.columns.state_columns.items()} == {
        name: [[number, number]] * 2 for number, name in enumerate(names)
    }


@pytest.mark.parametrize(
    "place, names, message",
    [
        ("FILE.csv", ["observation", "feature"], "cannot contain an observation with the name 'feature'"),
        ("FILE.csv", ["two\nlines"], "cannot contain an observation with the name"),
        ("minari:tests/names-v0", ["a", "a/b"], "cannot contain 'a/b' together with 'a'"),
        ("minari:tests/names-v0", ["a/b", "a"], "cannot contain 'a' together with 'a/b'"),
        ("minari:tests/names-v0", ["action/a", "observation/action"], "'observation/action' together with 'action/a'"),
    ],
)
def test_a_name_that_a_format_cannot_contain_is_one_line(tmp_path, place, names, message):
    place = place.replace("FILE", str(tmp_path / "data"))
    with pytest.raises(CoachError, match=message):
        data_set_files.write(of_states({name: np.zeros(2, np.float32) for name in names}), place)
    with pytest.raises(CoachError, match="cannot read"):
        data_set_files.read(place)


def test_masks_over_choices_are_loaded_from_minari():
    action = MultiDiscreteActionSpace([2, 3])
    mask_space = mask_space_of(action)
    mask = mask_space.encode(np.array([1, 1, 0, 1, 1]))
    spaces = SpacesDefinition(
        StateSpace({"observation": VectorObservationSpace(2), "action_mask": mask_space}), None, action, RewardSpace(1)
    )
    state = {"observation": np.zeros(2, np.float32), "action_mask": mask}
    steps = [Transition(state, np.array([1, 2]), reward=1.0, next_state=state, game_over=True)]
    data_set_files.write(DataSet.of_episodes([steps], True, spaces), "minari:tests/masks-v0")
    memory = EpisodicExperienceReplay((MemoryGranularity.Transitions, 10))
    Experience(memory, DQNAgentParameters().algorithm).load(
        "minari:tests/masks-v0", InputFilter(), OutputFilter(), spaces
    )
    loaded = memory.transitions_at(np.array([0]))
    assert loaded.action_column.tolist() == [[1, 2]]
    for states in (loaded.state_columns, loaded.next_state_columns):
        assert states["action_mask"].tolist() == [mask.tolist()]


def test_a_mask_can_be_wider_than_the_recorded_actions():
    written = of_states({"observation": np.zeros(2, np.float32), "action_mask": np.array([1, 1, 0])})
    data_set_files.write(written, "minari:tests/masks-v0")
    assert data_set_files.read("minari:tests/masks-v0").spaces.action.num_actions == 3


def test_pixels_stay_as_they_are():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (4, 20, 20, 3), np.uint8)
    steps = [
        Transition({"observation": frames[row]}, 1, reward=1.0, next_state={"observation": frames[row + 1]},
                   game_over=row == 2) for row in range(3)
    ]  # fmt: skip
    data_set = DataSet.of_episodes([steps], is_raw=True)
    data_set_files.write(data_set, "minari:tests/pixels-v0")
    found = data_set_files.read("minari:tests/pixels-v0")
    equal(found, data_set)
    with pytest.raises(CoachError, match="can only contain vectors"):
        data_set_files.write(data_set, "pixels.csv")


def test_steps_that_do_not_follow_each_other_are_no_data_set_of_minari():
    first, second = of_two_observations().columns[:2]
    gap = Transition(second.next_state, second.action, reward=0.0, next_state=first.state, game_over=True)
    data_set = DataSet.of_episodes([[first, gap]], is_raw=True)
    with pytest.raises(CoachError, match="of the following step"):
        data_set_files.write(data_set, "minari:tests/gap-v0")


@pytest.mark.parametrize(
    "place, message",
    [
        ("nothing.txt", "not a data set that can be read"),
        ("nothing.csv", "cannot read 'nothing.csv'"),
        ("nothing.npz", "nothing.npz"),
        ("nothing.p", "cannot read 'nothing.p'"),
        ("minari:tests/nothing-v0", "it does not exist; 'minari list local'"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(place, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CoachError, match=message) as error:
        data_set_files.read(place)
    assert "\n" not in str(error.value)


def test_actions_of_minari_with_another_shape_are_described():
    shape = "minari:x-v0: the action is of the shape 1, but the action space has the whole numbers 0 to 1"
    for actions, said in (
        ([[0], [1]], shape),
        ([0, 5], "minari:x-v0, step 1 of an episode: the action 5 is not in the"),
    ):
        with pytest.raises(CoachError, match=said):
            minari_files._own_actions(DiscreteActionSpace(2), np.array(actions), 2, "minari:x-v0")


@pytest.mark.parametrize("header, cells, message", [
    ("episode_id,action,reward,state_feature_0,next_state_goal_0", "0,1,1,1,1", "no column 'next_state_feature_0'"),
    ("episode_id,reward,state_feature_0", "0,1,1", "no column 'action'"),
    ("episode_id,action,reward,state_feature_0,is_raw", "0,1,1,1,maybe", "'maybe' is not 0, 1, False or True"),
    ("episode_id,action,reward,state_feature_0", "0,1,1,1", "no step that has a next state"),
])  # fmt: skip
def test_a_csv_file_that_cannot_be_understood_is_named(header, cells, message, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"{header}\n{cells}\n")
    with pytest.raises(CoachError, match=message):
        data_set_files.read(path)


@pytest.mark.parametrize("memory_class", [EpisodicExperienceReplay, ExperienceReplay])
def test_a_saved_memory_is_read(memory_class, tmp_path):
    memory = memory_class((MemoryGranularity.Transitions, 100))
    data_set = of_two_observations()
    for episode in data_set.episodes():
        memory.store_episode(episode)
    memory.save(tmp_path / "memory.npz")
    found = data_set_files.read(tmp_path / "memory.npz")
    assert not found.is_raw and found.episode_lengths.tolist() == [3, 2]
    assert found.columns.rewards().tolist() == [0, 0.25, 0.5, 0, 0.25]
    assert found.columns.terminateds().tolist() == [False, False, True, False, False]


# agents


def graph(agent, level="CartPole-v1"):
    schedule = ScheduleParameters()
    schedule.heatup_steps, schedule.improve_steps = EnvironmentSteps(0), TrainingSteps(1)
    schedule.steps_between_evaluation_periods, schedule.evaluation_steps = EnvironmentSteps(1), EnvironmentSteps(0)
    graph_manager = BasicRLGraphManager(agent, GymVectorEnvironment(level), schedule)
    graph_manager.visualization_parameters.dump_csv = False
    return graph_manager


def started(agent, tmp_path, level="CartPole-v1"):
    graph_manager = graph(agent, level)
    graph_manager.create_graph(TaskParameters(seed=1, experiment_path=str(tmp_path)))
    return graph_manager


def scaling_dqn() -> DQNAgentParameters:
    agent = DQNAgentParameters()
    agent.memory = EpisodicExperienceReplayParameters()
    agent.input_filter = InputFilter()
    agent.input_filter.add_reward_filter("rescale", RewardRescaleFilter(0.5))
    return agent


@pytest.mark.parametrize("form", ["CSV", "Minari", "memory"])
def test_rewards_are_scaled_once_whatever_they_were_recorded_in(form, tmp_path):
    """A CSV file and Minari hold raw rewards; a memory that was saved holds them as they were learned from."""
    recorder = started(scaling_dqn(), tmp_path)
    data_set = record(recorder, 30, RunPhase.HEATUP)
    memory = recorder.get_agent().memory
    assert data_set.is_raw and data_set.columns.rewards().tolist() == [1.0] * len(data_set.columns)
    agent, path = scaling_dqn(), str(tmp_path / "data")
    if form == "CSV":
        data_set_files.write(data_set, f"{path}.csv")
        agent.memory.load_memory_from_file_path = CsvDataset(f"{path}.csv")
    elif form == "Minari":
        data_set_files.write(data_set, "minari:tests/raw-v0")
        agent.memory.load_memory_from_file_path = "minari:tests/raw-v0"
    else:
        memory.save(f"{path}.npz")
        agent.memory.load_memory_from_file_path = f"{path}.npz"
    learner = started(agent, tmp_path).get_agent()
    assert learner.memory.transitions.rewards().tolist() == [0.5] * len(data_set.columns)
    columns = learner.memory.transitions
    assert columns.info("all_action_probabilities").tolist() == [[0.5, 0.5]] * len(columns)
    assert np.array_equal(
        columns.next_states(["observation"])["observation"], data_set.columns.next_state_columns["observation"]
    )


def test_filtered_values_stay_so_in_other_files(tmp_path):
    recorder = started(scaling_dqn(), tmp_path)
    record(recorder, 30, RunPhase.HEATUP)
    recorder.get_agent().memory.save(tmp_path / "memory.npz")
    saved = data_set_files.read(tmp_path / "memory.npz")
    for place in (f"{tmp_path}/data.csv", "minari:tests/filtered-v0"):
        data_set_files.write(saved, place)
        equal(data_set_files.read(place), saved)
        agent = scaling_dqn()
        agent.memory.load_memory_from_file_path = place
        assert started(agent, tmp_path).get_agent().memory.transitions.rewards()[0] == 0.5


def test_a_file_without_an_observation_of_the_environment_is_one_line(tmp_path):
    (tmp_path / "data.csv").write_text("episode_id,action,reward,state_obs_0,terminated\n0,1,1,1,1\n")
    agent = scaling_dqn()
    agent.memory.load_memory_from_file_path = f"{tmp_path}/data.csv"
    with pytest.raises(CoachError, match=r"data.csv' has no state 'observation': its observations are 'obs'"):
        started(agent, tmp_path)


def test_actions_of_the_environment_become_those_of_the_agent(tmp_path):
    steps = collected("Pendulum-v1", "tests/pendulum-v0", episodes=1, max_episode_steps=20)
    agent = DDPGAgentParameters()
    agent.memory.load_memory_from_file_path = "minari:tests/pendulum-v0"
    agent.output_filter = OutputFilter()
    agent.output_filter.add_action_filter("to_torque", LinearBoxToBoxMap(-1, 1))
    found = started(agent, tmp_path, "Pendulum-v1").get_agent().memory.transitions.actions()
    assert found == pytest.approx(np.asarray([action / 2 for _, action, *_ in steps]), abs=1e-6)


def test_continuous_agents_begin_with_what_minari_holds(tmp_path):
    collected("Pendulum-v1", "tests/pendulum-v0", episodes=2, max_episode_steps=20)
    agent = DDPGAgentParameters()
    agent.memory.load_memory_from_file_path = "minari:tests/pendulum-v0"
    memory = started(agent, tmp_path, "Pendulum-v1").get_agent().memory
    assert memory.num_transitions() == 40 and not memory.transitions.terminateds().any()


@pytest.mark.parametrize("phase", [RunPhase.HEATUP, RunPhase.TRAIN, RunPhase.TEST])
def test_recording_learns_nothing_and_gives_whole_episodes(phase, tmp_path):
    recorder = started(DQNAgentParameters(), tmp_path)
    agent = recorder.get_agent()
    before = [weight.copy() for weight in agent.networks["main"].online_network.get_weights()]
    found = record(recorder, 50, phase)
    assert found.episode_lengths.sum() == len(found.columns) >= 50 and agent.optimizer_steps == 0
    ends = np.cumsum(found.episode_lengths) - 1
    assert found.columns.game_over_column[ends].all() and found.columns.game_over_column.sum() == len(ends)
    for first, second in zip(before, agent.networks["main"].online_network.get_weights()):
        assert np.array_equal(first, second)
    # each state is the one that the step before led to, and none belongs to another episode
    states, following = (
        getattr(found.columns, name)["observation"] for name in ("state_columns", "next_state_columns")
    )
    inner = ~found.columns.game_over_column[:-1]
    assert np.array_equal(states[1:][inner], following[:-1][inner])
    assert not np.array_equal(states[1:][~inner], following[:-1][~inner])


def test_without_minari_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "rl_coach.memories.minari_files", raising=False)
    monkeypatch.delattr("rl_coach.memories.minari_files", raising=False)
    monkeypatch.setitem(sys.modules, "minari", None)  # as if it was not installed
    with pytest.raises(CoachError, match=r"data sets of Minari need 'minari': .*pip install .*minari"):
        data_set_files.read("minari:tests/any-v0")
