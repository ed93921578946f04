"""Checkpoints that an earlier version wrote in the middle of an episode, and what that version made of them.

``python -m tests.resume.old_checkpoints`` wrote them, with the code of 8e804ad. To add one, check that commit out, take
this file along and add the run to ``RUNS``.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import tarfile
from typing import Any, Callable

import numpy as np

from benchmarks.digests import digest_of_table, this_machine
from rl_coach.agents.actor_critic_agent import ActorCriticAgentParameters
from rl_coach.agents.clipped_ppo_agent import ClippedPPOAgentParameters
from rl_coach.agents.composite_agent import CompositeAgent, SingleDecider
from rl_coach.agents.ddqn_agent import DDQNAgentParameters
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.agents.policy_gradients_agent import PolicyGradientsAgentParameters
from rl_coach.agents.soft_actor_critic_agent import SoftActorCriticAgentParameters
from rl_coach.architectures.embedder_parameters import InputEmbedderParameters
from rl_coach.architectures.layers import Dense
from rl_coach.architectures.middleware_parameters import FCMiddlewareParameters, LSTMMiddlewareParameters
from rl_coach.base_parameters import AgentParameters, MiddlewareScheme, TaskParameters, VisualizationParameters
from rl_coach.checkpoint import find_checkpoint, load_checkpoint
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.filters.filter import InputFilter, NoInputFilter, NoOutputFilter
from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import GraphManager, ScheduleParameters
from rl_coach.level_manager import LevelManager
from rl_coach.memories.episodic.episodic_experience_replay import EpisodicExperienceReplayParameters
from rl_coach.memories.memory import MemoryGranularity
from rl_coach.memories.non_episodic.prioritized_experience_replay import PrioritizedExperienceReplayParameters
from rl_coach.schedules import LinearSchedule
from tests.frameworks import FRAMEWORK
from tests.zoo.environments import Bandit

DATA = pathlib.Path(__file__).parent / "data"
EXPECTED = DATA / "expected.json"


def _small(agent: AgentParameters) -> AgentParameters:
    for network in agent.network_wrappers.values():
        network.batch_size = 8
        for name in network.input_embedders_parameters:
            network.input_embedders_parameters[name] = InputEmbedderParameters(scheme=[Dense(8)])
        if network.middleware_parameters.scheme != MiddlewareScheme.Empty:
            network.middleware_parameters = FCMiddlewareParameters(scheme=[Dense(8)])
    return agent


def _with_lstm(agent: AgentParameters) -> AgentParameters:
    network = agent.network_wrappers["main"]
    network.middleware_parameters = LSTMMiddlewareParameters(number_of_lstm_cells=6, scheme=MiddlewareScheme.Empty)
    network.middleware_parameters.sequence_length, network.middleware_parameters.burn_in = 4, 2
    return agent


def _normalized() -> InputFilter:
    filters = InputFilter()
    filters.add_observation_filter("observation", "normalize", ObservationNormalizationFilter(name="normalize"))
    return filters


def _dqn() -> AgentParameters:
    agent = _small(DQNAgentParameters())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    agent.exploration.epsilon_schedule = LinearSchedule(1.0, 0.1, 200)
    agent.memory.max_size = (MemoryGranularity.Transitions, 100)
    return agent


def _prioritized_dqn() -> AgentParameters:
    agent = _dqn()
    agent.memory = PrioritizedExperienceReplayParameters()
    agent.memory.max_size = (MemoryGranularity.Transitions, 64)
    agent.memory.beta = LinearSchedule(0.4, 1, 200)
    agent.algorithm.n_step = 3
    return agent


def _recurrent_ddqn() -> AgentParameters:
    agent = _small(DDQNAgentParameters())
    agent.memory = EpisodicExperienceReplayParameters()
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(2)
    agent.algorithm.num_steps_between_copying_online_weights_to_target = EnvironmentSteps(20)
    return _with_lstm(agent)


def _policy_gradients() -> AgentParameters:
    agent = _small(PolicyGradientsAgentParameters())
    agent.algorithm.apply_gradients_every_x_episodes = 3
    agent.algorithm.num_steps_between_gradient_updates = 25
    return agent


def _clipped_ppo() -> AgentParameters:
    agent = _small(ClippedPPOAgentParameters())
    agent.algorithm.num_consecutive_playing_steps = EnvironmentSteps(64)
    agent.algorithm.optimization_epochs = 2
    agent.pre_network_filter = _normalized()
    agent.network_wrappers["main"].use_separate_networks_per_head = False
    return _with_lstm(agent)


def _actor_critic() -> AgentParameters:
    agent = _small(ActorCriticAgentParameters())
    agent.algorithm.apply_gradients_every_x_episodes = 1
    agent.algorithm.num_steps_between_gradient_updates = 15
    return agent


def _soft_actor_critic() -> AgentParameters:
    agent = _small(SoftActorCriticAgentParameters())
    agent.network_wrappers["q"].heads_parameters[0].network_layers_sizes = (8,)
    agent.memory.max_size = (MemoryGranularity.Transitions, 100)
    agent.input_filter = _normalized()
    return agent


class Pair(GraphManager):
    """Two agents that act as one: the one decides, both learn."""

    def _create_graph(self, task_parameters: TaskParameters) -> tuple[list[LevelManager], list[Any]]:
        settings = {"frame_skip": 1, "human_control": False, "custom_reward_threshold": None}
        environment = Bandit(level="bandit", seed=0, visualization_parameters=VisualizationParameters(), **settings)
        parameters = {"left": _dqn(), "right": _prioritized_dqn()}
        for each in parameters.values():
            each.task_parameters = task_parameters
            each.input_filter, each.output_filter = NoInputFilter(), NoOutputFilter()
        agent = CompositeAgent(
            parameters, VisualizationParameters(), SingleDecider("left"), environment.action_space, name="both"
        )
        agent.seed(np.random.SeedSequence(1))
        return [LevelManager("main_level", agent, environment)], [environment]


def _pair(steps: int) -> GraphManager:
    schedule = _schedule(steps)
    schedule.evaluation_steps = EnvironmentEpisodes(0)  # which would end the only environment's episode
    return Pair("pair", schedule, VisualizationParameters())


def _schedule(steps: int) -> ScheduleParameters:
    schedule = ScheduleParameters()
    schedule.heatup_steps = EnvironmentSteps(30)
    schedule.improve_steps = EnvironmentSteps(steps)
    schedule.steps_between_evaluation_periods = EnvironmentSteps(80)
    schedule.evaluation_steps = EnvironmentEpisodes(1)
    return schedule


def _basic(agent: Callable[[], AgentParameters], level: str, copies: int = 1) -> Callable[[int], GraphManager]:
    def make(steps: int) -> GraphManager:
        environment = GymVectorEnvironment(level=level)
        environment.num_environments = copies
        return BasicRLGraphManager(agent(), environment, _schedule(steps), VisualizationParameters())

    return make


# a graph that trains for so many steps, and the steps of training at which its checkpoint was saved
RUNS: dict[str, tuple[Callable[[int], GraphManager], int]] = {
    "prioritized_dqn": (_basic(_prioritized_dqn, "CartPole-v1"), 100),
    "recurrent_ddqn_in_3": (_basic(_recurrent_ddqn, "CartPole-v1", 3), 100),
    "policy_gradients": (_basic(_policy_gradients, "CartPole-v1"), 100),
    "recurrent_clipped_ppo": (_basic(_clipped_ppo, "CartPole-v1"), 100),
    "actor_critic_in_3": (_basic(_actor_critic, "CartPole-v1", 3), 100),
    "soft_actor_critic": (_basic(_soft_actor_critic, "Pendulum-v1"), 100),
    "pair": (_pair, 103),
}
STEPS_AFTER = 60


def archive(name: str) -> pathlib.Path:
    """The file that holds a run's checkpoint and CSV files."""
    return DATA / f"{FRAMEWORK.name}_{name}.tar.xz"


