"""Several agents that act in one environment as if they were one."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any, Union

import numpy as np

from rl_coach.agents.agent_group import AgentGroup
from rl_coach.base_parameters import AgentParameters, VisualizationParameters
from rl_coach.core_types import ActionInfo, ActionType, Directive, EnvResponse
from rl_coach.spaces import ActionSpace, AgentSelection, GoalsSpace, SpacesDefinition
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError, choose_from, short_dynamic_import


class DecisionPolicy:
    """Makes one action from the choices of several agents."""

    def choose_action(self, actions_info: dict[str, ActionInfo]) -> ActionInfo:
        """Make one action. :param actions_info: the choice of each deciding agent, by the agent's name"""
        raise NotImplementedError(f"{type(self).__name__} must define choose_action")


class SingleDecider(DecisionPolicy):
    """A single agent decides. The deciding agent can be changed at any time.

    :param default_decision_maker: the name of the agent that decides at first
    """

    def __init__(self, default_decision_maker: str):
        self._decision_maker = default_decision_maker

    @property
    def decision_maker(self) -> str:
        """The name of the agent that decides."""
        return self._decision_maker

    @decision_maker.setter
    def decision_maker(self, value: str) -> None:
        self._decision_maker = value

    def choose_action(self, actions_info: dict[str, ActionInfo]) -> ActionInfo:
        if self._decision_maker not in actions_info:
            suggestion = choose_from(self._decision_maker, actions_info)
            raise CoachError(f"there is no deciding agent '{self._decision_maker}'{suggestion}")
        return actions_info[self._decision_maker]


class RoundRobin(DecisionPolicy):
    """The agents decide in turn, in the given order.

    :param num_agents: number of agents that decide
    """

    def __init__(self, num_agents: int):
        self.num_agents = num_agents
        self._turn = 0

    def choose_action(self, actions_info: dict[str, ActionInfo]) -> ActionInfo:
        if len(actions_info) != self.num_agents:
            raise CoachError(
                f"RoundRobin({self.num_agents}) got the actions of {len(actions_info)} agents: "
                f"set num_agents to the number of deciding agents"
            )
        chosen = list(actions_info.values())[self._turn]
        self._turn = (self._turn + 1) % self.num_agents
        return chosen


class MajorityVote(DecisionPolicy):
    """The discrete action that most agents chose. If several actions have the same number of votes, the first agent
    that chose one of these actions decides."""

    def choose_action(self, actions_info: dict[str, ActionInfo]) -> ActionInfo:
        votes = Counter(int(info.action) for info in actions_info.values())  # type: ignore[arg-type]
        winner = max(votes, key=votes.__getitem__)
        return next(info for info in actions_info.values() if info.action == winner)


class MeanDecision(DecisionPolicy):
    """The mean of the agents' continuous actions."""

    def choose_action(self, actions_info: dict[str, ActionInfo]) -> ActionInfo:
        actions = np.asarray([info.action for info in actions_info.values()], dtype=np.float64)
        return ActionInfo(actions.mean(axis=0))


class RewardPolicy(Enum):
    """The reward that the agents of a composite agent see: a reward for reaching the goal of the level above, the
    environment's reward, or the sum of the environment's rewards in the episode so far.
    """

    ReachingGoal = 0
    NativeEnvironmentReward = 1
    AccumulatedEnvironmentRewards = 2


@dataclass
class CompositeEpisode:
    """The saved episode of several agents.

    :param agents: the episode of each agent, by name
    :param incoming_action: the present directive, None without a directive
    :param last_action_info: the last action of all agents together
    :param reward_so_far: the sum of the environment's rewards
    :param decision_policy: the state of the decision policy; None in checkpoints of earlier releases
    """

    agents: dict[str, Any]
    incoming_action: Any
    last_action_info: ActionInfo | None
    reward_so_far: Any
    decision_policy: dict[str, Any] | None = None


plain_data.register(CompositeEpisode)


