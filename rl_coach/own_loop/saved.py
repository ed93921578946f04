"""The arguments of ``make_agent`` as ``Agent.save`` writes them."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Callable, Iterable, Iterator, Mapping

from rl_coach.agents.algorithms import plain_name
from rl_coach.base_parameters import AgentParameters
from rl_coach.command_line.setting_data import NOT_PLAIN, setting_as_data, setting_from_data
from rl_coach.environments.space_data import space_as_data, space_from_data
from rl_coach.utilities.requirements import Constrained
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utils import CoachError, public_attributes

_SPACES = ("observation_space", "action_space")


def plain_definition(definition: Mapping[str, Any], graph: Any) -> dict[str, Any]:
    """The arguments of ``make_agent`` as JSON, with settings as texts in the form of ``-cp``. Values that cannot be
    written are listed; the user must give them again.
    """
    written = {
        name: space_as_data(one) if name in _SPACES and one is not None else setting_as_data(one)
        for name, one in definition.items()
        if name != "settings"
    }
    settings = {name: setting_as_data(one) for name, one in definition.get("settings", {}).items()}
    return {
        "arguments": {"seed": graph.seed, **{name: one for name, one in written.items() if one is not NOT_PLAIN}},
        "settings": {name: one for name, one in settings.items() if one is not NOT_PLAIN},
        "give_again": [name for name, one in [*written.items(), *settings.items()] if one is NOT_PLAIN],
    }


def changed_settings(parameters: AgentParameters) -> dict[str, Any] | None:
    """The settings in which an agent's parameters differ from the defaults of their class, by path; None if the
    settings cannot be saved, or the class cannot be called without arguments."""
    make: Callable[[], AgentParameters] = type(parameters)
    try:
        found = dict(_differences(make(), parameters, ""))
    except (TypeError, RecursionError):
        return None
    return None if any(setting_as_data(value) is NOT_PLAIN for value in found.values()) else found


def _differences(usual: Any, given: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(given, Constrained) and type(given) is type(usual):
        own = public_attributes(usual)
        parts = [(f"{path}.{name}".lstrip("."), own.get(name), one) for name, one in public_attributes(given).items()]
    elif isinstance(given, dict) and isinstance(usual, dict) and given.keys() == usual.keys():
        parts = [(f"{path}[{_key(key)}]", usual[key], value) for key, value in given.items()]
    elif isinstance(given, list) and isinstance(usual, list) and len(given) == len(usual):
        parts = [(f"{path}[{place}]", before, after) for place, (before, after) in enumerate(zip(usual, given))]
    else:
        if not _are_equal(usual, given):
            yield path, given
        return
    for where, before, after in parts:
        yield from _differences(before, after, where)


def _are_equal(usual: Any, given: Any) -> bool:
    if repr(given) == repr(usual):
        return True
    if type(given) is not type(usual) or not hasattr(given, "__dict__"):
        return False
    before, after = vars(usual), vars(given)
    return before.keys() == after.keys() and all(_are_equal(before[name], after[name]) for name in after)


def _key(key: Any) -> str:
    return key.__name__ if isinstance(key, type) else repr(key)


def read_definition(file: pathlib.Path) -> dict[str, Any]:
    """The definition that ``Agent.save`` has written. :raises CoachError: if the file is missing or damaged"""
    try:
        definition = read_json(file)
    except FileNotFoundError:
        raise CoachError(f"no agent was saved in '{file.parent}'") from None
    except (OSError, json.JSONDecodeError, ValueError) as error:
        raise CoachError(f"'{file}' cannot be read: {error}") from error
    is_whole = isinstance(definition, dict) and {"arguments", "settings", "give_again"} <= set(definition)
    if not is_whole or not _is_loop(definition.setdefault("loop", {"autoreset_mode": None, "waiting": []})):
        raise CoachError(f"'{file}' was not written by Agent.save")
    return definition


def _is_loop(value: Any) -> bool:
    """True if a value has the fields of a loop's state."""
    if not isinstance(value, dict) or "autoreset_mode" not in value:
        return False
    waiting, names = value.get("waiting"), value.get("names", {})
    if not isinstance(waiting, list) or not isinstance(names, dict):
        return False
    return all(type(one) is int for one in waiting) and all(index.isdecimal() for index in names)


def arguments(definition: Mapping[str, Any], given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The keywords of ``make_agent`` for an agent that was saved.

    :param given: keywords that replace saved keywords
    :param known: the keywords of ``make_agent``
    :raises CoachError: if a keyword that was not saved is missing, or if a user's class would have to be imported by
        its name
    """
    saved = {name: setting_from_data(value) for name, value in definition["arguments"].items() if name in set(known)}
    saved |= {name: setting_from_data(value) for name, value in definition["settings"].items()}
    saved |= {name: space_from_data(saved[name]) for name in _SPACES if saved.get(name) is not None}
    if missing := [name for name in definition["give_again"] if name not in given]:
        lost = ", ".join(missing)
        raise CoachError(f"the agent was saved without {lost}: pass {lost} to Agent.load, as to make_agent")
    algorithm = str(saved.get("algorithm", ""))
    if plain_name(algorithm) == "ppo":  # saved by an older version; its PPO had the penalty
        saved["algorithm"] = "AdaptivePPO"
    if ":" in algorithm and "algorithm" not in given and not algorithm.startswith("rl_coach."):
        raise CoachError(f"the agent uses '{algorithm}': pass algorithm to Agent.load, which does not import your code")
    return {**saved, **given}
