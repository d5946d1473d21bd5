"""Migration of a legacy service as a dynamic resource: data stays in the cluster, inputs are references.

Inputs and outputs contain no credentials: outputs are the name of the migrated Secret, a keyed digest of its
data, and version and type of its source Secret. The path of this module and its class names are stored in the
state of stacks and must not change. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from pulumi import Input, Output
from pulumi.dynamic import CheckFailure

from components.connection import ClusterTarget, Connection, NoReply, reach, served_kinds
from components.dynamic import (
    IDENTITY,
    INCARNATION,
    SECRET,
    DynamicProvider,
    DynamicResource,
    Properties,
    is_unknown,
)
from components.errors import CredfleetError, ProjectionError
from components.go_json import Numbers
from components.http_answers import HttpOutcome
from components.projection.kubernetes_secrets import failed, open_secrets, path_of
from components.projection.model import SecretRef, is_replaced
from components.projection.projector import open_projector
from components.projection.provider import CompositionArgs, CompositionProvider, Rendered, SecretProvider
from components.service_credentials.binding import (
    OPAQUE,
    SECRET_TYPE,
    VCAP_KEY,
    BoundInstance,
    binding_data,
    binding_type,
    read_credentials_object,
    source_data,
    vcap_services,
)
from components.service_credentials.conformity import ENVIRONMENT_LIMIT, SIZE_LIMIT, Conformity, judge_text
from components.service_credentials.legacy_readers import call, still_read
from components.service_credentials.migration import Migration
from components.service_credentials.workload import FIELD_MANAGER, Given, is_given, nothing, render, unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMigrationArgs:
    """Secret derived from the legacy Secret `instance`, in the same namespace.

    `owner`: id of the requester, the same string in every run. `binding`: whose VCAP_SERVICES it contains,
    from `bound_properties`; None for the source of the instance. `handed_over`: another resource writes the
    target from now on, because its credentials are declared; the migrated Secret is deleted for it,
    irreversibly. `remove_legacy`: delete the legacy Secret once nothing refers to it.
    """

    namespace: Input[str] = field(metadata=IDENTITY)
    target_name: str = field(metadata=IDENTITY)
    owner: str = field(metadata=IDENTITY)
    instance_guid: str = field(metadata=IDENTITY)
    instance: str
    binding: Mapping[str, Any] | None = None
    handed_over: bool = False
    remove_legacy: bool | None = None


def bound_properties(bound: BoundInstance) -> Properties:
    """Return the properties of a bound instance that the other inputs lack."""
    named = {} if bound.binding_name is None else {"name": bound.binding_name}
    return {"guid": bound.binding_guid, "tags": list(bound.tags), "label": bound.label, **named}


class ServiceMigrationProvider(SecretProvider):
    """Writes, compares and removes a migrated Secret, without changing the legacy one."""

    args = ServiceMigrationArgs
    outputs = ("reference", "digest", "sourceResourceVersion", "sourceType")
    named_by = ("namespace", "targetName")
    delete_first = True

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Reject an invalid legacy Secret, a target of another owner, and the way back, even in a preview.

        Names come from the settings. A handed-over target is checked by its writer.
        """
        if olds.get("handedOver") and not inputs["handedOver"]:
            yield CheckFailure(
                "handedOver",
                f"Secret {inputs['namespace']}/{inputs['targetName']}: its credentials are declared by now,"
                " and those of the legacy Secret may be outdated, so they are not taken back\n"
                "→ keep credentialsFrom beside legacy",
            )
        elif not is_unknown(inputs):
            fault = None
            if inputs["removeLegacy"]:
                with suppress(CredfleetError):  # if the cluster is unreachable, the update reports them
                    fault = still_read(_reached(self), self.wanted(inputs).source)
            if fault is not None:
                yield CheckFailure("removeLegacy", str(fault))
            elif not inputs["handedOver"]:
                yield from self.taken(inputs)
                with suppress(CredfleetError):  # if the cluster is unreachable, the update reports it
                    if (fault := open_projector(self.cluster).unfit(self.wanted(inputs))) is not None:
                        yield CheckFailure("instance", str(fault))

    def create_resource(self, props: Properties) -> Properties:
        """Write the migrated Secret, or hand its name over; an existing one of the owner is adopted."""
        wanted = self.wanted(props)
        outputs = {**dict.fromkeys(self.outputs, ""), "reference": str(wanted.target)}
        if props["handedOver"]:
            open_projector(self.cluster).remove(wanted)
            if props.get("removeLegacy"):
                self._remove_legacy(wanted.source)
            return outputs
        written = open_projector(self.cluster).write(wanted)
        return {
            **outputs,
            "digest": written.digest,
            "sourceResourceVersion": written.source_version,
            "sourceType": written.source_type,
        }

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return the digest of the migrated Secret; a handed-over one is not read."""
        return {} if props["handedOver"] else super().read_resource(_id, props)

    def is_current(self, props: Properties, digest: str) -> bool:
        """Return whether the migrated Secret matches the present legacy one."""
        return bool(props["handedOver"]) or open_projector(self.cluster).is_current(
            self.wanted(props), digest
        )

    def _remove_legacy(self, secret: SecretRef) -> None:
        """Delete a legacy Secret that nothing refers to; raises ProjectionError."""
        if (fault := still_read(_reached(self), secret)) is not None:
            raise fault
        secrets = open_secrets(self.cluster)
        found = secrets.get(secret)
        if found is not None and str(found.get("type")).startswith(SECRET_TYPE):
            secrets.delete(found)

    def wanted(self, props: Properties) -> Migration:
        """Return the Secret in the projector's model."""
        namespace, instance, guid = props["namespace"], props["instance"], props["instanceGuid"]
        bound = None
        if (binding := props.get("binding")) is not None:
            bound = BoundInstance(
                instance_guid=guid,
                instance_name=instance,
                binding_guid=binding["guid"],
                binding_name=binding.get("name"),
                tags=tuple(binding.get("tags") or ()),
                label=binding["label"],
            )
        return Migration(
            source=SecretRef(namespace, instance),
            target=SecretRef(namespace, props["targetName"]),
            owner=props["owner"],
            instance_guid=guid,
            bound=bound,
            incarnation=props.get(INCARNATION),
        )


