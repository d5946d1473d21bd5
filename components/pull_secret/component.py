"""Pull secret of a cluster: a secret in Secret Manager, its version, and the Kubernetes Secret.

Owns them, the rights on the entry, and the cluster's namespace if nothing else declares it; not the entry's
project, nor the cluster. The order is entry, version, verification, retention, Secret, report: the cluster
gets only what was read back before. An existing entry is never taken over, and a cluster that was ready once
keeps its pull secret whatever HyperFleet reports later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Final, TypeAlias, cast

import pulumi
from pulumi_gcp import secretmanager
from pulumi_gcp.secretmanager import get_secrets_output
from pulumi_gcp.secretmanager.outputs import GetSecretsSecretResult
from pulumi_kubernetes.core.v1 import Namespace, Secret
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.credentials import Credentials
from components.errors import PullSecretError
from components.labels import PREFIX
from components.projection.model import HANDED_OVER, encode
from components.projection.provider import MarkedArgs
from components.projection.sources import Source
from components.pull_secret.model import Cluster
from components.pull_secret.payload import list_winners, merge
from components.pull_secret.preconditions import Decision, decide
from components.pull_secret.provider import (
    PullSecretRetentionArgs,
    PullSecretStatusArgs,
    PullSecretVerificationArgs,
    PullSecretVersionArgs,
)
from components.pull_secret.replication import AUTOMATIC, list_misplaced, replicas_of, replication_in
from components.pull_secret.resources import (
    PullSecretCopy,
    PullSecretRetention,
    PullSecretStatus,
    PullSecretVerification,
    PullSecretVersion,
)
from components.pull_secret.settings import PullSecretsSection
from components.pull_secret.status import Conditions, of_skipped, of_verified
from components.pull_secret.verification import KEY, STORED_AS, TYPE, digest_of
from components.refusing import Importer, keep
from components.secret_manager import secret_name
from components.skipped_lines import skipped_lines
from components.waiting import apply_to_unknowns, once_made

_GENERATION: Final = "hyperfleet.io/generation"
_VERIFIED_AT: Final = f"{PREFIX}verified-at"

_ENTRY: Final = "gcp:secretmanager/secret:Secret"
_IMPORTED: Final = pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)
"""Alias of a resource that `pulumi import` added to the state without an existing parent."""


_Existing: TypeAlias = pulumi.Output[GetSecretsSecretResult | None]
"""Result of the lookup of a Secret Manager secret; None if it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSecretArgs:
    """Cluster of the section, with inputs from the rest of the program.

    `project`: GCP project; None only if the cluster is skipped for it. `start`: deleted after everything
    else; None if nothing is declared. `begun`: whether it was ready before, from `start`; None if the
    configuration itself skips it. `owner`: the same string in every run. `namespace`: of its Secret;
    `declares_namespace`: whether the stack declares it. `waits`: why the project is not known yet, empty if
    it is; None if it is always known.
    """

    section: PullSecretsSection
    cluster: Cluster
    credentials: Credentials
    owner: str
    project: pulumi.Input[str] | None
    namespace: pulumi.Input[str]
    declares_namespace: bool
    start: pulumi.Resource | None
    begun: pulumi.Output[bool] | None
    waits: pulumi.Output[str] | None = None


