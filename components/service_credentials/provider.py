"""The migration of a legacy service as a dynamic resource: bytes move inside the cluster, references travel.

Neither inputs nor outputs hold a byte of a credential: the outputs are where the migrated Secret is, a keyed
digest of what is in it, and version and type of the Secret it was made from. The path of this module and the
names of its classes are written into the state of stacks; they never move. Import-pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pulumi
from pulumi import Input, Output, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components.dynamic import Properties, compared, is_unknown, kept, shortened
from components.errors import CredfleetError
from components.naming import is_namespace, is_object_name
from components.projection.kubernetes_secrets import open_projector
from components.projection.model import SecretRef
from components.service_credentials.binding import BoundInstance
from components.service_credentials.migration import Migration

_IDENTITY: Final = ("namespace", "targetName", "owner", "instanceGuid")
_INPUTS: Final = (*_IDENTITY, "instance", "binding", "handedOver")
_OUTPUTS: Final = ("reference", "digest", "sourceResourceVersion", "sourceType")


class ServiceMigrationProvider(ResourceProvider):
    """A thin shell over the projector; one instance serves all threads of the provider's process."""

    _cluster: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Learn which cluster is meant from `credfleet:cluster`."""
        self._cluster = req.config.get("cluster")

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        """Refuse, in a preview too, a legacy Secret that is none, a place that is taken, and the way back.

        A place that was handed over is looked at by whoever writes it.
        """
        inputs = {key: news.get(key) for key in _INPUTS}
        inputs["handedOver"] = bool(inputs["handedOver"])
        failures = list(_failures(inputs, _olds))
        if not (failures or inputs["handedOver"] or is_unknown(inputs)):
            failures += self._obstacles(inputs)
        return CheckResult(inputs, failures)

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        """Compare every input; then what the legacy Secret makes of the target with what is known of it."""
        return compared(
            _olds,
            _news,
            _INPUTS,
            identity=_IDENTITY,
            otherwise=lambda: not self._is_current(_news, str(_olds.get("digest"))),
            delete_first=True,
        )

    def create(self, props: Properties) -> CreateResult:
        """Write the migrated Secret; run again after any failure it finds it, and takes it as its own."""
        return CreateResult(f"{props['namespace']}/{props['targetName']}", self._settled(props))

    def read(self, id_: str, props: Properties) -> ReadResult:
        """Tell what is in the migrated Secret, by digest; gone, or somebody else's, it has no id."""
        outputs = kept(props, _INPUTS + _OUTPUTS)
        if not props["handedOver"]:
            with shortened():
                outputs["digest"] = open_projector(self._cluster).digest(_migration(props))
            if outputs["digest"] is None:
                return ReadResult("", {})
        return ReadResult(id_, outputs, kept(props, _INPUTS))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        """Write the migrated Secret again, or hand its name over."""
        return UpdateResult(self._settled(_news))

    def delete(self, _id: str, _props: Properties) -> None:
        """Remove the migrated Secret, if it is still ours; the legacy one is never touched."""
        with shortened():
            open_projector(self._cluster).remove(_migration(_props))

    def _settled(self, props: Properties) -> Properties:
        wanted = _migration(props)
        outputs = {**kept(props, _INPUTS), **dict.fromkeys(_OUTPUTS, ""), "reference": str(wanted.target)}
        with shortened():
            if props["handedOver"]:
                open_projector(self._cluster).remove(wanted)
                return outputs
            written = open_projector(self._cluster).write(wanted)
        return {
            **outputs,
            "digest": written.digest,
            "sourceResourceVersion": written.source_version,
            "sourceType": written.source_type,
        }

    def _obstacles(self, inputs: Properties) -> Iterator[CheckFailure]:
        """Tell what is in the way now; in a cluster that cannot be seen, `create` tells it."""
        wanted = _migration(inputs)
        try:
            taken = open_projector(self._cluster).taken(wanted)
            unfit = open_projector(self._cluster).unfit(wanted)
        except CredfleetError:
            return
        if taken is not None:
            yield CheckFailure("targetName", str(taken))
        if unfit is not None:
            yield CheckFailure("instance", str(unfit))

    def _is_current(self, props: Properties, known: str) -> bool:
        if props["handedOver"] or is_unknown(props):
            return True
        try:
            return open_projector(self._cluster).is_current(_migration(props), known)
        except CredfleetError:
            return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMigrationArgs:
    """A Secret made of the legacy Secret `instance`, in the same namespace.

    owner: who wants it, the same text whenever the program runs. binding: whose VCAP_SERVICES it holds; None
    for the source of the instance. handed_over: the target is somebody else's to write from now on, because
    its credentials are declared; what was migrated is removed to make place. There is no way back.
    """

    namespace: Input[str]
    instance: str
    instance_guid: str
    target_name: str
    owner: str
    binding: BoundInstance | None = None
    handed_over: bool = False


