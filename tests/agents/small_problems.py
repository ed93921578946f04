"""Problems that are learned in seconds, and graphs of agents on small networks that learn them."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.bootstrapped_dqn_agent import BootstrappedDQNAgentParameters
from rl_coach.agents.categorical_dqn_agent import CategoricalDQNAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.mmc_agent import MixedMonteCarloAgentParameters
from rl_coach.agents.n_step_q_agent import NStepQAgentParameters
from rl_coach.agents.naf_agent import NAFAgentParameters
from rl_coach.agents.nec_agent import NECAgentParameters
from rl_coach.agents.pal_agent import PALAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.qr_dqn_agent import QuantileRegressionDQNAgentParameters
from rl_coach.agents.rainbow_dqn_agent import RainbowDQNAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.head_parameters import DuelingQHeadParameters
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters
from rl_coach.base_parameters import (
    AgentParameters,
    Frameworks,
    MiddlewareScheme,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.environment import Environment, EnvironmentParameters
from rl_coach.exploration_policies.additive_noise import AdditiveNoiseParameters
from rl_coach.exploration_policies.ucb import UCBParameters
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import ConstantSchedule
from rl_coach.spaces import (
    ActionMaskSpace,
    ActionSpace,
    BoxActionSpace,
    DiscreteActionSpace,
    StateSpace,
    VectorObservationSpace,
)
from tests.frameworks import FRAMEWORK


class SmallEnvironment(Environment):
    """A base that says how a step goes in ``outcome``.

    :ivar steps: how many steps the episode has had
    """

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.rng = np.random.default_rng(self.seed)
        self.state_space = StateSpace(self.observations())
        self.action_space = self.actions()
        self.action_space.seed(self.seed)
        self.steps = 0
        self.reset_internal_state(True)

    def observations(self) -> dict[str, Any]:
        raise NotImplementedError

    def actions(self) -> ActionSpace:
        raise NotImplementedError

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        """Change ``state``. :return: reward, terminated, truncated"""
        raise NotImplementedError

    def first_state(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def _restart_environment_episode(self, force_environment_reset: bool = False) -> None:
        self.steps = 0
        self.state = self.first_state()

    def _take_action(self, action: Any) -> None:
        self.steps += 1
        self.reward, terminated, truncated = self.outcome(action)
        self.done, self.truncated = terminated or truncated, truncated and not terminated

    def _update_state(self) -> None:
        pass

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self.rng.bit_generator.state = state["rng"]


class Bandit(SmallEnvironment):
    """Ten pulls; the arm to pull is the one whose light is on. The best return is 10, a random one 5."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(2)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(2)

    def first_state(self) -> dict[str, np.ndarray]:
        return {"observation": np.eye(2, dtype=np.float32)[self.rng.integers(2)]}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = float(self.state["observation"][action])
        self.state = self.first_state()
        return reward, False, self.steps >= 10


