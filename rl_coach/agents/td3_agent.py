"""Twin delayed DDPG (Fujimoto et al. 2018, "Addressing function approximation error in actor-critic methods")."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.compiled_replay import CompiledReplay
from rl_coach.agents.core.learning import PhaseLearning
from rl_coach.agents.core.requirements import ACTOR, HeadRequirement, NetworkRequirement
from rl_coach.agents.ddpg_agent import DDPGActorNetworkParameters, DDPGAgent, DDPGCriticNetworkParameters
from rl_coach.agents.deterministic_policy import DeterministicPolicyAlgorithmParameters
from rl_coach.agents.rules.deterministic_policy import td3_stages
from rl_coach.architectures.compiled_loop import CompiledAgent
from rl_coach.architectures.head_parameters import TD3VHeadParameters
from rl_coach.architectures.update import Stages
from rl_coach.base_parameters import AgentParameters
from rl_coach.core_types import Batch, TrainingSteps
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.utilities.requirements import number, whole


class TD3CriticNetworkParameters(DDPGCriticNetworkParameters):
    """Parameters of several critics Q(s, a) with shared embedders and separate middlewares.

    :param num_q_networks: number of critics; the same number as the algorithm's ``num_q_networks``
    """

    def __init__(self, num_q_networks: int) -> None:
        super().__init__()
        self.batch_size = 100
        self.middleware_parameters.num_streams = num_q_networks
        self.heads_parameters = [TD3VHeadParameters()]


class TD3ActorNetworkParameters(DDPGActorNetworkParameters):
    """The policy network."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_size = 100
        self.learning_rate = 0.001


class TD3AlgorithmParameters(DeterministicPolicyAlgorithmParameters):
    """Hyperparameters of TD3.

    :ivar rate_for_copying_weights_to_target: at each of their updates, the target networks move towards the newest
        weights by this share
    :ivar act_for_full_episodes: True: after each episode, make one update for each of its steps. False: make
        ``num_consecutive_training_steps`` updates after every ``num_consecutive_playing_steps``
    :ivar update_policy_every_x_episode_steps: the policy learns in every x-th update of the critics
    :ivar policy_noise: standard deviation of the noise on the target's actions, in units of the action; 0 for none
    :ivar noise_clipping: the noise on the target's actions is clipped to plus and minus this number
    :ivar num_q_networks: number of critics; targets use their smallest value
    """

    constraints = {
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

    path = "rl_coach.agents.td3_agent:TD3Agent"
    algorithm: TD3AlgorithmParameters

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


TWIN_CRITICS = HeadRequirement("TD3VHeadParameters", ("critics", "q", "first"))
UPDATES_OF_A_CALL = 50


class TD3Agent(DDPGAgent):
    """DDPG with several critics, noise on the target's actions, and fewer updates of the actor."""

    network_requirements = {
        "actor": NetworkRequirement((ACTOR,), has_target=True),
        "critic": NetworkRequirement((TWIN_CRITICS,), has_target=True),
    }
    supports_curiosity = True
    compiled_explorations = (AdditiveNoiseParameters, TD3AgentExplorationParameters)

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        count = self.ap.algorithm.num_q_networks
        streams = getattr(self.ap.network_wrappers["critic"].middleware_parameters, "num_streams", count)
        if streams != count:
            yield (
                f"num_q_networks of agent '{self.name}' is {count}, and its critic has {streams} streams: "
                f"set num_streams of the critic's middleware_parameters to {count}"
            )

    def init_environment_dependent_modules(self) -> None:
        self.learning_periods = {"actor": self.ap.algorithm.update_policy_every_x_episode_steps}
        # episodes differ in length, but each compiled call makes a fixed number of updates
        if self.ap.algorithm.act_for_full_episodes:
            self.most_updates_per_call = UPDATES_OF_A_CALL
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> Stages:
        algorithm, critic = self.ap.algorithm, self.ap.network_wrappers["critic"]
        return td3_stages(
            algorithm.policy_noise, algorithm.noise_clipping, self.spaces.action, algorithm.action_penalty,
            algorithm.clip_critic_targets, critic.replace_mse_with_huber_loss,
        )  # fmt: skip

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["extra/noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        return columns

    def updates_of_full_episodes(self, steps: int) -> int:
        """Number of updates after episodes with ``steps`` steps in total."""
        return steps

    def make_learning(self) -> PhaseLearning:
        learning: Any = super().make_learning()
        if self.ap.algorithm.act_for_full_episodes:
            learning.start = self._start_after_episodes
        return learning

    def _start_after_episodes(self, updates_left: int | None) -> int:
        # the steps of the episodes that have just arrived, or have just ended in all copies of the environment
        ended = self.episode.steps * (1 if self.parallel is None else self.parallel.count)
        arrived = self.clock.steps_at_once if self.is_played_elsewhere else ended
        # no updates are made for the steps of heatup
        steps = min(self.clock.steps - self.clock.last_phase, arrived)
        updates = self.updates_of_full_episodes(steps)
        if not steps:  # the user's program has asked for this phase
            updates = self.ap.algorithm.num_consecutive_training_steps
        self.clock.start_phases()
        return updates if updates_left is None else min(updates, updates_left)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        def columns(key: Any, drawn: dict[str, Any]) -> dict[str, Any]:
            return {**self.compiled_columns(drawn), "extra/noise": random.normal(key, drawn["actions"].shape)}

        return CompiledReplay(self, random, num_copies, self.compiled_exploration(random, num_copies), columns)
