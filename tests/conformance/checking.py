"""Comparison of the rows that an agent learned from with the log. NumPy alone computes the filters."""

from __future__ import annotations

import itertools
import math
import pathlib
from dataclasses import dataclass, field
from typing import Any, Iterator

import numpy as np

from tests.conformance import log
from tests.conformance.axes import Cell
from tests.conformance.running import COMMANDS, DEMONSTRATED, RECORDED, Outcome, is_from_file
from tests.conformance.seen import filtered, is_same_action, named

_OWN_OBSERVATIONS = {"measurements", "goal", "accumulated_reward"}
_TOLERANCE = 2e-4
_CUT = ("PPO", "AdaptivePPO", "TRPO", "GAIL", "PQN")
_CUT_BY_WORKERS = {
    "-n 2": ("APPO", "ARS", "IMPALA", *_CUT),
    "-dc -n 2": ("A2C", "ACER", "APPO", "ARS", "IMPALA", "NStepQ", "PG", *_CUT),
}
_WHOLE = ("one environment", "own loop", "recorded data")
_PLAYS_MORE = ("kill and resume", "export and act", "evaluation")
_UNKNOWN_ORDER = (*COMMANDS, "compiled")
_UNSEEN = ("reset", "reset")  # the first of two observations that nothing lies between


@dataclass
class Episode:
    """An episode as the environment has logged it, with the observations as the agent should see them."""

    states: list[dict[str, np.ndarray]]
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False


def faults(cell: Cell, outcome: Outcome, directory: pathlib.Path) -> Iterator[str]:
    """The faults of a cell, a line each.

    :param directory: where its log is
    """
    found = list(log.entries(directory))
    if outcome.refusal is not None:
        yield from _faults_of_refusal(cell, outcome.refusal, found)
        return
    yield from _faults_of_actions(itertools.chain(*found))
    yield from _faults_of_counts(cell, outcome, found)
    yield from _faults_of_rows(cell, found)
    for what, (one, other) in outcome.equal.items():
        if not _is_equal(one, other):
            yield f"not equal: {what}"


def _faults_of_refusal(cell: Cell, line: str, found: list[list[dict[str, Any]]]) -> Iterator[str]:
    if "\n" in line.strip():
        yield f"it is refused in more than one line: {line!r}"
    if cell.extra == "export and act":  # the policy is asked for when the run has ended
        return
    played = (entries for number, entries in _by_environment(found).items() if number != RECORDED)
    if any(entry["kind"] == "step" for entry in itertools.chain(*played)):
        yield f"it is refused after the first step: {line}"
    if any(entry["kind"] == "rows" for entry in itertools.chain(*found)):
        yield f"it is refused after something was learned: {line}"


def _faults_of_actions(entries: Any) -> Iterator[str]:
    for entry in entries:
        if entry["kind"] != "step":
            continue
        if not entry["is_contained"]:
            yield f"the action {entry['action']!r} is not in the action space"
            return
        if entry["allowed"] is not None and not entry["allowed"][entry["action"]]:
            yield f"the action {entry['action']!r} is masked by {entry['allowed']}"
            return


def _faults_of_counts(cell: Cell, outcome: Outcome, found: list[list[dict[str, Any]]]) -> Iterator[str]:
    if not outcome.counted or cell.way == "compiled" or cell.extra in _PLAYS_MORE:
        return
    played = {number: entries for number, entries in _by_environment(found).items() if number != RECORDED}
    steps = [entry for entries in played.values() for entry in entries if entry["kind"] == "step"]
    players = 2 if cell.way == "two players" else 1
    ends = sum(entry["terminated"] or entry["truncated"] for entry in steps)
    if outcome.counted["steps"] * players != len(steps):
        yield f"the run counted {outcome.counted['steps']} steps, and the environment {len(steps) / players:g}"
    if cell.way == "one environment" and outcome.counted["episodes"] != ends:
        yield f"the run counted {outcome.counted['episodes']} episodes, and the environment {ends}"


def _faults_of_rows(cell: Cell, found: list[list[dict[str, Any]]]) -> Iterator[str]:
    tables = [_Table(cell, episodes) for run in _runs(found) for episodes in _episodes(cell, run)]
    count = 0
    for entry in itertools.chain(*found):
        if entry["kind"] != "rows":
            continue
        count += len(entry["rewards"])
        for row in range(len(entry["rewards"])):
            reasons = [table.why_not(entry, row) for table in tables]
            if None not in reasons:
                yield f"row {row} of a batch: {min(reasons, key=lambda one: 'none of the log' in one)}"
                return
    if not count and cell.agent != "Random" and cell.way != "compiled":
        yield "nothing was learned"


def _runs(found: list[list[dict[str, Any]]]) -> list[list[list[dict[str, Any]]]]:
    """The entries of the killed run, and of the run that was resumed from its checkpoint; or all entries."""
    entries = sorted(itertools.chain(*found), key=lambda entry: entry["time"])
    kinds = [entry["kind"] for entry in entries]
    if "resumed" not in kinds:
        return [found]
    end = kinds.index("resumed")
    saved = kinds.index("saved") if "saved" in kinds else end
    return [[entries[:end]], [[*entries[:saved], *entries[end:]]]]


