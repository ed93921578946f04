"""Proximal policy optimisation with a clipped ratio (Schulman et al. 2017)."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgent
from rl_coach.agents.agent import Agent
from rl_coach.agents.policy_optimization_agent import PolicyGradientRescaler
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import PPOHeadParameters, VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.packing import padded
from rl_coach.architectures.policies import entropy, log_probability, mask_of, masked
from rl_coach.architectures.update import LearningBatch, NetworkView, Update, UpdateRule, assert_rank, weighted_mean
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, NetworkParameters
from rl_coach.core_types import Batch, EnvironmentSteps, RunPhase, StateType
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import CategoricalParameters
from rl_coach.logger import screen
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.runs.event_lines import log_epochs
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import BoxActionSpace, DiscreteActionSpace
from rl_coach.utilities.constraints import FLAG, FRACTION, Constraint, member, number, schedule, whole
from rl_coach.utils import CoachError

_NAMES_IN_LINES = {
    "Surrogate loss": "Policy Loss",
    "KL divergence": "Kullback-Leibler Divergence",
    "Entropy": "Entropy",
}


class ClippedPPONetworkParameters(NetworkParameters):
    """A critic and a policy that share nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function="tanh")}
        self.middleware_parameters = FCMiddlewareParameters(activation_function="tanh")
        self.heads_parameters = [VHeadParameters(), PPOHeadParameters()]
        self.batch_size = 64
        self.optimizer_type = "Adam"
        self.clip_gradients = None
        self.use_separate_networks_per_head = True
        self.async_training = False
        self.l2_regularization = 0
        self.create_target_network = True
        self.shared_optimizer = True
        self.scale_down_gradients_by_number_of_workers_for_sync_training = True


class ClippedPPOAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of PPO.

    :ivar policy_gradient_rescaler: ``GAE``, or ``A_VALUE`` for returns minus values
    :ivar gae_lambda: 0 is one-step advantages, 1 is Monte Carlo
    :ivar clip_likelihood_ratio_using_epsilon: the ratio counts within 1 - epsilon and 1 + epsilon
    :ivar estimate_state_value_using_gae: the critic learns lambda-returns instead of discounted returns
    :ivar beta_entropy: the weight of the policy's entropy; 0 does not keep it random
    :ivar num_consecutive_playing_steps: steps or episodes played with one policy
    :ivar optimization_epochs: number of times that each transition is learned from
    :ivar clipping_decay_schedule: multiplies epsilon; one step for each environment step
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "policy_gradient_rescaler": member(PolicyGradientRescaler),
        "beta_entropy": number(),
        "gae_lambda": FRACTION,
        "estimate_state_value_using_gae": FLAG,
        "num_episodes_in_experience_replay": whole(1),
        "use_kl_regularization": FLAG,
        "clip_likelihood_ratio_using_epsilon": number(above=0),
        "optimization_epochs": whole(1),
        "clipping_decay_schedule": schedule(number(0)),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_episodes_in_experience_replay = 1000000
        self.policy_gradient_rescaler = PolicyGradientRescaler.GAE
        self.gae_lambda = 0.95
        self.use_kl_regularization = False
        self.clip_likelihood_ratio_using_epsilon = 0.2
        self.estimate_state_value_using_gae = True
        self.beta_entropy = 0.01
        self.num_consecutive_playing_steps = EnvironmentSteps(2048)
        self.optimization_epochs = 10
        self.normalization_stats = None
        self.clipping_decay_schedule = ConstantSchedule(1)
        self.act_for_full_episodes = True
        self.update_pre_network_filters_state_on_train = True
        self.update_pre_network_filters_state_on_inference = False


