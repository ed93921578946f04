"""Deep deterministic policy gradient (Lillicrap et al. 2016, "Continuous control with deep reinforcement learning")."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.compiled_acting import (
    Exploration,
    additive_noise,
    at_level,
    schedule_ahead,
    uniform_at_first,
)
from rl_coach.agents.core.compiled_replay import CompiledReplay, why_replay_is_not_compiled
from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.core.requirements import ACTOR, Q_OF_ACTION, NetworkRequirement
from rl_coach.agents.deterministic_policy import (
    DeterministicPolicyAlgorithmParameters,
    DeterministicPolicyNetworkParameters,
)
from rl_coach.agents.rules.deterministic_policy import NextValue, ddpg_stages, value_of_target_policy
from rl_coach.architectures.compiled_loop import CompiledAgent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DDPGActorHeadParameters, DDPGVHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import NetworkView, Stages
from rl_coach.base_parameters import AgentParameters, EmbedderScheme
from rl_coach.core_types import ActionInfo, Batch, EnvironmentSteps, RunPhase, StateType
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.policy.action_choice import DeterministicChoice, PolicyDescription
from rl_coach.spaces import ActionSpace


class DDPGCriticNetworkParameters(DeterministicPolicyNetworkParameters):
    """Parameters of the critic Q(s, a).

    :param use_batchnorm: True: batch normalisation in the embedder of the observation
    """

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__(batch_size=64, learning_rate=0.001)
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(batchnorm=use_batchnorm),
            "action": InputEmbedderParameters(scheme=EmbedderScheme.Shallow),
        }
        self.middleware_parameters = FCMiddlewareParameters()
        self.heads_parameters = [DDPGVHeadParameters()]


class DDPGActorNetworkParameters(DeterministicPolicyNetworkParameters):
    """Parameters of the actor, which computes the action of a state.

    :param use_batchnorm: True: batch normalisation in each part
    """

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__(batch_size=64, learning_rate=0.0001)
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(batchnorm=use_batchnorm)}
        self.middleware_parameters = FCMiddlewareParameters(batchnorm=use_batchnorm)
        self.heads_parameters = [DDPGActorHeadParameters(batchnorm=use_batchnorm)]


class DDPGAlgorithmParameters(DeterministicPolicyAlgorithmParameters):
    """Hyperparameters of DDPG.

    :ivar rate_for_copying_weights_to_target: at each of their updates, the target networks move towards the newest
        weights by this share
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
        self.rate_for_copying_weights_to_target = 0.001


class DDPGAgentParameters(AgentParameters):
    """DDPG with noise of an Ornstein-Uhlenbeck process.

    :param use_batchnorm: True: batch normalisation in both networks
    """

    path = "rl_coach.agents.ddpg_agent:DDPGAgent"
    algorithm: DDPGAlgorithmParameters

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__(
            algorithm=DDPGAlgorithmParameters(),
            exploration=OUProcessParameters(),
            memory=EpisodicExperienceReplayParameters(),
            networks={
                "actor": DDPGActorNetworkParameters(use_batchnorm),
                "critic": DDPGCriticNetworkParameters(use_batchnorm),
            },
        )


