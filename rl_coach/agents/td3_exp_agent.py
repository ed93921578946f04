"""TD3 that explores without a reward: by the novelty of what it sees (Burda et al. 2018, "Exploration by random network
distillation"), towards goals that it sets itself (Andrychowicz et al. 2017, hindsight goals), or at random."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Mapping

import numpy as np

from rl_coach.agents.td3_agent import (
    TD3ActorNetworkParameters,
    TD3Agent,
    TD3AgentExplorationParameters,
    TD3AlgorithmParameters,
    TD3CriticNetworkParameters,
)
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import RNDHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme, NetworkParameters
from rl_coach.core_types import Batch, RunPhase, StateType
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.utilities.constraints import FLAG, FRACTION, TEXT, Constraint, number, optional, whole
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats
from rl_coach.utils import CoachError


class RNDNetworkParameters(NetworkParameters):
    """Features of an observation: of the predictor, or of the constant network that it predicts."""

    constraints: ClassVar[Mapping[str, Constraint]] = {"should_get_softmax_probabilities": FLAG}

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(activation_function="leaky_relu", input_rescaling={"image": 1.0})
        }
        self.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
        self.heads_parameters = [RNDHeadParameters()]
        self.create_target_network = False
        self.optimizer_type = "Adam"
        self.batch_size = 100
        self.learning_rate = 0.0001
        self.should_get_softmax_probabilities = False


class TD3ExplorationAlgorithmParameters(TD3AlgorithmParameters):
    """Hyperparameters of TD3 that explores without a reward.

    :ivar rnd_sample_size: the predictor learns from the newest so many transitions, after as many steps
    :ivar rnd_batch_size: number of transitions in one of its updates
    :ivar rnd_optimization_epochs: number of times that it learns from each
    :ivar td3_training_ratio: number of updates for each step played
    :ivar identity_goal_sample_rate: share of a batch whose goal is where the agent is already
    :ivar env_obs_key: the observation whose novelty counts
    :ivar agent_obs_key: the observation that actor and critic see; with goals, ``env_obs_key`` and the goal's joined
    :ivar replay_buffer_save_steps: number of steps between two saves of the memory
    :ivar replay_buffer_save_path: directory that it is saved in; None does not save
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "rnd_sample_size": whole(1),
        "rnd_batch_size": whole(1),
        "rnd_optimization_epochs": whole(1),
        "td3_training_ratio": number(0),
        "identity_goal_sample_rate": FRACTION,
        "env_obs_key": TEXT,
        "agent_obs_key": TEXT,
        "replay_buffer_save_steps": whole(1),
        "replay_buffer_save_path": optional(TEXT),
    }

    def __init__(self) -> None:
        super().__init__()
        self.rnd_sample_size = 2000
        self.rnd_batch_size = 500
        self.rnd_optimization_epochs = 4
        self.td3_training_ratio = 1.0
        self.identity_goal_sample_rate = 0.0
        self.env_obs_key = "camera"
        self.agent_obs_key = "camera"
        self.replay_buffer_save_steps = 25000
        self.replay_buffer_save_path: str | None = None


