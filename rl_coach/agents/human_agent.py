"""A person who acts with the keyboard. The steps are recorded, so that agents can learn from them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.episode import new_buffer
from rl_coach.agents.core.learning import NoLearning
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import ActionInfo, StateType
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.exploration_policies.exploration_policy import ExplorationParameters
from rl_coach.logger import screen
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters

REPLAY_BUFFER_FILE = "replay_buffer.npz"


class HumanAlgorithmParameters(AlgorithmParameters):
    """A human agent has no hyperparameters."""


class HumanNetworkParameters(FullyConnectedParameters):
    """The network of the agents that learn from recorded play. The human agent does not create it."""


class HumanAgentParameters(AgentParameters):
    """A person who plays. The memory stores the episodes."""

    why_not_in_own_loop = "a person plays with the keyboard; use coach -p PRESET --play"
    path = "rl_coach.agents.human_agent:HumanAgent"
    algorithm: HumanAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=HumanAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": HumanNetworkParameters()},
        )


class HumanAgent(Agent):
    """Asks the environment which keys are held down.

    At the end of the run, the steps are written to ``replay_buffer.npz`` in the experiment's directory. Another agent
    loads them with ``memory.load_memory_from_file_path``.
    """

    is_person = True
    reason_to_act_alone = "a person plays with the keyboard of one machine: leave out -dc"
    is_on_policy = False
    acts_in_parts = True

    def __init__(self, agent_parameters: AgentParameters, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.ap.exploration = ExplorationParameters()  # the person chooses the actions
        self._is_saved = True

    def init_environment_dependent_modules(self) -> None:
        """Print the keys for the player. :raises CoachError: if the environment's actions have no keys"""
        super().init_environment_dependent_modules()
        environment = self.parent.real_environment
        keys_of: dict[str, list[str]] = {}
        for name, keys in environment.get_available_keys():
            keys_of.setdefault(name, []).append(keys)
        screen.log_title(f"you play {environment.env_id}; to stop, press Esc or Ctrl-C, or close the window")
        width = max(map(len, keys_of))
        for name, keys in keys_of.items():
            screen.print(f"  {name:<{width}}  {' or '.join(keys)}")
        idle = environment.keyboard.idle_action
        screen.print(
            "  the game waits while no key is held"
            if idle is None
            else f"  without a key: {environment.keyboard.describe(idle)}"
        )

    def create_networks(self) -> dict[str, NetworkWrapper]:
        """No networks: an empty dict."""
        return {}

    def handle_episode_ended(self) -> None:
        super().handle_episode_ended()
        if not screen.is_read_by_programs:  # for programs, the line of the episode was already printed
            self.log_to_screen()

    def log_to_screen(self) -> None:
        """Print the reward and the number of steps of the episode."""
        reward = float(np.sum(self.episode.total_reward))
        steps = self.episode.steps
        screen.print(f"episode {self.clock.episodes}: reward {reward:.5g} in {steps:,} steps")

    def make_learning(self) -> NoLearning:
        return NoLearning(self)

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        """The action of the keys that are held down, in the agent's action space.

        :raises KeyboardInterrupt: if the player has left
        """
        while (action := self.parent.active_environment.get_action_from_user()) is None:
            self.stop_if_asked()
        self._is_saved = False
        return self.output_filter.reverse_filter(ActionInfo(action))

    def save_replay_buffer_and_exit(self) -> None:
        """Save the steps so far and end the run, as when the player closes the window.

        :raises KeyboardInterrupt: always
        """
        self.close()
        raise KeyboardInterrupt

    def close(self) -> None:
        super().close()
        if not self._is_saved and self.ap.task_parameters is not None:
            self._store_broken_off_episode()
            path = os.path.join(str(self.ap.task_parameters.experiment_path), REPLAY_BUFFER_FILE)
            self.memory.save(path)
            screen.success(f"recorded {self.memory.num_transitions():,} steps: {path}")
            self._is_saved = True

    def _store_broken_off_episode(self) -> None:
        """Store the episode in progress as a truncated episode, because the player has left it."""
        episode = self.episode.buffer
        if episode.is_empty() or episode.is_complete:
            return
        self.experience.finish(self.episode)
        self.episode.buffer = new_buffer(self.ap.algorithm)
