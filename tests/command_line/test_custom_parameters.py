"""``-cp``: what is set, what is refused, and that nothing is ever executed."""

from __future__ import annotations

import contextlib
import re
import string
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_coach.agents.curiosity import RNDParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.architectures.initializers import Orthogonal
from rl_coach.base_parameters import (
    DistributedCoachSynchronizationType,
    EmbedderScheme,
    NetworkParameters,
    Parameters,
    VisualizationParameters,
)
from rl_coach.coach import BAD_INPUT, main
from rl_coach.command_line import preset_catalogue
from rl_coach.command_line.arguments import get_argument_parser
from rl_coach.command_line.custom_parameters import CONSTRUCTORS, ENUMS, apply_custom_parameters, parse
from rl_coach.command_line.names_elsewhere import NAMES_HERE, ON_THE_COMMAND_LINE
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.schedules import LinearSchedule, PieceWiseSchedule
from rl_coach.utilities.dynamic_import import short_dynamic_import
from rl_coach.utils import CoachError
from tests.frameworks import FRAMEWORK


class Algorithm(Parameters):
    def __init__(self):
        self.discount = 0.99
        self.scheme = EmbedderScheme.Medium
        self.synchronization = None
        self.schedule = LinearSchedule(1, 0, 10)
        self.playing = EnvironmentSteps(1)

    @property
    def path(self):
        return "module:Algorithm"


@pytest.fixture
def manager():
    agent = SimpleNamespace(
        algorithm=Algorithm(),
        network_wrappers={"main": NetworkParameters(heads_parameters=[SimpleNamespace(loss_weight=1.0)])},
    )
    return SimpleNamespace(
        agent_params=agent,
        env_params=SimpleNamespace(level="CartPole-v0", additional_simulator_parameters={}),
        visualization_parameters=VisualizationParameters(),
        improve_steps=TrainingSteps(10),
        evaluate=print,
    )


def value_of(text):
    (assignment,) = parse(f"x={text}")
    return assignment.value


def test_sets_attributes_items_and_indices(manager):
    apply_custom_parameters(
        manager,
        "agent_params.algorithm.discount=0.5; agent_params.network_wrappers['main'].learning_rate=1e-3;"
        "agent_params.network_wrappers['main'].heads_parameters[0].loss_weight = 2; improve_steps=EnvironmentSteps(7);",
    )
    network = manager.agent_params.network_wrappers["main"]
    assert manager.agent_params.algorithm.discount == 0.5
    assert network.learning_rate == 1e-3
    assert network.heads_parameters[0].loss_weight == 2
    assert manager.improve_steps == EnvironmentSteps(7)


def test_an_optional_object_becomes_none_again(manager):
    manager.agent_params = DQNAgentParameters()
    manager.agent_params.curiosity = RNDParameters()
    with pytest.raises(CoachError, match="must be CuriosityParameters, such as RNDParameters, not 3"):
        apply_custom_parameters(manager, "agent_params.curiosity=3")
    apply_custom_parameters(manager, "agent_params.curiosity=None")
    assert manager.agent_params.curiosity is None


def test_the_schedule_by_the_name_that_presets_give_it(manager):
    apply_custom_parameters(manager, "schedule_params.improve_steps=EnvironmentEpisodes(3)")
    assert manager.improve_steps == EnvironmentEpisodes(3)


def test_a_dictionary_of_plain_values_takes_new_keys(manager):
    apply_custom_parameters(manager, "env_params.additional_simulator_parameters['size']=4")
    assert manager.env_params.additional_simulator_parameters == {"size": 4}


