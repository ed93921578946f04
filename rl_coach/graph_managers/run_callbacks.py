"""The callbacks of a run: they are called, and what they ask for is carried out."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from rl_coach.callbacks.callback import Callback, RunView
from rl_coach.core_types import RunPhase
from rl_coach.logger import screen
from rl_coach.utilities.user_code import in_one_line
from rl_coach.utils import CallbackError, Signal


class RunCallbacks:
    """Calls the callbacks of a run.

    :param callbacks: in the order in which they are called
    :param view: what they see of the run
    :param register_signal: makes a signal of the first agent

    :ivar exist: there is one
    :ivar hear_steps: one has an ``on_step`` of its own. Each step asks this attribute, and calls nothing if none has:
        a call that does nothing takes a tenth of a step of the loop alone
    :ivar hear_updates: one has an ``on_update``, likewise
    """

    def __init__(self, callbacks: Sequence[Callback], view: RunView, register_signal: Callable[[str], Signal]):
        self._callbacks = list(callbacks)
        self.exist = bool(self._callbacks)
        self.hear_steps = any(_has_own(one, "on_step") for one in callbacks)
        self.hear_updates = any(_has_own(one, "on_update") for one in callbacks)
        self._register_signal = register_signal
        self._signals: dict[str, Signal] = {}
        self.view = view

    @property
    def wants_stop(self) -> bool:
        """True if one has asked the run to stop."""
        return self.view.stop_reason is not None

    def call(self, hook: str) -> None:
        """Call a method of each.

        :raises CallbackError: one of them has failed
        """
        for callback in self._callbacks:
            try:
                getattr(callback, hook)(self.view)
            except Exception as error:
                raise CallbackError(_failure(callback, hook, error)) from error
        if self.view.logged and self.view.phase is not RunPhase.TEST:  # an evaluation leaves no trace in the signals
            self._record()

    def episode_ended(self, reward: float) -> None:
        """An episode has ended. :param reward: its total reward"""
        self.view.episode_reward = reward
        self.call("on_episode_end")

    def row_written(self, prefix: str, row: dict[str, Any]) -> None:
        """A row of signals has been written. :param prefix: begins their names, where there are several agents"""
        self.view.row = {f"{prefix}{name}": value for name, value in row.items()} if prefix else row
        if self.view.phase is RunPhase.UNDEFINED:  # the last rows come when the run has ended
            self._call_at_end("on_row")
        else:
            self.call("on_row")

    def end(self) -> None:
        """The run has ended. Nothing is lost any more, so that one that fails here changes nothing but the screen."""
        self._call_at_end("on_run_end")

    def _call_at_end(self, hook: str) -> None:
        for callback in self._callbacks:
            try:
                getattr(callback, hook)(self.view)
            except Exception as error:
                screen.warning(_failure(callback, hook, error))

    def carry_out(self, evaluate: Callable[[], Any], save: Callable[[], Any]) -> None:
        """Do what was asked for, between two steps of training."""
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
        """The state of each that has one, by its place and class."""
        states = {name: callback.get_state() for name, callback in self._named()}
        return {name: state for name, state in states.items() if state}

    def set_state(self, states: dict[str, Any]) -> None:
        """Go on from ``get_state``. Callbacks that the run has got since then begin anew."""
        for name, callback in self._named():
            if name in states:
                callback.set_state(states[name])

    def _named(self) -> list[tuple[str, Callback]]:
        return [(f"{number} {type(one).__name__}", one) for number, one in enumerate(self._callbacks)]


def _has_own(callback: Callback, hook: str) -> bool:
    return getattr(getattr(callback, hook), "__func__", None) is not getattr(Callback, hook)


def _failure(callback: Callback, hook: str, error: Exception) -> str:
    return f"callback {type(callback).__name__} failed in {hook}: {in_one_line(error)}"
