"""Experience recorded elsewhere: CSV files, and pickles as Coach wrote them."""

import collections
import pickle
import sys
import types

import numpy as np
import pytest

from rl_coach.core_types import CsvDataset
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.utils import CoachError

HEADER = (
    "action,all_action_probabilities,episode_id,episode_name,reward,transition_number,state_feature_0,state_feature_1"
)
ROWS = [
    '1,"[0.25, 0.75]",0,first,0.5,0,1.0,10.0',
    '0,"[0.5, 0.5]",0,first,1.5,1,2.0,20.0',
    '1,"[0.0, 1.0]",0,first,2.5,2,3.0,30.0',
    '1,"[1.0, 0.0]",7,alone,0.0,0,9.0,90.0',
    '0,"[0.5, 0.5]",2,last,3.0,0,4.0,40.0',
    '0,"[0.5, 0.5]",2,last,4.0,1,5.0,50.0',
]


def episodic(size: int = 100) -> EpisodicExperienceReplay:
    return EpisodicExperienceReplay((MemoryGranularity.Transitions, size))


def csv_file(tmp_path, rows=ROWS, header=HEADER) -> str:
    path = tmp_path / "data.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def test_csv_rows_become_transitions(tmp_path):
    memory = episodic()
    memory.load_csv(CsvDataset(csv_file(tmp_path)), input_filter=None)
    batch = memory.transitions
    assert memory.episode_lengths().tolist() == [2, 1]
    assert batch.states(["observation"])["observation"].tolist() == [[1, 10], [2, 20], [4, 40]]
    assert batch.next_states(["observation"])["observation"].tolist() == [[2, 20], [3, 30], [5, 50]]
    assert batch.actions().tolist() == [1, 0, 0] and batch.rewards().tolist() == [0.5, 1.5, 3.0]
    assert batch.game_overs().tolist() == batch.terminateds().tolist() == [False, True, True]
    assert batch.info("all_action_probabilities").tolist() == [[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]
    assert batch.n_step_discounted_rewards()[0] == np.float32(0.5 + 0.99 * 1.5)


def test_csv_without_episodes_ends_none(tmp_path):
    memory = episodic()
    memory.load_csv(CsvDataset(csv_file(tmp_path), is_episodic=False), input_filter=None)
    assert not memory.transitions.game_overs().any()


def test_csv_passes_the_input_filter(tmp_path):
    class Filter:
        resets = 0

        def reset(self):
            self.resets += 1

        def filter(self, transitions, deep_copy):
            for transition in transitions:
                transition.reward *= 10
            return transitions

    memory, input_filter = episodic(), Filter()
    memory.load_csv(CsvDataset(csv_file(tmp_path)), input_filter)
    assert memory.transitions.rewards().tolist() == [5, 15, 30] and input_filter.resets == 2


def test_csv_that_does_not_fit_says_so(tmp_path):
    memory = episodic(2)
    with pytest.warns(UserWarning, match="3 transitions; the newest 1 fit"):
        memory.load_csv(CsvDataset(csv_file(tmp_path)), None)


@pytest.mark.parametrize(
    "header, rows, message",
    [
        (HEADER.replace("reward,", "gain,"), ROWS, "no column 'reward'"),
        (HEADER.replace("state_feature", "feature"), ROWS, "no column 'state_feature_0'"),
        (HEADER, ['left,"[1.0]",0,first,0.5,0,1.0,10.0'], "line 2.*left"),
        (HEADER, ['1,"__import__(1)",0,first,0.5,0,1.0,10.0'], "line 2"),
        (HEADER, ["1,[1.0],0"], "line 2"),
    ],
)
def test_malformed_csv_is_named(header, rows, message, tmp_path):
    with pytest.raises(CoachError, match=message):
        episodic().load_csv(CsvDataset(csv_file(tmp_path, rows, header)), None)


def test_no_file_is_an_error(tmp_path):
    for call in (
        lambda path: episodic().load_csv(CsvDataset(path), None),
        episodic().load_pickled,
        ExperienceReplay((MemoryGranularity.Transitions, 5)).load_pickled,
    ):
        with pytest.raises(CoachError, match="cannot read"):
            call(str(tmp_path / "missing"))


@pytest.fixture
def coach(monkeypatch):
    """Classes that pickle under the names, and with the attributes, of Coach 1.0.1's."""

    classes = {}
    for module, names in [
        ("rl_coach.core_types", ["Transition", "Episode"]),
        ("rl_coach.filters.observation.observation_stacking_filter", ["LazyStack"]),
    ]:
        classes.update({name: type(name, (), {"__module__": module}) for name in names})
        stand_in = types.ModuleType(module)
        vars(stand_in).update({name: classes[name] for name in names})
        monkeypatch.setitem(sys.modules, module, stand_in)
    return types.SimpleNamespace(**classes)


def pickled(coach, tmp_path, as_episodes: bool, stacked: bool = False, protocol: int = 4) -> str:
    def observation(number):
        if not stacked:
            return np.array([number, 0.5], np.float32)
        stack = coach.LazyStack()
        stack.history, stack.axis = collections.deque(np.full((2, 2), number + k, np.uint8) for k in range(3)), -1
        return stack

    def transition(number):
        made = coach.Transition()
        made._state = made.state = {"observation": observation(number)}
        made._action = made.action = np.int64(number % 2)
        made._reward = made.reward = float(number)
        made._next_state = made.next_state = {"observation": observation(number + 1)}
        made._game_over = made.game_over = number % 3 == 2
        made._n_step_discounted_rewards = None
        made.info = {"value": np.float64(0.25)}
        return made

    transitions = [transition(number) for number in range(6)]
    content = transitions
    if as_episodes:
        content = [coach.Episode(), coach.Episode()]
        content[0].transitions, content[1].transitions = transitions[:3], transitions[3:]
    path = tmp_path / "replay.p"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return str(path)


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5])
@pytest.mark.parametrize("as_episodes", [True, False])
def test_pickles_of_coach_are_read(coach, as_episodes, protocol, tmp_path):
    path = pickled(coach, tmp_path, as_episodes, protocol=protocol)
    for memory in (episodic(), ExperienceReplay((MemoryGranularity.Transitions, 100))):
        memory.load_pickled(path)
        batch = memory.transitions
        assert batch.states(["observation"])["observation"][:, 0].tolist() == [0, 1, 2, 3, 4, 5]
        assert batch.next_states(["observation"])["observation"][:, 0].tolist() == [1, 2, 3, 4, 5, 6]
        assert batch.actions().tolist() == [0, 1] * 3 and batch.info("value").tolist() == [0.25] * 6
        assert batch.game_overs().tolist() == [False, False, True] * 2
    episodes = episodic()
    episodes.load_pickled(path)
    assert episodes.episode_lengths().tolist() == [3, 3]


def test_pickled_stacks_are_read(coach, tmp_path):
    memory = ExperienceReplay((MemoryGranularity.Transitions, 100))
    memory.load_pickled(pickled(coach, tmp_path, as_episodes=True, stacked=True))
    assert memory.transitions.states(["observation"])["observation"][4, 0, 0].tolist() == [4, 5, 6]


class Malicious:
    """Would run a command when unpickled."""

    def __reduce__(self):
        return print, ("not to be seen",)


@pytest.mark.parametrize(
    "content", [pickle.dumps([Malicious()]), pickle.dumps({"a": 1}), pickle.dumps([1, 2]), b"no pickle", b""]
)
def test_other_pickles_are_refused_and_run_nothing(content, tmp_path, capsys):
    path = tmp_path / "odd.p"
    path.write_bytes(content)
    for load in (episodic().load_pickled, ExperienceReplay((MemoryGranularity.Transitions, 5)).load_pickled):
        with pytest.raises(CoachError, match=r"odd\.p"):
            load(path)
    assert capsys.readouterr().out == ""
