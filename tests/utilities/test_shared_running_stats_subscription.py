"""Statistics that processes share over a real Redis."""

from __future__ import annotations

import copy
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rl_coach.filters.observation.observation_normalization_filter import ObservationNormalizationFilter
from rl_coach.memories.backend.redis import RedisPubSubMemoryBackendParameters
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats, SharedRunningStatsSubscribe
from rl_coach.utils import CoachError
from tests.orchestrators.distributed_runs import ROOT, wait_until

pytest.importorskip("redis")

OTHER_PROCESS = """
import json, sys, threading
import numpy as np
from rl_coach.memories.backend.redis import RedisPubSubMemoryBackendParameters
from rl_coach.utilities.shared_running_stats import NumpySharedRunningStats

port, password, total = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
parameters = RedisPubSubMemoryBackendParameters("127.0.0.1", port, "run", {"redis_password": password})


class Awaited(NumpySharedRunningStats):
    done = threading.Event()

    def push_val(self, samples):
        super().push_val(samples)
        if self.n >= total:
            self.done.set()


stats = Awaited("observations", pubsub_params=parameters)
stats.set_params((3,))
print("ready", flush=True)
sys.stdin.readline()
for sample in np.random.default_rng(1).normal(5.0, 2.0, (200, 3)):
    stats.push(sample)
assert stats.done.wait(30), stats.n
print(json.dumps([stats.n, stats.mean.tolist(), stats.var.tolist()]))
"""


def backend(redis):
    return RedisPubSubMemoryBackendParameters("127.0.0.1", redis.port, "run", {"redis_password": redis.password})


def shared(redis, shape=(3,), name="observations"):
    stats = NumpySharedRunningStats(name, pubsub_params=backend(redis))
    stats.set_params(shape)
    return stats


def wait_for(stats, count):
    wait_until(lambda: stats.n >= count, f"{count} samples", 30)


