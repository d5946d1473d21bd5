"""The projection of a Secret as a dynamic resource: bytes move inside the cluster, references travel.

Neither inputs nor outputs hold a byte of the Secret: the outputs are where the copy is, a keyed digest of
what is in it, and the version of the source it was made from. Rooms make Secrets of several, and
of versions in Google's Secret Manager. The path of this module and the names of its classes are written into
the state of stacks; they never move. Import-pure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from pulumi import Input, Output
from pulumi.dynamic import CheckFailure

from components.connection import RECORDED
from components.dynamic import (
    FORESEEN,
    IDENTITY,
    IN_PREVIEW,
    INCARNATION,
    SECRET,
    WARNING,
    DynamicResource,
    FollowingProvider,
    Properties,
    is_unknown,
    log,
    name_errors,
)
from components.errors import CredfleetError, ProjectionError
from components.projection.keys import AsoMethod, plan_keys
from components.projection.kubernetes_secrets import KubernetesSecrets, open_secrets
from components.projection.model import JsonObject, Projection, SecretRef, Wanted, differs, is_handed_over
from components.projection.projector import Projector, open_projector
from components.projection.sources import Composition, Source
from components.secret_manager import configured_secret_manager

KINDS: Final = ("labels", "annotations")
_DECLARING: Final = "pulumi"
"""How the names begin under which declared Secrets are written."""


def read_applied(secret: JsonObject) -> JsonObject:
    """Return the marks of a Secret that the API server books on the writer of Secrets: on Pulumi."""
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


def render_marks(secret: JsonObject, before: Mapping[str, Any], declared: Mapping[str, Any]) -> JsonObject:
    """Return a Secret as it is declared now. before: what was, of which the rest is taken away.

    Raises ProjectionError for a label that another owner has written otherwise, such as an owner's.
    """
    metadata: JsonObject = secret["metadata"]
    for key, value in declared["labels"].items():
        live = _of(metadata, "labels").get(key, value)
        if live not in (value, _of(before, "labels").get(key)):
            raise ProjectionError(
                code="marked-by-others",
                place=f"{SecretRef(metadata['namespace'], metadata['name']).place} {key}",
                problem=f"it says {live}, which this stack did not write, and {value} is declared",
                fix="declare what it says, or have it taken away first: that of a claim goes with it",
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


_DECIDES_THE_PLACE: Final = ("targetNamespace", "targetName", "owner", "keys", "asoCredential")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretProjectionArgs:
    """A copy of a Secret.

    owner: who wants it, the same text whenever the program runs. source_labels: what the source must be
    labelled with. keys: target key → source key; empty means all as they are. aso_credential: the method of
    an ASO credential, whose keys are then the defaults. foreseen: in a preview, the digests of what it will
    hold, where the program declares the source. of_pool: the source is in the cluster of the pool, which is
    another one; None: in this one. previously: its owner under former names.
    """

    target_namespace: Input[str] = field(metadata=IDENTITY)
    target_name: Input[str] = field(metadata=IDENTITY)
    owner: Input[str] = field(metadata=IDENTITY)
    source_namespace: Input[str]
    source_name: Input[str]
    source_labels: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])
    keys: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])
    aso_credential: Input[str] | None = None
    foreseen: Input[Mapping[str, Input[str]] | None] = field(default=None, compare=False, metadata=IN_PREVIEW)
    of_pool: Input[bool] | None = None
    previously: Input[Sequence[str]] | None = field(default=None, compare=False)


class SecretProvider(FollowingProvider):
    """A provider of a Secret that is made of others: what of it is alike whatever that is."""

    def wanted(self, props: Properties) -> Wanted:
        """Return the Secret as the projector is told of it."""
        raise NotImplementedError

    def taken(self, inputs: Properties) -> Iterator[CheckFailure]:
        """Say that the target's place is taken; in a cluster that cannot be seen, the update says it."""
        with suppress(CredfleetError):
            if (taken := open_projector(self.cluster).taken(self.wanted(inputs))) is not None:
                yield CheckFailure("targetName", str(taken))

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the digest of the Secret; None if it is gone, or another owner's."""
        found = open_projector(self.cluster).digest(self.wanted(props))
        return None if found is None else {"digest": found}

    def delete_resource(self, _id: str, props: Properties) -> bool:
        """Remove the Secret, if it is still ours."""
        return open_projector(self.cluster).remove(self.wanted(props))


