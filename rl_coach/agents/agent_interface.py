"""What a level manager expects of whatever acts in it: an agent, or several that appear as one."""

from __future__ import annotations

from typing import Any, SupportsFloat

from rl_coach.core_types import ActionInfo, ActionType, EnvResponse, PredictionType, RunPhase
from rl_coach.policy.action_choice import PolicyDescription


class AgentInterface:
    """Acts, observes and learns.

    In an episode the calls come in this order: ``reset_internal_state``, ``observe`` (the first response of the
    environment), then ``act`` and ``observe`` in turn until ``observe`` returns True, then ``handle_episode_ended``.
    ``train`` may come between any ``observe`` and the next ``act``.

    :cvar is_person: a person acts, who may end the run at any time
    :ivar updates_left: how many updates of the networks the run still wants; a training phase is cut to it. None for
        no limit.
    :ivar full_name_id: ``level/agent``, or ``level/composite agent/agent``, once the agent has its parent
    """

    is_person = False

    def __init__(self) -> None:
        self._parent: Any = None
        self._phase = RunPhase.UNDEFINED
        self.name = "agent"
        self.full_name_id = self.name
        self.updates_left: int | None = None
        self.last_action_info: ActionInfo | None = None

    @property
    def parent(self) -> Any:
        """The level manager or composite agent that holds this agent."""
        return self._parent

    @parent.setter
    def parent(self, value: Any) -> None:
        self._parent = value
        self.full_name_id = self.name if value is None else f"{value.full_name_id}/{self.name}"

    @property
    def level_manager(self) -> Any:
        """The level manager that holds this agent, be it in a composite agent; None before it is held."""
        return None if self._parent is None else self._parent.level_manager

    @property
    def phase(self) -> RunPhase:
        """What the run is doing. Leaving ``TEST`` closes an evaluation."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self._phase = value

    @property
    def is_on_policy(self) -> bool:
        """Whether the agent learns only from what its current policy did."""
        raise NotImplementedError(f"{type(self).__name__} does not say whether it is on-policy")

    @property
    def can_train(self) -> bool:
        """Whether there is anything to train; the calls of ``train`` count as training steps where there is not."""
        return True

    @property
    def training_iteration(self) -> int:
        """How many updates of its networks the agent has made."""
        return 0

    def set_environment_parameters(self, spaces: Any) -> None:
        """Take the ``SpacesDefinition`` of the environment, and build all that depends on it."""
        raise NotImplementedError(f"{type(self).__name__} does not take an environment's spaces")

    def setup_logger(self) -> None:
        """Open the files that signals go to."""

    def seed(self, seed: Any) -> None:
        """Start all random streams from a ``SeedSequence``. Called before ``set_environment_parameters``, so that
        networks too are initialised from it."""

    def reset_internal_state(self) -> None:
        """Begin an episode."""
        raise NotImplementedError(f"{type(self).__name__} does not begin episodes")

    def act(self, action: ActionType | None = None) -> ActionInfo | None:
        """Choose an action for the state last observed, or take ``action`` as the choice.

        :return: the action in the environment's terms; None to let the environment stand still (imitation)
        """
        raise NotImplementedError(f"{type(self).__name__} does not act")

    def replace_last_action(self, action_info: ActionInfo) -> None:
        """The environment gets this action, not the one that this agent chose: remember it as the last one."""
        self.last_action_info = action_info

    def observe(self, env_response: EnvResponse) -> bool:
        """Take in what the environment answered.

        :return: True if the episode is over for this agent
        """
        raise NotImplementedError(f"{type(self).__name__} does not observe")

    def should_train(self) -> bool:
        """Whether the next call of ``train`` would learn. Asking changes nothing."""
        raise NotImplementedError(f"{type(self).__name__} does not say when it trains")

    def train(self) -> SupportsFloat:
        """Learn, if the time has come. Updates may still be computed when this returns.

        :return: the loss, 0 if nothing was learned
        :raises TrainingError: a loss is not finite; at the latest when the new weights are first needed
        """
        raise NotImplementedError(f"{type(self).__name__} does not train")

    def handle_episode_ended(self) -> None:
        """Close the books of the episode that has just ended."""

    def suspend_episode(self) -> None:
        """Park the episode in progress; an evaluation comes in between. Called before the phase becomes ``TEST``."""

    def resume_episode(self) -> None:
        """Go on with the episode that ``suspend_episode`` parked. Called after the phase has left ``TEST``."""

    def reset_evaluation_state(self, val: RunPhase) -> None:
        """Prepare for the phase ``val``: with ``TEST``, forget all evaluation episodes so far."""

    def get_success_rate(self) -> float:
        """The share of successful episodes in the last evaluation, 0 before the first."""
        raise NotImplementedError(f"{type(self).__name__} does not count successes")

    def sync(self) -> None:
        """Take the newest weights from where they are shared."""

    def get_predictions(self, states: dict[str, Any], prediction_type: type[PredictionType]) -> Any:
        """What the agent's networks say about states, for another agent."""
        raise NotImplementedError(f"{type(self).__name__} gives no predictions")

    def set_incoming_directive(self, action: ActionType) -> None:
        """Take a goal or a choice from the level above."""
        raise NotImplementedError(f"{type(self).__name__} takes no directives")

    def policy_description(self) -> PolicyDescription | None:
        """How the agent acts once it is trained, so that its policy can be used without it; None if it cannot be.

        A subclass that changes how actions are chosen gives its own.
        """
        return None

    def run_off_policy_evaluation(self) -> None:
        """Estimate from recorded data how good the policy is."""

    def get_state(self) -> dict[str, Any]:
        """All that a later run needs to go on exactly: nested dicts of arrays and plain values."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved")

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` returned."""
        raise NotImplementedError(f"{type(self).__name__} cannot be restored")

    def fits(self) -> dict[str, str]:
        """What another agent must have in common with this one to take its state, as texts by name."""
        return {"agent": type(self).__name__}

    def get_episode_state(self) -> dict[str, Any] | None:
        """What an agent holds in the middle of an episode, beside ``get_state``; None if it cannot be saved, and a run
        that goes on from here begins a new episode."""
        return None

    def set_episode_state(self, state: dict[str, Any]) -> None:
        """Go on in the middle of the episode that ``get_episode_state`` saw; ``set_state`` came before."""
        raise NotImplementedError(f"{type(self).__name__} does not go on in the middle of an episode")

    def close(self) -> None:
        """Write what has not been written yet. May be called more than once."""
