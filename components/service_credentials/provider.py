"""The migration of a legacy service as a dynamic resource: bytes move inside the cluster, references travel.

Neither inputs nor outputs hold a byte of a credential: the outputs are where the migrated Secret is, a keyed
digest of what is in it, and version and type of the Secret it was made from. The path of this module and the
names of its classes are written into the state of stacks; they never move. Import-pure.
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
    """A Secret made of the legacy Secret `instance`, in the same namespace.

    owner: who wants it, the same text whenever the program runs. binding: whose VCAP_SERVICES it holds, as
    `bound_properties` has it; None for the source of the instance. handed_over: the target is another owner's
    to write from now on, because its credentials are declared; what was migrated is removed to make place.
    There is no way back. remove_legacy: the legacy Secret goes, once nothing refers to it.
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
    """Return what of a bound instance its other properties do not say."""
    named = {} if bound.binding_name is None else {"name": bound.binding_name}
    return {"guid": bound.binding_guid, "tags": list(bound.tags), "label": bound.label, **named}


class ServiceMigrationProvider(SecretProvider):
    """Writes, compares and removes a migrated Secret. The legacy one is never touched."""

    args = ServiceMigrationArgs
    outputs = ("reference", "digest", "sourceResourceVersion", "sourceType")
    named_by = ("namespace", "targetName")
    delete_first = True

    def failures(self, inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
        """Refuse, in a preview too, a legacy Secret that is none, a place that is taken, and the way back.

        Its names are those of the settings. A place that was handed over is looked at by its writer.
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
                with suppress(CredfleetError):  # in a cluster that cannot be seen, the update names them
                    fault = still_read(_reached(self), self.wanted(inputs).source)
            if fault is not None:
                yield CheckFailure("removeLegacy", str(fault))
            elif not inputs["handedOver"]:
                yield from self.taken(inputs)
                with suppress(CredfleetError):  # in a cluster that cannot be seen, the update says it
                    if (fault := open_projector(self.cluster).unfit(self.wanted(inputs))) is not None:
                        yield CheckFailure("instance", str(fault))

    def create_resource(self, props: Properties) -> Properties:
        """Write the migrated Secret, or hand its name over; one that is there is taken as its own."""
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
        """Return the digest of the migrated Secret; one whose name is handed over is not looked at."""
        return {} if props["handedOver"] else super().read_resource(_id, props)

    def is_current(self, props: Properties, digest: str) -> bool:
        """Whether the migrated Secret is what the legacy one makes of it now."""
        return bool(props["handedOver"]) or open_projector(self.cluster).is_current(
            self.wanted(props), digest
        )

    def _remove_legacy(self, secret: SecretRef) -> None:
        """Delete the legacy Secret if it is one, and nothing refers to it; raises ProjectionError."""
        if (fault := still_read(_reached(self), secret)) is not None:
            raise fault
        secrets = open_secrets(self.cluster)
        found = secrets.get(secret)
        if found is not None and str(found.get("type")).startswith(SECRET_TYPE):
            secrets.delete(found)

    def wanted(self, props: Properties) -> Migration:
        """Return the Secret as the projector is told of it."""
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
    """A Secret in today's format that follows a legacy one, until its name is handed over.

    source_type: of the legacy Secret; empty once its name is handed over.
    """

    provider = ServiceMigrationProvider

    reference: Output[str]
    digest: Output[str]
    target_name: Output[str]
    source_type: Output[str]


class Form(StrEnum):
    """What a Secret of a service holds."""

    SOURCE = "source"
    BINDING = "binding"
    ENVIRONMENT = "environment"
    APPLICATION = "application"


def instance_properties(bound: BoundInstance) -> Properties:
    """Return a bound instance as properties."""
    given = {**asdict(bound), "tags": [*bound.tags]}
    return {key: value for key, value in given.items() if value is not None}


class ServiceSecretProvider(CompositionProvider):
    """Writes the Secrets of a service, and of an application, of credentials that are in the cluster.

    recipe: {form, instances}, one instance for each source: {numbers, strict}, where a binding is meant
    {bound}, as `instance_properties` has it, and {takesFile} for an application.
    """

    def render(self, recipe: Properties, contents: Sequence[bytes], places: Sequence[str]) -> Rendered:
        """Return type and values of the Secret; raises ProjectionError for credentials that cannot be one."""
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
        """Yield what the credentials break without being refused, once for each instance."""
        if recipe["form"] == Form.SOURCE:
            yield from map(str, _verdict(contents[0], recipe["instances"][0]).warnings)


class ServiceSecret(DynamicResource[CompositionArgs]):
    """A Secret of a service whose credentials are in the cluster; it follows them."""

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
    """A workload, and what it is given, as `workload.Given` has it.

    restart: whether its pods are restarted when a Secret changes. content: a digest of what Secrets hold.
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
    """Applies what a workload is given under a field manager of its own, and takes it back."""

    args = WorkloadBindingArgs
    named_by = ("namespace", "kind", "name")

    def failures(self, inputs: Properties, _olds: Properties) -> Iterator[CheckFailure]:
        """Refuse a workload that is not there or cannot be given anything; the update looks again."""
        if is_unknown(inputs):
            return
        try:
            self._live(_reached(self), inputs)
        except ProjectionError as error:
            yield CheckFailure("name", str(error))
        except CredfleetError:
            return

    def create_resource(self, props: Properties) -> Properties:
        """Apply it all; what was given before and is not any more goes with it."""
        connection = _reached(self)
        path, live = self._live(connection, props)
        versions = self._versions(connection, props) if props["restart"] else None
        given = replace(_given(props), restarted_for=versions, incarnation=props.get(INCARNATION))
        self._apply(connection, path, render(live, given))
        return {}

    def is_stale(self, _olds: Properties, news: Properties) -> bool:
        """Whether the workload lost some of it, as one that was deleted and applied again has."""
        try:
            return not (is_unknown(news) or self._has_all(news))
        except CredfleetError:
            return False  # as one that is not there: told by the check

    def read_resource(self, _id: str, props: Properties) -> Properties | None:
        """Look whether the workload is there, with all that it was given."""
        try:
            return {} if self._has_all(props) else None
        except ProjectionError as error:
            if error.code.startswith("workload-"):
                return None
            raise

    def _has_all(self, props: Properties) -> bool:
        return is_given(self._live(_reached(self), props)[1], _given(props))

    def delete_resource(self, _id: str, props: Properties) -> bool:
        """Take everything back from a workload that is still there, unless a later incarnation gave it."""
        connection = _reached(self)
        if (found := _workload(connection, props)) is None:
            return True
        path, live = found
        if is_replaced(live, props.get(INCARNATION)):
            return False
        self._apply(connection, path, nothing(live))
        return True

    def _live(self, connection: Connection, props: Properties) -> tuple[str, Mapping[str, Any]]:
        """Return path and body of the workload; raises ProjectionError when it can be given nothing."""
        place = f"{props['kind']} {props['namespace']}/{props['name']}"
        if (found := _workload(connection, props)) is None:
            problem, fix = "it is not there", "create it first, or correct apiVersion, kind and name"
            raise ProjectionError(code="workload-missing", place=place, problem=problem, fix=fix)
        takes_files = bool(props["directories"])
        if (fault := unfit(found[1], props["containers"], takes_files=takes_files)) is not None:
            raise ProjectionError.of(fault, "workload-unfit", place)
        return found

    def _versions(self, connection: Connection, props: Properties) -> str:
        """Return one text for the versions of all its Secrets."""
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
    """What a workload is given of the Secrets of an application."""

    provider = WorkloadBindingProvider


def _workload(connection: Connection, props: Properties) -> tuple[str, dict[str, Any]] | None:
    """Return path and body of a workload; None when it is not there, or its kind is not served."""
    version = props["apiVersion"]
    kinds = served_kinds(lambda path: call(connection, path).body, version)
    if props["kind"] not in kinds:
        return None
    group = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace, name = quote(props["namespace"], safe=""), quote(props["name"], safe="")
    path = f"{group}/namespaces/{namespace}/{kinds[props['kind']]}/{name}"
    found = call(connection, path)
    return (path, found.body) if found.answer is HttpOutcome.DONE else None
