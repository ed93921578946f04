"""Soft actor-critic with a value network (Haarnoja et al. 2018, "Soft Actor-Critic"), as in Coach 1.0.1, or with a
learned temperature (Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications"). TQC, REDQ, DroQ, CrossQ
and SimbaV2 are settings of the second form.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Iterator

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.core.compiled_acting import Exploration, uniform_at_first
from rl_coach.agents.core.compiled_replay import CompiledReplay, why_replay_is_not_compiled
from rl_coach.agents.core.inference import StateColumns
from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement, V
from rl_coach.agents.rules.soft_actor_critic import (
    MaximumEntropySettings,
    maximum_entropy_stages,
    soft_actor_critic_stages,
    squashed_sample,
)
from rl_coach.architectures.compiled_loop import CompiledAgent
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import SACPolicyHeadParameters, SACQHeadParameters, VHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import NetworkView, Stages
from rl_coach.architectures.values import ValuesParameters
from rl_coach.base_parameters import (
    AgentParameters,
    AlgorithmParameters,
    EmbedderScheme,
    MiddlewareScheme,
    NetworkParameters,
)
from rl_coach.core_types import ActionInfo, Batch, EnvironmentSteps, RunPhase, StateType
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.memories.non_episodic.experience_replay import ExperienceReplayParameters
from rl_coach.policy.action_choice import PolicyDescription, SquashedGaussianChoice
from rl_coach.spaces import ActionSpace
from rl_coach.utilities.requirements import flags, number, optional, whole
from rl_coach.utils import force_list


class _SACNetworkParameters(NetworkParameters):
    """Parameters that the three networks have in common."""

    def __init__(self, embedder: InputEmbedderParameters, middleware: FCMiddlewareParameters, head: Any):
        super().__init__()
        self.input_embedders_parameters = {"observation": embedder}
        self.middleware_parameters = middleware
        self.heads_parameters = [head]
        self.rescale_gradient_from_head_by_factor = [1]
        self.batch_size = 256
        self.learning_rate = 0.0003


class SACValueNetworkParameters(_SACNetworkParameters):
    """The value network V(s). The critics bootstrap from its target network."""

    def __init__(self) -> None:
        super().__init__(
            InputEmbedderParameters(activation_function="relu"),
            FCMiddlewareParameters(activation_function="relu"),
            VHeadParameters(initializer="xavier"),
        )
        self.create_target_network = True


class SACCriticNetworkParameters(_SACNetworkParameters):
    """The critics Q(s, a), two by default."""

    def __init__(self) -> None:
        super().__init__(
            InputEmbedderParameters(scheme=EmbedderScheme.Empty),
            FCMiddlewareParameters(scheme=MiddlewareScheme.Empty),
            SACQHeadParameters(),
        )


class SACPolicyNetworkParameters(_SACNetworkParameters):
    """The policy network."""

    def __init__(self) -> None:
        super().__init__(
            InputEmbedderParameters(activation_function="relu"),
            FCMiddlewareParameters(activation_function="relu"),
            SACPolicyHeadParameters(),
        )
        self.l2_regularization = 0


class SoftActorCriticAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of soft actor-critic.

    :ivar rate_for_copying_weights_to_target: at each of its updates, the target network moves towards the newest
        weights by this share
    :ivar use_deterministic_for_evaluation: True: evaluate with the mean action. False: evaluate with a sample
    :ivar temperature: weight of the policy's entropy. None gives 1 with a value network, and a learned temperature
        without one
    :ivar target_entropy: the entropy of the policy that a learned temperature aims at; None is minus the number of
        elements of an action
    :ivar update_policy_every_x_training_steps: the policy and the temperature learn in every x-th update of the critics
    :ivar num_critics_in_target: for each update, this number of critics is drawn, and the target is their smallest
        value; None uses all critics
    :ivar policy_uses_mean_of_critics: True: the policy maximizes the mean of the critics. False: it maximizes their
        smallest value. With several quantiles (TQC), the policy always maximizes the mean
    :ivar top_quantiles_to_drop: the target drops the largest quantiles of all critics together. Their number is this
        number times the number of critics. With a small number, values are overestimated
    """

    constraints = {
        **flags("use_deterministic_for_evaluation", "policy_uses_mean_of_critics"),
        "temperature": optional(number(0)),
        "target_entropy": optional(number()),
        "update_policy_every_x_training_steps": whole(1),
        "num_critics_in_target": optional(whole(1)),
        "top_quantiles_to_drop": whole(0),
    }

    def __init__(self) -> None:
        super().__init__()
        self.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(1)
        self.rate_for_copying_weights_to_target = 0.005
        self.use_deterministic_for_evaluation = True
        self.temperature: float | None = None
        self.target_entropy: float | None = None
        self.update_policy_every_x_training_steps = 1
        self.num_critics_in_target: int | None = None
        self.policy_uses_mean_of_critics = False
        self.top_quantiles_to_drop = 0


