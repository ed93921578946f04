"""TD3 that also measures novelty, by random network distillation (Burda et al. 2018, "Exploration by
random network distillation")."""

from __future__ import annotations

import os
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.curiosity import Novelty
from rl_coach.agents.core.requirements import MemoryRequirement
from rl_coach.agents.rules.curiosity import CONSTANT, PREDICTOR
from rl_coach.agents.td3_agent import TD3Agent
from rl_coach.core_types import Batch, RunPhase
from rl_coach.logger import tiled, write_picture
from rl_coach.utils import CoachError

PICTURES_IN_A_ROW = 10


class TD3ExplorationAgent(TD3Agent):
    """Learns from the environment's reward as TD3 does, and also learns the novelty of observations.

    :ivar rnd: measures novelty
    """

    memory_requirement = MemoryRequirement.EPISODES
    reason_to_act_alone = "it learns novelty from the episode that this process has just played: leave out -dc and -n"
    counters = (*TD3Agent.counters, "last_rnd_training", "last_replay_buffer_save")
    rnd: Novelty

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.last_rnd_training = 0
        self.last_replay_buffer_save = 0
        self.novelty = self.register_signal("Novelty")

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        state, key = self.spaces.state, self.ap.algorithm.env_obs_key
        if key not in state:
            yield (
                f"env_obs_key of agent '{self.name}' is '{key}', but no observation has this name: "
                f"set it to one of {', '.join(map(repr, state.sub_spaces))}"
            )

    def init_environment_dependent_modules(self) -> None:
        key = self.ap.algorithm.env_obs_key
        for name in (PREDICTOR, CONSTANT):
            embedders = self.ap.network_wrappers[name].input_embedders_parameters
            if key not in embedders and "observation" in embedders:
                embedders[key] = embedders.pop("observation")
        self.ap.network_wrappers[PREDICTOR].heads_parameters[0].is_predictor = True
        super().init_environment_dependent_modules()
        self.rnd = Novelty(self.networks, self.spaces)

    def updates_of_full_episodes(self, steps: int) -> int:
        return int(steps * self.ap.algorithm.td3_training_ratio)

    def _newest(self, count: int) -> Batch:
        """The newest transitions, after the agent's filters."""
        return self.update_loop.filtered(self.memory.newest_transitions(count), may_update=False)

    def prepare_rnd_inputs(self, batch: Batch) -> dict[str, np.ndarray]:
        """The next observations [B, ...] of a batch, normalized. The batch has passed the agent's filters."""
        return self.rnd.inputs(batch.next_state_columns)

    def calculate_novelty(self, batch: Batch) -> np.ndarray:
        """The novelty [B] of the next observations: the mean squared error of the predictor."""
        return self.rnd.of(self.prepare_rnd_inputs(batch))

    def update_intrinsic_returns_estimate(self, rewards: np.ndarray) -> None:
        """Add novelties [T], in order, to the statistics of their discounted sum."""
        self.rnd.add_novelty(rewards, np.zeros(len(rewards), int), self.ap.algorithm.discount)

    def train_rnd(self) -> None:
        """Train the predictor on the newest transitions."""
        algorithm = self.ap.algorithm
        batch = self._newest(algorithm.rnd_sample_size)
        inputs = self.prepare_rnd_inputs(batch)
        size = min(algorithm.rnd_batch_size, len(batch))
        for _ in range(algorithm.rnd_optimization_epochs):
            order = self.rng.permutation(len(batch))
            for start in range(0, len(batch) - size + 1, size):
                rows = {name: column[order[start : start + size]] for name, column in inputs.items()}
                known = self.networks[CONSTANT].online_network.predict(rows)
                self.networks[PREDICTOR].train_and_sync_networks(rows, [known])

    def handle_self_supervised_reward(self, batch: Batch) -> Batch:
        """Replace the rewards by the agent's own rewards. This class keeps the environment's rewards."""
        return batch

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        return super().learning_columns(self.handle_self_supervised_reward(batch))

    def handle_episode_ended(self) -> None:
        super().handle_episode_ended()
        if self.phase is RunPhase.TEST:
            return
        newest = self._newest(self.episode.steps)
        self.rnd.add_observations(newest.state_columns)
        if self.clock.steps - self.last_rnd_training >= self.ap.algorithm.rnd_sample_size:
            self.last_rnd_training = self.clock.steps
            self.update_intrinsic_returns_estimate(
                self.calculate_novelty(self._newest(self.ap.algorithm.rnd_sample_size))
            )
            self.train_rnd()
        self.novelty.add_sample(self.calculate_novelty(newest))
        if self.clock.steps - self.last_replay_buffer_save >= self.ap.algorithm.replay_buffer_save_steps:
            self.last_replay_buffer_save = self.clock.steps
            self.save_replay_buffer(self.ap.algorithm.replay_buffer_save_path)

    def save_rnd_images(self, dir_path: str | None = None) -> str:
        """Save a picture of a hundred observations of the memory, ten in a row, from the least novel to the most novel.

        :param dir_path: a directory; None for ``rnd_images`` in the experiment's directory
        :return: the picture's path
        :raises CoachError: if ``env_obs_key`` is not an image
        """
        if dir_path is None:
            task = self.ap.task_parameters
            dir_path = os.path.join("" if task is None else str(task.experiment_path), "rnd_images")
        seen = self.memory.get_all_complete_episodes_transitions().next_state_columns[self.ap.algorithm.env_obs_key]
        if seen.ndim not in (3, 4):
            key, shape = self.ap.algorithm.env_obs_key, list(seen.shape[1:])
            raise CoachError(f"env_obs_key is '{key}', of shape {shape}: pictures of novelty need an image")
        size = self.ap.algorithm.rnd_batch_size
        batches = np.array_split(np.arange(len(seen)), -(-len(seen) // size))
        rows = (self.update_loop.filtered(self.memory.transitions_at(one), may_update=False) for one in batches)
        order = np.argsort(np.concatenate([self.calculate_novelty(one) for one in rows]))
        shown = seen[order[np.linspace(0, len(order) - 1, PICTURES_IN_A_ROW**2).round().astype(int)]]
        os.makedirs(dir_path, exist_ok=True)
        path = os.path.join(dir_path, f"novelty_{self.clock.steps}.png")
        write_picture(path, tiled(shown, PICTURES_IN_A_ROW))
        return path

    def save_replay_buffer(self, dir_path: str | None = None) -> None:
        """Save the memory in a directory, as ``replay_buffer_STEPS.npz``; None does not save."""
        if dir_path is not None:
            os.makedirs(dir_path, exist_ok=True)
            self.memory.save(os.path.join(dir_path, f"replay_buffer_{self.clock.steps}.npz"))

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "rnd": self.rnd.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.rnd.set_state(state["rnd"])
