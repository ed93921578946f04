"""Episodes in CSV files."""

import numpy as np
import pytest

from rl_coach.core_types import CsvDataset
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.reward.reward_rescale_filter import RewardRescaleFilter
from rl_coach.memories import data_set_files
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


def episodic(size: int = 100, **settings: int) -> EpisodicExperienceReplay:
    return EpisodicExperienceReplay((MemoryGranularity.Transitions, size), **settings)


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


def test_returns_of_csv_rows_have_the_settings_of_the_memory(tmp_path):
    memory = episodic(n_step=1)
    memory.load_csv(CsvDataset(csv_file(tmp_path)), None)
    assert memory.transitions.n_step_discounted_rewards().tolist() == [0.5, 1.5, 3.0]
    memory = episodic()
    memory.discount = 0.5
    memory.load_csv(CsvDataset(csv_file(tmp_path)), None)
    assert memory.transitions.n_step_discounted_rewards().tolist() == [1.25, 1.5, 3.0]


def test_csv_without_episodes_ends_none(tmp_path):
    memory = episodic()
    memory.load_csv(CsvDataset(csv_file(tmp_path), is_episodic=False), input_filter=None)
    assert not memory.transitions.game_overs().any()


def test_csv_passes_the_input_filter(tmp_path):
    input_filter = InputFilter()
    input_filter.add_reward_filter("scale", RewardRescaleFilter(10))
    memory = episodic()
    memory.load_csv(CsvDataset(csv_file(tmp_path)), input_filter)
    assert memory.transitions.rewards().tolist() == [5, 15, 30]


def test_csv_that_does_not_fit_says_so(tmp_path):
    memory = episodic(2)
    with pytest.warns(UserWarning, match="3 transitions, but only the newest 1 fit"):
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


STEPS = "episode_id,action,reward,state_feature_0,state_feature_1"
NEXT = STEPS + ",next_state_feature_0,next_state_feature_1"


def columns_of(tmp_path, header, rows, encoding="utf-8"):
    path = tmp_path / "data.csv"
    path.write_bytes("\n".join([header, *rows, ""]).encode(encoding))
    return data_set_files.read(path).columns


def test_elements_are_in_the_order_of_their_numbers(tmp_path):
    names = sorted(f"state_feature_{number}" for number in range(12))
    cells = ",".join(name.rpartition("_")[2] for name in names)
    columns = columns_of(
        tmp_path, "episode_id,reward,action_1,action_0," + ",".join(names), [f"0,1,.5,.25,{cells}"] * 3
    )
    assert columns.state_columns["observation"].tolist() == [list(range(12))] * 2
    assert columns.action_column.tolist() == [[0.25, 0.5]] * 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_files_of_other_programs_are_read(tmp_path, encoding):
    rows = [f"a, {step % 2}, 1, 0.5, {step}, 0.5, {step + 1}, {step == 2}, FALSE" for step in range(3)]
    columns = columns_of(tmp_path, (NEXT + ",terminated,truncated").replace(",", ", "), rows, encoding)
    assert columns.terminated_column.tolist() == [False, False, True]
    assert columns.state_columns["observation"].tolist() == [[0.5, 0], [0.5, 1], [0.5, 2]]
    assert columns.action_column.dtype == np.int64


def test_actions_with_fractions_stay_as_they_are(tmp_path):
    assert columns_of(tmp_path, STEPS, ["0,0.37,1,1,1", "0,1.9,1,1,1", "0,0,1,1,1"]).action_column.tolist() == [
        0.37,
        1.9,
    ]


@pytest.mark.parametrize(
    "marks, header, terminated",
    [
        (["0,0", "0,0", "0,1"], "terminated,truncated", [False, False]),  # the last row tells the next state alone
        (["0,0", "0,0", "1,0"], "terminated,truncated", [False, False, True]),  # nothing depends on what follows it
        (["0,0", "1,0", "1,0"], "terminated,truncated", [False, True]),
        (["0", "0", "0"], "truncated", [False, True]),
        (["0", "0", "1"], "truncated", [False, False]),
        (["0", "1", "0"], "truncated", [False, False]),
        (["0", "0", "0"], "terminated", [False, False]),
    ],
)
def test_the_end_of_an_episode_is_the_one_that_is_recorded(tmp_path, marks, header, terminated):
    columns = columns_of(tmp_path, f"{STEPS},{header}", [f"0,1,1,{row},0,{mark}" for row, mark in enumerate(marks)])
    assert columns.terminated_column.tolist() == terminated
    assert columns.game_over_column.tolist() == [False] * (len(terminated) - 1) + [True]


