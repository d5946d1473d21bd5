"""Reads from a cluster the Secrets that could serve resources, one by one, and no other."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from components.aso_credentials import keys
from components.aso_credentials.manifests import Found
from components.aso_credentials.nouns import Resource, SecretName, Secrets
from components.connection import Connection, NoReply
from components.errors import CredfleetError

_ABSENT: Final = 404


def live_secrets(connection: Connection, resources: Iterable[Resource], operator_namespace: str) -> Secrets:
    """Read what is there of the Secrets that resources and operator look for.

    Raises CredfleetError: `not-allowed`, or `cluster-unreachable` when no answer comes.
    """
    wanted = {SecretName(operator_namespace, keys.GLOBAL_SETTINGS)}
    for resource in resources:
        wanted.add(SecretName(resource.namespace, keys.NAMESPACE_SECRET))
        name = resource.annotations.get(keys.CREDENTIAL_FROM, "")
        if name and "/" not in name:
            wanted.add(SecretName(resource.namespace, name))
    found = {name: _read(connection, name) for name in sorted(wanted)}
    return {name: data for name, data in found.items() if data is not None}


def _read(connection: Connection, secret: SecretName) -> Mapping[str, bytes] | None:
    namespace, name = quote(secret.namespace, safe=""), quote(secret.name, safe="")
    try:
        reply = connection.call("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
    except NoReply as silence:
        raise _failed("cluster-unreachable", secret, f"the API server does not answer ({silence})") from None
    if reply.status == _ABSENT:
        return None
    if reply.status != 200:
        raise _failed("not-allowed", secret, f"the API server does not show it: {reply.text}")
    body: Mapping[str, Any] = reply.body
    return Found(f"Secret {secret}", body).secret_data()


def _failed(code: str, secret: SecretName, cause: str) -> CredfleetError:
    return CredfleetError(
        code=code,
        place=f"Secret {secret}",
        cause=cause,
        mend="choose a cluster and a user that may read it, or give the Secrets as files without --live",
    )
