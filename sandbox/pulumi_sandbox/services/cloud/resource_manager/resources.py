"""The data and rules of Resource Manager: IDs, groups, identities with their federation, role assignments.

Federated credentials of one identity change one at a time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import uuid4

from starlette.responses import JSONResponse

from pulumi_sandbox import files

_ON_DEMAND: Final[Mapping[int, str]] = {
    401: "AuthenticationFailed",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    409: "Conflict",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}


@dataclass(eq=False)
class ArmRefusal(Exception):  # noqa: N818 - the service is whole; a request is refused
    """A rejected request: the HTTP status, the error code for clients, the message."""

    status: int
    code: str
    message: str

    def response(self) -> JSONResponse:
        """Return the response as Resource Manager writes it."""
        error = {"code": self.code, "message": self.message}
        return JSONResponse({"error": error}, status_code=self.status)


def bad_request(message: str, code: str = "BadRequest") -> ArmRefusal:
    """Return the error for an invalid request."""
    return ArmRefusal(400, code, message)


def on_demand(status: int) -> JSONResponse:
    """Return the response with an HTTP status that a fault demands."""
    code = _ON_DEMAND.get(status, "InternalServerError")
    return ArmRefusal(status, code, f"The sandbox was asked to answer {status}.").response()


class PathKind(Enum):
    """A kind of resource, by its type in responses."""

    GROUP = "Microsoft.Resources/resourceGroups"
    IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
    FEDERATION = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    ASSIGNMENT = "Microsoft.Authorization/roleAssignments"


_GROUP: Final = r"/subscriptions/[^/]+/resourceGroups/[-\w.()]{0,89}[-\w()]"
_IDENTITY: Final = rf"{_GROUP}/providers/Microsoft\.ManagedIdentity/userAssignedIdentities/[^/]+"

_ASSIGNMENT: Final = r"/providers/Microsoft\.Authorization/roleAssignments/"
_ASSIGNMENT_PART: Final = re.compile(_ASSIGNMENT, re.IGNORECASE)
_PATTERNS: Final = {
    PathKind.ASSIGNMENT: re.compile(rf"(?:/.+)?{_ASSIGNMENT}[^/]+", re.IGNORECASE),
    PathKind.GROUP: re.compile(_GROUP, re.IGNORECASE),
    PathKind.IDENTITY: re.compile(_IDENTITY, re.IGNORECASE),
    PathKind.FEDERATION: re.compile(rf"{_IDENTITY}/federatedIdentityCredentials/[^/]+", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class ResourceId:
    """The ID of a resource, in the case of the request."""

    kind: PathKind
    text: str

    @classmethod
    def read(cls, path: str) -> ResourceId:
        """Parse a request's path.

        Raises ArmRefusal InvalidResourceType for kinds that this emulator does not serve.
        """
        text = path.rstrip("/")
        for kind, pattern in _PATTERNS.items():
            if pattern.fullmatch(text):
                return cls(kind, text)
        raise ArmRefusal(404, "InvalidResourceType", f"No resource that this emulator serves is at '{path}'.")

    @property
    def key(self) -> str:
        """The ID in a normalized case."""
        return self.text.lower()

    @property
    def name(self) -> str:
        """The last part."""
        return self.text.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The ID of this resource group, or of the one that contains it."""
        return "/".join(self.text.split("/")[:5])

    @property
    def identity(self) -> str:
        """The ID of this identity, or of the one that it belongs to."""
        return "/".join(self.text.split("/")[:9])

    @property
    def scope(self) -> str:
        """The scope ID of a role assignment; `/` is everything."""
        return _ASSIGNMENT_PART.split(self.text)[0] or "/"


Document: TypeAlias = dict[str, Any]
"""A resource as in a response: ID, name, type, properties, and location and tags if it has them."""


