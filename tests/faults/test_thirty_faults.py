"""Thirty random faults in one distributed run, which ends at its reward with equal totals.

Two minutes and more, and therefore beside the tests of each fault, which `make faults` runs.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import time

import pytest

from tests.orchestrators.distributed_runs import ROOT, SMALL, TOO_LONG, DistributedRun, wait_until

FAULTS = {
    "kill a worker": 8, "stop a worker": 5, "kill redis": 4, "flush redis": 3, "kill the trainer": 3, "garbage": 3,
    "duplicates": 2, "wrong order": 2,
}  # fmt: skip
LIGHTS = f"{ROOT / 'tests' / 'orchestrators' / 'far_lights.py'}:FarLights"


@pytest.mark.slow
def test_thirty_random_faults_in_one_run_that_ends_at_its_reward(tmp_path):
    seed = int(os.environ.get("COACH_FAULTS_SEED", random.randrange(10**6)))
    print(f"COACH_FAULTS_SEED={seed} does the same faults again")
    rng = random.Random(seed)
    faults = [fault for fault, number in FAULTS.items() for _ in range(number)]
    assert len(faults) == 30
    rng.shuffle(faults)
    gate = tmp_path / "gate"
    gate.touch()
    settings = (
        SMALL.replace("evaluation_steps=EnvironmentEpisodes(0)", "evaluation_steps=EnvironmentEpisodes(2)")
        + "; steps_between_evaluation_periods=EnvironmentEpisodes(100); env_params.custom_reward_threshold=10"
        + f"; env_params.additional_simulator_parameters={{'closed_by': '{gate}'}}"
        + "; agent_params.exploration.epsilon_schedule=LinearSchedule(1, 0.1, 2000)"
    )
    with DistributedRun(tmp_path, "-s", "2", "-asc", "-cp", settings, "-lvl", LIGHTS, num_workers=3) as run:
        run.wait_for_learning()
        victims = itertools.cycle(f"worker-{i}" for i in range(3))  # one that dies too often ends the run
        for fault in faults:
            hurt(run, fault, next(victims) if fault.endswith("a worker") else None, rng)
        run.wait_for_more(500)
        gate.unlink()
        assert run.process.wait(TOO_LONG) == 0, run.text()
        assert re.search(r"solved: evaluation reward \d+ reached the target 10", run.text())
        assert run.children() == {}, "nothing is left"
        run.check_totals(run.totals(), gone_back=True)


def hurt(run, fault, worker, rng):
    """Do something to a run, and give it a moment. :param worker: the one that it happens to, if it does to one"""
    keys = run.keys
    if fault == "kill a worker":
        wait_until(lambda: worker in run.children(), f"{worker} lives")
        run.kill(worker)
    elif fault == "stop a worker":
        wait_until(lambda: worker in run.children(), f"{worker} lives")
        pid = run.kill(worker, signal.SIGSTOP)
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)
    elif fault == "kill redis":
        run.redis.process.kill()
        run.redis.process.wait()
        time.sleep(rng.uniform(0, 1))
        run.redis.start()
        wait_until(run.taken, "Redis knows of the run")
    elif fault == "flush redis":
        run.client.flushall()
        wait_until(run.taken, "Redis knows of the run")
    elif fault == "kill the trainer":
        killed = run.kill("trainer")
        wait_until(lambda: run.children().get("trainer", killed) != killed, "a new trainer")
        run.wait_for_more(50)
    elif fault == "garbage":
        run.client.xadd(keys.experience, {b"header": rng.randbytes(100)})
    else:
        entries = [fields for _, fields in run.client.xrange(keys.experience, count=3)]
        for fields in entries if fault == "duplicates" else reversed(entries):
            run.client.xadd(keys.experience, fields)
    time.sleep(rng.uniform(0.2, 2))
