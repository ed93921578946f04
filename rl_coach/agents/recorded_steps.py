"""Recorded steps for an agent's memory or for one update."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Sequence

import numpy as np

from rl_coach.agents.core.accumulated_reward import add_accumulated_rewards
from rl_coach.agents.core.recorded_values import require_batch
from rl_coach.agents.core.requirements import MemoryRequirement
from rl_coach.agents.rules.q_learning import td_losses
from rl_coach.architectures.head_parameters import DuelingQHeadParameters, QHeadParameters
from rl_coach.core_types import ActionInfo, Batch, TrainingSteps, Transition
from rl_coach.environments.fed_environment import FedEnvironment
from rl_coach.filters.recorded_episodes import ONE_BY_ONE, filter_recorded, in_order
from rl_coach.logger import screen
from rl_coach.memories.non_episodic.demonstration_replay import DemonstrationReplay
from rl_coach.space_values import cast, one_number, row, truth
from rl_coach.utils import CoachError, choose_from, force_list

_NO_DATA = "cannot use recorded data; choose BC, MARWIL, DQN or SAC"
_COLUMNS = ("states", "actions", "rewards", "terminals")
_OPTIONAL = ("truncated", "next_states", "info", "next_info")
_WEIGHTS = "importance_weights"
_Q_HEADS = (QHeadParameters, DuelingQHeadParameters)


def steps_of(data: Any) -> list[dict[str, Any]]:
    """Recorded steps as a list with a dictionary for each step.

    :param data: a dictionary of columns, or a dictionary for each step
    :raises CoachError: if the data have another form, or the columns differ in length
    """
    if not isinstance(data, Mapping):
        given = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(one, Mapping) for one in given):
            raise CoachError(
                f"the recorded steps are of the type {type(data).__name__}: give a dictionary of columns, or a list "
                f"with a dictionary for each step"
            )
        return [dict(one) for one in given]
    if "rewards" not in data:
        raise CoachError("the recorded steps have no 'rewards': give one for each step")
    columns = {name: _positional(column) for name, column in data.items()}
    rewards = columns["rewards"]
    if np.ndim(rewards) == 0:
        raise CoachError(f"'rewards' of the recorded steps is {rewards!r}: give a list with one reward for each step")
    count = len(rewards)
    for name, column in columns.items():
        _require_rows(name, column, count)
    return [{name: row(column, number, count) for name, column in columns.items()} for number in range(count)]


def _rows(
    data: Mapping[str, Any] | Iterable[Mapping[str, Any]], needed: Sequence[str], optional: Sequence[str]
) -> list[dict[str, Any]]:
    """Checked steps; see ``steps_of``.

    :raises CoachError: if the data have another form, a necessary column is missing, a column is unknown, the columns
        differ in length, or an end of an episode is neither true nor false
    """
    found = steps_of(data)
    for number, one in enumerate(found):
        for name in ("terminals", "truncated"):
            if name in one:
                one[name] = truth(one[name], f"'{name}' of step {number}")
    for name in needed:
        if not found or any(name not in one for one in found):
            raise CoachError(f"the recorded steps have no '{name}': give {', '.join(needed)}, one for each step")
    known = [*needed, *optional]
    if unknown := [name for one in found for name in one if name not in known]:
        hint = choose_from(str(unknown[0]), known)
        raise CoachError(f"the recorded steps have an unknown column '{unknown[0]}'{hint}")
    return found


def _positional(column: Any) -> Any:
    """A column with the rows in their order. A column of pandas becomes an array, because its labels need not be the
    numbers of the rows."""
    if isinstance(column, Mapping):
        return {name: _positional(part) for name, part in column.items()}
    return np.asarray(column) if hasattr(column, "__array__") and np.ndim(column) else column


def _require_rows(name: str, column: Any, count: int) -> None:
    if isinstance(column, Mapping):
        for part in column.values():
            _require_rows(name, part, count)
    elif not isinstance(column, (bool, np.bool_)):
        rows = len(column) if isinstance(column, (list, tuple)) or np.ndim(column) else 1
        if rows != count:
            raise CoachError(f"'{name}' of the recorded steps has {rows} rows, and 'rewards' has {count}")


def store(core: Any, environment: FedEnvironment, data: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> int:
    """Store recorded steps in an agent's memory. See ``Agent.import_observations``."""
    _require_memory(core)
    if core.learning.segment_steps is not None:
        raise CoachError(
            f"agent '{core.name}' learns from the segments that it plays: {type(core).__name__} {_NO_DATA}"
        )
    if not core.learns_from_recorded_steps:
        raise CoachError(f"agent '{core.name}' learns as it plays: {type(core).__name__} {_NO_DATA}")
    steps = _rows(data, _COLUMNS, _OPTIONAL)
    # all steps are checked before the first one is stored, so that an error leaves the memory unchanged
    played = [_played(core, environment, steps, episode) for episode in _episodes(steps)]
    histories = core.input_filter.episode_state()
    try:
        pieces, cuts = in_order(played, core.input_filter)
        filtered = filter_recorded(pieces, core.input_filter)
        for transitions in filtered:
            if core.ap.algorithm.use_accumulated_reward_as_measurement:
                add_accumulated_rewards(transitions)
            require_batch(Batch(transitions), core.memory_spaces, "import_observations")
    finally:
        core.input_filter.set_episode_state(histories)
    if cuts:
        screen.warning(f"{core.name}: {ONE_BY_ONE.format(cuts)}")
    for transitions in filtered:
        episode = core.episode_class(core.ap.algorithm)
        for transition in transitions:
            core.experience.add(transition, episode)
        core.experience.finish(episode)
    return len(steps)


