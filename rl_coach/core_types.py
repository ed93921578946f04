"""The values that environment, agent, memory and networks exchange, and the units of schedules."""

from __future__ import annotations

import math
import operator
from collections import namedtuple
from enum import Enum
from typing import Any, Iterable, Iterator, Sequence, Union

import numpy as np

from rl_coach.utilities import plain_data
from rl_coach.utilities.errors import CoachError

ActionType = Union[int, float, np.ndarray, list]
GoalType = Union[None, np.ndarray]
ObservationType = np.ndarray
RewardType = Union[int, float, np.ndarray]
StateType = dict[str, np.ndarray]

Record = namedtuple("Record", ["name", "label"])


class GoalTypes(Enum):
    """Kinds of state that a goal is compared with."""

    Embedding = 1
    EmbeddingChange = 2
    Observation = 3
    Measurements = 4


class TimeTypes(Enum):
    """The x-axes of a signal CSV: the column's name and the label of a plot's axis."""

    EpisodeNumber = Record(name="Episode #", label="Episode #")
    TrainingIteration = Record(name="Training Iter", label="Training Iteration")
    EnvironmentSteps = Record(name="Total steps", label="Total steps (per worker)")
    WallClockTime = Record(name="Wall-Clock Time", label="Wall-Clock Time (minutes)")
    Epoch = Record(name="Epoch", label="Epoch #")


class RunPhase(Enum):
    """Phase of a run: filling the memory at random, training, or evaluating."""

    HEATUP = "Heatup"
    TRAIN = "Training"
    TEST = "Testing"
    UNDEFINED = "Undefined"
    WAITING = "Waiting"  # only in a worker's reports, while it waits for its trainer


LAST_ACTION = "last_action"
"""The part of a network's recurrent state that holds the action before, encoded; who chooses the actions writes it."""


class GradientClippingMethod(Enum):
    """By the norm of all gradients together, by each variable's own norm, element by element, or by each variable's own
    norm relative to the norm of its weights (Brock et al. 2021, "High-performance large-scale image recognition without
    normalization", equation 3, for whole variables)."""

    ClipByGlobalNorm = 0
    ClipByNorm = 1
    ClipByValue = 2
    ClipByWeightNorm = 3


class PlayUnit(Enum):
    """Unit of a number of steps, whole episodes, or segments that are still to be played."""

    STEPS = "steps"
    EPISODES = "episodes"
    SEGMENTS = "segments"


class StepMethod:
    """A duration: a number of some kind of step. Zero or more; two durations of one kind and number are equal."""

    __slots__ = ("num_steps",)

    def __init__(self, num_steps: int):
        self.num_steps = num_steps.item() if isinstance(num_steps, np.generic) else num_steps

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.num_steps == other.num_steps

    def __hash__(self) -> int:
        return hash((type(self), self.num_steps))

    def __truediv__(self, other: Any) -> Any:
        """The duration divided by a number of parts, or by a duration of the same kind (a number). Both are rounded up,
        so that no step is lost."""
        if isinstance(other, type(self)):
            return math.ceil(self.num_steps / other.num_steps)
        if isinstance(other, int):
            return type(self)(math.ceil(self.num_steps / other))
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, int):
            return type(self)(math.ceil(other / self.num_steps))
        return NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_steps})"


class Frames(StepMethod):
    """Frames of the simulator, including skipped frames."""

    __slots__ = ()


class EnvironmentSteps(StepMethod):
    """Actions taken in the environment."""

    __slots__ = ()


class EnvironmentEpisodes(StepMethod):
    """Whole episodes."""

    __slots__ = ()


class TrainingSteps(StepMethod):
    """Training steps: the agent's ``training_iteration``. A step is one update of the networks. If an agent makes many
    updates on the same experience (PPO's epochs of minibatches), all of them are one step. Schedules of the learning
    rate count these steps, too."""

    __slots__ = ()


class Time(StepMethod):
    """Seconds of wall-clock time."""

    __slots__ = ()


PlayingStepsType = Union[EnvironmentSteps, EnvironmentEpisodes, Frames]


