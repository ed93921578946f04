"""An agent's attributes and methods under Coach's old names, for programs written for Coach 1."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from rl_coach.core_types import ActionInfo, RunPhase, StateType, Transition


def delegated(part: str, name: str) -> Any:
    """A property that reads and writes an attribute of one of the agent's parts.

    :param part: the name of the agent's attribute that holds the part; ``a.b`` is attribute b of attribute a
    :param name: the name of the attribute in the part
    """
    find_part = operator.attrgetter(part)
    # attrgetter, because each step reads several of these and a Python function costs three times as much
    return property(operator.attrgetter(f"{part}.{name}"), lambda agent, value: setattr(find_part(agent), name, value))


class CoachNames:
    """Attributes and methods that programs written for Coach read, assign and call."""

    episode = delegated("actor", "episode")
    input_filter = delegated("actor", "input_filter")
    output_filter = delegated("actor", "output_filter")
    exploration_policy = delegated("actor", "exploration_policy")
    curr_state = delegated("actor.episode", "curr_state")
    last_action_info = delegated("actor.episode", "last_action_info")
    current_episode_buffer = delegated("actor.episode", "buffer")
    current_episode_steps_counter = delegated("actor.episode", "steps")
    total_reward_in_current_episode = delegated("actor.episode", "total_reward")
    total_shaped_reward_in_current_episode = delegated("actor.episode", "total_shaped_reward")
    training_iteration = delegated("clock", "updates")
    total_steps_counter = delegated("clock", "steps")
    current_episode = delegated("clock", "episodes")
    last_training_phase_step = delegated("clock", "last_phase")
    last_target_network_update_step = delegated("clock", "last_target_update")
    loss = delegated("signals", "loss")
    curr_learning_rate = delegated("signals", "learning_rate")
    unclipped_grads = delegated("signals", "gradients")
    reward = delegated("signals", "reward")
    shaped_reward = delegated("signals", "shaped_reward")
    discounted_return = delegated("signals", "discounted_return")
    agent_logger = delegated("signals", "logger")
    agent_episode_logger = delegated("signals", "step_logger")
    episode_signals = delegated("signals", "episode_signals")
    step_signals = delegated("signals", "step_signals")
    num_evaluation_episodes_completed = delegated("signals.evaluation", "episodes")
    num_successes_across_evaluation_episodes = delegated("signals.evaluation", "successes")
    accumulated_rewards_across_evaluation_episodes = delegated("signals.evaluation", "reward")
    accumulated_shaped_rewards_across_evaluation_episodes = delegated("signals.evaluation", "shaped_reward")

    optimizer_steps = delegated("clock", "optimizer_steps")

    def call_memory(self: Any, func: str, args: Any = ()) -> Any:
        """Call a method of the memory by name."""
        return getattr(self.memory, func)(*(args if isinstance(args, tuple) else (args,)))

    def freeze_memory(self: Any) -> None:
        """Freeze the memory: it accepts no changes from now on."""
        self.memory.freeze()

    def get_current_time(self: Any) -> int:
        """Index of the CSV's present row: the number of training episodes that have ended."""
        return self.clock.episodes

    def get_state_embedding(self: Any, state: StateType | list[StateType]) -> np.ndarray:
        """[B, D], the output of the middleware of network ``main`` for one state or a list of states."""
        return self.networks["main"].embedding(self.prepare_batch_for_inference(state, "main"))

    def update_step_in_episode_log(self: Any) -> None:
        """Write the row of one step to the in-episode CSV."""
        self.recorder.write_step()

    def log_to_screen(self: Any) -> None:
        """Print the line of the present episode, which other programs may read."""
        self.recorder.print_episode(self.episode.report(self.phase))

    # An override of one of the next three methods decides instead of the clock; core/overrides.py has the table.

    def _should_update(self: Any) -> bool:
        """True if a training phase is due. The call changes no state."""
        return self.can_train and self.learning.is_due()

    def _should_train(self: Any) -> bool:
        """True if the next call of ``train`` would learn."""
        return self._should_update()

    def _should_update_online_weights_to_target(self: Any) -> bool:
        """True if the target networks must be updated now. True also starts the next period."""
        return self.clock.targets_due()

    def observe_played(self: Any, transition: Transition) -> bool:
        """Count and store a step that another process has played. :return: True if it ended the episode"""
        self.emulate_act_on_trainer(transition)
        return self.emulate_observe_on_trainer(transition)

    def emulate_act_on_trainer(self: Any, transition: Transition) -> ActionInfo | None:
        """Count a step that another process has played, as if this agent had acted.

        :return: the action; None if the agent learns without acting
        """
        if self.phase is RunPhase.TRAIN and self.ap.algorithm.num_consecutive_playing_steps.num_steps == 0:
            return None
        self.count_played(1)
        self.episode.steps += 1
        self.episode.last_action_info = ActionInfo(transition.action)  # type: ignore[arg-type]
        return self.episode.last_action_info

    def emulate_observe_on_trainer(self: Any, transition: Transition) -> bool:
        """Store a step that another process has played. :return: True if it ended the episode"""
        episode = self.episode
        if episode.steps == 0:
            return bool(transition.game_over)
        episode.total_reward += transition.reward
        episode.total_shaped_reward += transition.reward
        self.signals.reward.add_sample(transition.reward)
        self.signals.shaped_reward.add_sample(transition.reward)
        return self.observe_transition(transition)
