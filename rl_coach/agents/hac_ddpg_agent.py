"""Hierarchical actor-critic: DDPG on each level of a hierarchy of goals (Levy et al. 2019, "Learning Multi-Level
Hierarchies with Hindsight")."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from rl_coach.agents.core.episode import EpisodeInProgress
from rl_coach.agents.ddpg_agent import DDPGAgent, DDPGAgentParameters, DDPGAlgorithmParameters
from rl_coach.agents.rules.deterministic_policy import ddpg_stages
from rl_coach.architectures.network_wrapper import NetworkWrapper
from rl_coach.architectures.update import Stages
from rl_coach.base_parameters import AlgorithmParameters
from rl_coach.core_types import ActionInfo, ActionType, Directive, RunPhase, Transition
from rl_coach.filters.filter import changes_nothing
from rl_coach.memories.episodic.episodic_hindsight_experience_replay import EpisodicHindsightExperienceReplay
from rl_coach.memories.episodic.episodic_hrl_hindsight_experience_replay import PENALTY
from rl_coach.policy.action_choice import PolicyDescription
from rl_coach.spaces import GoalsSpace
from rl_coach.utilities.requirements import FRACTION, whole


class HACDDPGAlgorithmParameters(DDPGAlgorithmParameters):
    """Hyperparameters of a level.

    :ivar time_limit: H, the number of actions in which the level must reach its goal. Values are at least -H. A subgoal
        that was tested and missed gets the reward -H
    :ivar sub_goal_testing_rate: the share of subgoals that are tested: the level below pursues them without exploration
    """

    constraints = {"time_limit": whole(1), "sub_goal_testing_rate": FRACTION}

    def __init__(self) -> None:
        super().__init__()
        self.time_limit = 40
        self.sub_goal_testing_rate = 0.5


class HACDDPGAgentParameters(DDPGAgentParameters):
    """DDPG for a level of hierarchical actor-critic. The memory must support hindsight."""

    algorithm_names = ("HAC", "HAC_DDPG")
    why_not_in_own_loop = "the agent is a level of a hierarchy; use a preset with HACGraphManager, such as Pendulum_HAC"
    path = "rl_coach.agents.hac_ddpg_agent:HACDDPGAgent"
    algorithm: HACDDPGAlgorithmParameters

    def __init__(self) -> None:
        super().__init__()
        self.algorithm = HACDDPGAlgorithmParameters()


class HACEpisode(EpisodeInProgress):
    """An episode of a level.

    :ivar tests_subgoal: True if the level below pursues the last action (a subgoal) without exploration
    """

    def __init__(self, algorithm: AlgorithmParameters):
        super().__init__(algorithm)
        self.tests_subgoal = False


class HACDDPGAgent(DDPGAgent):
    """A level of hierarchical actor-critic (algorithm 1). Its update rule is DDPG's.

    The memory's ``goals_space`` computes rewards from the states' ``desired_goal``. The level's episode terminates when
    this goal is reached. Other ends truncate the episode: the time limit, and the end of the environment's episode. The
    environment may have another goal than the level.

    :ivar subgoals: the goals of the level below, which are this level's actions; None for the lowest level
    """

    network_requirements = DDPGAgent.network_requirements
    episode_class = HACEpisode
    episode: HACEpisode

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__(agent_parameters, parent)
        self.subgoals: GoalsSpace | None = None

    def unmet_by_settings(self) -> Iterator[str]:
        yield from super().unmet_by_settings()
        if not isinstance(self.memory, EpisodicHindsightExperienceReplay):
            yield (
                f"agent '{self.name}' needs a memory with hindsight, and {type(self.memory).__name__} has none: "
                f"set memory to EpisodicHindsightExperienceReplayParameters(), with the settings of the preset "
                f"Pendulum_HAC"
            )
        if self.subgoals is not None and not changes_nothing(self.output_filter):
            yield (
                f"agent '{self.name}' has goals as actions, and its output_filter would change them: remove the filter"
            )

    @property
    def _value_bounds(self) -> tuple[float, float]:
        """The smallest and the largest value: -H, for a goal that is missed for H actions, and 0."""
        low, high = self.ap.algorithm.clip_critic_targets or (-float(self.ap.algorithm.time_limit), 0.0)
        return low, high

    def create_networks(self) -> dict[str, NetworkWrapper]:
        """Create DDPG's networks. A sigmoid limits the critic to values from -H to 0, as in the paper, or to
        ``clip_critic_targets``. Without this limit, the actor would follow wrong values of actions that are not in the
        data.
        """
        for head in self.ap.network_wrappers["critic"].heads_parameters:
            if hasattr(head, "value_bounds"):  # other heads, such as a user's own head, may have no bounds
                head.value_bounds = self._value_bounds
        return super().create_networks()

    def make_update_rule(self) -> Stages:
        """DDPG's update rule, with targets within the bounds of the critic."""
        algorithm, is_huber = self.ap.algorithm, self.ap.network_wrappers["critic"].replace_mse_with_huber_loss
        return ddpg_stages(algorithm.action_penalty, self._value_bounds, is_huber, self.next_value)

    def act(self, action: ActionType | None = None) -> ActionInfo | None:
        """Choose an action; see ``Agent.act``. Above the lowest level, the action is a directive: a subgoal, and
        whether the level below must pursue it without exploration.
        """
        chosen = super().act(action)
        if self.subgoals is None or chosen is None:
            return chosen
        # a level that is itself tested tests all its subgoals
        self.episode.tests_subgoal = self._phase is RunPhase.TRAIN and (
            self.episode.is_tested or bool(self.rng.random() < self.ap.algorithm.sub_goal_testing_rate)
        )
        directive: Any = Directive(chosen.action, self.episode.tests_subgoal)
        return ActionInfo(directive)

    def update_transition_before_adding_to_replay_buffer(self, transition: Transition) -> Transition:
        """Set the level's reward for its own goal, and the penalty of a tested subgoal that was missed."""
        next_state: Any = transition.next_state
        goals, goal = self.ap.memory.goals_space, next_state["desired_goal"]
        transition.reward, transition.terminated = goals.get_reward_for_goal_and_state(goal, next_state)
        transition.game_over = transition.game_over or transition.terminated
        if self.subgoals is not None:
            _, is_reached = self.subgoals.get_reward_for_goal_and_state(np.asarray(transition.action), next_state)
            is_missed = self.episode.tests_subgoal and not is_reached
            transition.info[PENALTY] = -float(self.ap.algorithm.time_limit) if is_missed else 0.0
        return transition

    def policy_description(self) -> PolicyDescription:
        """The policy of the actor. Above the lowest level, its actions are goals for the level below."""
        return super().policy_description()