class ResourceStore:
    """All resources, in memory and in a file, which is written before each response."""

    def __init__(self, file: Path) -> None:
        """Load the file of an earlier process.

        Raises SandboxError `state-unreadable`.
        """
        self._file = file
        self._documents: dict[str, Document] = {}
        faulty = "it holds no resources of the Resource Manager emulator"
        fix = "remove the file; the resources are gone then"
        with suppress(FileNotFoundError), files.readable(file, faulty, fix):
            documents = json.loads(file.read_text(encoding="utf-8"))
            self._documents = {each["id"].lower(): each for each in documents}

    def get(self, id_: str) -> Document | None:
        """Return a resource by its ID, in any case."""
        return self._documents.get(id_.lower())

    def of(self, kind: PathKind, below: str = "") -> Iterator[Document]:
        """Yield the resources of a kind whose IDs start with another ID."""
        for key, document in self._documents.items():
            if document["type"] == kind.value and key.startswith(below.lower()):
                yield document

    def save(self, document: Document) -> None:
        """Store a resource."""
        self._write({**self._documents, document["id"].lower(): document})

    def delete(self, id_: str) -> None:
        """Delete a resource and everything in it."""
        key = id_.lower()
        left = {
            other: document
            for other, document in self._documents.items()
            if other != key and not other.startswith(f"{key}/")
        }
        self._write(left)

    def _write(self, documents: dict[str, Document]) -> None:
        files.replace(self._file, json.dumps(list(documents.values()), indent=1), mode=files.PRIVATE)
        self._documents = documents


def placed(body: Document) -> dict[str, Any]:
    """Return the location, which is required, and the tags; raises ArmRefusal."""
    given = body.get("location")
    if not isinstance(given, str) or not given.strip():
        raise bad_request("The location property is required for this definition.", "LocationRequired")
    return {"location": given.replace(" ", "").lower(), "tags": body.get("tags") or {}}


def document(
    id_: ResourceId, present: Document | None, properties: dict[str, Any], **more: object
) -> Document:
    """Return a complete resource; an existing one keeps the case of its ID."""
    known = ResourceId(id_.kind, present["id"]) if present else id_
    return {"id": known.text, "name": known.name, "type": id_.kind.value, **more, "properties": properties}


TENANT: Final = "00000000-0000-4000-8000-0000000000bb"
"""Entra tenant of all identities created here."""

FEDERATION_LIMIT: Final = 20
"""Maximum number of federated credentials of one identity."""


