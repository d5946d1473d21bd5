"""`credfleet pool quarantine --cut`: takes an account away from its holders at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from components.account_pool.core.pool import OPERATOR
from components.connection import Connection, HttpOutcome, NoReply, connect
from components.projection.model import PROJECTED_FROM
from operations.cli.answer import CommandResult
from operations.pool.access import PoolTarget

_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces"
_READER: Final = "credfleet-reader:"
_PAGE: Final = 500

Found = tuple[str, str, Mapping[str, Any]]
"""Description of an object, path of its kind, and its metadata."""


class _Refused(Exception):  # noqa: N818 - what the API server did
    """The API server rejected a request."""


def cut_off(where: PoolTarget, account: str, reason: str) -> CommandResult:
    """Quarantine an account, then delete its copies in this cluster and the rights to read it.

    Failed deletions are reported and do not stop the rest; raises as `PoolOperator.quarantine`.
    """
    pool = where.open(OPERATOR)
    with pool.flushed():
        member = pool.quarantine(account, f"cut off: {reason}", cut=True)
    connection = connect(where.target())
    taken, left = list[str](), list[str]()
    for what, find in (("rights", _rights), ("copies", _copies)):
        try:
            for name, path, metadata in find(connection, where.namespace, account):
                _delete(connection, path, metadata)
                taken.append(name)
        except (_Refused, NoReply) as error:
            left.append(f"{what} could not be taken: {error}")
    again = "let `up` in the stack that claims it take them, or run this again as a user who may"
    return CommandResult(
        {"secretName": member.name, "state": member.state, "taken": taken, "problems": left},
        [
            f"✓ account {member.name} is quarantined now, and not given out",
            *(f"✓ {name} deleted" for name in taken),
            *(f"✗ {problem}\n→ {again}" for problem in left),
            "Keys that were read already work until they are revoked at the cloud.",
        ],
        exit_code=int(bool(left)),
    )


def _rights(connection: Connection, namespace: str, account: str) -> Iterator[Found]:
    """Yield the Roles that let tenants read the account, after their bindings."""
    base = f"{_RBAC}/{namespace}"
    roles = [
        one["metadata"]
        for one in _listed(connection, f"{base}/roles")
        if one["metadata"]["name"].startswith(_READER)
        and any(account in (rule.get("resourceNames") or ()) for rule in one.get("rules") or ())
    ]
    names = {role["name"] for role in roles}
    for binding in _listed(connection, f"{base}/rolebindings"):
        if binding["roleRef"]["name"] in names:
            name = binding["metadata"]["name"]
            yield f"RoleBinding {namespace}/{name}", f"{base}/rolebindings", binding["metadata"]
    for role in roles:
        yield f"Role {namespace}/{role['name']}", f"{base}/roles", role


def _copies(connection: Connection, namespace: str, account: str) -> Iterator[Found]:
    """Yield the Secrets that are copies of the account."""
    for one in _listed(connection, "/api/v1/secrets"):
        metadata = one["metadata"]
        if (metadata.get("annotations") or {}).get(PROJECTED_FROM) == f"{namespace}/{account}":
            path = f"/api/v1/namespaces/{metadata['namespace']}/secrets"
            yield f"Secret {metadata['namespace']}/{metadata['name']}", path, metadata


def _listed(connection: Connection, path: str) -> Iterator[Mapping[str, Any]]:
    accept = _METADATA if path.endswith("/secrets") else "application/json"
    cursor = ""
    while True:
        reply = connection.call("GET", f"{path}?limit={_PAGE}&continue={quote(cursor)}", accept=accept)
        if reply.answer is not HttpOutcome.DONE:
            raise _Refused(reply.text)
        yield from reply.body.get("items") or ()
        cursor = str(reply.body["metadata"].get("continue") or "")
        if not cursor:
            return


def _delete(connection: Connection, path: str, metadata: Mapping[str, Any]) -> None:
    only = {"preconditions": {"uid": metadata["uid"]}}
    reply = connection.call("DELETE", f"{path}/{metadata['name']}", body=only)
    if reply.answer not in (HttpOutcome.DONE, HttpOutcome.ABSENT):
        raise _Refused(reply.text)
