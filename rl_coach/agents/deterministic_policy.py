"""Settings that the agents with a deterministic policy have in common."""

from __future__ import annotations

from typing import Sequence

from rl_coach.base_parameters import AlgorithmParameters, NetworkParameters
from rl_coach.utilities.requirements import Constraint, bounds, exactly, flags, number, optional

ACTOR_WITHOUT_TARGET = {
    "use_target_network_for_evaluation": Constraint(
        "False, because the actor has no target network", exactly(False).holds
    ),
}
"""Entries of a table of constraints, for algorithms with an actor that has no target network."""


class DeterministicPolicyNetworkParameters(NetworkParameters):
    """Network parameters that actors and critics share.

    :param batch_size: number of transitions in an update
    :param learning_rate: learning rate of Adam
    """

    def __init__(self, batch_size: int, learning_rate: float) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.adam_optimizer_beta2 = 0.999
        self.optimizer_epsilon = 1e-8
        self.learning_rate = learning_rate
        self.create_target_network = True
        self.scale_down_gradients_by_number_of_workers_for_sync_training = False


class DeterministicPolicyAlgorithmParameters(AlgorithmParameters):
    """Hyperparameters of agents that learn a deterministic policy.

    :ivar use_target_network_for_evaluation: True: act with the actor's target network in all phases, not only in
        evaluations; it changes more slowly
    :ivar action_penalty: weight of a penalty on the squared input of the final tanh, which keeps actions away from the
        bounds; 0 for no penalty
    :ivar clip_critic_targets: the critic's targets stay within these two numbers; None does not clip
    :ivar use_non_zero_discount_for_terminal_states: True: bootstrap also from terminal states, for tasks that have no
        real end
    """

    constraints = {
        **flags("use_target_network_for_evaluation", "use_non_zero_discount_for_terminal_states"),
        "action_penalty": number(0),
        "clip_critic_targets": optional(bounds("[-50, 0]")),
    }

    def __init__(self) -> None:
        super().__init__()
        self.supports_parameter_noise = True
        self.use_target_network_for_evaluation = False
        self.action_penalty: float = 0
        self.clip_critic_targets: Sequence[float] | None = None
        self.use_non_zero_discount_for_terminal_states = False
