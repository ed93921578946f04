"""Small runs to interrupt and resume: between them they have all that a checkpoint holds."""

from __future__ import annotations

import pathlib
from typing import Any

from rl_coach.agents.categorical_dqn_agent import CategoricalDQNAgentParameters
from rl_coach.agents.dqfd_agent import DQfDAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.gail_agent import GAILAgentParameters
from rl_coach.agents.td3_exp_agent import (
    RandomAgentParameters,
    TD3ExplorationAgentParameters,
    TD3GoalBasedAgentParameters,
    TD3IntrinsicRewardAgentParameters,
)
from rl_coach.architectures.middleware_parameters import LSTMMiddlewareParameters
from rl_coach.base_parameters import (
    AgentParameters,
    MiddlewareScheme,
    TaskParameters,
    VisualizationParameters,
)
from rl_coach.core_types import EnvironmentSteps, TrainingSteps
from rl_coach.environments.gym_environment import Atari, GymVectorEnvironment
from rl_coach.exploration_policies.parameter_noise import ParameterNoiseParameters
from rl_coach.filters.filter import InputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.presets.CartPole_DQfD import agent_params as of_cart_pole_dqfd
from rl_coach.presets.CartPole_GAIL import agent_params as of_cart_pole_gail
from rl_coach.schedules import LinearSchedule
from tests.frameworks import FRAMEWORK, agents_of_zoo
from tests.zoo import parameters
from tests.zoo.continuous import drq, exploring, with_state_dependent_noise
from tests.zoo.environments import Bandit, Target
from tests.zoo.graphs import schedule


def _dqn() -> AgentParameters:
    agent = parameters.dqn()
    agent.memory.max_size = (MemoryGranularity.Transitions, 300)
    agent.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 400)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(70)
    return agent


def _curious_dqn() -> AgentParameters:
    return parameters.curious(_dqn(), update_proportion=0.5)


def _dqn_beside_learning() -> AgentParameters:
    agent = _dqn()
    agent.algorithm.act_beside_learning = True
    return agent


def _prioritized_dqn() -> AgentParameters:
    agent = _dqn()
    agent.memory = PrioritizedExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, 256)
    agent.memory.beta = LinearSchedule(0.4, 1, 500)
    agent.input_filter = InputFilter()
    agent.input_filter.add_observation_filter("observation", "normalize", ObservationNormalizationFilter())
    return agent


def _policy_gradients() -> AgentParameters:
    agent = parameters.policy_gradients()
    agent.algorithm.apply_gradients_every_x_episodes = 3
    agent.algorithm.num_steps_between_gradient_updates = 25
    return agent


def _clipped_ppo() -> AgentParameters:
    agent = parameters.with_normalized_observations(parameters.clipped_ppo())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    agent.algorithm.clipping_decay_schedule = LinearSchedule(1.0, 0.0, 1000)
    return agent


def _state_dependent_noise() -> AgentParameters:
    agent = with_state_dependent_noise(_clipped_ppo())
    agent.exploration.steps_between_draws = 7
    return agent


def _soft_actor_critic() -> AgentParameters:
    agent = parameters.soft_actor_critic()
    agent.memory.max_size = (MemoryGranularity.Transitions, 300)
    return agent


def _noisy_ddqn() -> AgentParameters:
    agent = parameters.ddqn()
    agent.exploration = ParameterNoiseParameters(agent)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(10)
    return agent


def _recurrent_actor_critic() -> AgentParameters:
    agent = parameters.actor_critic()
    agent.algorithm.num_steps_between_gradient_updates = 25
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
        number_of_lstm_cells=8, scheme=MiddlewareScheme.Empty
    )
    return agent


def recurrent_impala() -> AgentParameters:
    agent = parameters.impala()
    agent.network_wrappers["main"].middleware_parameters = LSTMMiddlewareParameters(
        number_of_lstm_cells=8, scheme=MiddlewareScheme.Empty
    )
    return agent


