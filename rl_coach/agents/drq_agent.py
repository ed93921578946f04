"""DrQ-v2 (Yarats et al. 2021, "Mastering visual continuous control: improved data-augmented reinforcement
learning")."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.requirements import ACTOR, NetworkRequirement
from rl_coach.agents.ddpg_agent import DDPGAgent
from rl_coach.agents.deterministic_policy import (
    ACTOR_WITHOUT_TARGET,
    DeterministicPolicyAlgorithmParameters,
    DeterministicPolicyNetworkParameters,
)
from rl_coach.agents.rules.drq import drq_stages
from rl_coach.agents.td3_agent import TWIN_CRITICS
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DDPGActorHeadParameters, TD3VHeadParameters
from rl_coach.architectures.initializers import Orthogonal
from rl_coach.architectures.layers import BatchnormActivationDropout, Conv2d, Dense, Detached, Flatten, Layer, LayerNorm
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import Stages
from rl_coach.base_parameters import AgentParameters, EmbedderScheme
from rl_coach.core_types import Batch, EnvironmentSteps, TrainingSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from rl_coach.spaces import PlanarMapsObservationSpace
from rl_coach.utilities.requirements import number, whole

ENCODER = (Conv2d(32, 3, 2), Conv2d(32, 3, 1), Conv2d(32, 3, 1), Conv2d(32, 3, 1))


def trunk(units: int) -> list[Layer]:
    """The layers after the encoder: they compute ``units`` features from -1 to 1."""
    return [Flatten(), Dense(units), LayerNorm(), BatchnormActivationDropout(activation_function="tanh")]


class DrQCriticNetworkParameters(DeterministicPolicyNetworkParameters):
    """The critic network: the encoder, and two critics Q(s, a) with a common trunk."""

    def __init__(self) -> None:
        super().__init__(batch_size=256, learning_rate=0.0001)
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(scheme=[*ENCODER, *trunk(50)]),
            "action": InputEmbedderParameters(scheme=EmbedderScheme.Empty),
        }
        self.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(1024), Dense(1024)], num_streams=2)
        self.heads_parameters = [TD3VHeadParameters(initializer=None)]
        self.initial_weights = Orthogonal()


class DrQActorNetworkParameters(DeterministicPolicyNetworkParameters):
    """The actor network. It uses the critic's encoder without training the encoder, and has a separate trunk and
    separate layers."""

    def __init__(self) -> None:
        super().__init__(batch_size=256, learning_rate=0.0001)
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(scheme=[*ENCODER, Detached(), *trunk(50)])
        }
        self.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(1024), Dense(1024)])
        self.heads_parameters = [DDPGActorHeadParameters(batchnorm=False)]
        self.initial_weights = Orthogonal()
        self.create_target_network = False


class DrQAlgorithmParameters(DeterministicPolicyAlgorithmParameters):
    """Hyperparameters of DrQ-v2.

    :ivar rate_for_copying_weights_to_target: at each update, the target critic moves towards the newest weights by this
        share. The target critic has no separate encoder: it uses the newest encoder
    :ivar image_shift: in updates, images are shifted by up to this number of pixels in each direction; 0 for no shift
    :ivar noise_clipping: in updates, the noise on the policy's actions is clipped to plus and minus this number, in
        units of half of the action range
    """

    constraints = {**ACTOR_WITHOUT_TARGET, "image_shift": whole(0), "noise_clipping": number(0)}

    def __init__(self) -> None:
        super().__init__()
        self.n_step = 3
        self.num_consecutive_playing_steps = EnvironmentSteps(2)
        self.num_steps_between_copying_online_weights_to_target = TrainingSteps(1)
        self.rate_for_copying_weights_to_target = 0.01
        self.image_shift = 4
        self.noise_clipping = 0.3


class DrQExplorationParameters(AdditiveNoiseParameters):
    """Gaussian noise. Its standard deviation falls from half of the action's range to a twentieth of the range."""

    def __init__(self) -> None:
        super().__init__()
        self.noise_schedule = LinearSchedule(0.5, 0.05, 100_000)
        self.evaluation_noise = 0.0


class DrQv2AgentParameters(AgentParameters):
    """DrQ-v2 with decaying noise."""

    algorithm_names = ("DrQv2", "DrQ")
    path = "rl_coach.agents.drq_agent:DrQv2Agent"
    algorithm: DrQAlgorithmParameters

    def __init__(self) -> None:
        super().__init__(
            algorithm=DrQAlgorithmParameters(),
            exploration=DrQExplorationParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={"actor": DrQActorNetworkParameters(), "critic": DrQCriticNetworkParameters()},
        )


class DrQv2Agent(DDPGAgent):
    """DDPG that learns from randomly shifted images. Its actor uses the critic's convolutions."""

    network_requirements = {
        "actor": NetworkRequirement((ACTOR,)),
        "critic": NetworkRequirement((TWIN_CRITICS,), has_target=True),
    }

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not hasattr(self.ap.exploration, "noise_schedule"):
            yield (
                f"agent '{self.name}' uses the exploration noise in its updates: set exploration to "
                f"DrQExplorationParameters()"
            )
        if not self._image_names:
            yield f"agent '{self.name}' learns from images, but no input of its networks is an image: use another agent"

    @property
    def _image_names(self) -> list[str]:
        embedded = self.ap.network_wrappers["critic"].input_embedders_parameters
        spaces = self.spaces.state.sub_spaces
        images = [name for name, one in spaces.items() if isinstance(one, PlanarMapsObservationSpace)]
        return [name for name in images if name in embedded and spaces[name].num_dimensions == 3]

    def make_update_rule(self) -> Stages:
        is_share = getattr(self.ap.exploration, "noise_as_percentage_from_action_space", True)
        return drq_stages(self._image_names, self.ap.algorithm.noise_clipping, self.spaces.action, is_share)

    def learning_scalars(self) -> dict[str, float]:
        policy: Any = self.exploration_policy
        return {"noise": float(policy.noise_schedule.current_value)}

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns, most = super().learning_columns(batch), self.ap.algorithm.image_shift
        for name in ("noise", "next_noise"):
            columns[f"extra/{name}"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        for name in ("shifts", "next_shifts"):
            shape = (len(columns["actions"]), 2)
            columns[f"extra/{name}"] = self.rng.integers(-most, most, shape, endpoint=True).astype(np.float32)
        return columns