class TotalStepsCounter:
    """Numbers of steps of each kind so far: ``counter[EnvironmentSteps]`` is an int.

    ``counter < duration`` compares numbers of the duration's kind, and ``counter + duration`` is the
    sum of the present number and the duration.
    """

    def __init__(self) -> None:
        self.counters: dict[type[StepMethod], int] = {
            EnvironmentSteps: 0,
            EnvironmentEpisodes: 0,
            TrainingSteps: 0,
        }

    def __getitem__(self, key: type[StepMethod]) -> int:
        return self.counters[key]

    def __setitem__(self, key: type[StepMethod], value: int) -> None:
        self.counters[key] = value

    def __add__(self, other: StepMethod) -> StepMethod:
        return type(other)(self.counters[type(other)] + other.num_steps)

    def __lt__(self, other: StepMethod) -> bool:
        return self.counters[type(other)] < other.num_steps

    def __repr__(self) -> str:
        return f"TotalStepsCounter({', '.join(f'{k.__name__}: {v}' for k, v in self.counters.items())})"


class PredictionType:
    """Meaning of a network's output. Agents request predictions by this type."""


class VStateValue(PredictionType):
    """V(s)."""


class QActionStateValue(PredictionType):
    """Q(s, a)."""


class ActionProbabilities(PredictionType):
    """The policy: a distribution over actions."""


class Embedding(PredictionType):
    """A learned representation."""


class Measurements(PredictionType):
    """Future measurements (Direct Future Prediction)."""


class InputEmbedding(Embedding):
    """Output of an input embedder."""


class MiddlewareEmbedding(Embedding):
    """Output of the middleware."""


class InputImageEmbedding(InputEmbedding):
    """The embedding of an image."""


class InputVectorEmbedding(InputEmbedding):
    """The embedding of a vector."""


class InputTensorEmbedding(InputEmbedding):
    """The embedding of a tensor of any rank."""


class Middleware_FC_Embedding(MiddlewareEmbedding):
    """The output of a fully connected middleware."""


class Middleware_LSTM_Embedding(MiddlewareEmbedding):
    """The output of a recurrent middleware."""


@plain_data.register
class ActionInfo:
    """An action and the agent's predictions for it.

    :param action: the action, in the agent's own action space
    :param all_action_probabilities: [A], the policy over all actions, if there is one
    :param action_value: Q(s, a); None without a prediction, as for ``state_value`` and ``max_action_value``
    :param state_value: V(s)
    :param max_action_value: the largest Q(s, .); ``action_value`` if not given
    """

    __slots__ = ("action", "all_action_probabilities", "action_value", "state_value", "max_action_value")

    def __init__(
        self,
        action: ActionType,
        all_action_probabilities: Any = 0,
        action_value: float | None = None,
        state_value: float | None = None,
        max_action_value: float | None = None,
    ):
        self.action = action
        self.all_action_probabilities = all_action_probabilities
        self.action_value = action_value
        self.state_value = state_value
        self.max_action_value = action_value if max_action_value is None else max_action_value

    def __repr__(self) -> str:
        return f"ActionInfo({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Directive:
    """A goal that the agent of one level sets for the agent of the level below.

    :param goal: the state to reach, or another choice of the lower agent's ``in_action_space``
    :param is_tested: the lower agent acts without exploring, so that the level above learns which goals are reachable
        (Levy et al. 2019, section 4.3, subgoal testing)
    """

    __slots__ = ("goal", "is_tested")

    def __init__(self, goal: Any, is_tested: bool = False):
        self.goal = goal
        self.is_tested = is_tested

    @classmethod
    def of(cls, action: Any) -> Directive:
        """The directive itself, or one that asks for a plain action of the level above."""
        return action if isinstance(action, cls) else cls(action)

    def __repr__(self) -> str:
        return f"Directive({self.goal!r}, is_tested={self.is_tested})"


def _another_name(attribute: str) -> Any:
    """A property that reads and writes an attribute of another name."""
    return property(operator.attrgetter(attribute), lambda instance, value: setattr(instance, attribute, value))


