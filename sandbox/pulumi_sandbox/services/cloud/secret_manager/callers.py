"""Callers, identified by token, and their permissions, from IAM policies of secrets and from the project.

A token naming a member of a policy (`serviceAccount:reader@…`) is that member; any other is an owner of every
project. Roles have the permissions of https://cloud.google.com/secret-manager/docs/access-control.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any, Final

from google.api_core import exceptions as errors
from google.iam.v1.policy_pb2 import Binding, Policy
from starlette.responses import JSONResponse

_ON_DEMAND: Final = {
    kind.code: kind
    for kind in (
        errors.InvalidArgument,
        errors.Unauthenticated,
        errors.PermissionDenied,
        errors.NotFound,
        errors.AlreadyExists,
        errors.ResourceExhausted,
        errors.MethodNotImplemented,
        errors.ServiceUnavailable,
        errors.DeadlineExceeded,
    )
}


def refusal(error: errors.GoogleAPICallError) -> JSONResponse:
    """Return the response as Google writes it."""
    kind: Any = type(error)
    about = {"code": kind.code, "message": error.message, "status": kind.grpc_status_code.name}
    return JSONResponse({"error": about}, status_code=kind.code)


def not_kept(what: str) -> errors.MethodNotImplemented:
    """Return the error for what this emulator would not store."""
    return errors.MethodNotImplemented(f"This emulator does not keep {what}.")


def on_demand(code: int) -> JSONResponse:
    """Return the response with an HTTP status that a fault demands."""
    kind = _ON_DEMAND.get(code, errors.InternalServerError)
    return refusal(kind(f"The sandbox was asked to answer {code}."))


PREFIX: Final = "secretmanager."
_LOOKING: Final = frozenset(
    {"secrets.get", "secrets.list", "secrets.getIamPolicy", "versions.get", "versions.list"}
)
_MANAGING: Final = frozenset(
    f"versions.{verb}" for verb in ("add", "get", "list", "enable", "disable", "destroy")
)
_ALL: Final = (
    _LOOKING
    | _MANAGING
    | {f"secrets.{verb}" for verb in ("create", "update", "delete", "setIamPolicy")}
    | {"versions.access"}
)
ROLES: Final[Mapping[str, frozenset[str]]] = {
    "roles/secretmanager.admin": _ALL,
    "roles/secretmanager.secretAccessor": frozenset({"versions.access"}),
    "roles/secretmanager.secretVersionAdder": frozenset({"versions.add"}),
    "roles/secretmanager.secretVersionManager": _MANAGING,
    "roles/secretmanager.viewer": _LOOKING,
}
"""Role → its permissions, without the prefix `secretmanager.`."""

_PUBLIC: Final = frozenset({"allUsers", "allAuthenticatedUsers"})
_CALLER: Final = re.compile("(?:user|serviceAccount|group|principal|principalSet):.")
_MEMBER: Final = re.compile(
    r"(?:user|serviceAccount|group):[^\s@]+@[^\s@]+"
    r"|serviceAccount:[a-z0-9-]+\.svc\.id\.goog\[[^\s/]+/[^\s/]+\]"
    r"|(?:principal|principalSet)://iam\.googleapis\.com/\S+"
)

EMPTY_ETAG: Final = b"\0\x10\x01"
"""`ABAB` in base64: the etag of a policy that was never set, similar to Google's own."""


class Callers:
    """The permissions of callers. Those of members are for all projects, as from a custom role."""

    def __init__(self) -> None:
        """Start with owners only."""
        self._given: dict[str, frozenset[str]] = {}
        self._used: dict[str, set[str]] = {}

    def allow(self, member: str, permissions: Collection[str]) -> None:
        """Grant a member permissions in every project, and reset those it has used."""
        self._given[member] = frozenset(permissions)
        self._used[member] = set()

    def used(self, member: str) -> list[str]:
        """Return the permissions that a member has used."""
        return sorted(self._used.get(member, ()))

    def check(self, header: str | None, permission: str, resource: str, policy: Policy | None) -> None:
        """Raise PermissionDenied for a caller without permission. policy: of the secret."""
        member = member_of(header)
        if not _CALLER.match(member):
            return
        if permission not in self._given.get(member, frozenset()) | _by_policy(member, policy):
            raise errors.PermissionDenied(
                f"Permission '{PREFIX}{permission}' denied for resource '{resource}' (or it may not exist).",
            )
        self._used.setdefault(member, set()).add(permission)


def member_of(header: str | None) -> str:
    """Return the caller; raises Unauthenticated."""
    scheme, _, token = (header or "").partition(" ")
    if scheme != "Bearer" or not token.strip():
        raise errors.Unauthenticated(
            "Request is missing required authentication credential. Expected OAuth 2 access token."
        )
    return token.strip()


def _by_policy(member: str, policy: Policy | None) -> frozenset[str]:
    bindings = policy.bindings if policy else ()
    return frozenset(
        permission
        for binding in bindings
        if {member, *_PUBLIC} & {*binding.members}
        for permission in ROLES.get(binding.role, ())
    )


def replaced(present: Policy, wanted: Policy) -> Policy:
    """Return the policy to store when `wanted` replaces `present`.

    Raises Aborted if `wanted` has an outdated etag; InvalidArgument.
    """
    if wanted.etag and wanted.etag != present.etag:
        raise errors.Aborted(
            "There were concurrent policy changes."
            " Please retry the whole read-modify-write with exponential backoff."
        )
    members: dict[str, set[str]] = {}
    for binding in wanted.bindings:
        if binding.HasField("condition"):
            raise not_kept("conditions")
        if binding.role not in ROLES:
            raise errors.InvalidArgument(f"Role {binding.role} is not supported for this resource.")
        for member in binding.members:
            if member not in _PUBLIC and not _MEMBER.fullmatch(member):
                raise errors.InvalidArgument(f"The member {member} is of an unknown type.")
        members.setdefault(binding.role, set()).update(binding.members)
    merged = [Binding(role=role, members=sorted(named)) for role, named in sorted(members.items()) if named]
    return Policy(version=1, bindings=merged, etag=secrets.token_bytes(8))
