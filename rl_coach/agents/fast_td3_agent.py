"""FastTD3: TD3 for many copies of a simulator, with large batches and critics that predict distributions (Seo et al.
2025, "FastTD3: Simple, Fast, and Capable Reinforcement Learning for Humanoid Control").
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.actors import Actors
from rl_coach.agents.core.requirements import ACTOR, HeadRequirement, NetworkRequirement
from rl_coach.agents.ddpg_agent import DDPGAgent
from rl_coach.agents.deterministic_policy import ACTOR_WITHOUT_TARGET, DeterministicPolicyNetworkParameters
from rl_coach.agents.rules.fast_td3 import fast_td3_stages
from rl_coach.agents.td3_agent import TD3Agent, TD3AlgorithmParameters
from rl_coach.architectures.compiled_loop import CompiledAgent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DDPGActorHeadParameters, SACQHeadParameters
from rl_coach.architectures.initializers import Orthogonal
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import Stages
from rl_coach.base_parameters import AgentParameters, EmbedderScheme, MiddlewareScheme
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.schedules import LevelsOfCopies
from rl_coach.utilities.requirements import number, whole


class FastTD3CriticNetworkParameters(DeterministicPolicyNetworkParameters):
    """Critics of 1024, 512 and 256 units without common layers. Each predicts a distribution of returns."""

    def __init__(self) -> None:
        super().__init__(batch_size=32768, learning_rate=0.0003)
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=EmbedderScheme.Empty)}
        self.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
        self.heads_parameters = [SACQHeadParameters(activation_function="relu", layers_sizes=(1024, 512, 256))]
        self.initial_weights = "kaiming_uniform"


class FastTD3ActorNetworkParameters(DeterministicPolicyNetworkParameters):
    """A policy of 512, 256 and 128 units. It has no target network."""

    def __init__(self) -> None:
        super().__init__(batch_size=32768, learning_rate=0.0003)
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(scheme=[Dense(512)])}
        self.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(256), Dense(128)])
        self.heads_parameters = [DDPGActorHeadParameters(batchnorm=False)]
        self.heads_parameters[0].initial_weights = Orthogonal(gain=0.01)
        self.initial_weights = "kaiming_uniform"
        self.create_target_network = False


class FastTD3AlgorithmParameters(TD3AlgorithmParameters):
    """Hyperparameters of FastTD3, with the settings of the paper.

    :ivar num_consecutive_playing_steps: steps in all copies together between two training phases; set it to the number
        of copies, so that each copy plays one step
    :ivar num_consecutive_training_steps: number of updates after these steps
    :ivar v_min: the smallest return of the critics' distributions; ``v_max`` is the largest return, and ``atoms`` the
        number of returns
    """

    constraints = {**ACTOR_WITHOUT_TARGET, "v_min": number(), "v_max": number(), "atoms": whole(2)}

    def __init__(self) -> None:
        super().__init__()
        self.num_consecutive_playing_steps = EnvironmentSteps(128)
        self.num_consecutive_training_steps = 2
        self.act_for_full_episodes = False
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
        self.rate_for_copying_weights_to_target = 0.1
        self.policy_noise = 0.001
        self.noise_clipping = 0.5
        self.v_min = -250.0
        self.v_max = 250.0
        self.atoms = 101
        self.update_pre_network_filters_state_on_train = True
        self.update_pre_network_filters_state_on_inference = False

    def unmet(self) -> Iterator[str]:
        if self.v_min >= self.v_max:
            yield f"v_min is {self.v_min}; it must be below v_max, which is {self.v_max}"


class FastTD3AgentParameters(AgentParameters):
    """FastTD3 with normalised observations. The noise has a different standard deviation in each copy of the
    environment."""

    path = "rl_coach.agents.fast_td3_agent:FastTD3Agent"
    algorithm: FastTD3AlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=FastTD3AlgorithmParameters(),
            exploration=AdditiveNoiseParameters(),
            memory=ExperienceReplayParameters(),
            networks={"actor": FastTD3ActorNetworkParameters(), "critic": FastTD3CriticNetworkParameters()},
        )
        # fractions of the action range: 0.001 and 0.4 for actions from -1 to 1
        self.exploration.noise_schedule = LevelsOfCopies(0.0005, 0.2)
        self.exploration.evaluation_noise = 0.0
        self.pre_network_filter = InputFilter()
        self.pre_network_filter.add_observation_filter(
            "observation", "normalize", ObservationNormalizationFilter(name="normalize")
        )


class FastTD3Agent(TD3Agent):
    """TD3 for many copies, with large batches. Its critics predict distributions of returns."""

    network_requirements = {
        "actor": NetworkRequirement((ACTOR,)),
        "critic": NetworkRequirement(
            (HeadRequirement("SACQHeadParameters", ("log_distribution", "quantiles")),), has_target=True
        ),
    }

    def unmet_by_settings(self) -> Iterator[str]:
        yield from DDPGAgent.unmet_by_settings(self)  # its critics have no streams, which TD3 checks

    def play_in_copies(self, count: int) -> Actors:
        self._spread_noise(count)
        return super().play_in_copies(count)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        self._spread_noise(num_copies)
        return super().make_compiled(random, num_copies)

    def _spread_noise(self, count: int) -> None:
        schedule = getattr(self.exploration_policy, "noise_schedule", None)
        if isinstance(schedule, LevelsOfCopies):
            schedule.copies = count

    def create_networks(self) -> dict[str, NetworkWrapper]:
        algorithm = self.ap.algorithm
        for head in self.ap.network_wrappers["critic"].heads_parameters:
            if isinstance(head, SACQHeadParameters):  # other heads, such as a user's own head, keep their settings
                head.num_critics, head.num_atoms = algorithm.num_q_networks, algorithm.atoms
                head.v_min, head.v_max = algorithm.v_min, algorithm.v_max
        return super().create_networks()

    def make_update_rule(self) -> Stages:
        algorithm = self.ap.algorithm
        support = np.linspace(algorithm.v_min, algorithm.v_max, algorithm.atoms).astype(np.float32)
        return fast_td3_stages(
            algorithm.policy_noise, algorithm.noise_clipping, self.spaces.action, algorithm.action_penalty, support
        )
