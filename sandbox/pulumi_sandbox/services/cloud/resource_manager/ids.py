"""Resource ids: what they name, whatever their case."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from pulumi_sandbox.services.cloud.resource_manager.refusals import ArmRefusal, bad_request


class PathKind(Enum):
    """A kind of resource, by the type that answers name."""

    GROUP = "Microsoft.Resources/resourceGroups"
    IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
    FEDERATION = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    ASSIGNMENT = "Microsoft.Authorization/roleAssignments"


_GROUP: Final = r"/subscriptions/[^/]+/resourceGroups/[-\w.()]{0,89}[-\w()]"
_IDENTITY: Final = rf"{_GROUP}/providers/Microsoft\.ManagedIdentity/userAssignedIdentities/[^/]+"

_PATTERNS: Final = {
    PathKind.GROUP: re.compile(_GROUP, re.IGNORECASE),
    PathKind.IDENTITY: re.compile(_IDENTITY, re.IGNORECASE),
    PathKind.FEDERATION: re.compile(rf"{_IDENTITY}/federatedIdentityCredentials/[^/]+", re.IGNORECASE),
    PathKind.ASSIGNMENT: re.compile(
        r"(?:/.+)?/providers/Microsoft\.Authorization/roleAssignments/[^/]+", re.IGNORECASE
    ),
}

_SUBSCRIPTION: Final = re.compile(r"/subscriptions/([^/]+)", re.IGNORECASE)
_ASSIGNMENT_PART: Final = re.compile(r"/providers/Microsoft\.Authorization/roleAssignments/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResourceId:
    """The id of a resource, in the case in which it was asked for."""

    kind: PathKind
    text: str

    @classmethod
    def read(cls, path: str) -> ResourceId:
        """Read a request's path.

        Raises Refusal InvalidSubscriptionId; InvalidResourceType for what this stand-in does not serve.
        """
        text = path.rstrip("/")
        subscription = _SUBSCRIPTION.match(text)
        if subscription and not is_guid(subscription[1]):
            raise bad_request(
                f"The provided subscription identifier '{subscription[1]}' is malformed or invalid.",
                "InvalidSubscriptionId",
            )
        for kind in (PathKind.ASSIGNMENT, PathKind.GROUP, PathKind.IDENTITY, PathKind.FEDERATION):
            if _PATTERNS[kind].fullmatch(text):
                return cls(kind, text)
        raise ArmRefusal(404, "InvalidResourceType", f"No resource that this stand-in serves is at '{path}'.")

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


def is_guid(text: str) -> bool:
    """Whether a text is a GUID with its dashes."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
