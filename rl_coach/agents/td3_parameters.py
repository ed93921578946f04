"""Parameters of TD3."""

from __future__ import annotations

from typing import ClassVar, Mapping

from rl_coach.agents.deterministic_policy import (
    DeterministicPolicyAlgorithmParameters,
    DeterministicPolicyNetworkParameters,
)
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DDPGActorHeadParameters, TD3VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, EmbedderScheme
from rl_coach.core_types import TrainingSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.constraints import Constraint, number, whole


class TD3CriticNetworkParameters(DeterministicPolicyNetworkParameters):
    """Several Q(s, a) on common embedders, each with a middleware of its own.

    :param num_q_networks: number of critics, ``num_q_networks`` of the algorithm
    """

    def __init__(self, num_q_networks: int) -> None:
        super().__init__(batch_size=100, learning_rate=0.001)
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(),
            "action": InputEmbedderParameters(scheme=EmbedderScheme.Shallow),
        }
        self.middleware_parameters = FCMiddlewareParameters(num_streams=num_q_networks)
        self.heads_parameters = [TD3VHeadParameters()]


class TD3ActorNetworkParameters(DeterministicPolicyNetworkParameters):
    """The policy."""

    def __init__(self) -> None:
        super().__init__(batch_size=100, learning_rate=0.001)
        self.input_embedders_parameters = {"observation": InputEmbedderParameters()}
        self.middleware_parameters = FCMiddlewareParameters()
        self.heads_parameters = [DDPGActorHeadParameters(batchnorm=False)]


class TD3AlgorithmParameters(DeterministicPolicyAlgorithmParameters):
    """Hyperparameters of TD3.

    :ivar rate_for_copying_weights_to_target: the targets' share of the newest weights at each of their updates
    :ivar act_for_full_episodes: learn when an episode ends, as many updates as it had steps; otherwise
        ``num_consecutive_training_steps`` after every ``num_consecutive_playing_steps``
    :ivar update_policy_every_x_episode_steps: updates of the critics for each of the policy; 1 learns both alike
    :ivar policy_noise: standard deviation of the noise on the target's actions, in units of the action; 0 for none
    :ivar noise_clipping: that noise stays within plus and minus this
    :ivar num_q_networks: number of critics, of which the smallest value counts
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "update_policy_every_x_episode_steps": whole(1),
        "policy_noise": number(0),
        "noise_clipping": number(0),
        "num_q_networks": whole(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.rate_for_copying_weights_to_target = 0.005
        self.act_for_full_episodes = True
        self.update_policy_every_x_episode_steps = 2
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(
            self.update_policy_every_x_episode_steps
        )
        self.policy_noise = 0.2
        self.noise_clipping = 0.5
        self.num_q_networks = 2


class TD3AgentExplorationParameters(AdditiveNoiseParameters):
    """Gaussian noise in units of the action."""

    def __init__(self) -> None:
        super().__init__()
        self.noise_as_percentage_from_action_space = False


class TD3AgentParameters(AgentParameters):
    """TD3 with Gaussian noise."""

    def __init__(self) -> None:
        algorithm = TD3AlgorithmParameters()
        super().__init__(
            algorithm=algorithm,
            exploration=TD3AgentExplorationParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={
                "actor": TD3ActorNetworkParameters(),
                "critic": TD3CriticNetworkParameters(algorithm.num_q_networks),
            },
        )

    @property
    def path(self) -> str:
        return "rl_coach.agents.td3_agent:TD3Agent"
