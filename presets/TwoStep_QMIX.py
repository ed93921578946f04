"""QMIX in the two-step game of its paper. It finds the payoff 8, but VDN finds only 7."""

from rl_coach.agents.qmix_agent import QMIXAgentParameters
from rl_coach.agents.vdn_agent import VDNAgentParameters
from rl_coach.architectures.layers import Dense
from rl_coach.base_parameters import VisualizationParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps, TrainingSteps
from rl_coach.environments.pettingzoo_environment import PettingZooEnvironmentParameters
from rl_coach.graph_managers.graph_manager import ScheduleParameters
from rl_coach.graph_managers.multi_agent_graph_manager import MultiAgentGraphManager
from rl_coach.schedules import ConstantSchedule


def two_step_game(
    agent_params: VDNAgentParameters, env_params: PettingZooEnvironmentParameters
) -> MultiAgentGraphManager:
    """A graph with the settings of the paper (appendix A).

    In training, all actions are random. The discount is 0.99.
    """
    for network in agent_params.network_wrappers.values():
        network.learning_rate = 0.0005
    main = agent_params.network_wrappers["main"]
    main.input_embedders_parameters["observation"].scheme = [Dense(64)]
    main.middleware_parameters.scheme = [Dense(64)]
    agent_params.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent_params.algorithm.num_steps_between_copying_online_weights_to_target = TrainingSteps(100)
    agent_params.exploration.epsilon_schedule = ConstantSchedule(1.0)

    schedule_params = ScheduleParameters()
    schedule_params.improve_steps = EnvironmentSteps(10000)
    schedule_params.steps_between_evaluation_periods = EnvironmentSteps(1000)
    schedule_params.evaluation_steps = EnvironmentEpisodes(1)
    schedule_params.heatup_steps = EnvironmentSteps(500)

    return MultiAgentGraphManager(
        agents_params=[agent_params],
        env_params=env_params,
        schedule_params=schedule_params,
        vis_params=VisualizationParameters(),
    )


env_params = PettingZooEnvironmentParameters(level="rl_coach.environments.toy_problems.two_step_game:TwoStepGame")
graph_manager = two_step_game(QMIXAgentParameters(), env_params)
