"""Calls the callbacks of a run, and carries out the evaluations and checkpoints that callbacks ask for."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.core_types import RunPhase
from rl_coach.logger import screen
from rl_coach.utilities.plain_data import separate
from rl_coach.utilities.stop_signals import stop_signals
from rl_coach.utilities.user_code import in_one_line
from rl_coach.utils import CallbackError, CoachError, Signal, choose_from

_HOOKS = [name for name in vars(Callback) if name.startswith("on_")]


class RunCallbacks:
    """Calls the callbacks of a run.

    :param callbacks: the callbacks, in the order of their calls
    :param view: the values of the run that callbacks can read
    :param register_signal: makes a signal of the first agent

    :ivar exist: True if there is at least one callback
    :ivar hear_steps: True if a callback overrides ``on_step``. If it is False, the loop does not call the callbacks at
        each step: an empty call would take a tenth of the loop's time for a step
    :ivar hear_updates: True if a callback overrides ``on_update``
    """

    def __init__(self, callbacks: Sequence[Callback], view: RunView, register_signal: Callable[[str], Signal]):
        self._callbacks = list(callbacks)
        self.exist = bool(self._callbacks)
        self.hear_steps = any(_has_own(one, "on_step") for one in callbacks)
        self.hear_updates = any(_has_own(one, "on_update") for one in callbacks)
        self._register_signal = register_signal
        self._signals: dict[str, Signal] = {}
        self._failed: set[int] = set()
        self._state_failure: CallbackError | None = None
        self.view = view
        self._forget_steps()

    @property
    def wants_stop(self) -> bool:
        """True if a callback has asked the run to stop."""
        return self.view.stop_reason is not None

    def create(self, graph_manager: Any) -> None:
        """Call ``on_creation`` of each callback. Print a warning about methods that have the name of no hook.

        :raises CoachError: if a callback has failed, before any training
        """
        for callback in self._callbacks:
            for name in _without_effect(callback):
                kind = type(callback).__name__
                screen.warning(f"callback {kind}: Coach never calls '{name}'{choose_from(name, _HOOKS)}")
            try:
                callback.on_creation(graph_manager)
            # the message of a CoachError is complete: do not wrap it in the message about a callback
            except CoachError:
                raise
            except BaseException as error:
                _pass_signals(error)
                raise CoachError(_failure(callback, "on_creation", error)) from error

    def call(self, hook: str) -> None:
        """Call one method of each callback, except callbacks that have failed before.

        :param hook: the method's name, such as ``on_step``
        :raises CallbackError: if the method of a callback has failed
        """
        self.view.steps_before = self._steps_at.get(hook, self._first_step)
        for number, callback in enumerate(self._callbacks):
            if number in self._failed:  # the error ends the run, but the last checkpoint calls callbacks once more
                continue
            try:
                getattr(callback, hook)(self.view)
            except BaseException as error:
                _pass_signals(error)
                self._failed.add(number)
                raise CallbackError(_failure(callback, hook, error)) from error
        self._steps_at[hook] = self.view.steps
        if self.view.logged and self.view.phase is not RunPhase.TEST:  # values from an evaluation wait for training
            self._record()

    def _forget_steps(self) -> None:
        """Count the steps between two calls of a method from the current step on."""
        self._first_step = self.view.steps
        self._steps_at: dict[str, int] = {}

    def episode_ended(self, reward: float) -> None:
        """Call ``on_episode_end``. :param reward: the episode's total reward"""
        self.view.episode_reward = reward
        self.call("on_episode_end")

    def row_written(self, prefix: str, row: dict[str, Any]) -> None:
        """Call ``on_row`` after a row of signals was written.

        :param prefix: prefix of the signals' names if there are several agents
        """
        self.view.row = {f"{prefix}{name}": value for name, value in row.items()} if prefix else row
        if self.view.phase is RunPhase.UNDEFINED:  # the last rows are written after the run's end
            self._call_at_end("on_row")
        else:
            self.call("on_row")

    def end(self) -> None:
        """Call ``on_run_end``. A callback that fails only causes a warning, because the training is saved already."""
        self._call_at_end("on_run_end")

    def _call_at_end(self, hook: str) -> None:
        for callback in self._callbacks:
            try:
                getattr(callback, hook)(self.view)
            except BaseException as error:
                _pass_signals(error)
                screen.warning(_failure(callback, hook, error))

    def carry_out(self, evaluate: Callable[[], Any], save: Callable[[], Any]) -> None:
        """Carry out the evaluation and the checkpoint that callbacks have asked for, between two steps of training."""
        view = self.view
        view.has_asked = self.wants_stop
        if view.wants_evaluation:
            view.wants_evaluation = False
            evaluate()
        if view.wants_checkpoint:
            view.wants_checkpoint = False
            save()

    def _record(self) -> None:
        for name, value in self.view.logged:
            if name not in self._signals:
                self._signals[name] = self._register_signal(name)
            self._signals[name].add_sample(value)
        self.view.logged.clear()

    def get_state(self) -> dict[str, Any]:
        """The states of the callbacks, by number and class name. A state that cannot be saved is left out, so that the
        training can be saved. ``raise_failure_of_state`` then raises the error."""
        states = {}
        for number, (name, callback) in enumerate(self._named()):
            try:
                state = callback.get_state()
                separate(state)
                if state:
                    states[name] = state
            except BaseException as error:
                _pass_signals(error)
                if number not in self._failed:
                    self._failed.add(number)
                    self._state_failure = CallbackError(_failure(callback, "get_state", error))
                    self._state_failure.__cause__ = error
        return states

    def check_states(self) -> None:
        """Check that the states of all callbacks can be saved.

        :raises CallbackError: if ``get_state`` of a callback has failed, or its state cannot be saved
        """
        self.get_state()
        self.raise_failure_of_state()

    def raise_failure_of_state(self) -> None:
        """Raise the error of a callback that could not return its state.

        :raises CallbackError: if the last checkpoint was saved without the state of a callback
        """
        failure, self._state_failure = self._state_failure, None
        if failure is not None:
            raise failure

    def set_state(self, states: dict[str, Any]) -> None:
        """Restore the states that ``get_state`` returned. A callback without a saved state starts from its initial
        state. Print a warning about states that no callback has.

        :raises CoachError: if a callback cannot restore its state
        """
        self._forget_steps()
        known = dict(self._named())
        lost = [name.partition(" ")[2] for name in states if known and name not in known]
        if lost:
            screen.warning(
                f"the checkpoint's states of {', '.join(lost)} are not restored: this run has other callbacks, or has "
                f"them in another order ({', '.join(type(one).__name__ for one in self._callbacks)})"
            )
        for name, callback in known.items():
            if name in states:
                try:
                    callback.set_state(states[name])
                except BaseException as error:
                    _pass_signals(error)
                    raise CoachError(_failure(callback, "set_state", error)) from error

    def _named(self) -> list[tuple[str, Callback]]:
        return [(f"{number} {type(one).__name__}", one) for number, one in enumerate(self._callbacks)]


def _without_effect(callback: Callback) -> list[str]:
    """The names of methods that look like hooks, such as ``on_training_end`` of other libraries."""
    return [name for name in dir(callback) if name.startswith("on_") and name not in _HOOKS]


def _has_own(callback: Callback, hook: str) -> bool:
    return getattr(getattr(callback, hook), "__func__", None) is not getattr(Callback, hook)


def _pass_signals(error: BaseException) -> None:
    """Raise an error again if Ctrl-C or SIGTERM has caused it. ``sys.exit`` in a callback counts as a failure."""
    if stop_signals.have_raised(error):
        raise error


def _failure(callback: Callback, hook: str, error: BaseException) -> str:
    return f"callback {type(callback).__name__} failed in {hook}: {in_one_line(error)}"
