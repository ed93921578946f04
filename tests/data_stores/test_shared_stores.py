"""Data stores on NFS and S3: documents, and the files of an experiment."""

from __future__ import annotations

import os
import pathlib

import pytest

from rl_coach.checkpoint import CheckpointStateFile, SingleCheckpoint
from rl_coach.data_stores.data_store import SyncFiles
from rl_coach.data_stores.data_store_impl import construct_data_store_params, get_data_store
from rl_coach.utils import CoachError
from tests.data_stores.stand_in_s3 import ACCESS_KEY, BUCKET, SECRET_KEY, StandInS3

BASE = {"orchestrator_type": "local", "orchestrator_params": {"namespace": "mine"}}


class Graph:
    """The part of a graph manager that stores of checkpoints use."""

    def __init__(self, directory: pathlib.Path):
        self.directory, self.num_saved, self.restored = directory, 0, []

    def save_checkpoint(self) -> None:
        name = f"{self.num_saved}_Step-{self.num_saved * 10}.ckpt"
        (self.directory / name).mkdir(parents=True)
        (self.directory / name / "manifest.json").write_text(str(self.num_saved))
        CheckpointStateFile(str(self.directory)).write(SingleCheckpoint(self.num_saved, name))
        self.num_saved += 1

    def restore_checkpoint(self, path: str) -> None:
        self.restored.append((os.path.basename(path), pathlib.Path(path, "manifest.json").read_text()))


@pytest.fixture
def s3(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "nobodys"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with StandInS3() as server:
        yield server


def nfs_store(directory: pathlib.Path):
    return get_data_store(construct_data_store_params({"store_type": "nfs", **BASE, "checkpoint_dir": str(directory)}))


def s3_store(server: StandInS3, tmp_path: pathlib.Path, local: pathlib.Path, **changes):
    settings = {
        "end_point": server.url, "bucket_name": BUCKET, "creds_file": str(tmp_path / "credentials"), "prefix": "pole/1",
        "expt_dir": str(local), "checkpoint_dir": str(local / "checkpoint"), **changes,
    }  # fmt: skip
    return get_data_store(construct_data_store_params({"store_type": "s3", **BASE, **settings}))


@pytest.fixture(params=["nfs", "s3"])
def two_stores(request, tmp_path):
    """The store as the trainer sees it, and as a worker does."""
    if request.param == "nfs":
        return nfs_store(tmp_path / "shared"), nfs_store(tmp_path / "shared")
    server = request.getfixturevalue("s3")
    return tuple(s3_store(server, tmp_path, tmp_path / name) for name in ("trainer", "worker"))


def test_a_worker_gets_what_the_trainer_left_last(two_stores):
    trainer, worker = two_stores
    assert trainer.deploy()
    assert worker.get("policy") is None
    trainer.put("policy", b"first")
    trainer.put("blueprint", b"\x00" * 1000)
    assert worker.get("policy") == b"first"
    trainer.put("policy", b"second")
    assert (worker.get("policy"), worker.get("blueprint")) == (b"second", b"\x00" * 1000)
    assert trainer.undeploy()
    assert worker.get("policy") is None


def test_a_worker_takes_each_new_checkpoint_once(two_stores):
    trainer, worker = two_stores
    source, target = (Graph(pathlib.Path(store.params.checkpoint_dir)) for store in two_stores)
    with pytest.raises(CoachError, match="no new policy was stored"):
        worker.load_policy(target, timeout=0)
    trainer.save_policy(source)
    trainer.save_policy(source)
    worker.load_policy(target, timeout=5)
    with pytest.raises(CoachError, match="no new policy was stored"):
        worker.load_policy(target, timeout=0)
    worker.load_policy(target, require_new_policy=False, timeout=0)
    trainer.save_policy(source)
    worker.load_policy(target, timeout=5)
    assert target.restored == [("1_Step-10.ckpt", "1"), ("1_Step-10.ckpt", "1"), ("2_Step-20.ckpt", "2")]
    assert not worker.end_of_policies()
    trainer.mark(SyncFiles.FINISHED)
    assert worker.end_of_policies()
    with pytest.raises(CoachError, match="the trainer has finished"):
        worker.load_policy(target)


# NFS


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CoachError, match=r"the shared directory '.*' cannot be created: Not a directory"):
        nfs_store(tmp_path / "file" / "below").deploy()


def test_a_checkpoint_to_start_from_is_copied(tmp_path):
    (tmp_path / "old" / "5_Step-1.ckpt").mkdir(parents=True)
    (tmp_path / "old" / ".coach_checkpoint").write_text("5_Step-1.ckpt")
    nfs_store(tmp_path / "shared").setup_checkpoint_dir(str(tmp_path / "old"))
    assert (tmp_path / "shared" / "5_Step-1.ckpt").is_dir()