def save(name: str, directory: pathlib.Path) -> None:
    """Train until the checkpoint, and put it into its archive."""
    make, steps = RUNS[name]
    graph = make(steps).create_graph(TaskParameters(FRAMEWORK, experiment_path=str(directory), seed=3))
    graph.run()
    assert not graph.reset_required, f"{name} does not stop in the middle of an episode"
    with tarfile.open(archive(name), "w:xz", preset=9) as tar:
        for path in [directory / "checkpoint", *sorted(directory.glob("*.csv"))]:
            tar.add(path, path.relative_to(directory))


def unpack(name: str, directory: pathlib.Path) -> None:
    """Lay a run out in a directory as it was when its checkpoint had been saved."""
    with tarfile.open(archive(name)) as tar:
        tar.extractall(directory, filter="data")


def restored(name: str, directory: pathlib.Path) -> GraphManager:
    """The run in a directory, to go on for ``STEPS_AFTER`` steps of training."""
    make, steps = RUNS[name]
    task = TaskParameters(
        FRAMEWORK, experiment_path=str(directory), resume=True, checkpoint_restore_path=str(directory)
    )
    return make(steps + STEPS_AFTER).create_graph(task)


def outcome(directory: pathlib.Path) -> dict[str, Any]:
    """What a run left behind: digests of its networks and tables, and figures that do not depend on the processor."""
    state = load_checkpoint(find_checkpoint(directory))[0]
    agents = [level["agent"] for level in state["levels"].values()]
    arrays = [array for agent in agents for array in _arrays(agent) if array.dtype == np.float32]
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode() + array.tobytes())
    tables = sorted(directory.glob("*.csv"))
    return {
        "networks": digest.hexdigest(),
        "tables": [digest_of_table(path) for path in tables],
        "rows": [len(path.read_text("utf-8").splitlines()) for path in tables],
        "sums": [round(float(np.abs(array).sum()), 4) for array in arrays],
        "counters": state["counters"],
    }


def _arrays(value: Any, is_of_networks: bool = False) -> list[np.ndarray]:
    """The arrays of all networks in an agent's state, in order."""
    if isinstance(value, dict):
        return [array for key in sorted(value) for array in _arrays(value[key], is_of_networks or key == "networks")]
    return [np.asarray(value)] if is_of_networks and isinstance(value, np.ndarray) else []


def main(directory: pathlib.Path) -> None:
    """Write the archives and the outcomes."""
    DATA.mkdir(exist_ok=True)
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {"runs": {}}
    for name in RUNS:
        save(name, directory / name / "first")
        outcomes = []
        for time in ("once", "twice"):
            unpack(name, directory / name / time)
            restored(name, directory / name / time).run()
            outcomes.append(outcome(directory / name / time))
        assert outcomes[0] == outcomes[1], f"{name} goes on differently each time"
        expected["runs"][f"{FRAMEWORK.name}_{name}"] = {"machine": this_machine(), **outcomes[0]}
    EXPECTED.write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        main(pathlib.Path(place))
