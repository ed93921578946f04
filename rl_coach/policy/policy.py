"""A trained policy, which returns an action for an observation of the environment.

It needs only NumPy and ONNX Runtime, no training framework and no environment::

    from rl_coach.policy import Policy

    policy = Policy.load("experiments/my_run/<date>")
    action = policy.act(observation)
"""

from __future__ import annotations

import copy
import os
import pathlib
from typing import Any, Iterable, Iterator, Mapping, Sized, Union, cast

import numpy as np

from rl_coach.architectures.onnx_predictor import ExportedNetwork, OnnxPredictor
from rl_coach.checkpoint import find_checkpoint
from rl_coach.core_types import LAST_ACTION, ActionInfo
from rl_coach.filters.description import DescriptionReader
from rl_coach.policy import files as policy_files
from rl_coach.policy.action_choice import CHOICES, ActionChoice
from rl_coach.space_values import mask_space_of, part_of_observation, read_masks
from rl_coach.spaces import (
    ActionMaskSpace,
    ActionSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    OneHotObservationSpace,
    PlanarMapsObservationSpace,
    StateSpace,
)
from rl_coach.utilities import plain_data
from rl_coach.utilities.files import Path
from rl_coach.utilities.raw_actions import together
from rl_coach.utilities.sound_values import NUMBERS
from rl_coach.utils import CoachError, did_you_mean

POLICY_DIRECTORY = "policy"

Observation = Union[np.ndarray, Mapping[str, Any], Any]


