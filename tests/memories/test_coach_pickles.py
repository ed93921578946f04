"""Replay buffers that Coach pickled, and hostile ones."""

import collections
import pickle
import sys
import types

import numpy as np
import pytest

from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplay
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplay
from rl_coach.utils import CoachError


def episodic(size: int = 100) -> EpisodicExperienceReplay:
    return EpisodicExperienceReplay((MemoryGranularity.Transitions, size))


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


# a dtype "O8", whose state says that it has no objects
FORGED = b"cnumpy\ndtype\nX\x02\0\0\0O8K\0K\1\x87R(K\3X\1\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
NUMBER = FORGED.replace(b"O8", b"f8").replace(b"X\1\0\0\0|", b"X\1\0\0\0<")
ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\x01b\x87R(K\1K\1\x85"


@pytest.mark.parametrize(
    "content, message",
    [
        (b"cnumpy.core.multiarray\nscalar\n" + FORGED + b"C\x08AAAAAAAA\x86R", "a type is not numeric"),
        (ARRAY + FORGED + b"\x89C\x08AAAAAAAAtb", "a type is not numeric"),
        (ARRAY + NUMBER.replace(b"K\0tb", b"K?tb") + b"\x89C\x08AAAAAAAAtb", "has flags"),
        (ARRAY.replace(b"K\1K\1", b"K\1K\2") + NUMBER + b"\x89C\x08AAAAAAAAtb", "do not fit its shape"),
        (b"cnumpy\nndarray\nK\1\x85R", "calls an unknown function"),
        (b"cnumpy\nload\n", "numpy.load"),
        (b"cbuiltins\ngetattr\n", "builtins.getattr"),
        (b"cnumpy\ndtype\n}X\1\0\0\0aK\1sb", "changes an object of an unknown kind"),
        (b"r\xff\xff\xff\x7f", "list"),  # a place in the memo for which C would allocate 16 GB
        (b"\x96\xff\xff\xff\xff\xff\xff\xff\x0f", ""),  # a bytearray of an exabyte
        (b"ccopyreg\n_reconstructor\ncbuiltins\nobject\ncbuiltins\nobject\nN\x87R", "not of a class of Coach"),
    ],
)
def test_a_hostile_pickle_is_one_line(content, message, tmp_path):
    path = tmp_path / "hostile.p"
    path.write_bytes(b"\x80\x02]" + content + b"a.")
    with pytest.raises(CoachError, match="is not a replay buffer that Coach pickled") as raised:
        episodic().load_pickled(path)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_number_of_a_pickle_is_read_without_its_type(tmp_path):
    path = tmp_path / "number.p"
    path.write_bytes(b"\x80\x02]cnumpy.core.multiarray\nscalar\n" + NUMBER + b"C\x08AAAAAAAA\x86Ra.")
    with pytest.raises(CoachError, match="contains a float64 instead of a transition"):
        episodic().load_pickled(path)
