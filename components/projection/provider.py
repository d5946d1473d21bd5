"""Projection of a Secret as a dynamic resource: data stays in the cluster, inputs are references.

Inputs and outputs contain no secret data: outputs are the copy's name, a keyed digest of its data, and the
version of its source. Other components compose Secrets from several sources, and from versions in Google
Secret Manager. The path of this module and its class names are stored in the state of stacks and must not
change. Import-pure.
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
"""Prefix of the field managers that write declared Secrets."""


def read_applied(secret: JsonObject) -> JsonObject:
    """Return the labels and annotations of a Secret that Pulumi wrote, according to managedFields."""
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
    """Return a Secret with its declared marks. `before`: former ones, which are removed if not declared.

    Raises ProjectionError for a label that another writer has set to another value, such as an owner label.
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
    """Copy of a Secret.

    `owner`: id of the requester, the same string in every run. `source_labels`: labels that the source must
    have. `keys`: target key → source key; empty means all unchanged. `aso_credential`: method of an ASO
    credential, whose keys are then the defaults. `foreseen`: in a preview, digests of its future data, if the
    program declares the source. `of_pool`: the source is in the pool's cluster, if that is another one; None:
    in this one. `previously`: its owner under former names.
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
    """Base of providers of Secrets that are derived from others."""

    def wanted(self, props: Properties) -> Wanted:
        """Return the Secret in the projector's model."""
        raise NotImplementedError

    def taken(self, inputs: Properties) -> Iterator[CheckFailure]:
        """Yield a failure if the target has another owner; if unreachable, the update checks."""
        with suppress(CredfleetError):
            if (taken := open_projector(self.cluster).taken(self.wanted(inputs))) is not None:
                yield CheckFailure("targetName", str(taken))

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the digest of the Secret; None if it is missing or has another owner."""
        found = open_projector(self.cluster).digest(self.wanted(props))
        return None if found is None else {"digest": found}

    def delete_resource(self, _id: str, props: Properties) -> bool:
        """Delete the Secret, if it is still ours."""
        return open_projector(self.cluster).remove(self.wanted(props))


class SecretProjectionProvider(SecretProvider):
    """Writes, compares and removes a copy through the projector."""

    args = SecretProjectionArgs
    outputs = ("reference", "digest", "sourceResourceVersion")
    named_by = ("targetNamespace", "targetName")

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Reject invalid Secret names, keys that the method lacks, and targets of another owner."""
        failures = list(_failures(inputs))
        yield from failures
        if not failures and not any(is_unknown(inputs[key]) for key in _DECIDES_THE_PLACE):
            named = ("sourceNamespace", "sourceName")
            source = {key: "" if is_unknown(inputs[key]) else inputs[key] or "" for key in named}
            yield from self.taken({**inputs, **source, "sourceLabels": {}})

    def create_resource(self, props: Properties) -> Properties:
        """Write the copy; an existing one of the same owner is adopted."""
        wanted = self.wanted(props)
        written = self._projector(props).write(wanted)
        return {
            "reference": str(wanted.target),
            "digest": written.digest,
            "sourceResourceVersion": written.source_version,
        }

    def is_current(self, props: Properties, digest: str) -> bool:
        """Return whether the copy matches its present source."""
        return self._projector(props).is_current(self.wanted(props), digest)

    def is_predicted_otherwise(self, props: Properties) -> bool:
        """Return whether the copy will have other data after this update."""
        target = SecretRef(props["targetNamespace"], props["targetName"])
        foreseen = props.get(FORESEEN)
        return bool(foreseen) and differs(open_secrets(self.cluster).get(target), foreseen)

    def _projector(self, props: Properties) -> Projector:
        return open_projector(self.cluster, self.cluster_of_pool if props.get("ofPool") else None)

    def wanted(self, props: Properties) -> Projection:
        """Return the copy in the projector's model."""
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
    """Secret that is composed from others.

    `owner`: id of the requester, the same string in every run. `sources`: each from `Source.properties`.
    `recipe`: what `render` requires in addition to the contents. `labels`: of the Secret. `content`: changes
    with what the stack writes into sources itself.
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
    """Writes, compares and removes a composed Secret."""

    args = CompositionArgs
    outputs = ("reference", "digest", "type")
    named_by = ("namespace", "targetName")

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises CredfleetError. `places`: of the contents."""
        raise NotImplementedError

    def warnings(self, _recipe: Properties, _contents: Sequence[bytes]) -> Iterator[str]:
        """Yield warnings about sources that are nevertheless accepted."""
        yield from ()

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Reject a target of another owner, and invalid sources; the update checks again."""
        if is_unknown(inputs):
            return
        try:
            secrets = open_secrets(self.cluster)
        except CredfleetError:
            return
        yield from self.taken(inputs)
        if RECORDED in os.environ:  # a keyless review has no contents
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
        """Write the Secret from its present sources; a handed-over one exists throughout."""
        return self._written(props)

    def _written(
        self, props: Properties, mark: Callable[[JsonObject], JsonObject] | None = None
    ) -> Properties:
        secrets = open_secrets(self.cluster)
        wanted = self._composed(self._contents(secrets, props), props)
        written = Projector(secrets).write(wanted, mark)
        return {"reference": str(wanted.target), "digest": written.digest, "type": wanted.type}

    def is_current(self, props: Properties, digest: str) -> bool:
        """Return whether the Secret matches its present sources."""
        secrets = open_secrets(self.cluster)
        wanted = self._composed(self._contents(secrets, props), props)
        return Projector(secrets).is_current(wanted, digest)

    def wanted(
        self, props: Properties, type_: str = "Opaque", content: Mapping[str, bytes] | None = None
    ) -> Composition:
        """Return the Secret in the projector's model. `type_`, `content`: from `render`."""
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
    """Secret that others label too. `labels`, `annotations`: those that the stack sets."""

    annotations: Input[Mapping[str, Input[str]]] = field(default_factory=dict[str, Input[str]])


class MarkedProvider(CompositionProvider):
    """Writes a composed Secret, and keeps its labels and annotations as declared."""

    args = MarkedArgs

    def create_resource(self, props: Properties) -> Properties:
        """Write the Secret; if it was handed over, remove formerly declared marks and keep the others."""
        found = open_secrets(self.cluster).get(SecretRef(props["namespace"], props["targetName"]))
        before = {} if found is None or not is_handed_over(found, props["owner"]) else read_applied(found)
        return self._marked(before, props)

    def update_resource(self, _id: str, olds: Properties, news: Properties) -> Properties:
        """Write the Secret again, with changed marks."""
        return self._marked(olds, news)

    def _marked(self, before: Properties, props: Properties) -> Properties:
        return self._written(props, lambda target: render_marks(target, before, props))


def content_of(
    source: Source, reader: str, secrets: KubernetesSecrets, configured: Callable[[str], str | None]
) -> bytes:
    """Return the content of a source for a reading namespace; raises CredfleetError with its place.

    `configured`: reads the stack's configuration, which selects Secret Manager.
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
