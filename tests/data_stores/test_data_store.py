import os

import pytest

from rl_coach.data_stores.data_store import DataStore, DataStoreParameters, SyncFiles


class Folder(DataStore):
    """A store of a user, who defines a part of what there is."""

    def __init__(self, params, folder):
        super().__init__(params)
        self.folder = folder

    def end_of_policies(self):
        return os.path.exists(os.path.join(self.folder, SyncFiles.FINISHED.value))


def test_a_store_of_a_user_says_when_no_more_will_come(tmp_path):
    store = Folder(DataStoreParameters("s3", "kubernetes", {"namespace": "mine"}), str(tmp_path))
    store.setup_checkpoint_dir("anywhere")
    assert store.params.orchestrator_params["namespace"] == "mine"
    assert not store.end_of_policies()
    (tmp_path / ".finished").touch()
    assert store.end_of_policies()


def test_what_it_does_not_define_is_named():
    with pytest.raises(NotImplementedError, match="Folder does not define put"):
        Folder(DataStoreParameters("s3", "", ""), "").put("policy", b"")


def test_the_files_are_those_of_coach():
    assert [file.value for file in SyncFiles] == [".finished", ".lock", ".ready"]
