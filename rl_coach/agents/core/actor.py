"""An actor: the part of an agent that acts in one episode."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from rl_coach.agents.core.accumulated_reward import with_accumulated_reward
from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.core.experience import stored_info
from rl_coach.core_types import ActionInfo, ActionType, Directive, EnvResponse, RunPhase, Transition
from rl_coach.filters.filter import InputFilter, OutputFilter, changes_nothing
from rl_coach.logger import screen
from rl_coach.utilities.episode_state import exchanges_episodes
from rl_coach.utils import CoachError


class Actor:
    """Acts for an agent in one episode, and holds the state of this episode.

    Networks, memory, learning, statistics, schedules, counters and random streams belong to the agent. All its actors
    share them. Filters and exploration policies without a state of the episode are the same objects in all actors.

    An actor asks the agent for everything that a user's subclass may override: the choice of an action
    (``choose_action``), and what happens to a transition (``update_transition_before_adding_to_replay_buffer``,
    ``observe_transition``).

    :param input_filter: the input filter with the histories of this episode
    :param output_filter: the output filter with its state of this episode
    :param exploration_policy: the exploration policy with its state of this episode; None until it is built
    """

    def __init__(
        self,
        agent: Any,
        episode: EpisodeInProgress,
        input_filter: InputFilter,
        output_filter: OutputFilter,
        exploration_policy: Any,
    ):
        self._agent = agent
        self.episode = episode
        self.input_filter, self.output_filter = input_filter, output_filter
        self.exploration_policy = exploration_policy
        self._suspended: list[tuple[Any, Any]] = []
        # decided once in each episode, because each step reads them
        self._filters_responses = self._filters_actions = True

    def for_another_episode(self) -> Actor:
        """Another actor of the same agent, at the start of an episode.

        :raises CoachError: if a filter or the exploration policy cannot be copied
        """
        parts = (self.input_filter, self.output_filter, self.exploration_policy)
        episode = self._agent.episode_class(self._agent.ap.algorithm)
        return Actor(self._agent, episode, *(part.for_another_actor() for part in parts))

    def for_evaluation(self) -> Actor:
        """An actor for an evaluation. It does not change the filters and the exploration policy of this actor.

        :raises CoachError: if a filter or the exploration policy cannot be copied
        """
        parts = (self.input_filter, self.output_filter, self.exploration_policy)
        return Actor(self._agent, self.episode, *(part.for_evaluation() for part in parts))

    # changing the actor

    def enter(self) -> None:
        """Let the agent act as this actor: restore the state that ``leave`` has saved."""
        self._agent.actor = self
        self._restore_episode()
        for part, state in self._suspended:
            part.resume(state)

    def leave(self) -> None:
        """Save the episode's state that the networks, the agent and a user's own parts hold while the actor acts."""
        self._save_episode()
        parts = (*self.input_filter.members, *self.output_filter.members, self.exploration_policy)
        # a user's filter or policy that saves and restores its own state
        self._suspended = [(part, part.suspend()) for part in parts if exchanges_episodes(part)]

    def _save_episode(self) -> None:
        """Save the episode's state that the networks and the agent hold while the actor acts."""
        agent, attributes = self._agent, vars(self._agent)
        if agent.is_recurrent:
            networks = agent.networks.items()
            self.episode.recurrent_states = {name: one.online_network.recurrent_state for name, one in networks}
        self.episode.attributes = {name: attributes[name] for name in agent.episode_state.names if name in attributes}

    def _restore_episode(self) -> None:
        for name, state in (self.episode.recurrent_states or {}).items():
            self._agent.networks[name].online_network.recurrent_state = state
        vars(self._agent).update(self.episode.attributes)

    # an episode

    def begin(self) -> None:
        """Begin an episode. The goal that the level above has set does not change."""
        agent, before = self._agent, self.episode
        agent.signals.begin_episode(agent.clock.episodes, agent.writes_steps)
        self.episode = agent.episode_class(agent.ap.algorithm)
        self.episode.incoming_goal, self.episode.is_tested = before.incoming_goal, before.is_tested
        self.input_filter.reset()
        self.output_filter.reset()
        self._filters_responses = not changes_nothing(self.input_filter)
        self._filters_actions = not changes_nothing(self.output_filter)
        self.exploration_policy.reset()
        for network in agent.networks.values():
            network.online_network.reset_internal_memory()

    def observe(self, env_response: EnvResponse) -> bool:
        """Observe the environment's answer: the first state of an episode, or the result of the last action. From the
        first action on, each answer becomes a transition.

        :return: True if the episode is over
        :raises CoachError: if the reward is an array of numbers, also after the filters
        """
        agent, episode, filtered = self._agent, self.episode, env_response
        if agent.is_in_evaluation:
            # states of an evaluation do not enter the statistics of the filters
            filtered = self.input_filter.filter_evaluated(env_response)
        else:
            if self._filters_responses:
                filtered = self.input_filter.filter(env_response, deep_copy=False)[0]
            action = None if episode.last_action_info is None else episode.last_action_info.action
            agent.watch.look(env_response, filtered, episode.steps, agent.clock.episodes + 1, action)
        if isinstance(filtered.reward, np.ndarray) and filtered.reward.ndim > 0:
            raise CoachError(
                f"the reward of a step is an array of {filtered.reward.size} numbers, but agents learn from one "
                f"number: combine the numbers in a wrapper of the environment"
            )
        if episode.incoming_goal is not None or agent.ap.algorithm.use_accumulated_reward_as_measurement:
            filtered = self._with_more_observations(filtered)
        if episode.steps == 0:
            episode.curr_state = filtered.next_state
            return env_response.game_over
        assert episode.last_action_info is not None
        transition = Transition(
            state=episode.curr_state,
            action=episode.last_action_info.action,
            reward=filtered.reward,
            next_state=filtered.next_state,
            game_over=filtered.game_over,
            # a copy, because ``Experience.add`` adds entries that the environment must not see
            info=stored_info(filtered.info),
            terminated=filtered.terminated,
        )
        if agent.distance_from_goal is not None and episode.incoming_goal is not None:
            distance = agent.in_action_space.distance_from_goal(episode.incoming_goal, filtered.next_state)
            agent.distance_from_goal.add_sample(distance)
        episode.curr_state = filtered.next_state
        episode.total_reward += env_response.reward
        episode.total_shaped_reward += filtered.reward
        agent.signals.reward.add_sample(env_response.reward)
        agent.signals.shaped_reward.add_sample(filtered.reward)
        if "update_transition_before_adding_to_replay_buffer" in agent.hooks:
            transition = agent.update_transition_before_adding_to_replay_buffer(transition)
        ended: bool = agent.observe_transition(transition)
        return ended

    def _with_more_observations(self, filtered: EnvResponse) -> EnvResponse:
        """The answer with the goal of the level above, and with the accumulated reward, if the agent uses them."""
        episode, extended = self.episode, copy.copy(filtered)
        if episode.incoming_goal is not None:
            extended.next_state = {**extended.next_state, "desired_goal": episode.incoming_goal}
        if self._agent.ap.algorithm.use_accumulated_reward_as_measurement:
            accumulated = episode.total_shaped_reward + filtered.reward if episode.steps else 0.0
            extended.next_state = with_accumulated_reward(extended.next_state, accumulated)
        return extended

    def act(self, action: ActionType | None = None) -> ActionInfo:
        """Choose an action for the current state.

        :param action: an action of the caller, to use instead of the agent's choice
        :return: the action in the environment's action space
        """
        agent, episode = self._agent, self.episode
        episode.steps += 1
        if agent.stores_recurrent_states:
            # before the choice, which advances the recurrent state
            episode.acted_from = agent.recurrent_state
        chosen: ActionInfo
        if action is not None:
            chosen = ActionInfo(action)
        elif not agent.acts_by_networks:
            space, mask = agent.spaces.action, agent.spaces.action_mask(episode.curr_state)
            chosen = space.sample_with_info() if mask is None else space.sample_with_info(mask)
        elif agent.parallel is not None and agent.parallel.are_asked_together:
            chosen = agent.choose_action(agent.parallel.state)
        elif agent.pre_network_filter.observation_filters or "run_pre_network_filter_for_inference" in agent.hooks:
            chosen = agent.choose_action(agent.run_pre_network_filter_for_inference(episode.curr_state))
        else:
            chosen = agent.choose_action(episode.curr_state)
        if episode.acted_from:
            self._remember_present_state()
            agent.note_action(chosen)
        episode.last_action_info = chosen
        return self.output_filter.filter(chosen) if self._filters_actions else chosen

    def _remember_present_state(self) -> None:
        """Feed the present state to the recurrent network, if the choice of the action did not do this (a random
        action). Otherwise the recurrent state would miss this step."""
        agent, name = self._agent, self._agent.recurrent_network
        network = agent.networks[name].online_network
        # the same object: a prediction replaces the state and does not write to it
        if network.recurrent_state is self.episode.acted_from:
            state = agent.run_pre_network_filter_for_inference(self.episode.curr_state, False)
            network.predict(agent.prepare_batch_for_inference(state, name))

    def replace_last_action(self, action_info: ActionInfo) -> None:
        """Record the action that was sent to the environment instead of the chosen action.

        :param action_info: an action of the environment's action space; the memory gets the corresponding action of the
            agent's action space
        """
        self.episode.last_action_info = self.output_filter.reverse_filter(action_info)

    def set_directive(self, directive: Directive) -> None:
        """Pursue a goal of the level above. Until the next goal, this goal is the ``desired_goal`` of the agent's
        states."""
        # set with each goal: a resumed run first continues the episode and its goal, and only then enters its phase
        self.exploration_policy.change_phase(RunPhase.TEST if directive.is_tested else self._agent.phase)
        episode = self.episode
        episode.incoming_goal, episode.is_tested = np.asarray(directive.goal), directive.is_tested
        # a new dict, because other agents use the environment's state too
        episode.curr_state = {**episode.curr_state, "desired_goal": episode.incoming_goal}

    def end(self) -> None:
        """Close the episode: compute returns, store it if the memory keeps episodes, and write its row."""
        agent, episode = self._agent, self.episode
        episode.buffer.is_complete = True
        if agent.is_in_evaluation:
            agent.signals.evaluation.add(episode.report(agent.phase), agent.spaces.reward.reward_success_threshold)
        else:
            discounted_return = agent.experience.finish(episode)
            if discounted_return is not None:
                agent.signals.discounted_return.add_sample(discounted_return)
        # a run that only evaluates has no other episodes to count and to record
        if not agent.is_in_evaluation or agent.evaluates_only:
            agent.clock.episodes += 1
            agent.update_log()
        if screen.is_read_by_programs and agent.ap.is_a_highest_level_agent:
            agent.log_to_screen()

    # checkpoints and evaluations

    def put_aside(self) -> EpisodeInProgress:
        """Return the episode. It contains the state of filters, exploration policy and recurrent networks, and the
        agent's attributes that belong to the episode. ``take_up`` continues the episode.
        """
        episode = self.episode
        episode.filter_histories = self.input_filter.episode_state() if self._filters_responses else []
        episode.exploration = self.exploration_policy.episode_state()
        self._save_episode()
        return episode

    def take_up(self, episode: EpisodeInProgress) -> None:
        """Continue an episode that ``put_aside`` returned."""
        self.episode = episode
        if episode.filter_histories:
            self.input_filter.set_episode_state(episode.filter_histories)
        if episode.filter_histories is not None:
            self.exploration_policy.set_episode_state(episode.exploration)
        self._restore_episode()
        if episode.is_tested:
            self.exploration_policy.change_phase(RunPhase.TEST)
