"""A level of a graph: agents and the environment that they act in, which may be the level below."""

from __future__ import annotations

import copy
from typing import Any, Callable, Union

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.composite_agent import CompositeAgent
from rl_coach.core_types import ActionInfo, ActionType, EnvironmentSteps, EnvResponse, RunPhase
from rl_coach.environments.environment_interface import EnvironmentInterface
from rl_coach.spaces import ActionSpace, SpacesDefinition
from rl_coach.utils import CoachError


class LevelManager(EnvironmentInterface):
    """Looks like an environment from above and lets its agents act below.

    While the phase is ``TEST`` the level acts in an environment of its own for evaluation. The training episode is
    parked meanwhile and goes on afterwards as if nothing had happened.

    :param name: the level's name
    :param agents: the agent that acts here; a list or dict of one is one agent too. Several agents that act as one
        are a ``CompositeAgent``.
    :param environment: the environment, or the level manager of the level below
    :param real_environment: the environment at the bottom, where ``environment`` is a level
    :param steps_limit: how many steps the agent acts for each step of the level above; None for one
    :param should_reset_agent_state_after_time_limit_passes: each directive of the level above begins a new episode
        for the agent
    :param spaces_definition: the agents' spaces; None takes them from the environment
    :param evaluation_environment_factory: builds the environment to evaluate in, at the first evaluation. None
        evaluates in the training environment, which then abandons its episode.
    :ivar training_steps: environment steps of heatup and training, told before each evaluation
    """

    def __init__(
        self,
        name: str,
        agents: Union[AgentInterface, dict[str, AgentInterface], list[AgentInterface]],
        environment: Any,
        real_environment: Any = None,
        steps_limit: EnvironmentSteps | None = None,
        should_reset_agent_state_after_time_limit_passes: bool = False,
        spaces_definition: SpacesDefinition | None = None,
        evaluation_environment_factory: Callable[[], Any] | None = None,
    ):
        super().__init__()
        steps_limit = EnvironmentSteps(1) if steps_limit is None else steps_limit
        if not isinstance(steps_limit, EnvironmentSteps):
            raise CoachError(f"steps_limit of level '{name}' counts EnvironmentSteps, not {steps_limit!r}")
        self.name = self.full_name_id = name
        self.agents = _agents_by_name(name, agents)
        self.environment = environment
        self.real_environment = real_environment or environment
        self.steps_limit = steps_limit
        self.should_reset_agent_state_after_time_limit_passes = should_reset_agent_state_after_time_limit_passes
        self.parent_graph_manager: Any = None
        self.has_real_environment = environment is not None and not isinstance(environment, LevelManager)
        self.evaluation_environment: Any = None
        self._evaluation_environment_factory = evaluation_environment_factory
        self.active_environment: Any = environment
        self.environment_steps = 0
        self.training_steps = 0
        self.episode_over = True
        self._observation_due = True
        self._reset_due = False
        self._acts_in_turns = steps_limit.num_steps > 1
        self._parked: tuple[bool, bool, bool] = (True, True, False)
        self._connect_agents()
        self._acting_agent = next(iter(self.agents.values()))
        self.build(spaces_definition)

    def _connect_agents(self) -> None:
        for agent in self.agents.values():
            agent.parent = self
            if isinstance(agent, CompositeAgent):
                agent.create_agents()

    def build(self, spaces_definition: SpacesDefinition | None = None) -> None:
        """Hand the agents their spaces, and have them build what depends on these."""
        real = self.real_environment
        if spaces_definition is None:
            spaces_definition = SpacesDefinition(
                state=real.state_space, goal=real.goal_space, action=self.environment.action_space,
                reward=real.reward_space,
            )  # fmt: skip
        self.spaces_definition = spaces_definition
        for agent in self.agents.values():
            agent.set_environment_parameters(spaces_definition)

    def setup_logger(self) -> None:
        """Open the agents' files."""
        for agent in self.agents.values():
            agent.setup_logger()

    @property
    def action_space(self) -> ActionSpace:
        """What the level above may choose: the incoming action space of the acting agent."""
        agent: Any = self._acting_agent
        space = agent.in_action_space if isinstance(agent, CompositeAgent) else agent.ap.algorithm.in_action_space
        if space is None:
            raise CoachError(f"level '{self.name}' takes no directives: its agent has no in_action_space")
        return space

    def get_random_action(self) -> ActionType:
        return self.action_space.sample()

    def get_random_action_with_info(self) -> ActionInfo:
        """A random directive, with its probability."""
        return self.action_space.sample_with_info()

    @property
    def level_manager(self) -> LevelManager:
        """Itself; agents ask for it through whatever holds them."""
        return self

    @property
    def acting_agent(self) -> AgentInterface:
        """The agent whose actions reach the environment."""
        return self._acting_agent

    @property
    def phase(self) -> RunPhase:
        """What the run is doing; entering ``TEST`` parks the training episode, leaving it takes it up again."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        evaluated = self._phase is RunPhase.TEST
        if value is RunPhase.TEST and not evaluated:
            self._park_training_episode()
        self._phase = value
        for agent in self.agents.values():
            agent.phase = value
        if evaluated and value is not RunPhase.TEST:
            self._resume_training_episode()
        if self.has_real_environment:
            self.active_environment.phase = value

    def _park_training_episode(self) -> None:
        for agent in self.agents.values():
            agent.suspend_episode()
        self._parked = (self.episode_over, self._observation_due, self._reset_due)
        if self._evaluation_environment_factory is not None:
            if self.evaluation_environment is None:
                self.evaluation_environment = self._evaluation_environment_factory()
            self.active_environment = self.evaluation_environment
        if self.has_real_environment:
            self.active_environment.training_steps = self.training_steps

    def _resume_training_episode(self) -> None:
        self.active_environment = self.environment
        self.episode_over, self._observation_due, self._reset_due = self._parked
        for agent in self.agents.values():
            agent.resume_episode()

    @property
    def shares_environment_with_evaluation(self) -> bool:
        """Whether an evaluation ends the training episode, for want of an environment of its own."""
        return self.has_real_environment and self._evaluation_environment_factory is None

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        """Begin an episode in the environment, if it is this level that holds it.

        :param force_environment_reset: begin anew even where the simulator would go on (a game with lives left)
        """
        if self.has_real_environment:
            self.active_environment.reset_internal_state(force_environment_reset)

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        """Begin an episode for the agents."""
        self.episode_over = False
        self._observation_due = True
        self._reset_due = False
        for agent in self.agents.values():
            agent.reset_internal_state()

    @property
    def last_env_response(self) -> EnvResponse | None:
        """What the environment at the bottom answered last."""
        return self.active_environment.last_env_response

    def step(self, action: Any) -> EnvResponse:
        """Act until ``steps_limit`` is reached or the episode is over for the agent.

        :param action: a directive for the agent, None if there is no level above
        :return: the environment's last answer; over several steps, with the sum of their rewards
        """
        agent = self._acting_agent
        environment = self.active_environment
        if action is not None:
            self._pass_down(action)
        if self._observation_due:
            self._observation_due = False
            self.episode_over = agent.observe(environment.last_env_response)
        response = self._act_in_turns() if self._acts_in_turns else self._act_once(agent, environment)
        if self.should_reset_agent_state_after_time_limit_passes:
            self._reset_due = True
        return response

    def _pass_down(self, directive: ActionType) -> None:
        for agent in self.agents.values():
            agent.set_incoming_directive(directive)
        # an agent that has reached its goal begins anew, though the environment's episode goes on
        if self._reset_due or self.episode_over:
            self.reset_internal_state()

    def _act_once(self, agent: AgentInterface, environment: Any) -> EnvResponse:
        if self.episode_over:
            return environment.last_env_response
        action_info = agent.act()
        if action_info is None:
            # imitating agents learn from what is in their memory; the environment stands still
            return environment.last_env_response
        response = environment.step(action_info.action)
        self.environment_steps += 1
        self.episode_over = agent.observe(response) or response.game_over
        return response

    def _act_in_turns(self) -> EnvResponse:
        agent, environment = self._acting_agent, self.active_environment
        total_reward: Any = 0.0
        for _ in range(self.steps_limit.num_steps):
            before = self.environment_steps
            response = self._act_once(agent, environment)
            if self.environment_steps > before:
                total_reward += response.reward
            if self.episode_over:
                break
        response = copy.copy(response)
        response.reward = total_reward
        return response

    @property
    def has_one_episode(self) -> bool:
        """Whether there is one episode in progress at a time, which ``episode_over`` tells of."""
        return True

    @property
    def episode_reward(self) -> Any:
        """What the environment has given in the present episode."""
        return self.active_environment.total_reward_in_current_episode

    def should_train(self) -> bool:
        """Whether the next call of ``train`` would let an agent learn."""
        return any(agent.should_train() for agent in self.agents.values())

    def train(self, at_most: int | None = None) -> int:
        """Let the agents learn, if the time has come for them.

        :param at_most: how many updates the run still wants
        :return: how many updates were made
        """
        total = 0
        for agent in self.agents.values():
            agent.updates_left = None if at_most is None else max(0, at_most - total)
            before = agent.training_iteration
            agent.train()
            total += agent.training_iteration - before
        return total

    @property
    def can_train(self) -> bool:
        """Whether there is anything to train."""
        return any(agent.can_train for agent in self.agents.values())

    def handle_episode_ended(self) -> None:
        """Close the books of the episode that has just ended."""
        if self.has_real_environment:
            self.active_environment.handle_episode_ended()
        for agent in self.agents.values():
            agent.handle_episode_ended()

    def discard_evaluation(self) -> None:
        """Forget the evaluation in progress, so that nothing incomplete is recorded when the phase changes."""
        for agent in self.agents.values():
            agent.reset_evaluation_state(RunPhase.TEST)

    def sync(self) -> None:
        """Have the agents take the newest weights."""
        for agent in self.agents.values():
            agent.sync()

    def should_stop(self) -> bool:
        """Whether the success rate of every agent has reached the environment's target."""
        if self.real_environment is None:
            return False
        target = self.real_environment.get_target_success_rate()
        return all(agent.get_success_rate() >= target for agent in self.agents.values())

    def get_state(self) -> dict[str, Any]:
        """All that is needed to go on exactly: agents, environments with their random streams, and the episode in
        progress, where that can be saved."""
        environments = {}
        if self.has_real_environment:
            environments["training"] = self.environment.get_state()
            if self.evaluation_environment is not None:
                environments["evaluation"] = self.evaluation_environment.get_state()
        return {
            "agents": {name: agent.get_state() for name, agent in self.agents.items()},
            "environments": environments,
            "environment_steps": self.environment_steps,
            "episode": self._episode_state(),
        }

    def _episode_state(self) -> dict[str, Any] | None:
        if self._phase is RunPhase.TEST:
            return None
        state: dict[str, Any] = {
            "agents": {name: agent.get_episode_state() for name, agent in self.agents.items()},
            "flags": [self.episode_over, self._observation_due, self._reset_due],
        }
        if self.has_real_environment:
            state["environment"] = self.environment.get_episode_state()
        return None if None in state["agents"].values() or state.get("environment", state) is None else state

    def resume_saved_episode(self, state: dict[str, Any]) -> bool:
        """Go on in the middle of the episode of ``get_state``; ``set_state`` came before.

        :return: False if it was not saved, or the simulator does not repeat it; a new one must begin then
        """
        episode = state["episode"]
        if episode is None:
            return False
        if self.has_real_environment and not self.environment.set_episode_state(episode["environment"]):
            self.environment.set_state(state["environments"]["training"])
            return False
        for name, agent in self.agents.items():
            agent.set_episode_state(episode["agents"][name])
        self.episode_over, self._observation_due, self._reset_due = episode["flags"]
        return True

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from ``get_state``, with a new episode."""
        for name, agent in self.agents.items():
            agent.set_state(state["agents"][name])
        self.environment_steps = state["environment_steps"]
        environments = state["environments"]
        if "training" in environments:
            self.environment.set_state(environments["training"])
        if "evaluation" in environments and self._evaluation_environment_factory is not None:
            self.evaluation_environment = self.evaluation_environment or self._evaluation_environment_factory()
            self.evaluation_environment.set_state(environments["evaluation"])

    def evaluation_state(self) -> dict[str, Any]:
        """What an evaluation changes at this level, before it begins."""
        environment = self.evaluation_environment
        return {
            "environment": None if environment is None else environment.get_state(),
            "environment_steps": self.environment_steps,
        }

    def undo_evaluation(self, state: dict[str, Any]) -> None:
        """Go back to ``evaluation_state``: an evaluation that was broken off is held again from its beginning."""
        self.environment_steps = state["environment_steps"]
        if state["environment"] is not None:
            self.evaluation_environment.set_state(state["environment"])
        elif self.evaluation_environment is not None:
            self.evaluation_environment.close()
            self.evaluation_environment = None

    def close(self) -> None:
        """Write what agents have not written yet, and close the environments."""
        for agent in self.agents.values():
            agent.close()
        if self.has_real_environment:
            self.environment.close()
            if self.evaluation_environment is not None:
                self.evaluation_environment.close()


def _agents_by_name(level: str, agents: Any) -> dict[str, AgentInterface]:
    if isinstance(agents, AgentInterface):
        agents = [agents]
    if isinstance(agents, list):
        agents = {agent.name: agent for agent in agents}
    if not isinstance(agents, dict) or len(agents) != 1:
        raise CoachError(f"level '{level}' takes one agent; several that act together are a CompositeAgent")
    return agents