class EnvResponse:
    """Answer of an environment to an action.

    :param next_state: the observations by name
    :param reward: the reward of the step
    :param game_over: the episode has ended, for any reason
    :param info: the further information of the environment
    :param goal: the goal in force, if there is one
    :param terminated: the episode ended in the environment itself, not by a limit on its length; only this stops
        bootstrapping. ``game_over`` if not given.

    The private attributes keep Coach's names (``_game_over``), because code that sends a response to another process
    reads them from ``vars(response)``.
    """

    FIELDS = ("next_state", "reward", "game_over", "terminated", "info", "goal")

    def __init__(
        self,
        next_state: StateType,
        reward: RewardType,
        game_over: bool,
        info: dict | None = None,
        goal: GoalType = None,
        terminated: bool | None = None,
    ):
        self._next_state = next_state
        self._reward = reward
        self._game_over = game_over
        self._goal = goal
        self.terminated = game_over if terminated is None else terminated
        self.info = {} if info is None else info

    next_state: StateType = _another_name("_next_state")
    reward: RewardType = _another_name("_reward")
    game_over: bool = _another_name("_game_over")
    goal: GoalType = _another_name("_goal")

    def add_info(self, info: dict[str, Any]) -> None:
        """Add keys to ``info``; an existing key is an error."""
        _add_new_keys(self.info, info)

    def __repr__(self) -> str:
        return f"EnvResponse({', '.join(f'{name}={getattr(self, name)!r}' for name in self.FIELDS)})"


plain_data.register(EnvResponse, EnvResponse.FIELDS)


def _add_new_keys(info: dict[str, Any], new: dict[str, Any]) -> None:
    if not info.keys().isdisjoint(new):
        raise ValueError(f"the info has these keys already: {sorted(info.keys() & new.keys())}")
    info.update(new)


class Transition:
    """Step of an episode: (state, action, reward, next_state) and how it ended.

    :param game_over: the episode ended with this step, by termination or by a limit on its length
    :param terminated: the episode ended by termination, so there is no bootstrapping; ``game_over`` if not given
    :ivar n_steps: number of steps of the transition. The reward is the discounted sum of this number of rewards, and
        the value of ``next_state`` is discounted by discount ** n_steps. It is 1 except in n-step transitions of
        ``Episode``
    """

    n_steps: int = 1  # a class attribute, because nearly all transitions have one step

    def __init__(
        self,
        state: StateType | None = None,
        action: ActionType | None = None,
        reward: RewardType | None = None,
        next_state: StateType | None = None,
        game_over: bool | None = None,
        info: dict | None = None,
        terminated: bool | None = None,
    ):
        self.state = state
        self.action = action
        self.reward = reward
        self.next_state = state if next_state is None else next_state
        self.game_over = game_over
        self.terminated = game_over if terminated is None else terminated
        self.info = {} if info is None else info
        self._n_step_discounted_rewards: float | None = None

    # Coach's private names; memories read the public attributes, because a property costs a call
    _state: StateType | None = _another_name("state")
    _action: ActionType | None = _another_name("action")
    _reward: RewardType | None = _another_name("reward")
    _next_state: StateType | None = _another_name("next_state")
    _game_over: bool | None = _another_name("game_over")

    @property
    def n_step_discounted_rewards(self) -> float:
        """The discounted sum of the rewards from this step on, over ``n_step`` steps or up to the end of the episode.

        :raises ValueError: if the episode has not ended, so the return is unknown
        """
        if self._n_step_discounted_rewards is None:
            raise ValueError("n_step_discounted_rewards is known only once the episode has ended")
        return self._n_step_discounted_rewards

    @n_step_discounted_rewards.setter
    def n_step_discounted_rewards(self, value: float) -> None:
        self._n_step_discounted_rewards = value

    def add_info(self, new_info: dict[str, Any]) -> None:
        """Add keys to ``info``; an existing key is an error."""
        _add_new_keys(self.info, new_info)

    def update_info(self, new_info: dict[str, Any]) -> None:
        """Add keys to ``info``. Existing keys are replaced."""
        self.info.update(new_info)

    def __repr__(self) -> str:
        shown = ("state", "action", "reward", "next_state", "game_over", "terminated", "info")
        return f"Transition({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


_TRANSITION_FIELDS = (
    "state", "action", "reward", "next_state", "game_over", "terminated", "info", "_n_step_discounted_rewards",
)  # fmt: skip
plain_data.register(Transition, _TRANSITION_FIELDS, others=True)