def test_lines_and_semicolons_both_separate():
    assert [str(assignment) for assignment in parse("a.b=1\nc['d'][0]=2; e=3;")] == ["a.b", "c['d'][0]", "e"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0.5", -0.5),
        ("+3", 3),
        ("1e-4", 1e-4),
        ("'adam'", "adam"),
        ("None", None),
        ("True", True),
        ("2 * (3 + 4) - 10 / 4", 11.5),
        ("7 // 2", 3),
        ("7 % 4", 3),
        ("10 ** 6", 10**6),
        ("[1, 2.5, 'a']", [1, 2.5, "a"]),
        ("(1, (2, 3))", (1, (2, 3))),
        ("{'a': 1, 2: [3]}", {"a": 1, 2: [3]}),
        ("EmbedderScheme.Deep", EmbedderScheme.Deep),
        ("DistributedCoachSynchronizationType.SYNC", DistributedCoachSynchronizationType.SYNC),
        ("EnvironmentSteps(1000)", EnvironmentSteps(1000)),
        ("EnvironmentSteps(1e3)", EnvironmentSteps(1000)),
        ("TrainingSteps(num_steps=5)", TrainingSteps(5)),
        ("[EnvironmentSteps(1), EnvironmentEpisodes(2)]", [EnvironmentSteps(1), EnvironmentEpisodes(2)]),
    ],
)
def test_values(text, value):
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


def test_schedules():
    schedule = value_of("PieceWiseSchedule([(LinearSchedule(1, 0.1, 100), EnvironmentSteps(100))])")
    assert isinstance(schedule, PieceWiseSchedule)
    assert schedule.current_value == 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", None),
        ("improve_steps", "'improve_steps' does not have the form path=value"),
        ("a=b=1", "does not have the form path=value"),
        ("a+=1", "does not have the form path=value"),
        ("import os", "does not have the form path=value"),
        ("print(1)", "does not have the form path=value"),
        ("a=", "cannot read 'a='"),
        ("a=1 b=2", "cannot read"),
        ("a(1).b=1", "'a(1)' is not a path"),
        ("a, b = 1, 2", "is not a path"),
        ("a.__class__=1", "'__class__' is not a parameter"),
        ("_a=1", "'_a' is not a parameter"),
        ("a[None]=1", "a key must be a string or a whole number"),
        ("a[1:2]=1", "is not an allowed value"),
        ("a=EnvironmentStep(10)", "did you mean 'EnvironmentSteps'"),
        ("a=open('x')", "'open' cannot be called here"),
        ("a=os.system('x')", "'os.system' cannot be called here"),
        ("a=EnvironmentSteps('x')", "needs a whole number"),
        ("a=EnvironmentSteps(-1)", "needs a whole number"),
        ("a=EnvironmentSteps(1.5)", "needs a whole number"),
        ("a=EnvironmentSteps()", "EnvironmentSteps()"),
        ("a=EnvironmentSteps(**{})", "** is not allowed"),
        ("a=LinearSchedule(1)", "LinearSchedule(1)"),
        ("a=EmbedderScheme.Dep", "did you mean 'Deep'"),
        ("a=EmbedderScheme.__class__", "has no member '__class__'"),
        ("a=EmbederScheme.Deep", "did you mean 'EmbedderScheme'"),
        ("a=adam", "write a text in quotes: 'adam'"),
        ("a=false", "did you mean 'False'"),
        ("a=1/0", "cannot be computed"),
        ("a='a'*3", "is not a number"),
        ("a=True+1", "is not a number"),
        ("a=9**9**9", "an exponent may be at most"),
        ("a=(-8)**0.5", "is too large, or is not a real number"),
        ("a=b'x'", "is not an allowed value"),
        ("a=...", "is not an allowed value"),
        ("a=lambda: 1", "is not an allowed value"),
        ("a=[x for x in (1,)]", "is not an allowed value"),
        ("a=f'{1}'", "is not an allowed value"),
        ("a=1 if True else 2", "is not an allowed value"),
        ("a={**{}}", "a key of a dictionary"),
        ("a=(b:=1)", "is not an allowed value"),
    ],
)
def test_refused(text, part):
    if part is None:
        assert parse(text) == []
        return
    with pytest.raises(CoachError) as error:
        parse(text)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_deep_nesting_is_refused():
    for text in ("a=" + "(" * 5000 + "1" + ")" * 5000, "a=" + "1+" * 20000 + "1", "a=" + "-" * 20000 + "1"):
        with pytest.raises(CoachError):
            parse(text)


