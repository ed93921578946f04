"""An environment and an agent that are simple enough to predict every number that the control loop should give."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters, TaskParameters, VisualizationParameters
from rl_coach.core_types import ActionInfo, EnvironmentEpisodes, EnvironmentSteps, EnvResponse, RunPhase, TrainingSteps
from rl_coach.environments.environment import Environment, EnvironmentParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.logger import Logger
from rl_coach.spaces import DiscreteActionSpace, SpacesDefinition, StateSpace, VectorObservationSpace
from rl_coach.utils import TrainingError


class CountingEnvironmentParameters(EnvironmentParameters):
    """:param episode_length: steps until termination"""

    def __init__(self, episode_length: int = 5):
        super().__init__(level="counting")
        self.episode_length = episode_length
        self.frame_skip = 1

    @property
    def path(self) -> str:
        return "tests.graph_managers.counting:CountingEnvironment"


class CountingEnvironment(Environment):
    """Shows how many steps the episode has; each step gives a reward of 1. Counts what is done to it."""

    def __init__(self, episode_length: int, **settings: Any):
        super().__init__(**settings)
        self.episode_length = episode_length
        self.rng = np.random.default_rng(self.seed)
        self.state_space = StateSpace({"observation": VectorObservationSpace(2)})
        self.action_space = DiscreteActionSpace(3)
        self.resets = 0
        self.steps = 0
        self.is_closed = False
        self.reset_internal_state(True)

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.resets += 1
        self.state = {"observation": np.array([0.0, self.rng.random()])}

    def _take_action(self, action: Any) -> None:
        self.steps += 1
        time = self.state["observation"][0] + 1
        self.state = {"observation": np.array([time, self.rng.random()])}
        self.reward = 1.0
        self.done = bool(time >= self.episode_length)

    def _update_state(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.rng.bit_generator.state = state["rng"]


class CountingAlgorithmParameters(AlgorithmParameters):
    """
    :ivar updates_per_training: updates of one training phase
    :ivar can_train: whether there are networks
    :ivar fails_at_update: the loss of that update is not finite; 0 for never
    """

    def __init__(self) -> None:
        super().__init__()
        self.updates_per_training = 1
        self.can_train = True
        self.fails_at_update = 0


class CountingAgentParameters(AgentParameters):
    def __init__(self) -> None:
        super().__init__(algorithm=CountingAlgorithmParameters(), exploration=None, memory=None, networks={})

    @property
    def path(self) -> str:
        return "tests.graph_managers.counting:CountingAgent"


class CountingAgent(AgentInterface):
    """Acts at random, learns nothing and keeps the books as Coach's agents do."""

    def __init__(self, agent_parameters: Any, parent: Any = None):
        super().__init__()
        self.ap = agent_parameters
        self.name = agent_parameters.name
        self.agent_logger = Logger()
        self.rng = np.random.default_rng()
        self.calls: list[str] = []
        self.weights = np.zeros(3, dtype=np.float32)
        self.total_steps_counter = 0
        self.current_episode = 0
        self.updates = 0
        self.episode: list[EnvResponse] = []
        self.episodes: list[list[EnvResponse]] = []
        self.evaluation_rewards: list[float] = []
        self.steps_at_last_training = 0

    @property
    def phase(self) -> RunPhase:
        return self._phase

    @phase.setter
    def phase(self, value: RunPhase) -> None:
        self.reset_evaluation_state(value)
        self._phase = value

    def reset_evaluation_state(self, val: RunPhase) -> None:
        if val is RunPhase.TEST:
            self.evaluation_rewards = []
        elif self._phase is RunPhase.TEST and self.evaluation_rewards:
            self.agent_logger.set_current_time(self.current_episode + 1)
            self.agent_logger.create_signal_value("Evaluation Reward", float(np.mean(self.evaluation_rewards)))

    @property
    def is_on_policy(self) -> bool:
        return False

    @property
    def can_train(self) -> bool:
        return self.ap.algorithm.can_train

    @property
    def training_iteration(self) -> int:
        return self.updates

    def set_environment_parameters(self, spaces: SpacesDefinition) -> None:
        self.spaces = spaces

    def setup_logger(self) -> None:
        task = self.ap.task_parameters
        if task is not None:
            self.agent_logger.set_logger_filenames(
                str(task.experiment_path), "simple_rl_graph.main_level.agent", task_id=task.task_index
            )

    def seed(self, seed: Any) -> None:
        self.rng = np.random.default_rng(seed)

    def reset_internal_state(self) -> None:
        self.calls.append("reset")
        self.episode = []

    def act(self, action: Any = None) -> ActionInfo:
        self.calls.append("act")
        if self._phase is not RunPhase.TEST:
            self.total_steps_counter += 1
        self.last_action_info = ActionInfo(int(self.rng.integers(3)) if action is None else action)
        return self.last_action_info

    def observe(self, env_response: EnvResponse) -> bool:
        self.calls.append("observe")
        self.episode.append(env_response)
        return env_response.game_over

    def should_train(self) -> bool:
        playing = self.ap.algorithm.num_consecutive_playing_steps.num_steps
        return self.can_train and self.total_steps_counter - self.steps_at_last_training >= playing

    def train(self) -> float:
        algorithm = self.ap.algorithm
        if not self.should_train():
            return 0.0
        self.steps_at_last_training = self.total_steps_counter
        wanted = algorithm.updates_per_training
        self.updates += wanted if self.updates_left is None else min(wanted, self.updates_left)
        if 0 < algorithm.fails_at_update <= self.updates:
            raise TrainingError(f"the loss of network 'main' is not finite at update {self.updates}")
        self.weights += self.rng.random(3, dtype=np.float32)
        return 0.5

    def handle_episode_ended(self) -> None:
        self.calls.append("ended")
        reward = float(sum(response.reward for response in self.episode[1:]))
        if self._phase is RunPhase.TEST:
            self.evaluation_rewards.append(reward)
            return
        self.episodes.append(self.episode)
        self.current_episode += 1
        self.agent_logger.set_current_time(self.current_episode)
        self.agent_logger.create_signal_value("Training Iter", self.updates)
        self.agent_logger.create_signal_value("Total steps", self.total_steps_counter)
        self.agent_logger.create_signal_value("Training Reward", reward)
        self.agent_logger.dump_output_csv()

    def put_episode_aside(self) -> list[EnvResponse]:
        return self.episode

    def take_up_episode(self, episode: list[EnvResponse], is_restored: bool = False) -> None:
        self.episode = episode

    def get_success_rate(self) -> float:
        if not self.evaluation_rewards:
            return 0.0
        return float(np.mean([reward >= 5 for reward in self.evaluation_rewards]))

    def get_state(self) -> dict[str, Any]:
        return {
            "weights": self.weights.copy(),
            "rng": self.rng.bit_generator.state,
            "counters": [self.total_steps_counter, self.current_episode, self.updates, self.steps_at_last_training],
            "logger": self.agent_logger.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.weights = state["weights"]
        self.rng.bit_generator.state = state["rng"]
        self.total_steps_counter, self.current_episode, self.updates, self.steps_at_last_training = state["counters"]
        self.agent_logger.set_state(state["logger"])

    def close(self) -> None:
        self.agent_logger.close()


def schedule(improve: Any, between: Any = None, evaluation: Any = None, heatup: Any = None) -> ScheduleParameters:
    parameters = ScheduleParameters()
    parameters.heatup_steps = heatup or EnvironmentSteps(0)
    parameters.evaluation_steps = evaluation or EnvironmentEpisodes(0)
    parameters.steps_between_evaluation_periods = between or TrainingSteps(10**10)
    parameters.improve_steps = improve
    return parameters


def create(tmp_path: Any, schedule_params: ScheduleParameters, **settings: Any) -> BasicRLGraphManager:
    """A graph of the two; ``settings`` go to the algorithm, the environment or the task, whichever knows them."""
    agent, environment = CountingAgentParameters(), CountingEnvironmentParameters()
    task = TaskParameters(experiment_path=str(tmp_path), seed=7)
    for name, value in settings.items():
        target = next(holder for holder in (agent.algorithm, environment, task) if hasattr(holder, name))
        setattr(target, name, value)
    graph = BasicRLGraphManager(agent, environment, schedule_params, VisualizationParameters())
    graph.create_graph(task)
    return graph
