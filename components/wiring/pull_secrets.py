"""The pull secrets of a stack's clusters: in Secret Manager, and where each cluster reads its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pulumi

from components.credentials import Credentials
from components.naming import stack_holder
from components.providers import gcp_provider
from components.pull_secret.component import Content, Place, PullSecret, PullSecretArgs
from components.pull_secret.grants import grants
from components.pull_secret.hyperfleet import Observed
from components.pull_secret.payload import judge
from components.pull_secret.preconditions import decide
from components.pull_secret.provider import PullSecretStart, PullSecretStartArgs
from components.pull_secret.verification import digest_of
from components.settings.pull_secrets import PullSecretCluster, PullSecrets
from components.wiring.declared import Declared


def declare_pull_secrets(
    section: PullSecrets,
    credentials: Credentials,
    declared: Declared,
    existing_namespaces: Collection[str],
    opts: pulumi.ResourceOptions,
) -> tuple[Mapping[str, pulumi.Output[Any]], pulumi.Output[Mapping[str, str]]]:
    """Declare the pull secret of every cluster that is ready for it.

    existing_namespaces: those that are there already. Returns cluster → {generation, conditions, skipped}
    with, unless it is skipped, {secretId, project, version, namespace, secretName, verifiedAt}; and what is
    skipped → why.
    """
    known = {*existing_namespaces, *declared.namespaces}
    clusters = _Clusters(section, credentials, declared, known, opts)
    made = {id_: clusters.declare(id_) for id_ in section.clusters}
    reasons = pulumi.Output.all(**{f"pull secret {id_}": one.skipped for id_, one in made.items()})
    return {id_: one.status for id_, one in made.items()}, reasons.apply(_told)


def _told(skipped: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    return {what: "; ".join(reasons) for what, reasons in skipped.items() if reasons}


class _Clusters:
    """Declares clusters one by one; the provider of Google Cloud is made for the first that needs it."""

    def __init__(
        self,
        section: PullSecrets,
        credentials: Credentials,
        declared: Declared,
        known_namespaces: Collection[str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        self._section = section
        self._credentials = credentials
        self._declared = declared
        self._known_namespaces = known_namespaces
        self._opts = opts
        self._observed: Mapping[str, Observed] = section.observed(Path.cwd())
        self._google: pulumi.ProviderResource | None = None

    def declare(self, id_: str) -> PullSecret:
        """Declare a cluster's pull secret, or that it has none yet."""
        section, given = self._section, self._section.clusters[id_]
        cluster = section.cluster(id_, self._observed)
        decision = decide(cluster)
        owner = stack_holder(
            pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack(), "pullSecrets", id_
        )
        begun, opts = None, self._opts
        if decision.proceeds or decision.passing:
            start = PullSecretStart(
                f"{id_}-start",
                PullSecretStartArgs(cluster=id_, ready=decision.proceeds),
                pulumi.ResourceOptions(parent=opts.parent),
            )
            begun = start.begun
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[self._provider()]))
        reader, adapter = given.reader or section.reader, given.adapter or section.adapter
        pull_secret = PullSecret(
            id_,
            PullSecretArgs(
                cluster=cluster,
                decision=decision,
                owner=owner,
                place=self._place(id_),
                project=self._project(given),
                content=self._content(given, owner),
                begun=begun,
                locations=section.locations,
                deletion_protection=section.deletion_protection,
                on_replace=section.on_replace,
                on_delete=section.on_delete,
                grants=[*grants(reader and reader.member, adapter and adapter.member)],
                api_url=section.hyperfleet and section.hyperfleet.api_url,
            ),
            opts,
        )
        self._tell_doubts(given, pull_secret)
        return pull_secret

    def _provider(self) -> pulumi.ProviderResource:
        if self._google is None:
            self._google = gcp_provider(pulumi.ResourceOptions(parent=self._opts.parent))
        return self._google

    def _project(self, given: PullSecretCluster) -> pulumi.Input[str] | None:
        if given.project is None or given.project.account is None:
            return given.project and given.project.name
        account = given.project.account

        def named(account_id: str | None) -> str:
            if account_id is None:
                raise pulumi.RunError(
                    f"account {account}: it does not say its id, so nobody knows the project\n"
                    "→ give accountId to the member that was claimed, or name the project itself"
                )
            return account_id

        return self._declared.accounts[account]["accountId"].apply(named)

    def _place(self, id_: str) -> Place:
        """Tell where the cluster reads; the stack declares a namespace that is the cluster's alone."""
        namespace, name = self._section.place_of(id_)
        own = self._section.namespaces.is_of_one_cluster and namespace not in self._known_namespaces
        return Place(namespace=self._declared.namespace(namespace), name=name, declared=own)

    def _content(self, given: PullSecretCluster, owner: str) -> Content | None:
        if given.pull_secret_from is None:
            return None
        return Content(
            text=self._credentials.secret(given.pull_secret_from, bytes.decode),
            digest=self._credentials.secret(given.pull_secret_from, partial(digest_of, owner)),
        )

    def _tell_doubts(self, given: PullSecretCluster, pull_secret: PullSecret) -> None:
        name = given.pull_secret_from
        verdict = name and self._credentials.judged(name, judge)
        for doubt in verdict.warnings if verdict else ():
            pulumi.log.warn(f"{name}: {doubt}", pull_secret)
