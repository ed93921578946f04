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
    """The kinds of data that a goal is compared with."""

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
    """Phase of a run: heatup, which fills the memory with random actions; training; or evaluation."""

    HEATUP = "Heatup"
    TRAIN = "Training"
    TEST = "Testing"
    UNDEFINED = "Undefined"
    WAITING = "Waiting"  # only in the reports of a rollout worker that waits for the trainer


LAST_ACTION = "last_action"
"""The part of a network's recurrent state that contains the last action, as the network's input. The code that chooses
the actions writes this part."""


class GradientClippingMethod(Enum):
    """The quantity that ``clip_gradients`` limits.

    :cvar ClipByGlobalNorm: the norm of all gradients together
    :cvar ClipByNorm: the norm of each variable's gradient
    :cvar ClipByValue: each element of the gradients
    :cvar ClipByWeightNorm: the norm of each variable's gradient, divided by the norm of the variable's weights (Brock
        et al. 2021, "High-performance large-scale image recognition without normalization", equation 3, for whole
        variables)
    """

    ClipByGlobalNorm = 0
    ClipByNorm = 1
    ClipByValue = 2
    ClipByWeightNorm = 3


class PlayUnit(Enum):
    """The unit of the experience that an agent still needs: steps, whole episodes or segments."""

    STEPS = "steps"
    EPISODES = "episodes"
    SEGMENTS = "segments"


class StepMethod:
    """A duration: a number of steps in a unit, the subclass. Two durations with the same unit and number are equal.

    :param num_steps: the number, 0 or more
    """

    __slots__ = ("num_steps",)

    def __init__(self, num_steps: int):
        self.num_steps = num_steps.item() if isinstance(num_steps, np.generic) else num_steps

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.num_steps == other.num_steps

    def __hash__(self) -> int:
        return hash((type(self), self.num_steps))

    def __truediv__(self, other: Any) -> Any:
        """Divide the duration, and round the result up.

        :param other: a number of parts (the result is a duration), or a duration of the same unit (the result is a
            number)
        """
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
    """Training iterations: the agent's ``training_iteration``. A step is one update of the networks. If an agent makes
    many updates on the same experience (PPO's epochs of minibatches), all these updates are one step. Schedules of the
    learning rate also count these steps."""

    __slots__ = ()


class Time(StepMethod):
    """Seconds of wall-clock time."""

    __slots__ = ()


PlayingStepsType = Union[EnvironmentSteps, EnvironmentEpisodes, Frames]


class TotalStepsCounter:
    """The numbers of steps, episodes and updates so far: ``counter[EnvironmentSteps]`` is an int. ``counter <
    duration`` and ``counter + duration`` use the number in the duration's unit."""

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
    """Base class of the meanings of a network's outputs. An agent uses a subclass to ask for a prediction."""


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
    :param all_action_probabilities: [A], the probabilities of all actions; 0 if the agent computes none
    :param action_value: Q(s, a); None without a prediction
    :param state_value: V(s); None without a prediction
    :param max_action_value: the largest Q(s, .); None uses ``action_value``
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
    """A goal that the agent of one level sets for the agent of the next lower level.

    :param goal: the state to reach, or another element of the lower agent's ``in_action_space``
    :param is_tested: True if the lower agent must act without exploration, so that the upper agent learns which goals
        are reachable (Levy et al. 2019, section 4.3, subgoal testing)
    """

    __slots__ = ("goal", "is_tested")

    def __init__(self, goal: Any, is_tested: bool = False):
        self.goal = goal
        self.is_tested = is_tested

    @classmethod
    def of(cls, action: Any) -> Directive:
        """Make a directive from an action of the upper level. :param action: a goal, or a directive (returned as is)"""
        return action if isinstance(action, cls) else cls(action)

    def __repr__(self) -> str:
        return f"Directive({self.goal!r}, is_tested={self.is_tested})"


