"""Faults of a distributed run of several agents: the totals of each agree, whatever dies."""

from __future__ import annotations

import pytest

from rl_coach.checkpoint import find_checkpoint, load_checkpoint
from rl_coach.memories.backend.connection import Keys
from rl_coach.memories.backend.wire import unpack
from tests.orchestrators.distributed_runs import DistributedRun, wait_until

pytestmark = pytest.mark.faults

AGENTS = ("hunters", "prey")
SETTINGS = (
    "heatup_steps=EnvironmentSteps(50); evaluation_steps=EnvironmentEpisodes(0); "
    "improve_steps=EnvironmentSteps(10000000); agents_params['hunters'].memory.max_size="
    "(MemoryGranularity.Transitions, 5000); agents_params['prey'].memory.max_size="
    "(MemoryGranularity.Transitions, 5000)"
)


def tag(directory, *arguments):
    return DistributedRun(directory, "-cp", SETTINGS, *arguments, preset="Tag_DQN", agents=AGENTS)


@pytest.mark.slow
def test_a_killed_worker_of_several_agents_is_replaced_and_counted_once(tmp_path):
    with tag(tmp_path) as run:
        run.wait_for_learning()
        killed = run.kill("worker-0")
        wait_until(lambda: run.children().get("worker-0", killed) != killed, "a new worker")
        wait_until(lambda: len(run.senders()) == 3, "it plays")
        run.wait_for_more()
        report = wait_until(lambda: run.client.get(run.keys.worker("worker-1")), "a report")
        assert unpack(report)["phase"] in ("TRAIN", "WAITING")
        totals = run.stop()
        run.check_totals(totals)
        for agent in AGENTS:
            assert totals["agents"][agent]["refused"] == {} and totals["agents"][agent]["discarded"] == 0
        streams = run.client.keys("*experience*")
        assert all(run.client.ttl(stream) > 0 for stream in streams), "Redis forgets what is sent after the end"
        assert not run.client.exists(Keys("test").document("policy:prey"))


def steps_of_newest_checkpoint(run):
    """Steps of training in it; 0 if there is none."""
    if not list(run.experiment.glob("checkpoint/*.ckpt")):
        return 0
    return load_checkpoint(find_checkpoint(str(run.experiment / "checkpoint")))[1]["steps"]


@pytest.mark.slow
def test_a_killed_trainer_of_several_agents_goes_on_from_its_checkpoint_and_so_does_the_run(tmp_path):
    with tag(tmp_path, "-s", "1") as run:
        run.wait_for_learning()
        saved_steps = wait_until(lambda: steps_of_newest_checkpoint(run), "a checkpoint of the training")
        workers = {name: pid for name, pid in run.children().items() if name != "trainer"}
        stored, killed = run.stored(), run.kill("trainer")
        wait_until(lambda: run.children().get("trainer", killed) != killed, "a new trainer")
        wait_until(lambda: run.stored() > stored + 200, "it learns")
        assert {name: pid for name, pid in run.children().items() if name != "trainer"} == workers
        totals = run.stop()
        run.check_totals(totals, gone_back=True)
        for agent in AGENTS:
            assert totals["agents"][agent]["steps"] > saved_steps, "it did not begin anew"


@pytest.mark.slow
def test_redis_may_lose_the_streams_of_all_agents(tmp_path):
    with tag(tmp_path) as run:
        run.wait_for_learning()
        run.client.flushall()
        run.wait_for_more()
        run.redis.process.kill()
        run.redis.process.wait()
        run.redis.start()
        wait_until(lambda: run.taken(), "the trainer puts back what it wrote")
        run.wait_for_more()
        run.check_totals(run.stop())