def _recurrent_ppo() -> AgentParameters:
    agent = parameters.recurrent_ppo()
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(128)
    return agent


def _recurrent_dqn() -> AgentParameters:
    agent = parameters.recurrent_dqn()
    agent.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 400)
    return agent


def _recurrent_categorical() -> AgentParameters:
    return parameters.recurrent_dqn(CategoricalDQNAgentParameters())


def _breakout() -> AgentParameters:
    agent = DQNAgentParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, 150)
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(25)
    return agent


def _rainbow() -> AgentParameters:
    agent = parameters.rainbow()
    agent.memory.max_size = (MemoryGranularity.Transitions, 256)
    return agent


def _neural_episodic_control() -> AgentParameters:
    agent = parameters.neural_episodic_control()
    agent.algorithm.propagate_updates_to_DND = True
    agent.algorithm.n_step = 10
    return agent


# the agent, the level and the number of its copies
RUNS: dict[str, tuple[Any, str, int]] = {
    "DQN": (_dqn, "CartPole-v1", 1),
    "DQN that acts beside its learning": (_dqn_beside_learning, "CartPole-v1", 1),
    "DQN with prioritized replay": (_prioritized_dqn, "CartPole-v1", 1),
    "PG": (_policy_gradients, "CartPole-v1", 1),
    "ClippedPPO": (_clipped_ppo, "CartPole-v1", 1),
    "DDQN with noisy layers": (_noisy_ddqn, "CartPole-v1", 1),
    "actor-critic with an LSTM": (_recurrent_actor_critic, "CartPole-v1", 1),
    "ClippedPPO with an LSTM": (_recurrent_ppo, "CartPole-v1", 1),
    "ClippedPPO with an LSTM in several environments": (_recurrent_ppo, "CartPole-v1", 3),
    "DQN with an LSTM": (_recurrent_dqn, "CartPole-v1", 1),
    "DQN with an LSTM in several environments": (_recurrent_dqn, "CartPole-v1", 3),
    "Rainbow": (_rainbow, "CartPole-v1", 1),
    "N-step Q": (parameters.n_step_q, "CartPole-v1", 1),
    "bootstrapped DQN": (parameters.bootstrapped, "CartPole-v1", 1),
    "NEC": (_neural_episodic_control, "CartPole-v1", 1),
    "NAF": (parameters.normalized_advantages, "Pendulum-v1", 1),
    "SAC": (_soft_actor_critic, "Pendulum-v1", 1),
    "DQN in several environments": (_prioritized_dqn, "CartPole-v1", 3),
    "ClippedPPO in several environments": (_clipped_ppo, "CartPole-v1", 3),
    "ClippedPPO with gSDE in several environments": (_state_dependent_noise, "Pendulum-v1", 3),
    "curious DQN in several environments": (_curious_dqn, "CartPole-v1", 3),
    "curious ClippedPPO in several environments": (lambda: parameters.curious(_clipped_ppo()), "CartPole-v1", 3),
    "bootstrapped DQN in several environments": (parameters.bootstrapped, "CartPole-v1", 3),
    "NEC in several environments": (_neural_episodic_control, "CartPole-v1", 3),
}


def _a2c() -> AgentParameters:
    agent = parameters.actor_critic()
    agent.algorithm.learns_from_copies_together = True
    agent.algorithm.num_steps_between_gradient_updates = 16
    return agent


def _gail() -> AgentParameters:
    agent = parameters.shrink(GAILAgentParameters())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.optimization_epochs = 4
    agent.memory.load_memory_from_file_path = of_cart_pole_gail.memory.load_memory_from_file_path
    return agent


def _dqfd() -> AgentParameters:
    agent = parameters.dqn(DQfDAgentParameters())
    agent.algorithm.pretraining_updates = 50
    agent.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(20)
    agent.memory.load_memory_from_file_path = of_cart_pole_dqfd.memory.load_memory_from_file_path
    return agent


