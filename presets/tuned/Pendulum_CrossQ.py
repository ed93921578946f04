"""CrossQ swings up a pendulum, with batch normalisation and without target networks.

The statistics of a batch are those of its states and next states together. The correction of batch renormalisation
begins after 100,000 training passes, as in the code of CrossQ's authors. This run ends before, after 20,000 steps with
one update each, so it learns with plain batch normalisation.
"""

from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.presets.tuned._networks import as_soft_actor_critic

# Schedule
schedule_params = ScheduleParameters()
schedule_params.heatup_steps = EnvironmentSteps(100)
schedule_params.improve_steps = EnvironmentSteps(20_000)
schedule_params.steps_between_evaluation_periods = EnvironmentSteps(2_000)
schedule_params.evaluation_steps = EnvironmentEpisodes(10)

# Agent
agent_params = SoftActorCriticAgentParameters(use_value_network=False)
as_soft_actor_critic(agent_params, learning_rate=0.001)
for name in ("policy", "q"):
    agent_params.network_wrappers[name].adam_optimizer_beta1 = 0.5
agent_params.network_wrappers["q"].heads_parameters[0].batchnorm = True
agent_params.network_wrappers["q"].heads_parameters[0].batch_renorm_warm_up = 100_000
agent_params.network_wrappers["q"].heads_parameters[0].network_layers_sizes = (1024, 1024)
agent_params.network_wrappers["q"].create_target_network = False
agent_params.algorithm.update_policy_every_x_training_steps = 3

# Environment
env_params = GymVectorEnvironment(level="Pendulum-v1")

graph_manager = BasicRLGraphManager(agent_params=agent_params, env_params=env_params, schedule_params=schedule_params)
