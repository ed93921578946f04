"""Several copies of one environment that are stepped together, in this process or in one process for each copy."""

from __future__ import annotations

import copy
import multiprocessing
import weakref
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, Callable, Sequence

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from rl_coach.core_types import ActionType, EnvResponse, RunPhase
from rl_coach.environments.environment_interface import EnvironmentInterface, is_native
from rl_coach.environments.step_columns import StepColumns, stack_states
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.standard_streams import drop_lost_output
from rl_coach.utilities.stop_signals import held_back, ignore, let_through
from rl_coach.utils import CoachError, TrainingError

_SECONDS_TO_DIE = 1.0


class EnvironmentCopies(EnvironmentInterface):
    """Copies of one environment that are stepped one after the other, in this process.

    :param make: functions that build the copies. All copies have the spaces of the first copy, and only the first copy
        draws windows and videos
    """

    def __init__(self, make: Sequence[Callable[[], Any]]):
        super().__init__()
        self.num_copies = len(make)
        spaces, self._target_success_rate = self._start(make)
        self.state_space, self.goal_space, self.reward_space, self._action_space = spaces

    def _start(self, make: Sequence[Callable[[], Any]]) -> Description:
        """Build the copies. :return: the description of the first copy, which holds for all"""
        self.copies = [build() for build in make]
        return _description_of(self.copies[0])

    @property
    def action_space(self) -> ActionSpace:
        return self._action_space

    def get_target_success_rate(self) -> float:
        return self._target_success_rate

    @property
    def waiting(self) -> np.ndarray:
        """[N] bool, True for a copy that begins its next episode in the next step, and ignores the action of this step.
        Until then, the caller does not begin an episode in this copy; it also ignores the copy's answer to this step.
        At least one copy is not waiting. In this class, no copy waits."""
        return np.zeros(self.num_copies, np.bool_)

    @property
    def phase(self) -> RunPhase:
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._phase = value
        self._tell_phase(value)

    def begin_episodes(self, forced: dict[int, bool]) -> dict[int, EnvResponse]:
        """Begin an episode in some of the copies.

        :param forced: the numbers of these copies. The value is True to reset even if the simulator would continue (a
            game with lives left)
        :return: the first states
        """
        return {index: self.copies[index].reset_internal_state(is_forced) for index, is_forced in forced.items()}

    def step_all(self, actions: Sequence[ActionType]) -> list[EnvResponse]:
        """Act once in each copy. :param actions: one action for each copy"""
        return [environment.step(action) for environment, action in zip(self.copies, actions)]

    def begin_columns(self, indices: np.ndarray, forced: np.ndarray) -> dict[str, np.ndarray]:
        """Begin an episode in some of the copies. The same as ``begin_episodes``, with arrays.

        :param indices: [K], the numbers of the copies
        :param forced: [K] bool, True to reset even if the simulator would continue
        :return: the first states by the observation's name, [K, ...] each
        """
        responses = self.begin_episodes(dict(zip(indices.tolist(), forced.tolist())))
        return stack_states([response.next_state for response in responses.values()])

    def step_columns(self, actions: np.ndarray | Sequence[ActionType]) -> StepColumns:
        """Act once in each copy. The same as ``step_all``, with arrays.

        :param actions: [N, ...], one action for each copy
        :return: the answers as arrays with one row for each copy
        """
        return StepColumns.of(self.step_all(_one_by_one(actions)))

    def get_state(self) -> dict[str, Any]:
        """Counters and random states of the copies, for a checkpoint."""
        return self._by_copy(self._call("get_state"))

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state from ``get_state``. Call ``begin_episodes`` next."""
        self._call_each("set_state", self._in_order(state))

    def get_episode_state(self) -> dict[str, Any] | None:
        """The episodes in progress; None if one of them cannot be saved."""
        states = self._call("get_episode_state")
        return None if None in states else self._by_copy(states)

    def set_episode_state(self, state: dict[str, Any]) -> bool:
        """Repeat the episodes in progress. :return: True if all repeated episodes reached the same state"""
        return all(self._call_each("set_episode_state", self._in_order(state)))

    def close(self) -> None:
        """Release the simulators."""
        for environment in self.copies:
            environment.close()

    @staticmethod
    def _by_copy(states: Sequence[Any]) -> dict[str, Any]:
        return {str(index): state for index, state in enumerate(states)}

    def _in_order(self, state: dict[str, Any]) -> list[Any]:
        if is_native(state):
            raise CoachError(
                "the saved environments were stepped with env_params.vectorization 'native': set "
                "env_params.vectorization to 'native'"
            )
        return [state[str(index)] for index in range(self.num_copies)]

    def _call(self, method: str) -> Sequence[Any]:
        """Call a method in each copy. :return: the results"""
        return [getattr(environment, method)() for environment in self.copies]

    def _call_each(self, method: str, arguments: Sequence[Any]) -> Sequence[Any]:
        """Call a method with one argument in each copy. :param arguments: one for each copy :return: the results"""
        return [getattr(environment, method)(argument) for environment, argument in zip(self.copies, arguments)]

    def _tell_phase(self, value: RunPhase) -> None:
        for environment in self.copies:
            environment.phase = value


class EnvironmentProcesses(EnvironmentCopies):
    """Copies of one environment, each in its own process, which act in parallel.

    Sending the actions and observations of a step takes 150 to 200 us for each copy. With eight copies on two cores,
    processes are faster if a step of the simulator takes more than about 400 us; with two copies, 700 us.

    :param make: functions that build the copies, each in its process
    :raises TrainingError: in any call, if a copy has died
    """

    def _start(self, make: Sequence[Callable[[], Any]]) -> Description:
        # Not forked: a fork would copy threads and locks of this process into the others.
        resource_tracker.ensure_running()  # its start would end ``held_back``, so start it before
        try:
            with held_back():
                self._processes = AsyncVectorEnv(
                    [partial(_CopyForGymnasium, build) for build in make],
                    context="spawn",
                    autoreset_mode=AutoresetMode.DISABLED,
                )
        except (EOFError, ConnectionError) as error:
            raise CoachError("an environment copy died at its start: set env_params.vectorization to 'sync'") from error
        # Copies ignore SIGTERM, so this process must kill them if it ends without closing them.
        self._failure: Exception | None = None
        self._kill = weakref.finalize(self, _kill_all, self._processes.processes)
        return self._ask(self._processes.get_attr, "description")[0]

    def _ask(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """The answers of all copies to a call. If a copy has died or failed, all later calls raise the same error."""
        if self._failure is not None:
            raise self._failure
        try:
            return method(*arguments, **keywords)
        except (EOFError, ConnectionError) as error:
            self._failure = TrainingError(self._obituary())
            raise self._failure from error
        except Exception as error:
            self._failure = error
            raise

    def _obituary(self) -> str:
        for index, process in enumerate(self._processes.processes):
            process.join(_SECONDS_TO_DIE)
            code = process.exitcode
            if code is not None:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                return f"environment copy {index} {how}; env_params.vectorization='sync' needs no processes"
        return "an environment copy no longer answers"

    def _call(self, method: str) -> Sequence[Any]:
        return self._ask(self._processes.call, "call", method)

    def _call_each(self, method: str, arguments: Sequence[Any]) -> Sequence[Any]:
        self._ask(self._processes.set_attr, "argument", list(arguments))
        return self._ask(self._processes.call, "call_with_argument", method)

    def _tell_phase(self, value: RunPhase) -> None:
        self._ask(self._processes.set_attr, "phase", value)

    def begin_episodes(self, forced: dict[int, bool]) -> dict[int, EnvResponse]:
        observations, infos = self._begin(forced)
        return {index: self._response(index, observations, infos) for index in forced}

    def begin_columns(self, indices: np.ndarray, forced: np.ndarray) -> dict[str, np.ndarray]:
        observations, _ = self._begin(dict(zip(indices.tolist(), forced.tolist())))
        return {name: rows[indices] for name, rows in observations.items()}

    def _begin(self, forced: dict[int, bool]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        are_forced = [forced.get(index, False) for index in range(self.num_copies)]
        self._ask(self._processes.set_attr, "is_forced", are_forced)
        mask = np.array([index in forced for index in range(self.num_copies)])
        return self._ask(self._processes.reset, options={"reset_mask": mask})

    def step_all(self, actions: Sequence[ActionType]) -> list[EnvResponse]:
        observations, *_, infos = self._ask(self._processes.step, actions)
        return [self._response(index, observations, infos) for index in range(self.num_copies)]

    def step_columns(self, actions: np.ndarray | Sequence[ActionType]) -> StepColumns:
        observations, *_, infos = self._ask(self._processes.step, _one_by_one(actions))
        return StepColumns.of(infos["response"], observations)

    @staticmethod
    def _response(index: int, observations: dict[str, np.ndarray], infos: dict[str, Any]) -> EnvResponse:
        response = infos["response"][index]
        response.next_state = {name: rows[index] for name, rows in observations.items()}
        return response

    def close(self) -> None:
        if self._processes.closed:
            return
        if self._failure is None:
            self._processes.close()
        else:
            self._processes.closed = True  # after a failure, the copies do not answer a request to close
        self._kill()


Description = tuple[tuple[Any, Any, Any, ActionSpace], float]
"""Facts that are equal for all copies: the spaces of states, goals, rewards and actions; the target success rate."""


def _description_of(environment: Any) -> Description:
    spaces = (environment.state_space, environment.goal_space, environment.reward_space, environment.action_space)
    return spaces, environment.get_target_success_rate()


class _CopyForGymnasium(gymnasium.Env):
    """A copy in the form that Gymnasium's processes need. Observations are sent through shared memory. The other values
    of an answer are sent as its info. Gymnasium calls a method of all copies with the same arguments. An argument that
    differs between copies is therefore set as an attribute first."""

    def __init__(self, make: Callable[[], Any]):
        if multiprocessing.parent_process() is not None:
            drop_lost_output()
            ignore()  # a signal stops the run between two steps, and the run closes its copies
        with let_through():  # Gymnasium makes one copy in this process, which may start further processes
            self._environment = make()
        boxes: dict[str, gymnasium.Space] = {
            name: _box_of(np.asarray(value)) for name, value in self._environment.state.items()
        }
        self.observation_space = gymnasium.spaces.Dict(boxes)
        # Actions are passed on unchanged. Gymnasium needs the space only for the number of actions.
        self.action_space = gymnasium.spaces.Discrete(1)
        self.is_forced = False
        self.argument: Any = None

    @property
    def description(self) -> Description:
        return _description_of(self._environment)

    @property
    def phase(self) -> RunPhase:
        return self._environment.phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._environment.phase = value

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        response = self._environment.reset_internal_state(self.is_forced)
        return response.next_state, self._beside(response)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        response = self._environment.step(action)
        return response.next_state, 0.0, False, False, self._beside(response)

    @staticmethod
    def _beside(response: EnvResponse) -> dict[str, Any]:
        beside = copy.copy(response)
        beside.next_state = {}
        return {"response": beside}

    def call(self, method: str) -> Any:
        return getattr(self._environment, method)()

    def call_with_argument(self, method: str) -> Any:
        argument, self.argument = self.argument, None
        return getattr(self._environment, method)(argument)

    def close(self) -> None:
        self._environment.close()


def _one_by_one(actions: np.ndarray | Sequence[ActionType]) -> Sequence[ActionType]:
    """The actions as a sequence with one action for each copy. Rows of an array are copied, because an environment
    stores its actions."""
    if not isinstance(actions, np.ndarray):
        return actions
    return actions.tolist() if actions.ndim == 1 else list(actions.copy())


def _kill_all(processes: Sequence[Any]) -> None:
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join(_SECONDS_TO_DIE)


def _box_of(example: np.ndarray) -> gymnasium.spaces.Box:
    low, high = (0, 1) if example.dtype.kind == "b" else (-np.inf, np.inf)
    if example.dtype.kind in "iu":
        limits = np.iinfo(example.dtype)
        low, high = limits.min, limits.max
    return gymnasium.spaces.Box(low, high, example.shape, example.dtype.type)
