"""A data store in a bucket of Amazon S3 or another service with the same protocol."""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import Any, Iterator

from rl_coach.data_stores.checkpoint_data_store import CheckpointDataStore
from rl_coach.data_stores.data_store import MARKERS, DataStoreParameters
from rl_coach.runs.lock import LOCK_FILE
from rl_coach.utilities import files
from rl_coach.utils import CoachError

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 4, 60, 2
SERVER_ERROR = 500
_BEING_WRITTEN = (".tmp", ".saving-")  # suffix of unfinished files, prefix of unfinished directories


class S3DataStoreParameters(DataStoreParameters):
    """Location of a bucket.

    :param ds_params: kind of store and orchestrator
    :param creds_file: an AWS credentials file. None uses AWS's standard sources: environment, ``~/.aws``, the role of
        the machine or pod
    :param end_point: URL of the service; None uses Amazon S3
    :param bucket_name: the bucket, which must exist
    :param checkpoint_dir: local directory of the checkpoints
    :param expt_dir: local directory of the experiment
    :param prefix: beginning of all keys, without a slash at the end
    """

    def __init__(
        self,
        ds_params: DataStoreParameters,
        creds_file: str | None = None,
        end_point: str | None = None,
        bucket_name: str | None = None,
        checkpoint_dir: str | None = None,
        expt_dir: str | None = None,
        prefix: str = "",
    ):
        super().__init__(ds_params.store_type, ds_params.orchestrator_type, ds_params.orchestrator_params)
        self.creds_file = creds_file
        self.end_point = end_point
        self.bucket_name = bucket_name
        self.checkpoint_dir = checkpoint_dir
        self.expt_dir = expt_dir
        self.prefix = prefix