def test_the_marks_of_a_finished_run_are_not_those_of_the_next(s3, tmp_path):
    old, shared, there = tmp_path / "old", tmp_path / "shared", tmp_path / "there"
    old.mkdir()
    for name in (".finished", ".ready", ".coach_checkpoint"):
        (old / name).write_text(name)
    store = nfs_store(shared)
    store.setup_checkpoint_dir(str(old))
    assert not store.end_of_policies()
    assert [path.name for path in shared.iterdir()] == [".coach_checkpoint"]
    s3_store(s3, tmp_path, there).setup_checkpoint_dir(str(old))
    assert [pathlib.Path(name).name for name in s3.objects] == [".coach_checkpoint"]


def test_no_server_of_nfs_is_started(tmp_path):
    store = nfs_store(tmp_path)
    with pytest.raises(CoachError, match="nfs_server"):
        store.deploy_k8s_nfs()
    assert store.undeploy_k8s_nfs()


# S3


def files_below(directory: pathlib.Path) -> dict[str, str]:
    return {path.relative_to(directory).as_posix(): path.read_text() for path in directory.rglob("*") if path.is_file()}


def test_another_machine_goes_on_with_the_files_of_the_first(s3, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "checkpoint" / "0_Step-1.ckpt").mkdir(parents=True)
    for name in ("signals.csv", "checkpoint/0_Step-1.ckpt/state.json", "checkpoint/.coach_checkpoint"):
        (here / name).write_text(name)
    (here / ".lock").write_text("1")
    (here / "signals.csv.7.tmp").write_text("half")
    s3_store(s3, tmp_path, here).save_to_store()
    s3_store(s3, tmp_path, there).load_from_store()
    expected = {name: text for name, text in files_below(here).items() if name not in (".lock", "signals.csv.7.tmp")}
    assert files_below(there) == expected
    assert set(s3.objects) == {f"pole/1/files/{name}" for name in expected}


def test_only_what_is_new_is_uploaded_and_the_name_of_the_newest_comes_last(s3, tmp_path):
    store, graph = s3_store(s3, tmp_path, tmp_path / "run"), Graph(tmp_path / "run" / "checkpoint")
    store.save_policy(graph)
    s3.requests.clear()
    store.save_policy(graph)
    assert s3.requests == [
        "PUT pole/1/files/checkpoint/1_Step-10.ckpt/manifest.json", "PUT pole/1/files/checkpoint/.coach_checkpoint",
    ]  # fmt: skip
    (tmp_path / "run/checkpoint/0_Step-0.ckpt/manifest.json").unlink()
    store.save_to_store()
    assert s3.requests[-1] == "DELETE pole/1/files/checkpoint/0_Step-0.ckpt/manifest.json"


def test_a_service_that_fails_for_a_moment_is_no_mistake_of_the_user(s3, tmp_path):
    store = s3_store(s3, tmp_path, tmp_path)
    s3.fails = True
    with pytest.raises(OSError, match=f"cannot write to bucket '{BUCKET}' of {s3.url}.*503|SlowDown"):
        store.put("policy", b"")
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(OSError, match=f"cannot write to bucket '{BUCKET}'"):
        store.save_to_store()
    s3.fails = False
    store.put("policy", b"")
    assert store.get("policy") == b""


def test_a_service_that_does_not_answer_is_no_mistake_of_the_user(s3, tmp_path):
    store = s3_store(s3, tmp_path, tmp_path)
    s3.__exit__()
    with pytest.raises(OSError, match=f"cannot write to bucket '{BUCKET}'"):
        store.put("policy", b"")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bucket_name": "nobodys"}, "cannot reach bucket 'nobodys' of http.*404"),
        ({"creds_file": "/nowhere"}, "s3_creds_file: no file '/nowhere'"),
        ({"creds_file": None}, "credentials"),
    ],
)
def test_a_mistake_of_the_user_is_one_line(s3, tmp_path, changes, message):
    with pytest.raises(CoachError, match=message):
        s3_store(s3, tmp_path, tmp_path, **changes).deploy()


def test_credentials_come_from_the_standard_chain_too(s3, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    assert s3_store(s3, tmp_path, tmp_path, creds_file=None).deploy()


def test_a_key_that_leads_out_of_the_directory_is_refused(s3, tmp_path):
    store = s3_store(s3, tmp_path, tmp_path / "run")
    store.put("policy", b"")
    s3.objects["pole/1/files/../../outside"] = s3.objects["pole/1/store/policy"]
    with pytest.raises(CoachError, match="a path outside its directory"):
        store.load_from_store()
    assert not (tmp_path / "outside").exists()


def test_an_unknown_setting_or_kind_is_named():
    with pytest.raises(CoachError, match="no data store 'ftp'"):
        construct_data_store_params({"store_type": "ftp"})
