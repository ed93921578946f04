from __future__ import annotations

import pytest

from rl_coach.coach import main
from rl_coach.command_line import preset_catalogue, search_space
from rl_coach.command_line.search_space import Choice, Range, Setting, _with_own_names
from rl_coach.runs.record import joined_settings
from rl_coach.utils import CoachError

MAIN = "agent_params.network_wrappers['main']"


@pytest.fixture(scope="module")
def graph_manager():
    return preset_catalogue.load("CartPole_DQN")


def settings_of(graph_manager, text, number=None):
    dimensions = search_space.parse(text, "sweep")
    drawn = search_space.grid(dimensions, "sweep") if number is None else search_space.draw(dimensions, number)
    return search_space.settings(graph_manager, [(dimensions, values) for values in drawn])


def test_a_grid_has_every_combination_under_what_differs(graph_manager):
    found = settings_of(graph_manager, "learning_rate=1e-4,3e-4; discount=0.9,0.99; batch_size=64;")
    assert [one.name for one in found] == [
        "learning_rate=1e-4,discount=0.9", "learning_rate=1e-4,discount=0.99",
        "learning_rate=3e-4,discount=0.9", "learning_rate=3e-4,discount=0.99",
    ]  # fmt: skip
    assert found[1].custom_parameter == (
        f"{MAIN}.learning_rate = 1e-4; agent_params.algorithm.discount = 0.99; {MAIN}.batch_size = 64"
    )


def test_a_list_and_a_tuple_are_values(graph_manager):
    text = (
        "middleware_parameters.scheme=[Dense(64)],[Dense(64), Dense(32)]; max_size=(MemoryGranularity.Transitions, 9)"
    )
    names = [one.name for one in settings_of(graph_manager, text)]
    assert names == ["scheme=Dense_64", "scheme=Dense_64_Dense_32"]


def test_numbers_within_a_value_vary(graph_manager):
    text = "epsilon_schedule = LinearSchedule(1, choice(0.1, 0.2), integers(10, 12)); discount=uniform(0.5, 0.6)"
    (schedule, discount) = search_space.parse(text, "sweep")
    assert list(schedule.distributions.values()) == [Choice(("0.1", "0.2")), Range(10, 12, is_whole=True)]
    assert discount.distributions == {"discount": Range(0.5, 0.6)}
    for one in settings_of(graph_manager, text, 5):
        (epsilon, _) = one.custom_parameter.split("; ")
        assert epsilon.partition(" = ")[2] in [f"LinearSchedule(1, {a}, {n})" for a in (0.1, 0.2) for n in (10, 11, 12)]


@pytest.mark.parametrize(("low", "high"), [(0.99, 0.99999), (0.9999, 0.999999), (1000.0, 1000.5), (-2.00001, -2.0)])
def test_a_value_of_a_narrow_range_is_written_within_it(low, high):
    (dimension,) = search_space.parse(f"a=uniform({low}, {high})", "sweep")
    written = [float(dimension.text(one)) for one in search_space.draw([dimension], 200)]
    assert low <= min(written) and max(written) <= high and len(set(written)) > 150
    assert [float(dimension.text({"a": end})) for end in (low, high)] == [low, high]