def _another_name(attribute: str) -> Any:
    """A property that reads and writes the attribute with the given name."""
    return property(operator.attrgetter(attribute), lambda instance, value: setattr(instance, attribute, value))


class EnvResponse:
    """The response of an environment to an action.

    :param next_state: the observations by name
    :param reward: the reward of the step
    :param game_over: True if the episode has ended, for any reason
    :param info: further information from the environment
    :param goal: the current goal, in environments with goals
    :param terminated: True if the episode has reached a terminal state, so that there is no bootstrapping; False if a
        limit of steps has ended the episode. None uses ``game_over``

    The private attributes have the names of Intel's Coach, such as ``_game_over``, because programs read them from
    ``vars(response)``.
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
        """Add keys to ``info``. :raises ValueError: if a key exists already"""
        _add_new_keys(self.info, info)

    def __repr__(self) -> str:
        return f"EnvResponse({', '.join(f'{name}={getattr(self, name)!r}' for name in self.FIELDS)})"


plain_data.register(EnvResponse, EnvResponse.FIELDS)


def _add_new_keys(info: dict[str, Any], new: dict[str, Any]) -> None:
    if not info.keys().isdisjoint(new):
        raise ValueError(f"the info has these keys already: {sorted(info.keys() & new.keys())}")
    info.update(new)


class Transition:
    """A step of an episode: state, action, reward, next state, and the end of the episode.

    :param state: the observations before the action, by name
    :param action: the action
    :param reward: the reward
    :param next_state: the observations after the action, by name; None uses ``state``
    :param game_over: True if the episode ended with this step, by termination or by a limit of steps
    :param info: further values, by name
    :param terminated: True if the episode ended by termination, so that there is no bootstrapping; None uses
        ``game_over``
    :ivar n_steps: number of environment steps in this transition: 1, except in n-step transitions of ``Episode``. The
        reward is the discounted sum of the rewards of these steps, and the value of ``next_state`` is multiplied by
        discount ** n_steps
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

    # private names of Intel's Coach; memories read the public attributes, because properties are slower
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
            raise ValueError("n_step_discounted_rewards is known only after the end of the episode")
        return self._n_step_discounted_rewards

    @n_step_discounted_rewards.setter
    def n_step_discounted_rewards(self, value: float) -> None:
        self._n_step_discounted_rewards = value

    def add_info(self, new_info: dict[str, Any]) -> None:
        """Add keys to ``info``. :raises ValueError: if a key exists already"""
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
    """B transitions as columns: arrays with one row for each transition.

    ``Batch(transitions)`` stacks a list of transitions. Indexing and iteration return ``Transition`` objects.

    :param transitions: a list of transitions, or a batch

    :ivar state_columns: the observations by name, each [B, ...]
    :ivar next_state_columns: the observations after the step by name, each [B, ...]
    :ivar action_column: [B] or [B, D]
    :ivar reward_column: [B] float32
    :ivar game_over_column: [B] bool
    :ivar terminated_column: [B] bool
    :ivar return_column: [B] float32, the n-step discounted rewards; None if they are not known. A masked array if only
        some of them are known, as in a chunk of a rollout worker
    :ivar n_step_column: [B] int32, the number of steps in each transition; None if each transition has one step
    :ivar goal_column: [B, ...], the goals; None without goals
    :ivar info_columns: entries of the transitions' info by name, each [B, ...]
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
        """Make a batch from its columns, each with B rows. The columns are not copied."""
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
        """Join several batches with the same observations into one batch.

        If a batch lacks an info column, its rows get a placeholder in this column: NaN, 0 or None, or 1 in the column
        ``weight``. The joined batch has returns and goals only if all batches have them.
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
        """The rows as new ``Transition`` objects."""
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
        """Shuffle the rows. :param rng: the random generator; None uses NumPy's global generator"""
        order = np.random.permutation(self.size) if rng is None else rng.permutation(self.size)
        self.__dict__.update(self._rows(order).__dict__)

    def states(self, fetches: Iterable[str], expand_dims: bool = False) -> StateType:
        """The observations before the step, by name: [B, ...], or [B, ..., 1] with ``expand_dims``."""
        return {name: _expand(self.state_columns[name], expand_dims) for name in fetches if name in self.state_columns}

    def next_states(self, fetches: Iterable[str], expand_dims: bool = False) -> StateType:
        """The observations after the step, as in ``states``."""
        columns = self.next_state_columns
        return {name: _expand(columns[name], expand_dims) for name in fetches if name in columns}

    def actions(self, expand_dims: bool = False) -> np.ndarray:
        """[B] discrete or [B, D] continuous actions."""
        return _expand(self.action_column, expand_dims)

    def rewards(self, expand_dims: bool = False) -> np.ndarray:
        """[B] rewards."""
        return _expand(self.reward_column, expand_dims)

    def n_step_discounted_rewards(self, expand_dims: bool = False) -> np.ndarray:
        """[B] discounted returns.

        :raises ValueError: if the episode of a transition has not ended, so that its return is unknown
        """
        if self.return_column is None or np.ma.is_masked(self.return_column):
            raise ValueError("n_step_discounted_rewards is known only for transitions of ended episodes")
        return _expand(self.return_column, expand_dims)

    def n_steps(self, expand_dims: bool = False) -> np.ndarray:
        """[B] int32: the number of steps in each transition. The reward is the discounted sum of their rewards."""
        ones = np.ones(self.size, dtype=np.int32)
        return _expand(ones if self.n_step_column is None else self.n_step_column, expand_dims)

    def game_overs(self, expand_dims: bool = False) -> np.ndarray:
        """[B] bool: True if the episode ended with this step, by termination or by a limit of steps."""
        return _expand(self.game_over_column, expand_dims)

    def terminateds(self, expand_dims: bool = False) -> np.ndarray:
        """[B] bool: True if the episode ended with this step by termination, so that there is no bootstrapping."""
        return _expand(self.terminated_column, expand_dims)

    def goals(self, expand_dims: bool = False) -> np.ndarray:
        """[B, ...] the goals during the steps. :raises ValueError: if the transitions have no goals"""
        if self.goal_column is None:
            raise ValueError("these transitions have no goals")
        return _expand(self.goal_column, expand_dims)

    def info(self, key: str, expand_dims: bool = False) -> np.ndarray:
        """[B, ...], the entry ``key`` of each transition's info."""
        return _expand(self.info_columns[key], expand_dims)

    def info_as_list(self, key: str) -> list:
        """The entry ``key`` of each transition's info, as a list."""
        return list(self.info_columns[key])


