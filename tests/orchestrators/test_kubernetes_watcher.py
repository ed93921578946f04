"""When a watch of a cluster gives up. The cluster is a stand-in, because the breaks that matter take minutes."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from rl_coach.orchestrators import kubernetes_following
from rl_coach.orchestrators.kubernetes_following import Watcher
from rl_coach.utilities.kubernetes_cluster import GONE, ClusterError


class Clock:
    """The time, which passes only in ``Cluster``."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Cluster:
    """Each attempt is a number of seconds that a watch lasts before it breaks, or None: there is no answer at all."""

    def __init__(self, clock: Clock, attempts: list[float | None]):
        self._clock, self._attempts = clock, iter(attempts)

    def find(self, kind: str) -> tuple[list[dict[str, Any]], str]:
        self._lasts = next(self._attempts)
        self._clock.now += 20.0
        if self._lasts is None:
            raise ClusterError("no answer")
        return [], "1"

    def watch(self, kind: str, version: str, seconds: int) -> Any:
        self._clock.now += self._lasts
        raise ClusterError("too old", GONE)
        yield


@pytest.mark.parametrize(
    ("attempts", "tries"),
    [
        ([100.0, 200.0, 100.0] + [None] * 9, 7),  # breaks of watches that lasted long end nothing
        ([None] * 9, 5),
        ([None, None, 100.0] + [None] * 9, 7),
    ],
)
def test_only_a_minute_without_an_answer_ends_it(monkeypatch, attempts, tries):
    clock = Clock()
    monkeypatch.setattr(kubernetes_following, "time", clock)
    monkeypatch.setattr(kubernetes_following, "_PAUSE", 0.0)
    refused: list[ClusterError] = []
    cluster: Any = Cluster(clock, attempts)
    Watcher(cluster, "pods", queue.Queue(), refused.append).run()
    assert [str(error) for error in refused] == ["no answer"]
    assert len(attempts) - len(list(cluster._attempts)) == tries
