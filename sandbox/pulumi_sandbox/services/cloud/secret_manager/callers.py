"""Who asks, by the token, and what they may do: by policies of secrets, and by what a project gives them.

A token that names a member of a policy (`serviceAccount:reader@…`) is that member; any other is an owner of
every project. The permissions of roles are those of https://cloud.google.com/secret-manager/docs/access-control.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from google.iam.v1.policy_pb2 import Policy

from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal

PREFIX: Final = "secretmanager."
_LOOKING: Final = frozenset(
    {"secrets.get", "secrets.list", "secrets.getIamPolicy", "versions.get", "versions.list"}
)
_MANAGING: Final = frozenset(
    f"versions.{verb}" for verb in ("add", "get", "list", "enable", "disable", "destroy")
)
ALL: Final = (
    _LOOKING
    | _MANAGING
    | {f"secrets.{verb}" for verb in ("create", "update", "delete", "setIamPolicy")}
    | {"versions.access"}
)
ROLES: Final[Mapping[str, frozenset[str]]] = {
    "roles/secretmanager.admin": ALL,
    "roles/secretmanager.secretAccessor": frozenset({"versions.access"}),
    "roles/secretmanager.secretVersionAdder": frozenset({"versions.add"}),
    "roles/secretmanager.secretVersionManager": _MANAGING,
    "roles/secretmanager.viewer": _LOOKING,
}
"""Role → what it allows, after `secretmanager.`."""

_PUBLIC: Final = frozenset({"allUsers", "allAuthenticatedUsers"})


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
        """Refuse a request without a token, and one of a caller who may not; policy: of the secret."""
        if not self.allowed(header, [permission], policy):
            raise GcpRefusal(
                "PERMISSION_DENIED",
                f"Permission '{PREFIX}{permission}' denied for resource '{resource}' (or it may not exist).",
            )

    def allowed(self, header: str | None, asked: Iterable[str], policy: Policy | None) -> list[str]:
        """Return which of the permissions the caller has; raises Refusal UNAUTHENTICATED."""
        scheme, _, token = (header or "").partition(" ")
        if scheme != "Bearer" or not token.strip():
            raise GcpRefusal(
                "UNAUTHENTICATED",
                "Request is missing required authentication credential. Expected OAuth 2 access token.",
            )
        member = token.strip()
        if not _is_member(member):
            return [*asked]
        has = self._given.get(member, frozenset()) | _by_policy(member, policy)
        found = [each for each in asked if each in has]
        self._used.setdefault(member, set()).update(found)
        return found


def _is_member(token: str) -> bool:
    kind, separator, rest = token.partition(":")
    return bool(separator and rest) and kind in (
        "user",
        "serviceAccount",
        "group",
        "principal",
        "principalSet",
    )


def _by_policy(member: str, policy: Policy | None) -> frozenset[str]:
    """Return what the unconditional bindings give; whether a condition holds, nobody decides here."""
    bindings = policy.bindings if policy else ()
    return frozenset(
        permission
        for binding in bindings
        if not binding.HasField("condition") and {member, *_PUBLIC} & {*binding.members}
        for permission in ROLES.get(binding.role, ())
    )
