"""Requirements of agents on their spaces, memory, exploration policy and networks, declared on the agents' classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Iterator, Mapping, Sequence

from rl_coach.agents.core.overrides import REPLACED_BY, is_replaced
from rl_coach.agents.rules.advantages import PolicyGradientRescaler
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.base_parameters import DEFAULT_FRAMEWORK, AgentParameters, Frameworks
from rl_coach.exploration_policies.exploration_policy import draws_by_probabilities
from rl_coach.memories.memory import Memory, MemoryGranularity, receives_episodes, returns_complete_episodes
from rl_coach.spaces import ActionSpace, BoxActionSpace, MultiDiscreteActionSpace, TeamActionSpace
from rl_coach.utilities.requirements import shown


class MemoryRequirement(Enum):
    """The data that an agent needs from its memory: transitions; transitions with their return up to the end of the
    episode; or complete episodes in order.
    """

    NOTHING = 0
    RETURNS = 1
    EPISODES = 2


class HeadRequirement:
    """A head that an update rule reads. Each class of heads with these outputs fits.

    :param settings: the parameter class of a head that fits, for messages
    :param outputs: groups of outputs' names; the head must have all outputs of at least one group
    """

    def __init__(self, settings: str, *outputs: tuple[str, ...]):
        self.settings = settings
        self.outputs = outputs


@dataclass(frozen=True)
class NetworkRequirement:
    """Parts of a network that an update rule reads. A rule that reads several heads needs exactly these heads. A rule
    that reads one head reads the first head, and the network may have more heads.

    :param heads: the heads that the rule reads, in order
    :param has_target: True if the rule reads the target network too
    :param is_optional: True if the network may be missing; the agent then learns by another rule
    """

    heads: tuple[HeadRequirement, ...]
    has_target: bool = False
    is_optional: bool = False

    def unmet_by(self, network: str, heads: Sequence[Sequence[str]], has_target: bool) -> Iterator[str]:
        """The reasons why a network does not fit. :param heads: the names of the outputs of each of its heads"""
        wanted = ", ".join(f"{head.settings}()" for head in self.heads)
        advice = f"set heads_parameters to [{wanted}] or heads like these"
        if len(heads) < len(self.heads) or len(heads) > len(self.heads) > 1:
            yield f"{network} has {len(heads)} heads, but its update rule reads {len(self.heads)}: {advice}"
        for number, (outputs, head) in enumerate(zip(heads, self.heads)):
            if not any(set(group) <= set(outputs) for group in head.outputs):
                read = " or ".join(" and ".join(group) for group in head.outputs)
                given = ", ".join(outputs)
                yield f"head {number} of {network} has the outputs {given}, but its update rule reads {read}: {advice}"
        if self.has_target and not has_target:
            yield f"{network} has no target network, which its update rule reads: set create_target_network to True"


@dataclass(frozen=True)
class AgentRequirements:
    """Requirements of an agent. An agent's class declares a requirement as a class attribute of the same name. All
    requirements are optional.

    :param network_requirements: the parts of each network that the update rule reads, by the name of the network
    :param memory_requirement: the data that the agent needs from its memory
    :param max_n_step: the largest ``algorithm.n_step`` for which the rule is right; 0 if only -1 is right, because the
        rule also learns from the returns of whole episodes
    :param rescalers: the supported values of ``policy_gradient_rescaler``; empty if the agent has no such parameter
    :param predicts_values: True if the exploration policy receives values of actions, not probabilities
    :param needs_bounded_actions: True if the agent only supports continuous actions with finite bounds
    :param acts_in_parts: True if the agent supports ``MultiDiscreteActionSpace``, with actions of several choices
    :param plays_team: True if the agent plays all its players as one team, with joint states and a ``TeamActionSpace``
    """

    network_requirements: Mapping[str, NetworkRequirement] = field(default_factory=dict)
    memory_requirement: MemoryRequirement = MemoryRequirement.NOTHING
    max_n_step: float = math.inf
    rescalers: tuple[PolicyGradientRescaler, ...] = ()
    predicts_values: bool = False
    needs_bounded_actions: bool = False
    acts_in_parts: bool = False
    plays_team: bool = False

    def unmet_by_settings(
        self, agent: str, parameters: AgentParameters, memory: Memory, actions: ActionSpace
    ) -> Iterator[str]:
        """Unmet requirements that are known before the networks are built.

        :param agent: the agent's name, for messages
        """
        given = list(parameters.network_wrappers)
        for name, requirement in self.network_requirements.items():
            if not requirement.is_optional and name not in given:
                yield (
                    f"agent '{agent}' needs a network '{name}', but the names in network_wrappers are {shown(given)}: "
                    f"set network_wrappers['{name}']"
                )
        yield from _unmet_by_framework(agent, parameters)
        if self.needs_bounded_actions and not (isinstance(actions, BoxActionSpace) and actions.is_bounded):
            found, advice = type(actions).__name__, "choose another agent or environment"
            if isinstance(actions, BoxActionSpace):
                found = "a space without bounds"
                advice = "choose ClippedPPO or A2C, which need no bounds, or give the action space bounds"
            yield f"agent '{agent}' needs continuous actions with finite bounds, not {found}: {advice}"
        if self.plays_team:
            if not isinstance(actions, TeamActionSpace):
                yield (
                    f"agent '{agent}' plays a team of players: use it in a MultiAgentGraphManager, with an environment "
                    f"of several players"
                )
        elif isinstance(actions, MultiDiscreteActionSpace) and not self.acts_in_parts:
            digits, are_many = sum(map(math.log10, actions.counts)), math.prod(actions.counts) > 4096
            found = f"there are 10^{digits:.1f}, more than 4096" if are_many else "env_params.combines_choices is False"
            advice = "" if are_many else "set it to True, or "
            yield (
                f"agent '{agent}' needs one number for each combination of the {len(actions.counts)} choices of an "
                f"action, and {found}: {advice}choose ClippedPPO or A2C, which make each choice separately"
            )
        yield from self._unmet_by_memory(agent, parameters, memory)
        n_step = parameters.algorithm.n_step
        for part, most in ((f"agent '{agent}'", self.max_n_step), (type(memory).__name__, memory.max_n_step)):
            if n_step > most:
                yield (
                    f"algorithm.n_step is {n_step}, and {part} does not support n-step sums of rewards: "
                    f"set algorithm.n_step to -1"
                )
        if self.rescalers and parameters.algorithm.policy_gradient_rescaler not in self.rescalers:
            yield unknown_rescaler(agent, parameters.algorithm.policy_gradient_rescaler, self.rescalers)

    def _unmet_by_memory(self, agent: str, parameters: AgentParameters, memory: Memory) -> Iterator[str]:
        waits = parameters.algorithm.store_transitions_only_when_episodes_are_terminated
        recorded = [part.load_memory_from_file_path for part in (parameters.algorithm, parameters.memory)]
        if all(recorded) and recorded[0] != recorded[1]:
            yield (
                f"agent '{agent}' loads its memory from one setting, but algorithm.load_memory_from_file_path and "
                f"memory.load_memory_from_file_path differ: leave one out"
            )
        is_recorded = any(recorded)
        # copies with other goals have other rewards, and no returns
        knows_returns = (receives_episodes(memory) or waits or is_recorded) and not memory.relabels
        for requirement, is_met, learned, lacks in (
            (MemoryRequirement.EPISODES, returns_complete_episodes(memory), "complete episodes", "keep"),
            (MemoryRequirement.RETURNS, knows_returns, "the returns of complete episodes", "compute"),
        ):
            if self.memory_requirement is requirement and not is_met:
                yield (
                    f"agent '{agent}' learns from {learned}, and its memory, {type(memory).__name__}, does not "
                    f"{lacks} them: set memory to EpisodicExperienceReplayParameters()"
                )

        unit, size = getattr(parameters.memory, "max_size", None) or (MemoryGranularity.Episodes, 0)
        for name, network in parameters.network_wrappers.items():
            if unit is MemoryGranularity.Transitions and network.batch_size > size:
                yield (
                    f"batch_size of network '{name}' is {network.batch_size}, and memory.max_size is {size} "
                    f"transitions: make the memory larger or the batch smaller"
                )

    def unmet_by_networks(self, agent: str, networks: Mapping[str, NetworkWrapper], exploration: Any) -> Iterator[str]:
        """Unmet requirements that are known after the networks and the exploration policy are built. Networks that only
        act are skipped, because the process that trains them has checked them."""
        if self.predicts_values and draws_by_probabilities(exploration):
            yield (
                f"exploration of agent '{agent}' needs probabilities, but the agent predicts values of actions: "
                f"set exploration to EGreedyParameters()"
            )
        for name, requirement in self.network_requirements.items():
            if name in networks and (heads := networks[name].head_outputs) is not None:
                yield from requirement.unmet_by(
                    f"network '{name}' of agent '{agent}'", heads, networks[name].has_target
                )


def _unmet_by_framework(agent: str, parameters: AgentParameters) -> Iterator[str]:
    task = parameters.task_parameters
    framework = DEFAULT_FRAMEWORK if task is None else task.framework_type
    middlewares = [network.middleware_parameters for network in parameters.network_wrappers.values()]
    for part in (parameters.algorithm, *middlewares, parameters.curiosity):
        trained_on = getattr(part, "frameworks", None)
        # a process that only acts, such as a rollout worker, does not train the part
        if trained_on is not None and framework not in (*trained_on, Frameworks.acting):
            yield (
                f"agent '{agent}': {type(part).__name__} learns only on {', '.join(one.value for one in trained_on)}, "
                f"and this run is on {framework.value}: use {' or '.join(f'-f {one.name}' for one in trained_on)}"
            )


def requirements_of(declarer: Any) -> AgentRequirements:
    """The requirements of an agent. An inherited requirement does not apply if the agent overrides the method that
    needs it."""
    declared = [one.name for one in fields(AgentRequirements) if hasattr(declarer, one.name)]
    found = {
        name: getattr(declarer, name) for name in declared if name not in REPLACED_BY or not is_replaced(declarer, name)
    }
    return AgentRequirements(**found)


def unmet_by_recurrent_networks(
    agent: str, recurrent: Sequence[str], asked: str, learns_from_sequences: bool, learns_from_stored_states: bool
) -> Iterator[str]:
    """Reasons why an agent cannot learn with recurrent networks.

    :param recurrent: the names of the recurrent networks
    :param asked: the name of the network that chooses actions
    :param learns_from_sequences: True if batches are segments of episodes
    :param learns_from_stored_states: True if the recurrent state of the network ``asked`` is stored with each step
    """
    advice = "set middleware_parameters to FCMiddlewareParameters()"
    for name in recurrent:
        if name != asked and learns_from_stored_states:
            yield (
                f"network '{name}' of agent '{agent}' does not act, so it has no recurrent state to "
                f"learn from: {advice}"
            )
    if recurrent and not (learns_from_sequences or learns_from_stored_states):
        yield (
            f"agent '{agent}' learns from each state without the states before it, and a recurrent network needs them: "
            f"{advice}, or choose actor-critic, PPO or DQN"
        )


def unknown_rescaler(agent: str, rescaler: Any, known: Sequence[PolicyGradientRescaler]) -> str:
    """The message for an agent that does not support its ``policy_gradient_rescaler``."""
    advice = f"one of {', '.join(map(str, known))}" if known else "another one"
    return (
        f"algorithm.policy_gradient_rescaler of agent '{agent}' is {rescaler}, which it cannot use: set it to {advice}"
    )


POLICY_OUTPUTS: Any = (("probabilities", "log_probabilities"), ("mean", "standard_deviation"))
Q = HeadRequirement("QHeadParameters", ("q",))
V = HeadRequirement("VHeadParameters", ("v",))
POLICY = HeadRequirement("PolicyHeadParameters", *POLICY_OUTPUTS)
PPO_POLICY = HeadRequirement("PPOHeadParameters", *POLICY_OUTPUTS)
TEAM_POLICY = HeadRequirement("TeamPolicyHeadParameters", ("probabilities", "log_probabilities"))
TEAM_Q = HeadRequirement("TeamQHeadParameters", ("q",))
MIXING = HeadRequirement("MixingHeadParameters", ("weights_1", "offsets_1", "weights_2", "offset_2"))
Q_OF_ACTION = HeadRequirement("DDPGVHeadParameters", ("q",))
ACTOR = HeadRequirement("DDPGActorHeadParameters", ("action", "pre_activation"))