class S3DataStore(CheckpointDataStore):
    """A data store in a bucket. Objects are replaced atomically: readers get the old object or the complete new object.

    :param params: location of the bucket
    :raises CoachError: in all methods, if the service refuses the request, or the bucket does not exist
    :raises OSError: in all methods, if the service cannot be reached; a later call may succeed
    """

    params: S3DataStoreParameters

    def __init__(self, params: S3DataStoreParameters):
        super().__init__(params)
        self._made: Any = None
        self._uploaded: dict[str, tuple[int, int]] = {}

    def deploy(self) -> bool:
        """Check that the bucket exists and can be reached."""
        with self._refusals("reach"):
            self._client.head_bucket(Bucket=self.params.bucket_name)
        return True

    def get_info(self) -> str:
        """The bucket and the prefix of its keys."""
        return f"s3://{self.params.bucket_name}/{self.params.prefix}".rstrip("/")

    def undeploy(self) -> bool:
        """Delete the documents and close the connection. The experiment's files stay in the bucket."""
        with self._refusals("write to"):
            for name in self.documents:
                self._client.delete_object(Bucket=self.params.bucket_name, Key=self._key("store", name))
        if self._made is not None:
            self._made.close()
            self._made = None
        return True

    def put(self, name: str, content: bytes) -> None:
        with self._refusals("write to"):
            self._client.put_object(Bucket=self.params.bucket_name, Key=self._key("store", name), Body=content)

    def get(self, name: str) -> bytes | None:
        with self._refusals("read from"):
            try:
                answer = self._client.get_object(Bucket=self.params.bucket_name, Key=self._key("store", name))
            except self._client.exceptions.NoSuchKey:
                return None
            return answer["Body"].read()

    def save_to_store(self) -> None:
        """Upload new files of the experiment's directory: first the checkpoints, then the state file, which names the
        newest checkpoint. Files that were deleted locally are also deleted from the bucket.
        """
        root = self._root
        found = {path.relative_to(root).as_posix(): path for path in _whole_files(root)}
        with self._refusals("write to"):
            # The state file may only name a checkpoint that is completely uploaded.
            for name in sorted(found, key=_state_file_last):
                self._upload(name, found[name])
            # Delete last: the old state file in the bucket may still have named the deleted checkpoints.
            for name in set(self._uploaded) - set(found):
                self._client.delete_object(Bucket=self.params.bucket_name, Key=self._key("files", name))
                del self._uploaded[name]

    def load_from_store(self) -> None:
        """Download files that are missing locally, or have locally another size or an older date."""
        root = self._root
        with self._refusals("read from"):
            # The state file must not name an incomplete checkpoint.
            for name, size, changed in sorted(self._listed(), key=lambda one: _state_file_last(one[0])):
                path = root / name
                # A file that was downloaded before is newer than its object in the bucket.
                if path.exists() and path.stat().st_size == size and path.stat().st_mtime >= changed:
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                answer = self._client.get_object(Bucket=self.params.bucket_name, Key=self._key("files", name))
                with files.replaced(path, synced=False) as file:
                    for chunk in answer["Body"].iter_chunks(1 << 20):
                        file.write(chunk)

    def setup_checkpoint_dir(self, crd: str | None = None) -> None:
        """Upload the checkpoints from which training starts."""
        if crd is None:
            return
        with self._refusals("write to"):
            for path in _whole_files(pathlib.Path(crd)):
                if path.name in MARKERS:
                    continue
                relative = path.relative_to(crd).as_posix()
                name = f"{pathlib.Path(self._checkpoints).name}/{relative}" if self.params.expt_dir else relative
                self._client.upload_file(str(path), self.params.bucket_name, self._key("files", name))

    @property
    def _checkpoints(self) -> str:
        if not self.params.checkpoint_dir:
            raise CoachError("data store s3 has no directory: set checkpoint_dir")
        return self.params.checkpoint_dir

    @property
    def _root(self) -> pathlib.Path:
        """The directory to upload: the experiment's directory, or the directory of the checkpoints if there is none."""
        return pathlib.Path(self.params.expt_dir or self._checkpoints)

    def _upload(self, name: str, path: pathlib.Path) -> None:
        try:
            status = path.stat()
            stamp = status.st_size, status.st_mtime_ns
            # Skip files that have not changed: otherwise each save would upload all checkpoints again.
            if self._uploaded.get(name) != stamp:
                self._client.upload_file(str(path), self.params.bucket_name, self._key("files", name))
                self._uploaded[name] = stamp
        except FileNotFoundError:
            return  # an old checkpoint was deleted meanwhile

    def _listed(self) -> Iterator[tuple[str, int, float]]:
        """(name, size in bytes, time of the last change) of all files in the bucket."""
        beginning = self._key("files", "")
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self.params.bucket_name, Prefix=beginning):
            for one in page.get("Contents", []):
                name = one["Key"].removeprefix(beginning)
                if not _is_within(name):
                    raise CoachError(
                        f"{self.get_info()} contains '{one['Key']}', a path outside its directory: delete this object"
                    )
                yield name, one["Size"], one["LastModified"].timestamp()

    def _key(self, *parts: str) -> str:
        return "/".join(part for part in (self.params.prefix, *parts[:-1]) if part) + "/" + parts[-1]

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = _connect(self.params)
        return self._made

    @contextlib.contextmanager
    def _refusals(self, action: str) -> Iterator[None]:
        """Turn errors of the service into CoachErrors that name the bucket; temporary errors into ConnectionErrors."""
        from boto3.exceptions import Boto3Error, S3UploadFailedError
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.exceptions import ConnectionError as NoConnection

        where = f"bucket '{self.params.bucket_name}' of {self.params.end_point or 'Amazon S3'}"
        try:
            yield
        except (BotoCoreError, Boto3Error, ClientError) as error:
            # uploads raise another error, which contains the service's error
            cause = error.__context__ if isinstance(error, S3UploadFailedError) else error
            status = 0
            if isinstance(cause, ClientError):
                status = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            # Errors of the network and of the server (5xx) are temporary: the trainer continues and tries again later.
            may_pass = isinstance(cause, (HTTPClientError, NoConnection)) or status >= SERVER_ERROR
            line = f"cannot {action} {where}: {' '.join(str(error).split())}"
            raise (ConnectionError if may_pass else CoachError)(line) from error


def _connect(params: S3DataStoreParameters) -> Any:
    """Make a client of the service. :raises CoachError: if the credentials file cannot be read"""
    import boto3
    import botocore.session
    from botocore.config import Config

    session = botocore.session.Session()
    if params.creds_file:
        path = os.path.expanduser(params.creds_file)
        if not os.path.isfile(path):
            raise CoachError(f"s3_creds_file: no file '{params.creds_file}'")
        session.set_config_variable("credentials_file", path)
    config = Config(
        connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries={"max_attempts": ATTEMPTS},
        request_checksum_calculation="when_required", response_checksum_validation="when_required",
    )  # fmt: skip
    # signing needs a region; services other than Amazon's ignore it
    region = session.get_config_variable("region") or "us-east-1"
    return boto3.Session(botocore_session=session, region_name=region).client(
        "s3", endpoint_url=params.end_point, config=config
    )


def _whole_files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """The complete files below a directory."""
    for path in sorted(root.rglob("*")):
        names = path.relative_to(root).parts
        is_partial = any(name.endswith(_BEING_WRITTEN[0]) or name.startswith(_BEING_WRITTEN[1]) for name in names)
        if not is_partial and path.name != LOCK_FILE and path.is_file():
            yield path


def _state_file_last(name: str) -> tuple[bool, str]:
    """Sorting key. The name of the state file begins with a dot."""
    return pathlib.Path(name).name.startswith("."), name


def _is_within(name: str) -> bool:
    return bool(name) and not name.startswith("/") and ".." not in name.split("/") and "\\" not in name