class Batch:
    """Transitions as columns, leading dimension B. A memory makes one from its rows without building a ``Transition``.

    ``Batch(transitions)`` stacks a list of transitions. ``len``, indexing and iteration give ``Transition`` views.

    The columns are public attributes: ``state_columns`` and ``next_state_columns`` (dicts of [B, ...]),
    ``action_column`` [B] or [B, D], ``reward_column`` [B] float32, ``game_over_column`` and ``terminated_column`` [B]
    bool, ``return_column`` [B] float32 (n-step discounted rewards) or None, ``n_step_column`` [B] int32 (number of
    rewards in each row's reward) or None if all are one-step, ``goal_column`` or None, and ``info_columns``. In a chunk
    between processes, unknown values of ``return_column`` are masked.
    """

    def __init__(self, transitions: Union[Sequence[Transition], Batch]):
        if isinstance(transitions, Batch):
            self.__dict__.update(transitions.__dict__)
            return
        if not transitions:
            raise ValueError("a batch needs at least one transition")
        first = transitions[0]
        self.state_columns = {
            name: _stack(t.state[name] for t in transitions)  # type: ignore[index]
            for name in (first.state or {})
        }
        self.next_state_columns = {
            name: _stack(t.next_state[name] for t in transitions)  # type: ignore[index]
            for name in (first.next_state or {})
        }
        self.action_column = _stack(t.action for t in transitions)
        self.reward_column = np.asarray([t.reward for t in transitions], dtype=np.float32)
        self.game_over_column = np.asarray([bool(t.game_over) for t in transitions])
        self.terminated_column = np.asarray([bool(t.terminated) for t in transitions])
        returns = [t._n_step_discounted_rewards for t in transitions]
        self.return_column = None if None in returns else np.asarray(returns, dtype=np.float32)
        n_steps = [t.n_steps for t in transitions]
        self.n_step_column = None if n_steps.count(1) == len(n_steps) else np.asarray(n_steps, dtype=np.int32)
        self.goal_column: np.ndarray | None = None
        self.info_columns = {
            name: _stack(t.info[name] for t in transitions)
            for name in first.info
            if all(name in t.info for t in transitions)
        }

    @classmethod
    def from_columns(
        cls,
        states: StateType,
        actions: np.ndarray,
        rewards: np.ndarray,
        game_overs: np.ndarray,
        next_states: StateType,
        terminateds: np.ndarray | None = None,
        returns: np.ndarray | None = None,
        goals: np.ndarray | None = None,
        info: dict[str, np.ndarray] | None = None,
        n_steps: np.ndarray | None = None,
    ) -> Batch:
        """A batch of ready columns, each with leading dimension B. Nothing is copied."""
        batch = cls.__new__(cls)
        batch.state_columns = states
        batch.next_state_columns = next_states
        batch.action_column = actions
        batch.reward_column = rewards
        batch.game_over_column = game_overs
        batch.terminated_column = game_overs if terminateds is None else terminateds
        batch.return_column = returns
        batch.n_step_column = n_steps
        batch.goal_column = goals
        batch.info_columns = {} if info is None else info
        return batch

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """The rows of several batches of the same observations, one batch after the other.

        If only some batches have an info column, the other rows get a placeholder (NaN, 0 or None); their
        importance ``weight`` is 1. Returns and goals are known only if all batches have them.
        """
        lengths = [len(part) for part in parts]

        def states(columns: list[StateType]) -> StateType:
            return {name: np.concatenate([one[name] for one in columns]) for name in columns[0]}

        def if_all_have(columns: list[Any]) -> np.ndarray | None:
            return None if any(column is None for column in columns) else np.concatenate(columns)

        names = dict.fromkeys(name for part in parts for name in part.info_columns)
        info = {
            name: np.concatenate(_filled([part.info_columns.get(name) for part in parts], lengths, name))
            for name in names
        }
        return cls.from_columns(
            states([part.state_columns for part in parts]),
            np.concatenate([part.action_column for part in parts]),
            np.concatenate([part.reward_column for part in parts]),
            np.concatenate([part.game_over_column for part in parts]),
            states([part.next_state_columns for part in parts]),
            np.concatenate([part.terminated_column for part in parts]),
            if_all_have([part.return_column for part in parts]),
            if_all_have([part.goal_column for part in parts]),
            info,
            None if all(part.n_step_column is None for part in parts) else np.concatenate([p.n_steps() for p in parts]),
        )

    @property
    def size(self) -> int:
        """The number of transitions, B."""
        return len(self.reward_column)

    def __len__(self) -> int:
        return len(self.reward_column)

    def __getitem__(self, key: Any) -> Any:
        """The ``Transition`` at an index, or the batch of a slice or of an array of indices."""
        if isinstance(key, (int, np.integer)):
            if not -self.size <= key < self.size:
                raise IndexError(f"index {key} of a batch of {self.size}")
            return self._transition(int(key))
        return self._rows(key)

    def __iter__(self) -> Iterator[Transition]:
        return (self._transition(row) for row in range(self.size))

    @property
    def transitions(self) -> list[Transition]:
        """The rows as ``Transition`` objects, new objects at each call."""
        return list(self)

    def _transition(self, row: int) -> Transition:
        transition = Transition(
            state={name: column[row] for name, column in self.state_columns.items()},
            action=self.action_column[row],
            reward=self.reward_column[row],
            next_state={name: column[row] for name, column in self.next_state_columns.items()},
            game_over=bool(self.game_over_column[row]),
            terminated=bool(self.terminated_column[row]),
            info={name: column[row] for name, column in self.info_columns.items()},
        )
        if self.return_column is not None and not np.ma.is_masked(self.return_column[row]):
            transition.n_step_discounted_rewards = self.return_column[row]
        if self.n_step_column is not None:
            transition.n_steps = int(self.n_step_column[row])
        return transition

    def _rows(self, rows: Any) -> Batch:
        return Batch.from_columns(
            states={name: column[rows] for name, column in self.state_columns.items()},
            actions=self.action_column[rows],
            rewards=self.reward_column[rows],
            game_overs=self.game_over_column[rows],
            next_states={name: column[rows] for name, column in self.next_state_columns.items()},
            terminateds=self.terminated_column[rows],
            returns=None if self.return_column is None else self.return_column[rows],
            goals=None if self.goal_column is None else self.goal_column[rows],
            info={name: column[rows] for name, column in self.info_columns.items()},
            n_steps=None if self.n_step_column is None else self.n_step_column[rows],
        )

    def slice(self, start: int, end: int) -> None:
        """Keep only the rows from ``start`` to ``end`` (not included)."""
        self.__dict__.update(self._rows(np.s_[start:end]).__dict__)

    def shuffle(self, rng: np.random.Generator | None = None) -> None:
        """Put the rows in a random order, from ``rng`` or NumPy's global generator."""
        order = np.random.permutation(self.size) if rng is None else rng.permutation(self.size)
        self.__dict__.update(self._rows(order).__dict__)

    def states(self, fetches: Iterable[str], expand_dims: bool = False) -> StateType:
        """The observations named in ``fetches``: a dict of [B, ...], or [B, ..., 1] with ``expand_dims``."""
        return {name: _expand(self.state_columns[name], expand_dims) for name in fetches if name in self.state_columns}

    def next_states(self, fetches: Iterable[str], expand_dims: bool = False) -> StateType:
        """The observations after the step, in the form of ``states``."""
        columns = self.next_state_columns
        return {name: _expand(columns[name], expand_dims) for name in fetches if name in columns}

    def actions(self, expand_dims: bool = False) -> np.ndarray:
        """[B] discrete or [B, D] continuous actions."""
        return _expand(self.action_column, expand_dims)

    def rewards(self, expand_dims: bool = False) -> np.ndarray:
        """[B] rewards."""
        return _expand(self.reward_column, expand_dims)

    def n_step_discounted_rewards(self, expand_dims: bool = False) -> np.ndarray:
        """[B] discounted returns; known for transitions of ended episodes only."""
        if self.return_column is None or np.ma.is_masked(self.return_column):
            raise ValueError("n_step_discounted_rewards is known only for transitions of ended episodes")
        return _expand(self.return_column, expand_dims)

    def n_steps(self, expand_dims: bool = False) -> np.ndarray:
        """[B] int32: number of rewards in each row's reward, and of steps to its next state."""
        ones = np.ones(self.size, dtype=np.int32)
        return _expand(ones if self.n_step_column is None else self.n_step_column, expand_dims)

    def game_overs(self, expand_dims: bool = False) -> np.ndarray:
        """[B] bool: the episode ended here, by termination or by a limit."""
        return _expand(self.game_over_column, expand_dims)

    def terminateds(self, expand_dims: bool = False) -> np.ndarray:
        """[B] bool: the episode ended here by termination, so nothing is bootstrapped."""
        return _expand(self.terminated_column, expand_dims)

    def goals(self, expand_dims: bool = False) -> np.ndarray:
        """[B, ...] goals that were in force."""
        if self.goal_column is None:
            raise ValueError("these transitions have no goals")
        return _expand(self.goal_column, expand_dims)

    def info(self, key: str, expand_dims: bool = False) -> np.ndarray:
        """[B, ...], one entry of each transition's info."""
        return _expand(self.info_columns[key], expand_dims)

    def info_as_list(self, key: str) -> list:
        """Entry of each transition's info, as a list."""
        return list(self.info_columns[key])


