"""The model of a projection: which Secret is copied to where, and for whom."""

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
"""Annotation of a target: who wrote it. Without it a Secret is another owner's and never touched."""

INCARNATION: Final = f"{PREFIX}incarnation"
"""Annotation of a target: which of the resources that took each other's place wrote it last."""

PROJECTED_FROM: Final = f"{PREFIX}projected-from"

COMPOSED: Final = f"{PREFIX}composed"
"""Annotation of a target that was made of the Secrets a configuration names."""

HANDED_OVER: Final = f"{PREFIX}handed-over-to"
"""Annotation of a Secret that its stack declares: the owner that may take it over from the declaration."""

_OURS: Final = ("pulumi", "credfleet")
"""How managers of fields begin that a stack writes under."""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A Secret by its namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def place(self) -> str:
        """Name it in a message."""
        return f"Secret {self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(ABC):
    """A Secret that is wanted: what is made of which Secret, where, and for whom.

    TAKEN: problem and fix where another owner has the target. source: None for what is in no cluster, whose
    data are made already. owner: the same text whenever the program runs; two owners never share a target.
    previously: the owner under former names. incarnation: which of its resources wants it; None for one that
    an earlier version created.
    """

    TAKEN: ClassVar[tuple[str, str]]

    source: SecretRef | None
    target: SecretRef
    owner: str
    previously: Sequence[str] = ()
    incarnation: str | None = None

    @abstractmethod
    def data(self, source: JsonObject) -> Mapping[str, str]:
        """Make the target's data, base64. Raises ProjectionError for a source that does not fit."""

    @abstractmethod
    def body(self, data: Mapping[str, str]) -> JsonObject:
        """Draw the target, annotated with its owner under PROJECTED_BY."""

    def dress(self, target: JsonObject) -> JsonObject:
        """Return a target with the labels and annotations it should have besides those of `body`."""
        return target

    def bears(self, target: JsonObject, /) -> bool:
        """Whether a target has all that it should have besides its data."""
        return self.dress(target) == target

    def missing(self) -> ProjectionError:
        """Say that there is no source."""
        return ProjectionError(
            code="source-missing", place=f"Secret {self.source}", problem="it is gone by now", fix="run again"
        )

    def foreign(self, _target: JsonObject, /) -> ProjectionError:
        """Say that the target belongs to another owner."""
        problem, fix = self.TAKEN
        return ProjectionError(code="target-taken", place=self.target.place, problem=problem, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection(Wanted):
    """A copy that is wanted.

    source_labels: what the source must be labelled with, so that a copy never follows a Secret that went to
    another tenant.
    """

    TAKEN = (
        "it exists and this claim did not write it, so it is not overwritten",
        "deliver to another name under deliverTo, or delete that Secret",
    )

    source: SecretRef
    plan: KeyPlan
    source_labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def data(self, source: JsonObject) -> dict[str, str]:
        """Make the target's data from the source. Raises ProjectionError for one that is not to be copied."""
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
        """Draw the target."""
        return render_secret(self.target, self.owner, self.source, data)

    def missing(self) -> ProjectionError:
        """Say that there is no source."""
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
    """Return a Secret that is made of a source, as it is written for an owner."""
    noted = {**(annotations or {}), PROJECTED_BY: owner, PROJECTED_FROM: str(source)}
    metadata = {"name": target.name, "namespace": target.namespace, "annotations": noted}
    if labels is not None:
        metadata["labels"] = {**labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_, "data": {**data}}


def is_owned(target: JsonObject, owner: str) -> bool:
    """Whether a projection of this owner wrote a Secret."""
    return annotations_of(target).get(PROJECTED_BY) == owner


def is_replaced(target: JsonObject, incarnation: str | None) -> bool:
    """Whether a later incarnation of a resource wrote an object; what an earlier version wrote has none."""
    return annotations_of(target).get(INCARNATION, incarnation) != incarnation


def is_handed_over(target: JsonObject | None, owner: str) -> bool:
    """Whether a Secret was declared to be taken over by this owner, and was not yet."""
    annotations = {} if target is None else annotations_of(target)
    return annotations.get(HANDED_OVER) == owner and PROJECTED_BY not in annotations


def is_of_others(secret: JsonObject) -> bool:
    """Whether a declared Secret would overwrite another: of a chart, or of a person."""
    entries = secret.get("metadata", {}).get("managedFields") or []
    return not any(str(entry.get("manager")).startswith(_OURS) for entry in entries)


def is_composed(secret: JsonObject) -> bool:
    """Whether a Secret is made of what is elsewhere."""
    return COMPOSED in (secret.get("metadata", {}).get("annotations") or {})


def annotations_of(target: JsonObject) -> Mapping[str, str]:
    """Read the annotations of an object, which the API leaves out when there are none."""
    return target["metadata"].get("annotations") or {}


def data_of(secret: JsonObject) -> Mapping[str, str]:
    """Read the data of a Secret, which the API leaves out when it is empty."""
    return secret.get("data") or {}


def encode(data: Mapping[str, bytes]) -> dict[str, str]:
    """Return the `data` of a Secret as the API takes it: values in base64."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


@dataclass(frozen=True, slots=True)
class WrittenCopy:
    """A copy that stands: the digest of what is in it, and version and type of what it was made from."""

    digest: str
    source_version: str
    source_type: str


def digest(target: JsonObject, data: Mapping[str, str]) -> str:
    """Return what tells data apart without showing them: an HMAC keyed with the uid of the target Secret.

    The uid is random, and only in the cluster, never in the state; so a reader of the state alone cannot
    try out short credentials against the digest.
    """
    key = str(target["metadata"]["uid"]).encode()
    return hmac.new(key, json.dumps(dict(data), sort_keys=True).encode(), hashlib.sha256).hexdigest()


def digests(data: Mapping[str, str]) -> dict[str, str]:
    """Return key → the digest of its value, for a preview alone: nothing of it comes into a state.

    The cluster still has the source of before, where the same program declares another one.
    """
    return {key: hashlib.sha256(value.encode()).hexdigest() for key, value in data.items()}


def differs(secret: JsonObject | None, foreseen: Mapping[str, str]) -> bool:
    """Whether a Secret holds anything else under these keys; one that is gone does."""
    known = digests(data_of(secret)) if secret is not None else {}
    return any(known.get(key) != digest for key, digest in foreseen.items())