def test_two_processes_end_with_the_statistics_of_all(redis):
    mine = shared(redis)
    command = [sys.executable, "-c", OTHER_PROCESS, str(redis.port), redis.password, "305"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("\n")
        process.stdin.flush()
        rng = np.random.default_rng(2)
        batch, singles = rng.normal(-1.0, 1.0, (55, 3)), rng.normal(0.0, 3.0, (50, 3))
        mine.push(batch)
        for sample in singles:
            mine.push(sample)
        theirs = json.loads(process.stdout.readline())
    wait_for(mine, 305)
    # Redis gives all of them the same order, so that they agree to the last bit
    assert theirs == [mine.n, mine.mean.tolist(), mine.var.tolist()]
    everything = np.concatenate([batch, singles, np.random.default_rng(1).normal(5.0, 2.0, (200, 3))])
    np.testing.assert_allclose(mine.mean, everything.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mine.var, everything.var(axis=0), rtol=1e-12)
    mine.subscription.stop()


def test_filters_of_two_workers_share_what_they_see(redis):
    """The filters of programs written for Coach: ``set_device`` gives them the backend."""
    filters = [ObservationNormalizationFilter() for _ in range(2)]
    for one in filters:
        one.filter(np.zeros(2), update_internal_state=False)
        one.set_device(None, memory_backend_params=backend(redis))
        SharedRunningStatsSubscribe(one.running_observation_stats).start()
    filters[0].filter(np.array([1.0, 2.0]))
    filters[1].filter(np.array([3.0, 2.0]))
    for one in filters:
        wait_for(one.running_observation_stats, 2)
        assert one.running_observation_stats.mean.tolist() == [2.0, 2.0]
        one.running_observation_stats.subscription.stop()


def test_statistics_of_other_names_and_runs_are_left_alone(redis):
    stats, other_name = shared(redis), shared(redis, name="rewards")
    other_run = NumpySharedRunningStats("observations")
    other_run.set_params((3,))
    other_run.pubsub_params = backend(redis)
    other_run.pubsub_params.channel = "another"
    other_run.push(np.ones(3))
    other_name.push(np.ones(3))
    stats.push(np.zeros(3))
    for one in (stats, other_name, other_run):
        wait_for(one, 1)
        one.subscription.stop()
    assert [one.n for one in (stats, other_name, other_run)] == [1, 1, 1] and stats.mean.tolist() == [0, 0, 0]


def saved(array, **settings):
    file = io.BytesIO()
    np.save(file, array, **settings)
    return file.getvalue()


def test_garbage_on_the_channel_is_refused_in_a_line(redis, capsys):
    stats = shared(redis)
    client = backend(redis).connect().client
    whole = saved(np.ones(3))
    assert whole.count(b"(3,), ") == 1
    header = b"\x93NUMPY\x01\x00\x76\x00"
    refused = [
        b"", b"garbage", whole[:-8], whole + b"x", whole.replace(b"(3,), ", b"(99,),"), header + b"(" * 118,
        header + b"-" * 117 + b"1", saved(np.array(["a", "b", "c"])), saved(np.ones(4)),
        saved(np.array([{}, {}, {}]), allow_pickle=True),
    ]  # fmt: skip
    for garbage in refused:
        client.publish(stats.channel, garbage)
    stats.push(np.ones(3))
    wait_for(stats, 1)
    assert stats.subscription.num_refused == len(refused) and stats.n == 1
    place = "a message on coach:run:statistics:observations"
    assert (
        capsys.readouterr().err
        == f"coach: the statistics 'observations': {place} is not a sample: it is not an array\n"
    )
    stats.subscription.stop()


def test_a_lost_connection_is_told_in_a_line_and_raised_by_the_next_sample(redis, capsys):
    stats = shared(redis)
    stats.push(np.ones(3))
    wait_for(stats, 1)
    redis.stop()
    stats.subscription.join(30)
    assert not stats.subscription.is_alive()
    said = capsys.readouterr().err
    assert said.startswith("coach: the statistics 'observations': the connection to Redis is lost: ")
    assert said.count("\n") == 1
    with pytest.raises(CoachError, match="the statistics 'observations' are no longer shared: "):
        stats.push(np.ones(3))
    assert stats.n == 1


class Failing(NumpySharedRunningStats):
    def push_val(self, samples):
        raise ZeroDivisionError("by this class")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_the_thread_is_raised_by_the_next_sample(redis):
    stats = Failing("observations", pubsub_params=backend(redis))
    stats.push(np.ones(1))
    stats.subscription.join(30)
    with pytest.raises(CoachError, match="no longer shared: by this class"):
        stats.push(np.ones(1))


def test_a_sample_of_another_shape_is_refused_before_others_get_it(redis):
    stats = shared(redis)
    with pytest.raises(ValueError, match=r"it is float64\[4\], but samples have the shape \[3\]"):
        stats.push(np.ones(4))
    assert stats.subscription.num_refused == 0
    stats.subscription.stop()


def test_it_ends_when_told_and_begins_anew(redis):
    stats = shared(redis)
    thread = stats.subscription
    assert isinstance(thread, SharedRunningStatsSubscribe) and thread.daemon and thread.is_alive()
    with pytest.raises(CoachError, match="'observations' already have a subscription"):
        SharedRunningStatsSubscribe(stats)
    thread.stop()
    assert not thread.is_alive() and stats.subscription is None
    stats.push(np.full(3, 2.0))
    wait_for(stats, 1)
    assert stats.mean.tolist() == [2, 2, 2] and stats.subscription is not thread
    stats.subscription.stop()


def test_a_copy_has_a_connection_of_its_own(redis):
    stats = shared(redis)
    other = copy.deepcopy(stats)
    assert other.subscription is None
    other.push(np.ones(3))
    for one in (stats, other):
        wait_for(one, 1)
        one.subscription.stop()
