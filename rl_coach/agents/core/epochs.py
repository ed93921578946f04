"""Learning in epochs of minibatches from all steps that one policy has played (Schulman et al. 2017, algorithm 1)."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import numpy as np

from rl_coach.agents.core.learning import PhaseLearning
from rl_coach.agents.core.rollout import ArrayOperations, Rollout, RolloutBatch, estimates_of_rollout
from rl_coach.agents.core.sequences import Sequences, rows_of, stored_states
from rl_coach.architectures.learner import LearningResult
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.padding import padded
from rl_coach.architectures.policies import log_probabilities
from rl_coach.core_types import Batch
from rl_coach.logger import screen
from rl_coach.runs.event_lines import log_epochs

DIVERGENCE = "KL Divergence"
_NAMES_IN_LINES = {"Surrogate loss": "Policy Loss", "KL divergence": DIVERGENCE, "Entropy": "Entropy"}
Columns = dict[str, np.ndarray]


class EpochLearning(PhaseLearning):
    """Plays for a period with one policy, then makes several epochs of minibatch updates on the steps of this period.

    A training phase counts as one training step, for any number of minibatches.

    :param agent: the agent; a rule with the signal ``KL Divergence`` has all signals of ``_NAMES_IN_LINES``
    :param columns: makes the columns for the update rule from whole episodes
    :param make_updates: makes the updates of a phase on columns with ``make_epochs``, and returns the mean loss

    :ivar sequence_length: the number of rows in a sequence of a recurrent network, otherwise 1
    :ivar divergence: mean KL divergence from the policy that played, over the minibatches of the last epoch
    """

    def __init__(
        self,
        agent: Any,
        policy: NetworkWrapper,
        *,
        columns: Callable[[Batch], Columns],
        make_updates: Callable[[Columns], float],
    ):
        super().__init__(agent)
        self._update_loop, self._policy = agent.update_loop, policy
        self._columns, self._make_updates = columns, make_updates
        self.sequence_length = sequence_length_of(policy)
        self.divergence = 0.0
        self.rollout: Rollout = Rollout()

    def is_due(self) -> bool:
        agent = self._agent
        # the steps of several actors may be in the rollout and not in the memory
        return agent.clock.is_due(self._is_in_episode) and (agent.parallel is not None or agent.memory.length() > 0)

    def learn(self, updates_left: int | None = None) -> float:
        updates, loss, parallel = self.start(updates_left), 0.0, self._agent.parallel
        # columns hold no steps of episodes in progress
        for _ in () if parallel is None or parallel.are_in_columns else parallel:
            self._agent.experience.require_parts_of_episodes()
            self._agent.cut_episode()
        # filtered once, so that each step enters the filters' statistics once
        batch = self._update_loop.filtered(self._played())
        for _ in range(updates):
            # again for each training step, because the last one has changed values and probabilities
            columns = self._columns(batch)
            # targets are updated before the updates of the phase; the compiled loop keeps the same order
            self._update_loop.update_targets_if_due()
            loss += self._make_updates(columns)
            self._agent.clock.updates += 1
            self._update_loop.close_phase()
        return loss

    def _played(self) -> Batch:
        """All steps since the last phase: whole episodes from the memory, then the steps of several actors."""
        memory: Any = self._agent.memory
        if not len(self.rollout):
            return Batch(memory.get_all_complete_episodes_transitions())
        if not memory.length():
            return self.rollout.take()
        # the memory has steps that were played one by one before the actors acted in columns, as from a checkpoint
        return Batch.joined([Batch(memory.get_all_complete_episodes_transitions()), self.rollout.take()])

    def get_state(self) -> dict[str, Any]:
        return {"rollout": self.rollout.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        self.rollout.set_state(state.get("rollout", {}))  # older checkpoints have none

    def make_epochs(
        self, columns: Columns, epochs: int, most: int | None = None, size: int | None = None, **alone: Any
    ) -> float:
        """Make all minibatch updates of some epochs in one compiled call. A recurrent network learns from minibatches
        of whole sequences.

        :param columns: [N, ...] by name
        :param most: number of epochs that the call is compiled for; ``epochs`` by default
        :param size: rows of a minibatch; the ``batch_size`` of the settings by default
        :param alone: arguments of ``UpdateLoop.update_alone``: the only network that learns, and its signals. By
            default all networks learn
        :return: the mean loss
        """
        how = self.minibatches(columns, epochs, most or epochs, size or self._update_loop.batch_size)
        # one number for the whole phase: schedules of the learning rate count phases, not minibatches
        how["training_step"] = self._agent.clock.updates
        self._agent.clock.minibatches += int(how["count"])
        result = self._update_loop.update_alone(**alone, **how) if alone else self._update_loop.update(**how)
        if DIVERGENCE in result.signal_names:
            divergences = result.signals[DIVERGENCE]
            # the minibatches of the last epoch come last
            self.divergence = float(divergences[-(len(divergences) // epochs) :].mean())
            log_minibatches(result, epochs, self._policy.optimizer.learning_rate(self._agent.clock.updates))
        return float(result.losses[alone.get("name", self._policy.name)].mean())

    def minibatches(self, columns: Columns, epochs: int, most: int, size: int) -> dict[str, Any]:
        """The padded columns and the rows of each update, as arguments of ``UpdateLoop.update``.

        :param most: number of epochs that the call is compiled for
        :param size: rows of a minibatch
        """
        length = self.sequence_length
        # sequences in a minibatch, so that it has about as many rows as without sequences
        size, sequences = max(1, size // length), len(columns["weights"]) // length
        per_epoch = -(-sequences // size)
        indices = np.full((epochs, per_epoch * size), -1, np.int32)
        for epoch in range(epochs):
            indices[epoch, :sequences] = self._agent.rng.permutation(sequences)
        columns = padded(columns)
        # the shape depends only on the padded number of rows, so that phases of other lengths use the same compiled
        # step; -1 pads the last minibatch of an epoch and the updates that this call does not make
        compiled = np.full((most * -(-len(columns["weights"]) // (length * size)), size), -1, np.int32)
        compiled[: epochs * per_epoch] = indices.reshape(-1, size)
        return {
            "columns": columns,
            "indices": compiled if length == 1 else rows_of(compiled, length),
            "num_updates": len(compiled),
            "count": epochs * per_epoch,
            "sequence_length": length if self._policy.is_recurrent else None,
        }


def log_minibatches(result: LearningResult, epochs: int, learning_rate: float) -> None:
    """Print the lines of a phase's epochs, if a program reads the output.

    :param result: the result of all minibatches
    """
    if screen.is_read_by_programs:
        signals = {line_name: result.signals[name] for line_name, name in _NAMES_IN_LINES.items()}
        log_epochs(epochs, signals, learning_rate)


def sequence_length_of(network: NetworkWrapper) -> int:
    """The number of rows in a sequence of a recurrent network, 1 for other networks."""
    return network.network_parameters.middleware_parameters.sequence_length if network.is_recurrent else 1


Estimate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Advantages and returns [T], from rewards [T] and values [T + 1]."""


