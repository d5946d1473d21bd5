"""Resource groups, and what they share with all that lies somewhere: a location, tags."""

from typing import Any

from pulumi_sandbox.services.cloud.resource_manager.ids import PathKind, ResourceId
from pulumi_sandbox.services.cloud.resource_manager.refusals import ArmRefusal, bad_request
from pulumi_sandbox.services.cloud.resource_manager.store import Document, ResourceStore


def group(id_: ResourceId, present: Document | None, body: Document) -> Document:
    """Return a resource group as it is to be kept; raises Refusal."""
    location = located(id_, present, body, "InvalidResourceGroupLocation")
    return document(id_, present, {"provisioningState": "Succeeded"}, location=location, tags=tags_of(body))


def require_group(store: ResourceStore, id_: ResourceId) -> None:
    """Refuse what would lie in a resource group that does not exist."""
    if store.get(id_.group) is None:
        name = id_.group.rpartition("/")[2]
        raise ArmRefusal(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def located(id_: ResourceId, present: Document | None, body: Document, conflict: str) -> str:
    """Return the location, which is required and never changes; `conflict` is the code of a change."""
    given = body.get("location")
    if not isinstance(given, str) or not given.strip():
        raise bad_request("The location property is required for this definition.", "LocationRequired")
    location = given.replace(" ", "").lower()
    if present is not None and present["location"] != location:
        raise ArmRefusal(
            409,
            conflict,
            f"'{id_.name}' already exists in location '{present['location']}'"
            f" and cannot be created in location '{location}'.",
        )
    return location


def tags_of(body: Document) -> dict[str, str]:
    """Return the tags; raises Refusal when they are none."""
    tags: Any = body.get("tags") or {}
    if not isinstance(tags, dict) or not all(isinstance(value, str) for value in tags.values()):
        raise bad_request("The tags must map names to texts.", "InvalidTags")
    return {str(name): str(value) for name, value in tags.items()}


def document(
    id_: ResourceId, present: Document | None, properties: dict[str, Any], **more: object
) -> Document:
    """Put a resource together; one that is there keeps the case of its id."""
    known = ResourceId(id_.kind, present["id"]) if present else id_
    kind: PathKind = id_.kind
    return {"id": known.text, "name": known.name, "type": kind.value, **more, "properties": properties}
