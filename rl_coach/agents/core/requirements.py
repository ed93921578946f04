"""Needs of agents, declared on their classes, and the checks that they are met before anything is learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Mapping

from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.logger import screen
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.agents.agent import Agent
    from rl_coach.architectures.network_wrapper import NetworkWrapper


class MemoryNeed(Enum):
    """Knowledge that the memory must have of what it holds: none, each transition's return up to its episode's end, or
    the complete episodes in order."""

    NOTHING = 0
    RETURNS = 1
    EPISODES = 2


class HeadNeed:
    """A head that an update rule reads, whatever its class.

    :param settings: a class of settings whose head suits, for messages
    :param outputs: the outputs that are read; of several groups the head gives one
    """

    def __init__(self, settings: str, *outputs: tuple[str, ...]):
        self.settings = settings
        self.outputs = outputs

    def is_met_by(self, outputs: tuple[str, ...]) -> bool:
        """True if a head with these outputs suits."""
        return any(set(group) <= set(outputs) for group in self.outputs)


@dataclass(frozen=True)
class NetworkNeed:
    """Parts of a network that an update rule reads. It takes several heads apart one by one, so that there must be just
    as many; where it reads the first one, others may follow.

    :param heads: its heads, in order
    :param has_target: it reads the target network too
    """

    heads: tuple[HeadNeed, ...]
    has_target: bool = False


class Needs:
    """Base of agents: what they need of their settings. A subclass that replaces the methods that have a need
    (``_METHODS``) is taken to have none, unless it declares what its own need.

    :cvar network_needs: what the update rule reads, by network; those that an agent does without are not asked for
    :cvar memory_need: what it must find in its memory
    :cvar max_n_step: the most rewards (``algorithm.n_step``) that its rule can learn as one; 0 where it learns returns
        of whole episodes besides
    :cvar rescalers: the values of ``policy_gradient_rescaler`` that it knows; empty: it has no such parameter
    :cvar predicts_values: it shows the exploration policy values of actions, not probabilities
    :cvar batch_network: the network whose ``batch_size`` updates have; None for the first
    """

    network_needs: Mapping[str, NetworkNeed] = {}
    memory_need = MemoryNeed.NOTHING
    max_n_step: float = math.inf
    rescalers: tuple[PolicyGradientRescaler, ...] = ()
    predicts_values = False
    batch_network: str | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        for need, methods in _METHODS.items():
            if need not in own and any(method in own for method in methods):
                setattr(cls, need, vars(Needs)[need])


_METHODS: Mapping[str, tuple[str, ...]] = {
    "network_needs": ("make_update_rule", "learn_from_batch"),
    "memory_need": ("learn_from_batch", "train"),
    "rescalers": ("learn_from_batch", "learning_columns", "fill_advantages", "_advantages_and_returns", "rescaled"),
    "predicts_values": ("choose_action", "predict_states", "get_all_q_values_for_states"),
}


def require_fitting_settings(agent: Agent) -> None:
    """
    :raises CoachError: memory, exploration, ``n_step`` or ``policy_gradient_rescaler`` are not for such an agent; it is
        named
    """
    _require_memory(agent)
    _require_single_rewards(agent)
    if agent.rescalers and agent.ap.algorithm.policy_gradient_rescaler not in agent.rescalers:
        raise unknown_rescaler(agent)
    if agent.predicts_values and agent.exploration_policy.draws_by_probabilities:
        raise CoachError(
            f"exploration of agent '{agent.name}' draws by probabilities, and it predicts values of actions: "
            f"set exploration to EGreedyParameters() or BoltzmannParameters()"
        )


def unknown_rescaler(agent: Agent) -> CoachError:
    """The error of an agent that does not know its ``policy_gradient_rescaler``."""
    known = f"one of {', '.join(str(one) for one in agent.rescalers)}" if agent.rescalers else "another one"
    return CoachError(
        f"algorithm.policy_gradient_rescaler of agent '{agent.name}' is {agent.ap.algorithm.policy_gradient_rescaler}, "
        f"which it cannot use: set it to {known}"
    )


def _require_memory(agent: Agent) -> None:
    algorithm, name = agent.ap.algorithm, type(agent.memory).__name__
    if agent.memory_need is MemoryNeed.EPISODES and not agent.memory.knows_episodes:
        raise CoachError(
            f"agent '{agent.name}' learns from complete episodes, which its memory, {name}, does not keep: "
            f"set memory to EpisodicExperienceReplayParameters()"
        )
    waits = algorithm.store_transitions_only_when_episodes_are_terminated
    is_recorded = algorithm.load_memory_from_file_path or agent.ap.memory.load_memory_from_file_path
    if agent.memory_need is MemoryNeed.RETURNS and not (agent.memory.stores_episodes or waits or is_recorded):
        raise CoachError(
            f"agent '{agent.name}' learns from the returns of complete episodes, which its memory, {name}, does not "
            f"know: set memory to EpisodicExperienceReplayParameters()"
        )


def _require_single_rewards(agent: Agent) -> None:
    n_step, memory = agent.ap.algorithm.n_step, agent.memory
    for part, most in ((f"agent '{agent.name}'", agent.max_n_step), (type(memory).__name__, memory.max_n_step)):
        if n_step > most:
            raise CoachError(f"algorithm.n_step is {n_step}, and {part} goes by single rewards: set it to -1")


def require_fitting_networks(agent: Agent) -> None:
    """Compare the networks with what the update rule reads, and warn of batch sizes without effect. Where networks only
    act, the process that teaches them has done so.

    :raises CoachError: a network has other heads or lacks a target
    """
    read = {name: need for name, need in agent.network_needs.items() if name in agent.networks}
    if any(agent.networks[name].head_outputs is None for name in read):
        return
    for name, need in read.items():
        _require_heads(agent.networks[name], need, agent.name)
        if need.has_target and not agent.networks[name].has_target:
            raise CoachError(
                f"network '{name}' of agent '{agent.name}' has no target network, which its update rule reads: "
                f"set create_target_network to True"
            )
    sizes = {name: agent.ap.network_wrappers[name].batch_size for name in read}
    counts = agent.update_loop.batch_size if sizes else 0
    if others := [f"'{name}' ({size})" for name, size in sizes.items() if size != counts]:
        screen.warning(
            f"agent '{agent.name}': batch_size of network {', '.join(others)} has no effect; all learn from batches of "
            f"{counts}, batch_size of network '{agent.update_loop.batch_network}'"
        )


def _require_heads(network: NetworkWrapper, need: NetworkNeed, agent: str) -> None:
    given, wanted = network.head_outputs or [], need.heads
    advice = f"set heads_parameters to [{', '.join(f'{head.settings}()' for head in wanted)}] or heads like these"
    if len(given) < len(wanted) or len(given) > len(wanted) > 1:
        raise CoachError(
            f"network '{network.name}' of agent '{agent}' has {len(given)} heads, and its update rule reads "
            f"{len(wanted)}: {advice}"
        )
    for number, (outputs, head) in enumerate(zip(given, wanted)):
        if not head.is_met_by(outputs):
            read = " or ".join(" and ".join(group) for group in head.outputs)
            raise CoachError(
                f"head {number} of network '{network.name}' of agent '{agent}' gives {', '.join(outputs)}, and its "
                f"update rule reads {read}: {advice}"
            )


POLICY_OUTPUTS: Any = (("probabilities", "log_probabilities"), ("mean", "standard_deviation"))
Q = HeadNeed("QHeadParameters", ("q",))
V = HeadNeed("VHeadParameters", ("v",))
POLICY = HeadNeed("PolicyHeadParameters", *POLICY_OUTPUTS)
PPO_POLICY = HeadNeed("PPOHeadParameters", *POLICY_OUTPUTS)
Q_OF_ACTION = HeadNeed("DDPGVHeadParameters", ("q",))
ACTOR = HeadNeed("DDPGActorHeadParameters", ("action", "pre_activation"))