def _filled(columns: list[np.ndarray | None], lengths: list[int], name: str) -> list[np.ndarray]:
    """The parts of an info column, with placeholders for parts that are None. :param lengths: rows of each part"""
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
    :param bootstrap_total_return_from_old_policy: add the discounted value of the next state to the sum of ``n_step``
        rewards. The policy predicted this value when it acted (``info['max_action_value']``)
    :param n_step: number of rewards to sum; -1 sums all rewards to the end of the episode
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
        """Compute ``n_step_discounted_rewards`` of the transitions. :param first: index of the first transition"""
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
        """Change each transition into an n-step transition (Hessel et al. 2018, section 3, multi-step learning).

        The reward becomes the discounted sum of ``n_step`` rewards. ``next_state``, ``game_over`` and ``terminated``
        are taken from the last step in the sum. ``n_steps`` is the number of rewards in the sum; it is smaller than
        ``n_step`` near the end of the episode.

        ``info['should_bootstrap_next_state']`` is True if the sum ends before the end of the episode.
        """
        if self.n_step == -1 or not self.transitions:
            return
        self.update_discounted_rewards()
        # The sums contain no value of the old policy: the learner bootstraps from the transition's next state.
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
        """The n-step transition that begins at a step; see ``update_transitions_rewards_and_bootstrap_data``.

        :param row: the index of the step. The episode must contain ``n_step`` steps from this step on, or must have
            ended
        """
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
        """The attribute ``attribute_name`` of each transition."""
        if not self.transitions:
            return []
        return list(map(operator.attrgetter(attribute_name), self.transitions))