def test_nul_is_refused():
    with pytest.raises(CoachError, match="cannot read"):
        parse("a=1\0")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("agent_params.algoritm.discount=1", "'agent_params' has no parameter 'algoritm'; did you mean 'algorithm'?"),
        ("agent_params.algorithm.discont=1", "did you mean 'discount'?"),
        ("discount=1", "there is no parameter 'discount'; did you mean 'agent_params.algorithm.discount'?"),
        ("agent_params.network_wrappers['mian'].learning_rate=1", "no item 'mian'; did you mean 'main'?"),
        ("agent_params.network_wrappers['new']=1", "no item 'new'; choose from main"),
        ("agent_params.network_wrappers['main'].heads_parameters[1].loss_weight=1", "no item 1; choose from 0"),
        ("env_params.level.x=1", "'env_params.level' has no parameter 'x'"),
        ("env_params.level[0]='x'", "'env_params.level' has no item 0"),
        ("evaluate=1", "no parameter 'evaluate'"),
        (
            "improve_steps=100",
            "must be a number of steps with its unit, such as EnvironmentSteps(100) or TrainingSteps(100)",
        ),
        ("visualization_parameters.render=2", "must be True or False"),
        ("agent_params.algorithm.discount='high'", "must be a number such as 0.99"),
        ("agent_params.algorithm.scheme='Deep'", "must be one of EmbedderScheme.Empty"),
        ("agent_params.algorithm.path='x:y'", "can be read but not set"),
    ],
)
def test_places_that_do_not_fit(manager, text, part):
    with pytest.raises(CoachError) as error:
        apply_custom_parameters(manager, text)
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("agent_params.input_filter=3", "agent_params.input_filter is 3; it must be None or an InputFilter"),
        (
            "agent_params.network_wrappers['main'].middleware_parameters.scheme=[64]",
            "middleware_parameters.scheme is [64]; it must be one of MiddlewareScheme.Empty, ",
        ),
        (
            "agent_params.network_wrappers['main'].input_embedders_parameters['observation'].scheme=(64, 64)",
            ".scheme is (64, 64); it must be one of EmbedderScheme.Empty, ",
        ),
        ("agent_params.algorithm.discount=2", "discount is 2; it must be a number from 0 to 1"),
    ],
)
def test_values_are_checked_before_the_graph_is_made(manager, text, part):
    manager.agent_params = DQNAgentParameters()
    with pytest.raises(CoachError) as error:
        apply_custom_parameters(manager, text)
    assert part in str(error.value)


def test_initial_weights_of_a_network(manager):
    network = manager.agent_params.network_wrappers["main"]
    apply_custom_parameters(manager, "agent_params.network_wrappers['main'].initial_weights=Orthogonal(gain=2**0.5)")
    assert isinstance(network.initial_weights, Orthogonal) and network.initial_weights.gain == 2**0.5
    with pytest.raises(CoachError, match=r"-cp: 'Orthogonal' has no parameter 'size'; choose from 'gain'$"):
        parse("x=Orthogonal(size=1)")
    with pytest.raises(CoachError, match=r"'RNDParameters' has no parameter 'coeficient'; did you mean 'coefficient'"):
        parse("x=RNDParameters(coeficient=1)")
    with pytest.raises(CoachError, match=r"'RND' is not an allowed value; write RNDParameters\(...\)"):
        parse("x=RND")
    with pytest.raises(CoachError, match=r"'Orthogonal' is not an allowed value.*; write Orthogonal\(...\)"):
        parse("x=Orthogonal")


def test_all_or_nothing(manager):
    first = "agent_params.algorithm.discount=0.5; env_params.additional_simulator_parameters['size']=4"
    with pytest.raises(CoachError):
        apply_custom_parameters(manager, f"{first}; agent_params.algorithm.nothing=1")
    assert manager.agent_params.algorithm.discount == 0.99
    assert manager.env_params.additional_simulator_parameters == {}