def last_rows(batch: Batch) -> np.ndarray:
    """[E] the last row of each episode. The last episode may still be open."""
    ends = np.flatnonzero(batch.game_over_column)
    return ends if ends.size and ends[-1] == len(batch) - 1 else np.append(ends, len(batch) - 1)


def estimates(
    estimate: Estimate, rewards: np.ndarray, values: np.ndarray, ends: np.ndarray, following: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and returns [N], estimated episode by episode.

    :param rewards: [N]
    :param values: [N], the values of the states
    :param ends: [E] the last row of each episode
    :param following: [E] the value of the state after each of these rows, 0 if the episode terminated
    """
    starts = np.append(0, ends[:-1] + 1)
    found = [
        estimate(rewards[start : end + 1], np.append(values[start : end + 1], after))
        for start, end, after in zip(starts, ends, following)
    ]
    advantages, returns = zip(*found)
    return np.concatenate(advantages), np.concatenate(returns)


def streams(batch: Batch, of_one_actor: bool) -> tuple[np.ndarray, np.ndarray]:
    """Divide the steps of a batch into streams, each in order of time. A stream has all steps of one actor. If actors
    act one after the other, a batch does not say which actor played an episode, so each episode is a stream.

    :param of_one_actor: True if all steps of the batch come from one actor; not used for a ``RolloutBatch``
    :return: [N], the rows, stream by stream; and [S], the index of each stream's last step in this array
    """
    if not isinstance(batch, RolloutBatch):
        return np.arange(len(batch)), np.array([len(batch) - 1]) if of_one_actor else last_rows(batch)
    actors = batch.order % batch.shape[1]
    order = np.lexsort((batch.order, actors))
    return order, np.flatnonzero(np.diff(actors[order], append=-1))


class EpisodeColumns:
    """Makes the columns for PPO's rules from whole episodes: advantages, returns, and the policy that played.

    :param agent: a ``ProximalPolicyAgent``; one network may be both policy and critic
    """

    def __init__(self, agent: Any):
        self._agent = agent
        policy, critic = agent.networks[agent.policy_network], agent.networks[agent.value_network]
        self._policy, self._critic = policy, critic
        self._is_recurrent, self._sequence_length = policy.is_recurrent, sequence_length_of(policy)
        self._output_names = {one.name: one.online_network.output_names for one in (policy, critic)}
        self._policy_outputs = policy.outputs_named("probabilities", "mean", "standard_deviation")
        self._value_output, *self._intrinsic_outputs = critic.outputs_named("v")
        self._estimate_of_copies = agent.estimates_of_copies(ArrayOperations)

    def of(self, batch: Batch) -> Columns:
        """The columns [N, ...] of whole episodes, one after the other. The last episode may still be open. Its returns
        then bootstrap from the critic's value of its last next state.
        """
        agent, mask_name = self._agent, self._agent.spaces.action_mask_name
        ends = last_rows(batch)
        sequences = Sequences(ends, self._sequence_length) if self._is_recurrent else None
        outputs = self._outputs(self._policy, batch, sequences)
        policy = [outputs[name] for name in self._policy_outputs]
        if self._critic is not self._policy:
            outputs = self._outputs(self._critic, batch, sequences)
        values = outputs[self._value_output]
        following = self._values_after(batch, ends, outputs, self._value_output) * ~batch.terminated_column[ends]
        if isinstance(batch, RolloutBatch):
            advantages, returns = estimates_of_rollout(self._estimate_of_copies, batch, values, ends, following)
        else:
            advantages, returns = estimates(agent._advantages_and_returns, batch.reward_column, values, ends, following)
        agent.state_values.add_sample(values)
        agent.action_advantages.add_sample(advantages)
        agent.value_targets.add_sample(returns)
        intrinsic_columns: Columns = {}
        if agent.curiosity is not None:
            intrinsic, intrinsic_columns = self._intrinsic(batch, outputs)
            advantages = advantages + agent.curiosity.parameters.coefficient * intrinsic
        states = batch.state_columns
        mask = None if mask_name is None else states[mask_name] > 0
        # over the whole phase, and not in each minibatch
        normalized = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        columns = {f"states/{name}": states[name] for name in agent.update_loop.input_names}
        columns["actions"] = batch.action_column
        columns["weights"] = np.ones(len(batch), np.float32)
        columns["extra/advantages"] = normalized.astype(np.float32)
        columns["extra/returns"] = returns.astype(np.float32)
        columns |= agent.behaviour_columns(values, log_probabilities(policy, batch.action_column, mask), policy)
        columns |= intrinsic_columns
        if sequences is None:
            return columns
        before = stored_states(batch, self._policy.online_network.recurrent_state)
        return sequences.learning_columns(columns | {f"states/{name}": state for name, state in before.items()})

    def _intrinsic(self, batch: Batch, outputs: Columns) -> tuple[np.ndarray, Columns]:
        """Advantages [N] of intrinsic rewards, and the columns of the rule about them."""
        agent, (value_output,) = self._agent, self._intrinsic_outputs
        columns, values = agent.curiosity.columns(batch.next_state_columns), outputs[value_output]
        rewards = agent.curiosity.rewards(columns)
        # intrinsic returns continue over the ends of episodes (Burda et al. 2018, section 2.3)
        order, ends = streams(batch, agent.parallel is None)
        following = self._values_after(batch, order[ends], outputs, value_output)
        estimate = partial(agent._advantages_and_returns, discount=agent.curiosity.parameters.intrinsic_discount)
        advantages, returns = (np.empty(len(batch)) for _ in range(2))
        advantages[order], returns[order] = estimates(estimate, rewards[order], values[order], ends, following)
        columns["extra/intrinsic_returns"] = returns.astype(np.float32)
        columns["extra/behaviour_intrinsic_values"] = values
        return advantages, columns

    def _outputs(self, network: NetworkWrapper, batch: Batch, sequences: Sequences | None) -> Columns:
        """[N, ...] by name, the outputs of a network for the states.

        A recurrent network is unrolled as in learning: each sequence starts from its stored recurrent state. The
        outputs then include the recurrent state after each row.
        """
        online = network.online_network
        inputs = {name: batch.state_columns[name] for name in network.input_names}
        if sequences is None or not network.is_recurrent:
            return dict(zip(self._output_names[network.name], online.predict(inputs, squeeze_output=False)))
        before = stored_states(batch, online.recurrent_state)
        first = {name: state[sequences.starts] for name, state in before.items()}
        return {name: sequences.joined(column) for name, column in online.unroll(sequences.cut(inputs), first).items()}

    def _values_after(self, batch: Batch, rows: np.ndarray, outputs: Columns, value_output: str) -> np.ndarray:
        """The critic's values [E] of the next states of some rows.

        :param rows: [E]
        :param outputs: the critic's outputs for all rows, with the recurrent states from which it continues
        :param value_output: the output with the values
        """
        network = self._critic.online_network
        inputs = {name: batch.next_state_columns[name][rows] for name in self._critic.input_names}
        if not self._is_recurrent or self._critic is not self._policy:
            return network.predict(inputs, outputs=[value_output])
        state = {name: outputs[output][rows] for name, output in network.recurrent_outputs.items()}
        # the network continues from the recurrent state after each of the rows
        one_step = {name: column[:, None] for name, column in inputs.items()}
        return network.unroll(one_step, state)[value_output][:, 0]