def _filled(columns: list[np.ndarray | None], lengths: list[int], name: str) -> list[np.ndarray]:
    """The columns of one name. Parts without the column get a column of placeholders."""
    example = next(column for column in columns if column is not None)
    value: Any = np.nan if example.dtype.kind in "fc" else None if example.dtype.kind == "O" else 0
    if name == "weight":
        value = 1
    return [
        np.full((length, *example.shape[1:]), value, example.dtype) if column is None else column
        for column, length in zip(columns, lengths)
    ]


def _expand(column: np.ndarray, expand_dims: bool) -> np.ndarray:
    return np.expand_dims(column, -1) if expand_dims else column


def _stack(values: Iterable[Any]) -> np.ndarray:
    return np.asarray([np.asarray(value) for value in values])


class Episode:
    """The transitions of one episode in order, and their discounted returns once it has ended.

    :param discount: the discount of the returns; 0 counts only the next reward, 1 counts all rewards equally
    :param bootstrap_total_return_from_old_policy: after ``n_step`` rewards, add the value that the policy predicted
        when it acted (``info['max_action_value']`` of the step where the sum stops)
    :param n_step: number of rewards to sum; -1 sums to the end of the episode
    """

    def __init__(self, discount: float = 0.99, bootstrap_total_return_from_old_policy: bool = False, n_step: int = -1):
        self.transitions: list[Transition] = []
        self.discount = discount
        self.bootstrap_total_return_from_old_policy = bootstrap_total_return_from_old_policy
        self.n_step = n_step
        self.is_complete = False

    def insert(self, transition: Transition) -> None:
        """Append a step."""
        self.transitions.append(transition)

    def is_empty(self) -> bool:
        return not self.transitions

    def length(self) -> int:
        return len(self.transitions)

    def __len__(self) -> int:
        return len(self.transitions)

    def __getitem__(self, index: Any) -> Any:
        return self.transitions[index]

    def get_transition(self, transition_idx: int) -> Transition:
        return self.transitions[transition_idx]

    def get_last_transition(self) -> Transition | None:
        return self.transitions[-1] if self.transitions else None

    def get_first_transition(self) -> Transition | None:
        return self.transitions[0] if self.transitions else None

    def update_discounted_rewards(self, first: int = 0) -> None:
        """Set ``n_step_discounted_rewards`` of the transitions from ``first`` on."""
        transitions = self.transitions[first:]
        rewards = np.asarray([t.reward for t in transitions], dtype=np.float64)
        returns = n_step_returns(rewards, self.discount, self.n_step)
        if self.bootstrap_total_return_from_old_policy and 0 < self.n_step < len(transitions):
            values = [t.info.get("max_action_value") for t in transitions[self.n_step :]]
            if any(value is None for value in values):
                raise CoachError(NO_OLD_VALUE)
            returns[: len(values)] += self.discount**self.n_step * np.asarray(values, dtype=np.float64)
        for transition, value in zip(transitions, returns):
            transition.n_step_discounted_rewards = value

    def update_transitions_rewards_and_bootstrap_data(self) -> None:
        """Turn each step into an n-step transition: its reward becomes the discounted sum of ``n_step`` rewards. Its
        next state and its ending become the ones after the last summed step (Hessel et al. 2018, section 3, multi-step
        learning). ``n_steps`` is the number of summed rewards, smaller than ``n_step`` near the end of the episode.

        ``info['should_bootstrap_next_state']`` is True if the sum stopped before the end of the episode.
        """
        if self.n_step == -1 or not self.transitions:
            return
        self.update_discounted_rewards()
        # Without the old policy's value: the learner bootstraps from the transition's next state.
        own_rewards = np.asarray([t.reward for t in self.transitions], dtype=np.float64)
        sums = n_step_returns(own_rewards, self.discount, self.n_step)
        last = len(self.transitions) - 1
        ends = [self.transitions[min(row + self.n_step - 1, last)] for row in range(len(self.transitions))]
        boundaries = [(end.next_state, end.game_over, end.terminated) for end in ends]
        for row, transition in enumerate(self.transitions):
            transition.reward = sums[row]
            transition.next_state, transition.game_over, transition.terminated = boundaries[row]
            transition.n_steps = min(self.n_step, last + 1 - row)
            transition.update_info({"should_bootstrap_next_state": row + self.n_step <= last})

    def n_step_transition(self, row: int) -> Transition:
        """The n-step transition that begins at a step, as in ``update_transitions_rewards_and_bootstrap_data``. The
        episode may be in progress: ``n_step`` steps from there must exist, or the episode must have ended."""
        steps = self.transitions[row : row + self.n_step]
        first, last = steps[0], steps[-1]
        reward: Any = 0.0
        for step in reversed(steps):
            reward = step.reward + self.discount * reward
        info = {**first.info, "should_bootstrap_next_state": not last.game_over}
        transition = Transition(
            first.state, first.action, reward, last.next_state, last.game_over, info, terminated=last.terminated
        )
        transition.n_steps = len(steps)
        return transition

    def get_transitions_attribute(self, attribute_name: str) -> list[Any]:
        """Attribute of each transition."""
        if not self.transitions:
            return []
        return list(map(operator.attrgetter(attribute_name), self.transitions))


