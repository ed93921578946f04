"""Conversion of filters and spaces to plain data and back, for exported policies.

A description consists of nested dicts and lists with string keys. Its leaves are arrays, numbers, strings and None.
Nothing is pickled. Reading a description can only create spaces, and filters of ``rl_coach.filters`` or of modules that
the reader allows.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import math
from enum import Enum
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from rl_coach import spaces
from rl_coach.filters.filter import Filter, InputFilter, OutputFilter
from rl_coach.utilities.dynamic_import import class_path
from rl_coach.utils import CoachError

Description = dict[str, Any]

_OWN_MODULES = ("rl_coach.filters",)
_RANDOM_STATE = "_rng"


def describe_input_filter(chain: InputFilter) -> list[Description]:
    """Describe the observation filters, in the order in which they are applied. Reward filters are left out, because a
    trained policy does not need them.

    :raises CoachError: if a filter cannot be described
    """
    return [
        {"observation": observation, "name": name, **_describe(member)}
        for observation, filters in chain.observation_filters.items()
        for name, member in filters.items()
    ]


def describe_output_filter(chain: OutputFilter) -> list[Description]:
    """Describe the action filters. The first is the filter next to the environment.

    :raises CoachError: if a filter cannot be described
    """
    return [{"name": name, **_describe(member)} for name, member in chain.action_filters.items()]


def describe_space(space: spaces.Space) -> Description:
    """Describe a space without its random generator.

    :raises CoachError: if the space contains a value that is not a number, a text, an array or another space
    """
    if type(space).__module__ != spaces.__name__:
        raise CoachError(f"the space {space!r} is not a class of {spaces.__name__}: it cannot be described as data")
    attributes = {name: value for name, value in vars(space).items() if name != _RANDOM_STATE}
    return {"class": type(space).__qualname__, "attributes": encode(attributes, type(space).__name__)}


class DescriptionReader:
    """Creates filters and spaces from their descriptions.

    :param allowed_modules: names of modules, in addition to ``rl_coach.filters``, that may define filters. Their
        submodules are allowed too. Creating a filter imports its module
    """

    def __init__(self, allowed_modules: Iterable[str] = ()):
        self._allowed = (*_OWN_MODULES, *allowed_modules)

    def input_filter(self, descriptions: Sequence[Description], observation_spaces: Mapping[str, Any]) -> InputFilter:
        """Create an input filter from descriptions. Each of its filters has the described state.

        :param observation_spaces: the spaces of the environment's observations, by name
        :raises CoachError: if a filter is not allowed, or does not fit the spaces
        """
        chain = InputFilter()
        for one in descriptions:
            chain.add_observation_filter(one["observation"], one["name"], self._filter(one))
        for name, space in observation_spaces.items():
            chain.get_filtered_observation_space(name, space)
        for one in descriptions:
            chain.observation_filters[one["observation"]][one["name"]].set_state(self.decode(one["state"]))
        return chain

    def output_filter(self, descriptions: Sequence[Description], action_space: Any) -> OutputFilter:
        """Create an output filter from descriptions. Each of its filters has the described state.

        :param action_space: the action space of the environment
        :raises CoachError: if a filter is not allowed, or does not fit the space
        """
        chain = OutputFilter()
        for one in descriptions:
            chain.add_action_filter(one["name"], self._filter(one))
        chain.get_unfiltered_action_space(action_space)
        for one in descriptions:
            chain.action_filters[one["name"]].set_state(self.decode(one["state"]))
        return chain

    def space(self, description: Description) -> Any:
        """Create a space from its description.

        :raises CoachError: if ``rl_coach.spaces`` has no class of this name, or the space is too large
        """
        cls = getattr(spaces, description["class"], None)
        if not (isinstance(cls, type) and issubclass(cls, spaces.Space)):
            raise CoachError(f"'{description['class']}' is not a space of {spaces.__name__}")
        space = cls.__new__(cls)
        vars(space).update({_RANDOM_STATE: None, **self.decode(description["attributes"])})
        spaces.check_size(space.shape.tolist())
        return space

    def _filter(self, description: Description) -> Any:
        cls = self._named(description["class"])
        if not (isinstance(cls, type) and issubclass(cls, Filter)):
            raise CoachError(f"'{description['class']}' is not a filter")
        return cls(**self.decode(description["settings"]))

    def _named(self, path: str) -> Any:
        """The class with the path ``module:Outer.Inner``. An allowed module must define it."""
        module_name, _, name = path.partition(":")
        if not any(module_name == allowed or module_name.startswith(f"{allowed}.") for allowed in self._allowed):
            raise CoachError(
                f"the policy needs '{path}', which is not in rl_coach.filters: if you trust it, "
                f"allow its module with allow_filters_from=['{module_name}']"
            )
        try:
            found: Any = importlib.import_module(module_name)
            for part in name.split("."):
                found = vars(found)[part]
        except (ImportError, KeyError) as error:
            raise CoachError(f"the policy needs '{path}', which does not exist: {error!r}") from None
        if getattr(found, "__module__", None) != module_name:
            raise CoachError(f"the policy needs '{path}', but this module imports the class and does not define it")
        return found

    def decode(self, value: Any) -> Any:
        """Convert a result of ``encode`` back to the value. Tuples become lists."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) != 1 or not next(iter(value)).startswith("__"):
            return {key: self.decode(item) for key, item in value.items()}
        ((mark, content),) = value.items()
        if mark == "__space__":
            return self.space(content)
        if mark == "__float__":
            return float(content)
        if mark == "__items__":
            return {key: self.decode(item) for key, item in content}
        cls = self._named(content[0])
        if not (isinstance(cls, type) and issubclass(cls, Enum)):
            raise CoachError(f"'{content[0]}' is not an enum")
        return cls[content[1]]


def encode(value: Any, what: str) -> Any:
    """Convert a setting to plain data.

    :param what: the name of the setting's owner, for messages
    :raises CoachError: if the setting contains a value that is not a number, a text, an array, an enum or a space
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"__float__": str(value)}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        return np.asarray(value)
    if isinstance(value, (list, tuple)):
        return [encode(item, what) for item in value]
    if isinstance(value, Enum):
        return {"__enum__": [class_path(type(value)), value.name]}
    if isinstance(value, spaces.Space):
        return {"__space__": describe_space(value)}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("__") for key in value):
            return {key: encode(item, what) for key, item in value.items()}
        if all(isinstance(key, (str, int)) for key in value):
            return {"__items__": [[key, encode(item, what)] for key, item in value.items()]}
    raise CoachError(f"{what} contains a {type(value).__name__}, which cannot be described as data")


def _describe(member: Filter) -> Description:
    cls = type(member)
    settings = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise CoachError(f"{cls.__name__} has *args or **kwargs: they cannot be described, so name each argument")
        if not hasattr(member, name):
            raise CoachError(f"{cls.__name__} does not keep its argument '{name}' as an attribute of that name")
        settings[name] = encode(getattr(member, name), cls.__name__)
    between_episodes = copy.deepcopy(member)
    between_episodes.reset()
    return {
        "class": class_path(cls),
        "settings": settings,
        "state": encode(between_episodes.get_state(), cls.__name__),
    }
