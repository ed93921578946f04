"""TD3 that chooses its own goals, and learns to reach them with hindsight (Andrychowicz et al. 2017, "Hindsight
experience replay").
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.td3_exploration_agent import TD3ExplorationAgent
from rl_coach.core_types import Batch, RunPhase, StateType


class TD3GoalBasedAgent(TD3ExplorationAgent):
    """Draws observations from the memory, and pursues the most novel of them as its goal. Hindsight goals are
    observations of later steps of the same episode.

    The reward of a step is -1 until the goal is reached.

    :ivar goal: the observation ``env_obs_key`` of the goal; None before the first goal is chosen. Until then, the
        present observation is the goal
    """

    max_n_step = 1

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.goal: np.ndarray | None = None

    def unmet_by_networks(self) -> Iterator[str]:
        yield from super().unmet_by_networks()
        state, key, seen = self.spaces.state, self.ap.algorithm.env_obs_key, self.ap.algorithm.agent_obs_key
        *others, last = map(int, state[key].shape)
        wanted = [*others, 2 * last]
        if seen not in state or list(state[seen].shape) != wanted:
            yield (
                f"agent_obs_key of agent '{self.name}' is '{seen}', which is not an observation of shape {wanted}: "
                f"set it to an observation of this shape; the agent writes '{key}' and its goal into it"
            )
        for name in ("actor", "critic"):
            if seen not in self.networks[name].input_names:
                yield (
                    f"agent_obs_key of agent '{self.name}' is '{seen}', and network '{name}' does not see it: "
                    f"add an embedder with this name to input_embedders_parameters"
                )

    def concat_goal(self, state: StateType, goal_state: StateType) -> np.ndarray:
        """The observations ``env_obs_key`` of a state and of a goal state, joined along the last dimension."""
        key = self.ap.algorithm.env_obs_key
        return np.concatenate([np.asarray(state[key]), np.asarray(goal_state[key])], axis=-1)

    def predict_states(self, states: list[StateType] | StateColumns) -> Any:
        assert isinstance(states, list)  # this override keeps the agent off the column path
        key, seen = self.ap.algorithm.env_obs_key, self.ap.algorithm.agent_obs_key
        given = None if self.goal is None else self.run_pre_network_filter_for_inference({key: self.goal}, False)
        goals = [state if given is None else given for state in states]
        return super().predict_states(
            [{**state, seen: self.concat_goal(state, goal)} for state, goal in zip(states, goals)]
        )

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """Columns of steps that are drawn at random from the memory. ``batch`` gives only their number. The goal of a
        step is an observation after it in its episode. For the share ``identity_goal_sample_rate`` of the steps, the
        goal is the observation of the state, with an action of 0 and a reward of 0.
        """
        lengths = self.memory.episode_lengths()
        episodes = self.rng.integers(len(lengths), size=len(batch))
        steps = self.rng.integers(lengths[episodes])
        starts = (np.cumsum(lengths) - lengths)[episodes]
        drawn = self.memory.transitions_at(starts + steps)
        goals = self.memory.transitions_at(starts + self.rng.integers(steps, lengths[episodes]))
        is_same = self._same(drawn.next_state_columns, goals.next_state_columns)
        drawn, goals = self.update_loop.filtered(drawn), self.update_loop.filtered(goals, may_update=False)
        return self._with_goals(super().learning_columns(drawn), drawn, goals, is_same)

    def _with_goals(
        self, columns: dict[str, np.ndarray], drawn: Batch, goals: Batch, is_same: np.ndarray
    ) -> dict[str, np.ndarray]:
        algorithm = self.ap.algorithm
        is_there = self.rng.random(len(drawn)) < algorithm.identity_goal_sample_rate
        key, seen = algorithm.env_obs_key, algorithm.agent_obs_key
        there = is_there.reshape(-1, *[1] * (drawn.state_columns[key].ndim - 1))
        goal = {key: np.where(there, drawn.state_columns[key], goals.next_state_columns[key])}
        columns[f"states/{seen}"] = self.concat_goal(drawn.state_columns, goal)
        columns[f"next_states/{seen}"] = self.concat_goal(drawn.next_state_columns, goal)
        reached = is_there | is_same
        columns["actions"] = np.where(is_there[:, None], 0, columns["actions"]).astype(np.float32)
        columns["rewards"] = np.where(reached, 0, -1).astype(np.float32)
        columns["discounts"] = (algorithm.discount * ~reached).astype(np.float32)
        return columns

    def _same(self, states: StateType, others: StateType) -> np.ndarray:
        """[B], True where the two states are equal up to rounding, in ``env_obs_key`` and in the measurements, if there
        are any."""
        names = [name for name in (self.ap.algorithm.env_obs_key, "measurements") if name in states]
        equal = [np.isclose(states[name], others[name]).reshape(len(states[name]), -1).all(axis=1) for name in names]
        return np.logical_and.reduce(equal)

    def generate_goal(self) -> None:
        """Set the goal: the most novel observation among transitions drawn from the memory."""
        count = min(self.ap.algorithm.rnd_sample_size, self.memory.num_transitions_in_complete_episodes())
        drawn = self.memory.transitions_at(
            self.rng.choice(self.memory.num_transitions_in_complete_episodes(), count, replace=False)
        )
        best = int(np.argmax(self.calculate_novelty(self.update_loop.filtered(drawn, may_update=False))))
        self.goal = drawn.next_state_columns[self.ap.algorithm.env_obs_key][best]

    def handle_episode_ended(self) -> None:
        super().handle_episode_ended()
        if self.phase is not RunPhase.TEST:
            self.generate_goal()

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "goal": self.goal}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.goal = state["goal"]
