"""Measurement of novelty by random network distillation (Burda et al. 2018), and intrinsic rewards from it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Iterator, Mapping

import numpy as np

from rl_coach.agents.core.batches import BatchSource
from rl_coach.agents.core.overrides import is_replaced
from rl_coach.agents.curiosity import RNDParameters
from rl_coach.agents.rules.curiosity import CONSTANT, INTRINSIC_REWARD, NOVEL, PREDICTOR, curious_rule, predictor_rule
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import Stage, Stages
from rl_coach.core_types import Batch, Transition
from rl_coach.filters.filter import InputFilter
from rl_coach.spaces import SpacesDefinition
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats
from rl_coach.utils import CoachError, Signal

PREDICTOR_STAGE = Stage((PREDICTOR,), predictor_rule)
"""The update of the predictor."""
_STEPS = 128  # of a rollout in the paper
Columns = Mapping[str, np.ndarray]


class Novelty:
    """The novelty of observations: the prediction error of a network that learns the output of a constant network.

    :param networks: a dict with the networks ``predictor`` and ``constant``
    :param spaces: the spaces of observations after the filters

    :ivar names: the names of the observations whose novelty is measured
    :ivar observations: statistics of each observation; both networks see it normalized and clipped to -5 and 5
    :ivar returns: statistics of the discounted sums of novelty; novelty is divided by the standard deviation of these
        sums
    """

    def __init__(self, networks: Mapping[str, NetworkWrapper], spaces: SpacesDefinition):
        self._predictor, self._constant = networks[PREDICTOR], networks[CONSTANT]
        self.names = self._predictor.input_names
        self.observations = {name: NumpySharedRunningStats(name, epsilon=1e-8) for name in self.names}
        for name, statistics in self.observations.items():
            statistics.set_params(tuple(map(int, spaces.state[name].shape)), clip_values=(-5, 5))
        self.returns = NumpySharedRunningStats("intrinsic returns", epsilon=1e-8)
        self._latest: dict[int, float] = {}

    def inputs(self, states: Columns) -> dict[str, np.ndarray]:
        """[B, ...] float32 by name, observations normalized for both networks."""
        return {name: statistics.normalize(states[name]) for name, statistics in self.observations.items()}

    def of(self, inputs: Columns) -> np.ndarray:
        """The novelty [B]: mean squared error of the predictor. :param inputs: the result of ``inputs``"""
        known, predicted = (one.online_network.predict(dict(inputs)) for one in (self._constant, self._predictor))
        return np.mean(np.square(known - predicted), axis=1)

    def add_observations(self, states: Columns) -> None:
        """Add observations [B, ...] to the statistics."""
        for name, statistics in self.observations.items():
            statistics.push_val(states[name])

    def add_novelty(self, novelty: np.ndarray, actors: np.ndarray, discount: float) -> None:
        """Add steps to the statistics of returns. The return of an actor continues over the ends of episodes.

        :param novelty: [T] in order of time
        :param actors: [T] int, the actor of each step
        """
        returns = np.zeros((len(novelty), 1))
        for row, (actor, reward) in enumerate(zip(actors.tolist(), novelty.tolist())):
            self._latest[actor] = returns[row, 0] = self._latest.get(actor, 0.0) * discount + reward
        self.returns.push_val(returns)

    @property
    def scale(self) -> float:
        """1 / the standard deviation of the discounted sums of novelty."""
        return 1.0 / float(self.returns.std[0])

    def get_state(self) -> dict[str, Any]:
        """The statistics. The state does not include the agent's networks."""
        latest = np.array([self._latest.get(actor, 0.0) for actor in range(1 + max(self._latest, default=-1))])
        observations = {name: one.get_state() for name, one in self.observations.items()}
        return {"observations": observations, "returns": self.returns.get_state(), "latest": latest}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that ``get_state`` returned."""
        for name, one in self.observations.items():
            one.set_state(state["observations"][name])
        self.returns.set_state(state["returns"])
        self._latest = dict(enumerate(state["latest"].tolist()))


class Curiosity(Novelty):
    """Intrinsic rewards of an agent. A ``Curiosity`` receives each step that is played for training, and updates its
    statistics after every 128 steps.

    :param networks: a dict with the networks ``predictor`` and ``constant``
    :param spaces: the spaces of observations after the filters
    :param filters: the pre-network filter
    :param rng: draws the rows that the predictor learns from
    :param signal: records intrinsic rewards
    """

    def __init__(
        self, parameters: RNDParameters, networks: Mapping[str, NetworkWrapper], spaces: SpacesDefinition,
        filters: InputFilter, rng: np.random.Generator, signal: Signal,
    ):  # fmt: skip
        super().__init__(networks, spaces)
        self.parameters = parameters
        self._filters, self._rng, self._signal = filters, rng, signal
        self._seen: list[tuple[dict[str, np.ndarray], np.ndarray]] = []
        self._num_seen = 0

    def see(self, next_states: Columns, actors: np.ndarray) -> None:
        """Receive a step of some actors.

        :param next_states: [K, ...] by name; the arrays must not change afterwards
        :param actors: [K] int
        """
        self._seen.append(({name: next_states[name] for name in self.names}, actors))
        self._num_seen += len(actors)
        if self._num_seen >= _STEPS:
            self._take_seen()

    def see_one(self, transition: Transition, actor: int) -> None:
        """Receive a step of one actor."""
        state: Any = transition.next_state
        self.see({name: np.asarray(state[name])[None] for name in self.names}, np.array([actor]))

    def _take_seen(self) -> None:
        states, actors = self._joined()
        states = self._filters.filter_columns(states, False)
        self.add_observations(states)
        self.add_novelty(self.of(self.inputs(states)), actors, self.parameters.intrinsic_discount)
        self._seen, self._num_seen = [], 0

    def _joined(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        # with the memory layout of a checkpoint's arrays: sums over another layout differ in the last bit
        states = {name: np.ascontiguousarray(np.concatenate([s[name] for s, _ in self._seen])) for name in self.names}
        return states, np.concatenate([actors for _, actors in self._seen])

    def columns(self, next_states: Columns) -> dict[str, np.ndarray]:
        """The columns of ``predictor_rule``. :param next_states: [B, ...] by name, after the filters"""
        # the first update may come before 128 steps: without statistics, rewards have no scale
        if not self.returns.n and self._seen:
            self._take_seen()
        columns = {f"extra/{NOVEL}{name}": column for name, column in self.inputs(next_states).items()}
        rows, share = len(next(iter(columns.values()))), self.parameters.update_proportion
        taught = np.ones(rows) if share == 1 else self._rng.random(rows) < share
        return {**columns, "extra/teaches_predictor": taught.astype(np.float32)}

    def rewards(self, columns: Columns) -> np.ndarray:
        """[B], intrinsic rewards. :param columns: the result of ``columns``"""
        prefix = f"extra/{NOVEL}"
        rewards = self.of({name: columns[prefix + name] for name in self.names}) * self.scale
        self._signal.add_sample(rewards)
        return rewards

    def get_state(self) -> dict[str, Any]:
        states, actors = self._joined() if self._seen else ({}, np.zeros(0, int))
        return {**super().get_state(), "seen": {"states": states, "actors": actors}}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        seen = state["seen"]
        self._num_seen = len(seen["actors"])
        self._seen = [(seen["states"], seen["actors"])] if self._num_seen else []


class CuriousBatches(BatchSource):
    """Batches of another source, with intrinsic rewards added in the update rule.

    :param source: gives single transitions
    """

    def __init__(self, source: BatchSource, curiosity: Curiosity):
        self._source, self._curiosity = source, curiosity
        self.gives_many_at_once, self.wants_errors = source.gives_many_at_once, source.wants_errors

    @property
    def has_rows(self) -> bool:
        return self._source.has_rows

    def sample(self, updates: int, batch_size: int) -> Batch:
        return self._source.sample(updates, batch_size)

    def take_errors(self, batch: Batch, errors: np.ndarray) -> None:
        self._source.take_errors(batch, errors)

    def seed(self, seed: Any) -> None:
        self._source.seed(seed)

    def get_state(self) -> dict[str, Any]:
        return self._source.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        self._source.set_state(state)

    def columns(self, batch: Batch, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        own = self._curiosity.columns(batch.next_state_columns)
        own["extra/novelty_scale"] = np.full(len(batch), self._curiosity.scale, np.float32)
        return self._source.columns(batch, {**columns, **own})

    def stages(self, stages: Stages) -> Stages:
        coefficient, own = self._curiosity.parameters.coefficient, {PREDICTOR, CONSTANT}
        curious = [
            replace(
                stage,
                networks=tuple(name for name in stage.networks if name not in own),
                rule=curious_rule(stage.rule, coefficient),
            )
            for stage in stages
        ]
        # the predictor learns last: rewards are its errors from before the update
        return self._source.stages((*curious, PREDICTOR_STAGE))


def add_networks(agent: Any) -> None:
    """Add the predictor and the constant network to the settings of a curious agent. The agent's other networks choose
    actions."""
    if agent.ap.curiosity is None:
        return
    others = [name for name in agent.ap.network_wrappers if name not in (PREDICTOR, CONSTANT)]
    agent.acting_networks = agent.acting_networks or tuple(others)
    for name in (PREDICTOR, CONSTANT):
        network = agent.ap.network_wrappers[name] = copy.deepcopy(agent.ap.curiosity.network)
        network.heads_parameters[0].is_predictor = name == PREDICTOR


def make_curious(agent: Any) -> None:
    """Add curiosity to an agent, if its parameters ask for it. The agent's networks and source of batches must exist.

    :raises CoachError: if the agent's batches are sequences
    """
    if agent.ap.curiosity is None:
        return
    if agent.is_recurrent and not agent.is_on_policy:
        raise CoachError(
            f"agent '{agent.name}' learns from sequences, and curiosity rewards single transitions: set "
            f"middleware_parameters to FCMiddlewareParameters(), or curiosity to None"
        )
    signal = agent.register_signal(INTRINSIC_REWARD)
    agent.signals.use_for_rule(INTRINSIC_REWARD, signal)
    agent.curiosity = Curiosity(
        agent.ap.curiosity, agent.networks, agent.spaces, agent.pre_network_filter, agent.rng, signal
    )
    if not agent.is_on_policy:
        agent.batches = CuriousBatches(agent.batches, agent.curiosity)


def unmet_by_curiosity(agent: Any) -> Iterator[str]:
    """Reasons why an agent cannot use curiosity, with advice."""
    advice = "set curiosity to None"
    if agent.ap.curiosity is None:
        return
    if not isinstance(agent.ap.curiosity, RNDParameters):
        yield f"curiosity of agent '{agent.name}' is {agent.ap.curiosity!r}: set it to RNDParameters() or None"
    elif agent.ap.is_batch_rl_training:
        yield f"agent '{agent.name}' learns from recorded data, where curiosity has no effect: {advice}"
    elif not agent.supports_curiosity or is_replaced(agent, "supports_curiosity"):
        yield (
            f"agent '{agent.name}' ({type(agent).__name__}) does not learn from the rewards of single steps, so "
            f"curiosity has no effect on it: {advice}, or choose DQN, DDQN, C51, QR-DQN, NAF, DDPG, TD3, SAC or "
            f"ClippedPPO"
        )
    elif agent.ap.algorithm.n_step > 1:
        yield (
            f"algorithm.n_step is {agent.ap.algorithm.n_step}, and curiosity rewards single steps: set it to 1, "
            f"or curiosity to None"
        )
    elif agent.ap.algorithm.in_action_space is not None:
        yield f"another agent sets the goals of agent '{agent.name}', which curiosity does not support: {advice}"