class ServiceMigration(Resource, module="credfleet", name="ServiceMigration"):
    """A Secret in today's format that follows a legacy one, until its name is handed over."""

    reference: Output[str]

    @property
    def target_name(self) -> Output[str]:
        """Name of the Secret."""
        return pulumi.get(self, "targetName")

    @property
    def source_type(self) -> Output[str]:
        """Type of the legacy Secret; empty once its name is handed over."""
        return pulumi.get(self, "sourceType")

    def __init__(self, name: str, args: ServiceMigrationArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(
            ServiceMigrationProvider(),
            name,
            {
                "namespace": args.namespace,
                "instance": args.instance,
                "instanceGuid": args.instance_guid,
                "targetName": args.target_name,
                "owner": args.owner,
                "binding": None if args.binding is None else _bound_inputs(args.binding),
                "handedOver": args.handed_over,
                **dict.fromkeys(_OUTPUTS),
            },
            opts,
        )


def _failures(inputs: Properties, olds: Properties) -> Iterator[CheckFailure]:
    """Everything wrong with the inputs that are known already."""
    if not is_unknown(inputs["namespace"]) and not is_namespace(str(inputs["namespace"] or "")):
        yield CheckFailure("namespace", "it is no namespace; use up to 63 of a-z, 0-9 and, inside, '-'")
    for key in ("instance", "targetName"):
        if not is_object_name(str(inputs[key] or "")):
            yield CheckFailure(key, "it is no name of a Secret; use up to 253 of a-z, 0-9, '-' and '.'")
    for key in ("owner", "instanceGuid"):
        if not inputs[key]:
            yield CheckFailure(key, "it is empty, so nobody could tell whose the Secret is")
    if olds.get("handedOver") and not inputs["handedOver"]:
        yield CheckFailure(
            "handedOver",
            f"Secret {inputs['namespace']}/{inputs['targetName']}: its credentials are declared by now, and"
            " those of the legacy Secret may be outdated, so they are not taken back\n"
            "→ keep credentialsFrom beside legacy",
        )


def _migration(props: Properties) -> Migration:
    namespace, instance, guid = props["namespace"], props["instance"], props["instanceGuid"]
    binding = props.get("binding")
    return Migration(
        source=SecretRef(namespace, instance),
        target=SecretRef(namespace, props["targetName"]),
        owner=props["owner"],
        instance_guid=guid,
        bound=None if binding is None else _bound(instance, guid, binding),
    )


def _bound_inputs(bound: BoundInstance) -> Properties:
    named = {} if bound.binding_name is None else {"name": bound.binding_name}
    return {"guid": bound.binding_guid, "tags": list(bound.tags), "label": bound.label, **named}


def _bound(instance: str, instance_guid: str, binding: Properties) -> BoundInstance:
    return BoundInstance(
        instance_guid=instance_guid,
        instance_name=instance,
        binding_guid=binding["guid"],
        binding_name=binding.get("name"),
        tags=tuple(binding.get("tags") or ()),
        label=binding["label"],
    )