def _reached(provider: DynamicProvider) -> Connection:
    return reach(ClusterTarget.parse(provider.cluster), "run again once it does")


class ServiceMigration(DynamicResource[ServiceMigrationArgs]):
    """Secret in the present format that follows a legacy one, until its name is handed over.

    `source_type`: of the legacy Secret; empty once the name is handed over.
    """

    provider = ServiceMigrationProvider

    reference: Output[str]
    digest: Output[str]
    target_name: Output[str]
    source_type: Output[str]


class Form(StrEnum):
    """Content of a Secret of a service."""

    SOURCE = "source"
    BINDING = "binding"
    ENVIRONMENT = "environment"
    APPLICATION = "application"


def instance_properties(bound: BoundInstance) -> Properties:
    """Return a bound instance as properties."""
    given = {**asdict(bound), "tags": [*bound.tags]}
    return {key: value for key, value in given.items() if value is not None}


class ServiceSecretProvider(CompositionProvider):
    """Writes the Secrets of a service or application from credentials in the cluster.

    `recipe`: {form, instances}, with one instance per source: {numbers, strict}; for a binding also {bound},
    from `instance_properties`; for an application also {takesFile}.
    """

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises ProjectionError for invalid credentials."""
        instances: Sequence[Properties] = recipe["instances"]
        for content, place, one in zip(contents, places, instances, strict=True):
            for error in _verdict(content, one).errors:
                raise ProjectionError.of(error, "credentials-invalid", f"{place} ({error.place})")
        read = [
            read_credentials_object(content, numbers=Numbers(one["numbers"]))
            for content, one in zip(contents, instances, strict=True)
        ]
        match recipe["form"]:
            case Form.SOURCE:
                return OPAQUE, source_data(read[0])
            case Form.BINDING:
                return binding_type(read[0]), binding_data(read[0])
            case form:
                bound = [_whole(one["bound"]) for one in instances]
                vcap = vcap_services(zip(bound, read, strict=True))
                takes_file = form != Form.APPLICATION or instances[0]["takesFile"]
                if len(vcap) > (limit := SIZE_LIMIT if takes_file else ENVIRONMENT_LIMIT):
                    raise ProjectionError(
                        code="credentials-invalid",
                        place=places[0],
                        problem=f"VCAP_SERVICES over all its bindings has {len(vcap)} bytes, and no more than"
                        f" {limit} are held",
                        fix="bind fewer services to one application"
                        if takes_file
                        else "set file: true on the application, which then reads it from a file",
                    )
                return OPAQUE, {VCAP_KEY: vcap}

    def warnings(self, recipe: Properties, contents: Sequence[bytes]) -> Iterator[str]:
        """Yield warnings about the credentials, once for each instance."""
        if recipe["form"] == Form.SOURCE:
            yield from map(str, _verdict(contents[0], recipe["instances"][0]).warnings)


class ServiceSecret(DynamicResource[CompositionArgs]):
    """Secret of a service that follows credentials in the cluster."""

    provider = ServiceSecretProvider

    type: Output[str]
    digest: Output[str]


def _whole(bound: Properties) -> BoundInstance:
    given: Properties = {**bound, "tags": (*bound["tags"],)}
    return BoundInstance(**given)


def _verdict(content: bytes, one: Properties) -> Conformity:
    return judge_text(content, numbers=Numbers(one["numbers"]), strict=one["strict"])


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadBindingArgs:
    """Workload, and what it is bound to, as in `workload.Given`.

    `restart`: whether its pods are restarted when a Secret changes. `content`: digest of the Secrets.
    """

    namespace: Input[str] = field(metadata=IDENTITY)
    api_version: str = field(metadata=IDENTITY)
    kind: str = field(metadata=IDENTITY)
    name: str = field(metadata=IDENTITY)
    vcap_secret: str
    takes_file: bool
    directories: Mapping[str, str]
    containers: Sequence[str] = ()
    restart: bool = False
    content: Input[str] = field(metadata=SECRET)


class WorkloadBindingProvider(DynamicProvider):
    """Applies bindings to a workload with its own field manager, and removes them."""

    args = WorkloadBindingArgs
    named_by = ("namespace", "kind", "name")

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Reject a workload that is missing or cannot be bound; the update checks again."""
        if is_unknown(inputs):
            return
        try:
            self._live(_reached(self), inputs)
        except ProjectionError as error:
            yield CheckFailure("name", str(error))
        except CredfleetError:
            return

    def create_resource(self, props: Properties) -> Properties:
        """Apply all bindings; former ones are removed with it."""
        connection = _reached(self)
        path, live = self._live(connection, props)
        versions = self._versions(connection, props) if props["restart"] else None
        given = replace(_given(props), restarted_for=versions, incarnation=props.get(INCARNATION))
        self._apply(connection, path, render(live, given))
        return {}

    def is_stale(self, _olds: Properties, news: Properties) -> bool:
        """Return whether the workload lost some bindings, e.g. because it was recreated."""
        try:
            return not (is_unknown(news) or self._has_all(news))
        except CredfleetError:
            return False  # a missing one is reported by the check

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Return whether the workload exists with all bindings."""
        try:
            return {} if self._has_all(props) else None
        except ProjectionError as error:
            if error.code.startswith("workload-"):
                return None
            raise

    def _has_all(self, props: Properties) -> bool:
        return is_given(self._live(_reached(self), props)[1], _given(props))

    def delete_resource(self, _id: str, props: Properties) -> bool:
        """Remove all bindings from the workload, unless a later incarnation applied them."""
        connection = _reached(self)
        if (found := _workload(connection, props)) is None:
            return True
        path, live = found
        if is_replaced(live, props.get(INCARNATION)):
            return False
        self._apply(connection, path, nothing(live))
        return True

    def _live(self, connection: Connection, props: Properties) -> tuple[str, Mapping[str, Any]]:
        """Return path and body of the workload; raises ProjectionError if it cannot be bound."""
        place = f"{props['kind']} {props['namespace']}/{props['name']}"
        if (found := _workload(connection, props)) is None:
            problem, fix = "it is not there", "create it first, or correct apiVersion, kind and name"
            raise ProjectionError(code="workload-missing", place=place, problem=problem, fix=fix)
        takes_files = bool(props["directories"])
        if (fault := unfit(found[1], props["containers"], takes_files=takes_files)) is not None:
            raise ProjectionError.of(fault, "workload-unfit", place)
        return found

    def _versions(self, connection: Connection, props: Properties) -> str:
        """Return the versions of all its Secrets as one string."""
        names = sorted({props["vcapSecret"], *props["directories"].values()})
        refs = [SecretRef(props["namespace"], name) for name in names]
        found = [call(connection, path_of(ref)).body for ref in refs]
        return "-".join(str((one.get("metadata") or {}).get("resourceVersion")) for one in found)

    def _apply(self, connection: Connection, path: str, body: Mapping[str, Any]) -> None:
        place = f"{body['kind']} {body['metadata']['namespace']}/{body['metadata']['name']}"
        try:
            reply = connection.call(
                "PATCH",
                f"{path}?fieldManager={FIELD_MANAGER}",
                body=body,
                content_type="application/apply-patch+yaml",
            )
        except NoReply as silence:
            raise failed(place, f"the API server does not answer ({silence})", "run again") from None
        if reply.answer is not HttpOutcome.DONE:
            raise ProjectionError(
                code="workload-unfit",
                place=place,
                problem=f"the API server refused to apply what it is given: {reply.text}",
                fix="let only one owner set the same variables and mounts, then run again",
            )


def _given(props: Properties) -> Given:
    return Given(
        vcap_secret=props["vcapSecret"],
        takes_file=props["takesFile"],
        directories=props["directories"],
        containers=props["containers"],
    )


class WorkloadBinding(DynamicResource[WorkloadBindingArgs]):
    """Binding of a workload to the Secrets of an application."""

    provider = WorkloadBindingProvider


def _workload(connection: Connection, props: Properties) -> tuple[str, dict[str, Any]] | None:
    """Return path and body of a workload; None if it is missing, or its kind is not served."""
    version = props["apiVersion"]
    kinds = served_kinds(lambda path: call(connection, path).body, version)
    if props["kind"] not in kinds:
        return None
    group = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace, name = quote(props["namespace"], safe=""), quote(props["name"], safe="")
    path = f"{group}/namespaces/{namespace}/{kinds[props['kind']]}/{name}"
    found = call(connection, path)
    return (path, found.body) if found.answer is HttpOutcome.DONE else None
