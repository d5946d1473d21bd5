"""What each request does to a resource; federated credentials of one identity one at a time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pulumi_sandbox.services.cloud.resource_manager.assignments import Directory, assignment
from pulumi_sandbox.services.cloud.resource_manager.groups import group, require_group
from pulumi_sandbox.services.cloud.resource_manager.identities import federation, identity
from pulumi_sandbox.services.cloud.resource_manager.ids import PathKind, ResourceId
from pulumi_sandbox.services.cloud.resource_manager.refusals import ArmRefusal
from pulumi_sandbox.services.cloud.resource_manager.store import Document, ResourceStore


@dataclass(frozen=True, slots=True)
class Pace:
    """How slow Azure is here.

    federated_write: seconds that a write of a federated credential takes; another one of the same identity is
    refused meanwhile. unknown_principal: how many role assignments to a new principal are refused at first,
    unless they say that it is a ServicePrincipal.
    """

    federated_write: float = 0.1
    unknown_principal: int = 1


class Resources:
    """The service without its paths; each method raises Refusal."""

    def __init__(self, store: ResourceStore, pace: Pace) -> None:
        """Work on what is kept."""
        self._store = store
        self._pace = pace
        self._directory = Directory(store, pace.unknown_principal)
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
        if id_.kind is PathKind.IDENTITY and present is None:
            self._directory.introduce(wanted["properties"]["principalId"])
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
                return group(id_, present, body)
            case PathKind.IDENTITY:
                return identity(id_, present, body)
            case PathKind.FEDERATION:
                return federation(self._store, id_, present, body)
            case PathKind.ASSIGNMENT:
                return assignment(self._store, self._directory, id_, present, body)

    def _require_parent(self, id_: ResourceId) -> None:
        if id_.kind in (PathKind.IDENTITY, PathKind.FEDERATION):
            require_group(self._store, id_)
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
            await asyncio.sleep(self._pace.federated_write)
            yield
        finally:
            self._being_written.remove(identity_key)