@pytest.mark.parametrize(
    "header, rows, message",
    [
        (STEPS.replace("feature_1", "feature_0"), ["0,1,1,1,1"], "the column 'state_feature_0' twice"),
        (
            STEPS.replace("feature_1", "feature_00"),
            ["0,1,1,1,1"],
            "'state_feature_0' and 'state_feature_00' have the same number",
        ),
        (STEPS.replace("feature_1", "feature_2"), ["0,1,1,1,1"], "no column 'state_feature_1'"),
        (STEPS.replace("feature_0", "feature_3"), ["0,1,1,1,1"], "no column 'state_feature_0'"),
        (STEPS + ",action_0", ["0,1,1,1,1,1"], "'action' and 'action_0': remove one of them"),
        (
            STEPS + ",next_state_feature_0",
            ["0,1,1,1,1,1"],
            "2 columns of the state 'observation' and 1 of its next state",
        ),
        (STEPS + ",done", ["0,1,1,1,1,0"], "the column 'done' is not known: name it 'terminated'"),
        (STEPS + ",timeouts", ["0,1,1,1,1,0"], "or 'truncated'"),
        *(
            (f"{STEPS},{name}", ["0,1,1,1,1,0"] * 2, f"the column '{name}' is not known")
            for name in ("Terminated", "is_terminated", "episode_done", "TimeLimit.truncated", "is_last", "done_flag")
        ),
        (STEPS + ",terminated", ["0,1,1,1,1,2"], "line 2, column 'terminated': '2' is not 0, 1, False or True"),
        (STEPS, ["0,1,1,1"], "line 2 has 4 cells, and the header has 5"),
        (STEPS, ["0,1,,1,1"], "line 2, column 'reward': '' is not a finite number"),
        (STEPS, ["0,1,1,1,1", "0,1,inf,1,1"], "line 3, column 'reward': 'inf' is not a finite number"),
        (STEPS, ["0,1,1,1,1", ",1,1,1,1"], "line 3, column 'episode_id': '' is not the name of an episode"),
        (STEPS, ["NaN,1,1,1,1"] * 2, "line 2, column 'episode_id': 'NaN' is not the name of an episode"),
        (STEPS.replace(",", ";"), ["0;1;1;1;1"], "has ';' between its columns"),
        (STEPS + ",all_action_probabilities", ['0,1,1,1,1,"[1, x]"'], "is not a list of numbers"),
        (NEXT + ",terminated", ["0,1,1,1,1,1,1,1", "0,1,1,1,1,1,1,1"], "line 2: the episode has ended"),
        (STEPS + ",transition_number", ["0,1,1,1,1,0", "0,1,1,1,1,2"], "line 3: transition_number must be one more"),
        (STEPS, [], "has no rows"),
        ("", [], "has no rows"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path, header, rows, message):
    with pytest.raises(CoachError) as raised:
        columns_of(tmp_path, header, rows)
    assert message in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "encoding, message", [("latin-1", "line 2, is not in the encoding UTF-8"), ("utf-16", "UTF-16")]
)
def test_another_encoding_is_one_line(tmp_path, encoding, message):
    with pytest.raises(CoachError, match=message):
        columns_of(tmp_path, STEPS + ",comment", ["0,1,1,1,1,\xe9t\xe9"] * 2, encoding)


def test_columns_that_are_not_read_are_named(tmp_path, capsys):
    columns_of(tmp_path, STEPS + ",temperature,terminal_voltage,weekend", ["0,1,1,1,1,3,4,5"] * 2)
    assert "the columns 'temperature', 'terminal_voltage', 'weekend' are not read" in "".join(capsys.readouterr())


def test_episodes_that_occur_again_are_a_warning(tmp_path, capsys):
    header, rows = "episode_id,action,reward,state_feature_0", ["a,0,1,0", "a,1,1,1", "b,0,1,2", "b,1,1,3"]
    episodic().load_csv(CsvDataset(csv_file(tmp_path, rows, header)), input_filter=None)
    assert not any(capsys.readouterr())
    joined = csv_file(tmp_path, [*rows, *rows], header)
    episodic().load_csv(CsvDataset(joined), input_filter=None)
    assert f"'{joined}', line 6: episode_id 'a' occurs again after rows of other episodes" in "".join(
        capsys.readouterr()
    )