class SecretProjectionProvider(SecretProvider):
    """Writes, compares and removes a copy through the projector."""

    args = SecretProjectionArgs
    outputs = ("reference", "digest", "sourceResourceVersion")
    named_by = ("targetNamespace", "targetName")

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse names no Secret can have, keys no method has, and a place that is another owner's."""
        failures = list(_failures(inputs))
        yield from failures
        if not failures and not any(is_unknown(inputs[key]) for key in _DECIDES_THE_PLACE):
            named = ("sourceNamespace", "sourceName")
            source = {key: "" if is_unknown(inputs[key]) else inputs[key] or "" for key in named}
            yield from self.taken({**inputs, **source, "sourceLabels": {}})

    def create_resource(self, props: Properties) -> Properties:
        """Write the copy; one that is there already is taken as its own."""
        wanted = self.wanted(props)
        written = self._projector(props).write(wanted)
        return {
            "reference": str(wanted.target),
            "digest": written.digest,
            "sourceResourceVersion": written.source_version,
        }

    def is_current(self, props: Properties, digest: str) -> bool:
        """Whether the copy is what the source makes of it now."""
        return self._projector(props).is_current(self.wanted(props), digest)

    def is_predicted_otherwise(self, props: Properties) -> bool:
        """Whether the copy will hold something else."""
        target = SecretRef(props["targetNamespace"], props["targetName"])
        foreseen = props.get(FORESEEN)
        return bool(foreseen) and differs(open_secrets(self.cluster).get(target), foreseen)

    def _projector(self, props: Properties) -> Projector:
        return open_projector(self.cluster, self.cluster_of_pool if props.get("ofPool") else None)

    def wanted(self, props: Properties) -> Projection:
        """Return the copy as the projector is told of it."""
        method = props.get("asoCredential")
        return Projection(
            source=SecretRef(props["sourceNamespace"], props["sourceName"]),
            target=SecretRef(props["targetNamespace"], props["targetName"]),
            owner=props["owner"],
            plan=plan_keys(props.get("keys") or {}, None if method is None else AsoMethod(method)),
            source_labels=props.get("sourceLabels") or {},
            previously=props.get("previously") or (),
            incarnation=props.get(INCARNATION),
        )


class SecretProjection(DynamicResource[SecretProjectionArgs]):
    """Copy of a Secret in another namespace, which follows its source."""

    provider = SecretProjectionProvider

    reference: Output[str]
    digest: Output[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositionArgs:
    """A Secret that is made of others.

    owner: who wants it, the same text whenever the program runs. sources: as `Source.properties` has them.
    recipe: what `made` needs beside their values. labels: of the Secret. content: changes with what the stack
    writes into sources itself.
    """

    namespace: Input[str] = field(metadata=IDENTITY)
    target_name: str = field(metadata=IDENTITY)
    owner: str = field(metadata=IDENTITY)
    sources: Input[Sequence[Properties]]
    recipe: Properties
    labels: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, str])
    content: Input[str] = field(default="", metadata=SECRET)
    previously: Input[Sequence[str]] | None = field(default=None, compare=False)


Rendered: TypeAlias = tuple[str, Mapping[str, bytes]]
"""Type and values of a Secret."""


