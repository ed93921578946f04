"""Proximal policy optimisation with an adaptive penalty on the divergence (Schulman et al. 2017, section 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.core.epochs import DIVERGENCE
from rl_coach.agents.policy_optimization_agent import AdvantageAlgorithmParameters
from rl_coach.agents.proximal_policy import ACTOR_AND_CRITIC, SeparateNetworksAgent
from rl_coach.agents.rules.proximal_policy import adapted_coefficient, ppo_rule
from rl_coach.architectures.head_parameters import PPOHeadParameters, VHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import categorical_or
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import FRACTION, flags, number, optional


class PPOCriticNetworkParameters(FullyConnectedParameters):
    """The critic network."""

    def __init__(self) -> None:
        super().__init__(VHeadParameters(), activation_function="tanh")
        self.async_training = True
        self.create_target_network = True
        self.batch_size = 128


class PPOActorNetworkParameters(FullyConnectedParameters):
    """The policy network."""

    def __init__(self) -> None:
        super().__init__(PPOHeadParameters(), activation_function="tanh")
        self.async_training = True
        self.create_target_network = True
        self.batch_size = 128


class PPOAlgorithmParameters(AdvantageAlgorithmParameters):
    """Hyperparameters of PPO with a penalty.

    :ivar target_kl_divergence: the KL divergence, in nats, that a training phase should reach
    :ivar initial_kl_coefficient: the initial weight of the penalty. The weight grows after a phase that changed the
        policy too much, and shrinks after a phase that changed it too little
    :ivar high_kl_penalty_coefficient: weight of a second penalty, the square of the divergence above twice the target;
        0 for no second penalty
    :ivar clip_likelihood_ratio_using_epsilon: the loss clips the probability ratio to 1 - epsilon and 1 + epsilon; None
        does not clip
    :ivar value_targets_mix_fraction: a setting of the L-BFGS optimizer of Coach 1.0.1; it has no effect
    :ivar use_kl_regularization: True: add the penalties on the divergence to the loss
    :ivar beta_entropy: weight of the entropy bonus in the policy's loss; 0 removes the bonus
    :ivar num_consecutive_playing_steps: steps or episodes played with one policy
    """

    constraints = {
        **flags("use_kl_regularization"),
        "target_kl_divergence": number(above=0),
        "initial_kl_coefficient": number(0),
        "high_kl_penalty_coefficient": number(0),
        "clip_likelihood_ratio_using_epsilon": optional(number(above=0)),
        "value_targets_mix_fraction": FRACTION,
        "beta_entropy": number(),
    }

    def __init__(self) -> None:
        super().__init__()
        self.gae_lambda = 0.96
        self.target_kl_divergence = 0.01
        self.initial_kl_coefficient = 1.0
        self.high_kl_penalty_coefficient: float = 1000
        self.clip_likelihood_ratio_using_epsilon: float | None = None
        self.value_targets_mix_fraction = 0.1
        self.use_kl_regularization = True
        self.beta_entropy = 0.01
        self.num_consecutive_playing_steps = EnvironmentSteps(5000)
        self.act_for_full_episodes = True


class PPOAgentParameters(AgentParameters):
    """PPO with a penalty. The agent samples from its policy."""

    algorithm_names = ("AdaptivePPO",)
    path = "rl_coach.agents.ppo_agent:PPOAgent"
    algorithm: PPOAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=PPOAlgorithmParameters(),
            exploration=categorical_or(AdditiveNoiseParameters()),
            memory=EpisodicExperienceReplayParameters(),
            networks={"critic": PPOCriticNetworkParameters(), "actor": PPOActorNetworkParameters()},
        )


_POLICY_EPOCHS, _VALUE_EPOCHS = 10, 1
_POLICY_SIGNALS = ["Policy Loss", "Entropy", DIVERGENCE]


class PPOAgent(SeparateNetworksAgent):
    """PPO with a penalty on the divergence from the policy that played."""

    network_requirements = ACTOR_AND_CRITIC

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.kl_coefficient = float(agent_parameters.algorithm.initial_kl_coefficient)
        self.kl_coefficients = self.register_signal("KL Coefficient")

    def make_update_rule(self) -> UpdateRule:
        algorithm = self.ap.algorithm
        return ppo_rule(
            algorithm.target_kl_divergence,
            algorithm.high_kl_penalty_coefficient if algorithm.use_kl_regularization else None,
            algorithm.beta_entropy,
            self.spaces.action_mask_name,
            algorithm.clip_likelihood_ratio_using_epsilon,
        )

    def learning_scalars(self) -> dict[str, float]:
        return {"kl_coefficient": self.kl_coefficient}

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        self.train_value_network(columns, _VALUE_EPOCHS)
        loss = self.train_policy_network(columns, _POLICY_EPOCHS)
        self.update_kl_coefficient()
        return loss

    def train_value_network(self, dataset: dict[str, np.ndarray], epochs: int) -> float:
        """Train the critic. The policy does not change.

        :param dataset: the columns that ``fill_advantages`` returned
        :return: the mean loss
        """
        return self._train_alone("critic", ["Value Loss"], dataset, epochs)

    def train_policy_network(self, dataset: dict[str, np.ndarray], epochs: int) -> float:
        """Train the policy. The critic does not change. See ``train_value_network`` for the parameters."""
        return self._train_alone("actor", _POLICY_SIGNALS, dataset, epochs)

    def _train_alone(self, name: str, signals: list[str], dataset: dict[str, np.ndarray], epochs: int) -> float:
        most = max(epochs, _POLICY_EPOCHS)  # equal for both networks, so that they share one compiled function
        return self.learning.make_epochs(dataset, epochs, most, name=name, signal_names=signals)

    def concat_state_and_timestep(self, dataset: Batch) -> np.ndarray:
        """[N, D + 1]: each row's observation as D numbers, then the number of the step in its episode, from 0.

        :param dataset: whole episodes, one after the other
        """
        starts = np.append(0, np.flatnonzero(dataset.game_overs())[:-1] + 1)
        lengths = np.diff(np.append(starts, len(dataset)))
        steps = np.arange(len(dataset)) - np.repeat(starts, lengths)
        observations = dataset.state_columns["observation"].reshape(len(dataset), -1)
        return np.column_stack([observations, steps])

    def update_kl_coefficient(self) -> None:
        """Increase the weight of the penalty if the new policy is too far from the policy that played. Decrease it
        if the new policy is too near."""
        target = self.ap.algorithm.target_kl_divergence
        self.kl_coefficient = adapted_coefficient(self.kl_coefficient, self.learning.divergence, target)
        self.kl_coefficients.add_sample(self.kl_coefficient)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "kl_coefficient": self.kl_coefficient}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.kl_coefficient = state["kl_coefficient"]
