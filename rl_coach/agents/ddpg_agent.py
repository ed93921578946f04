"""Deep deterministic policy gradient (Lillicrap et al. 2016, "Continuous control with deep reinforcement learning")."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping, Sequence

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DDPGActorHeadParameters, DDPGVHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import (
    LearningBatch,
    NetworkView,
    Update,
    UpdateRule,
    assert_rank,
    huber,
    weighted_mean,
)
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, EmbedderScheme, NetworkParameters
from rl_coach.core_types import ActionInfo, Batch, EnvironmentSteps, StateType
from rl_coach.exploration_policies.ou_process import OUProcessParameters
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.policy.action_choice import DeterministicChoice, PolicyDescription
from rl_coach.spaces import require_bounded_box
from rl_coach.utilities.constraints import FLAG, Constraint, number, optional, pair


class _DDPGNetworkParameters(NetworkParameters):
    """Parameters that actor and critic have in common."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__()
        self.optimizer_type = "Adam"
        self.batch_size = 64
        self.adam_optimizer_beta2 = 0.999
        self.optimizer_epsilon = 1e-8
        self.async_training = False
        self.learning_rate = learning_rate
        self.create_target_network = True
        self.shared_optimizer = True
        self.scale_down_gradients_by_number_of_workers_for_sync_training = False


class DDPGCriticNetworkParameters(_DDPGNetworkParameters):
    """Q(s, a).

    :param use_batchnorm: batch normalisation in the observation's embedder
    """

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__(0.001)
        self.input_embedders_parameters = {
            "observation": InputEmbedderParameters(batchnorm=use_batchnorm),
            "action": InputEmbedderParameters(scheme=EmbedderScheme.Shallow),
        }
        self.middleware_parameters = FCMiddlewareParameters()
        self.heads_parameters = [DDPGVHeadParameters()]


class DDPGActorNetworkParameters(_DDPGNetworkParameters):
    """The policy.

    :param use_batchnorm: batch normalisation in every part
    """

    def __init__(self, use_batchnorm: bool = False) -> None:
        super().__init__(0.0001)
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(batchnorm=use_batchnorm)}
        self.middleware_parameters = FCMiddlewareParameters(batchnorm=use_batchnorm)
        self.heads_parameters = [DDPGActorHeadParameters(batchnorm=use_batchnorm)]


class DeterministicPolicyAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of agents that learn a deterministic policy.

    :ivar use_target_network_for_evaluation: act with the actor's target network, which changes more slowly
    :ivar action_penalty: weight of the squared input of the policy's squashing in its loss, against saturation; 0: none
    :ivar clip_critic_targets: the critic's targets stay within these two numbers; None does not clip
    :ivar use_non_zero_discount_for_terminal_states: bootstrap after termination as everywhere, for tasks without an end
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "use_target_network_for_evaluation": FLAG,
        "action_penalty": number(0),
        "clip_critic_targets": optional(pair(number(), number(), "[-50, 0]")),
        "use_non_zero_discount_for_terminal_states": FLAG,
    }

    def __init__(self) -> None:
        super().__init__()
        self.use_target_network_for_evaluation = False
        self.action_penalty = 0
        self.clip_critic_targets: Sequence[float] | None = None
        self.use_non_zero_discount_for_terminal_states = False


