"""Role assignments: who may do what where, and why one is refused."""

import re
from datetime import UTC, datetime
from typing import Any, Final

from pulumi_sandbox.services.cloud.resource_manager.groups import document
from pulumi_sandbox.services.cloud.resource_manager.identities import TENANT
from pulumi_sandbox.services.cloud.resource_manager.ids import PathKind, ResourceId, is_guid
from pulumi_sandbox.services.cloud.resource_manager.refusals import ArmRefusal, bad_request
from pulumi_sandbox.services.cloud.resource_manager.store import Document, ResourceStore

_ROLE: Final = re.compile(
    r"(?:/subscriptions/[^/]+)?/providers/Microsoft\.Authorization/roleDefinitions/([^/]+)", re.IGNORECASE
)
_SERVICE_PRINCIPAL: Final = "ServicePrincipal"


class Directory:
    """Which principals are known: those of the identities, each of them only after a few questions.

    Azure copies a new principal to where role assignments look for it, which takes a moment. Whoever says
    that it is a ServicePrincipal does not have to wait for that (Azure's documentation of principalType).
    """

    def __init__(self, store: ResourceStore, attempts: int) -> None:
        """Let the first `attempts` assignments to a principal made from now on fail."""
        self._store = store
        self._attempts = attempts
        self._left: dict[str, int] = {}

    def introduce(self, principal: str) -> None:
        """Note a principal that was just made."""
        self._left[principal] = self._attempts

    def check(self, principal: str, kind: str | None) -> None:
        """Refuse a principal that is not known, or not yet, or of another kind."""
        known = any(
            each["properties"]["principalId"] == principal for each in self._store.of(PathKind.IDENTITY)
        )
        left = 0 if kind == _SERVICE_PRINCIPAL else self._left.get(principal, 0)
        if left:
            self._left[principal] = left - 1
        if left or not known:
            raise bad_request(
                f"Principal {principal} does not exist in the directory {TENANT}. Check that you have the"
                " correct principal ID. If you are creating this principal and then immediately assigning a"
                " role, this error might be related to a replication delay.",
                "PrincipalNotFound",
            )
        if kind not in (None, _SERVICE_PRINCIPAL):
            raise bad_request(
                f"The PrincipalId '{principal}' has type 'ServicePrincipal',"
                f" which is different from specified PrincipalType '{kind}'.",
                "UnmatchedPrincipalType",
            )


def assignment(
    store: ResourceStore, directory: Directory, id_: ResourceId, present: Document | None, body: Document
) -> Document:
    """Return a role assignment as it is to be kept; what it assigns never changes; raises Refusal."""
    if not is_guid(id_.name):
        raise bad_request(
            f"The role assignment ID '{id_.name}' is not valid. The role assignment ID must be a GUID.",
            "InvalidRoleAssignmentId",
        )
    _require_scope(store, id_)
    given: Any = body.get("properties")
    properties = _checked(given if isinstance(given, dict) else {})
    if present is not None:
        if _grants({**properties, "scope": id_.scope}) != _grants(present["properties"]):
            raise bad_request(
                "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
                "RoleAssignmentUpdateNotPermitted",
            )
        return present
    directory.check(properties["principalId"], properties["principalType"])
    for other in store.of(PathKind.ASSIGNMENT):
        if _grants(other["properties"]) == _grants({**properties, "scope": id_.scope}):
            name = other["name"].replace("-", "")
            raise ArmRefusal(
                409,
                "RoleAssignmentExists",
                f"The role assignment already exists. The ID of the existing role assignment is {name}.",
            )
    now = datetime.now(UTC).isoformat()
    properties["principalType"] = _SERVICE_PRINCIPAL
    return document(id_, None, {**properties, "scope": id_.scope, "createdOn": now, "updatedOn": now})


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    role, principal = given.get("roleDefinitionId"), given.get("principalId")
    found = _ROLE.fullmatch(role) if isinstance(role, str) else None
    if found is None or not is_guid(found[1]):
        raise bad_request(
            f"The role definition ID '{role}' is not valid. It ends in roleDefinitions/GUID.",
            "InvalidRoleDefinitionId",
        )
    if not isinstance(principal, str) or not is_guid(principal):
        raise bad_request(
            f"The Principal ID '{principal}' is not valid. Principal ID must be a GUID.", "InvalidPrincipalId"
        )
    kind = given.get("principalType")
    return {"roleDefinitionId": role, "principalId": principal.lower(), "principalType": kind}


def _grants(properties: dict[str, Any]) -> tuple[str, str, str]:
    """Return what makes two assignments the same: who, what, where."""
    role = properties["roleDefinitionId"].rpartition("/")[2].lower()
    return properties["principalId"], role, properties["scope"].lower()


def _require_scope(store: ResourceStore, id_: ResourceId) -> None:
    """Refuse a resource group, or an identity, that does not exist; other scopes are not looked into."""
    parts = id_.scope.split("/")
    if len(parts) >= 5 and parts[3].lower() == "resourcegroups" and store.get("/".join(parts[:5])) is None:
        raise ArmRefusal(404, "ResourceGroupNotFound", f"Resource group '{parts[4]}' could not be found.")
    is_identity = len(parts) == 9 and parts[7].lower() == "userassignedidentities"
    if is_identity and store.get(id_.scope) is None:
        raise ArmRefusal(404, "ResourceNotFound", f"The Resource '{id_.scope}' was not found.")
