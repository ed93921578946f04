"""Data stores by name: from plain settings to parameters, and from parameters to the store."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from rl_coach.data_stores.data_store import DataStore, DataStoreParameters
from rl_coach.utils import CoachError, did_you_mean


def get_data_store(params: DataStoreParameters) -> DataStore:
    """The data store that parameters describe.

    :raises CoachError: there is no such kind
    """
    return _kind(params.store_type).store(params)


def construct_data_store_params(json: Mapping[str, Any]) -> DataStoreParameters:
    """Parameters out of plain settings.

    :param json: ``store_type``, ``orchestrator_type``, ``orchestrator_params``, and those of the kind of store, see
        ``NFSDataStoreParameters``, ``S3DataStoreParameters`` and ``RedisDataStoreParameters``; ``None`` is as if it
        were not given
    :raises CoachError: there is no such kind, or it has no such setting
    """
    given = {name: value for name, value in json.items() if value is not None}
    base = DataStoreParameters(
        given.pop("store_type"), given.pop("orchestrator_type", ""), given.pop("orchestrator_params", {})
    )
    try:
        return _kind(base.store_type).parameters(base, **given)
    except TypeError as error:
        raise CoachError(f"data store '{base.store_type}': {error}") from error