NO_OLD_VALUE = (
    "bootstrap_total_return_from_old_policy needs the values of later steps, and some of their actions were chosen "
    "without asking a network: set info['max_action_value'] before the episode ends, or set it to False"
)

_EPISODE_FIELDS = ("transitions", "discount", "bootstrap_total_return_from_old_policy", "n_step", "is_complete")
plain_data.register(Episode, _EPISODE_FIELDS)


def n_step_returns(rewards: np.ndarray, discount: float, n_step: int = -1) -> np.ndarray:
    """G_t = sum over k < n of discount^k r_{t+k}, cut at the end of the episode (Sutton & Barto 2018, section 7.1).

    :param rewards: [T]
    :param n_step: the number of rewards to sum, -1 for all remaining rewards
    :return: [T] float64
    """
    if n_step != -1 and n_step < 1:
        raise ValueError(f"n_step must be 1 or more, or -1 for all, not {n_step}")
    returns = np.zeros(len(rewards), dtype=np.float64)
    running = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        running = rewards[t] + discount * running
        returns[t] = running
    if n_step != -1 and n_step < len(rewards):
        returns[:-n_step] -= discount**n_step * returns[n_step:].copy()
    return returns


class VideoDumpFilter:
    """Selects the episodes that are written as a video. Called at an episode's start and again at its end."""

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        """:param episode_terminated: the episode has ended, its ``total_reward_in_current_episode`` is known"""
        raise NotImplementedError(f"{type(self).__name__} does not say which episodes to write")