def test_a_setting_can_be_in_the_value_of_an_earlier_setting(manager):
    schedule, simulator = "agent_params.algorithm.schedule", "env_params.additional_simulator_parameters"
    apply_custom_parameters(
        manager,
        f"{schedule}=ExponentialSchedule(1, 0.1, 0.9); {schedule}.decay_coefficient=0.8; "
        f"{simulator}={{'size': 4}}; {simulator}['colour']='red'",
    )
    assert manager.agent_params.algorithm.schedule.decay_coefficient == 0.8
    assert manager.env_params.additional_simulator_parameters == {"size": 4, "colour": "red"}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("agent_params.algorithm['discount']", "no item 'discount'; did you mean 'agent_params.algorithm.discount'?"),
        ("agent_params.network_wrappers.main.learning_rate", "mean \"agent_params.network_wrappers['main']\"?"),
        ("agent_params.algorithm.discount[0]", "'agent_params.algorithm.discount' has no item 0"),
        ("improve_steps[0]", "'improve_steps' has no item 0"),
    ],
)
def test_a_key_instead_of_an_attribute_and_the_other_way_round(manager, path, place):
    manager.agent_params = DQNAgentParameters()
    with pytest.raises(CoachError) as error:
        apply_custom_parameters(manager, f"{path}=0.5")
    assert place in str(error.value)


@pytest.mark.parametrize("name", [name for name, module in CONSTRUCTORS.items() if module.count(".") == 1])
def test_every_constructor_exists(name):
    from rl_coach.utils import short_dynamic_import

    assert isinstance(short_dynamic_import(f"{CONSTRUCTORS[name]}:{name}"), type)


@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_parses_or_is_refused(text):
    try:
        parse(text)
    except CoachError as error:
        assert "\n" not in str(error)


names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,12}", fullmatch=True)


@given(names.filter(lambda name: name not in CONSTRUCTORS), st.integers())
def test_no_unknown_name_is_ever_called(name, argument):
    with pytest.raises(CoachError):
        parse(f"x={name}({argument})")


@given(names.filter(lambda name: name not in ENUMS), names)
def test_no_attribute_of_an_unknown_name_is_ever_read(name, attribute):
    with pytest.raises(CoachError):
        parse(f"x={name}.{attribute}")


@given(names, names)
def test_no_path_goes_through_a_private_name(first, second):
    with pytest.raises(CoachError):
        parse(f"{first}._{second}=1")


def test_nothing_is_executed(tmp_path):
    marker = tmp_path / "executed"
    for call in (f"open({str(marker)!r}, 'w')", f"__import__('pathlib').Path({str(marker)!r}).touch()"):
        for text in (f"x={call}", f"{call}.y=1", f"x=[{call}]", f"x=EnvironmentSteps({call})", f"x[{call}]=1"):
            with pytest.raises(CoachError):
                parse(text)
    assert not marker.exists()


literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(literals)
def test_literals_come_back_as_they_are(value):
    assert value_of(repr(value)) == value


