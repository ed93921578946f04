"""A level with one agent that acts in several copies of its environment at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Iterable, Mapping, cast

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.column_actors import override_that_keeps_off, why_not_in_columns
from rl_coach.core_types import ActionInfo, EnvResponse
from rl_coach.environments.step_columns import StepColumns, stack_states
from rl_coach.level_manager import LevelManager
from rl_coach.logger import screen
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.environments.environment import Environment
    from rl_coach.environments.environment_copies import EnvironmentCopies


@dataclass
class VectorEpisode:
    """The saved episodes of a level with several copies of an environment.

    :param agent: the agent's saved episode in each copy
    :param due: the copies that must begin an episode next, by index; the value True also resets a simulator that could
        continue its episode
    """

    agent: list[Any]
    due: dict[int, bool]


plain_data.register(VectorEpisode)


class VectorLevelManager(LevelManager):
    """Steps all copies of an environment together. The agent has an episode in each copy.

    The agent's networks choose the actions for all copies in one call. Episodes begin and end separately in each copy.
    Evaluation runs in a single separate environment, as in other levels.

    :param name: the level's name
    :param agents: the agent
    :param environment: the copies, such as ``EnvironmentCopies``
    :param settings: further parameters of ``LevelManager``

    :ivar due: the copies that must begin an episode next, by index; the value True also resets a simulator that could
        continue its episode (see ``reset_environment``)
    """

    agent: Agent
    trains_in_one_episode = False

    def __init__(self, name: str, agents: Any, environment: EnvironmentCopies, **settings: Any):
        # the base class is used only for evaluation, in one environment
        super().__init__(name, agents, cast("Environment", environment), **settings)
        self._copies = environment
        if self.steps_limit.num_steps > 1 or not isinstance(self.agent, Agent):
            raise CoachError(f"level '{name}' cannot act in several environments: set env_params.num_environments to 1")
        self._parallel = self.agent.play_in_copies(environment.num_copies)
        self.due = dict.fromkeys(range(environment.num_copies), True)

    @property
    def total_reward_in_current_episode(self) -> Any:
        if self.has_one_episode:
            return super().total_reward_in_current_episode
        agent: Any = self.agent
        return agent.total_reward_in_current_episode

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        super().reset_environment(force_environment_reset)
        if not self.has_one_episode:
            self.due = dict.fromkeys(range(self._parallel.count), force_environment_reset)

    def step(self, action: Any) -> EnvResponse:
        """Act once in each copy. :return: the response of the last copy"""
        if self.has_one_episode:
            return super().step(action)
        if self._acts_in_columns:
            return self._step_in_columns()
        indices = self._acting()
        self.look_in(indices)
        chosen = self.choose_in(indices)
        nothing = self._copies.action_space.default_action  # for waiting copies, which ignore it
        actions: list[Any] = [
            chosen[index].action if index in chosen else nothing for index in range(self._parallel.count)
        ]
        responses = self._copies.step_all(actions)
        self.take_in_from({index: responses[index] for index in indices})
        return responses[indices[-1]]

    def _acting(self) -> list[int]:
        """The copies that act in the next step. The others wait: some simulators need a step without an action to
        begin."""
        is_whole = len(self.due) == self._parallel.count
        return list(range(self._parallel.count)) if is_whole else np.flatnonzero(~self._copies.waiting).tolist()

    @cached_property
    def _acts_in_columns(self) -> bool:
        """True if the agent acts in all copies in one pass. Warns if only a user's override prevents it. Computed at
        the first step, because a method may be overridden on the instance."""
        if why_not_in_columns(self.agent) is not None:
            return False
        if (override := override_that_keeps_off(self.agent)) is None:
            return True
        screen.warning(
            f"level '{self.name}': because of the override {override}, the copies of the environment act one after the "
            f"other, not in one pass"
        )
        return False

    def _step_in_columns(self) -> EnvResponse:
        """Do ``step`` in one pass over all copies."""
        actors, copies, acting = self._parallel.in_columns(), self._copies, self._acting()
        if due := [index for index in acting if index in self.due] if self.due else []:
            indices, forced = np.array(due), np.array([self.due.pop(index) for index in due])
            actors.begin(indices, copies.begin_columns(indices, forced))
        is_whole = len(acting) == copies.num_copies
        rows = None if is_whole else np.array(acting)
        step = copies.step_columns(actors.act(rows))
        self._take_in_columns(step)
        last = {name: column[-1] for name, column in step.states.items()}
        over = bool(step.terminated[-1] or step.truncated[-1])
        return EnvResponse(last, float(step.rewards[-1]), over, terminated=bool(step.terminated[-1]))

    def _take_in_columns(self, step: StepColumns) -> None:
        actors = self._parallel.in_columns()
        ended = actors.take_in(step)
        self.environment_steps += actors.num_acting
        if ended:
            self.due |= dict.fromkeys(ended, False)
            self.ended_rewards += actors.total_rewards[ended].tolist()

    # A step in two halves, in some of the copies: the responses of the other copies may arrive later.

    def look_in(self, indices: Iterable[int]) -> None:
        """Begin an episode in the copies with an ended episode, and pass its first state to the agent.

        :param indices: the copies to check
        """
        forced = {index: self.due.pop(index) for index in indices if index in self.due}
        if not forced:
            return
        responses = self._copies.begin_episodes(forced)
        if self._acts_in_columns and (self._parallel.are_in_columns or len(responses) == self._parallel.count):
            states = stack_states([response.next_state for response in responses.values()])
            self._parallel.in_columns().begin(np.array(list(responses)), states)
        else:
            for index, response in responses.items():
                self._parallel.enter(index)
                self.agent.begin_episode()
                self.agent.observe(response)

    def choose_in(self, indices: Iterable[int]) -> dict[int, ActionInfo]:
        """Return the agent's action in each of the given copies, by index. The networks choose all actions in one call.

        :param indices: copies with an episode in progress (see ``look_in``) that have responded to their last action
        """
        indices = list(indices)
        if self._acts_in_columns and len(indices) == self._parallel.count:
            return dict(zip(indices, map(ActionInfo, self._parallel.in_columns().act())))
        chosen = self._parallel.act(indices)
        if None in chosen.values():
            raise CoachError(
                f"agent '{self.agent.name}' chose no action for a copy of the environment. Agents that do not act in "
                f"each step need env_params.num_environments = 1"
            )
        return cast(dict[int, ActionInfo], chosen)

    def take_in_from(self, responses: Mapping[int, EnvResponse]) -> None:
        """Pass the responses of copies to the agent. :param responses: the responses, by the copy's index"""
        if self._parallel.are_in_columns and len(responses) == self._parallel.count:
            self._take_in_columns(StepColumns.of([responses[index] for index in range(len(responses))]))
            return
        for index, response in responses.items():
            self._parallel.enter(index)
            self.environment_steps += 1
            if self.agent.observe(response) or response.game_over:
                self.due[index] = not response.game_over
                self.ended_rewards.append(float(np.sum(self.total_reward_in_current_episode)))
                self.agent.handle_episode_ended()

    def put_episode_aside(self) -> VectorEpisode:
        return VectorEpisode(self._parallel.put_aside(), dict(self.due))

    def take_up_episode(self, episode: VectorEpisode, is_restored: bool = False) -> None:
        self._parallel.take_up(episode.agent, is_restored)
        self.due = dict(episode.due)
        self.episode_over = False
