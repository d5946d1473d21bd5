"""Which pools of a cluster the present user may read: namespaces with the settings of a pool.

A pool without settings, only a namespace with accounts, is not found: it has to be named.
"""

from __future__ import annotations

from typing import Final

from components.account_pool.config_map import CONFIG_MAP
from components.connection import Connection, NoReply
from components.errors import ClusterError

EVERYWHERE: Final = f"/api/v1/configmaps?fieldSelector=metadata.name%3D{CONFIG_MAP}"
_OK: Final = 200


def namespaces(connection: Connection) -> list[str]:
    """Return the namespaces with a pool; of who may list no ConfigMaps everywhere, those that can be read.

    Raises ClusterError, `not-allowed` for who may list neither ConfigMaps nor namespaces, `unreachable`.
    """
    try:
        found = connection.call("GET", EVERYWHERE)
        if found.status == _OK:
            return sorted(each["metadata"]["namespace"] for each in found.body["items"])
        listed = connection.call("GET", "/api/v1/namespaces")
        if listed.status != _OK:
            raise ClusterError(
                code="not-allowed",
                place=connection.server,
                cause=f"which pools there are is not told to this user: {listed.text}",
                mend="name a pool with --namespace, or let this user list namespaces",
            )
        names = sorted(each["metadata"]["name"] for each in listed.body["items"])
        return [name for name in names if _has_settings(connection, name)]
    except NoReply as silence:
        raise ClusterError(
            code="unreachable",
            place=connection.server,
            cause=f"the API server does not answer ({silence})",
            mend="start it, or name another --kubeconfig",
        ) from None


def _has_settings(connection: Connection, namespace: str) -> bool:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{CONFIG_MAP}"
    return connection.call("GET", path).status == _OK