class TD3ExplorationAgentParameters(AgentParameters):
    """TD3 with random network distillation beside it."""

    def __init__(self) -> None:
        algorithm = TD3ExplorationAlgorithmParameters()
        super().__init__(
            algorithm=algorithm,
            exploration=TD3AgentExplorationParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={
                "actor": TD3ActorNetworkParameters(),
                "critic": TD3CriticNetworkParameters(algorithm.num_q_networks),
                "predictor": RNDNetworkParameters(),
                "constant": RNDNetworkParameters(),
            },
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.td3_exp_agent:TD3ExplorationAgent"


class TD3IntrinsicRewardAgentParameters(TD3ExplorationAgentParameters):
    """TD3 whose reward is novelty."""

    @property
    def path(self) -> str:
        return "rl_coach.agents.td3_exp_agent:TD3IntrinsicRewardAgent"


class TD3GoalBasedAgentParameters(TD3ExplorationAgentParameters):
    """TD3 that goes to the most novel of what it has seen."""

    @property
    def path(self) -> str:
        return "rl_coach.agents.td3_exp_agent:TD3GoalBasedAgent"


class RandomAgentParameters(TD3ExplorationAgentParameters):
    """An agent that acts at random and does not learn."""

    def __init__(self) -> None:
        super().__init__()
        self.exploration = EGreedyParameters()
        self.exploration.epsilon_schedule = ConstantSchedule(1.0)

    @property
    def path(self) -> str:
        return "rl_coach.agents.td3_exp_agent:RandomAgent"


class TD3ExplorationAgent(TD3Agent):
    """Learns the environment's reward as TD3 does, and how novel observations are beside it.

    :ivar rnd_stats: statistics of the discounted novelty, whose deviation novelty is divided by
    :ivar rnd_obs_stats: statistics of observations, which both networks see normalized
    """

    reason_to_act_alone = "it learns what is new from the episode that it has just played: run it without -dc"
    counters = (*TD3Agent.counters, "intrinsic_returns_estimate", "last_rnd_training", "last_replay_buffer_save")

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.rnd_stats = NumpySharedRunningStats("RND_normalization", epsilon=1e-8)
        self.rnd_obs_stats = NumpySharedRunningStats("RND_observation_normalization", epsilon=1e-8)
        self.intrinsic_returns_estimate = 0.0
        self.last_rnd_training = 0
        self.last_replay_buffer_save = 0
        self.novelty = self.register_signal("Novelty")

    def init_environment_dependent_modules(self) -> None:
        state, key = self.spaces.state, self.ap.algorithm.env_obs_key
        if key not in state:
            raise CoachError(
                f"env_obs_key of agent '{self.name}' is '{key}', which is not an observation: "
                f"set it to one of {', '.join(map(repr, state.sub_spaces))}"
            )
        for name in ("predictor", "constant"):
            embedders = self.ap.network_wrappers[name].input_embedders_parameters
            if key not in embedders and "observation" in embedders:
                embedders[key] = embedders.pop("observation")
        self.ap.network_wrappers["predictor"].heads_parameters[0].is_predictor = True
        self.rnd_obs_stats.set_params(tuple(int(n) for n in state[key].shape), clip_values=[-5, 5])
        super().init_environment_dependent_modules()

    def updates_of_full_episodes(self, steps: int) -> int:
        return int(steps * self.ap.algorithm.td3_training_ratio)

    def prepare_rnd_inputs(self, batch: Batch) -> dict[str, np.ndarray]:
        """The observations [B, ...] that a batch leads to, normalized."""
        key = self.ap.algorithm.env_obs_key
        return {key: self.rnd_obs_stats.normalize(batch.next_state_columns[key])}

    def calculate_novelty(self, batch: Batch) -> np.ndarray:
        """[B], the mean squared error of the predictor."""
        inputs = self.prepare_rnd_inputs(batch)
        known, predicted = (self.networks[name].online_network.predict(inputs) for name in ("constant", "predictor"))
        return np.mean(np.square(known - predicted), axis=1)

    def update_intrinsic_returns_estimate(self, rewards: np.ndarray) -> None:
        """Take novelties [T] in order into the statistics of their discounted sum."""
        returns = np.zeros((len(rewards), 1))
        for i, reward in enumerate(rewards):
            estimate = self.intrinsic_returns_estimate * self.ap.algorithm.discount + float(reward)
            self.intrinsic_returns_estimate = returns[i, 0] = estimate
        self.rnd_stats.push_val(returns)

    def train_rnd(self) -> None:
        """Teach the predictor the newest transitions."""
        algorithm = self.ap.algorithm
        batch = self.memory.newest_transitions(algorithm.rnd_sample_size)
        inputs = self.prepare_rnd_inputs(batch)
        size = min(algorithm.rnd_batch_size, len(batch))
        for _ in range(algorithm.rnd_optimization_epochs):
            order = self.rng.permutation(len(batch))
            for start in range(0, len(batch) - size + 1, size):
                rows = {name: column[order[start : start + size]] for name, column in inputs.items()}
                known = self.networks["constant"].online_network.predict(rows)
                self.networks["predictor"].train_and_sync_networks(rows, [known])

    def handle_self_supervised_reward(self, batch: Batch) -> Batch:
        """The batch with the rewards that the agent gives itself; the environment's here."""
        return batch

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        return super().learning_columns(self.handle_self_supervised_reward(batch))

    def handle_episode_ended(self) -> None:
        super().handle_episode_ended()
        if self.phase is RunPhase.TEST:
            return
        length = self.episode.steps
        newest = self.memory.newest_transitions(length)
        self.rnd_obs_stats.push_val(newest.state_columns[self.ap.algorithm.env_obs_key])
        if self.total_steps_counter - self.last_rnd_training >= self.ap.algorithm.rnd_sample_size:
            self.last_rnd_training = self.total_steps_counter
            self.update_intrinsic_returns_estimate(
                self.calculate_novelty(self.memory.newest_transitions(self.ap.algorithm.rnd_sample_size))
            )
            self.train_rnd()
        self.novelty.add_sample(self.calculate_novelty(newest))
        if self.total_steps_counter - self.last_replay_buffer_save >= self.ap.algorithm.replay_buffer_save_steps:
            self.last_replay_buffer_save = self.total_steps_counter
            self.save_replay_buffer(self.ap.algorithm.replay_buffer_save_path)

    def save_replay_buffer(self, dir_path: str | None = None) -> None:
        """Save the memory in a directory, under the number of steps; nothing is saved if None is given."""
        if dir_path is not None:
            os.makedirs(dir_path, exist_ok=True)
            self.memory.save(os.path.join(dir_path, f"replay_buffer_{self.total_steps_counter}.npz"))

    def get_state(self) -> dict[str, Any]:
        statistics = {"rnd": self.rnd_stats.get_state(), "rnd_observations": self.rnd_obs_stats.get_state()}
        return {**super().get_state(), "statistics": statistics}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.rnd_stats.set_state(state["statistics"]["rnd"])
        self.rnd_obs_stats.set_state(state["statistics"]["rnd_observations"])


class TD3IntrinsicRewardAgent(TD3ExplorationAgent):
    """Its reward is novelty, divided by the deviation of novelty's discounted sum (Burda et al. 2018, section 2.4)."""

    def handle_self_supervised_reward(self, batch: Batch) -> Batch:
        rewarded = Batch(batch)
        rewarded.reward_column = (self.calculate_novelty(batch) / self.rnd_stats.std[0]).astype(np.float32)
        return rewarded


class RandomAgent(TD3ExplorationAgent):
    """Acts as its exploration policy does, at random by default, and learns nothing but novelty."""

    def train(self) -> float:
        return 0.0


class TD3GoalBasedAgent(TD3ExplorationAgent):
    """Goes to the observation that was the most novel of those remembered, and learns to reach later steps of episodes.

    A step costs 1 until the goal is reached.

    :ivar goal: what ``env_obs_key`` shows at the goal; None: where the agent is
    """

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.goal: np.ndarray | None = None

    def concat_goal(self, state: StateType, goal_state: StateType) -> np.ndarray:
        """An observation and the goal's, joined along the last dimension."""
        key = self.ap.algorithm.env_obs_key
        return np.concatenate([np.asarray(state[key]), np.asarray(goal_state[key])], axis=-1)

    def predict_states(self, states: list[StateType]) -> Any:
        key, seen = self.ap.algorithm.env_obs_key, self.ap.algorithm.agent_obs_key
        goals = [state if self.goal is None else {key: self.goal} for state in states]
        return super().predict_states(
            [{**state, seen: self.concat_goal(state, goal)} for state, goal in zip(states, goals)]
        )

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """Columns of as many steps as the batch has, each with a later step of its episode for a goal."""
        lengths = self.memory.episode_lengths()
        episodes = self.rng.integers(len(lengths), size=len(batch))
        steps = self.rng.integers(lengths[episodes])
        starts = (np.cumsum(lengths) - lengths)[episodes]
        drawn = self.memory.transitions_at(starts + steps)
        goals = self.memory.transitions_at(starts + self.rng.integers(steps, lengths[episodes]))
        return self._with_goals(super().learning_columns(drawn), drawn, goals)

    def _with_goals(self, columns: dict[str, np.ndarray], drawn: Batch, goals: Batch) -> dict[str, np.ndarray]:
        algorithm = self.ap.algorithm
        is_there = self.rng.random(len(drawn)) < algorithm.identity_goal_sample_rate
        key, seen = algorithm.env_obs_key, algorithm.agent_obs_key
        there = is_there.reshape(-1, *[1] * (drawn.state_columns[key].ndim - 1))
        goal = {key: np.where(there, drawn.state_columns[key], goals.next_state_columns[key])}
        columns[f"states/{seen}"] = self.concat_goal(drawn.state_columns, goal)
        columns[f"next_states/{seen}"] = self.concat_goal(drawn.next_state_columns, goal)
        reached = is_there | self._same(drawn.next_state_columns, goals.next_state_columns)
        columns["actions"] = np.where(is_there[:, None], 0, columns["actions"]).astype(np.float32)
        columns["rewards"] = np.where(reached, 0, -1).astype(np.float32)
        columns["discounts"] = (algorithm.discount * ~reached).astype(np.float32)
        return columns

    def _same(self, states: StateType, others: StateType) -> np.ndarray:
        """[B], True where what goals show and the measurements, if there are any, are equal but for rounding."""
        names = [name for name in (self.ap.algorithm.env_obs_key, "measurements") if name in states]
        equal = [np.isclose(states[name], others[name]).reshape(len(states[name]), -1).all(axis=1) for name in names]
        return np.logical_and.reduce(equal)

    def generate_goal(self) -> None:
        """Set the goal: the most novel of some transitions drawn from the memory."""
        count = min(self.ap.algorithm.rnd_sample_size, self.memory.num_transitions_in_complete_episodes())
        drawn = self.memory.transitions_at(
            self.rng.choice(self.memory.num_transitions_in_complete_episodes(), count, replace=False)
        )
        best = int(np.argmax(self.calculate_novelty(drawn)))
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