def _require_memory(core: Any) -> None:
    if core.is_on_policy:
        raise CoachError(
            f"agent '{core.name}' learns only from steps of its newest policy: {type(core).__name__} {_NO_DATA}"
        )


def _require_single_steps(core: Any) -> None:
    needed = getattr(core, "memory_requirement", MemoryRequirement.NOTHING)
    has_parts = core.batches.gives_sequences or core.learning.segment_steps is not None
    if has_parts or needed is not MemoryRequirement.NOTHING or isinstance(core.memory, DemonstrationReplay):
        stores = core.learning.segment_steps is None and core.learns_from_recorded_steps
        advice = ": store whole episodes with import_observations, and call update() without a batch" if stores else ""
        raise CoachError(
            f"agent '{core.name}' learns from several steps of an episode, so {type(core).__name__} cannot use "
            f"update(batch){advice}"
        )


def _action(core: Any, environment: FedEnvironment, raw: Any) -> ActionInfo:
    return core.output_filter.reverse_filter(ActionInfo(environment.environment_action(raw)))


def _episodes(steps: list[dict[str, Any]]) -> Iterator[range]:
    """The numbers of the steps of each episode."""
    begin = 0
    for number, step in enumerate(steps):
        if step["terminals"] or step.get("truncated", False) or number == len(steps) - 1:
            yield range(begin, number + 1)
            begin = number + 1


def _after(steps: list[dict[str, Any]], episode: range) -> list[Any]:
    """The observation after each step of an episode: its ``next_states``, or the state of the next step. If the
    observation after the last step of a terminated episode is missing, the last state replaces it: no value depends on
    it.

    :raises CoachError: if the last observation of a truncated episode is missing
    """
    found = []
    for number in episode:
        step = steps[number]
        if "next_states" in step:
            found.append(step["next_states"])
        elif number < episode[-1]:
            found.append(steps[number + 1]["states"])
        elif step["terminals"]:  # no value depends on this observation
            found.append(step["states"])
        else:
            raise CoachError(
                f"step {number} is the last step of an episode that was truncated or is unfinished: give its "
                f"'next_states'"
            )
    return found


def _played(core: Any, environment: FedEnvironment, steps: list[dict[str, Any]], episode: range) -> list[Transition]:
    """The transitions of an episode, before the agent's filters."""
    found = []
    for number, observation in zip(episode, _after(steps, episode)):
        step = steps[number]
        transition = Transition(
            state=environment.read(step["states"], step.get("info", {})),
            action=_action(core, environment, step["actions"]).action,
            reward=float(one_number(step["rewards"], f"the reward of step {number}")),
            next_state=environment.read(observation, step.get("next_info", {})),
            game_over=number == episode[-1],
            terminated=step["terminals"],
        )
        found.append(transition)
    return found


