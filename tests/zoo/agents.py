"""Agents that count what is asked of them, and agents as people wrote them for Coach."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl_coach.agents.agent import Agent
from rl_coach.agents.agent_interface import AgentInterface
from rl_coach.agents.dqn_agent import DQNAgent
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgent
from rl_coach.base_parameters import AgentParameters, AlgorithmParameters
from rl_coach.core_types import ActionInfo, EnvResponse, RunPhase
from rl_coach.logger import Logger
from rl_coach.spaces import SpacesDefinition
from rl_coach.utils import TrainingError


def of_class(parameters: AgentParameters, agent: type) -> AgentParameters:
    """The parameters, of a class that says which agent they are for."""
    path = property(lambda self: f"{agent.__module__}:{agent.__name__}")
    parameters.__class__ = type("Parameters", (type(parameters),), {"path": path})
    return parameters


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
    """Neither networks nor a memory."""

    def __init__(self) -> None:
        super().__init__(algorithm=CountingAlgorithmParameters(), exploration=None, memory=None, networks={})

    @property
    def path(self) -> str:
        return "tests.zoo.agents:CountingAgent"


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
                str(task.experiment_path), "simple_rl_graph.main_level.main_level.agent", task_id=task.task_index
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


def counting_agent(name: str) -> CountingAgent:
    """An agent without a graph."""
    parameters = CountingAgentParameters()
    parameters.name = name
    return CountingAgent(parameters)


class CoachDQN(DQNAgent):
    """Computes its targets in NumPy."""

    def learn_from_batch(self, batch):
        network_keys = self.ap.network_wrappers["main"].input_embedders_parameters.keys()
        q_st_plus_1, TD_targets = self.networks["main"].parallel_prediction(
            [
                (self.networks["main"].target_network, batch.next_states(network_keys)),
                (self.networks["main"].online_network, batch.states(network_keys)),
            ]
        )
        selected_actions = self.select_actions(batch.next_states(network_keys), q_st_plus_1)
        TD_errors = []
        for i in range(batch.size):
            new_target = (
                batch.rewards()[i]
                + (1.0 - batch.terminateds()[i]) * self.ap.algorithm.discount * (q_st_plus_1[i][selected_actions[i]])
            )
            TD_errors.append(np.abs(new_target - TD_targets[i, batch.actions()[i]]))
            TD_targets[i, batch.actions()[i]] = new_target
        importance_weights = self.update_transition_priorities_and_get_weights(TD_errors, batch)
        result = self.networks["main"].train_and_sync_networks(
            batch.states(network_keys), TD_targets, importance_weights=importance_weights
        )
        total_loss, losses, unclipped_grads = result[:3]
        return total_loss, losses, unclipped_grads


class SelectingDQN(DQNAgent):
    """Chooses for itself what to bootstrap from."""

    def select_actions(self, next_states, q_st_plus_1):
        assert set(next_states) == {"observation"}
        return np.argmax(q_st_plus_1, axis=1)


class CoachPG(PolicyGradientsAgent):
    """Computes its advantages in NumPy."""

    def learn_from_batch(self, batch):
        network_keys = self.ap.network_wrappers["main"].input_embedders_parameters.keys()
        targets = self.rescaled(batch.n_step_discounted_rewards(), self.last_gradient_update_step_idx)
        result = self.networks["main"].train_and_sync_networks(
            {**batch.states(network_keys), "output_0_0": batch.actions()}, targets
        )
        return result[:3]


class ExtendedPG(PolicyGradientsAgent):
    """Looks on while its parent learns."""

    def learn_from_batch(self, batch):
        self.seen = getattr(self, "seen", 0) + batch.size
        return super().learn_from_batch(batch)


class Alternating(Agent):
    """Has no networks and learns nothing."""

    @property
    def is_on_policy(self) -> bool:
        return False

    def choose_action(self, curr_state):
        return ActionInfo(self.current_episode_steps_counter % 2)


class Pretrained(DQNAgent):
    """Makes 7 updates when training begins."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.calls: list[tuple[RunPhase, int, int]] = []

    def before_training(self) -> None:
        self.calls.append((self.phase, self.clock.steps, self.memory.length()))
        self.update_loop.learn(7)
