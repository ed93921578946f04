"""The arguments of ``make_agent`` as ``Agent.save`` writes them."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Iterable, Mapping

from rl_coach.agents.algorithms import plain_name
from rl_coach.command_line.setting_data import NOT_PLAIN, setting_as_data, setting_from_data
from rl_coach.environments.space_data import space_as_data, space_from_data
from rl_coach.utilities.safe_reading import read_json
from rl_coach.utils import CoachError

_SPACES = ("observation_space", "action_space")


def plain_definition(definition: Mapping[str, Any], graph: Any) -> dict[str, Any]:
    """The arguments of ``make_agent`` as JSON; settings as texts that ``-cp`` would take. A value that cannot be
    written is listed, and has to be given again."""
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


def read_definition(file: pathlib.Path) -> dict[str, Any]:
    """The definition that ``Agent.save`` has written. :raises CoachError: the file is missing or damaged"""
    try:
        definition = read_json(file)
    except FileNotFoundError:
        raise CoachError(f"no agent was saved in '{file.parent}'") from None
    except (OSError, json.JSONDecodeError, ValueError) as error:
        raise CoachError(f"'{file}' cannot be read: {error}") from error
    if not isinstance(definition, dict) or not {"arguments", "settings", "give_again"} <= set(definition):
        raise CoachError(f"'{file}' is not what Agent.save writes")
    return definition


def arguments(definition: Mapping[str, Any], given: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """The keywords of ``make_agent`` for an agent that was saved.

    :param given: keywords that replace saved keywords
    :param known: the keywords that it has
    :raises CoachError: one that was not saved is not given; or a class of the user's would be imported by its name
    """
    saved = {name: setting_from_data(value) for name, value in definition["arguments"].items() if name in set(known)}
    saved |= {name: setting_from_data(value) for name, value in definition["settings"].items()}
    saved |= {name: space_from_data(saved[name]) for name in _SPACES if saved.get(name) is not None}
    if missing := [name for name in definition["give_again"] if name not in given]:
        raise CoachError(f"the agent was saved without {', '.join(missing)}: give Agent.load what make_agent was given")
    algorithm = str(saved.get("algorithm", ""))
    if plain_name(algorithm) == "ppo":  # a name is only in what older versions saved, and theirs had the penalty
        saved["algorithm"] = "AdaptivePPO"
    if ":" in algorithm and "algorithm" not in given and not algorithm.startswith("rl_coach."):
        raise CoachError(
            f"the agent is of '{algorithm}': give Agent.load algorithm, so that nothing of yours is imported"
        )
    return {**saved, **given}