def _by_environment(found: list[list[dict[str, Any]]]) -> dict[Any, list[dict[str, Any]]]:
    """The entries of each environment, without the step that Coach makes to see its answer."""
    by_number: dict[Any, list[dict[str, Any]]] = {}
    for entry in itertools.chain(*found):
        if entry["kind"] in ("reset", "step"):
            by_number.setdefault(entry["env"], []).append(entry)
    compiled = {number: by_number.pop(number) for number in list(by_number) if "step" in by_number[number][0]}
    by_number |= {(number, play): one for number in compiled for play, one in enumerate(_plays(compiled[number]))}
    for number, entries in by_number.items():
        # no episode has one step alone
        if [entry["kind"] for entry in entries[:3]] in (["reset", "step", "reset"], ["reset", "step"]):
            entries = entries[2:]
        kinds = [entry["kind"] for entry in entries]
        by_number[number] = [one for one, after in zip(entries, [*kinds[1:], ""]) if (one["kind"], after) != _UNSEEN]
    return {number: entries for number, entries in by_number.items() if len(entries) > 1}


def _plays(entries: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """A compiled episode each time that it was played. Its entries are in any order."""
    by_step: dict[int, list[dict[str, Any]]] = {}
    for entry in entries:
        by_step.setdefault(entry["step"], []).append(entry)
    for play in range(max(map(len, by_step.values()))):
        yield [by_step[step][min(play, len(by_step[step]) - 1)] for step in sorted(by_step)]


Filtered = dict[int, np.ndarray]
"""The normalised observations, by the identity of their entry."""


def _episodes(cell: Cell, found: list[list[dict[str, Any]]]) -> Iterator[list[Episode]]:
    """The episodes with filtered observations, for each way to count statistics."""
    by_number = _by_environment(found)
    if not _is_normalized(cell) or cell.way in _UNKNOWN_ORDER:
        yield [one for entries in by_number.values() for one in _of(cell, entries, {})]
        return
    # in the order in which the environments were made: copies in processes log their first step at any time
    numbers = [number for number in by_number if number != RECORDED or cell.way == "recorded data"]
    numbers.sort(key=lambda number: (number == RECORDED, number))
    # an evaluation counts nowhere; its environments are made before the training's environments, or after them
    places = range(1, len(numbers)) if cell.extra in ("evaluation", "export and act") else ()
    parts = [numbers, *(numbers[:place] for place in places), *(numbers[place:] for place in places)]
    for part in parts:
        chosen = {number: by_number[number] for number in part}
        if cell.agent in DEMONSTRATED or is_from_file(cell):  # the recorded data are filtered already
            yield list(_of(cell, by_number[RECORDED], {}))
        for count in (_one_by_one, _all_at_once, _data_set):
            normalized = count(cell, chosen)
            yield [one for entries in chosen.values() for one in _of(cell, entries, normalized)]


def _is_normalized(cell: Cell) -> bool:
    """True if the filter's observation exists. A Tuple has other names."""
    return cell.filters == "normalisation" and cell.observations != "Tuple"


def _rounds(by_number: dict[Any, list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """The entries of all copies in the order of steps: in each round beginnings of episodes, then the steps."""
    left = [list(entries) for entries in by_number.values()]
    while any(left):
        for kind in ("reset", "step"):
            now = [entries.pop(0) for entries in left if entries and entries[0]["kind"] == kind]
            if now:
                yield now


class _Statistics:
    """Mean and variance of all that was counted."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def normalized(self, value: np.ndarray) -> np.ndarray:
        variance = np.maximum(np.var(self.seen, axis=0), 0.01)
        return np.clip((value - np.mean(self.seen, axis=0)) / np.sqrt(variance), -5, 5)


def _observation(cell: Cell, entry: dict[str, Any]) -> np.ndarray:
    return named(cell, entry)["observation"].astype(np.float64)


def _one_by_one(cell: Cell, by_number: dict[Any, list[dict[str, Any]]]) -> Filtered:
    """Each observation counts before it is normalised."""
    statistics, found = _Statistics(), {}
    for entry in itertools.chain(*_rounds(by_number)):
        statistics.seen.append(_observation(cell, entry))
        found[id(entry)] = statistics.normalized(statistics.seen[-1])
    return found


def _all_at_once(cell: Cell, by_number: dict[Any, list[dict[str, Any]]]) -> Filtered:
    """The observations of all copies count before the first of them is normalised."""
    statistics, found = _Statistics(), {}
    for entries in _rounds(by_number):
        statistics.seen += [_observation(cell, entry) for entry in entries]
        found |= {id(entry): statistics.normalized(_observation(cell, entry)) for entry in entries}
    return found


def _data_set(cell: Cell, by_number: dict[Any, list[dict[str, Any]]]) -> Filtered:
    """All observations of a data set count before the first of them is normalised."""
    statistics = _Statistics()
    entries = list(itertools.chain(*by_number.values()))
    statistics.seen = [_observation(cell, entry) for entry in entries]
    return {id(entry): statistics.normalized(_observation(cell, entry)) for entry in entries}


def _of(cell: Cell, entries: list[dict[str, Any]], normalized: Filtered) -> Iterator[Episode]:
    episode: Episode | None = None
    history: list[dict[str, np.ndarray]] = []
    for entry in entries:
        if entry["kind"] == "reset":
            if episode is not None:
                yield episode
            history, episode = [], Episode([])
        assert episode is not None
        history.append(named(cell, entry))
        states = filtered(cell, history)
        episode.states.append({**states, "observation": normalized[id(entry)]} if id(entry) in normalized else states)
        if entry["kind"] == "step":
            episode.actions.append(entry["action"])
            episode.rewards.append(entry["reward"])
            episode.terminated, episode.truncated = entry["terminated"], entry["truncated"]
    if episode is not None:
        # the unfinished episode at the end of recorded data counts as truncated
        episode.truncated |= entries[0]["env"] == RECORDED and not episode.terminated
        yield episode


class _Table:
    """All transitions that there were, to look rows up in."""

    def __init__(self, cell: Cell, episodes: list[Episode]):
        self.cell = cell
        self._places = [(one, step) for one in episodes for step in range(len(one.actions))]
        self._names = sorted(episodes[0].states[0])
        self._states = {
            name: np.stack([episode.states[step][name].ravel() for episode, step in self._places]).astype(np.float64)
            for name in self._names
        }
        self._left_out = ("desired_goal",) if "Hindsight" in cell.memory else ()
        # the log does not show when the statistics of several processes are exchanged
        is_unknown = cell.filters == "normalisation" and cell.way in _UNKNOWN_ORDER
        self._left_out += ("observation",) if is_unknown else ()

    def why_not(self, batch: dict[str, Any], row: int) -> str | None:
        """The reason why a row of a batch is no transition of the log; None if it is one."""
        unknown = batch["states"].keys() - self._states.keys() - _OWN_OBSERVATIONS
        if unknown or batch["states"].keys().isdisjoint(self._states):
            return f"it has the observations {sorted(batch['states'])}, and the log has {self._names}"
        wrong = np.zeros(len(self._places))
        for name, column in batch["states"].items():
            if name in self._left_out or name not in self._states:
                continue
            value = column[row].ravel().astype(np.float64)
            if self._states[name].shape[1] != value.size:
                return f"its {name} has the shape {column[row].shape}, and the log has {self._states[name].shape[1]}"
            wrong = np.maximum(wrong, np.abs(self._states[name] - value).max(axis=1))
        places = np.flatnonzero(wrong <= _TOLERANCE)
        if not len(places):
            return f"its state is none of the log's; the nearest differs by {wrong.min():.3g}"
        reasons = [self._why_not(*self._places[place], batch, row) for place in places]
        return None if None in reasons else reasons[-1]

    def _why_not(self, episode: Episode, step: int, batch: dict[str, Any], row: int) -> str | None:
        last = min(step + int(batch["n_step"][row]), len(episode.actions))
        is_same = is_same_action(self.cell, episode.actions[step], batch["actions"][row])
        if "HRL" in self.cell.memory:  # stores the goal that was reached as the action, except from a file
            is_same |= np.allclose(episode.states[step + 1]["achieved_goal"], batch["actions"][row], atol=1e-5)
        if not is_same:
            return f"its action is {batch['actions'][row]!r}, and the environment was given {episode.actions[step]!r}"
        for name, column in batch["next_states"].items():
            if name in self._states and name not in self._left_out:
                value, logged = column[row].ravel().astype(float), episode.states[last][name].ravel().astype(float)
                if np.abs(value - logged).max() > _TOLERANCE:
                    return f"its next {name} differs from the log's by {np.abs(value - logged).max():.3g}"
        if "Hindsight" in self.cell.memory:  # the goal's reward, which the tests of hindsight compute
            return None
        rewards = episode.rewards[step:last]
        reward = sum(batch["discount"] ** ahead * one for ahead, one in enumerate(rewards))
        if not math.isclose(reward, batch["rewards"][row], abs_tol=1e-4):
            return f"its reward is {batch['rewards'][row]}, and the log's is {reward}"
        is_end = last == len(episode.actions)
        found = bool(batch["terminated"][row]), bool(batch["over"][row])
        expected = is_end and episode.terminated, is_end and (episode.terminated or episode.truncated)
        if self._is_cut(*found):
            return None
        if found != expected:
            return f"(terminated, over) is {found} in step {step} of {len(episode.actions)}, and the log has {expected}"
        return None

    def _is_cut(self, terminated: bool, over: bool) -> bool:
        """True if an episode in progress may have been cut here, as docs/several_environments.md and distributed.md
        say."""
        agents = _CUT_BY_WORKERS.get(self.cell.way, _CUT)
        return over and not terminated and self.cell.agent in agents and self.cell.way not in _WHOLE


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(np.array_equal, one, other))
    return bool(one == other)
