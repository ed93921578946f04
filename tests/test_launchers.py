"""Launchers that others wrote on top of ``CoachLauncher``, each run as they run it: as a program."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import pytest

from rl_coach.coach import CoachInterface, CoachLauncher
from rl_coach.command_line import distribution
from rl_coach.training_worker import TrainerLauncher
from rl_coach.utils import CoachError
from tests.faults.processes import SHORT

PRESET = """\
from rl_coach.agents.dqn_agent import DQNAgentParameters
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps
from rl_coach.environments.gym_environment import GymVectorEnvironment
from rl_coach.graph_managers.basic_rl_graph_manager import BasicRLGraphManager
from rl_coach.graph_managers.graph_manager import SimpleSchedule

schedule = SimpleSchedule(EnvironmentSteps(200), EnvironmentEpisodes(10), EnvironmentEpisodes(0))
graph_manager = BasicRLGraphManager(DQNAgentParameters(), GymVectorEnvironment("CartPole-v0"), schedule)
"""

CLOUD = """\
import argparse, os, sys

from rl_coach.base_parameters import Frameworks
from rl_coach.coach import CoachLauncher
from rl_coach.logger import screen
from rl_coach.utils import short_dynamic_import

screen.set_use_colors(False)


class CloudLauncher(CoachLauncher):
    def __init__(self):
        super().__init__()
        self.hyperparameters = {}

    def get_config_args(self, parser: argparse.ArgumentParser) -> argparse.Namespace:
        args, _ = parser.parse_known_args(args=[])
        mine = argparse.ArgumentParser()
        mine.add_argument("-p", "--RLCOACH_PRESET", default="preset")
        mine.add_argument("-n", "--num_workers", default=1, type=int)
        own, unknown = mine.parse_known_args()
        args.experiment_name = "job"
        args.experiment_path = os.path.abspath("output/intermediate")
        args.checkpoint_save_dir = os.path.abspath("output/data/checkpoint")
        args.checkpoint_save_secs = 10
        args.no_summary = True
        args.num_workers = own.num_workers
        args.framework = Frameworks["tensorflow"]
        args.preset = own.RLCOACH_PRESET
        for name, value in zip(unknown[::2], unknown[1::2]):
            self.hyperparameters[name[2:]] = value
        return args

    def get_graph_manager_from_args(self, args):
        path = os.path.join(os.path.dirname(os.path.abspath(sys.modules["__main__"].__file__)), args.preset)
        graph_manager = short_dynamic_import(path + ".py:graph_manager", ignore_module_case=True)
        for network in graph_manager.agent_params.network_wrappers.values():
            network.framework = args.framework
        graph_manager.agent_params.algorithm.discount = float(self.hyperparameters["discount"])
        return graph_manager

    @classmethod
    def train_main(cls):
        cls().launch()


CloudLauncher.train_main()
"""

OWN_START = """\
from rl_coach.coach import CoachLauncher


class OwnStart(CoachLauncher):
    @staticmethod
    def start_single_threaded(task_parameters, graph_manager, args):
        task_parameters.seed = 5
        graph_manager.agent_params.algorithm.discount = 0.5
        graph_manager.create_graph(task_parameters)
        graph_manager.heatup(graph_manager.heatup_steps)
        graph_manager.improve()
        print("framework", args.framework.name, "in", args.experiment_path)
        graph_manager.close()


OwnStart().launch()
"""

OWN_PLACE = """\
import os

from rl_coach.coach import CoachLauncher


class OwnPlace(CoachLauncher):
    def get_config_args(self, parser, arguments=None):
        args = super().get_config_args(parser, arguments)
        assert args.checkpoint_save_dir is None and os.path.isabs(args.experiment_path)
        args.experiment_path = "mine"
        return args

    def create_task_parameters(self, graph_manager, args):
        task_parameters = super().create_task_parameters(graph_manager, args)
        task_parameters.seed = 7
        return task_parameters