class DDPGAlgorithmParameters(DeterministicPolicyAlgorithmParameters):
    """Hyperparameters of DDPG.

    :ivar rate_for_copying_weights_to_target: the targets' share of the newest weights at each update
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
        self.rate_for_copying_weights_to_target = 0.001
        self.num_consecutive_playing_steps = EnvironmentSteps(1)


class DDPGAgentParameters(AgentParameters):
    """DDPG with noise of an Ornstein-Uhlenbeck process.

    :param use_batchnorm: batch normalisation in both networks
    """

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

    @property
    def path(self) -> str:
        return "rl_coach.agents.ddpg_agent:DDPGAgent"


def clipped_target(ops: Any, batch: LearningBatch, q_t: Any, bounds: Sequence[float] | None) -> Any:
    """r + discount * Q(s', a') [B] within ``bounds``; no gradient reaches it."""
    target_tm1 = batch.rewards + batch.discounts * q_t
    return ops.stop_gradient(target_tm1 if bounds is None else ops.clip(target_tm1, *bounds))


def policy_loss(ops: Any, batch: LearningBatch, policy: dict[str, Any], q: Any, action_penalty: float) -> Any:
    """E[-Q(s, mu(s))] (Silver et al. 2014, theorem 1), and a penalty on the squared input of the squashing.

    :param policy: the actor's ``action`` and ``pre_activation`` [B, A]
    :param q: [B], the critic's values of these actions
    """
    saturation = ops.mean(ops.square(policy["pre_activation"]), axis=-1)
    return weighted_mean(ops, action_penalty * saturation - q, batch.weights)


def ddpg_rule(action_penalty: float, clip_targets: Sequence[float] | None, is_huber: bool = False) -> UpdateRule:
    """Algorithm 1: the critic learns r + discount * Q'(s', mu'(s')), the actor climbs Q(s, mu(s))."""

    def rule(ops: Any, networks: dict[str, NetworkView], batch: LearningBatch) -> Update:
        assert_rank(1, rewards=batch.rewards, discounts=batch.discounts, weights=batch.weights)
        assert_rank(2, actions=batch.actions)
        actor, critic = networks["actor"], networks["critic"]
        a_t = actor.target(batch.next_states)[0]["action"]
        q_t = critic.target({**batch.next_states, "action": a_t})[0]["q"]
        target_tm1 = clipped_target(ops, batch, q_t, clip_targets)
        q_tm1 = critic.online({**batch.states, "action": batch.actions})[0]["q"]
        errors = target_tm1 - q_tm1
        policy = actor.online(batch.states)[0]
        q_of_policy = critic.online({**batch.states, "action": policy["action"]})[0]["q"]
        losses = {
            "actor": policy_loss(ops, batch, policy, q_of_policy, action_penalty),
            "critic": weighted_mean(ops, huber(ops, errors) if is_huber else errors * errors, batch.weights),
        }
        signals = {
            "Q": weighted_mean(ops, q_tm1, batch.weights),
            "TD targets": weighted_mean(ops, target_tm1, batch.weights),
        }
        return Update(losses, errors=errors, signals=signals)

    return rule


class DDPGAgent(Agent):
    """See the module. Actions that exploration carries out of bounds are remembered as they are played: clipped."""

    acting_networks: tuple[str, ...] = ("actor",)

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.action_signal = self.register_signal("actions")

    @property
    def is_on_policy(self) -> bool:
        return False

    def init_environment_dependent_modules(self) -> None:
        require_bounded_box(self.policy_spaces.action, self.name)
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> UpdateRule:
        algorithm, critic = self.ap.algorithm, self.ap.network_wrappers["critic"]
        return ddpg_rule(algorithm.action_penalty, algorithm.clip_critic_targets, critic.replace_mse_with_huber_loss)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["actions"] = np.asarray(batch.action_column, np.float32)
        if self.ap.algorithm.use_non_zero_discount_for_terminal_states:
            columns["discounts"] = np.full(len(columns["rewards"]), self.ap.algorithm.discount, np.float32)
        return columns

    def predict_states(self, states: list[StateType]) -> Any:
        """[B, A], the actor's actions; for each state a pair with the features where exploration draws from them."""
        actor = self.networks["actor"]
        uses_target = self.ap.algorithm.use_target_network_for_evaluation
        network = actor.target_network if uses_target else actor.online_network
        outputs = network.predict(self.prepare_batch_for_inference(states, "actor"), squeeze_output=False)
        return list(zip(*outputs)) if self.exploration_policy.draws_from_features else outputs[0]

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        action = self.explored_action(curr_state)
        self.action_signal.add_sample(action)
        return ActionInfo(action)

    def explored_action(self, curr_state: StateType) -> np.ndarray:
        """[A], the actor's action as exploration changes it, within bounds."""
        needs_action = self.exploration_policy.requires_action_values()
        action = self.exploration_policy.choose(self.acting_prediction(curr_state) if needs_action else None, None)
        return np.asarray(self.policy_spaces.action.clip_action_to_space(np.atleast_1d(action)))

    def policy_description(self) -> PolicyDescription:
        return PolicyDescription("actor", self.networks["actor"].outputs_named("action"), DeterministicChoice())
