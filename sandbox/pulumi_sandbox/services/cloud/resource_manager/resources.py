"""What Resource Manager keeps and rules: ids, groups, identities with their federation, role assignments.

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
    """A request that is refused: the HTTP status, the code that clients tell refusals by, what is wrong."""

    status: int
    code: str
    message: str

    def response(self) -> JSONResponse:
        """Return the answer as Resource Manager writes it."""
        error = {"code": self.code, "message": self.message}
        return JSONResponse({"error": error}, status_code=self.status)


def bad_request(message: str, code: str = "BadRequest") -> ArmRefusal:
    """Refuse what can never be right."""
    return ArmRefusal(400, code, message)


def on_demand(status: int) -> JSONResponse:
    """Refuse with an HTTP status because a fault says so."""
    code = _ON_DEMAND.get(status, "InternalServerError")
    return ArmRefusal(status, code, f"The sandbox was asked to answer {status}.").response()


class PathKind(Enum):
    """A kind of resource, by the type that answers name."""

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
    """The id of a resource, in the case in which it was asked for."""

    kind: PathKind
    text: str

    @classmethod
    def read(cls, path: str) -> ResourceId:
        """Read a request's path.

        Raises ArmRefusal InvalidResourceType for what this emulator does not serve.
        """
        text = path.rstrip("/")
        for kind, pattern in _PATTERNS.items():
            if pattern.fullmatch(text):
                return cls(kind, text)
        raise ArmRefusal(404, "InvalidResourceType", f"No resource that this emulator serves is at '{path}'.")

    @property
    def key(self) -> str:
        """The same text for every case in which an id may be written."""
        return self.text.lower()

    @property
    def name(self) -> str:
        """The last part."""
        return self.text.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The id of the resource group that this is, or is in."""
        return "/".join(self.text.split("/")[:5])

    @property
    def identity(self) -> str:
        """The id of the identity that this is, or belongs to."""
        return "/".join(self.text.split("/")[:9])

    @property
    def scope(self) -> str:
        """The id of what a role assignment is for; `/` is everything."""
        return _ASSIGNMENT_PART.split(self.text)[0] or "/"


Document: TypeAlias = dict[str, Any]
"""A resource as it is answered: id, name, type, properties, and a location and tags where it has them."""


class ResourceStore:
    """All resources, in memory and in a file: what is answered has been written before."""

    def __init__(self, file: Path) -> None:
        """Read what an earlier process left.

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
        """Return a resource by its id, in any case."""
        return self._documents.get(id_.lower())

    def of(self, kind: PathKind, below: str = "") -> Iterator[Document]:
        """Return the resources of a kind whose ids begin with another id."""
        for key, document in self._documents.items():
            if document["type"] == kind.value and key.startswith(below.lower()):
                yield document

    def save(self, document: Document) -> None:
        """Keep a resource as it is now."""
        self._write({**self._documents, document["id"].lower(): document})

    def delete(self, id_: str) -> None:
        """Forget a resource, and all that is in it."""
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
    """Put a resource together; one that is there keeps the case of its id."""
    known = ResourceId(id_.kind, present["id"]) if present else id_
    return {"id": known.text, "name": known.name, "type": id_.kind.value, **more, "properties": properties}


TENANT: Final = "00000000-0000-4000-8000-0000000000bb"
"""The directory of every identity that is made here."""

FEDERATION_LIMIT: Final = 20
"""Credentials of one identity."""


def identity(id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return an identity as it is to be kept: a new one gets a client id and a principal id."""
    new = {"tenantId": TENANT, "principalId": str(uuid4()), "clientId": str(uuid4())}
    properties = present["properties"] if present else new
    return document(id_, present, properties, **placed(body))


def federation(store: ResourceStore, id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return a federated credential as it is to be kept: 20 per identity, each (issuer, subject) once.

    Whether the subject ever matches a token is not looked at, here as in Azure.
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
    """Return properties of a body, each of which is required; raises ArmRefusal."""
    given: Any = body.get("properties") or {}
    if lacking := [name for name in names if not given.get(name)]:
        raise bad_request(f"Property '{lacking[0]}' must not be empty.")
    return {name: given[name] for name in names}


def check_principal(store: ResourceStore, principal: str, kind: str | None) -> None:
    """Refuse a principal that is not known; raises ArmRefusal.

    Azure copies a new principal to where role assignments look for it, which takes a moment (here: forever)
    but for who says that it is a ServicePrincipal (Azure's documentation of principalType).
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
    """Return a role assignment as it is to be kept; what it assigns never changes; raises ArmRefusal."""
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
    """Return what makes two assignments the same: who, what, where."""
    role = properties["roleDefinitionId"].rpartition("/")[2].lower()
    return properties["principalId"].lower(), role, properties["scope"].lower()


def _require_scope(store: ResourceStore, id_: ResourceId) -> None:
    """Refuse a resource group, or an identity, that does not exist; other scopes are not looked into."""
    parts = id_.scope.split("/")
    if len(parts) >= 5 and parts[3].lower() == "resourcegroups" and store.get("/".join(parts[:5])) is None:
        raise ArmRefusal(404, "ResourceGroupNotFound", f"Resource group '{parts[4]}' could not be found.")
    is_identity = len(parts) == 9 and parts[7].lower() == "userassignedidentities"
    if is_identity and store.get(id_.scope) is None:
        raise ArmRefusal(404, "ResourceNotFound", f"The Resource '{id_.scope}' was not found.")


class Resources:
    """The service without its paths; each method raises ArmRefusal."""

    def __init__(self, store: ResourceStore, federated_write: float) -> None:
        """Work on what is kept.

        federated_write: seconds that a write of a federated credential takes; another one of its identity is
        refused meanwhile.
        """
        self._store = store
        self._federated_write = federated_write
        self._being_written: set[str] = set()

    def get(self, id_: ResourceId) -> Document:
        """Read a resource."""
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
        """Create or change a resource; tell also whether it is new."""
        self._require_parent(id_)
        async with self._alone(id_):
            present = self._store.get(id_.text)
            wanted = self._wanted(id_, present, body)
            self._store.save(wanted)
        return wanted, present is None

    async def delete(self, id_: ResourceId) -> Document | None:
        """Delete a resource with all that is in it; return what is answered, None when it was not there."""
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
        """Refuse to write a federated credential while another one of its identity is being written."""
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
