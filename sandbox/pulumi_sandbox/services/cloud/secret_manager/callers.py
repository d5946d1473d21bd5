"""Who asks, by the token, and what they may do: by IAM policies of secrets, and by what a project gives them.

A token that names a member of a policy (`serviceAccount:reader@…`) is that member; any other is an owner of
every project. The permissions of roles are those of https://cloud.google.com/secret-manager/docs/access-control.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from typing import Final

from google.iam.v1.policy_pb2 import Binding, Policy
from starlette.responses import JSONResponse

HTTP: Final[Mapping[str, int]] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_ON_DEMAND: Final[Mapping[int, str]] = {code: status for status, code in reversed(HTTP.items())}


class GcpRefusal(Exception):  # noqa: N818 - the service is whole; a request is refused
    """A request that is refused."""

    def __init__(self, status: str, message: str) -> None:
        """Keep a canonical status (a key of `HTTP`) and what is wrong."""
        super().__init__(status, message)
        self.status = status
        self.message = message

    def response(self) -> JSONResponse:
        """Return the answer as Google writes it."""
        code = HTTP[self.status]
        error = {"code": code, "message": self.message, "status": self.status}
        return JSONResponse({"error": error}, status_code=code)


def invalid(message: str) -> GcpRefusal:
    """Refuse what can never be right."""
    return GcpRefusal("INVALID_ARGUMENT", message)


def not_kept(what: str) -> GcpRefusal:
    """Refuse what this emulator would silently forget."""
    return GcpRefusal("UNIMPLEMENTED", f"This emulator does not keep {what}.")


def stale(what: str) -> GcpRefusal:
    """Refuse a write whose etag is not the present one."""
    return GcpRefusal("FAILED_PRECONDITION", f"The etag provided does not match the current etag of {what}.")


def on_demand(code: int) -> JSONResponse:
    """Refuse with an HTTP status because a fault says so."""
    return GcpRefusal(_ON_DEMAND.get(code, "INTERNAL"), f"The sandbox was asked to answer {code}.").response()


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
"""Role → what it allows, after `secretmanager.`."""

_PUBLIC: Final = frozenset({"allUsers", "allAuthenticatedUsers"})
_CALLER: Final = re.compile("(?:user|serviceAccount|group|principal|principalSet):.")
_MEMBER: Final = re.compile(
    r"(?:user|serviceAccount|group):[^\s@]+@[^\s@]+"
    r"|serviceAccount:[a-z0-9-]+\.svc\.id\.goog\[[^\s/]+/[^\s/]+\]"
    r"|(?:principal|principalSet)://iam\.googleapis\.com/\S+"
)

EMPTY_ETAG: Final = b"\0\x10\x01"
"""`ABAB` in base64: the etag of a policy that was never set, much like Google's own."""


class Callers:
    """Who may do what. A member's own permissions are a project's, as a custom role gives them."""

    def __init__(self) -> None:
        """Begin with owners only."""
        self._given: dict[str, frozenset[str]] = {}
        self._used: dict[str, set[str]] = {}

    def allow(self, member: str, permissions: Collection[str]) -> None:
        """Give a member permissions in every project, and forget what it used until now."""
        self._given[member] = frozenset(permissions)
        self._used[member] = set()

    def used(self, member: str) -> list[str]:
        """Return the permissions that a member has made use of."""
        return sorted(self._used.get(member, ()))

    def check(self, header: str | None, permission: str, resource: str, policy: Policy | None) -> None:
        """Refuse a caller who may not; policy: of the secret. Raises GcpRefusal."""
        member = member_of(header)
        if not _CALLER.match(member):
            return
        if permission not in self._given.get(member, frozenset()) | _by_policy(member, policy):
            raise GcpRefusal(
                "PERMISSION_DENIED",
                f"Permission '{PREFIX}{permission}' denied for resource '{resource}' (or it may not exist).",
            )
        self._used.setdefault(member, set()).add(permission)


def member_of(header: str | None) -> str:
    """Return who asks; raises GcpRefusal UNAUTHENTICATED."""
    scheme, _, token = (header or "").partition(" ")
    if scheme != "Bearer" or not token.strip():
        raise GcpRefusal(
            "UNAUTHENTICATED",
            "Request is missing required authentication credential. Expected OAuth 2 access token.",
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
    """Return what is kept when `wanted` is set over `present`.

    Raises GcpRefusal ABORTED when `wanted` carries an etag that is not the present one; INVALID_ARGUMENT.
    """
    if wanted.etag and wanted.etag != present.etag:
        raise GcpRefusal(
            "ABORTED",
            "There were concurrent policy changes."
            " Please retry the whole read-modify-write with exponential backoff.",
        )
    members: dict[str, set[str]] = {}
    for binding in wanted.bindings:
        if binding.HasField("condition"):
            raise not_kept("conditions")
        if binding.role not in ROLES:
            raise invalid(f"Role {binding.role} is not supported for this resource.")
        for member in binding.members:
            if member not in _PUBLIC and not _MEMBER.fullmatch(member):
                raise invalid(f"The member {member} is of an unknown type.")
        members.setdefault(binding.role, set()).update(binding.members)
    merged = [Binding(role=role, members=sorted(named)) for role, named in sorted(members.items()) if named]
    return Policy(version=1, bindings=merged, etag=secrets.token_bytes(8))
