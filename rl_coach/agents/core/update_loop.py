"""Learning of an agent: a batch becomes columns, the learner updates the networks, and the results are recorded."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Iterable, Sequence, SupportsFloat

import numpy as np

from rl_coach.architectures.learner import Learner, LearningResult
from rl_coach.architectures.packing import pad, padded
from rl_coach.architectures.shared_networks import GROUPS, SharedLearner, SharedNetworks
from rl_coach.architectures.update import TrainingStep
from rl_coach.core_types import Batch
from rl_coach.utils import LazyArray

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent

Outcome = tuple[float, list[float], float]
"""The loss, each network's loss, and the gradients' norm before clipping."""


class UpdateLoop:
    """Updates the networks of an agent.

    Batches come from the agent's memory (``learn``), or the agent brings columns of its own (``update``). The numbers
    that updates give are not read here, so that the environment can step while they are computed.

    :param agent: whose networks they are; it says which columns its rule needs
    """

    def __init__(self, agent: Agent):
        self._agent = agent
        self._networks = agent.networks
        memory = agent.memory
        self._has_priorities = memory.has_priorities
        self._targets = [name for name, network in self._networks.items() if network.has_target]
        # updates are separate calls where each depends on the host
        self._learns_one_by_one = not (agent.learns_by_rule and memory.draws_many_batches) or agent.learns_one_by_one
        self._shared_learner: SharedLearner | None = None

    def share(self, shared: SharedNetworks) -> None:
        """Learn together with other processes from now on."""
        self._shared_learner = SharedLearner(self.learner, shared)
        self._shared_learner.take_newest(GROUPS)

    def take_newest(self) -> None:
        """Take the newest weights, where they are shared."""
        if self._shared_learner is not None:
            self._shared_learner.take_newest()

    def take_all(self) -> None:
        """Take the newest weights and all that a checkpoint holds besides, where they are shared."""
        if self._shared_learner is not None:
            self._shared_learner.take_newest(GROUPS)

    @cached_property
    def learner(self) -> Learner:
        """Trains the networks by the update rule."""
        agent, networks = self._agent, self._networks
        functions = {name: network.state.function for name, network in networks.items()}
        rule = agent.make_update_rule()
        rule = rule if agent.sequences is None else agent.sequences.rule(rule)
        step = TrainingStep(functions, agent.ap.network_wrappers, rule)
        states = {name: network.state for name, network in networks.items()}
        acting = tuple(networks) if agent.acting_networks is None else agent.acting_networks
        return next(iter(networks.values())).framework.make_learner(step, states, acting)

    @cached_property
    def input_names(self) -> list[str]:
        """The observations that the networks or the rule look at, the action mask among them."""
        names = dict.fromkeys(name for network in self._networks.values() for name in network.input_names)
        names.pop("action", None)
        mask_name = self._agent.spaces.action_mask_name
        if mask_name is not None:
            names[mask_name] = None
        return list(names)

    @property
    def batch_size(self) -> int:
        """Transitions in one update."""
        return self._agent.ap.network_wrappers[self.batch_network].batch_size

    @property
    def batch_network(self) -> str:
        """The network whose ``batch_size`` counts, for all of them."""
        return self._agent.batch_network or next(iter(self._agent.ap.network_wrappers))

    def learn(self, updates: int) -> SupportsFloat:
        """Make updates on batches from the memory.

        :return: the sum of the losses; reading it waits for the updates
        """
        learn = self._learn_one_by_one if self._learns_one_by_one else self._learn_together
        loss = learn(updates)
        self.close_phase()
        return loss

    def _learn_together(self, updates: int) -> SupportsFloat:
        """All updates in compiled calls, split only where targets are to be updated in between."""
        losses: list[LearningResult] = []
        agent, done = self._agent, 0
        most = agent.most_updates_per_call or updates
        while done < updates:
            count, with_targets = min(updates - done, most), False
            if self._targets:
                count, with_targets = agent.clock.updates_before_targets(count, agent.training_iteration)
            losses.append(self._update_on(self._sample(count), count, with_targets))
            done += count
        return LazyArray(lambda: sum(float(loss.sum()) for result in losses for loss in result.losses.values()))

    def _learn_one_by_one(self, updates: int) -> float:
        total = 0.0
        for _ in range(updates):
            batch = self._sample(1)
            if self._agent.learns_by_rule:
                losses = self._update_on(batch, 1, False).losses.values()
                total += sum(float(loss[0]) for loss in losses)
            else:
                total += self.learn_from_batch(batch)
        return total

    def learn_from_batch(self, batch: Batch) -> float:
        """Let the agent's own ``learn_from_batch`` make an update. :return: the loss"""
        agent = self._agent
        agent.training_iteration += 1
        loss, _, gradient_norm = agent.learn_from_batch(batch)[:3]
        agent.loss.add_sample(loss)
        agent.unclipped_grads.add_sample(gradient_norm)
        self.update_targets_if_due()
        return float(loss)

    def _sample(self, updates: int) -> Batch:
        agent = self._agent
        if agent.sequences is None:
            batch = agent.memory.sample(updates * self.batch_size)
        else:
            batch = agent.sequences.sample(agent.memory, updates)
        return batch if agent.pre_network_filter.is_empty else self.filtered(batch)

    def columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """Columns of a batch for the learner: the agent's, or those of sequences where it replays such."""
        agent = self._agent
        columns = agent.learning_columns(batch)
        if agent.sequences is None:
            return columns
        return agent.sequences.columns(batch, columns, list(agent.recurrent_state))

    def filtered(self, batch: Batch) -> Batch:
        """The batch as networks see it, whatever learns from it afterwards. The filters' statistics take in its states,
        if ``update_pre_network_filters_state_on_train`` says so."""
        filters = self._agent.pre_network_filter
        if filters.is_empty:
            return batch
        update = self._agent.ap.algorithm.update_pre_network_filters_state_on_train
        filtered = Batch(batch)
        filtered.state_columns = filters.filter_columns(batch.state_columns, update)
        filtered.next_state_columns = filters.filter_columns(batch.next_state_columns, False)
        filtered.reward_column = filters.filter_rewards(batch.reward_column, update)
        return filtered

    def _update_on(self, batch: Batch, count: int, with_targets: bool) -> LearningResult:
        """``count`` updates in one call, and the targets' if they are due. The learner's step is compiled for as many
        updates as a phase makes; one that is cut, by targets or by the end of the run, makes fewer with the same.

        :param with_targets: the call updates the targets too, after each update or after those that the clock says
        """
        agent, clock, first = self._agent, self._agent.clock, self._agent.training_iteration
        compiled = 1 if count == 1 else self._updates_per_call
        columns = agent.learning_columns(batch) if agent.sequences is None else self.columns(batch)
        if compiled != count:
            columns = pad(columns, len(columns["weights"]) // count * compiled)
        rate = agent.ap.algorithm.rate_for_copying_weights_to_target
        target_rates = dict.fromkeys(self._targets, rate) if with_targets else {}
        due = clock.target_updates(compiled, first) if with_targets else None
        result = self.update(
            columns,
            batch=batch,
            num_updates=compiled,
            count=count,
            target_rates=target_rates,
            moving={} if due is None else dict.fromkeys(self._targets, due),
        )
        agent.training_iteration += count
        self.update_targets_if_due(are_updated=with_targets)
        return result

    @property
    def _updates_per_call(self) -> int:
        agent = self._agent
        return (
            agent.most_updates_per_call or agent.ap.algorithm.num_consecutive_training_steps * agent.clock.most_phases
        )

    def update(self, columns: dict[str, np.ndarray], batch: Batch | None = None, **how: Any) -> LearningResult:
        """Call the learner and record losses, gradients, and what the rule wants logged.

        :param columns: [N, ...] by name; see ``Learner.train``, which ``how`` is for
        :param batch: the batch that they are of, whose priorities change if the memory has any
        """
        result = self._train(columns, batch, self._agent.training_iteration + 1, **how)
        self._agent.loss.add_sample(LazyArray(lambda: sum(result.losses.values())))
        self._agent.unclipped_grads.add_sample(LazyArray(lambda: self._gradient_norms(result)))
        return result

    def _gradient_norms(self, result: LearningResult) -> np.ndarray:
        """[K], of the network that the most updates teach; of several such, the first."""
        periods = self._agent.learning_periods
        return result.gradient_norms[min(result.gradient_norms, key=lambda name: periods.get(name, 1))]

    def update_alone(
        self, name: str, columns: dict[str, np.ndarray], signal_names: Sequence[str], **how: Any
    ) -> LearningResult:
        """As ``update``, with one network learning. The compiled call is the same for each.

        :param name: the network that learns; the others stay bit for bit as they are
        :param signal_names: the signals of the rule that tell of it, which alone are logged
        :return: its losses, gradients and signals
        """
        agent = self._agent
        how["learning"] = {one: [one == name] * how.get("num_updates", 1) for one in self._networks}
        result = self.learner.train(columns, agent.learning_scalars(), **how).part(name, signal_names)
        agent.books.add_learning(result)
        agent.loss.add_sample(LazyArray(lambda: result.losses[name]))
        agent.unclipped_grads.add_sample(LazyArray(lambda: result.gradient_norms[name]))
        return result

    def update_once(self, columns: dict[str, np.ndarray], batch: Batch | None = None) -> Outcome:
        """Make a single update, for a ``learn_from_batch`` whose caller records the loss and the gradients."""
        result = self._train(padded(columns), batch, self._agent.training_iteration)
        losses = [float(loss[0]) for loss in result.losses.values()]
        return sum(losses), losses, float(next(iter(result.gradient_norms.values()))[0])

    def _train(self, columns: dict[str, np.ndarray], batch: Batch | None, first: int, **how: Any) -> LearningResult:
        """:param first: the number of the first of these updates, from 1 on"""
        agent = self._agent
        if agent.learning_periods:
            numbers = range(first, first + how.get("num_updates", 1))
            how["learning"] = {
                name: [number % period == 0 for number in numbers]
                for name, period in agent.learning_periods.items()
                if period > 1
            }
        learner = self._shared_learner or self.learner
        result = learner.train(columns, agent.learning_scalars(), **how)
        if result.signal_names:
            agent.books.add_learning(result)
        if batch is not None and self._has_priorities and result.errors is not None:
            agent.memory.update_priorities(batch.info("idx"), np.abs(result.errors).ravel()[: len(batch)])
        return result

    def update_targets_if_due(self, are_updated: bool = False) -> None:
        """Update the target networks, if there are any and it is time.

        :param are_updated: the last update of the networks has updated them already, if it was time
        """
        agent = self._agent
        if self._targets and agent.clock.targets_due(agent.total_steps_counter, agent.training_iteration):
            if not are_updated:
                self.update_targets()
            agent.books.note_target_update()

    def update_targets(self) -> None:
        """Move each target network towards its online network: Polyak averaging, or a copy at a rate of 1."""
        for name in self._targets:
            self._networks[name].update_target_network(self._agent.ap.algorithm.rate_for_copying_weights_to_target)

    def close_phase(self) -> None:
        """Record the learning rate, and the updates so far."""
        network = next(iter(self._networks.values()))
        self._agent.books.note_learning_rate(network.optimizer.learning_rate(self._agent.training_iteration))


def columns_of(batch: Batch, input_names: Iterable[str], discount: float) -> dict[str, np.ndarray]:
    """The columns of a batch that most update rules need; see ``Learner.train``.

    :param input_names: the observations that the networks or the rule look at
    :param discount: of one step; the columns' ``discounts`` are of as many steps as each transition has
    """
    columns = {f"states/{name}": batch.state_columns[name] for name in input_names}
    columns |= {f"next_states/{name}": batch.next_state_columns[name] for name in input_names}
    columns["actions"] = batch.action_column
    columns["rewards"] = batch.reward_column
    over_steps = discount if batch.n_step_column is None else discount**batch.n_step_column
    columns["discounts"] = (over_steps * (1.0 - batch.terminated_column)).astype(np.float32)
    weights = batch.info_columns.get("weight")
    columns["weights"] = np.ones(len(batch.reward_column), np.float32) if weights is None else weights
    return columns
