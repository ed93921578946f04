"""Base of the agents that play for a while with one policy and then learn from all of it in epochs of minibatches
(Schulman et al. 2017, algorithm 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgent
from rl_coach.agents.agent import Agent
from rl_coach.agents.core.requirements import MemoryRequirement
from rl_coach.agents.core.sequences import Sequences, rows_of, stored_states
from rl_coach.architectures.architecture import Architecture
from rl_coach.architectures.learner import LearningResult
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

    memory_requirement = MemoryRequirement.EPISODES
    rescalers = ActorCriticAgent.rescalers
    learns_from_sequences = False
    learns_from_stored_states = True
    trains_asynchronously = False
    value_network = "main"
    # what it plays is learned from as a whole, out of its memory
    segment_steps = None
    left_to_play = Agent.left_to_play
    take_in = Agent.take_in

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.divergence = 0.0
        self.signals.use_for_rule("Entropy", self.entropy)

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
        phases = self.clock.start_phases(self.updates_left)
        for _ in self.parallel or ():
            self.cut_episode()
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
        outputs = self._outputs(batch)
        value = outputs[self.value_network][self._value_output]
        policy = [outputs[self.policy_network][name] for name in self._policy_output_names]
        bootstrap = self._values_after(batch, ends, outputs[self.value_network])
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
        columns |= self.behaviour_columns(value, self._log_probs(policy, batch, states), policy)
        if not self.is_recurrent:
            return columns
        before = stored_states(batch, self.recurrent_state)
        columns |= {f"states/{name}": state for name, state in before.items()}
        return self._sequences(batch).learning_columns(columns)

    def _sequences(self, batch: Batch) -> Sequences:
        return Sequences(np.flatnonzero(batch.game_overs()), self.sequence_length)

    @cached_property
    def sequence_length(self) -> int:
        """Rows that are learned from together: those of a recurrent network's sequences, otherwise 1."""
        network = self.ap.network_wrappers[self.recurrent_network]
        return network.middleware_parameters.sequence_length if self.is_recurrent else 1

    def _outputs(self, batch: Batch) -> dict[str, dict[str, np.ndarray]]:
        """[N, ...], the outputs of the critic's and the policy's networks, by network and name; the state after each
        row is among those of a recurrent network."""
        found = {}
        for name in dict.fromkeys((self.value_network, self.policy_network)):
            network = self.networks[name].online_network
            inputs = {one: batch.state_columns[one] for one in self.networks[name].input_names}
            if self.networks[name].is_recurrent:
                found[name] = self._unrolled(network, inputs, batch)
            else:
                found[name] = dict(zip(network.output_names, network.predict(inputs, squeeze_output=False)))
        return found

    def _unrolled(self, network: Architecture, inputs: dict[str, np.ndarray], batch: Batch) -> dict[str, np.ndarray]:
        """As learning unrolls it: from the state before each sequence's first step."""
        sequences = self._sequences(batch)
        before = stored_states(batch, network.recurrent_state)
        first = {name: state[sequences.starts] for name, state in before.items()}
        unrolled = network.unroll(sequences.cut(inputs), first)
        return {name: sequences.joined(column) for name, column in unrolled.items()}

    def _values_after(self, batch: Batch, rows: np.ndarray, outputs: dict[str, np.ndarray]) -> np.ndarray:
        """The critic's values of the states that some rows led to.

        :param outputs: [N, ...], of the critic's network for all rows
        """
        network = self.networks[self.value_network]
        inputs = {name: batch.next_state_columns[name][rows] for name in network.input_names}
        online = network.online_network
        if not network.is_recurrent:
            return online.predict(inputs, outputs=[self._value_output])
        state = {name: outputs[output][rows] for name, output in online.recurrent_outputs.items()}
        one_step = {name: column[:, None] for name, column in inputs.items()}
        return online.unroll(one_step, state)[self._value_output][:, 0]

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

    def make_epochs(self, columns: dict[str, np.ndarray], epochs: int, size: int) -> float:
        """All minibatches of some epochs in one compiled call. A recurrent network's are of whole sequences.

        :param columns: [N, ...] by name
        :param size: rows of a minibatch
        :return: the mean loss
        """
        return self.note_policy(self.update_loop.update(**self.minibatches(columns, epochs, epochs, size)), epochs)

    def minibatches(self, columns: dict[str, np.ndarray], epochs: int, most: int, size: int) -> dict[str, Any]:
        """The columns and the rows of each update, as ``UpdateLoop.update`` takes them.

        :param columns: [N, ...] by name
        :param most: the epochs for which the call is compiled
        :param size: rows of a minibatch
        """
        length = self.sequence_length
        size, sequences = max(1, size // length), len(columns["weights"]) // length
        per_epoch = -(-sequences // size)
        indices = np.full((epochs, per_epoch * size), -1, np.int32)
        for epoch in range(epochs):
            indices[epoch, :sequences] = self.rng.permutation(sequences)
        columns = padded(columns)
        compiled = np.full((most * -(-len(columns["weights"]) // (length * size)), size), -1, np.int32)
        compiled[: epochs * per_epoch] = indices.reshape(-1, size)
        return {
            "columns": columns,
            "indices": rows_of(compiled, length),
            "num_updates": len(compiled),
            "count": epochs * per_epoch,
            "training_step": self.training_iteration,
            "sequence_length": length if self.is_recurrent else None,
        }

    def note_policy(self, result: LearningResult, epochs: int) -> float:
        """Remember how far the policy moved in the last of some epochs. :return: its mean loss"""
        losses = result.losses[self.policy_network]
        self.divergence = float(result.signals[DIVERGENCE][-(len(losses) // epochs) :].mean())
        if screen.is_read_by_programs:
            signals = {line_name: result.signals[name] for line_name, name in _NAMES_IN_LINES.items()}
            learning_rate = self.networks[self.policy_network].optimizer.learning_rate(self.training_iteration)
            log_epochs(epochs, signals, learning_rate)
        return float(losses.mean())

    def post_training_commands(self) -> None:
        """Forget what was played with the old policy: it is of no more use."""
        self.memory.clean()