def test_draws_are_distinct_within_their_ranges_and_the_same_again():
    dimensions = search_space.parse("a=log_uniform(1e-5, 1e-2); b=log_integers(1, 1000)", "sweep")
    drawn = search_space.draw(dimensions, 200)
    assert drawn == search_space.draw(dimensions, 200) != search_space.draw(dimensions, 200, seed=1)
    assert all(1e-5 <= one["a"] <= 1e-2 and 1 <= one["b"] <= 1000 for one in drawn)
    assert 60 < sum(one["a"] < 10**-3.5 for one in drawn) < 140, "half of them lie below the geometric mean"
    few = search_space.draw(search_space.parse("a=1,2; b=3,4", "sweep"), 10)
    assert len(few) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("learning_rate", "'learning_rate' does not have the form path=value,value"),
        ("", "there is no setting"),
        ("learning_rate=1e-4,x", "sweep: learning_rate: 'x' is not an allowed value"),
        ("discount=0.1; discount=0.2", "'discount' is set twice"),
        ("discount=uniform(2, 1)", "'uniform(2, 1)': a range needs low < high"),
        ("discount=log_uniform(0, 1)", "both above 0"),
        ("batch_size=integers(1.5, 3)", "whole numbers"),
        ("discount=uniform(1)", "write uniform(low, high) with two numbers"),
        ("discount=uniform(0, 1, step=0.1)", "write uniform(low, high) with two numbers"),
        ("discount=choice()", "'choice()': write choice(value, value) with one value or more"),
        ("discount=choice(0.1, 0.2, k=3)", "write choice(value, value) with one value or more"),
        ("discount=uniform(0, 1)", "'discount' has a range: use --random N"),
        ("discount=2", "agent_params.algorithm.discount is 2; it must be a number from 0 to 1"),
        ("lerning_rate=1", "did you mean 'learning_rate'"),
        ("discount='a'", "must be a number"),
        ("discount=(", "cannot read 'discount=('"),
    ],
)
def test_bad_input_is_refused_in_a_line(graph_manager, text, said):
    with pytest.raises(CoachError) as refused:
        settings_of(graph_manager, text)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_settings_of_several_lines_are_named_by_what_differs_between_them(graph_manager):
    texts = ("discount=0.9; batch_size=8", "batch_size=8", "discount=0.9,", "discount=0.9; batch_size=8")
    lines = [search_space.parse(text, "file") for text in texts]
    found = search_space.settings(graph_manager, [(line, search_space.grid(line, "")[0]) for line in lines])
    assert [one.name for one in found] == ["discount=0.9,batch_size=8", "batch_size=8", "discount=0.9"]


def test_values_that_look_alike_have_a_number(graph_manager):
    sizes = ",".join(f"(MemoryGranularity.Transitions, {size})" for size in (9, 90))
    found = settings_of(graph_manager, f"max_size={sizes}")
    assert [one.name[-3:] for one in found] == ["s_9", "_90"]
    long = ",".join(f"[{'Dense(64), ' * 9}Dense({size})]" for size in (1, 2))
    assert [one.name[-2:] for one in settings_of(graph_manager, f"scheme={long}")] == ["_0", "_1"]
    assert [one.name for one in settings_of(graph_manager, "discount=0.9")] == [""]


def test_a_name_is_short_enough_for_a_directory(graph_manager):
    path = "env_params.additional_simulator_parameters"
    text = "; ".join(f"{path}['the_long_name_of_argument_{number}'] = 1, 2" for number in range(4))
    names = [one.name for one in settings_of(graph_manager, text)]
    assert len(set(names)) == 16 and max(map(len, names)) < 220


def test_a_number_does_not_give_the_name_of_another_value():
    names = [f"a{at}" for at in ("", "", "_1")]
    found = [one.name for one in _with_own_names([Setting(name, name) for name in names])]
    assert found == ["a_0", "a_1", "a_1_2"]


def test_a_setting_that_varies_is_not_set_by_a_flag_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["-p", "CartPole_DQN", "discount=0.9,0.99", "-cp", "agent_params.algorithm.discount = 0.5"]
    assert main(["sweep", *given]) == 2
    error = capsys.readouterr().err
    assert error.endswith("'discount' varies, and -cp sets agent_params.algorithm.discount: leave one out\n")
    assert error.count("\n") == 1 and not (tmp_path / "experiments").exists()


def test_a_later_text_of_settings_replaces_an_earlier_one():
    """--resume gives new values to settings of the start."""
    assert joined_settings("a.b = 1; c=[1,  2];", None, "a . b=3") == "c=[1,  2]; a . b=3"
    assert joined_settings("a=1", "b=") == "a=1; b="  # the parser of settings refuses it
