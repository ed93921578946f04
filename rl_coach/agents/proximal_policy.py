"""Base of the agents that play for a while with one policy and then learn from all of it in epochs of minibatches
(Schulman et al. 2017, algorithm 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgent
from rl_coach.agents.agent import Agent
from rl_coach.architectures.learner import Masks
from rl_coach.architectures.packing import padded
from rl_coach.core_types import Batch, StateType
from rl_coach.logger import screen
from rl_coach.runs.event_lines import log_epochs
from rl_coach.spaces import DiscreteActionSpace

DIVERGENCE = "Kullback-Leibler Divergence"
_NAMES_IN_LINES = {
    "Surrogate loss": "Policy Loss",
    "KL divergence": DIVERGENCE,
    "Entropy": "Entropy",
}


class ProximalPolicyAgent(ActorCriticAgent):
    """Plays for a while with one policy, then makes several epochs of minibatch updates on what it played.

    A subclass says what its rule needs to know of the policy that played (``behaviour_columns``) and which epochs there
    are (``learn_from_played``). Its rule gives the signals that ``_NAMES_IN_LINES`` lists.

    :cvar value_network: the network that has the critic
    :ivar divergence: mean divergence from the policy that played, in the minibatches of the last epoch
    """

    learns_from_sequences = False
    trains_asynchronously = False
    value_network = "main"
    # what it plays is learned from as a whole, out of its memory
    segment_steps = None
    left_to_play = Agent.left_to_play
    take_in = Agent.take_in

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.divergence = 0.0
        self.books.use_for_rule("Entropy", self.entropy)

    def behaviour_columns(
        self, values: np.ndarray, log_probs: np.ndarray, policy: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The columns of the rule that tell of the policy that played.

        :param values: [B], the critic's
        :param log_probs: [B], of the actions that were taken
        :param policy: the network's outputs: probabilities [B, A], or mean and standard deviation [B, D]
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its rule needs")

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        """Make the updates on what was played. :return: the mean loss"""
        raise NotImplementedError(f"{type(self).__name__} does not say which updates it makes")

    @property
    def has_experience(self) -> bool:
        """Steps in several environments count before the first episode of any has ended, for they are cut."""
        return self.parallel is not None or super().has_experience

    def train(self) -> float:
        if not self.should_train():
            return 0.0
        phases = self.clock.start_phases(self.total_steps_counter, self.current_episode, self.updates_left)
        for _ in self.parallel or ():
            self.experience.cut(self.episode)
        batch = self.memory.get_all_complete_episodes_transitions()
        batch = self.update_loop.filtered(batch if isinstance(batch, Batch) else Batch(batch))
        loss = sum(self._train_on_played(batch) for _ in range(phases))
        self.post_training_commands()
        return loss

    def _train_on_played(self, batch: Batch) -> float:
        columns = self.fill_advantages(batch)
        self.update_loop.update_targets_if_due()
        return self.learn_from_played(columns)

    def fill_advantages(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns to learn from: advantages, the critic's targets and the log probability of what was done.

        :param batch: whole episodes, one after the other
        """
        states = batch.state_columns
        ends = np.flatnonzero(batch.game_overs())
        value, policy = self._value_and_policy(states)
        bootstrap = self._value({n: column[ends] for n, column in batch.next_state_columns.items()})
        bootstrap = bootstrap * ~batch.terminateds()[ends]
        advantages, returns = self._advantages_of_episodes(batch.rewards(), value, ends, bootstrap)
        self.state_values.add_sample(value)
        self.action_advantages.add_sample(advantages)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        columns = {f"states/{name}": states[name] for name in self.update_loop.input_names}
        columns["actions"] = batch.actions()
        columns["weights"] = np.ones(len(batch), np.float32)
        columns["extra/advantages"] = advantages.astype(np.float32)
        columns["extra/returns"] = returns.astype(np.float32)
        return columns | self.behaviour_columns(value, self._log_probs(policy, batch, states), policy)

    def _value_and_policy(self, states: StateType) -> tuple[np.ndarray, list[np.ndarray]]:
        """The critic's values [B], and the policy's outputs."""
        outputs = {}
        for name in dict.fromkeys((self.value_network, self.policy_network)):
            network = self.networks[name]
            inputs = {one: states[one] for one in network.input_names}
            outputs[name] = dict(
                zip(network.online_network.output_names, network.online_network.predict(inputs, squeeze_output=False))
            )
        policy = [outputs[self.policy_network][name] for name in self._policy_output_names]
        return outputs[self.value_network][self._value_output], policy

    def _value(self, states: StateType) -> np.ndarray:
        network = self.networks[self.value_network]
        inputs = {name: states[name] for name in network.input_names}
        return network.online_network.predict(inputs, outputs=[self._value_output])

    @cached_property
    def _value_output(self) -> str:
        return self.networks[self.value_network].outputs_named("v")[0]

    def _advantages_of_episodes(
        self, rewards: np.ndarray, values: np.ndarray, ends: np.ndarray, bootstrap: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        found = []
        start = 0
        for end, following in zip(ends, bootstrap):
            episode = slice(start, end + 1)
            found.append(self._advantages_and_returns(rewards[episode], np.append(values[episode], following)))
            start = end + 1
        advantages, returns = zip(*found)
        return np.concatenate(advantages), np.concatenate(returns)

    def _log_probs(self, policy: list[np.ndarray], batch: Batch, states: StateType) -> np.ndarray:
        """[B] float32, log pi(a|s) under the policy that played."""
        actions = batch.actions()
        if isinstance(self.spaces.action, DiscreteActionSpace):
            probabilities = policy[0]
            if self.spaces.action_mask_name is not None:
                probabilities = probabilities * (states[self.spaces.action_mask_name] > 0)
                probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
            chosen = probabilities[np.arange(len(actions)), actions]
            # a random action of the heatup may have a probability that rounds to 0
            return np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).astype(np.float32)
        mean, deviation = policy
        standardised = (actions - mean) / deviation
        densities = -0.5 * (standardised**2 + 2 * np.log(deviation) + np.log(2 * np.pi))
        return densities.sum(axis=1).astype(np.float32)

    def make_epochs(
        self, columns: dict[str, np.ndarray], epochs: int, size: int, learning: dict[str, int] | None = None
    ) -> float:
        """All minibatches of some epochs in one compiled call.

        :param columns: [N, ...] by name
        :param size: of a minibatch
        :param learning: number of epochs, from the first one on, in which a network learns, where those are not all
        :return: the mean loss
        """
        rows = len(columns["weights"])
        per_epoch = -(-rows // size)
        indices = np.full((epochs, per_epoch * size), -1, np.int32)
        for epoch in range(epochs):
            indices[epoch, :rows] = self.rng.permutation(rows)
        columns = padded(columns)
        compiled = np.full((epochs * -(-len(columns["weights"]) // size), size), -1, np.int32)
        compiled[: epochs * per_epoch] = indices.reshape(-1, size)
        masks: Masks = {n: [k < e * per_epoch for k in range(len(compiled))] for n, e in (learning or {}).items()}
        result = self.update_loop.update(
            columns,
            indices=compiled,
            num_updates=len(compiled),
            count=epochs * per_epoch,
            learning=masks,
            training_step=self.training_iteration,
        )
        self.divergence = float(result.signals[DIVERGENCE][-per_epoch:].mean())
        if screen.is_read_by_programs:
            signals = {line_name: result.signals[name] for line_name, name in _NAMES_IN_LINES.items()}
            learning_rate = self.networks[self.policy_network].optimizer.learning_rate(self.training_iteration)
            log_epochs(epochs, signals, learning_rate)
        return float(result.losses[self.policy_network].mean())

    def post_training_commands(self) -> None:
        """Forget what was played with the old policy: it is of no more use."""
        self.memory.clean()