class CompositeAgent(AgentGroup):
    """Several agents that act together. All agents observe, some or all decide, and a decision policy makes one action
    from their choices.

    :param agents_parameters: the parameters of the agents by name, or of a single agent
    :param visualization_parameters: settings of the output, the same for all agents
    :param decision_policy: makes one action from the choices of the agents
    :param out_action_space: the action space of the agents; a dict gives each agent a separate action space
    :param in_action_space: the choices of the level above, for instance ``AgentSelection`` or ``GoalsSpace``
    :param decision_makers: a dict from an agent's name to True if the agent's choice counts, or one value for all
        agents. The other agents only receive the decision.
    :param reward_policy: the reward that the agents see
    """

    algorithm_names = ("Composite",)
    why_not_in_own_loop = "it consists of several agents; give a CompositeAgent to a LevelManager"

    def __init__(
        self,
        agents_parameters: Union[AgentParameters, dict[str, AgentParameters]],
        visualization_parameters: VisualizationParameters,
        decision_policy: DecisionPolicy,
        out_action_space: Union[ActionSpace, dict[str, ActionSpace]],
        in_action_space: ActionSpace | None = None,
        decision_makers: Union[bool, dict[str, bool]] = True,
        reward_policy: RewardPolicy = RewardPolicy.NativeEnvironmentReward,
        name: str = "CompositeAgent",
    ):
        super().__init__()
        if isinstance(agents_parameters, AgentParameters):
            agents_parameters = {agents_parameters.name or "agent": agents_parameters}
        self.agents_parameters = agents_parameters
        self.visualization_parameters = visualization_parameters
        self.decision_policy = decision_policy
        self.in_action_space = in_action_space
        self.out_action_space = self._for_each_agent(out_action_space)
        self.decision_makers = self._for_each_agent(decision_makers)
        self.reward_policy = reward_policy
        self.name = name
        self.full_name_id = name
        self.incoming_action: Any = None
        self._seed: np.random.SeedSequence | None = None
        self._reward_so_far: Any = 0.0
        if reward_policy is RewardPolicy.ReachingGoal and not isinstance(in_action_space, GoalsSpace):
            raise CoachError(f"RewardPolicy.ReachingGoal of '{name}' needs a GoalsSpace as in_action_space")
        if not any(self.decision_makers.values()):
            raise CoachError(
                f"decision_makers of '{name}' is False for each agent: "
                f"set it to True for at least one of {', '.join(self.decision_makers)}"
            )

    def _for_each_agent(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            return dict.fromkeys(self.agents_parameters, value)
        unknown = [name for name in value if name not in self.agents_parameters]
        if unknown:
            raise CoachError(f"there is no agent '{unknown[0]}'{choose_from(unknown[0], self.agents_parameters)}")
        return {name: value.get(name, False) for name in self.agents_parameters}

    def create_agents(self) -> None:
        seeds = self._seed.spawn(len(self.agents_parameters)) if self._seed is not None else []
        for position, (name, given) in enumerate(self.agents_parameters.items()):
            parameters = copy.deepcopy(given)
            parameters.name = name
            parameters.visualization = self.visualization_parameters
            agent = short_dynamic_import(parameters.path)(parameters, parent=self)
            agent.parent = self
            if seeds:
                agent.seed(seeds[position])
            self.agents[name] = agent

    @property
    def path_of_members(self) -> tuple[str, ...]:
        return (self.name,)

    def set_environment_parameters(self, spaces: SpacesDefinition) -> None:
        for name, agent in self.agents.items():
            own = copy.copy(spaces)
            own.action = self.out_action_space[name] or spaces.action
            agent.set_environment_parameters(own)

    def seed(self, seed: Any) -> None:
        """Give each agent a separate random stream, also if the agents are created later."""
        self._seed = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        for agent, child in zip(self.agents.values(), self._seed.spawn(len(self.agents))):
            agent.seed(child)

    def reset_internal_state(self) -> None:
        self._reward_so_far = 0.0
        for agent in self.agents.values():
            agent.begin_episode()

    def act(self, action: ActionType | None = None) -> ActionInfo:
        """Let the deciding agents choose, combine their choices, and pass the decision to all agents."""
        if action is not None:
            self.last_action_info = ActionInfo(action)
            for agent in self.agents.values():
                agent.act(action)
            return self.last_action_info
        chosen = {name: self._choice_of(name) for name, decides in self.decision_makers.items() if decides}
        decision = self.decision_policy.choose_action(chosen)
        for name, agent in self.agents.items():
            if name not in chosen:
                agent.act(decision.action)
            elif chosen[name] is not decision:
                agent.replace_last_action(decision)
        self.last_action_info = decision
        return decision

    def _choice_of(self, name: str) -> ActionInfo:
        choice = self.agents[name].act()
        if choice is None:
            raise CoachError(
                f"agent '{name}' chooses no actions, so it cannot be a decision maker of '{self.name}': set "
                f"decision_makers['{name}'] to False"
            )
        return choice

    def observe(self, env_response: EnvResponse) -> bool:
        """Show the response to all agents, with the reward of the reward policy.

        :return: True if the environment has ended the episode, or if each agent has ended its episode
        """
        response = self._with_reward(env_response)
        over = [agent.observe(response) for agent in self.agents.values()]
        return bool(env_response.game_over) or all(over)

    def _with_reward(self, env_response: EnvResponse) -> EnvResponse:
        if self.reward_policy is RewardPolicy.NativeEnvironmentReward:
            return env_response
        response = copy.copy(env_response)
        if self.reward_policy is RewardPolicy.AccumulatedEnvironmentRewards:
            self._reward_so_far = self._reward_so_far + env_response.reward
            response.reward = self._reward_so_far
        elif self.incoming_action is not None:
            assert isinstance(self.in_action_space, GoalsSpace)
            reward, _ = self.in_action_space.get_reward_for_goal_and_state(
                self.incoming_action, env_response.next_state
            )
            response.reward = reward
        return response

    def put_episode_aside(self) -> CompositeEpisode:
        agents = {name: agent.put_episode_aside() for name, agent in self.agents.items()}
        policy = dict(vars(self.decision_policy))
        return CompositeEpisode(agents, self.incoming_action, self.last_action_info, self._reward_so_far, policy)

    def take_up_episode(self, episode: CompositeEpisode, is_restored: bool = False) -> None:
        self.incoming_action, self.last_action_info = episode.incoming_action, episode.last_action_info
        self._reward_so_far = episode.reward_so_far
        vars(self.decision_policy).update(episode.decision_policy or {})
        for name, agent in self.agents.items():
            agent.take_up_episode(episode.agents[name], is_restored)

    def set_incoming_directive(self, action: Any) -> None:
        """With ``AgentSelection`` and a ``SingleDecider``, the directive names the agent that decides from now on. Any
        other directive is passed to each agent.
        """
        self.incoming_action = Directive.of(action).goal
        if isinstance(self.decision_policy, SingleDecider) and isinstance(self.in_action_space, AgentSelection):
            self.decision_policy.decision_maker = list(self.agents)[int(self.incoming_action)]
            return
        for agent in self.agents.values():
            agent.set_incoming_directive(action)

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "decision_policy": dict(vars(self.decision_policy))}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        vars(self.decision_policy).update(state["decision_policy"])
