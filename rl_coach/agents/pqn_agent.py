"""PQN, parallelised Q-network (Gallici et al. 2024, "Simplifying deep temporal difference learning")."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rl_coach.agents.core.compiled_acting import why_exploration_is_not_compiled
from rl_coach.agents.core.compiled_epochs import (
    CompiledEpochs,
    EpochSettings,
    ValuesInEpochs,
    why_epochs_are_not_compiled,
)
from rl_coach.agents.core.epochs import EpochLearning, estimates, last_rows
from rl_coach.agents.core.requirements import MemoryRequirement, NetworkRequirement, Q
from rl_coach.agents.rules.advantages import generalized_advantages, generalized_advantages_of_copies
from rl_coach.agents.rules.q_learning import allowed_values, q_lambda_rule
from rl_coach.agents.value_optimization_agent import ValueOptimizationAgent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import QHeadParameters
from rl_coach.architectures.layers import Dense, LayerNorm
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import NetworkView, UpdateRule
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.core_types import Batch, EnvironmentSteps
from rl_coach.exploration_policies.e_greedy import EGreedyParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import FRACTION, whole


class PQNNetworkParameters(NetworkParameters):
    """A Q-network with layer normalisation, which replaces a target network (section 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=[Dense(256), LayerNorm()])}
        self.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(256), LayerNorm()])
        self.heads_parameters = [QHeadParameters(loss_weight=0.5)]
        self.batch_size = 128
        self.clip_gradients = 10.0


class PQNAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of PQN.

    :ivar num_consecutive_playing_steps: number of steps before each training phase, in all copies of the environment
        together
    :ivar q_lambda: lambda; 0 bootstraps from the next state (Q-learning), 1 bootstraps from the last of these steps
    :ivar optimization_epochs: number of passes over the transitions of these steps
    """

    constraints = {"q_lambda": FRACTION, "optimization_epochs": whole(1)}

    def __init__(self) -> None:
        super().__init__()
        self.num_consecutive_playing_steps = EnvironmentSteps(2048)
        self.q_lambda = 0.65
        self.optimization_epochs = 4
        self.act_for_full_episodes = True


class PQNAgentParameters(AgentParameters):
    """PQN with epsilon-greedy exploration and without experience replay."""

    path = "rl_coach.agents.pqn_agent:PQNAgent"
    algorithm: PQNAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=PQNAlgorithmParameters(),
            exploration=EGreedyParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": PQNNetworkParameters()},
        )
        self.exploration.epsilon_schedule = LinearSchedule(1, 0.05, 100000)
        self.exploration.evaluation_epsilon = 0.0


class PQNAgent(ValueOptimizationAgent):
    """Plays a number of steps without learning, then makes several epochs of minibatch updates. The targets are
    lambda-returns from the values before these updates.
    """

    network_requirements = {"main": NetworkRequirement((Q,))}
    memory_requirement = MemoryRequirement.EPISODES
    max_n_step = 1
    learning: EpochLearning
    is_on_policy = True

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.q_targets = self.register_signal("Q Targets")

    def make_update_rule(self) -> UpdateRule:
        is_huber, _, loss_weight = self.loss_settings
        return q_lambda_rule(is_huber, loss_weight)

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        why_not = why_exploration_is_not_compiled(self.ap, actions, EGreedyParameters)
        return why_not or why_epochs_are_not_compiled(self.ap, num_copies, heats_up)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledEpochs:
        algorithm, ops, mask_name = self.ap.algorithm, self.update_loop.learner.ops, self.spaces.action_mask_name

        def values(networks: dict[str, NetworkView], states: dict[str, Any]) -> Any:
            q = networks["main"].online(states, training=False)[0]["q"]
            return ops.max(allowed_values(ops, q, states, mask_name), axis=-1)

        estimate = partial(
            generalized_advantages_of_copies, ops, discount=algorithm.discount, gae_lambda=algorithm.q_lambda
        )
        steps = algorithm.num_consecutive_playing_steps.num_steps // num_copies
        settings = EpochSettings(steps, algorithm.optimization_epochs, self.update_loop.batch_size)
        learning = ValuesInEpochs(ops, self.compiled_exploration(random, num_copies), values, estimate)
        return CompiledEpochs(self, random, num_copies, settings, learning, {"targets": self.q_targets})

    def make_learning(self) -> EpochLearning:
        return EpochLearning(
            self,
            self.networks["main"],
            columns=lambda batch: self.learning_columns(batch),
            make_updates=lambda columns: self.learning.make_epochs(columns, self.ap.algorithm.optimization_epochs),
        )

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of the update rule. ``extra/returns`` are R_t = r_t + discount ((1 - lambda) max_a Q(s_{t+1}, a)
        + lambda R_{t+1}) (section 4.1).

        The return of the last step of an episode is r_T + discount max_a Q(s_{T+1}, a), or r_T if the episode
        terminated.

        :param batch: whole episodes, one after the other
        """
        algorithm, ends = self.ap.algorithm, last_rows(batch)
        following = {name: column[ends] for name, column in batch.next_state_columns.items()}
        _, returns = estimates(
            lambda rewards, values: generalized_advantages(rewards, values, algorithm.discount, algorithm.q_lambda),
            batch.reward_column,
            self._greedy_values(batch.state_columns),
            ends,
            self._greedy_values(following) * ~batch.terminated_column[ends],
        )
        self.q_targets.add_sample(returns)
        columns = {f"states/{name}": batch.state_columns[name] for name in self.update_loop.input_names}
        columns["actions"] = batch.action_column
        columns["weights"] = np.ones(len(batch), np.float32)
        columns["extra/returns"] = returns.astype(np.float32)
        return columns

    def _greedy_values(self, states: dict[str, np.ndarray]) -> np.ndarray:
        """The values max_a Q(s, a) [N] of the allowed actions. :param states: [N, ...] by name"""
        main = self.networks["main"]
        inputs = {name: states[name] for name in main.input_names}
        q = main.online_network.predict(inputs, outputs=self._q_outputs)
        return np.max(allowed_values(np, q, states, self.spaces.action_mask_name), axis=1)

    def post_training_commands(self) -> None:
        """Clear the memory, because the agent learns from each step in one training phase only."""
        self.memory.clean()