NO_OLD_VALUE = (
    "bootstrap_total_return_from_old_policy needs info['max_action_value'] of each later step, but a step lacks it "
    "because no network chose the action: set info['max_action_value'], or set the parameter to False"
)

_EPISODE_FIELDS = ("transitions", "discount", "bootstrap_total_return_from_old_policy", "n_step", "is_complete")
plain_data.register(Episode, _EPISODE_FIELDS)


def n_step_returns(rewards: np.ndarray, discount: float, n_step: int = -1) -> np.ndarray:
    """Discounted sums of rewards: G_t = sum over k < n of discount^k r_{t+k}, up to the end of the episode (Sutton &
    Barto 2018, section 7.1). No value is bootstrapped.

    :param rewards: [T], the rewards of the episode
    :param discount: the discount factor
    :param n_step: n, the number of rewards to sum; -1 for all remaining rewards
    :return: [T] float64, G_t of each step
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
    """Selects the episodes that are written as a video. Coach calls ``should_dump`` at the start of an episode and
    again at its end."""

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        """Return True if the episode should be written.

        :param episode_terminated: True if the episode has ended, so that its ``total_reward_in_current_episode`` is
            known
        :param kwargs: the attributes of the environment, such as ``episode_idx`` and ``_phase`` (the phase of the run)
        """
        raise NotImplementedError(f"{type(self).__name__} must define should_dump")


class AlwaysDumpFilter(VideoDumpFilter):
    """Selects every episode."""

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        return True


class MaxDumpFilter(VideoDumpFilter):
    """Selects each episode with a larger reward than all selected episodes before. Episodes of heatup are ignored."""

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
    """Selects one of every ``num_episodes_between_dumps`` episodes."""

    def __init__(self, num_episodes_between_dumps: int):
        if not isinstance(num_episodes_between_dumps, int) or num_episodes_between_dumps < 1:
            raise CoachError(
                f"num_episodes_between_dumps is {num_episodes_between_dumps!r}; it must be a whole number from 1"
            )
        self.num_episodes_between_dumps = num_episodes_between_dumps
        self.last_dumped_episode = -1

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        due = kwargs["episode_idx"] >= self.last_dumped_episode + self.num_episodes_between_dumps
        if due and episode_terminated:
            self.last_dumped_episode = kwargs["episode_idx"]
        return due


class SelectedPhaseOnlyDumpFilter(VideoDumpFilter):
    """Selects the episodes of the given phase or phases, such as ``RunPhase.TEST``."""

    def __init__(self, run_phases: Union[RunPhase, Sequence[RunPhase]]):
        self.run_phases = list(run_phases) if isinstance(run_phases, (list, tuple)) else [run_phases]
        if not all(isinstance(phase, RunPhase) for phase in self.run_phases):
            raise CoachError(f"run_phases is {run_phases!r}; it must be a RunPhase or a list of these")

    def should_dump(self, episode_terminated: bool = False, **kwargs: Any) -> bool:
        return kwargs["_phase"] in self.run_phases


class CsvDataset:
    """A CSV file with recorded transitions.

    :param filepath: the path of the file
    :param is_episodic: True if the rows form whole episodes, in order
    """

    def __init__(self, filepath: str, is_episodic: bool = True):
        self.filepath = filepath
        self.is_episodic = is_episodic


class PickledReplayBuffer:
    """The file of a replay buffer that Intel's Coach has pickled. :param filepath: the path of the file"""

    def __init__(self, filepath: str):
        self.filepath = filepath