class ClippedPPOAgentParameters(AgentParameters):
    """PPO that samples from the policy."""

    def __init__(self) -> None:
        super().__init__(
            algorithm=ClippedPPOAlgorithmParameters(),
            exploration={
                DiscreteActionSpace: CategoricalParameters(),
                BoxActionSpace: AdditiveNoiseParameters(),
            },
            memory=EpisodicExperienceReplayParameters(),
            networks={"main": ClippedPPONetworkParameters()},
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.clipped_ppo_agent:ClippedPPOAgent"


def clipped_ppo_rule(
    epsilon: float, beta_entropy: float, value_weight: float, policy_weight: float, mask_name: str | None
) -> UpdateRule:
    """value_weight (V - R)^2 - policy_weight E[min(r A, clip(r, 1 - e, 1 + e) A)] - beta H(pi), the equations 7 and 9
    of Schulman et al. 2017.

    ``extra`` holds ``advantages``, ``returns`` and ``behaviour_log_probs``, each [B]; ``scalars['clipping_decay']``
    multiplies epsilon.
    """

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        names = ("advantages", "returns", "behaviour_log_probs")
        assert_rank(1, weights=batch.weights, **{name: batch.extra.get(name) for name in names})
        value, policy = networks["main"].online(batch.states)
        policy = masked(ops, policy, mask_of(batch, mask_name))
        log_ratio = log_probability(ops, policy, batch.actions) - batch.extra["behaviour_log_probs"]
        ratio, limit = ops.exp(log_ratio), epsilon * batch.scalars["clipping_decay"]
        advantages = batch.extra["advantages"]
        clipped_ratio = ops.clip(ratio, 1.0 - limit, 1.0 + limit)
        objective = ops.minimum(ratio * advantages, clipped_ratio * advantages)
        errors = value["v"] - batch.extra["returns"]
        policy_loss = -weighted_mean(ops, objective, batch.weights)
        value_loss = weighted_mean(ops, errors * errors, batch.weights)
        mean_entropy = weighted_mean(ops, entropy(ops, policy), batch.weights)
        # an estimate of the divergence that is never negative (Schulman 2020, "Approximating KL divergence", k3)
        divergence = weighted_mean(ops, ratio - 1.0 - log_ratio, batch.weights)
        is_clipped = ops.cast(ops.abs(ratio - 1.0) > limit, "float32")
        signals = {
            "Policy Loss": policy_loss,
            "Value Loss": value_loss,
            "Entropy": mean_entropy,
            "Kullback-Leibler Divergence": divergence,
            "PPO Clipped Share": weighted_mean(ops, is_clipped, batch.weights),
        }
        loss = value_weight * value_loss + policy_weight * policy_loss - beta_entropy * mean_entropy
        return Update({"main": loss}, signals=signals)

    return rule


class ClippedPPOAgent(ActorCriticAgent):
    """Plays for a while with one policy, then makes several epochs of minibatch updates on what it played."""

    learns_from_sequences = False

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        if agent_parameters.algorithm.use_kl_regularization:
            raise CoachError("ClippedPPO has no KL regularisation: set use_kl_regularization to False")
        self.books.use_for_rule("Entropy", self.entropy)

    @property
    def is_on_policy(self) -> bool:
        return True

    def reason_not_to_split(self) -> str | None:
        return Agent.reason_not_to_split(self)

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        value, policy = self.ap.network_wrappers["main"].heads_parameters
        return clipped_ppo_rule(
            algorithm.clip_likelihood_ratio_using_epsilon, algorithm.beta_entropy,
            value.loss_weight, policy.loss_weight, self.spaces.action_mask_name,
        )  # fmt: skip

    def count_played(self, steps: int) -> None:
        super().count_played(steps)
        if self._phase is RunPhase.TRAIN:
            self.ap.algorithm.clipping_decay_schedule.advance(steps)

    def learning_scalars(self) -> dict[str, float]:
        return {"clipping_decay": self.ap.algorithm.clipping_decay_schedule.current_value}

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
        return self.train_network(columns, self.ap.algorithm.optimization_epochs)

    def fill_advantages(self, batch: Batch) -> dict[str, np.ndarray]:
        """The columns to learn from: advantages, the critic's targets and the log probability of what was done.

        :param batch: whole episodes, one after the other
        """
        states, names = batch.state_columns, self.networks["main"].input_names
        ends = np.flatnonzero(batch.game_overs())
        network = self.networks["main"].online_network
        value, *policy = network.predict(batch.states(names))
        bootstrap = network.predict({n: batch.next_state_columns[n][ends] for n in names})[0]
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
        columns["extra/behaviour_log_probs"] = self._log_probs(policy, batch, states)
        return columns

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

    def train_network(self, columns: dict[str, np.ndarray], epochs: int) -> float:
        """All minibatches of all epochs in one compiled call.

        :param columns: [N, ...] by name
        :return: the mean loss
        """
        rows, size = len(columns["weights"]), self.update_loop.batch_size
        per_epoch = -(-rows // size)
        indices = np.full((epochs, per_epoch * size), -1, np.int32)
        for epoch in range(epochs):
            indices[epoch, :rows] = self.rng.permutation(rows)
        columns = padded(columns)
        compiled = np.full((epochs * -(-len(columns["weights"]) // size), size), -1, np.int32)
        compiled[: epochs * per_epoch] = indices.reshape(-1, size)
        result = self.update_loop.update(
            columns,
            indices=compiled,
            num_updates=len(compiled),
            count=epochs * per_epoch,
            training_step=self.training_iteration,
        )
        if screen.is_read_by_programs:
            signals = {line_name: result.signals[name] for line_name, name in _NAMES_IN_LINES.items()}
            log_epochs(epochs, signals, self.networks["main"].learning_rate_at(self.training_iteration))
        self.training_iteration += 1
        self.update_loop.close_phase()
        return float(result.losses["main"].mean())

    def post_training_commands(self) -> None:
        """Forget what was played with the old policy: it is of no more use."""
        self.memory.clean()

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "clipping_decay": self.ap.algorithm.clipping_decay_schedule.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.ap.algorithm.clipping_decay_schedule.set_state(state["clipping_decay"])
