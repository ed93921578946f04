"""Acting in many copies of an environment at once, with the states of all episodes as columns."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.agents.core.episode import EpisodeInProgress, EpisodeReport
from rl_coach.agents.core.experience import stored_info
from rl_coach.agents.core.inference import StateColumns, filtered_columns
from rl_coach.agents.core.overrides import ALLOWED
from rl_coach.core_types import ActionInfo, Batch, EnvResponse
from rl_coach.environments.step_columns import StepColumns
from rl_coach.exploration_policies.exploration_policy import chooses_in_columns
from rl_coach.filters.filter import changes_nothing
from rl_coach.filters.observation.observation_stacking_filter import ObservationStackingFilter
from rl_coach.utilities.overrides import why_not_on_fast_path
from rl_coach.utils import CoachError

Columns = dict[str, np.ndarray]


def _rows(states: StateColumns, indices: np.ndarray) -> StateColumns:
    return StateColumns({name: column[indices] for name, column in states.items()})


class ColumnActors:
    """All actors of one agent, one for each copy of its environment. Their states are columns, so one step of all
    actors is one pass of array operations, without an object for each transition or a call for each copy.

    ``why_not_in_columns`` returns the reason why an agent cannot act in this way.

    :param episodes: the episodes in progress, one for each actor

    :ivar states: [N, ...] by name, the filtered observations to act on
    :ivar steps: [N] int, number of actions in each episode
    :ivar total_rewards: [N], the environment's rewards in each episode
    :ivar total_shaped_rewards: [N], the rewards after the filters
    """

    def __init__(self, agent: Any, episodes: list[EpisodeInProgress]):
        self._agent = agent
        self._num_actors = len(episodes)
        self._filters = not changes_nothing(agent.input_filter)
        self._stacks = {
            place: member.stacks_of(self._num_actors)
            for place, member in enumerate(agent.input_filter.members)
            if isinstance(member, ObservationStackingFilter)
        }
        self._filters_actions = not changes_nothing(agent.output_filter)
        self._rollout = agent.experience.rollout
        if self._rollout is not None and self._rollout.num_actors not in (0, len(episodes)):
            self._rollout.clear()  # steps from a checkpoint with another number of copies
        self.states = StateColumns()
        self._actions: np.ndarray = np.zeros(0)
        self._acting: np.ndarray | None = None
        self._is_answer_due = False
        self._take(episodes)

    def _take(self, episodes: list[EpisodeInProgress]) -> None:
        """Continue episodes that were played one by one. The steps in their buffers move to the memory."""
        for episode in episodes:
            self._agent.experience.cut(episode, {})
        self.steps = np.array([episode.steps for episode in episodes])
        # 64 bits, as the totals of a single actor, which are Python's numbers
        self.total_rewards = np.array([episode.total_reward for episode in episodes], np.float64)
        self.total_shaped_rewards = np.array([episode.total_shaped_reward for episode in episodes], np.float64)
        self._returns = np.array([episode.return_before for episode in episodes], np.float64)
        self._discounts = np.array([episode.discount_before for episode in episodes], np.float64)
        # an episode that has not begun has no state, so another one gives names and shapes
        known = next((episode.curr_state for episode in episodes if episode.curr_state), {})
        for place, stacks in self._stacks.items():
            stacks.take([episode.filter_histories[place] if episode.filter_histories else [] for episode in episodes])
        for name in known:
            rows = [np.asarray(episode.curr_state.get(name, known[name])) for episode in episodes]
            self.states[name] = np.stack(rows)

    def episodes(self) -> list[EpisodeInProgress]:
        """The episodes in progress as objects, for checkpoints and for acting in one copy after the other. Their
        buffers are empty, because the steps are in the memory or in the rollout.
        """
        episodes = [self._episode(index) for index in range(self._num_actors)]
        for place, stacks in self._stacks.items():
            for episode, frames in zip(episodes, stacks.histories()):
                episode.filter_histories[place] = frames
        return episodes

    def _episode(self, index: int) -> EpisodeInProgress:
        algorithm = self._agent.ap.algorithm
        episode = self._agent.episode_class(algorithm)
        episode.curr_state = {name: column[index].copy() for name, column in self.states.items()}
        episode.steps = int(self.steps[index])
        is_answer_due = self._is_answer_due and (self._acting is None or index in self._acting)
        if is_answer_due:  # an Actor counts a step when the agent acts, and columns when the answer arrives
            episode.steps += 1
        if len(self._actions):
            episode.last_action_info = ActionInfo(self._actions[index])
        episode.total_reward = float(self.total_rewards[index])
        episode.total_shaped_reward = float(self.total_shaped_rewards[index])
        episode.return_before = float(self._returns[index])
        episode.discount_before = float(self._discounts[index])
        episode.filter_histories = [None] * len(self._agent.input_filter.members)
        return episode

    def begin(self, indices: np.ndarray, states: Columns) -> None:
        """Begin episodes.

        :param indices: [K] the actors
        :param states: [K, ...] by name, the first observations
        """
        agent = self._agent
        agent.signals.begin_episode(agent.clock.episodes)
        if self._rollout is not None:
            self._rollout.cut(indices)
        filtered = self._filtered(states, indices)
        if not self.states or len(indices) == self._num_actors:
            self.states = StateColumns({name: np.array(column) for name, column in filtered.items()})
        else:
            self.states = StateColumns(self.states)
            for name, column in filtered.items():
                # the transitions of the last step still use the old array
                self.states[name] = self.states[name].copy()
                self.states[name][indices] = column
        self.steps[indices] = 0
        self.total_rewards[indices] = self.total_shaped_rewards[indices] = self._returns[indices] = 0.0
        self._discounts[indices] = 1.0

    def act(self, acting: np.ndarray | None = None) -> np.ndarray:
        """Choose an action for each actor.

        :param acting: [K] the actors that act; None for all. The others get zeros, which the environment ignores, and
            their answers do not count
        :return: [N, ...] in the environment's action space
        """
        agent, self._acting, self._is_answer_due = self._agent, acting, True
        states = self.states if acting is None else _rows(self.states, acting)
        agent.count_played(self.num_acting)
        if agent.acts_by_networks:
            actions = agent.choose_actions(self._seen_by_networks(states))
        else:
            actions = self._random_actions(states)
        self._actions = actions
        if acting is not None:
            # a vector environment needs an action for each copy, also for copies that do not act
            self._actions = np.zeros((self._num_actors, *actions.shape[1:]), actions.dtype)
            self._actions[acting] = actions
        if not self._filters_actions:
            return self._actions
        return np.stack([agent.output_filter.filter(ActionInfo(action)).action for action in self._actions])

    def _seen_by_networks(self, states: StateColumns) -> StateColumns:
        if not self._agent.pre_network_filter.observation_filters:
            return states
        return StateColumns(filtered_columns(self._agent, states, update=True))

    def _random_actions(self, states: StateColumns) -> np.ndarray:
        space, masks = self._agent.spaces.action, self._agent.spaces.action_mask(states)
        # one draw for each actor, in order: the same random numbers as if the actors acted one after the other
        if masks is None:
            count = len(next(iter(states.values())))
            return np.stack([space.sample_with_info().action for _ in range(count)])
        return np.stack([space.sample_with_info(mask).action for mask in masks])

    @property
    def num_acting(self) -> int:
        """The number of actors that acted in the last step."""
        return self._num_actors if self._acting is None else len(self._acting)

    def take_in(self, step: StepColumns) -> list[int]:
        """Process the answers of all copies: filter them, store the transitions, and close the episodes that ended.

        :return: [E] the actors with an episode that ended
        :raises CoachError: if a reward is an array of numbers
        """
        agent, rewards = self._agent, step.rewards
        if rewards.ndim != 1:
            raise CoachError(
                f"the reward of a step is an array of {rewards[0].size} numbers, but agents learn from one "
                f"number: combine the numbers in a wrapper of the environment"
            )
        next_states, shaped = self._filtered(step.states), rewards
        for reward_filter in agent.input_filter.reward_filters.values():
            shaped = self._of_acting(reward_filter.filter, shaped)
        # one test for all copies; the copies are searched one by one only if it fails
        if not agent.watch.is_finite(next_states, shaped):
            self._look_closer(step, next_states, shaped)
        over = step.terminated | step.truncated
        # the arrays are not copied: no later step may write into them
        infos = stored_info(step.infos) if self._rollout is None else {}  # no rule of a rollout needs them
        transitions = Batch.from_columns(
            self.states, self._actions, shaped, over, next_states, step.terminated, info=infos
        )
        agent.experience.add_columns(transitions, self._acting)
        if agent.curiosity is not None:
            acting = np.arange(self._num_actors) if self._acting is None else self._acting
            agent.curiosity.see(next_states if self._acting is None else _rows(next_states, acting), acting)
        self.states, self._is_answer_due = next_states, False
        rows: Any = slice(None) if self._acting is None else self._acting
        self.steps[rows] += 1
        self.total_rewards[rows] += rewards[rows]
        self.total_shaped_rewards[rows] += shaped[rows]
        # the reward of this step has the discount before this step, so the order matters
        self._returns[rows] += self._discounts[rows] * shaped[rows]
        self._discounts[rows] *= agent.ap.algorithm.discount
        ended: list[int] = (np.flatnonzero(over) if self._acting is None else self._acting[over[self._acting]]).tolist()
        for index in ended:
            self._close(index)
        return ended

    def _filtered(self, states: Columns, beginning: np.ndarray | None = None) -> StateColumns:
        """Filter observations.

        :param states: [K, ...] by name
        :param beginning: [K] the actors that begin an episode; None if the episodes of all actors continue
        """
        filtered = StateColumns(states)
        if not self._filters:
            return filtered
        place = 0
        for name, filters in self._agent.input_filter.observation_filters.items():
            for member in filters.values():
                if name in filtered:
                    filtered[name] = self._filtered_by(member, place, filtered[name], beginning)
                place += 1
        return filtered

    def _filtered_by(self, member: Any, place: int, column: np.ndarray, beginning: np.ndarray | None) -> np.ndarray:
        if place in self._stacks:
            stacks = self._stacks[place]
            return stacks.add(column) if beginning is None else stacks.begin(beginning, column)
        if beginning is not None:
            return member.filter_batch(column, True)
        return self._of_acting(member.filter_batch, column)

    def _of_acting(self, filter_rows: Callable[[np.ndarray, bool], Any], column: np.ndarray) -> np.ndarray:
        """Filter the rows of the actors that acted. The answers to the others do not count, also not in the statistics
        of filters, so their rows become zeros.

        :param column: [N, ...]
        """
        if self._acting is None:
            return filter_rows(column, True)
        rows = np.asarray(filter_rows(column[self._acting], True))
        filtered = np.zeros((self._num_actors, *rows.shape[1:]), rows.dtype)
        filtered[self._acting] = rows
        return filtered

    def _look_closer(self, step: StepColumns, next_states: Columns, shaped: np.ndarray) -> None:
        """Find the first copy of the environment with a number that is not finite."""
        agent = self._agent
        for index in range(self._num_actors):
            before, after = (
                EnvResponse({name: column[index] for name, column in states.items()}, float(rewards[index]), False)
                for states, rewards in ((step.states, step.rewards), (next_states, shaped))
            )
            action = self._actions[index]
            agent.watch.look(before, after, int(self.steps[index]) + 1, agent.clock.episodes + 1, action)

    def _close(self, index: int) -> None:
        agent = self._agent
        report = EpisodeReport(
            agent.phase, int(self.steps[index]), float(self.total_rewards[index]),
            float(self.total_shaped_rewards[index]),
        )  # fmt: skip
        agent.record_played(report, float(self._returns[index]))


def override_that_keeps_off(agent: Any) -> str | None:
    """A user's override, as ``Class.method``, that acting in columns would not call; None without one."""
    if (override := why_not_on_fast_path(agent, ALLOWED["columns"])) is not None:
        return override
    chains = (agent.input_filter, agent.output_filter, agent.pre_network_filter)
    parts = [agent.exploration_policy, agent.memory, *chains, *(member for chain in chains for member in chain.members)]
    found = (why_not_on_fast_path(part, ()) for part in parts)
    return next((override for override in found if override is not None), None)


