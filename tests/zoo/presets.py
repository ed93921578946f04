"""Presets and levels in files, as a user writes them: tests put these texts into the directory that they run in."""

RECORDER = """\
import pathlib

from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import GraphManager, SimpleSchedule
from rl_coach.utils import CoachError, TrainingError


class Recorder(BasicRLGraphManager):
    \"\"\"Builds and trains nothing, but writes down what it was asked to do.\"\"\"

    def create_graph(self, task_parameters):
        self.task_parameters = task_parameters
        self._fail("build")
        return self

    def run(self):
        self._fail("run")
        (pathlib.Path(self.task_parameters.experiment_path) / "signals.csv").write_text("done")

    def _fail(self, when):
        error = {"bad": CoachError, "nan": TrainingError, "bug": ZeroDivisionError, "stop": KeyboardInterrupt}
        what = self.env_params.additional_simulator_parameters.get(when)
        if what:
            raise error[what](f"{what} in {when}")


class Bare(GraphManager):
    \"\"\"Has neither agent nor environment parameters.\"\"\"


bare = Bare("bare", SimpleSchedule())
graph_manager = Recorder(DQNAgentParameters(), GymVectorEnvironment("CartPole-v0"), SimpleSchedule())
"""

LEVELS = """\
from rl_coach.environments.gym_environment import GymVectorEnvironment


class Swinging(GymVectorEnvironment):
    def __init__(self):
        super().__init__(level="Acrobot-v1")
"""
