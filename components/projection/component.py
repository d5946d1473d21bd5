"""Copies of Secrets that are delivered to a tenant's namespace.

Owns only the copies. The sources stay in place; a copy is deleted before the claim it was made for. Also
contains the hook that prevents a stack from taking over existing Secrets of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import quote

import pulumi

from components.connection import ClusterTarget, NoReply, connect
from components.errors import CredfleetError
from components.holding import known_as
from components.projection.kubernetes_secrets import path_of
from components.projection.model import SecretRef, is_composed, is_of_others
from components.projection.provider import SecretProjection, SecretProjectionArgs
from components.refusing import Importer, keep, refusing
from components.waiting import declare_unless


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantDeliveriesArgs:
    """Namespace of a tenant, and the copies for it by slot.

    `waits`: slot → why there is no copy yet, empty if there is. `former`: slot → its former names, as
    `tenant/slot`.
    """

    namespace: pulumi.Input[str]
    copies: Mapping[str, SecretProjectionArgs]
    waits: Mapping[str, pulumi.Input[str]]
    former: Mapping[str, Sequence[str]]


class TenantDeliveries(pulumi.ComponentResource):
    """Copies of one tenant. Outputs: references, slot → namespace/name of the copy.

    `copies`: slot → the copy, as a dependency; None while it waits.
    """

    TYPE: ClassVar = "credfleet:index:TenantDeliveries"
    copies: Mapping[str, pulumi.Output[SecretProjection | None]]
    references: Mapping[str, pulumi.Output[str | None]]

    def __init__(
        self, name: str, args: TenantDeliveriesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        props = {"namespace": args.namespace, "slots": sorted(args.copies)}
        super().__init__(self.TYPE, name, props, opts)
        self.copies = {
            slot: declare_unless(
                args.waits[slot], partial(self._copy, f"{name}/{slot}", copy, args.former[slot])
            )
            for slot, copy in args.copies.items()
        }
        self.references = {
            slot: copy.apply(lambda made: made and made.reference) for slot, copy in self.copies.items()
        }
        self.register_outputs({"references": self.references})

    def _copy(self, name: str, args: SecretProjectionArgs, former: Sequence[str]) -> SecretProjection:
        opts = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), known_as(name, former))
        return SecretProjection(f"{name}-copy", args, opts)


_SPARED: Final[Mapping[str, str]] = {
    "kubernetes:core/v1:Secret": "delete it if it is not in use, or take another name",
    "kubernetes:core/v1:Namespace": "delete it if nothing is in it, or take another name",
}
"""Type that is never taken over → fix if an object with the name exists."""


def sparing_others(cluster: ClusterTarget, fixes: Mapping[str, str]) -> pulumi.ResourceOptions:
    """Return parent options that prevent taking over Secrets and namespaces of others.

    Creating an existing one is rejected, even in a preview, with the command that imports it. `fixes`: name
    of a Secret → another fix.
    """
    importers = dict[str, Importer]()
    hook = refusing("secrets-of-others", partial(_refuse, cluster, fixes, importers))

    def bound(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ not in _SPARED or args.opts.parent is None:
            return None
        keep(importers, args.type_, args.name, args.opts.parent, args.resource)
        hooks = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_create=[hook]))
        return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, hooks))

    return pulumi.ResourceOptions(transformations=[bound])


def _refuse(
    cluster: ClusterTarget,
    fixes: Mapping[str, str],
    importers: Mapping[str, Importer],
    args: pulumi.ResourceHookArgs,
) -> None:
    metadata: Mapping[str, Any] = (args.new_inputs or {}).get("metadata") or {}
    namespace, name = metadata.get("namespace", ""), metadata.get("name")
    if not (isinstance(namespace, str) and isinstance(name, str)):
        return
    kind, id_ = args.type.rpartition(":")[2], f"{namespace}/{name}" if namespace else name
    path = path_of(SecretRef(namespace, name)) if namespace else f"/api/v1/namespaces/{quote(name, safe='')}"
    found: dict[str, Any] | None = None
    with suppress(CredfleetError, NoReply):  # if the cluster is unreachable, nothing is found
        found = connect(cluster).patient.find(path)
    if found and is_composed(found):  # if imported, it would be deleted with the reference that wrote it
        raise pulumi.RunError(
            f"Secret {id_} is written of what a reference names, so no entry overwrites it\n"
            "→ keep the reference; or end what reads the Secret, take it out of the configuration, update, "
            "and declare it again"
        )
    if found and is_of_others(found):
        fix = fixes.get(name, _SPARED[args.type]) if namespace else _SPARED[args.type]
        raise pulumi.RunError(
            f"{kind} {id_} exists, and no stack has written it, so it is not overwritten\n"
            f"→ {fix}; or make it this stack's: {importers[args.urn].command(id_)}"
        )