_WITHOUT_VALUE_NETWORK = (
    "target_entropy", "num_critics_in_target", "top_quantiles_to_drop", "policy_uses_mean_of_critics"
)  # fmt: skip


class SoftActorCriticAgentParameters(AgentParameters):
    """Soft actor-critic. The agent explores by sampling from its policy.

    :param use_value_network: True: the critics bootstrap from a network V(s), as in Coach 1.0.1. False: they bootstrap
        from their target network, with a learned temperature
    """

    algorithm_names = ("SAC", "SoftActorCritic")
    path = "rl_coach.agents.soft_actor_critic_agent:SoftActorCriticAgent"
    algorithm: SoftActorCriticAlgorithmParameters

    def __init__(self, use_value_network: bool = True) -> None:
        super().__init__(
            algorithm=SoftActorCriticAlgorithmParameters(),
            exploration=AdditiveNoiseParameters(),
            memory=ExperienceReplayParameters(),
            networks={"policy": SACPolicyNetworkParameters(), "q": SACCriticNetworkParameters()},
        )
        if use_value_network:
            self.network_wrappers["v"] = SACValueNetworkParameters()
        else:
            self.network_wrappers["q"].create_target_network = True
            self.network_wrappers["temperature"] = ValuesParameters({"log_temperature": 0.0}, learning_rate=0.0003)

    def unmet(self) -> Iterator[str]:
        algorithm, without = self.algorithm, "SoftActorCriticAgentParameters(use_value_network=False)"
        in_target, dropped = algorithm.num_critics_in_target, algorithm.top_quantiles_to_drop
        heads = self.network_wrappers["q"].heads_parameters if "q" in self.network_wrappers else []
        head = next(iter(force_list(heads)), None)
        critics, quantiles = getattr(head, "num_critics", 2), getattr(head, "num_quantiles", 1)
        if has_value_network(self):
            coachs = SoftActorCriticAlgorithmParameters()
            for name in _WITHOUT_VALUE_NETWORK:
                if getattr(algorithm, name) not in (None, getattr(coachs, name)):
                    yield f"algorithm.{name} needs {without}"
            if (critics, quantiles) != (2, 1):
                yield f"network_wrappers['q']: num_critics other than 2, or num_quantiles other than 1, needs {without}"
        elif algorithm.temperature is None and "temperature" not in self.network_wrappers:
            yield (
                f"algorithm.temperature is None (learned), but network_wrappers has no 'temperature': "
                f"set algorithm.temperature to a number, or use {without}"
            )
        yield from _unmet_by_atoms(self, head)
        if getattr(head, "batch_renorm_warm_up", None) is not None and not getattr(head, "batchnorm", False):
            yield "network_wrappers['q']: batch_renorm_warm_up needs batchnorm=True in the head's parameters"
        if in_target is not None and quantiles > 1:
            yield (
                f"algorithm.num_critics_in_target is {in_target}, which has no effect if the head has num_quantiles "
                f"{quantiles}: set num_critics_in_target to None, or num_quantiles to 1"
            )
        if (in_target or 1) > critics:
            yield (
                f"algorithm.num_critics_in_target is {in_target}, and the head has num_critics {critics}: "
                f"choose at most {critics}"
            )
        if dropped >= quantiles and dropped > 0:
            yield (
                f"algorithm.top_quantiles_to_drop is {dropped}, and the head has num_quantiles {quantiles}: drop fewer"
            )