class CompositionProvider(SecretProvider):
    """Writes, compares and removes a Secret that is made of others."""

    args = CompositionArgs
    outputs = ("reference", "digest", "type")
    named_by = ("namespace", "targetName")

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises CredfleetError. places: of the contents."""
        raise NotImplementedError

    def warnings(self, _recipe: Properties, _contents: Sequence[bytes]) -> Iterator[str]:
        """Yield what is to be said of sources that a Secret is made of all the same."""
        yield from ()

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse a place that is taken, and sources that nothing can be made of; an update looks again."""
        if is_unknown(inputs):
            return
        try:
            secrets = open_secrets(self.cluster)
        except CredfleetError:
            return
        yield from self.taken(inputs)
        if RECORDED in os.environ:  # a review without keys is shown no content
            return
        try:
            declared = [one.ref for one in _sources(inputs) if one.declared]
            if any(ref is not None and secrets.get(ref) is None for ref in declared):
                return
            contents = self._contents(secrets, inputs)
            self._composed(contents, inputs)
        except CredfleetError as error:
            yield CheckFailure("sources", str(error))
        else:
            for warning in self.warnings(inputs["recipe"], contents):
                log(f"{WARNING}{inputs['sources'][0]['place']}: {warning}")

    def create_resource(self, props: Properties) -> Properties:
        """Write the Secret of what its sources are now; one that is handed over is there all the time."""
        return self._written(props)

    def _written(
        self, props: Properties, mark: Callable[[JsonObject], JsonObject] | None = None
    ) -> Properties:
        secrets = open_secrets(self.cluster)
        wanted = self._composed(self._contents(secrets, props), props)
        written = Projector(secrets).write(wanted, mark)
        return {"reference": str(wanted.target), "digest": written.digest, "type": wanted.type}

    def is_current(self, props: Properties, digest: str) -> bool:
        """Whether the Secret is what its sources make of it now."""
        secrets = open_secrets(self.cluster)
        wanted = self._composed(self._contents(secrets, props), props)
        return Projector(secrets).is_current(wanted, digest)

    def wanted(
        self, props: Properties, type_: str = "Opaque", content: Mapping[str, bytes] | None = None
    ) -> Composition:
        """Return the Secret as the projector is told of it. type_, content: as it is rendered."""
        first = _sources(props)[0]
        return Composition(
            source=first.ref,
            origin=str(first.ref or first.version),
            target=SecretRef(props["namespace"], props["targetName"]),
            owner=props["owner"],
            type=type_,
            content=content or {},
            labels=props["labels"],
            annotations=props.get("annotations") or {},
            previously=props.get("previously") or (),
            incarnation=props.get(INCARNATION),
        )

    def _contents(self, secrets: KubernetesSecrets, props: Properties) -> Sequence[bytes]:
        return [content_of(each, props["namespace"], secrets, self.configured) for each in _sources(props)]

    def _composed(self, contents: Sequence[bytes], props: Properties) -> Composition:
        places = [str(each["place"]) for each in props["sources"]]
        return self.wanted(props, *self.render(props["recipe"], contents, places))


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedArgs(CompositionArgs):
    """A Secret that others mark as well. labels, annotations: those that are the stack's to say."""

    annotations: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])


class MarkedProvider(CompositionProvider):
    """Writes a Secret that is made of others, and keeps its marks as they are declared."""

    args = MarkedArgs

    def create_resource(self, props: Properties) -> Properties:
        """Write the Secret; of one that is handed over, marks that were declared go, others stay."""
        found = open_secrets(self.cluster).get(SecretRef(props["namespace"], props["targetName"]))
        before = {} if found is None or not is_handed_over(found, props["owner"]) else read_applied(found)
        return self._marked(before, props)

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Write the Secret again, and the marks that are others now."""
        return self._marked(olds, news)

    def _marked(self, before: Properties, props: Properties) -> Properties:
        return self._written(props, lambda target: render_marks(target, before, props))


def content_of(
    source: Source, reader: str, secrets: KubernetesSecrets, configured: Callable[[str], str | None]
) -> bytes:
    """Return what a source holds for a namespace that reads it; raises CredfleetError with its place.

    configured: reads the stack's configuration, by which Secret Manager is known.
    """
    if (ref := source.ref) is None:
        return source.payload(partial(configured_secret_manager, configured))
    return source.content(secrets.get(ref), reader)


def _failures(inputs: Properties) -> Iterator[CheckFailure]:
    yield from name_errors(inputs, ("sourceNamespace", "targetNamespace"), ("sourceName", "targetName"))
    if not inputs["owner"]:
        yield CheckFailure("owner", "a copy has an owner, so that no other owner's Secret is overwritten")
    method = inputs["asoCredential"]
    if method is not None and not is_unknown(method) and method not in set(AsoMethod):
        yield CheckFailure("asoCredential", f"the methods are {', '.join(AsoMethod)}")
    elif not any(is_unknown(each) for each in (method, inputs["keys"])):
        try:
            plan_keys(inputs["keys"], None if method is None else AsoMethod(method))
        except CredfleetError as error:
            yield CheckFailure("keys", str(error))


def source_inputs(sources: Sequence[Source]) -> Output[Any]:
    """Return sources as the input of a dynamic resource."""
    return Output.all(*(each.properties for each in sources)).apply(list)


def _sources(props: Properties) -> list[Source]:
    return [Source(**each) for each in props["sources"]]