class AlwaysDumpFilter(VideoDumpFilter):
    """Every episode."""

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        return True


class MaxDumpFilter(VideoDumpFilter):
    """Each episode with a reward above the best so far. Random episodes of heatup do not count."""

    def __init__(self) -> None:
        self.max_reward_achieved = -np.inf

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        if kwargs.get("_phase") is RunPhase.HEATUP:
            return False
        if not episode_terminated:
            return True
        reward = kwargs["total_reward_in_current_episode"]
        if reward <= self.max_reward_achieved:
            return False
        self.max_reward_achieved = reward
        return True


class EveryNEpisodesDumpFilter(VideoDumpFilter):
    """Every ``num_episodes_between_dumps``th episode."""

    def __init__(self, num_episodes_between_dumps: int):
        self.num_episodes_between_dumps = num_episodes_between_dumps
        self.last_dumped_episode = -1

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        due = kwargs["episode_idx"] >= self.last_dumped_episode + self.num_episodes_between_dumps
        if due and episode_terminated:
            self.last_dumped_episode = kwargs["episode_idx"]
        return due


class SelectedPhaseOnlyDumpFilter(VideoDumpFilter):
    """Episodes of the given phase or phases, such as ``RunPhase.TEST``."""

    def __init__(self, run_phases: Union[RunPhase, list[RunPhase]]):
        self.run_phases = run_phases if isinstance(run_phases, list) else [run_phases]

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        return kwargs["_phase"] in self.run_phases


class CsvDataset:
    """A CSV file with recorded transitions.

    :param is_episodic: the rows form whole episodes, in order
    """

    def __init__(self, filepath: str, is_episodic: bool = True):
        self.filepath = filepath
        self.is_episodic = is_episodic


class PickledReplayBuffer:
    """Place of a replay buffer that Coach pickled."""

    def __init__(self, filepath: str):
        self.filepath = filepath