class Policy:
    """A trained policy: filters observations as the agent did, computes the network, and chooses an action.

    Create a policy with ``Policy.load``. Call ``reset`` before each episode: it clears stacked frames and the state of
    a recurrent network. Running statistics of filters come from the training and do not change. Do not share a policy
    between threads.

    :param document: content of ``policy.json``
    :param model: the serialised ONNX model
    :param reader: builds filters and spaces
    :param num_threads: threads for one prediction
    :param seed: seed of random actions; None for a different seed each time

    :ivar about: origin of the policy: preset, versions, agent, steps of training
    :ivar action_space: the environment's action space
    """

    def __init__(
        self,
        document: dict[str, Any],
        model: bytes,
        reader: DescriptionReader,
        num_threads: int = 1,
        seed: int | None = None,
    ):
        self.about: dict[str, Any] = document["about"]
        self._spaces = {name: reader.space(one) for name, one in document["observations"].items()}
        self.action_space: ActionSpace = reader.space(document["action"])
        self._build_filters(document["filters"], reader)
        self._mask_name: str | None = document["action_mask"]
        self._choice: ActionChoice = CHOICES[document["choice"]["kind"]](
            **reader.decode(document["choice"]["settings"])
        )
        self._build_network(document["network"], model, num_threads)
        self._observed = [*self._inputs, *([] if self._mask_name is None else [self._mask_name])]
        self._shapes = {name: _raw_shape(self._spaces[name]) for name in self._observed}
        self._rng = np.random.default_rng(seed)
        self.reset()
        self._act_on_zeros()
        self.seed(seed)
        self.reset()

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        agent: str | None = None,
        allow_filters_from: Iterable[str] = (),
        num_threads: int = 1,
        seed: int | None = None,
    ) -> Policy:
        """Load the policy of an exported folder, a checkpoint, or an experiment.

        :param path: a folder that ``coach export`` wrote, a checkpoint, a directory of checkpoints, or an experiment.
            If there are several checkpoints, the newest checkpoint is used; ``DIR/best`` uses the best checkpoint
        :param agent: name of the agent, ``level.agent``, if there are several agents
        :param allow_filters_from: names of your own modules that define the policy's filters; these modules are
            imported
        :param num_threads: threads for one prediction; 1 is best for small networks
        :param seed: seed of random actions; None for a different seed each time
        :raises CoachError: if there is no policy, or the policy is damaged, was written by a newer version, or needs a
            filter from a module that is not allowed
        """
        folder = find_policy(path, agent)
        document, model = policy_files.read(folder)
        about = document.get("about")
        its_own = about.get("agent") if isinstance(about, dict) else None
        if agent is not None and agent != its_own:
            raise CoachError(f"the policy in '{folder}' belongs to the agent '{its_own}', not to '{agent}'")
        try:
            return cls(document, model, DescriptionReader(allow_filters_from), num_threads, seed)
        except CoachError as error:
            raise CoachError(f"the policy in '{folder}': {policy_files.on_one_line(str(error))}") from error
        except (*plain_data.DAMAGE, MemoryError) as error:
            text = policy_files.on_one_line(repr(error))
            raise CoachError(f"the policy in '{folder}' does not fit this version of rl_coach: {text}") from error

    def _build_filters(self, descriptions: dict[str, Any], reader: DescriptionReader) -> None:
        first = reader.input_filter(descriptions["input"], self._spaces)
        self._input_filters = [first]  # one chain for each episode of ``act_batch``
        seen = {name: first.get_filtered_observation_space(name, space) for name, space in self._spaces.items()}
        self._pre_network_filter = reader.input_filter(descriptions["pre_network"], seen)
        self._output_filter = reader.output_filter(descriptions["output"], self.action_space)
        self._agent_action_space = self._output_filter.get_unfiltered_action_space(self.action_space)
        members = (member for filters in first.observation_filters.values() for member in filters.values())
        self._filters_remember = any(member.remembers_episode for member in members)

    def _build_network(self, network: dict[str, Any], model: bytes, num_threads: int) -> None:
        shapes = {name: tuple(shape) for name, shape in network["inputs"].items()}
        outputs = {name: tuple(shape) for name, shape in network["outputs"].items()}
        self._recurrent_shapes = {name: shapes[name] for name in network["recurrent"]}
        self._inputs = [name for name in shapes if name not in self._recurrent_shapes]
        self._num_outputs = len(outputs) - len(self._recurrent_shapes)
        try:
            self._predictor = OnnxPredictor(ExportedNetwork(model, [], shapes, outputs, {}), [], num_threads)
        except Exception as error:  # ONNX Runtime's errors have no common base class
            raise CoachError(f"ONNX Runtime cannot read the policy's {policy_files.MODEL_FILE}: {error}") from error

    def _act_on_zeros(self) -> None:
        """Act once with an observation near 0: if the parts of a policy do not fit, its loading fails."""
        state = {name: _nearest_to_zero(self._spaces[name]) for name in self._inputs}
        state = self._input_filters[0].filter_trained(
            {name: self._fitting(name, value, ()) for name, value in state.items()}
        )
        columns = {name: np.asarray(value)[None] for name, value in state.items()}
        columns = self._pre_network_filter.filter_columns(columns, False)
        try:
            outputs = self._predict(columns)
        except Exception as error:  # as in _build_network
            raise CoachError(f"{policy_files.MODEL_FILE} does not fit {policy_files.POLICY_FILE}: {error}") from error
        space = self._agent_action_space
        # with a mask, the choice also fails if the network has more or fewer values than actions
        masks = None if (masked := mask_space_of(space)) is None else np.ones((1, *masked.shape))
        for deterministic in (True, False):
            for action in self._choice.choose(outputs, masks, self._rng, deterministic):
                self._environment_action(action)

    @property
    def observation_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each observation that the policy needs, by name; ``()`` for a single number."""
        return dict(self._shapes)

    def unmet_by(self, state_space: StateSpace, action_space: ActionSpace) -> Iterator[str]:
        """The reasons why the policy cannot act in an environment of Coach. Each reason continues the sentence "the
        policy …".

        :param state_space: the environment's observations
        :param action_space: the environment's actions
        """
        for name in self._observed:
            here = state_space.sub_spaces.get(name)
            if here is None or repr(here) != repr(self._spaces[name]):
                found = "the environment has none" if here is None else f"the environment has {here!r}"
                yield f"needs the observation '{name}' of {self._spaces[name]!r}: {found}"
        if repr(self.action_space) != repr(action_space):
            yield f"chooses from {self.action_space!r}: the environment has {action_space!r}"

    @property
    def remembers_episode(self) -> bool:
        """True if the policy's actions depend on earlier observations of the episode."""
        return self._filters_remember or bool(self._recurrent_shapes)

    def seed(self, seed: int | np.random.Generator | None) -> None:
        """Seed the random actions of ``deterministic=False``.

        :param seed: a seed; or a random generator to use; None for a different seed each time
        """
        self._rng = np.random.default_rng(seed)

    def reset(self, row: int | None = None) -> None:
        """Clear the state of the last episode. Call this before a new episode.

        :param row: the row of ``act_batch`` that begins a new episode; None for all rows
        """
        chains = self._input_filters if row is None else self._input_filters[row : row + 1]
        for chain in chains:
            chain.reset()
        self._output_filter.reset()
        if row is None:
            self._recurrent = {
                name: np.zeros((0, *shape), np.float32) for name, shape in self._recurrent_shapes.items()
            }
        else:
            for state in self._recurrent.values():
                state[row : row + 1] = 0

    def act(self, observation: Observation, deterministic: bool = True) -> Any:
        """Choose the action for one observation.

        :param observation: the environment's observation: a number, an array, or a dict of these by name. A dict may be
            nested, or have names such as ``outer/inner``
        :param deterministic: True chooses the best action, or the middle of a distribution; False draws an action at
            random
        :return: an action of the environment's action space, such as an int or an array
        :raises CoachError: if an observation is missing, has another shape or is not in its space, or a mask allows no
            action
        """
        state = {name: self._fitting(name, value, ()) for name, value in self._named(observation).items()}
        return self.act_in(state, deterministic)

    def act_in(self, state: Mapping[str, Any], deterministic: bool = True) -> Any:
        """Choose the action for a state of an environment of Coach.

        :param state: the observations by name, each a value of its space
        :param deterministic: see ``act``
        :return: see ``act``
        """
        state = self._input_filters[0].filter_trained({name: state[name] for name in self._observed})
        columns = {name: np.asarray(value)[None] for name, value in state.items()}
        return self._act(columns, deterministic)[0]

    def act_batch(self, observations: Observation, deterministic: bool = True) -> Any:
        """Choose the actions for several observations.

        For a policy with stacked frames or a recurrent network, row i continues the episode of row i in the last call.
        ``reset(i)`` begins a new episode in row i.

        :param observations: [B, ...], or a dict of [B, ...] by name
        :param deterministic: see ``act``
        :return: [B, ...]; if actions are tuples or dicts, a tuple or dict of such arrays
        :raises CoachError: as in ``act``, or if there is no observation
        """
        named = self._named(observations)
        first = next(iter(named.values()))
        rows = len(cast(Sized, first)) if np.iterable(first) else 0
        if not rows:
            raise CoachError("act_batch needs one observation or more: pass an array [B, ...]")
        columns = {name: self._fitting(name, value, (rows,)) for name, value in named.items()}
        if self._filters_remember:
            columns = self._filtered_by_row(columns, rows)
        else:
            columns = self._input_filters[0].filter_columns(columns, False)
        return together(self._act(columns, deterministic))

    def _filtered_by_row(self, columns: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
        while len(self._input_filters) < rows:
            self._input_filters.append(copy.deepcopy(self._input_filters[0]))
            self._input_filters[-1].reset()
        chains = self._input_filters[:rows]
        states = [
            chain.filter_trained({name: column[row] for name, column in columns.items()})
            for row, chain in enumerate(chains)
        ]
        return {name: np.stack([np.asarray(state[name]) for state in states]) for name in columns}

    def _named(self, observation: Observation) -> dict[str, Any]:
        """The observations that the policy needs, by name."""
        is_tuple = isinstance(observation, tuple) and "observation" not in self._observed
        if not (is_tuple or isinstance(observation, Mapping)):
            if len(self._observed) == 1:
                return {self._observed[0]: observation}
            raise CoachError(f"this policy needs several observations: pass a dict of {self._list(self._observed)}")
        found = {name: part_of_observation(observation, name) for name in self._observed}
        for name, value in found.items():
            if value is None:
                raise CoachError(f"the observation '{name}' is missing: the policy needs {self._list(self._observed)}")
        return found

    @staticmethod
    def _list(names: Iterable[str]) -> str:
        return ", ".join(f"'{name}'" for name in names)

    def _fitting(self, name: str, value: Any, batch: tuple[int, ...]) -> np.ndarray:
        """Check an observation, and convert it to the form of Coach's spaces. :param batch: the lengths of the axes
        before the axes of one observation, such as (B,)"""
        space = self._spaces[name]
        if isinstance(space, ActionMaskSpace):
            return read_masks(space, value, f"the observation '{name}'", batch)
        array, shape = np.asarray(value), batch + self._shapes[name]
        if array.dtype.kind not in NUMBERS:
            raise CoachError(f"the observation '{name}' is {value!r:.60}, which is not an array of numbers")
        if array.shape != shape:
            if isinstance(space, PlanarMapsObservationSpace) and array.shape == (*batch, *space.shape.tolist()):
                return array
            axes = (array.shape[len(batch) :], self._shapes[name])
            given, needed = ([length for length in lengths if length != 1] for lengths in axes)
            is_flat = min(len(given), len(needed)) < 2  # Coach flattens a table of features
            if array.size != np.prod(shape, dtype=int) or not (is_flat or given == needed):
                raise CoachError(f"the observation '{name}' has the shape {array.shape}, but the policy needs {shape}")
            array = array.reshape(shape)
        if isinstance(space, PlanarMapsObservationSpace):
            return space.encode(array)
        return self._one_hot(name, space, array) if isinstance(space, OneHotObservationSpace) else array

    @staticmethod
    def _one_hot(name: str, space: OneHotObservationSpace, numbers: np.ndarray) -> np.ndarray:
        if not space.can_encode(numbers):
            last = space.starts + space.counts - 1
            raise CoachError(
                f"the observation '{name}' is {numbers.tolist()}, but the policy was trained on numbers from "
                f"{space.starts.tolist()} to {last.tolist()}"
            )
        return space.encode(numbers.astype(np.int64))

    def _act(self, columns: dict[str, np.ndarray], deterministic: bool) -> list[Any]:
        columns = self._pre_network_filter.filter_columns(columns, False)
        outputs = self._predict({name: columns[name] for name in self._inputs})
        masks = None if self._mask_name is None else columns[self._mask_name]
        actions = self._choice.choose(outputs, masks, self._rng, deterministic)
        if LAST_ACTION in self._recurrent:
            self._recurrent[LAST_ACTION][: len(actions)] = self._agent_action_space.encoded(np.asarray(actions))
        return [self._environment_action(action) for action in actions]

    def _predict(self, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        if not self._recurrent:
            return self._predictor(inputs)
        rows = len(next(iter(inputs.values())))
        for name, state in self._recurrent.items():
            if len(state) < rows:
                more = np.zeros((rows - len(state), *state.shape[1:]), np.float32)
                self._recurrent[name] = np.concatenate([state, more])
        outputs = self._predictor({**inputs, **{name: state[:rows] for name, state in self._recurrent.items()}})
        for state, following in zip(self._recurrent.values(), outputs[self._num_outputs :]):
            state[:rows] = following
        return outputs[: self._num_outputs]

    def _environment_action(self, action: Any) -> Any:
        if isinstance(self._agent_action_space, DiscreteActionSpace):
            action = int(action)
        else:
            action = np.reshape(action, tuple(self._agent_action_space.shape))
        if self._output_filter.action_filters:
            action = self._output_filter.filter(ActionInfo(action)).action
        action = self.action_space.to_raw(self.action_space.clip_action_to_space(action))
        if isinstance(self.action_space, BoxActionSpace) and self.action_space.raw_form is None:
            return action if self.action_space.raw_integers else np.asarray(action, self.action_space.low.dtype)
        return action

    def __repr__(self) -> str:
        return f"Policy({self.about.get('agent_class')}, {self.observation_shapes} -> {self.action_space})"


def _raw_shape(space: Any) -> tuple[int, ...]:
    has_raw_shape = isinstance(space, (OneHotObservationSpace, ActionMaskSpace, PlanarMapsObservationSpace))
    return tuple(space.raw_shape if has_raw_shape else space.shape.tolist())


def _nearest_to_zero(space: Any) -> np.ndarray:
    """The value of an observation space that is nearest to 0."""
    if isinstance(space, OneHotObservationSpace):
        return space.starts
    nearest = np.clip(np.zeros([int(length) for length in space.shape]), space.low, space.high)
    is_moved = isinstance(space, PlanarMapsObservationSpace) and space.raw_channels_first
    return np.moveaxis(nearest, -1, 0) if is_moved else nearest


def find_policy(path: Path, agent: str | None = None) -> pathlib.Path:
    """The folder of a policy.

    :param path: see ``Policy.load``
    :param agent: see ``Policy.load``
    :raises CoachError: if there is no policy
    """
    place = pathlib.Path(path).expanduser()
    if os.path.isfile(place):
        place = place.parent
    if os.path.isfile(place / policy_files.POLICY_FILE):
        return place
    checkpoint = place if os.path.isdir(place / POLICY_DIRECTORY) else _checkpoint(place)
    folder = checkpoint / POLICY_DIRECTORY
    if os.path.isfile(folder / policy_files.POLICY_FILE):
        return folder
    return _of_agent(checkpoint, {file.parent.name: file.parent for file in folder.glob("*/policy.json")}, agent)


def _checkpoint(place: pathlib.Path) -> pathlib.Path:
    try:
        return pathlib.Path(find_checkpoint(place))
    except CoachError:
        if not os.path.isdir(place):
            raise
        raise CoachError(f"no policy in '{place}': it is not an exported folder, checkpoint or experiment") from None


def _of_agent(checkpoint: pathlib.Path, folders: dict[str, pathlib.Path], agent: str | None) -> pathlib.Path:
    if not folders:
        raise CoachError(
            f"the checkpoint '{checkpoint}' has no policy: its agent defines no policy_description, or the run "
            f"has printed why the agent cannot be deployed, or an older version of Coach saved the checkpoint"
        )
    if agent in folders:
        return folders[agent]
    names = ", ".join(f"'{name}'" for name in sorted(folders))
    asked = f"no agent '{agent}'{did_you_mean(agent, folders)}" if agent else "several agents"
    raise CoachError(
        f"the checkpoint '{checkpoint}' has {asked}: choose the agent from {names}, with agent= in Python or with "
        "coach export --agent"
    )
