"""Trust region policy optimisation (Schulman et al. 2015)."""

from __future__ import annotations

import numpy as np

from rl_coach.agents.policy_optimization_agent import AdvantageAlgorithmParameters
from rl_coach.agents.proximal_policy import ACTOR_AND_CRITIC, SeparateNetworksAgent
from rl_coach.agents.rules.trust_region import divergence_rule, surrogate_rule, value_rule
from rl_coach.architectures.head_parameters import PPOHeadParameters, VHeadParameters
from rl_coach.architectures.network_parameters import FullyConnectedParameters
from rl_coach.architectures.padding import padded_length
from rl_coach.architectures.trust_region import TrustRegion
from rl_coach.architectures.update import Stage, Stages
from rl_coach.base_parameters import AgentParameters, Frameworks
from rl_coach.core_types import EnvironmentSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.categorical import categorical_or
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import FRACTION, number, whole


class TRPOCriticNetworkParameters(FullyConnectedParameters):
    """The critic network. Adam trains it on minibatches."""

    def __init__(self) -> None:
        super().__init__(VHeadParameters(), activation_function="tanh")
        self.learning_rate = 0.001
        self.batch_size = 128


class TRPOActorNetworkParameters(FullyConnectedParameters):
    """Parameters of the policy network. Optimizer, learning rate and batch size have no effect: the trust region
    determines the update, which uses all steps since the last training phase.
    """

    def __init__(self) -> None:
        super().__init__(PPOHeadParameters(), activation_function="tanh")
        self.optimizer_type = "SGD"  # keeps no values for each weight


class TRPOAlgorithmParameters(AdvantageAlgorithmParameters):
    """Hyperparameters of TRPO.

    :ivar num_consecutive_playing_steps: steps or episodes played with one policy
    :ivar max_kl_divergence: the largest mean divergence, in nats, of the new policy from the policy that played
    :ivar conjugate_gradient_iterations: number of iterations to solve F x = g, with the Fisher matrix F and the
        gradient g. 0 keeps the policy unchanged; with one iteration for each weight, the solution is exact
    :ivar conjugate_gradient_damping: added to the diagonal of F; a large number turns x towards the plain gradient
    :ivar line_search_shortening: factor between the length of a tried step and of the next tried step, below 1
    :ivar line_search_attempts: largest number of tried steps; if all fail, the policy does not change
    :ivar value_epochs: number of the critic's passes over the transitions of a training phase
    """

    frameworks = (Frameworks.jax, Frameworks.tensorflow, Frameworks.torch)  # MXNet has no second derivatives
    constraints = {
        "max_kl_divergence": number(above=0),
        "conjugate_gradient_iterations": whole(0),
        "conjugate_gradient_damping": number(0),
        "line_search_shortening": FRACTION,
        "line_search_attempts": whole(1),
        "value_epochs": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_consecutive_playing_steps = EnvironmentSteps(2048)
        self.max_kl_divergence = 0.01
        self.conjugate_gradient_iterations = 15
        self.conjugate_gradient_damping = 0.1
        self.line_search_shortening = 0.8
        self.line_search_attempts = 10
        self.value_epochs = 10
        self.act_for_full_episodes = True


class TRPOAgentParameters(AgentParameters):
    """TRPO that samples from the policy."""

    path = "rl_coach.agents.trpo_agent:TRPOAgent"
    algorithm: TRPOAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=TRPOAlgorithmParameters(),
            exploration=categorical_or(AdditiveNoiseParameters()),
            memory=EpisodicExperienceReplayParameters(),
            networks={"critic": TRPOCriticNetworkParameters(), "actor": TRPOActorNetworkParameters()},
        )


class TRPOAgent(SeparateNetworksAgent):
    """Makes the largest update of the policy that keeps its divergence within a limit."""

    network_requirements = ACTOR_AND_CRITIC
    batch_network = "critic"

    def make_update_rule(self) -> Stages:
        algorithm, mask = self.ap.algorithm, self.spaces.action_mask_name
        region = TrustRegion(
            divergence_rule(mask),
            algorithm.max_kl_divergence,
            algorithm.conjugate_gradient_iterations,
            algorithm.conjugate_gradient_damping,
            algorithm.line_search_shortening,
            algorithm.line_search_attempts,
        )
        return Stage(("actor",), surrogate_rule(mask), move=region), Stage(("critic",), value_rule)

    def learn_from_played(self, columns: dict[str, np.ndarray]) -> float:
        signals = ["Policy Loss", "Entropy", *TrustRegion.signal_names]
        everything = padded_length(len(columns["weights"]))
        loss = self.learning.make_epochs(columns, 1, size=everything, name="actor", signal_names=signals)
        epochs = self.ap.algorithm.value_epochs
        self.learning.make_epochs(columns, epochs, name="critic", signal_names=["Value Loss"])
        return loss