class DDPGAgent(Agent):
    """Learns an actor and a critic. The critic estimates the value of actions; the actor learns to increase this value.
    Actions are clipped to their bounds before they are played and stored.

    :cvar compiled_explorations: the parameter classes of the explorations that compiled loops support
    """

    network_requirements: Mapping[str, NetworkRequirement] = {
        "actor": NetworkRequirement((ACTOR,), has_target=True),
        "critic": NetworkRequirement((Q_OF_ACTION,), has_target=True),
    }
    acting_networks: tuple[str, ...] = ("actor",)
    needs_bounded_actions = True
    supports_curiosity = True
    compiled_explorations: tuple[type, ...] = (AdditiveNoiseParameters,)
    is_on_policy = False

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.action_signal = self.register_signal("actions")

    @property
    def next_value(self) -> NextValue:
        """The value of the next states that the critic bootstraps from."""
        return value_of_target_policy

    @property
    def acts_by_targets(self) -> bool:  # type: ignore[override]
        """True if ``algorithm.use_target_network_for_evaluation`` is True."""
        return bool(self.ap.algorithm.use_target_network_for_evaluation)

    def make_update_rule(self) -> Stages:
        algorithm, is_huber = self.ap.algorithm, self.ap.network_wrappers["critic"].replace_mse_with_huber_loss
        return ddpg_stages(algorithm.action_penalty, algorithm.clip_critic_targets, is_huber, self.next_value)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["actions"] = np.asarray(batch.action_column, np.float32)
        if self.ap.algorithm.use_non_zero_discount_for_terminal_states:
            columns["discounts"] = (self.ap.algorithm.discount ** batch.n_steps()).astype(np.float32)
        return columns

    def predict_states(self, states: list[StateType] | StateColumns) -> Any:
        """[B, A], the actor's actions. If the exploration needs features: for each state, a pair of action and
        features."""
        actor = self.networks["actor"]
        network = actor.target_network if self.acts_by_targets else actor.online_network
        outputs = network.predict(self.prepare_batch_for_inference(states, "actor"), squeeze_output=False)
        return list(zip(*outputs)) if self.exploration_policy.draws_from_features else outputs[0]

    def choose_actions(self, states: StateColumns) -> np.ndarray:
        count = len(next(iter(states.values())))
        explored = self.exploration_policy.get_actions(lambda: self.predict_states(states), count)
        actions = np.asarray(self.policy_spaces.action.clip_action_to_space(explored))
        self.action_signal.add_sample(actions)
        return actions

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        action = self.explored_action(curr_state)
        self.action_signal.add_sample(action)
        return ActionInfo(action)

    def explored_action(self, curr_state: StateType) -> np.ndarray:
        """[A], the actor's action after exploration, clipped to its bounds."""
        needs_action = self.exploration_policy.requires_action_values()
        action = self.exploration_policy.get_action(self.acting_prediction(curr_state) if needs_action else None)
        return np.asarray(self.policy_spaces.action.clip_action_to_space(np.atleast_1d(action)))

    def policy_description(self) -> PolicyDescription:
        outputs, is_target = self.networks["actor"].outputs_named("action"), self.acts_by_targets
        return PolicyDescription("actor", outputs, DeterministicChoice(), is_target)

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        return why_replay_is_not_compiled(self, num_copies, actions, *self.compiled_explorations)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        exploration = self.compiled_exploration(random, num_copies)
        return CompiledReplay(self, random, num_copies, exploration, lambda key, drawn: self.compiled_columns(drawn))

    def compiled_columns(self, drawn: dict[str, Any]) -> dict[str, Any]:
        """The columns [K, B, ...] that a compiled loop drew, with the changes that ``learning_columns`` makes."""
        if not self.ap.algorithm.use_non_zero_discount_for_terminal_states:
            return drawn
        ones = self.update_loop.learner.ops.ones_like(drawn["discounts"])
        return {**drawn, "discounts": self.ap.algorithm.discount * ones}

    def compiled_exploration(self, random: Any, num_copies: int) -> Exploration:
        """The agent's choice of actions in a compiled loop."""
        ops, noise, space = self.update_loop.learner.ops, self.exploration_policy, self.spaces.action
        uses_target = self.acts_by_targets

        def policy(networks: dict[str, NetworkView], states: dict[str, Any]) -> Any:
            actor = networks["actor"]
            outputs = actor.target(states) if uses_target else actor.online(states, training=False)
            return outputs[0]["action"]

        def levels(ahead: int, steps: int) -> np.ndarray:
            is_training = self._phase is RunPhase.TRAIN
            return schedule_ahead(noise.noise_schedule, ahead, steps, num_copies, is_training)

        act = additive_noise(ops, random, policy, space, noise.noise_as_percentage_from_action_space)
        exploration = Exploration(act, levels, at_level(act, noise.evaluation_noise))
        return uniform_at_first(ops, random, exploration, space, lambda: self.acts_by_networks)