MIDDLEWARE = "agent_params.network_wrappers['main'].middleware_parameters"
SHORT = "heatup_steps=EnvironmentSteps(0); improve_steps=EnvironmentSteps(1)"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("env_params=LinearSchedule(1,0,10)", "'env_params' must be EnvironmentParameters"),
        ("env_params=(1,2)", "must be EnvironmentParameters, such as GymVectorEnvironment, not (1, 2)"),
        (
            "env_params.num_environments=10**7",
            "num_environments is 10000000; it must be a whole number from 1 to 100000",
        ),
        ("agent_params=''", "must be AgentParameters"),
        ("agent_params.memory=0", "must be MemoryParameters"),
        ("agent_params.exploration={'a': 1}", "must be ExplorationParameters"),
        ("agent_params.exploration.epsilon_schedule=None", "must be Schedule, such as LinearSchedule, not None"),
        ("agent_params.exploration.epsilon_schedule.decay_steps={}", "must be a number"),
        ("agent_params.exploration.epsilon_schedule.current_value=(1,2)", "must be a number, not (1, 2)"),
        ("agent_params.input_filter=3", "input_filter is 3; it must be None or an InputFilter"),
        ("agent_params.output_filter='x'", "output_filter is 'x'; it must be None or an OutputFilter"),
        ("agent_params.pre_network_filter=3", "'agent_params.pre_network_filter' must be InputFilter"),
        ("agent_params.pre_network_filter=None", "pre_network_filter is None; it must be an InputFilter"),
        ("agent_params.network_wrappers={}", "needs a network 'main', but the names in network_wrappers are []"),
        ("agent_params.network_wrappers['main']='x'", "must be NetworkParameters"),
        (f"{MIDDLEWARE}.scheme=[64]", f"{MIDDLEWARE}.scheme is [64]; it must be one of MiddlewareScheme.Empty, "),
        (f"{MIDDLEWARE}.scheme=[Dense]", "or a list, each item a layer such as Dense(64)"),
        (f"{MIDDLEWARE}.scheme='Deep'", "or a list, each item a layer such as Dense(64), not 'Deep'"),
        (f"{MIDDLEWARE}.dense_layer=3", f"{MIDDLEWARE}.dense_layer is 3; it must be None or a layer class"),
        (f"{MIDDLEWARE}.dense_layer=Dense(3)", "dense_layer is Dense(units=3); it must be None or a layer class"),
        (f"{MIDDLEWARE}.dense_layer=Conv2d", "it must be None or a layer class such as NoisyNetDense"),
        (
            "agent_params.network_wrappers['main'].input_embedders_parameters['observation'].dense_layer='x'",
            "dense_layer is 'x'; it must be None or a layer class",
        ),
        (
            "agent_params.network_wrappers['main'].heads_parameters[0].dense_layer=[]",
            "dense_layer is []; it must be None or a layer class",
        ),
        ("agent_params.network_wrappers['main'].heads_parameters=(1,2)", "a collection of HeadParameters"),
        (
            "agent_params.network_wrappers['main'].input_embedders_parameters={'observation': 1}",
            "must be a collection of InputEmbedderParameters",
        ),
        (
            "agent_params.network_wrappers['main'].middleware_parameters.parameterized_class_name='rl_coach.x:Y'",
            "there is no module 'rl_coach.x'",
        ),
        ("visualization_parameters.video_dump_filters=[[MaxDumpFilter()]]", "each item an object with should_dump"),
        ("agent_params.memory.load_memory_from_file_path=[]", "must be None or a file of recorded data"),
        ("agent_params.memory.load_memory_from_file_path=3", "must be None or a file of recorded data"),
        (
            "agent_params.memory.load_memory_from_file_path='a'; agent_params.algorithm.load_memory_from_file_path='b'",
            "and memory.load_memory_from_file_path differ: leave one out",
        ),
        ("name=-0.5", "'name' must be a text"),
        ("progress=1", "there is no parameter 'progress'; choose from agent_params, checkpoints_to_keep, env_params, "),
        ("bad=1", "steps, name, preset_validation_params, steps_between_evaluation_periods, visualization_parameters"),
    ],
)
def test_mistakes_are_one_line_of_the_command(capsys, tmp_path, text, part):
    assert (
        main(["-p", "CartPole_DQN", "-f", FRAMEWORK.name, "-ep", str(tmp_path), "-cp", f"{SHORT}; {text}"]) == BAD_INPUT
    )
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("coach: ") and part in line
    assert list(tmp_path.iterdir()) == []


def is_accepted(setting):
    """True if a setting changes one of these presets without an error."""
    for preset in ("CartPole_DQN", "CartPole_A3C", "CartPole_ClippedPPO", "CartPole_TRPO", "tuned/Pendulum_SAC"):
        with contextlib.suppress(CoachError):
            apply_custom_parameters(preset_catalogue.load(preset_catalogue.expand(preset)), setting)
            return True
    return False


@pytest.mark.parametrize("name", ON_THE_COMMAND_LINE)
def test_the_forms_of_settings_of_other_libraries_are_accepted(name):
    text = ON_THE_COMMAND_LINE[name]
    assert name in NAMES_HERE
    if text.startswith("the flag "):
        flag, *value = text.removeprefix("the flag ").split()
        get_argument_parser().parse_args(["-p", "CartPole_ClippedPPO", flag, *value])
        assert not value or short_dynamic_import(value[0])
        return
    for setting in re.split(r" \(for (?:A2C:|SAC:|TRPO:|TD3 also) | and ", text):
        setting = setting if setting.count("(") == setting.count(")") else setting.removesuffix(")")
        written = re.sub(r"\bN\b|\bSTEPS\b", "4", setting).replace("END", "0.1")
        assert is_accepted(written if "=" in written else f"{written}=2"), setting
