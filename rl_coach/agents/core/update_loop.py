"""Learning of an agent: a batch becomes columns, the learner updates the networks, and the results are recorded."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Mapping, Protocol, Sequence, SupportsFloat

import numpy as np

from rl_coach.agents.core.batches import BatchSource, DataSetPass
from rl_coach.agents.core.clock import TrainingClock
from rl_coach.agents.core.finite_watch import FiniteWatch
from rl_coach.agents.core.learning import PhaseLearning, Phases
from rl_coach.agents.core.signals import Signals
from rl_coach.architectures.learner import Learner, LearningResult
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.padding import pad, padded
from rl_coach.architectures.shared_networks import GROUPS, SharedLearner, SharedNetworks
from rl_coach.architectures.update import Stages, TrainingStep, UpdateRule, stages_of
from rl_coach.base_parameters import AlgorithmParameters, NetworkParameters
from rl_coach.core_types import Batch
from rl_coach.filters.filter import InputFilter
from rl_coach.utils import LazyArray

Outcome = tuple[float, list[float], float]
"""The loss, each network's loss, and the gradients' norm before clipping."""


class Algorithm(Protocol):
    """An algorithm, as far as updates need it. An agent is one by its methods."""

    @property
    def learns_by_rule(self) -> bool:
        """True if it learns by its update rule, False if by its ``learn_from_batch``."""

    @property
    def learns_one_by_one(self) -> bool:
        """True if the data of an update depends on the networks, so that each is a call of its own."""

    @property
    def decides_on_targets(self) -> bool:
        """True if it says itself after each update whether target networks are updated, not the clock."""

    def targets_due(self) -> bool:
        """True if the target networks are to be updated now; asked only if it ``decides_on_targets``."""

    def make_update_rule(self) -> UpdateRule | Stages:
        """The update as a pure function, or as one for each of its stages; see ``rl_coach.architectures.update``."""

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns of a batch that the update rule needs; see ``Learner.train``."""

    def learning_scalars(self) -> dict[str, float]:
        """Numbers that change between updates and that the rule needs."""

    def learn_from_batch(self, batch: Batch) -> Any:
        """Make an update without the rule. :return: an ``Outcome``"""


@dataclass(frozen=True)
class UpdateSettings:
    """Settings of an algorithm's updates.

    :param parameters: of each network by name
    :param algorithm: hyperparameters, read at each use
    :param acting: the networks that choose actions; None for all
    :param mask_name: the observation that says which actions are possible, None for none
    :param batch_network: the network whose ``batch_size`` counts; None for the first
    :param most_per_call: a phase of more updates makes several compiled calls; None for no bound
    :param periods: by network, the number of updates of which one teaches it; 1 for those that it leaves out
    """

    parameters: dict[str, NetworkParameters]
    algorithm: AlgorithmParameters
    acting: Sequence[str] | None = None
    mask_name: str | None = None
    batch_network: str | None = None
    most_per_call: int | None = None
    periods: Mapping[str, int] = field(default_factory=dict)


def transition_columns(batch: Batch, names: Sequence[str], discount: float) -> dict[str, np.ndarray]:
    """The columns of transitions that update rules need, [B, ...] by name; see ``Learner.train``.

    :param names: the observations that the networks see
    :param discount: of one step; a transition of n steps has its power
    """
    columns = {f"states/{name}": batch.state_columns[name] for name in names}
    columns |= {f"next_states/{name}": batch.next_state_columns[name] for name in names}
    columns["actions"] = batch.action_column
    columns["rewards"] = batch.reward_column
    over_steps = discount if batch.n_step_column is None else discount**batch.n_step_column
    columns["discounts"] = (over_steps * (1.0 - batch.terminated_column)).astype(np.float32)
    weights = batch.info_columns.get("weight")
    columns["weights"] = np.ones(len(batch.reward_column), np.float32) if weights is None else weights
    return columns


