"""Model of a projection: source and target Secret, and the owner of the copy."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from components.errors import ProjectionError
from components.labels import PREFIX
from components.projection.keys import KeyPlan

JsonObject: TypeAlias = dict[str, Any]

PROJECTED_BY: Final = f"{PREFIX}projected-by"
"""Annotation of a target: its owner. Without it, a Secret belongs to another owner and is never changed."""

INCARNATION: Final = f"{PREFIX}incarnation"
"""Annotation of a target: the resource that wrote it last, of those that replaced each other."""

PROJECTED_FROM: Final = f"{PREFIX}projected-from"

COMPOSED: Final = f"{PREFIX}composed"
"""Annotation of a target that is composed of Secrets to which the configuration refers."""

HANDED_OVER: Final = f"{PREFIX}handed-over-to"
"""Annotation of a declared Secret: the owner that can take it over from its declaration."""

_OURS: Final = ("pulumi", "credfleet")
"""Prefixes of the field managers under which a stack writes."""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Namespace and name of a Secret."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def place(self) -> str:
        """Name in messages."""
        return f"Secret {self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(ABC):
    """Secret to write: its source, target and owner.

    `TAKEN`: problem and fix if another owner has the target. `source`: None if it is not in a cluster and the
    data is already known. `owner`: the same string in every run; two owners never share a target.
    `previously`: its owner under former names. `incarnation`: of the resource that writes it; None for
    resources of earlier versions.
    """

    TAKEN: ClassVar[tuple[str, str]]

    source: SecretRef | None
    target: SecretRef
    owner: str
    previously: Sequence[str] = ()
    incarnation: str | None = None

    @abstractmethod
    def data(self, source: JsonObject) -> Mapping[str, str]:
        """Return the target's data, base64-encoded. Raises ProjectionError for an invalid source."""

    @abstractmethod
    def body(self, data: Mapping[str, str]) -> JsonObject:
        """Render the target, with its owner in annotation PROJECTED_BY."""

    def dress(self, target: JsonObject) -> JsonObject:
        """Return a target with all required labels and annotations."""
        return target

    def bears(self, target: JsonObject, /) -> bool:
        """Return whether a target is as required, apart from its data."""
        return self.dress(target) == target

    def missing(self) -> ProjectionError:
        """Return the error for a missing source."""
        return ProjectionError(
            code="source-missing", place=f"Secret {self.source}", problem="it is gone by now", fix="run again"
        )

    def foreign(self, _target: JsonObject, /) -> ProjectionError:
        """Return the error for a target of another owner."""
        problem, fix = self.TAKEN
        return ProjectionError(code="target-taken", place=self.target.place, problem=problem, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection(Wanted):
    """Copy to write.

    `source_labels`: labels that the source must have, so that a copy never follows a Secret that was assigned
    to another tenant.
    """

    TAKEN = (
        "it exists and this claim did not write it, so it is not overwritten",
        "deliver to another name under deliverTo, or delete that Secret",
    )

    source: SecretRef
    plan: KeyPlan
    source_labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def data(self, source: JsonObject) -> dict[str, str]:
        """Return the target's data. Raises ProjectionError for a source that must not be copied."""
        labels = source["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in self.source_labels.items()):
            raise ProjectionError(
                code="source-not-owned",
                place=self.source.place,
                problem=f"it belongs to another tenant by now, so it is not delivered to {self.target}",
                fix="refresh the stack: its claim has lost the account",
            )
        return self.plan.apply(data_of(source), self.source.place)

    def body(self, data: Mapping[str, str]) -> JsonObject:
        """Render the target."""
        return render_secret(self.target, self.owner, self.source, data)

    def missing(self) -> ProjectionError:
        """Return the error for a missing source."""
        return ProjectionError(
            code="source-missing",
            place=self.source.place,
            problem=f"it is gone, so nothing can be delivered to {self.target}",
            fix="refresh the stack: its claim may have lost the account",
        )


def render_secret(
    target: SecretRef,
    owner: str,
    source: object,
    data: Mapping[str, str],
    *,
    type_: str = "Opaque",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> JsonObject:
    """Render a Secret that is derived from a source, for an owner."""
    noted = {**(annotations or {}), PROJECTED_BY: owner, PROJECTED_FROM: str(source)}
    metadata = {"name": target.name, "namespace": target.namespace, "annotations": noted}
    if labels is not None:
        metadata["labels"] = {**labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_, "data": {**data}}


def is_owned(target: JsonObject, owner: str) -> bool:
    """Return whether a projection of this owner wrote a Secret."""
    return annotations_of(target).get(PROJECTED_BY) == owner


def is_replaced(target: JsonObject, incarnation: str | None) -> bool:
    """Return whether a later incarnation of the resource wrote an object; earlier versions set none."""
    return annotations_of(target).get(INCARNATION, incarnation) != incarnation


def is_handed_over(target: JsonObject | None, owner: str) -> bool:
    """Return whether a declared Secret is to be taken over by this owner, and was not yet."""
    annotations = {} if target is None else annotations_of(target)
    return annotations.get(HANDED_OVER) == owner and PROJECTED_BY not in annotations


def is_of_others(secret: JsonObject) -> bool:
    """Return whether a Secret belongs to others, such as a chart or a user, so it must not be overwritten."""
    entries = secret.get("metadata", {}).get("managedFields") or []
    return not any(str(entry.get("manager")).startswith(_OURS) for entry in entries)


def is_composed(secret: JsonObject) -> bool:
    """Return whether a Secret is composed from references."""
    return COMPOSED in (secret.get("metadata", {}).get("annotations") or {})


def annotations_of(target: JsonObject) -> Mapping[str, str]:
    """Return the annotations of an object, which the API omits if empty."""
    return target["metadata"].get("annotations") or {}


def data_of(secret: JsonObject) -> Mapping[str, str]:
    """Return the data of a Secret, which the API omits if empty."""
    return secret.get("data") or {}


def encode(data: Mapping[str, bytes]) -> dict[str, str]:
    """Return the `data` of a Secret with base64-encoded values."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


@dataclass(frozen=True, slots=True)
class WrittenCopy:
    """Written copy: digest of its data, and version and type of its source."""

    digest: str
    source_version: str
    source_type: str


def digest(target: JsonObject, data: Mapping[str, str]) -> str:
    """Return a digest that does not reveal the data: an HMAC keyed with the uid of the target Secret.

    The uid is random, and stored only in the cluster, not in the state. A reader of the state alone therefore
    cannot guess short credentials from the digest.
    """
    key = str(target["metadata"]["uid"]).encode()
    return hmac.new(key, json.dumps(dict(data), sort_keys=True).encode(), hashlib.sha256).hexdigest()


def digests(data: Mapping[str, str]) -> dict[str, str]:
    """Return key → digest of its value, only for a preview: it is not stored in a state.

    The cluster still has the former source if the same program declares a new one.
    """
    return {key: hashlib.sha256(value.encode()).hexdigest() for key, value in data.items()}


def differs(secret: JsonObject | None, foreseen: Mapping[str, str]) -> bool:
    """Return whether a Secret lacks one of these values; True if it is missing."""
    known = digests(data_of(secret)) if secret is not None else {}
    return any(known.get(key) != digest for key, digest in foreseen.items())