def why_not_in_columns(agent: Any) -> str | None:
    """The reason why an agent must act in its copies one after the other; None if it can act in columns. This function
    does not check overrides of users: see ``override_that_keeps_off``.
    """
    algorithm, exploration = agent.ap.algorithm, agent.exploration_policy
    if algorithm.num_consecutive_playing_steps.num_steps == 0:
        return "the agent learns without acting"
    if not agent.chooses_in_columns:
        return f"{type(agent).__name__} chooses one action at a time"
    if not chooses_in_columns(exploration):
        return f"{type(exploration).__name__} chooses one action at a time"
    # On-policy agents cut the episodes in progress, and need not wait for ends. Other agents would wait for each copy.
    if algorithm.act_for_full_episodes and not agent.is_on_policy:
        return "training phases wait for the end of an episode"
    if agent.is_recurrent:
        return "a recurrent network remembers each episode"
    if agent.signals.writes_steps or agent.signals.reports is not None:
        return "each step is recorded"
    if algorithm.use_accumulated_reward_as_measurement or agent.in_action_space is not None:
        return "states have more than the environment's observations"
    if algorithm.override_episode_rewards_with_the_last_transition_reward:
        return "rewards are known at the end of the episode"
    remembering = [member for member in agent.input_filter.members if member.remembers_episode]
    if any(not isinstance(member, ObservationStackingFilter) for member in remembering):
        return "a filter remembers the episode"
    if agent.learning.segment_steps is not None and agent.experience.rollout is None:
        return "it learns from segments of each episode"
    if remembering and agent.experience.rollout is None:
        return "the memory stores each frame of a stack once"
    return agent.experience.why_not_in_columns()