class UpdateLoop:
    """Updates networks.

    Batches come from a source (``learn``), or the caller brings columns (``update``). The numbers that updates give are
    not read here, so that the environment can step while they are computed.

    :param rules: the algorithm
    :param networks: by name
    :param batches: where batches come from
    :param clock: counts the updates, and says when targets are updated
    :param signals: where results are recorded
    :param filters: what a batch passes before the networks see it
    :param watch: explains a loss that is not finite

    :ivar batch_network: the network whose ``batch_size`` counts, for all of them
    :ivar latest: the result of the last single update; None before it, and for a ``learn_from_batch`` of the user's
    """

    def __init__(
        self,
        rules: Algorithm,
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
        # where there are no networks nothing is learned
        self._batch_parameters: Any = settings.parameters.get(self.batch_network)
        self._targets = [name for name, network in networks.items() if network.has_target]
        self._shared_learner: SharedLearner | None = None
        self.latest: LearningResult | None = None

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
        networks, settings = self._networks, self._settings
        functions = {name: network.state.function for name, network in networks.items()}
        stages = stages_of(self._rules.make_update_rule(), networks)
        on_batches = tuple(replace(stage, rule=self._batches.rule(stage.rule)) for stage in stages)
        step = TrainingStep(functions, settings.parameters, on_batches)
        states = {name: network.state for name, network in networks.items()}
        acting = tuple(networks) if settings.acting is None else tuple(settings.acting)
        learner = next(iter(networks.values())).framework.make_learner(step, states, acting)
        learner.explain = self._watch.explain
        return learner

    @cached_property
    def learning_periods(self) -> dict[str, int]:
        """For each network that not all updates teach, the number of updates of which the last one does."""
        return {name: period for name, period in self._settings.periods.items() if period > 1}

    @cached_property
    def input_names(self) -> list[str]:
        """The observations that the networks or the rule look at, the action mask among them."""
        names = dict.fromkeys(name for network in self._networks.values() for name in network.input_names)
        names.pop("action", None)
        if self._settings.mask_name is not None:
            names[self._settings.mask_name] = None
        return list(names)

    @property
    def batch_size(self) -> int:
        """Transitions in one update."""
        return self._batch_parameters.batch_size

    @cached_property
    def _learns_by_rule(self) -> bool:
        """Decided once, at the first update: the compiled step is made for one of both ways."""
        return self._rules.learns_by_rule

    @cached_property
    def _decides_on_targets(self) -> bool:
        return self._rules.decides_on_targets

    @cached_property
    def _draws_together(self) -> bool:
        return self._batches.gives_many_at_once and not self._rules.learns_one_by_one

    @cached_property
    def optimizer(self) -> Any:
        """That of the first network, whose learning rate is recorded."""
        return next(iter(self._networks.values())).optimizer

    def learn(self, updates: int) -> SupportsFloat:
        """Make updates on batches from the source, in calls of as many as can be made together.

        :return: the sum of the losses; reading it waits for the updates
        """
        losses: list[SupportsFloat] = []
        left, most = updates, 1 if updates == 1 else self._most_per_call
        while left:
            count, with_targets = 1, False
            if not self._learns_by_rule:
                losses.append(self.learn_from_batch(self.filtered(self._batches.sample(1, self.batch_size))))
            else:
                if self._draws_together:
                    count = min(left, most)
                    if self._targets and self._decides_on_targets:
                        count = 1
                    elif self._targets:  # which may have to be updated in between
                        count, with_targets = self._clock.updates_before_targets(count)
                losses.append(self._update_on_sample(count, with_targets))
            left -= count
        self.close_phase()
        return losses[0] if len(losses) == 1 else LazyArray(lambda: sum(map(float, losses)))

    @property
    def _most_per_call(self) -> int:
        """Updates that the learner's step is compiled for: those of a phase. More of them make several calls."""
        phase = self._settings.algorithm.num_consecutive_training_steps * self._clock.most_phases
        return self._settings.most_per_call or max(1, phase)

    def learn_from_batch(self, batch: Batch) -> float:
        """Let the algorithm make an update without its rule. :return: the loss"""
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
        """The batch as networks see it, whatever learns from it afterwards.

        :param may_update: the filters' statistics take in its states, if ``update_pre_network_filters_state_on_train``
            says so
        """
        filters = self._filters
        if not (filters.observation_filters or filters.reward_filters):
            return batch
        update = may_update and self._settings.algorithm.update_pre_network_filters_state_on_train
        filtered = copy.copy(batch)
        filtered.state_columns = filters.filter_columns(batch.state_columns, update)
        self._watch.compare(batch.state_columns, filtered.state_columns, "pre-network filter", "of a batch")
        filtered.next_state_columns = filters.filter_columns(batch.next_state_columns, False)
        filtered.reward_column = filters.filter_rewards(batch.reward_column, update)
        return filtered

    def _update_on_sample(self, count: int, with_targets: bool) -> SupportsFloat:
        """Make ``count`` updates in one call on what the source gives, and the targets' if they are due.

        The learner's step is compiled for as many updates as a phase makes; a phase that is cut, by targets or by the
        end of the run, makes fewer of them with the same step, so that nothing is compiled again.

        :param with_targets: the call updates the targets too, after each update or after those that the clock says
        :return: the sum of the losses, which is not read yet
        """
        clock, algorithm = self._clock, self._settings.algorithm
        compiled = 1
        if count != 1:
            compiled = self._most_per_call
        batch = self.filtered(self._batches.sample(count, self._batch_parameters.batch_size))
        columns = self._batches.columns(batch, self._rules.learning_columns(batch))
        if compiled != count:
            columns = pad(columns, len(columns["weights"]) // count * compiled)
        how: dict[str, Any] = {}
        if with_targets:
            how["target_rates"] = dict.fromkeys(self._targets, algorithm.rate_for_copying_weights_to_target)
            due = clock.target_updates(compiled)
            how["moving"] = {} if due is None else dict.fromkeys(self._targets, due)
        result = self.update(columns, batch=batch, num_updates=compiled, count=count, **how)
        clock.updates += count
        self.update_targets_if_due(are_updated=with_targets)
        return LazyArray(lambda: sum(float(loss.sum()) for loss in result.losses.values()))

    def update(
        self, columns: dict[str, np.ndarray], batch: Batch | None = None, is_counted: bool = False, **how: Any
    ) -> LearningResult:
        """Call the learner and record losses, gradients, and what the rule wants logged.

        :param columns: [N, ...] by name; see ``Learner.train``, which ``how`` is for
        :param batch: the batch of the source that they were made of, which is told the errors
        :param is_counted: the caller has counted the update and records its loss and gradients
        """
        if self.learning_periods:
            first = self._clock.updates + (not is_counted)
            numbers = range(first, first + how.get("num_updates", 1))
            how["learning"] = {
                name: [number % period == 0 for number in numbers] for name, period in self.learning_periods.items()
            }
        learner = self._shared_learner or self.learner
        result = learner.train(columns, self._rules.learning_scalars(), **how)
        self.record(result, is_counted)
        if batch is not None and self._batches.wants_errors and result.errors is not None:
            self._batches.take_errors(batch, np.abs(result.errors).ravel()[: len(batch)])
        return result

    def record(self, result: LearningResult, is_counted: bool = False) -> None:
        """Record losses, gradients, and what the rule wants logged.

        :param is_counted: the loss and gradients are recorded by others
        """
        if result.signal_names:
            self._signals.add_learning(result)
        if not is_counted:
            self._signals.loss.add_sample(LazyArray(lambda: sum(result.losses.values())))
            self._signals.gradients.add_sample(LazyArray(lambda: self._gradient_norms(result)))

    def _gradient_norms(self, result: LearningResult) -> np.ndarray:
        """[K], of the network that the most updates teach; of several such, the first."""
        periods = self._settings.periods
        return result.gradient_norms[min(result.gradient_norms, key=lambda name: periods.get(name, 1))]

    def update_alone(
        self, name: str, columns: dict[str, np.ndarray], signal_names: Sequence[str], **how: Any
    ) -> LearningResult:
        """As ``update``, with one network learning. The compiled call is the same for each network of a stage.

        :param name: the network that learns; the others stay bit for bit as they are
        :param signal_names: the signals of the rule that tell of it, which alone are logged
        :return: its losses, gradients and signals
        """
        stages = tuple(stage for stage in self.learner.step.stages if name in stage.networks)
        taught = [one for stage in stages for one in stage.networks]
        if taught != [name]:
            how["learning"] = {one: [one == name] * how.get("num_updates", 1) for one in self._networks}
        result = self.learner.train(columns, self._rules.learning_scalars(), stages=stages, **how)
        result = result.part(name, signal_names)
        self._signals.add_learning(result)
        self._signals.loss.add_sample(LazyArray(lambda: result.losses[name]))
        self._signals.gradients.add_sample(LazyArray(lambda: result.gradient_norms[name]))
        return result

    def update_once(self, columns: dict[str, np.ndarray], batch: Batch | None = None) -> Outcome:
        """Make a single update, for a ``learn_from_batch`` whose caller records the loss and the gradients."""
        self.latest = result = self.update(padded(columns), batch, is_counted=True)
        losses = [float(loss[0]) for loss in result.losses.values()]
        return sum(losses), losses, float(next(iter(result.gradient_norms.values()))[0])

    def update_targets_if_due(self, are_updated: bool = False) -> None:
        """Update the target networks, if there are any and it is time.

        :param are_updated: the last update of the networks has updated them already, if it was time
        """
        is_time = self._rules.targets_due if self._decides_on_targets else self._clock.targets_due
        if self._targets and is_time():
            if not are_updated:
                self.update_targets()
            self._signals.note_target_update()

    def note_target_update(self) -> None:
        """Record that target networks have been updated, if there are any."""
        if self._targets:
            self._signals.note_target_update()

    def update_targets(self) -> None:
        """Move each target network towards its online network: Polyak averaging, or a copy at a rate of 1."""
        for name in self._targets:
            self._networks[name].update_target_network(self._settings.algorithm.rate_for_copying_weights_to_target)

    def close_phase(self) -> None:
        """Record the learning rate; and the updates so far, if the phase follows an episode that has just ended."""
        updates = self._clock.updates
        self._signals.learning_rate.add_sample(self.optimizer.learning_rate(updates))
        if self._signals.is_row_open:
            self._signals.note_updates(updates)


class BatchLearning(PhaseLearning):
    """Learns from batches.

    :param update_loop: makes the updates
    :param batches: where they get their batches
    """

    def __init__(self, phases: Phases, update_loop: UpdateLoop, batches: BatchSource):
        super().__init__(phases)
        self._update_loop, self._batches = update_loop, batches

    def is_due(self) -> bool:
        return self._phases.clock.is_due(self._phases.is_in_episode) and self._batches.has_rows

    def learn(self, updates_left: int | None = None) -> SupportsFloat:
        return self._update_loop.learn(self._phases.start(updates_left))


class DataSetLearning(PhaseLearning):
    """Learns from passes over a data set, however much is played: a call makes ``UPDATES`` updates, or fewer where an
    epoch is completed.

    :param data_set: where updates get their batches
    """

    UPDATES = 32  # enough to make a call cheap beside them, few enough for a display that moves

    def __init__(self, phases: Phases, update_loop: UpdateLoop, data_set: DataSetPass):
        super().__init__(phases)
        self._update_loop, self._data_set = update_loop, data_set

    def is_due(self) -> bool:
        return self._data_set.has_rows

    def learn(self, updates_left: int | None = None) -> SupportsFloat:
        updates = min(self.UPDATES, self._data_set.updates_left_in_epoch(self._update_loop.batch_size))
        return self._update_loop.learn(updates if updates_left is None else min(updates, updates_left))