def identity(id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return an identity to store: a new one gets a client ID and a principal ID."""
    new = {"tenantId": TENANT, "principalId": str(uuid4()), "clientId": str(uuid4())}
    properties = present["properties"] if present else new
    return document(id_, present, properties, **placed(body))


def federation(store: ResourceStore, id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return a federated credential to store: 20 per identity, each (issuer, subject) once.

    Like Azure, it does not check whether the subject ever matches a token.
    """
    properties = _properties(body, "issuer", "subject", "audiences")
    others = [
        other for other in store.of(PathKind.FEDERATION, f"{id_.identity}/") if other["id"].lower() != id_.key
    ]
    if present is None and len(others) >= FEDERATION_LIMIT:
        raise bad_request(
            f"Too many federated identity credentials: a managed identity has {FEDERATION_LIMIT} at most."
        )
    wanted = properties["issuer"], properties["subject"]
    if any((other["properties"]["issuer"], other["properties"]["subject"]) == wanted for other in others):
        raise ArmRefusal(
            409, "Conflict", "Issuer and subject combination already exists for this Managed Identity."
        )
    return document(id_, present, properties)


def _properties(body: Document, *names: str) -> dict[str, Any]:
    """Return required properties of a body; raises ArmRefusal."""
    given: Any = body.get("properties") or {}
    if lacking := [name for name in names if not given.get(name)]:
        raise bad_request(f"Property '{lacking[0]}' must not be empty.")
    return {name: given[name] for name in names}


def check_principal(store: ResourceStore, principal: str, kind: str | None) -> None:
    """Raise ArmRefusal for an unknown principal.

    In Azure, a new principal takes a moment (here: forever) to be found by role assignments, except those
    that call it a ServicePrincipal (Azure's documentation of principalType).
    """
    known = any(each["properties"]["principalId"] == principal for each in store.of(PathKind.IDENTITY))
    if not known or kind is None:
        raise bad_request(
            f"Principal {principal} does not exist in the directory {TENANT}. Check that you have the"
            " correct principal ID. If you are creating this principal and then immediately assigning a"
            " role, this error might be related to a replication delay.",
            "PrincipalNotFound",
        )


def assignment(store: ResourceStore, id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return a role assignment to store, whose properties never change; raises ArmRefusal."""
    _require_scope(store, id_)
    asked = _properties(body, "roleDefinitionId", "principalId")
    kind = body["properties"].get("principalType")
    properties = {**asked, "principalType": kind, "scope": id_.scope}
    if present is not None:
        if _grants(properties) != _grants(present["properties"]):
            raise bad_request(
                "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
                "RoleAssignmentUpdateNotPermitted",
            )
        return present
    check_principal(store, properties["principalId"], kind)
    for other in store.of(PathKind.ASSIGNMENT):
        if _grants(other["properties"]) == _grants(properties):
            name = other["name"].replace("-", "")
            raise ArmRefusal(
                409,
                "RoleAssignmentExists",
                f"The role assignment already exists. The ID of the existing role assignment is {name}.",
            )
    now = datetime.now(UTC).isoformat()
    return document(id_, None, {**properties, "createdOn": now, "updatedOn": now})


def _grants(properties: dict[str, Any]) -> tuple[str, str, str]:
    """Return the identity of an assignment: principal, role, scope."""
    role = properties["roleDefinitionId"].rpartition("/")[2].lower()
    return properties["principalId"].lower(), role, properties["scope"].lower()


def _require_scope(store: ResourceStore, id_: ResourceId) -> None:
    """Raise ArmRefusal for a missing resource group or identity; other scopes are not checked."""
    parts = id_.scope.split("/")
    if len(parts) >= 5 and parts[3].lower() == "resourcegroups" and store.get("/".join(parts[:5])) is None:
        raise ArmRefusal(404, "ResourceGroupNotFound", f"Resource group '{parts[4]}' could not be found.")
    is_identity = len(parts) == 9 and parts[7].lower() == "userassignedidentities"
    if is_identity and store.get(id_.scope) is None:
        raise ArmRefusal(404, "ResourceNotFound", f"The Resource '{id_.scope}' was not found.")


class Resources:
    """The service without its paths; each method raises ArmRefusal."""

    def __init__(self, store: ResourceStore, federated_write: float) -> None:
        """Use this store.

        federated_write: seconds that a write of a federated credential takes; others of its identity are
        rejected meanwhile.
        """
        self._store = store
        self._federated_write = federated_write
        self._being_written: set[str] = set()

    def get(self, id_: ResourceId) -> Document:
        """Return a resource."""
        self._require_parent(id_)
        found = self._store.get(id_.text)
        if found is None:
            code = {
                PathKind.GROUP: "ResourceGroupNotFound",
                PathKind.ASSIGNMENT: "RoleAssignmentNotFound",
            }.get(id_.kind, "ResourceNotFound")
            raise ArmRefusal(404, code, f"The resource '{id_.text}' could not be found.")
        return found

    async def put(self, id_: ResourceId, body: Document) -> tuple[Document, bool]:
        """Create or change a resource; return it, and whether it is new."""
        self._require_parent(id_)
        async with self._alone(id_):
            present = self._store.get(id_.text)
            wanted = self._wanted(id_, present, body)
            self._store.save(wanted)
        return wanted, present is None

    async def delete(self, id_: ResourceId) -> Document | None:
        """Delete a resource and everything in it; return the response, None if it did not exist."""
        async with self._alone(id_):
            present = self._store.get(id_.text)
            if present is None:
                return None
            self._store.delete(id_.text)
        return present if id_.kind is PathKind.ASSIGNMENT else {}

    def _wanted(self, id_: ResourceId, present: Document | None, body: Document) -> Document:
        match id_.kind:
            case PathKind.GROUP:
                return document(id_, present, {"provisioningState": "Succeeded"}, **placed(body))
            case PathKind.IDENTITY:
                return identity(id_, present, body)
            case PathKind.FEDERATION:
                return federation(self._store, id_, present, body)
            case PathKind.ASSIGNMENT:
                return assignment(self._store, id_, present, body)

    def _require_parent(self, id_: ResourceId) -> None:
        is_in_group = id_.kind in (PathKind.IDENTITY, PathKind.FEDERATION)
        if is_in_group and self._store.get(id_.group) is None:
            name = id_.group.rpartition("/")[2]
            raise ArmRefusal(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        if id_.kind is PathKind.FEDERATION and self._store.get(id_.identity) is None:
            raise ArmRefusal(
                404, "ParentResourceNotFound", f"The identity '{id_.identity}' could not be found."
            )

    @asynccontextmanager
    async def _alone(self, id_: ResourceId) -> AsyncGenerator[None]:
        """Reject a write of a federated credential during another one of its identity."""
        if id_.kind is not PathKind.FEDERATION:
            yield
            return
        identity_key = id_.identity.lower()
        if identity_key in self._being_written:
            raise ArmRefusal(
                409,
                "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
                "Too many Federated Identity Credentials are written concurrently for the managed identity"
                f" '{id_.identity}'. Concurrent Federated Identity Credentials writes under the same managed"
                " identity are not supported.",
            )
        self._being_written.add(identity_key)
        try:
            await asyncio.sleep(self._federated_write)
            yield
        finally:
            self._being_written.remove(identity_key)
