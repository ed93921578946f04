"""A level of a graph: an agent and its environment, which may be the level below."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Callable, Mapping, Union, cast

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.core_types import (
    ActionInfo,
    ActionType,
    Directive,
    EnvironmentSteps,
    EnvResponse,
    RunPhase,
    StepMethod,
    Transition,
)
from rl_coach.environments.environment_interface import EnvironmentInterface
from rl_coach.environments.environment_protocols import SimulatedEnvironment, Simulator, SteppedEnvironment
from rl_coach.saver import SaverCollection
from rl_coach.spaces import ActionSpace, SpacesDefinition
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError


@dataclass
class LevelEpisode:
    """A saved episode of a level.

    :param agent: the agent's saved episode
    :param is_over: the episode has ended, and the next has not begun
    :param observation_due: the agent has not seen the first state yet
    :param reset_due: the time limit has passed, so the next directive begins an episode for the agent
    """

    agent: Any
    is_over: bool
    observation_due: bool
    reset_due: bool


plain_data.register(LevelEpisode)


class LevelManager(EnvironmentInterface):
    """A level of a graph. For the level above, it has the methods of an environment; its agent acts in the level
    below.

    While the phase is ``TEST`` the level acts in its own environment for evaluation. The training episode is saved
    meanwhile and continues unchanged afterwards.

    :param name: the level's name
    :param agents: the agent that acts here; also as a list or dict with one entry. Several agents that act as one
        are a ``CompositeAgent``.
    :param environment: the environment, or the level manager of the level below
    :param real_environment: the environment at the bottom, if ``environment`` is a level
    :param steps_limit: number of the agent's steps in a step of the level above; None for one
    :param should_reset_agent_state_after_time_limit_passes: each directive of the level above begins a new episode
        for the agent
    :param spaces_definition: the agent's spaces; None takes them from the environment
    :param evaluation_environment_factory: builds the environment to evaluate in, at the first evaluation. None
        evaluates in the training environment, which then abandons its episode.

    :ivar agent: the agent that acts here
    :ivar ended_rewards: total rewards of episodes that ended while others continue, and that the graph has not counted
    :cvar is_fed: other processes act, and the level receives their experience
    :cvar trains_in_one_episode: heatup and training have one episode at a time, as evaluations have; False if several
        episodes begin and end by themselves, here or in other processes
    :ivar training_steps: environment steps of heatup and training, set before each evaluation
    :ivar training_steps_of: the agent's training steps so far, as the run's schedule counts them; updates by default
    :ivar left: function of the class of a ``StepMethod``: the limit of the next step in this unit, or None for no
        limit; for levels that make many environment steps in one step
    """

    is_fed = False
    trains_in_one_episode = True

    def __init__(
        self,
        name: str,
        agents: Union[AgentInterface, dict[str, AgentInterface], list[AgentInterface]],
        environment: Union[SimulatedEnvironment, LevelManager, None],
        real_environment: SimulatedEnvironment | None = None,
        steps_limit: EnvironmentSteps | None = None,
        should_reset_agent_state_after_time_limit_passes: bool = False,
        spaces_definition: SpacesDefinition | None = None,
        evaluation_environment_factory: Callable[[], SimulatedEnvironment] | None = None,
    ):
        super().__init__()
        steps_limit = EnvironmentSteps(1) if steps_limit is None else steps_limit
        if not isinstance(steps_limit, EnvironmentSteps) or steps_limit.num_steps < 1:
            raise CoachError(f"steps_limit of level '{name}' must be one or more EnvironmentSteps, not {steps_limit!r}")
        self.name = self.full_name_id = name
        if isinstance(agents, dict):
            agents = list(agents.values())
        if isinstance(agents, list) and len(agents) == 1:
            agents = agents[0]
        if not isinstance(agents, AgentInterface):
            raise CoachError(
                f"level '{name}' takes one agent: to let several agents act together, give it a CompositeAgent"
            )
        self.agent = agents
        # None if the agent learns only from recorded data; nothing steps then
        self.environment = cast(SteppedEnvironment, environment)
        self._simulator: Simulator | None = None if isinstance(environment, LevelManager) else environment
        self.real_environment: Simulator | None = real_environment or self._simulator
        self.steps_limit = steps_limit
        self.should_reset_agent_state_after_time_limit_passes = should_reset_agent_state_after_time_limit_passes
        self.evaluation_environment: SimulatedEnvironment | None = None
        self._evaluation_environment_factory = evaluation_environment_factory
        self.active_environment = self.environment
        self.environment_steps = 0
        self.training_steps = 0
        self.episode_over = True
        self.ended_rewards: list[float] = []
        self.left: Callable[[type[StepMethod]], int | None] = lambda unit: 1
        self._observation_due = True
        self._reset_due = False
        self.training_steps_of: Callable[[Any], int] = operator.attrgetter("training_iteration")
        self._is_closed = False  # the agent's episode ended with its directive, before the environment's episode
        self._training_episode: Any = None
        self.agent.parent = self
        self.agent.create_agents()
        self.build(spaces_definition)

    def build(self, spaces_definition: SpacesDefinition | None = None) -> None:
        """Give the agent its spaces. The agent builds its networks and memory from them.

        :raises CoachError: if there are neither spaces nor an environment
        """
        real = self.real_environment
        if spaces_definition is None:
            if real is None:
                raise CoachError(f"level '{self.name}' has no environment: give it a spaces_definition")
            spaces_definition = SpacesDefinition(
                state=real.state_space, goal=real.goal_space, action=self.environment.action_space,
                reward=real.reward_space,
            )  # fmt: skip
        self.spaces_definition = spaces_definition
        self.agent.set_environment_parameters(spaces_definition)

    def connect(
        self, graph: str, run_parameters: Callable[[], dict[str, Any]], stop_if_asked: Callable[[], None]
    ) -> None:
        """Connect the level to its graph.

        :param graph: the graph's name, for the names of files
        :param run_parameters: returns all parameters of the run
        :param stop_if_asked: ends the run if the user has asked for it; for code that waits for a person
        """
        self.agent.connect((graph, self.name), run_parameters, stop_if_asked)

    def setup_logger(self) -> None:
        """Open the agent's files."""
        self.agent.setup_logger()

    @property
    def agents(self) -> Mapping[str, AgentInterface]:
        """The agent by its name, for code written for Coach."""
        return MappingProxyType({self.agent.name: self.agent})

    @property
    def acting_agent(self) -> AgentInterface:
        """The agent whose actions reach the environment."""
        return self.agent

    @property
    def has_real_environment(self) -> bool:
        """True if the level acts in a simulator, not in the level below."""
        return self._simulator is not None

    @property
    def action_space(self) -> ActionSpace:
        """The directives that the level above may choose: the agent's incoming action space. If they are goals, a box
        with the goals' bounds."""
        space = self.agent.in_action_space
        if space is None:
            raise CoachError(f"level '{self.name}' takes no directives: its agent has no in_action_space")
        return space.for_the_level_above

    def get_random_action(self) -> ActionType:
        return self.action_space.sample()

    def get_random_action_with_info(self) -> ActionInfo:
        """A random directive, with its probability."""
        return self.action_space.sample_with_info()

    @property
    def phase(self) -> RunPhase:
        """The phase of the run; entering ``TEST`` saves the training episode, leaving ``TEST`` restores it."""
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        evaluated = self._phase is RunPhase.TEST
        if value is RunPhase.TEST and not evaluated:
            self._training_episode = self.put_episode_aside()
            self._enter_evaluation_environment()
        self._phase = value
        self.agent.phase = value
        if evaluated and value is not RunPhase.TEST:
            if self.has_real_environment:
                self.active_environment.pictures_beside = None
            self.active_environment = self.environment
            self.take_up_episode(self._training_episode)
        if self.has_real_environment:
            self.active_environment.phase = value

    def put_episode_aside(self) -> Any:
        """Save the episode in progress. ``take_up_episode`` continues it later, or in another run."""
        return LevelEpisode(self.agent.put_episode_aside(), self.episode_over, self._observation_due, self._reset_due)

    def take_up_episode(self, episode: Any, is_restored: bool = False) -> None:
        """Continue an episode of ``put_episode_aside``; see ``AgentInterface.take_up_episode``."""
        self.agent.take_up_episode(episode.agent, is_restored)
        self.episode_over = episode.is_over
        self._observation_due, self._reset_due = episode.observation_due, episode.reset_due
        self._is_closed = False

    def _enter_evaluation_environment(self) -> None:
        if self._evaluation_environment_factory is not None:
            if self.evaluation_environment is None:
                self.evaluation_environment = self._evaluation_environment_factory()
            self.active_environment = self.evaluation_environment
        if self.has_real_environment:
            self.active_environment.training_steps = self.training_steps
            self.active_environment.pictures_beside = self.agent.pictures_beside

    def seed_evaluation(self, seed: np.random.SeedSequence) -> None:
        """Seed the random streams of the evaluation that begins. An environment that is shared with training keeps
        training's stream."""
        self.agent.seed_evaluation(seed.spawn(1)[0])
        if self.has_real_environment and self.evaluation_environment is not None:
            self.evaluation_environment.seed_episodes(int(seed.generate_state(1)[0]))

    @property
    def shares_environment_with_evaluation(self) -> bool:
        """True if an evaluation ends the training episode, because it has no environment of its own."""
        return self.has_real_environment and self._evaluation_environment_factory is None

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        """Begin an episode in the environment if this level holds it.

        :param force_environment_reset: reset the simulator even if it could continue (a game with lives left)
        """
        if self.has_real_environment and self.has_one_episode:
            self.active_environment.reset_internal_state(force_environment_reset)

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        """Begin an episode for the agent."""
        self.episode_over = self._reset_due = self._is_closed = False
        if self.has_one_episode:
            self._observation_due = True
            self.agent.begin_episode()

    @property
    def last_env_response(self) -> EnvResponse | None:
        """The last answer of the environment at the bottom."""
        return self.active_environment.last_env_response

    def step(self, action: Any) -> EnvResponse:
        """Act until ``steps_limit`` is reached or the agent's episode is over. If each directive begins a new episode
        of the agent, its present episode is then complete and is stored.

        :param action: a directive for the agent, a goal or a ``Directive``; None if there is no level above
        :return: the environment's last answer; over several steps, with the sum of their rewards
        """
        if action is not None or self._observation_due:
            self.look(action)
        total_reward: Any = 0.0
        for _ in range(self.steps_limit.num_steps):
            chosen = None if self.episode_over else self.agent.act()
            if chosen is None:
                response = self._last_answer()
                break
            response = self.active_environment.step(chosen.action)
            self.take_in(response)
            total_reward += response.reward
            if self.episode_over:
                break
        if self.should_reset_agent_state_after_time_limit_passes:
            self._reset_due = True
        # the environment's episode continues, so the agent's episode must be closed here
        if action is not None and (self._reset_due or self.episode_over):
            self._is_closed = True
            self.agent.handle_episode_ended()
        if self.steps_limit.num_steps > 1:
            response = copy.copy(response)
            response.reward = total_reward
        return response

    # A step in two halves. Between them the caller may ask the environment itself. ``look`` and ``choose`` come before,
    # ``take_in`` after it.

    def look(self, directive: ActionType | Directive | None = None) -> None:
        """Show the agent the first state of its episode, if it has not seen it yet.

        :param directive: the choice of the level above for the agent; None without a level above
        """
        if directive is not None:
            self.agent.set_incoming_directive(directive)
            # an agent that has reached its goal begins a new episode, while the environment's episode continues
            if self._reset_due or self.episode_over:
                self.reset_internal_state()
        if self._observation_due:
            self._observation_due = False
            self.episode_over = self.agent.observe(self._last_answer())

    def choose(self) -> ActionInfo | None:
        """Return the agent's action for the environment. None if the environment must not step: the agent's episode is
        over, or the agent only learns from its memory."""
        return None if self.episode_over else self.agent.act()

    def take_in(self, response: EnvResponse) -> None:
        """Give the environment's answer to the agent. Then ``episode_over`` is True if the agent's episode has
        ended."""
        self.environment_steps += 1
        self.episode_over = self.agent.observe(response) or response.game_over

    def emulate_step_on_trainer(self, transition: Transition) -> bool:
        """Give the agent a transition of another process. :return: True if it ended the episode"""
        agent: Any = self.agent
        if self.episode_over:
            agent.begin_episode()
        self.episode_over = agent.observe_played(transition)
        if self.episode_over:
            agent.handle_episode_ended()
        return self.episode_over

    def _last_answer(self) -> EnvResponse:
        response = self.active_environment.last_env_response
        if response is None:
            raise CoachError(f"level '{self.name}' cannot act before its environment has begun an episode")
        return response

    @property
    def has_one_episode(self) -> bool:
        """True if there is one episode in progress at a time, with the state ``episode_over``."""
        return self.trains_in_one_episode or self._phase is RunPhase.TEST

    @property
    def total_reward_in_current_episode(self) -> Any:
        """The sum of the environment's rewards in the present episode."""
        return self.active_environment.total_reward_in_current_episode

    def should_train(self) -> bool:
        """True if the next call of ``train`` would let the agent learn."""
        return self.agent.should_train()

    def train(self, at_most: int | None = None) -> int:
        """Let the agent learn if updates are due.

        :param at_most: number of updates left in the run; None for no limit
        :return: number of training steps
        """
        agent = self.agent
        agent.updates_left = None if at_most is None else max(0, at_most)
        before = self.training_steps_of(agent)
        agent.train()
        return self.training_steps_of(agent) - before

    @property
    def can_train(self) -> bool:
        """True if the agent can be trained."""
        return self.agent.can_train

    def handle_episode_ended(self) -> None:
        """Let the environment and the agent complete the episode that has ended. The agent is skipped if its episode
        ended earlier, with a directive.
        """
        if self.has_real_environment:
            self.active_environment.handle_episode_ended()
        if not self._is_closed:
            self.agent.handle_episode_ended()

    def sync(self) -> None:
        """Let the agent load the newest weights."""
        self.agent.sync()

    def should_stop(self) -> bool:
        """True if the agent's success rate has reached the environment's target."""
        if self.real_environment is None:
            return False
        return self.agent.get_success_rate() >= self.real_environment.get_target_success_rate()

    def fits(self) -> dict[str, str]:
        """Descriptions by name that must be equal in two levels to restore the state of one in the other."""
        agent = {f"{what} of {self.name}/{self.agent.name}": text for what, text in self.agent.fits().items()}
        return {**agent, **self.spaces_definition.fits(self.name)}

    def get_state(self) -> dict[str, Any]:
        """Everything that is needed to continue exactly: the agent, the environments with their random streams, and the
        episode in progress if it can be saved."""
        environments = {}
        if self._simulator is not None:
            environments["training"] = self._simulator.get_state()
            if self.evaluation_environment is not None:
                environments["evaluation"] = self.evaluation_environment.get_state()
        return {
            "agent": self.agent.get_state(),
            "environments": environments,
            "environment_steps": self.environment_steps,
            "episode": self._episode_state(),
        }

    def _episode_state(self) -> dict[str, Any] | None:
        """The episode in progress as plain data; None if it cannot be saved; a resumed run then begins a new
        episode."""
        if self._phase is RunPhase.TEST:
            return None
        episode = self.put_episode_aside()
        if episode.agent is None:
            return None
        try:
            state: dict[str, Any] = {"episode": plain_data.flatten(episode)}
        except plain_data.UnsavableError:
            return None
        if self._simulator is not None:
            state["environment"] = self._simulator.get_episode_state()
        return None if None in state.values() else state

    def resume_saved_episode(self, state: dict[str, Any]) -> bool:
        """Continue the episode of ``get_state``. Call ``set_state`` before.

        :return: False if the episode was not saved, or the simulator cannot repeat it; then a new one must begin
        """
        episode = state["episode"]
        if episode is None or "episode" not in episode:  # a compiled level has another form
            return False
        simulator = self._simulator
        if simulator is not None and not simulator.set_episode_state(episode["environment"]):
            simulator.set_state(state["environments"]["training"])
            return False
        self.take_up_episode(plain_data.restore(episode["episode"]), is_restored=True)
        return True

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned. A new episode must begin."""
        self.agent.set_state(state["agent"])
        self.environment_steps = state["environment_steps"]
        environments = state["environments"]
        if self._simulator is not None:
            self._simulator.set_state(environments["training"])
        if "evaluation" in environments and self._evaluation_environment_factory is not None:
            self.evaluation_environment = self.evaluation_environment or self._evaluation_environment_factory()
            self.evaluation_environment.set_state(environments["evaluation"])

    def save_checkpoint(self, checkpoint_prefix: str) -> None:
        """Let the agent write values that its state does not contain; see ``AgentInterface.save_checkpoint``."""
        self.agent.save_checkpoint(checkpoint_prefix)

    def restore_checkpoint(self, checkpoint_dir: str) -> None:
        """Let the agent read the files of ``save_checkpoint``."""
        self.agent.restore_checkpoint(checkpoint_dir)

    def set_session(self, sess: Any) -> None:
        """Do nothing: there are no sessions. :param sess: anything"""
        self.agent.set_session(sess)

    def collect_savers(self) -> SaverCollection:
        """The savers of the agent."""
        return self.agent.collect_savers(self.name)

    def evaluation_state(self) -> tuple[dict[str, Any] | None, int]:
        """The part of this level's state that an evaluation changes: of its environment, if there is one, and steps."""
        environment = self.evaluation_environment
        return None if environment is None else environment.get_state(), self.environment_steps

    def undo_evaluation(self, state: tuple[dict[str, Any] | None, int]) -> None:
        """Discard the evaluation in progress, which is not recorded then, and restore ``evaluation_state``."""
        self.agent.reset_evaluation_state(RunPhase.TEST)
        of_environment, self.environment_steps = state
        environment = self.evaluation_environment
        if environment is None:
            return
        if of_environment is None:
            environment.close()
            self.evaluation_environment = None
        else:
            environment.set_state(of_environment)

    def close(self) -> None:
        """Write the agent's pending rows, and close the environments."""
        self.agent.close()
        if self._simulator is not None:
            self._simulator.close()
            if self.evaluation_environment is not None:
                self.evaluation_environment.close()
