"""Functions that make a data store from the name of its kind."""

from __future__ import annotations

import importlib
import json as json_format
from typing import Any

from rl_coach.data_stores.data_store import DataStore, DataStoreParameters
from rl_coach.utils import CoachError

_KINDS = {
    "redis": ("rl_coach.data_stores.redis_data_store", "RedisDataStore"),
    "nfs": ("rl_coach.data_stores.nfs_data_store", "NFSDataStore"),
    "s3": ("rl_coach.data_stores.s3_data_store", "S3DataStore"),
}


def _class(kind: str, suffix: str = "") -> Any:
    if kind not in _KINDS:
        raise CoachError(f"no data store '{kind}'; allowed are {', '.join(_KINDS)}")
    module, name = _KINDS[kind]
    return getattr(importlib.import_module(module), name + suffix)


def get_data_store(params: DataStoreParameters) -> DataStore:
    """Make the data store of the kind ``params.store_type``. :raises CoachError: if the kind does not exist"""
    return _class(params.store_type)(params)


def construct_data_store_params(json: dict[str, Any] | str) -> DataStoreParameters:
    """Make the parameters of a data store from a JSON object or its text. The keys are ``store_type``,
    ``orchestrator_type``, ``orchestrator_params``, and the parameters of this kind of store.

    :raises CoachError: if the kind does not exist
    """
    settings = dict(json_format.loads(json) if isinstance(json, str) else json)
    common = [settings.pop(name, None) for name in ("store_type", "orchestrator_type", "orchestrator_params")]
    return _class(str(common[0]), "Parameters")(DataStoreParameters(*common), **settings)


def open_data_store(kind: str, settings: dict[str, Any], run: str, connection: Any) -> DataStore:
    """Open the data store of a run.

    :param settings: settings of this kind of store, by name; see ``RunOrder.data_store``
    :param connection: the connection to the run's Redis
    """
    from rl_coach.data_stores.redis_data_store import RedisDataStore, RedisDataStoreParameters

    if kind == "redis":
        return RedisDataStore(
            RedisDataStoreParameters(DataStoreParameters(kind, "", {}), redis_channel=run), connection
        )
    params = construct_data_store_params(
        {"store_type": kind, "orchestrator_type": "", "orchestrator_params": {"namespace": ""}, **settings}
    )
    return get_data_store(params)
