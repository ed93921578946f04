"""A level of a graph: an agent, and the environment or the next lower level in which the agent acts."""

from __future__ import annotations

import copy
import operator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Union, cast

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
from rl_coach.environments.environment_interface import EnvironmentInterface, num_copies_in
from rl_coach.saver import SaverCollection
from rl_coach.spaces import ActionSpace, SpacesDefinition
from rl_coach.utilities import plain_data
from rl_coach.utils import CoachError

if TYPE_CHECKING:
    from rl_coach.environments.environment import Environment


@dataclass
class LevelEpisode:
    """A saved episode of a level.

    :param is_over: True if the episode has ended and the next episode has not begun
    :param observation_due: True if the agent has not seen the first state yet
    :param reset_due: True if the level's limit of steps is reached, so the next goal from the level above begins an
        episode for the agent
    """

    agent: Any
    is_over: bool
    observation_due: bool
    reset_due: bool


plain_data.register(LevelEpisode)


class LevelManager(EnvironmentInterface):
    """A level of a graph: lets its agent act in an environment or in the next lower level. A level has the methods of
    an environment, so the level above can act in it.

    In the phase ``TEST`` the agent acts in a separate environment for evaluation. The training episode is saved
    meanwhile and continues unchanged afterwards.

    :param name: the level's name
    :param agents: the agent that acts in this level; also as a list or dict with one entry. To let several agents act
        together, pass a ``CompositeAgent``.
    :param environment: the environment, or the level manager of the next lower level
    :param real_environment: the environment of the lowest level, if ``environment`` is a level
    :param steps_limit: the largest number of the agent's steps within one step of the level above; None for one
    :param should_reset_agent_state_after_time_limit_passes: True if each goal from the level above begins a new episode
        for the agent
    :param spaces_definition: the agent's spaces; None uses the spaces of the environment
    :param evaluation_environment_factory: builds the environment for evaluation, at the first evaluation. None
        evaluates in the training environment, so each evaluation ends the training episode

    :ivar agent: the agent that acts in this level
    :ivar ended_rewards: total rewards of ended episodes that the graph has not counted yet; only for levels with
        several episodes at a time
    :cvar is_fed: True if other processes act, and the level receives their experience
    :cvar trains_in_one_episode: True if heatup and training have one episode at a time; False if several episodes run
        at the same time, such as in copies of the environment or in other processes
    :ivar training_steps: environment steps of heatup and training, set before each evaluation
    :ivar training_steps_of: returns the agent's training steps so far, in the unit of the run's schedule; updates by
        default
    :ivar left: returns the limit of the next step in a unit (a class of ``StepMethod``), or None for no limit; only
        for levels that make many environment steps in one call of ``step``
    """

    is_fed = False
    trains_in_one_episode = True

    def __init__(
        self,
        name: str,
        agents: Union[AgentInterface, dict[str, AgentInterface], list[AgentInterface]],
        environment: Union[Environment, LevelManager, None],
        real_environment: Environment | None = None,
        steps_limit: EnvironmentSteps | None = None,
        should_reset_agent_state_after_time_limit_passes: bool = False,
        spaces_definition: SpacesDefinition | None = None,
        evaluation_environment_factory: Callable[[], Environment] | None = None,
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
                f"level '{name}' needs one agent: to let several agents act together, pass a CompositeAgent"
            )
        self.agent = agents
        # None if the agent learns only from recorded data, so that the level takes no steps
        self.environment = cast("Environment", environment)
        self._simulator: Environment | None = None if isinstance(environment, LevelManager) else environment
        self.real_environment: Environment | None = real_environment or self._simulator
        self.steps_limit = steps_limit
        self.should_reset_agent_state_after_time_limit_passes = should_reset_agent_state_after_time_limit_passes
        self.evaluation_environment: Environment | None = None
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
        self._is_closed = False  # True if the agent's episode ended with its goal, before the environment's episode
        self._training_episode: Any = None
        self.agent.parent = self
        self.agent.create_agents()
        self.build(spaces_definition)

    def build(self, spaces_definition: SpacesDefinition | None = None) -> None:
        """Pass the spaces to the agent, which builds its networks and memory from the spaces.

        :param spaces_definition: the spaces; None uses the spaces of the environment
        :raises CoachError: if there are neither spaces nor an environment
        """
        real = self.real_environment
        if spaces_definition is None:
            if real is None:
                raise CoachError(f"level '{self.name}' has no environment: set spaces_definition")
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
        :param stop_if_asked: ends the run if the user has pressed Ctrl-C; code that waits for a person calls it
        """
        self.agent.connect((graph, self.name), run_parameters, stop_if_asked)

    def setup_logger(self) -> None:
        """Open the agent's files."""
        self.agent.setup_logger()

    @property
    def agents(self) -> Mapping[str, AgentInterface]:
        """The agent by its name, for code written for Intel's Coach."""
        return MappingProxyType({self.agent.name: self.agent})

    @property
    def acting_agent(self) -> AgentInterface:
        """The agent whose actions reach the environment."""
        return self.agent

    @property
    def has_real_environment(self) -> bool:
        """True if the level acts in an environment, not in a lower level."""
        return self._simulator is not None

    @property
    def action_space(self) -> ActionSpace:
        """The space of the choices that the level above may make for this level's agent: the agent's
        ``in_action_space``. For a ``GoalsSpace``, a box with the goals' bounds."""
        space = self.agent.in_action_space
        if space is None:
            raise CoachError(f"level '{self.name}' cannot receive goals: set in_action_space of its agent")
        return space.for_the_level_above

    def get_random_action(self) -> ActionType:
        return self.action_space.sample()

    def get_random_action_with_info(self) -> ActionInfo:
        """A random choice from ``action_space``, with its probability."""
        return self.action_space.sample_with_info()

    @property
    def phase(self) -> RunPhase:
        """The phase of the run. The change to ``TEST`` saves the training episode, and the change from ``TEST`` to
        another phase restores the training episode."""
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
        """Return the state of the episode in progress. ``take_up_episode`` continues the episode, in this run or in
        another run."""
        return LevelEpisode(self.agent.put_episode_aside(), self.episode_over, self._observation_due, self._reset_due)

    def take_up_episode(self, episode: Any, is_restored: bool = False) -> None:
        """Continue an episode that ``put_episode_aside`` returned; see ``AgentInterface.take_up_episode``.

        :param is_restored: True if the episode comes from a checkpoint
        """
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
        """Seed the random streams of the evaluation that begins. If training and evaluation share one environment, the
        environment is not seeded."""
        self.agent.seed_evaluation(seed.spawn(1)[0])
        if self.has_real_environment and self.evaluation_environment is not None:
            self.evaluation_environment.seed_episodes(int(seed.generate_state(1)[0]))

    @property
    def shares_environment_with_evaluation(self) -> bool:
        """True if training and evaluation share one environment, so that an evaluation ends the training episode."""
        return self.has_real_environment and self._evaluation_environment_factory is None

    def reset_environment(self, force_environment_reset: bool = False) -> None:
        """Begin an episode in the environment if this level acts in an environment.

        :param force_environment_reset: reset a simulator even if its game could continue, with lives left
        """
        if self.has_real_environment and self.has_one_episode:
            self.active_environment.reset_internal_state(force_environment_reset)

    def reset_internal_state(self, force_environment_reset: bool = False) -> None:
        """Begin an episode for the agent. :param force_environment_reset: no effect in this class"""
        self.episode_over = self._reset_due = self._is_closed = False
        if self.has_one_episode:
            self._observation_due = True
            self.agent.begin_episode()

    @property
    def last_env_response(self) -> EnvResponse | None:
        """The last response of the lowest level's environment."""
        return self.active_environment.last_env_response

    def step(self, action: Any) -> EnvResponse:
        """Act until ``steps_limit`` is reached or the agent's episode is over. If each goal begins a new episode of the
        agent, the current episode is then stored as complete.

        :param action: the goal of the level above, also as a ``Directive``; None if there is no level above
        :return: the environment's last response; its reward is the sum over all steps
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

    # A step in two halves, for a caller that steps the environment itself. It calls ``look`` and ``choose``, then steps
    # the environment, then calls ``take_in``.

    def look(self, directive: ActionType | Directive | None = None) -> None:
        """Pass the first state of its episode to the agent, if the agent has not observed this state yet.

        :param directive: the goal that the level above sets for the agent; None without a level above
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
        """Return the agent's action for the environment. The result is None if the environment must not step, because
        the agent's episode is over or the agent only learns from its memory."""
        return None if self.episode_over else self.agent.act()

    def take_in(self, response: EnvResponse) -> None:
        """Pass the environment's response to the agent. Then ``episode_over`` is True if the agent's episode has
        ended."""
        self.environment_steps += 1
        self.episode_over = self.agent.observe(response) or response.game_over

    def emulate_step_on_trainer(self, transition: Transition) -> bool:
        """Pass a transition from another process to the agent. :return: True if the transition ended the episode"""
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
        """True if only one episode is in progress at a time, and ``episode_over`` is its state."""
        return self.trains_in_one_episode or self._phase is RunPhase.TEST

    @property
    def total_reward_in_current_episode(self) -> Any:
        """The sum of the environment's rewards in the current episode."""
        return self.active_environment.total_reward_in_current_episode

    def should_train(self) -> bool:
        """True if the next call of ``train`` would let the agent learn."""
        return self.agent.should_train()

    def train(self, at_most: int | None = None) -> int:
        """Let the agent learn if updates are due. :return: number of training steps

        :param at_most: number of updates left in the run; None for no limit
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
        ended earlier, together with its goal.
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
        """Properties of the level, as descriptions by name. A checkpoint fits only if its descriptions are equal."""
        agent = {f"{what} of {self.name}/{self.agent.name}": text for what, text in self.agent.fits().items()}
        return {**agent, **self.spaces_definition.fits(self.name)}

    def get_state(self) -> dict[str, Any]:
        """The state of the level, from which a run can continue exactly: the agent, the environments with their random
        streams, and the episode in progress if the episode can be saved."""
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
        """The episode in progress as plain data; None if it cannot be saved, so that a resumed run begins a new one."""
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
        """Continue the episode that was in progress when the state was saved. Call ``set_state`` before.

        :return: False if a new episode must begin, because the episode was not saved or the simulator cannot repeat it
        """
        episode = state["episode"]
        if episode is None or "episode" not in episode:  # a compiled level stores its episodes in another form
            return False
        simulator, saved = self._simulator, state["environments"].get("training")
        if simulator is not None and not self._has_copies_of(saved):
            return False
        if simulator is not None and not simulator.set_episode_state(episode["environment"]):
            simulator.set_state(saved)
            return False
        self.take_up_episode(plain_data.restore(episode["episode"]), is_restored=True)
        return True

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``get_state`` returned. A new episode must begin."""
        self.agent.set_state(state["agent"])
        self.environment_steps = state["environment_steps"]
        environments = state["environments"]
        if self._simulator is not None and self._has_copies_of(environments["training"]):
            self._simulator.set_state(environments["training"])
        if "evaluation" in environments and self._evaluation_environment_factory is not None:
            self.evaluation_environment = self.evaluation_environment or self._evaluation_environment_factory()
            self.evaluation_environment.set_state(environments["evaluation"])

    def _has_copies_of(self, saved: dict[str, Any]) -> bool:
        """True if a saved simulator has as many copies. Otherwise, the copies keep their own random streams."""
        return num_copies_in(saved) in (None, getattr(self._simulator, "num_copies", 1))

    def save_checkpoint(self, checkpoint_prefix: str) -> None:
        """Let the agent write values that its state does not contain; see ``AgentInterface.save_checkpoint``."""
        self.agent.save_checkpoint(checkpoint_prefix)

    def restore_checkpoint(self, checkpoint_dir: str) -> None:
        """Let the agent read the files that ``save_checkpoint`` wrote."""
        self.agent.restore_checkpoint(checkpoint_dir)

    def set_session(self, sess: Any) -> None:
        """Do nothing: there are no sessions. :param sess: anything"""
        self.agent.set_session(sess)

    def collect_savers(self) -> SaverCollection:
        """The savers of the agent."""
        return self.agent.collect_savers(self.name)

    def evaluation_state(self) -> tuple[dict[str, Any] | None, int]:
        """The state that an evaluation changes: the state of the evaluation environment (None before the first
        evaluation), and the number of environment steps."""
        environment = self.evaluation_environment
        return None if environment is None else environment.get_state(), self.environment_steps

    def undo_evaluation(self, state: tuple[dict[str, Any] | None, int]) -> None:
        """Discard the evaluation in progress without recording it.

        :param state: the result of ``evaluation_state`` before the evaluation
        """
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