_LEVELS = {Bandit: "CartPole-v1", Target: "Pendulum-v1"}
# every agent, with one of its settings
AGENTS: dict[str, tuple[Any, str, int]] = {
    **{name: (make, _LEVELS[problem], 1) for name, (make, problem, *_) in parameters.PROBLEMS.items()},
    "a2c": (_a2c, "CartPole-v1", 2),
    "pqn in several environments": (parameters.pqn, "CartPole-v1", 3),
    "impala in several environments": (parameters.impala, "Pendulum-v1", 2),
    "impala with an LSTM": (recurrent_impala, "CartPole-v1", 2),
    "acer": (parameters.acer, "CartPole-v1", 1),
    "ars": (parameters.ars, "CartPole-v1", 2),
    "ppo": (parameters.ppo, "Pendulum-v1", 1),
    "trpo of continuous actions": (parameters.trpo, "Pendulum-v1", 2),
    "ppo with an LSTM": (parameters.recurrent_penalized_ppo, "CartPole-v1", 2),
    "dqfd": (_dqfd, "CartPole-v1", 1),
    "gail": (_gail, "CartPole-v1", 2),
    "decision transformer": (parameters.decision_transformer, "CartPole-v1", 2),
    "categorical with an LSTM": (_recurrent_categorical, "CartPole-v1", 1),
    "dreamer": (parameters.dreamer, "CartPole-v1", 1),
    "drq": (drq, "rl_coach.environments.toy_problems.pendulum_pixels:PendulumPixels", 1),
    "td3 at random": (lambda: exploring(RandomAgentParameters), "Pendulum-v1", 1),
    "td3 beside novelty": (lambda: exploring(TD3ExplorationAgentParameters), "Pendulum-v1", 1),
    "td3 by novelty": (lambda: exploring(TD3IntrinsicRewardAgentParameters), "Pendulum-v1", 1),
    "td3 towards goals": (
        lambda: exploring(TD3GoalBasedAgentParameters, "obs-goal"),
        "tests.zoo.pendulum_with_goal:PendulumWithGoal",
        1,
    ),
}

# those that between them have every kind of memory, filter, network state and several environments
_IN_EVERY_RUN = (
    "DQN with prioritized replay", "DQN that acts beside its learning", "PG", "actor-critic with an LSTM",
    "ClippedPPO in several environments", "curious DQN in several environments",
)  # fmt: skip


def run_names(*quick: str) -> list[Any]:
    """All of ``RUNS`` as parameters of a test; all but some are left to ``make soak``.

    :param quick: those that belong to every run of the tests
    """
    chosen = quick or _IN_EVERY_RUN
    return agents_of_zoo(RUNS, slow=RUNS.keys() - set(chosen))


def graph_of(name: str, steps: int) -> BasicRLGraphManager:
    """A graph, not yet created, that trains for ``steps`` steps; an evaluation of two episodes every 100."""
    if name == "DQN on Breakout":
        agent, environment = _breakout(), Atari(level="BreakoutDeterministic-v4")
    else:
        make_agent, level, copies = {**RUNS, **AGENTS}[name]
        agent, environment = make_agent(), GymVectorEnvironment(level=level)
        environment.num_environments = copies
    return BasicRLGraphManager(agent, environment, schedule(steps, 100, 2, heatup=60), VisualizationParameters())


def created(name: str, steps: int, directory: pathlib.Path, **task: Any) -> BasicRLGraphManager:
    """A graph that is created and writes to ``directory``."""
    settings = {"framework_type": FRAMEWORK, "experiment_path": str(directory), "seed": 5, **task}
    return graph_of(name, steps).create_graph(TaskParameters(**settings))


def resumed(name: str, steps: int, directory: pathlib.Path, **task: Any) -> BasicRLGraphManager:
    """A new graph that goes on with the run in ``directory``."""
    return created(name, steps, directory, resume=True, checkpoint_restore_path=str(directory), **task)
