"""Updates of an agent: batches become columns, the learner updates the networks, and the results are recorded."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Mapping, Sequence, SupportsFloat

import numpy as np

from rl_coach.agents.core.batches import BatchSource
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.finite_watch import FiniteWatch
from rl_coach.agents.core.learning import PhaseLearning
from rl_coach.agents.core.signals import Signals
from rl_coach.architectures.learner import Learner, LearningResult
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.padding import pad, padded
from rl_coach.architectures.shared_networks import GROUPS, SharedLearner, SharedNetworks
from rl_coach.architectures.update import TrainingStep, stages_of
from rl_coach.base_parameters import AlgorithmParameters, NetworkParameters
from rl_coach.core_types import Batch
from rl_coach.filters.filter import InputFilter
from rl_coach.utils import LazyArray

Outcome = tuple[float, list[float], float]
"""The loss, each network's loss, and the gradients' norm before clipping."""


@dataclass(frozen=True)
class UpdateSettings:
    """Settings of an algorithm's updates.

    :param parameters: the parameters of each network by name
    :param algorithm: hyperparameters, read at each use
    :param acting: the names of the networks that choose actions; None for all
    :param mask_name: the observation that masks impossible actions; None if all are possible
    :param batch_network: the network with the ``batch_size`` of all updates; None for the first network
    :param most_per_call: the largest number of updates in a compiled call; None for a whole phase
    :param periods: a dict from a network to a period p: only every p-th update changes the network. Networks without an
        entry have the period 1
    """

    parameters: dict[str, NetworkParameters]
    algorithm: AlgorithmParameters
    acting: Sequence[str] | None = None
    mask_name: str | None = None
    batch_network: str | None = None
    most_per_call: int | None = None
    periods: Mapping[str, int] = field(default_factory=dict)


class UpdateLoop:
    """Updates networks.

    ``learn`` takes batches from a source, ``update`` takes columns from the caller. Neither waits for the results
    of an update, so the environment can step while the device computes. The exception is a source that needs errors or
    values, such as prioritized replay.

    :param rules: the agent, or an object with ``hooks`` and with those methods of ``Agent`` that follow
        ``learns_by_rule``, up to ``learning_scalars``
    :param clock: counts the updates, and says when targets are updated
    :param signals: records the results
    :param filters: the pre-network filters, applied to each batch
    :param watch: explains a loss that is not finite

    :ivar batch_network: the network with the ``batch_size`` of all updates
    :ivar latest: the result of the last ``update_once``; None if there was none, as with a user's ``learn_from_batch``
    """

    def __init__(
        self,
        rules: Any,
        networks: dict[str, NetworkWrapper],
        batches: BatchSource,
        clock: TrainingClock,
        signals: Signals,
        filters: InputFilter,
        watch: FiniteWatch,
        settings: UpdateSettings,
    ):
        self._rules = rules
        self._networks = networks
        self._batches = batches
        self._clock = clock
        self._signals = signals
        self._filters = filters
        self._watch = watch
        self._settings = settings
        self.batch_network = settings.batch_network or next(iter(settings.parameters), "")
        # None for an agent without networks, which learns nothing
        self._batch_parameters: Any = settings.parameters.get(self.batch_network)
        self._targets = [name for name, network in networks.items() if network.has_target]
        self._shared_learner: SharedLearner | None = None
        self.latest: LearningResult | None = None

    def share(self, shared: SharedNetworks) -> None:
        """Share weights and updates with other processes from now on."""
        self._shared_learner = SharedLearner(self.learner, shared)
        self._shared_learner.take_newest(GROUPS)

    def take_newest(self) -> None:
        """Copy the newest shared weights, if weights are shared."""
        if self._shared_learner is not None:
            self._shared_learner.take_newest()

    def take_all(self) -> None:
        """Copy the newest shared weights, optimizer slots and buffers, if they are shared. A checkpoint needs all."""
        if self._shared_learner is not None:
            self._shared_learner.take_newest(GROUPS)

    @cached_property
    def learner(self) -> Learner:
        """The learner that trains the networks with the update rule."""
        networks, settings = self._networks, self._settings
        functions = {name: network.state.function for name, network in networks.items()}
        stages = self._batches.stages(stages_of(self._rules.make_update_rule(), networks))
        step = TrainingStep(functions, settings.parameters, stages)
        states = {name: network.state for name, network in networks.items()}
        acting = tuple(networks) if settings.acting is None else tuple(settings.acting)
        learner = next(iter(networks.values())).framework.make_learner(step, states, acting)
        learner.explain = self._watch.explain
        return learner

    @cached_property
    def learning_periods(self) -> dict[str, int]:
        """A dict from a network to its period p > 1: only every p-th update changes the network."""
        return {name: period for name, period in self._settings.periods.items() if period > 1}

    @cached_property
    def input_names(self) -> list[str]:
        """The observations that the networks or the rule read, including the action mask."""
        names = dict.fromkeys(name for network in self._networks.values() for name in network.input_names)
        # some critics have the action as an input, but it is not an observation
        names.pop("action", None)
        if self._settings.mask_name is not None:
            names[self._settings.mask_name] = None
        return list(names)

    @property
    def batch_size(self) -> int:
        """The number of transitions in one update."""
        return self._batch_parameters.batch_size

    @cached_property
    def _learns_by_rule(self) -> bool:
        """True if updates use the rule. Decided once at the first update, because the compiled step depends on it."""
        return self._rules.learns_by_rule

    @cached_property
    def _decides_on_targets(self) -> bool:
        return self._rules.decides_on_targets

    @cached_property
    def _draws_together(self) -> bool:
        return self._batches.gives_many_at_once and not self._rules.learns_one_by_one

    @cached_property
    def optimizer(self) -> Any:
        """The optimizer of the first network. Its learning rate is recorded."""
        return next(iter(self._networks.values())).optimizer

    def learn(self, updates: int) -> SupportsFloat:
        """Make updates on batches from the source, with as many updates in a compiled call as possible.

        :return: the sum of the losses; its conversion to float waits for the updates
        """
        losses: list[SupportsFloat] = []
        left, most = updates, 1 if updates == 1 else self._most_per_call
        while left:
            count, with_targets = 1, False
            if not self._learns_by_rule:
                # one update at a time: each may predict with the networks that the last one has changed
                losses.append(self.learn_from_batch(self.filtered(self._batches.sample(1, self.batch_size))))
            else:
                if self._draws_together:
                    count = min(left, most)
                    if self._targets and self._decides_on_targets:
                        # the agent decides after each update
                        count = 1
                    elif self._targets:  # a call must end where targets are due, unless it updates them too
                        count, with_targets = self._clock.updates_before_targets(count)
                losses.append(self._update_on_sample(count, with_targets))
            left -= count
        self.close_phase()
        # Not a float: that would wait for the device, while the environment could step.
        return losses[0] if len(losses) == 1 else LazyArray(lambda: sum(map(float, losses)))

    @property
    def _most_per_call(self) -> int:
        """The number of updates that one compiled call can make: by default those of a training phase. More updates
        need several calls."""
        phase = self._settings.algorithm.num_consecutive_training_steps * self._clock.most_phases
        return self._settings.most_per_call or max(1, phase)

    def learn_from_batch(self, batch: Batch) -> float:
        """Make an update with the algorithm's ``learn_from_batch`` instead of its rule. :return: the loss"""
        # counted first: update_once, which the algorithm calls, reads the number of this update
        self._clock.updates += 1
        loss, _, gradient_norm = self._rules.learn_from_batch(batch)[:3]
        self._signals.loss.add_sample(loss)
        self._signals.gradients.add_sample(gradient_norm)
        self.update_targets_if_due()
        return float(loss)

    def columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a batch from the source, for the learner."""
        return self._batches.columns(batch, self._rules.learning_columns(batch))

    def filtered(self, batch: Batch, may_update: bool = True) -> Batch:
        """A copy of the batch after the pre-network filters.

        :param may_update: True: add the states of the batch to the filters' statistics, if
            ``update_pre_network_filters_state_on_train`` is True
        """
        filters = self._filters
        if not (filters.observation_filters or filters.reward_filters):
            return batch
        update = may_update and self._settings.algorithm.update_pre_network_filters_state_on_train
        filtered = copy.copy(batch)
        filtered.state_columns = filters.filter_columns(batch.state_columns, update)
        self._watch.compare(batch.state_columns, filtered.state_columns, "pre-network filter", "of a batch")
        # only states enter the statistics, because nearly each next state is also the state of another step
        filtered.next_state_columns = filters.filter_columns(batch.next_state_columns, False)
        filtered.reward_column = filters.filter_rewards(batch.reward_column, update)
        return filtered

    def _update_on_sample(self, count: int, with_targets: bool) -> SupportsFloat:
        """Make ``count`` updates in one call on batches from the source, and update the targets if they are due.

        :param with_targets: True if the call also updates the targets, after those updates that
            ``TrainingClock.target_updates`` selects
        :return: the sum of the losses, which the device may still compute
        """
        clock, algorithm = self._clock, self._settings.algorithm
        # a single update has a compiled step without a loop, because XLA's convolutions are slow in loops
        compiled = 1 if count == 1 else self._most_per_call
        batch = self.filtered(self._batches.sample(count, self.batch_size))
        columns = self.columns(batch)
        if compiled != count:
            # the compiled shape holds all updates of a phase; the padding is never read, because count ends the loop
            columns = pad(columns, len(columns["weights"]) // count * compiled)
        how: dict[str, Any] = {}
        if with_targets:
            how["target_rates"] = dict.fromkeys(self._targets, algorithm.rate_for_copying_weights_to_target)
            # for all updates that the step is compiled for: the masks need this length
            due = clock.target_updates(compiled)
            how["moving"] = {} if due is None else dict.fromkeys(self._targets, due)
        result = self.update(columns, batch=batch, num_updates=compiled, count=count, **how)
        # before the targets, because the clock measures their period in counted updates
        clock.updates += count
        self.update_targets_if_due(are_updated=with_targets)
        return LazyArray(lambda: sum(float(loss.sum()) for loss in result.losses.values()))

    def update(
        self, columns: dict[str, np.ndarray], batch: Batch | None = None, is_counted: bool = False, **how: Any
    ) -> LearningResult:
        """Call the learner, and record losses, gradients and the signals of the rule.

        :param columns: [N, ...] by name; see ``Learner.train``
        :param batch: the batch of the source behind the columns; the source receives its errors and values. None for
            other columns
        :param is_counted: True if the caller has counted the update and records its loss and gradients
        :param how: more arguments for ``Learner.train``
        """
        if self.learning_periods:
            # Updates are numbered from 1. If the caller has counted this update, the clock has its number already.
            first = self._clock.updates + (not is_counted)
            numbers = range(first, first + how.get("num_updates", 1))
            how["learning"] = {
                name: [number % period == 0 for number in numbers] for name, period in self.learning_periods.items()
            }
        learner = self._shared_learner or self.learner
        scalars = self._rules.learning_scalars() if "learning_scalars" in self._rules.hooks else None
        result = learner.train(columns, scalars, **how)
        self.record(result, is_counted)
        if batch is not None and self._batches.wants_errors and result.errors is not None:
            # a padded call has more errors than the batch has rows
            # This waits for the update: the errors decide which rows the next batch has.
            self._batches.take_errors(batch, np.abs(result.errors).ravel()[: len(batch)])
        if batch is not None and self._batches.wants_values:
            self._batches.take_values(batch, result.values)
        return result

    def record(self, result: LearningResult, is_counted: bool = False) -> None:
        """Record losses, gradients and the signals of the rule.

        :param is_counted: True if the caller records the loss and the gradients
        """
        if result.signal_names:
            self._signals.add_learning(result)
        if not is_counted:
            self._signals.loss.add_sample(LazyArray(lambda: sum(result.losses.values())))
            self._signals.gradients.add_sample(LazyArray(lambda: self._gradient_norms(result)))

    def _gradient_norms(self, result: LearningResult) -> np.ndarray:
        """[K], the gradient norms of the network that learns in the most updates, or of the first such network."""
        periods = self._settings.periods
        return result.gradient_norms[min(result.gradient_norms, key=lambda name: periods.get(name, 1))]

    def update_alone(
        self, name: str, columns: dict[str, np.ndarray], signal_names: Sequence[str], **how: Any
    ) -> LearningResult:
        """Make updates of one network. The compiled call is the same for each network of a stage.

        :param name: the network that learns; the other networks do not change by a single bit
        :param columns: [N, ...] by name; see ``Learner.train``
        :param signal_names: the signals of the rule about this network; only these are recorded
        :param how: more arguments for ``Learner.train``
        :return: the losses, gradients and signals of the network
        """
        stages = tuple(stage for stage in self.learner.step.stages if name in stage.networks)
        taught = [one for stage in stages for one in stage.networks]
        # A stage of several networks is compiled once. The masks choose the network, so no other step is compiled for
        # it.
        if taught != [name]:
            how["learning"] = {one: [one == name] * how.get("num_updates", 1) for one in self._networks}
        result = self.learner.train(columns, self._rules.learning_scalars(), stages=stages, **how)
        result = result.part(name, signal_names)
        self._signals.add_learning(result)
        self._signals.loss.add_sample(LazyArray(lambda: result.losses[name]))
        self._signals.gradients.add_sample(LazyArray(lambda: result.gradient_norms[name]))
        return result

    def update_once(self, columns: dict[str, np.ndarray], batch: Batch | None = None) -> Outcome:
        """Make a single update within a ``learn_from_batch``. The caller of ``learn_from_batch`` records the loss and
        the gradients."""
        if not self._batches.gives_sequences:
            columns = padded(columns)
        self.latest = result = self.update(columns, batch, is_counted=True)
        losses = [float(loss[0]) for loss in result.losses.values()]
        return sum(losses), losses, float(next(iter(result.gradient_norms.values()))[0])

    def update_targets_if_due(self, are_updated: bool = False) -> None:
        """Update the target networks, if they are due, and record it.

        :param are_updated: True if the last call has already updated them, and this only has to be recorded
        """
        is_time = self._rules.targets_due if self._decides_on_targets else self._clock.targets_due
        # In this order: the answer True starts the next period.
        if self._targets and is_time():
            if not are_updated:
                self.update_targets()
            self._signals.note_target_update()

    def note_target_update(self) -> None:
        """Record an update of the target networks; nothing without target networks."""
        if self._targets:
            self._signals.note_target_update()

    def update_targets(self) -> None:
        """Move each target network towards its online network by Polyak averaging. A rate of 1 copies the weights."""
        for name in self._targets:
            self._networks[name].update_target_network(self._settings.algorithm.rate_for_copying_weights_to_target)

    def close_phase(self) -> None:
        """Record the learning rate, and the number of updates so far if the row of an episode is open."""
        updates = self._clock.updates
        self._signals.learning_rate.add_sample(self.optimizer.learning_rate(updates))
        if self._signals.is_row_open:
            self._signals.note_updates(updates)


class BatchLearning(PhaseLearning):
    """Learns in phases from batches of the agent's source."""

    def is_due(self) -> bool:
        return self._agent.clock.is_due(self._is_in_episode) and self._agent.batches.has_rows

    def learn(self, updates_left: int | None = None) -> SupportsFloat:
        loss: SupportsFloat = self._agent.update_loop.learn(self.start(updates_left))
        return loss


class DataSetLearning(PhaseLearning):
    """Learns from passes over a data set, independent of the steps played. A call makes ``UPDATES`` updates, or fewer
    at the end of an epoch."""

    UPDATES = 32  # large enough for a small cost of a call, small enough for a display that moves

    def is_due(self) -> bool:
        return bool(self._agent.batches.has_rows)

    def learn(self, updates_left: int | None = None) -> SupportsFloat:
        loop = self._agent.update_loop
        updates = min(self.UPDATES, self._agent.batches.updates_left_in_epoch(loop.batch_size))
        loss: SupportsFloat = loop.learn(updates if updates_left is None else min(updates, updates_left))
        return loss
