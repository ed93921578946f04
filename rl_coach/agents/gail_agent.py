"""Generative adversarial imitation learning (Ho and Ermon 2016), on proximal policy optimisation."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgent, ClippedPPOAgentParameters, ClippedPPOAlgorithmParameters
from rl_coach.agents.core.requirements import HeadRequirement, NetworkRequirement
from rl_coach.agents.rules.adversarial_imitation import adversarial_imitation_rule
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import RegressionHeadParameters
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.architectures.update import UpdateRule
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme, NetworkParameters
from rl_coach.core_types import Batch
from rl_coach.spaces import BoxActionSpace
from rl_coach.utilities.requirements import whole
from rl_coach.utils import CoachError


class DiscriminatorNetworkParameters(NetworkParameters):
    """A network that separates demonstrations from the agent's steps, with a logit for each discrete action.

    For continuous actions, add an input embedder ``action`` and set the head to ``VHeadParameters()``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.input_embedders_parameters = {"observation": InputEmbedderParameters(activation_function="tanh")}
        self.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
        self.heads_parameters = [RegressionHeadParameters(activation_function="tanh")]
        self.batch_size = 64
        self.learning_rate = 0.0003


class GAILAlgorithmParameters(ClippedPPOAlgorithmParameters):
    """Hyperparameters of PPO, and of the discriminator.

    :ivar update_discriminator_every_x_minibatches: the discriminator learns once for this number of minibatches of the
        policy; with a larger number, it learns more slowly
    """

    constraints = {"update_discriminator_every_x_minibatches": whole(1)}

    def __init__(self) -> None:
        super().__init__()
        self.update_discriminator_every_x_minibatches = 10


class GAILAgentParameters(ClippedPPOAgentParameters):
    """PPO that gets a higher reward for steps that resemble the demonstrations in
    ``memory.load_memory_from_file_path``."""

    path = "rl_coach.agents.gail_agent:GAILAgent"
    algorithm: GAILAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = GAILAlgorithmParameters()
        self.network_wrappers["discriminator"] = DiscriminatorNetworkParameters()


class GAILAgent(ClippedPPOAgent):
    """PPO with rewards from a discriminator, which learns to distinguish the agent's steps from demonstrations.

    :ivar demonstrations: the demonstrations; None in a process that only plays
    """

    network_requirements = {
        **ClippedPPOAgent.network_requirements,
        "discriminator": NetworkRequirement((HeadRequirement("RegressionHeadParameters", ("values",), ("v",)),)),
    }
    acting_networks = ("main",)
    rescalers = ClippedPPOAgent.rescalers

    def __init__(self, agent_parameters: AgentParameters, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.demonstrations: Batch | None = None
        self.imitation_reward = self.register_signal("Imitation Reward")

    def init_environment_dependent_modules(self) -> None:
        period = self.ap.algorithm.update_discriminator_every_x_minibatches
        self.learning_periods = {"discriminator": period}
        super().init_environment_dependent_modules()

    def unmet_by_networks(self) -> Iterator[str]:
        yield from super().unmet_by_networks()
        is_discrete = not isinstance(self.spaces.action, BoxActionSpace)
        network = self.networks["discriminator"]
        if network.head_outputs is not None and is_discrete is bool(network.outputs_named("v")):
            advice = (
                "set its heads_parameters to [RegressionHeadParameters()]"
                if is_discrete
                else "add an input embedder 'action' and set its heads_parameters to [VHeadParameters()]"
            )
            kind = "discrete" if is_discrete else "continuous"
            yield f"network 'discriminator' of agent '{self.name}' does not support {kind} actions: {advice}"

    def load_memory_from_file(self) -> None:
        """Load the demonstrations from ``load_memory_from_file_path``."""
        super().load_memory_from_file()
        if self.memory.num_transitions():
            self.demonstrations = self.memory.transitions_at(np.arange(self.memory.num_transitions()))
            self.memory.clean()

    def before_training(self) -> None:
        """Check that there are demonstrations. :raises CoachError: if there are no demonstrations"""
        if self.demonstrations is None:
            raise CoachError(
                f"agent '{self.name}' has no demonstrations to imitate: set memory.load_memory_from_file_path, "
                f"for example to a replay_buffer.npz that --play has recorded"
            )

    def make_update_rule(self) -> UpdateRule:
        rule: Any = super().make_update_rule()
        return adversarial_imitation_rule(rule)

    def imitation_rewards(self, batch: Batch) -> np.ndarray:
        """[B] float32, -log(1 - D(s, a)): near 0 for steps unlike the demonstrations, larger for steps like them.

        :param batch: steps after the agent's filters
        """
        network, actions = self.networks["discriminator"], batch.action_column
        inputs = {"action": actions, **batch.state_columns}
        outputs = network.online_network.predict({name: inputs[name] for name in network.input_names})
        values = outputs
        if outputs.ndim > 1:
            chosen = np.take_along_axis(outputs, actions[..., None].astype(np.int64), axis=-1)
            values = chosen.reshape(len(batch), -1).sum(axis=1)
        return np.logaddexp(0, values).astype(np.float32)

    def fill_advantages(self, batch: Batch) -> dict[str, np.ndarray]:
        judged = Batch(batch)
        judged.reward_column = self.imitation_rewards(batch)
        self.imitation_reward.add_sample(judged.reward_column)
        columns = super().fill_advantages(judged)
        return columns | self._drawn_demonstrations(len(columns["weights"]))

    def _drawn_demonstrations(self, count: int) -> dict[str, np.ndarray]:
        assert self.demonstrations is not None
        rows = self.demonstrations[self.rng.integers(0, len(self.demonstrations), count)]
        states = {name: rows.state_columns[name] for name in self.update_loop.input_names}
        states = self.pre_network_filter.filter_columns(states, False)
        columns = {f"extra/demonstrated_states/{name}": state for name, state in states.items()}
        return columns | {"extra/demonstrated_actions": rows.action_column}