def _unmet_by_atoms(parameters: SoftActorCriticAgentParameters, head: Any) -> Iterator[str]:
    atoms = getattr(head, "num_atoms", 1)
    if atoms == 1:
        return
    if has_value_network(parameters):
        yield "network_wrappers['q']: num_atoms above 1 needs SoftActorCriticAgentParameters(use_value_network=False)"
    if not parameters.network_wrappers["q"].create_target_network:
        yield f"network_wrappers['q']: num_atoms is {atoms}, which needs create_target_network=True"
    if head.num_quantiles > 1 or parameters.algorithm.num_critics_in_target is not None:
        yield (
            f"network_wrappers['q']: num_atoms is {atoms}, which needs num_quantiles 1 and "
            f"algorithm.num_critics_in_target None"
        )
    if not head.v_min < head.v_max:
        yield f"network_wrappers['q']: v_min is {head.v_min}; it must be below v_max, which is {head.v_max}"


def has_value_network(parameters: AgentParameters) -> bool:
    """True if the critics bootstrap from a network V(s)."""
    return "v" in parameters.network_wrappers


class SoftActorCriticAgent(Agent):
    """Learns a stochastic policy with an additional reward for its entropy. The networks' actions are from -1 to 1, and
    are scaled to the environment's range.
    """

    network_requirements = {
        "policy": NetworkRequirement((HeadRequirement("SACPolicyHeadParameters", ("mean", "log_deviation")),)),
        "q": NetworkRequirement((HeadRequirement("SACQHeadParameters", ("quantiles",), ("q1", "q2")),)),
        "v": NetworkRequirement((V,), has_target=True, is_optional=True),
    }
    acting_networks = ("policy",)
    needs_bounded_actions = True
    supports_curiosity = True
    is_on_policy = False

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.action_signal = self.register_signal("actions")

    def init_environment_dependent_modules(self) -> None:
        action = self.spaces.action
        self._choice = SquashedGaussianChoice(
            centre=((action.high + action.low) / 2).astype(np.float32),
            radius=((action.high - action.low) / 2).astype(np.float32),
        )
        period = self.ap.algorithm.update_policy_every_x_training_steps
        names = ("policy", "temperature")
        self.learning_periods = {name: period for name in names if name in self.ap.network_wrappers}
        super().init_environment_dependent_modules()

    def make_update_rule(self) -> Stages:
        algorithm = self.ap.algorithm
        if has_value_network(self.ap):
            return soft_actor_critic_stages(1.0 if algorithm.temperature is None else algorithm.temperature)
        entropy = algorithm.target_entropy
        head = force_list(self.ap.network_wrappers["q"].heads_parameters)[0]
        settings = MaximumEntropySettings(
            temperature=algorithm.temperature,
            target_entropy=-float(self.spaces.action.num_elements) if entropy is None else float(entropy),
            policy_uses_mean_of_critics=algorithm.policy_uses_mean_of_critics,
            dropped_quantiles=algorithm.top_quantiles_to_drop,
            has_target=self.networks["q"].has_target,
            has_subset=algorithm.num_critics_in_target is not None,
            support=(head.v_min, head.v_max, head.num_atoms) if getattr(head, "num_atoms", 1) > 1 else None,
        )
        return maximum_entropy_stages(settings)

    def learning_columns(self, batch: Batch) -> dict[str, np.ndarray]:
        columns = super().learning_columns(batch)
        columns["actions"] = (batch.action_column - self._choice.centre) / self._choice.radius
        columns["extra/noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        if not has_value_network(self.ap):
            columns["extra/next_noise"] = self.rng.standard_normal(columns["actions"].shape, np.float32)
        if self.ap.algorithm.num_critics_in_target is not None:
            columns["extra/critics"] = self._random_critics(len(columns["actions"]))
        return columns

    def _random_critics(self, rows: int) -> np.ndarray:
        """[rows, critics] float32, 1 for a critic that is used for the target; equal in all rows of an update."""
        critics = self.ap.network_wrappers["q"].heads_parameters[0].num_critics
        updates, rest = divmod(rows, self.update_loop.batch_size)
        ranks = self.rng.random((updates + (rest > 0), critics)).argsort(axis=1)
        chosen = (ranks < self.ap.algorithm.num_critics_in_target).astype(np.float32)
        return np.repeat(chosen, self.update_loop.batch_size, axis=0)[:rows]

    def get_prediction(self, states: StateType | list[StateType]) -> list[np.ndarray]:
        """The policy's mean and log deviation, each [B, A], before squashing."""
        return self.networks["policy"].online_network.predict(self.prepare_batch_for_inference(states, "policy"))

    def predict_states(self, states: list[StateType]) -> list[list[np.ndarray]]:
        outputs = self.get_prediction(states)
        return [[output[row] for output in outputs] for row in range(len(states))]

    def _drawn(self, policy: list[np.ndarray]) -> np.ndarray:
        deterministic = self._phase is RunPhase.TEST and self.ap.algorithm.use_deterministic_for_evaluation
        return self._choice.choose(policy, None, self.rng, deterministic)

    def choose_actions(self, states: StateColumns) -> np.ndarray:
        actions = self._drawn(self.get_prediction(states)[:2])
        self.action_signal.add_sample(actions)
        return actions

    def choose_action(self, curr_state: StateType) -> ActionInfo:
        outputs = self.acting_prediction(curr_state)
        if self.exploration_policy.draws_from_features and self._phase is RunPhase.TRAIN:
            mean, _, *features = outputs
            u = self.exploration_policy.get_action([mean, *features])
            action = self._choice.centre + self._choice.radius * np.tanh(u)
        else:
            action = self._drawn([output[None] for output in outputs[:2]])[0]
        self.action_signal.add_sample(action)
        return ActionInfo(action)

    def policy_description(self) -> PolicyDescription:
        return PolicyDescription("policy", self.networks["policy"].outputs_named("mean", "log_deviation"), self._choice)

    def why_not_compiled(self, num_copies: int, actions: ActionSpace, heats_up: bool) -> str | None:
        # the agent samples from its policy and does not use the exploration policy
        return why_replay_is_not_compiled(self, num_copies, actions, AdditiveNoiseParameters)

    def make_compiled(self, random: Any, num_copies: int) -> CompiledAgent:
        columns = partial(self._compiled_columns, random)
        return CompiledReplay(self, random, num_copies, self._compiled_exploration(random), columns)

    def _compiled_columns(self, random: Any, key: Any, drawn: dict[str, Any]) -> dict[str, Any]:
        """The columns [K, B, ...] that a compiled loop drew, with the changes that ``learning_columns`` makes."""
        ops, in_target = self.update_loop.learner.ops, self.ap.algorithm.num_critics_in_target
        keys = random.split(key, 3)
        columns = {**drawn, "actions": (drawn["actions"] - self._choice.centre) / self._choice.radius}
        columns["extra/noise"] = random.normal(keys[0], drawn["actions"].shape)
        if not has_value_network(self.ap):
            columns["extra/next_noise"] = random.normal(keys[1], drawn["actions"].shape)
        if in_target is not None:
            critics = self.ap.network_wrappers["q"].heads_parameters[0].num_critics
            updates, rows = drawn["rewards"].shape
            ranks = ops.argsort(random.uniform(keys[2], (updates, 1, critics)), axis=-1)
            columns["extra/critics"] = ops.repeat(ops.cast(ranks < in_target, "float32"), rows, axis=1)
        return columns

    def _compiled_exploration(self, random: Any) -> Exploration:
        """The agent's choice of actions in a compiled loop."""
        ops, choice = self.update_loop.learner.ops, self._choice

        def act(key: Any, networks: dict[str, NetworkView], states: dict[str, Any], level: Any) -> Any:
            policy = networks["policy"].online(states, training=False)[0]
            squashed, _ = squashed_sample(ops, policy, random.normal(key, policy["mean"].shape))
            return choice.centre + choice.radius * squashed

        def levels(ahead: int, steps: int) -> np.ndarray:
            return np.zeros((steps, 0), np.float32)

        def evaluate(key: Any, networks: dict[str, NetworkView], states: dict[str, Any]) -> Any:
            if not self.ap.algorithm.use_deterministic_for_evaluation:
                return act(key, networks, states, None)
            mean = networks["policy"].online(states, training=False)[0]["mean"]
            return choice.centre + choice.radius * ops.tanh(mean)

        exploration = Exploration(act, levels, evaluate)
        return uniform_at_first(ops, random, exploration, self.spaces.action, lambda: self.acts_by_networks)


class FixedDataActorCriticAgent(SoftActorCriticAgent):
    """Learns a Gaussian policy with a squashed mean from fixed data. A subclass defines the update rule."""

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not self.ap.is_batch_rl_training:
            yield (
                f"agent '{self.name}' learns from a fixed data set: use it in a BatchRLGraphManager, as the preset "
                f"Pendulum_IQL_BatchRL does"
            )
        if not self.ap.algorithm.use_deterministic_for_evaluation:
            yield (
                f"agent '{self.name}' learns only its mean action: set algorithm.use_deterministic_for_evaluation to "
                f"True"
            )