def batch(core: Any, environment: FedEnvironment, data: Mapping[str, Any]) -> Batch:
    """Recorded steps, after the agent's filters, as a batch for one update.

    ``importance_weights`` [B] are the weights of the rows' losses; the default is 1 for each row. ``info`` and
    ``next_info`` contain the action masks of the states.

    :raises CoachError: if a column is missing, is unknown or has a wrong shape; if the agent cannot use a given column;
        or if the agent or its filters need other steps of the episode
    """
    _require_memory(core)
    _require_single_steps(core)
    rows = _rows(data, (*_COLUMNS, "next_states"), (_WEIGHTS, "info", "next_info"))
    if any(member.remembers_episode for _, member in core.input_filter._members()):
        raise CoachError(
            "update(batch) has single steps, but the agent's input_filter needs the earlier steps of the episode: "
            "store whole episodes with import_observations, and call update() without a batch"
        )
    if not core.learns_by_rule and any(_WEIGHTS in one for one in rows):
        raise CoachError(f"agent '{core.name}' overrides learn_from_batch, so it cannot use {_WEIGHTS}: leave them out")
    found = {}
    for name, about in (("states", "info"), ("next_states", "next_info")):
        read = [environment.read(one[name], one.get(about, {})) for one in rows]
        columns = {part: np.stack([np.asarray(one[part]) for one in read]) for part in read[0]}
        found[name] = core.input_filter.filter_columns(columns, False)
    terminals = np.asarray([one["terminals"] for one in rows])
    rewards, weights = (
        np.asarray(
            [one_number(one.get(name, 1.0), f"the {word} of step {i}") for i, one in enumerate(rows)], np.float32
        )
        for name, word in (("rewards", "reward"), (_WEIGHTS, "importance weight"))
    )
    if not np.all((weights >= 0) & np.isfinite(weights)):
        raise CoachError(f"{_WEIGHTS} must be finite numbers of at least 0")
    made = Batch.from_columns(
        found["states"],
        cast(core.memory_spaces.action, [_action(core, environment, one["actions"]).action for one in rows]),
        core.input_filter.filter_rewards(rewards, False),
        terminals,
        found["next_states"],
        terminateds=terminals,
        info={"weight": weights},
    )
    require_batch(made, core.memory_spaces, "update")
    return made


class Loss(float):
    """The loss of an update on a batch. It is a number; ``loss, per_item = agent.update(batch)`` unpacks it.

    :ivar per_item: [B], the squared or Huber TD error of each row, without its weight. For heads other than Q(s, a),
        the absolute error that prioritized replay uses; empty if the rule returns no errors
    :ivar by_network: each network's loss
    """

    per_item: np.ndarray
    by_network: dict[str, float]

    @classmethod
    def of(cls, core: Any, loss: float, result: Any, rows: int) -> Loss:
        """Make this object from the results of an update.

        :param loss: the loss of the whole update
        :param result: the learner's result; None for an agent that overrides ``learn_from_batch``
        :param rows: B; a compiled update may have added rows, which are left out
        """
        found, errors = cls(loss), None if result is None else result.errors
        errors = np.zeros(0, np.float32) if errors is None else np.abs(errors[0][:rows])
        main = core.ap.network_wrappers.get("main")
        is_q = main is not None and isinstance(force_list(main.heads_parameters)[0], _Q_HEADS)
        found.per_item = td_losses(np, errors, main.replace_mse_with_huber_loss) if is_q else errors
        found.by_network = {} if result is None else {name: float(one[0]) for name, one in result.losses.items()}
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter((float(self), self.per_item))


def warn_of_targets(core: Any, updates_before: int) -> None:
    """Warn once that target networks are not updated, because their period counts environment steps and the agent does
    not play.

    :param updates_before: number of updates before the last call
    """
    clock, name = core.clock, "num_steps_between_copying_online_weights_to_target"
    period, has_targets = clock.target_period, any(network.has_target for network in core.networks.values())
    counts_steps = has_targets and not isinstance(period, TrainingSteps) and period.num_steps > 1
    if (
        counts_steps
        and not (clock.steps or core.decides_on_targets)
        and updates_before < period.num_steps <= clock.updates
    ):
        screen.warning(
            f"agent '{core.name}' has made {clock.updates:,} updates and played no step, and its target networks are "
            f"updated after {period!r}: if it learns from recorded data alone, set {name} to "
            f"TrainingSteps({int(period.num_steps)})"
        )
