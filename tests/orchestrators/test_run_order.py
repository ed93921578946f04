"""The order of a distributed run."""

from __future__ import annotations

import pytest

from rl_coach.orchestrators.run_order import DataStoreOrder, Limits, RunOrder, new_run_id
from rl_coach.utils import CoachError


def order(**changes):
    return RunOrder(
        **{
            "run": "abc", "arguments": ["-p", "CartPole_DQN"], "redis_url": "redis://localhost:6379/0",
            "num_workers": 2, "experiment_path": "/tmp/run", **changes,
        }
    )  # fmt: skip


def test_what_is_read_is_what_was_written(tmp_path):
    written = order(data_store=DataStoreOrder("nfs", {"directory": "/shared"}), limits=Limits(window=2))
    written.write(tmp_path / "order.json")
    assert RunOrder.read(tmp_path / "order.json") == written


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not the order"), ("[]", "is not the order"), ('{"run": "a"}', "is not the order")],
)
def test_what_is_no_order_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "order.json"
    path.write_text(text)
    with pytest.raises(CoachError, match=f"order.json.*{message}"):
        RunOrder.read(path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(CoachError, match="cannot be read: No such file"):
        RunOrder.read(tmp_path / "none.json")


def test_an_unknown_data_store_is_refused(tmp_path):
    order(data_store=DataStoreOrder("ftp")).write(tmp_path / "order.json")
    with pytest.raises(CoachError, match="no data store 'ftp'; allowed are redis, nfs, s3"):
        RunOrder.read(tmp_path / "order.json")


def test_the_password_stands_in_a_file_of_its_own(tmp_path):
    (tmp_path / "password").write_text("secret\n")
    assert order(redis_password_file=str(tmp_path / "password")).password() == "secret"
    assert order().password() is None
    with pytest.raises(CoachError, match="cannot read the password in"):
        order(redis_password_file=str(tmp_path / "gone")).password()


def test_no_two_runs_have_one_id():
    assert len({new_run_id() for _ in range(100)}) == 100