class PullSecret(pulumi.ComponentResource):
    """Pull secret of a cluster, or why it has none yet.

    Outputs: status, {conditions, generation, skipped} and, unless skipped, secretId, project, version,
    namespace, secretName and verifiedAt; skipped, the reasons, empty if the cluster has its pull secret.
    """

    TYPE: ClassVar = "credfleet:index:PullSecret"
    status: pulumi.Output[Any]
    skipped: pulumi.Output[Sequence[str]]

    def __init__(self, name: str, args: PullSecretArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        cluster, decision = args.cluster, decide(args.cluster)
        skipped = _skipped(decision, args.begun)
        if args.waits is not None:
            skipped = pulumi.Output.all(skipped, args.waits).apply(
                lambda both: [*both[0], *filter(None, both[1:])]
            )
        props = {
            "clusterId": cluster.id,
            "generation": cluster.generation,
            "secretId": cluster.secret_id,
            "skipped": skipped,
        }
        super().__init__(self.TYPE, name, props, opts)
        self.skipped = skipped
        self._name, self._args, self._section, self._decision = name, args, args.section, decision
        self._first = [args.start] if args.start else []
        if decision.proceeds and args.waits is None:
            self.status = self._declared()
        elif args.begun is None:
            self.status = self._told(decision.unmet)
        else:
            self.status = self.skipped.apply(
                lambda reasons: self._told(reasons) if reasons else self._declared()
            )
        registries: dict[str, Sequence[str]] = {}
        for place, source in args.section.pull_secrets(cluster.id).items():
            if verdict := args.section.verdict(source, args.credentials):
                self._warn([f"{source.entry}: {doubt}" for doubt in verdict.warnings])
                registries[place] = verdict.registries
        for line in list_winners(registries):
            pulumi.log.info(line, self)
        self.register_outputs({"status": self.status, "skipped": self.skipped})

    def _told(self, reasons: Sequence[str]) -> pulumi.Output[Any]:
        """Report why the cluster is skipped; nothing is declared for it."""
        lines = skipped_lines({f"pull secret {self._args.cluster.id}": "; ".join(reasons)})
        pulumi.log.info("\n".join(lines), self)
        conditions = pulumi.Output.from_input(of_skipped(reasons))
        if self._args.cluster.stays:
            self._report(conditions, {}, self._first)
        return self._status(conditions, skipped=[*reasons])

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            pulumi.log.warn(warning, self)

    def _declared(self) -> pulumi.Output[Any]:
        """Declare all resources, and return the status."""
        decision = self._decision
        self._warn(decision.warnings if decision.proceeds else decision.warnings_to_a_live_one)
        args, section, child = self._args, self._section, pulumi.ResourceOptions(parent=self)
        if args.cluster.pull_secret is None or args.project is None:
            raise TypeError(f"the decision lets cluster {args.cluster.id} through without its pull secret")
        existing = self._existing(args.project)
        gone = self._where_gone(existing)
        kept = existing.apply(lambda found: section.replicas if found is None else replicas_of(found))
        entry, namespace = self._entry(args.project, existing, kept, gone), self._namespace()
        kept.apply(lambda kept: self._warn(list_misplaced(kept, section.replicas, args.cluster.secret_id)))
        for grant in section.grants(args.cluster.id):
            secretmanager.SecretIamMember(
                f"{self._name}-{grant.name}",
                project=entry.project,
                secret_id=entry.secret_id,
                role=grant.role,
                member=grant.member,
                opts=pulumi.ResourceOptions(parent=self, replace_with=gone, delete_before_replace=True),
            )
        number, digest = self._kept_version(entry)
        verification = PullSecretVerification(
            f"{self._name}-verification",
            PullSecretVerificationArgs(
                project=entry.project,
                secret_id=entry.secret_id,
                version=number,
                owner=args.owner,
                digest=digest,
                namespace=namespace,
                secret_name=section.place_of(args.cluster.id)[1],
            ),
            child,
        )
        verified = once_made(verification.version)
        verification.overtaken.apply(lambda told: self._warn([told] if told else []))
        retention = PullSecretRetention(
            f"{self._name}-retention",
            PullSecretRetentionArgs(
                project=entry.project,
                secret_id=entry.secret_id,
                version=verified,
                on_replace=section.on_replace,
                on_delete=section.on_delete,
            ),
            child,
        )
        secret, where = self._cluster_secret(namespace, verification, retention)
        conditions = pulumi.Output.all(verified, verification.overtaken).apply(
            lambda stood: of_verified(int(stood[0]), stood[1])
        )
        data = {
            "secretName": entry.secret_id,
            "secretVersion": verified.apply(lambda version: str(int(version))),
            "secretPath": pulumi.Output.all(entry.project, entry.secret_id).apply(
                lambda where: secret_name(*where)
            ),
            "gcpProject": entry.project,
            "replicationPolicy": kept.apply(
                lambda kept: "automatic" if AUTOMATIC in kept else "user-managed"
            ),
        }
        self._report(conditions, data, [secret])
        return self._status(
            conditions,
            skipped=[],
            secretId=entry.secret_id,
            project=entry.project,
            version=verified,
            **where,
            verifiedAt=verification.verified_at,
        )

    def _where_gone(self, existing: _Existing) -> list[pulumi.Resource]:
        """Return resources that trigger a replacement if others deleted the entry; otherwise none.

        The SDK uses only the URN of a resource in `replace_with`.
        """

        def urn(start: pulumi.Resource) -> pulumi.Output[str | None]:
            return pulumi.Output.all(existing, start.urn).apply(lambda told: None if told[0] else told[1])

        return [cast("pulumi.Resource", SimpleNamespace(urn=urn(start))) for start in self._first]

    def _entry(
        self,
        project: pulumi.Input[str],
        existing: _Existing,
        kept: pulumi.Output[Mapping[str, str | None]],
        gone: list[pulumi.Resource],
    ) -> secretmanager.Secret:
        """Declare the entry. Its labels are repaired; its replication is fixed when it is created.

        It is retained as well as abandoned; otherwise its deletion protection would keep a cluster from
        leaving. If it is recreated, the former one is deleted first: both have one name.
        """
        args, section = self._args, self._section
        logical = f"{self._name}-entry"
        return secretmanager.Secret(
            logical,
            project=project,
            secret_id=args.cluster.secret_id,
            labels={**section.labels, **args.cluster.labels},
            replication=kept.apply(replication_in),
            deletion_protection=section.deletion_protection,
            deletion_policy="ABANDON" if section.keeps_entries else "DELETE",
            opts=pulumi.ResourceOptions(
                parent=self,
                aliases=[_IMPORTED],
                depends_on=self._first,
                retain_on_delete=section.keeps_entries,
                replace_with=gone,
                delete_before_replace=not section.keeps_entries,
                hooks=pulumi.ResourceHookBinding(before_create=[self._refusal(logical, project, existing)]),
            ),
        )

    def _refusal(self, logical: str, project: pulumi.Input[str], existing: _Existing) -> pulumi.ResourceHook:
        """Return a hook that rejects creating an existing entry; the stack's own is in the state."""
        importers = dict[str, Importer]()
        keep(importers, _ENTRY, logical, self, self)

        async def refuse(args: pulumi.ResourceHookArgs) -> None:
            found = await existing.future()
            if found is None:
                return
            where = await pulumi.Output.from_input(project).future()
            entry = secret_name(str(where), found.secret_id)
            labels = ", ".join(f"{key}={value}" for key, value in sorted(found.labels.items())) or "none"
            command = importers[args.urn].command(entry)
            raise PullSecretError(
                code="secret-taken",
                place=entry,
                problem="it exists and this stack has not made it, so it is not overwritten;"
                f" its labels: {labels}",
                fix=f"delete it if it is not in use, or make it this stack's: {command}",
            )

        return pulumi.ResourceHook(
            f"{logical}-untouched", refuse, pulumi.ResourceHookOptions(on_dry_run=True)
        )

    def _existing(self, project: pulumi.Input[str]) -> _Existing:
        """Look up an entry of this name, of any owner; None if not found."""
        secret_id = self._args.cluster.secret_id
        found = get_secrets_output(
            filter=f"name:{secret_id}", project=project, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        return found.apply(
            lambda result: next((one for one in result.secrets if one.secret_id == secret_id), None)
        )

    def _content(self, by: Callable[[bytes], str]) -> pulumi.Output[str]:
        """Return a function's result on the pull secret, merged if there are several, marked secret."""
        names, credentials = self._section.entries(self._args.cluster.id), self._args.credentials
        alone = next(filter(credentials.is_unseen, names), None) if names[1:] else names[0]
        if alone is not None:
            return credentials.secret(alone, by)
        contents = [credentials.secret(name, bytes) for name in names]
        return pulumi.Output.all(*contents).apply(lambda read: by(merge(read)))

    def _kept_version(self, entry: secretmanager.Secret) -> tuple[pulumi.Input[str], pulumi.Input[str]]:
        """Declare the version, and return its number and the digest of its content."""
        args, section = self._args, self._section
        opts = pulumi.ResourceOptions(parent=self, replace_with=self._first)
        if not (sources := section.elsewhere(args.cluster.id)):
            version = secretmanager.SecretVersion(
                f"{self._name}-version",
                secret=entry.id,
                secret_data=self._content(bytes.decode),
                deletion_policy="ABANDON",
                opts=opts,
            )
            return version.version, self._content(partial(digest_of, args.owner))
        added = PullSecretVersion(
            f"{self._name}-added",
            PullSecretVersionArgs(
                project=entry.project,
                secret_id=entry.secret_id,
                owner=args.owner,
                namespace=args.namespace,
                source=sources[0].properties,
                strict=section.strict,
                additional=[each.properties for each in sources[1:]] or None,
            ),
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(additional_secret_outputs=["digest"])),
        )
        return added.version, added.digest

    def _cluster_secret(
        self,
        namespace: pulumi.Input[str],
        verification: PullSecretVerification,
        retention: PullSecretRetention,
    ) -> tuple[pulumi.Resource, Mapping[str, pulumi.Output[str]]]:
        """Declare the cluster's Secret, and return its name; it is deleted before its sources."""
        args, cluster = self._args, self._args.cluster
        name = self._section.place_of(cluster.id)[1]
        left = self._section.clusters[cluster.id].hand_over
        labels = {"managed-by": "hyperfleet", "cluster-id": cluster.id}
        annotations: dict[str, pulumi.Input[str]] = {
            _GENERATION: str(cluster.generation),
            STORED_AS: verification.reference,
            _VERIFIED_AT: verification.verified_at,
        }
        opts = pulumi.ResourceOptions(
            parent=self,
            depends_on=[retention],
            replace_with=None if left else [verification],
            delete_before_replace=True,
            retain_on_delete=left or None,
        )
        if sources := self._section.elsewhere(cluster.id):
            copied = MarkedArgs(
                namespace=namespace,
                target_name=name,
                owner=args.owner,
                sources=verification.reference.apply(
                    lambda version: [Source(place=sources[0].place, version=version).properties]
                ),
                recipe={},
                labels=labels,
                annotations=annotations,
            )
            copy = PullSecretCopy(f"{self._name}-copy", copied, opts)
            return copy, {"namespace": copy.namespace, "secretName": copy.target_name}
        text = self._content(bytes.decode)
        secret = Secret(
            f"{self._name}-secret",
            metadata=ObjectMetaArgs(
                name=name,
                namespace=namespace,
                labels=labels,
                annotations={**annotations, HANDED_OVER: args.owner} if left else annotations,
            ),
            type=TYPE,
            data=text.apply(lambda text: encode({KEY: text.encode()})),
            opts=opts,
        )
        return secret, {"namespace": secret.metadata.namespace, "secretName": secret.metadata.name}

    def _namespace(self) -> pulumi.Input[str]:
        """Return the namespace; a declared one outlives the pull secret, unless all is destroyed."""
        args, section = self._args, self._section
        if not args.declares_namespace:
            return args.namespace
        namespace = Namespace(
            f"{self._name}-namespace",
            metadata=ObjectMetaArgs(name=args.namespace),
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=self._first, retain_on_delete=section.keeps_entries
            ),
        )
        return namespace.metadata.name

    def _report(
        self,
        conditions: pulumi.Output[Conditions],
        data: Mapping[str, pulumi.Input[str]],
        after: Sequence[pulumi.Resource],
    ) -> None:
        """Report to HyperFleet, if configured."""
        cluster, told = self._args.cluster, self._section.hyperfleet
        if told is None:
            return
        status = PullSecretStatus(
            f"{self._name}-status",
            PullSecretStatusArgs(
                api_url=told.api_url,
                contract=told.contract.value,
                cluster=cluster.id,
                generation=cluster.generation,
                conditions=conditions,
                data=data,
            ),
            pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        status.trouble.apply(lambda trouble: self._warn([trouble] if trouble else []))

    def _status(self, conditions: pulumi.Output[Conditions], **more: pulumi.Input[Any]) -> pulumi.Output[Any]:
        generation = self._args.cluster.generation
        return pulumi.Output.from_input({"generation": generation, "conditions": conditions, **more})


def _skipped(decision: Decision, begun: pulumi.Output[bool] | None) -> pulumi.Output[Sequence[str]]:
    """Return why the cluster is skipped; reported conditions do not skip one that was ready once."""
    if begun is None or decision.proceeds:
        return pulumi.Output.from_input([*decision.unmet])
    # unknown in the preview of a cluster's first update, when it has no pull secret

    def skip(before: Any) -> Sequence[str]:
        return [] if before is True else [*decision.unmet]

    return apply_to_unknowns(skip, begun)
