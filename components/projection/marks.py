"""Labels and annotations that a stack declares on a Secret, where others write theirs beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from components.errors import ProjectionError
from components.projection.model import JsonObject, SecretRef

KINDS: Final = ("labels", "annotations")
_DECLARING: Final = "pulumi"
"""How the names begin under which declared Secrets are written."""


def is_marked(secret: JsonObject, declared: Mapping[str, Any]) -> bool:
    """Whether a Secret bears all that is declared."""
    return all(_of(secret["metadata"], kind).items() >= declared[kind].items() for kind in KINDS)


def applied(secret: JsonObject) -> JsonObject:
    """Return the marks of a Secret that the API server books on whoever declares Secrets: on Pulumi."""
    metadata: JsonObject = secret["metadata"]
    booked = [
        entry.get("fieldsV1", {}).get("f:metadata", {})
        for entry in metadata.get("managedFields") or ()
        if str(entry.get("manager")).startswith(_DECLARING)
    ]
    return {
        kind: {
            key: value
            for key, value in _of(metadata, kind).items()
            if any(f"f:{key}" in fields.get(f"f:{kind}", {}) for fields in booked)
        }
        for kind in KINDS
    }


def marked(secret: JsonObject, before: Mapping[str, Any], declared: Mapping[str, Any]) -> JsonObject:
    """Return a Secret as it is declared now. before: what was, of which the rest is taken away.

    Raises ProjectionError for a label that somebody else has written otherwise, such as an owner's.
    """
    metadata: JsonObject = secret["metadata"]
    for key, value in declared["labels"].items():
        live = _of(metadata, "labels").get(key, value)
        if live not in (value, _of(before, "labels").get(key)):
            raise ProjectionError(
                code="marked-by-others",
                place=f"{SecretRef(metadata['namespace'], metadata['name']).place} {key}",
                cause=f"it says {live}, which this stack did not write, and {value} is declared",
                mend="declare what it says, or have it taken away first: that of a claim goes with it",
            )
    return {
        **secret,
        "metadata": {**metadata, **{kind: _now(kind, metadata, before, declared) for kind in KINDS}},
    }


def _now(
    kind: str, metadata: Mapping[str, Any], before: Mapping[str, Any], declared: Mapping[str, Any]
) -> Mapping[str, Any]:
    live, former = _of(metadata, kind), _of(before, kind)
    gone = {key for key, value in former.items() if key not in declared[kind] and live.get(key) == value}
    return {key: value for key, value in {**live, **declared[kind]}.items() if key not in gone}


def _of(holder: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return holder.get(kind) or {}