OwnPlace().launch()
"""


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "preset.py").write_text(PRESET)
    return tmp_path


def launch(directory, program: str, *arguments: str) -> subprocess.CompletedProcess:
    (directory / "launcher.py").write_text(program)
    return subprocess.run(
        [sys.executable, "launcher.py", *arguments], cwd=directory, capture_output=True, text=True, check=False
    )


def test_a_cloud_launcher_chooses_its_places(directory):
    done = launch(directory, CLOUD, "--discount", "0.25")
    assert done.returncode == 0, done.stderr
    assert list((directory / "output" / "intermediate").glob("*.csv"))
    assert (directory / "output" / "data" / "checkpoint" / ".coach_checkpoint").is_file()
    assert not (directory / "experiments").exists()
    recorded = json.loads((directory / "output" / "intermediate" / "experiment.json").read_text())
    assert recorded["arguments"]["preset"] == "preset"
    again = launch(directory, CLOUD, "--discount", "0.25")
    assert again.returncode == 0, again.stderr


def test_workers_that_cannot_be_are_refused_in_a_launcher_too(directory):
    done = launch(directory, CLOUD, "--discount", "0.25", "-n", "3")
    assert "CoachError: -n 3: workers that share weights need actor-critic or a similar agent" in done.stderr
    assert not (directory / "output").exists()


def test_a_launcher_that_starts_the_graph_itself(directory):
    done = launch(directory, OWN_START, "-p", "preset.py", "-e", "own")
    assert done.returncode == 0, done.stderr
    (run,) = (directory / "experiments" / "own").iterdir()
    assert f"framework tensorflow in {run}" in done.stdout
    assert list(run.glob("*.csv"))


def test_a_launcher_that_changes_what_the_flags_say(directory):
    done = launch(directory, OWN_PLACE, "-p", "preset.py", "-e", "own")
    assert done.returncode == 0, done.stderr
    assert list((directory / "mine").glob("*.csv")) and not (directory / "experiments").exists()
    assert json.loads((directory / "mine" / "experiment.json").read_text())["run"]["seed"] == 7


OWN_LIST = """
import sys
from rl_coach.coach import CoachLauncher


class Mine(CoachLauncher):
    def get_config_args(self, parser):
        args = super().get_config_args(parser)
        args.list = {value}
        return args


Mine().launch()
"""


@pytest.mark.parametrize(("value", "lists"), [("False", False), ("True", True), ("'CartPole_D'", True)])
def test_a_launcher_may_set_the_list_of_presets_as_a_truth_value(value, lists, directory):
    done = launch(directory, OWN_LIST.format(value=value), "-p", "preset.py", "-e", "own")
    assert done.returncode == 0, done.stderr
    assert ("CartPole_DQN" in done.stdout) is lists
    assert (directory / "experiments").exists() is not lists


class OwnGraph:
    """A mixin that makes the graph in a way of its own."""

    def get_graph_manager_from_args(self, args):
        return None


class Own(CoachLauncher):
    get_graph_manager_from_args = OwnGraph.get_graph_manager_from_args


class Mixed(OwnGraph, CoachLauncher):
    pass


class Grandchild(Own):
    pass


class Promises(Own):
    distributes = True


class Greets(CoachLauncher):
    def greet(self):
        print("hello")


def own_on_the_instance():
    launcher = CoachLauncher()
    launcher.get_graph_manager_from_args = lambda args: None
    return launcher


@pytest.fixture
def distributed(monkeypatch):
    runs = []
    monkeypatch.setattr(distribution, "run", lambda *arguments: runs.append(arguments) or 0)
    return runs


@pytest.mark.parametrize("make", [Own, Mixed, Grandchild, own_on_the_instance])
def test_processes_that_do_not_know_the_launcher_are_not_started(make, distributed):
    with pytest.raises(CoachError, match=f"-dc does not work with {type(make()).__name__}, because the processes"):
        make().distribute_and_exit(None)
    assert not distributed


@pytest.mark.parametrize("make", [CoachLauncher, Greets, Promises])
def test_a_launcher_whose_steps_are_coachs_starts_processes(make, distributed):
    with pytest.raises(SystemExit) as ended:
        make().distribute_and_exit(None)
    assert ended.value.code == 0 and len(distributed) == 1


def test_parts_of_a_run_do_not_distribute_it_again():
    assert not TrainerLauncher.distributes and not CoachInterface.distributes


def test_a_launcher_may_set_list_to_false_and_a_program_shows_its_warnings_again(tmp_path, monkeypatch):
    class Own(CoachLauncher):
        def get_config_args(self, parser, arguments=None):
            args = super().get_config_args(parser, ["-p", "CartPole_DQN", "-ns", "-cp", SHORT.format(steps=5)])
            args.list = False
            return args

    monkeypatch.chdir(tmp_path)
    before = list(warnings.filters)
    Own().launch()
    CoachInterface(preset="CartPole_DQN", custom_parameter=SHORT.format(steps=5), no_summary=True).run()
    # libraries add filters for their own warnings when they are imported
    hiding = [one for one in warnings.filters if one not in before and one[:3] == ("ignore", None, Warning)]
    assert not [one for one in hiding if one[3] is None]
    assert len(list((tmp_path / "experiments" / "CartPole_DQN").iterdir())) == 2