class Target(SmallEnvironment):
    """Five shots at a target that is seen; the reward is how near they come, 0 at best."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(1)}

    def actions(self) -> ActionSpace:
        return BoxActionSpace(1, low=np.array([-2.0]), high=np.array([4.0]))

    def first_state(self) -> dict[str, np.ndarray]:
        return {"observation": self.rng.uniform(-1, 1, 1).astype(np.float32)}

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        reward = -abs(float(action[0]) - 1.0 - 2.0 * float(self.state["observation"][0]))
        self.state = self.first_state()
        return reward, False, self.steps >= 5


class MaskedChain(SmallEnvironment):
    """Five states in a row. Right leads on to a reward of 1 at the end; the third action is never allowed, and is a
    mistake of the agent if it is ever taken."""

    def observations(self) -> dict[str, Any]:
        return {"observation": VectorObservationSpace(5), "mask": ActionMaskSpace(3)}

    def actions(self) -> ActionSpace:
        return DiscreteActionSpace(3)

    def _state(self, position: int) -> dict[str, np.ndarray]:
        self.position = position
        return {"observation": np.eye(5, dtype=np.float32)[position], "mask": np.array([1.0, 1.0, 0.0], np.float32)}

    def first_state(self) -> dict[str, np.ndarray]:
        return self._state(0)

    def outcome(self, action: Any) -> tuple[float, bool, bool]:
        assert action != 2, "a masked action was taken"
        self.state = self._state(max(0, self.position + (1 if action == 1 else -1)))
        at_end = self.position == 4
        return float(at_end), at_end, self.steps >= 20


class SmallEnvironmentParameters(EnvironmentParameters):
    """:param problem: the class of the environment"""

    def __init__(self, problem: type[SmallEnvironment]):
        super().__init__(level=problem.__name__)
        self.frame_skip = 1
        self._problem = problem

    @property
    def path(self) -> str:
        return f"{self._problem.__module__}:{self._problem.__name__}"


def shrink(parameters: AgentParameters, learning_rate: float = 0.01) -> AgentParameters:
    """Small networks that learn fast."""
    for network in parameters.network_wrappers.values():
        network.learning_rate = learning_rate
        network.batch_size = 16
        activation = next(iter(network.input_embedders_parameters.values())).activation_function
        network.input_embedders_parameters = {
            "observation": InputEmbedderParameters(activation_function=activation, scheme=[Dense(16)])
        }
        network.middleware_parameters = FCMiddlewareParameters(scheme=MiddlewareScheme.Empty)
    return parameters


def dqn(parameters: AgentParameters | None = None) -> AgentParameters:
    agent = shrink(DQNAgentParameters() if parameters is None else parameters)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.algorithm.discount = 0.9
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    agent.exploration.evaluation_epsilon = 0.0
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


def ddqn() -> AgentParameters:
    return dqn(DDQNAgentParameters())


def dueling() -> AgentParameters:
    agent = dqn()
    agent.network_wrappers["main"].heads_parameters = [DuelingQHeadParameters()]
    agent.network_wrappers["main"].learning_rate = 0.001
    return agent


def prioritized() -> AgentParameters:
    agent = ddqn()
    agent.memory = PrioritizedExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, 512)
    return agent


def mixed_monte_carlo() -> AgentParameters:
    agent = dqn(MixedMonteCarloAgentParameters())
    agent.algorithm.discount = 0.5
    return agent


def persistent_advantage_learning() -> AgentParameters:
    agent = dqn(PALAgentParameters())
    agent.algorithm.discount = 0.5
    agent.algorithm.persistent_advantage_learning = True
    return agent


def categorical() -> AgentParameters:
    agent = dqn(CategoricalDQNAgentParameters())
    agent.algorithm.v_min, agent.algorithm.v_max, agent.algorithm.atoms = 0.0, 10.0, 21
    return agent


def quantile_regression() -> AgentParameters:
    agent = dqn(QuantileRegressionDQNAgentParameters())
    agent.algorithm.atoms = 8
    return agent


def rainbow() -> AgentParameters:
    agent = shrink(RainbowDQNAgentParameters(), 0.002)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.algorithm.discount = 0.5
    agent.algorithm.v_min, agent.algorithm.v_max, agent.algorithm.atoms = 0.0, 3.0, 13
    agent.memory.max_size = (MemoryGranularity.Transitions, 512)
    return agent


def n_step_q() -> AgentParameters:
    agent = shrink(NStepQAgentParameters(), 0.02)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.algorithm.discount = 0.5
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    agent.exploration.evaluation_epsilon = 0.0
    return agent


def bootstrapped() -> AgentParameters:
    agent = dqn(BootstrappedDQNAgentParameters())
    agent.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 3
    agent.exploration.architecture_num_q_heads = 3
    agent.exploration.bootstrapped_data_sharing_probability = 0.7
    return agent


def upper_confidence_bounds() -> AgentParameters:
    parameters = BootstrappedDQNAgentParameters()
    parameters.exploration = UCBParameters()
    agent = dqn(parameters)
    agent.network_wrappers["main"].heads_parameters[0].num_output_head_copies = 3
    agent.exploration.architecture_num_q_heads = 3
    return agent


def neural_episodic_control() -> AgentParameters:
    agent = shrink(NECAgentParameters(), 0.003)
    agent.algorithm.dnd_size, agent.algorithm.number_of_knn, agent.algorithm.n_step = 150, 5, 4
    agent.algorithm.discount = 0.5
    agent.exploration.epsilon_schedule = ConstantSchedule(0.3)
    agent.exploration.evaluation_epsilon = 0.0
    return agent


def normalized_advantages() -> AgentParameters:
    agent = shrink(NAFAgentParameters(), 0.01)
    agent.algorithm.discount = 0.3
    agent.algorithm.num_consecutive_training_steps = 2
    agent.algorithm.rate_for_copying_weights_to_target = 0.1
    agent.exploration = AdditiveNoiseParameters()
    return agent


def policy_gradients() -> AgentParameters:
    agent = shrink(PolicyGradientsAgentParameters(), 0.05)
    agent.algorithm.apply_gradients_every_x_episodes = 2
    return agent


def actor_critic() -> AgentParameters:
    agent = shrink(ActorCriticAgentParameters(), 0.03)
    agent.algorithm.apply_gradients_every_x_episodes = 1
    agent.algorithm.discount = 0.5
    return agent


def clipped_ppo() -> AgentParameters:
    agent = shrink(ClippedPPOAgentParameters(), 0.01)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.optimization_epochs = 4
    agent.algorithm.discount = 0.5
    return agent


def soft_actor_critic() -> AgentParameters:
    agent = shrink(SoftActorCriticAgentParameters(), 0.01)
    agent.network_wrappers["q"].heads_parameters[0].network_layers_sizes = (16,)
    agent.algorithm.discount = 0.3
    agent.algorithm.rate_for_copying_weights_to_target = 0.1
    agent.memory.max_size = (MemoryGranularity.Transitions, 500)
    return agent


# the agent, the problem, the steps that it learns in, and the return that it then reaches
PROBLEMS: dict[str, tuple[Callable[[], AgentParameters], type[SmallEnvironment], int, float]] = {
    "dqn": (dqn, Bandit, 400, 9.5),
    "ddqn": (ddqn, Bandit, 400, 9.5),
    "dueling": (dueling, Bandit, 400, 9.5),
    "prioritized": (prioritized, Bandit, 400, 9.5),
    "mixed_monte_carlo": (mixed_monte_carlo, Bandit, 400, 9.5),
    "persistent_advantage_learning": (persistent_advantage_learning, Bandit, 400, 9.5),
    "categorical": (categorical, Bandit, 400, 9.5),
    "quantile_regression": (quantile_regression, Bandit, 400, 9.5),
    "rainbow": (rainbow, Bandit, 400, 9.5),
    "n_step_q": (n_step_q, Bandit, 600, 9.5),
    "bootstrapped": (bootstrapped, Bandit, 400, 9.5),
    "upper_confidence_bounds": (upper_confidence_bounds, Bandit, 400, 9.5),
    "neural_episodic_control": (neural_episodic_control, Bandit, 400, 9.5),
    "normalized_advantages": (normalized_advantages, Target, 400, -2.5),
    "policy_gradients": (policy_gradients, Bandit, 600, 9.5),
    "actor_critic": (actor_critic, Bandit, 600, 9.5),
    "clipped_ppo": (clipped_ppo, Bandit, 640, 9.5),
    "soft_actor_critic": (soft_actor_critic, Target, 400, -2.5),
}


def schedule(improve: int, heatup: int = 40, evaluate_every: int = 10**9, episodes: int = 0) -> ScheduleParameters:
    parameters = ScheduleParameters()
    parameters.heatup_steps = EnvironmentSteps(heatup)
    parameters.improve_steps = EnvironmentSteps(improve)
    parameters.steps_between_evaluation_periods = EnvironmentSteps(evaluate_every)
    parameters.evaluation_steps = EnvironmentEpisodes(episodes)
    return parameters


def graph(
    agent: AgentParameters,
    problem: type[SmallEnvironment],
    directory: Any,
    schedule_parameters: ScheduleParameters | None = None,
    seed: int = 1,
    framework: Frameworks = FRAMEWORK,
) -> BasicRLGraphManager:
    """A graph that writes to a directory, made and ready."""
    visualization = VisualizationParameters(dump_parameters_documentation=False, dump_csv=False)
    manager = BasicRLGraphManager(
        agent, SmallEnvironmentParameters(problem), schedule_parameters or schedule(100), visualization
    )
    manager.create_graph(TaskParameters(framework, experiment_path=str(directory), seed=seed))
    return manager


def weights_of(manager: BasicRLGraphManager) -> list[np.ndarray]:
    """All numbers of the agent's networks, targets and optimizers included."""
    states = [network.state for network in manager.get_agent().networks.values()]
    return [np.array(array) for state in states for group in state.groups() for array in state.arrays(group)]
