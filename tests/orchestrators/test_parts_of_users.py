"""Programs that others wrote on top of Coach, and that an orchestrator of theirs starts as the parts of a run."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import pytest

from rl_coach.base_parameters import RunType
from rl_coach.coach import DONE, handle_distributed_coach_tasks
from rl_coach.orchestrators.embedded_redis import EmbeddedRedis
from rl_coach.utils import CoachError
from tests.orchestrators.distributed_runs import ROOT, TOO_LONG

pytest.importorskip("redis")

PROGRAM = """
import sys

from rl_coach.base_parameters import EmbedderScheme, MiddlewareScheme
from rl_coach.coach import CoachLauncher, exit_code_of, handle_distributed_coach_tasks
from rl_coach.core_types import EnvironmentEpisodes, EnvironmentSteps


class Launcher(CoachLauncher):
    def take_part_and_exit(self, args):
        graph_manager = self.get_graph_manager_from_args(args)
        graph_manager.heatup_steps = EnvironmentSteps(50)
        graph_manager.improve_steps = EnvironmentSteps(150)
        graph_manager.evaluation_steps = EnvironmentEpisodes(0)
        network = graph_manager.agent_params.network_wrappers["main"]
        network.batch_size, network.middleware_parameters.scheme = 8, MiddlewareScheme.Empty
        network.input_embedders_parameters["observation"].scheme = EmbedderScheme.Shallow
        task_parameters = self.create_task_parameters(graph_manager, args)
        handle_distributed_coach_tasks(graph_manager, args, task_parameters)
        sys.exit()


sys.exit(exit_code_of(Launcher().launch))
"""


def start(directory, part: str, backend: str) -> subprocess.Popen:
    (directory / part).mkdir()
    flags = ["-p", "CartPole_DQN", "-ep", "run", "--seed", "1", "--memory_backend_params", backend]
    return subprocess.Popen(
        [sys.executable, str(directory / "launcher.py"), *flags, "--distributed_coach_run_type", part],
        cwd=directory / part, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip


def test_a_program_of_ones_own_is_trainer_and_worker(tmp_path):
    (tmp_path / "launcher.py").write_text(PROGRAM)
    redis = EmbeddedRedis(tmp_path)
    redis.start()
    backend = json.dumps(
        {
            "store_type": "redispubsub", "redis_address": "127.0.0.1", "redis_port": redis.port, "channel": "mine",
            "orchestrator_params": {"redis_password": redis.password},
        }
    )  # fmt: skip
    parts = [start(tmp_path, part, backend) for part in (str(RunType.TRAINER), str(RunType.ROLLOUT_WORKER))]
    try:
        texts = [part.communicate(timeout=TOO_LONG)[0] for part in parts]
    finally:
        for part in parts:
            part.kill()
        redis.stop()
    assert [part.returncode for part in parts] == [DONE, DONE], texts
    (file,) = (tmp_path / "trainer").rglob("distributed.json")
    totals = json.loads(file.read_text())
    # the schedule is the program's: all that the trainer counts has come from the one worker
    assert totals["steps"] == totals["stored"] >= 200
    ((worker, account),) = totals["workers"].items()
    assert worker.startswith("worker-") and account["stored"] == totals["stored"]
    assert list((tmp_path / "trainer").rglob("*.csv")) and not list((tmp_path / "rollout-worker").rglob("*.csv"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"distributed_coach_run_type": RunType.ORCHESTRATOR},
            "distributed_coach_run_type must be 'trainer' or 'rollout-worker', not 'orchestrator'",
        ),
        (
            {"distributed_coach_run_type": None},
            "distributed_coach_run_type must be 'trainer' or 'rollout-worker', not 'None'",
        ),
        ({"distributed_coach_run_type": RunType.TRAINER}, "--memory_backend_params: the JSON is missing"),
        (
            {"distributed_coach_run_type": "trainer", "memory_backend_params": "{"},
            "give a JSON object such as",
        ),
        (
            {"distributed_coach_run_type": "trainer", "memory_backend_params": '{"store_type": "kafka"}'},
            "no memory backend 'kafka'",
        ),
    ],
)
def test_what_is_no_part_is_refused(flags, message):
    args = argparse.Namespace(**{"memory_backend_params": None, "data_store_params": None, **flags})
    with pytest.raises(CoachError) as refused:
        handle_distributed_coach_tasks(None, args, None)
    assert message in str(refused.value) and "\n" not in str(refused.value)
