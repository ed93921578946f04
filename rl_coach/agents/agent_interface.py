"""The interface between a level manager and its agent, or several agents that appear as one."""

from __future__ import annotations

from typing import Any, Callable, SupportsFloat

import numpy as np

from rl_coach.agents.core.overrides import override_that_excludes
from rl_coach.core_types import ActionInfo, ActionType, Directive, EnvResponse, PredictionType, RunPhase
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.saver import SaverCollection
from rl_coach.spaces import ActionSpace


class AgentInterface:
    """The interface of an agent: it acts, observes and learns.

    In an episode the calls come in this order: ``reset_internal_state``, ``observe`` (the first response of the
    environment), then ``act`` and ``observe`` in turn until ``observe`` returns True, then ``handle_episode_ended``.
    ``train`` may come between any ``observe`` and the next ``act``.

    :cvar is_person: True if a person acts, who may end the run at any time
    :cvar reason_to_act_alone: the reason why other processes cannot play for the agent, and what to do instead; None if
        they can
    :ivar in_action_space: the directives (such as goals) that the level above may choose; None for an agent without a
        level above
    :ivar owners: the names of graph, level and composite agents that hold this agent, the topmost first
    :ivar run_parameters: returns all parameters of the run, for TensorBoard and other records of the signals
    :ivar stop_if_asked: ends the run if the user has asked for the end; agents that wait for a person call it
    :ivar can_train: True if there are networks to train. Otherwise each call of ``train`` counts as a training step
    :ivar training_iteration: updates of the agent's networks so far
    :ivar last_action_info: the last action; None before the first action
    :ivar updates_left: the largest number of updates that a training phase may still make; None for no limit
    :ivar full_name_id: ``level/agent``, or ``level/composite agent/agent``, once the agent has its parent
    """

    is_person = False
    reason_to_act_alone: str | None = "it is not made of one agent that learns from a memory: leave out -dc and -n"
    can_train = True
    training_iteration = 0
    last_action_info: Any = None

    def __init__(self) -> None:
        self._parent: Any = None
        self._phase = RunPhase.UNDEFINED
        self.name = "agent"
        self.full_name_id = self.name
        self.updates_left: int | None = None
        self.in_action_space: ActionSpace | None = None
        self.owners: tuple[str, ...] = ()
        self.run_parameters: Callable[[], dict[str, Any]] = dict
        self.stop_if_asked: Callable[[], None] = _nobody_asks

    @property
    def pictures_beside(self) -> Callable[[int], list[np.ndarray]] | None:
        """A function that returns pictures [height, width, channels] uint8. A video shows them next to the picture of
        the environment. None if the agent has no pictures. The function's argument is the number of steps in the
        present episode. It is called at each step, after the action is chosen and before its result is observed; at
        step 0, before the agent's episode begins.
        """
        return None

    @property
    def parent(self) -> Any:
        """The level manager or composite agent that holds this agent."""
        return self._parent

    @parent.setter
    def parent(self, value: Any) -> None:
        self._parent = value
        self.full_name_id = self.name if value is None else f"{value.full_name_id}/{self.name}"

    @property
    def phase(self) -> RunPhase:
        """Current phase of the run. Setting another phase than ``TEST`` closes an evaluation."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._phase = value

    @property
    def is_on_policy(self) -> bool:
        """True if the agent learns only from steps of its current policy."""
        raise NotImplementedError(f"{type(self).__name__} must define is_on_policy")

    @property
    def by_stream(self) -> dict[str, Any]:
        """The agents that learn, by the name of their stream. A stream brings an agent's experience from other
        processes. The stream of a single agent has the name ''."""
        return {"": self}

    def players_of_stream(self, stream: str) -> int:
        """The number of players that an agent of ``by_stream`` plays in an environment."""
        return 1

    def create_agents(self) -> None:
        """Build the agents that this agent consists of, if there are any. Called after this agent has its parent."""

    def connect(
        self, owners: tuple[str, ...], run_parameters: Callable[[], dict[str, Any]], stop_if_asked: Callable[[], None]
    ) -> None:
        """Set the attributes ``owners``, ``run_parameters`` and ``stop_if_asked`` of an agent in a graph. Called before
        ``setup_logger``."""
        self.owners = owners
        self.run_parameters = run_parameters
        self.stop_if_asked = stop_if_asked

    def set_environment_parameters(self, spaces: Any) -> None:
        """Set the environment's ``SpacesDefinition``, and build all parts that depend on it."""
        raise NotImplementedError(f"{type(self).__name__} must define set_environment_parameters")

    def setup_logger(self) -> None:
        """Open the files that signals go to."""

    def seed(self, seed: Any) -> None:
        """Seed all random streams from a ``SeedSequence``. Called before ``set_environment_parameters``, so that it
        also determines the initial weights."""

    def begin_episode(self) -> None:
        """Begin an episode."""
        self.reset_internal_state()

    def reset_internal_state(self) -> None:
        """Forget the previous episode."""
        raise NotImplementedError(f"{type(self).__name__} must define reset_internal_state")

    def act(self, action: ActionType | None = None) -> ActionInfo | None:
        """Choose an action for the state last observed, or take ``action`` as the choice.

        :return: the action in the environment's action space; None if the environment must not make a step (imitation)
        """
        raise NotImplementedError(f"{type(self).__name__} must define act")

    def replace_last_action(self, action_info: ActionInfo) -> None:
        """Record an action as the last action: the environment receives it instead of the agent's choice."""
        self.last_action_info = action_info

    def observe(self, env_response: EnvResponse) -> bool:
        """Observe the environment's answer. :return: True if the episode has ended for this agent"""
        raise NotImplementedError(f"{type(self).__name__} must define observe")

    def should_train(self) -> bool:
        """True if the next call of ``train`` would learn. The call changes no state."""
        raise NotImplementedError(f"{type(self).__name__} must define should_train")

    def train(self) -> SupportsFloat:
        """Make the updates that are due. The device may still compute them when this returns.

        :return: the loss, 0 without an update
        :raises TrainingError: if a loss is not finite; at the latest when the new weights are first needed
        """
        raise NotImplementedError(f"{type(self).__name__} must define train")

    def handle_episode_ended(self) -> None:
        """Complete the episode that has just ended."""

    def put_episode_aside(self) -> Any:
        """Return the episode in progress, or None without one. ``take_up_episode`` continues it after another
        episode, or in another run."""
        return None

    def take_up_episode(self, episode: Any, is_restored: bool = False) -> None:
        """Continue an episode that ``put_episode_aside`` returned.

        :param is_restored: True if the episode comes from a checkpoint; ``set_state`` was called before
        """

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        """Seed the random streams for the evaluation. The streams of training continue after it."""

    def reset_evaluation_state(self, val: RunPhase) -> None:
        """Prepare for the phase ``val``: with ``TEST``, forget all evaluation episodes so far."""

    def get_success_rate(self) -> float:
        """The share of successful episodes in the last evaluation; 0 before the first evaluation."""
        raise NotImplementedError(f"{type(self).__name__} must define get_success_rate")

    @property
    def optimizer_steps(self) -> int:
        """Number of optimizer steps so far. Each minibatch is one; PPO makes many in a training iteration."""
        return self.training_iteration

    def sync(self) -> None:
        """Copy the newest shared weights, if weights are shared."""

    def get_predictions(self, states: dict[str, Any], prediction_type: type[PredictionType]) -> Any:
        """Predictions of the agent's networks about states, for another agent."""
        raise NotImplementedError(f"{type(self).__name__} must define get_predictions")

    def set_incoming_directive(self, action: ActionType | Directive) -> None:
        """Pursue a goal, or follow a choice, of the level above."""
        raise NotImplementedError(f"{type(self).__name__} must define set_incoming_directive")

    def policy_description(self) -> PolicyDescription | None:
        """The description of the policy for ``coach export``; None if it cannot be exported. A subclass that chooses
        actions in another way returns another description."""
        return None

    @property
    def acts_otherwise(self) -> str | None:
        """The override, as ``Class.method``, that may make the agent act differently from ``policy_description``; None
        without an override."""
        return override_that_excludes(self, "policy_description")

    def run_off_policy_evaluation(self) -> None:
        """Estimate the value of the policy from recorded data."""

    def get_state(self) -> dict[str, Any]:
        """The state that a later run needs to continue exactly: nested dicts of arrays and plain values."""
        raise NotImplementedError(f"{type(self).__name__} must define get_state")

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned."""
        raise NotImplementedError(f"{type(self).__name__} must define set_state")

    def save_checkpoint(self, checkpoint_prefix: str) -> None:
        """Write a file next to a checkpoint, for data that are not in ``get_state``. Writes nothing by default.

        :param checkpoint_prefix: the checkpoint's name. Files in the task's ``checkpoint_save_dir`` with this name and
            a suffix are removed together with the checkpoint.
        """

    def restore_checkpoint(self, checkpoint_dir: str) -> None:
        """Read the files of ``save_checkpoint`` from a directory. Called after ``set_state``."""

    def collect_savers(self, parent_path_suffix: str) -> SaverCollection:
        """Savers for data that are not in ``get_state``. A saver writes files next to each checkpoint. Empty by
        default.

        :param parent_path_suffix: the path of the owner, such as ``level``
        """
        return SaverCollection()

    def fits(self) -> dict[str, str]:
        """Descriptions of the agent's parts, by name. An agent can restore the state of another agent only if their
        descriptions are equal."""
        return {"agent": type(self).__name__}

    def set_session(self, sess: Any) -> None:
        """Do nothing: only Coach 1 had sessions. A user's agent may override this method. :param sess: not used"""

    def listen_to_rows(self, listener: Callable[[dict[str, Any]], None]) -> None:
        """Call ``listener`` with each row of signals that the agent writes from now on."""

    def close(self) -> None:
        """Write all rows that are not written yet. May be called more than once."""


def _nobody_asks() -> None:
    """Do nothing. This is the default of ``stop_if_asked``, for an agent outside of a graph."""
