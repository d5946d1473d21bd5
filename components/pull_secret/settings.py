"""Section `credfleet:pullSecrets`: clusters, their pull secrets, and the retention of versions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, ClassVar, Final, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from components.config.document import nearest
from components.config.field_types import (
    ConfigModel,
    FilePath,
    Flag,
    Name,
    Positive,
    Region,
    Text,
    as_named,
    config_error,
    exactly_one,
    is_of_the_cluster,
    must,
    optional,
    refused_if,
)
from components.config.section import Problems, ReviewContext, Section, Written
from components.credentials import Credentials
from components.errors import Problem
from components.labels import hyperscaler_of
from components.naming import is_gcp_region
from components.projection.settings import CredentialFrom, CredentialGiven, CredentialSource
from components.projection.sources import Source
from components.pull_secret import names
from components.pull_secret.hyperfleet import Contract, read_observed
from components.pull_secret.model import Availability, Cluster, Observed, Phase
from components.pull_secret.payload import PayloadVerdict, judge
from components.pull_secret.preconditions import ADAPTERS, GOOGLE
from components.pull_secret.retention import Retention
from components.pull_secret.rights import EntryUser, Grant, ProjectId, list_grants

_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_KMS_KEY = re.compile(
    r"projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}"
)
AUTOMATIC: Final = "global"
"""Location under which the key of an automatic replication is set."""
_NO_URL: Final = "it is not a URL of an API", "write it such as https://hyperfleet.example"
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def _reachable(text: str) -> str:
    try:
        url = urlsplit(text)
        nowhere = url.port == 0 and url.hostname not in _LOOPBACK
    except ValueError:
        raise config_error(*_NO_URL) from None
    if nowhere or not url.hostname or url.scheme not in ("http", "https") or url.query or url.username:
        raise config_error(*_NO_URL)
    if url.scheme == "http" and url.hostname not in _LOOPBACK:
        raise config_error("over http anybody on the way can read the token", "use https")
    if "/api/hyperfleet" in url.path:
        raise config_error(
            "/api/hyperfleet is added to it, and would stand there twice", "leave that and the rest out"
        )
    return text


Location: TypeAlias = Annotated[
    str,
    must(
        is_gcp_region,
        "it is not a region of Google Cloud",
        "write it such as europe-west1; gcloud secrets locations list names them",
    ),
]
KmsKey: TypeAlias = Annotated[
    str,
    must(
        _KMS_KEY.fullmatch,
        "it names no key of Cloud KMS",
        "write projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
    ),
]
Url: TypeAlias = Annotated[str, AfterValidator(_reachable)]


class EntryProject(ConfigModel):
    """The project of Google Cloud that holds an entry: by its id, or that of an account a tenant claims."""

    _is_named_one_way = exactly_one(
        "a project is named, or it is an account's, not both",
        "give name or account",
        *("name", "account"),
    )
    name: ProjectId | None = optional("Id of the project.")
    account: Text | None = optional("tenant/slot: the claimed account names the project.")


class ClusterEntry(ConfigModel):
    """A cluster of HyperFleet, and the pull secret it gets."""

    _hands_over_what_it_has = refused_if(
        lambda one: one.hand_over and not (one.pull_secret_from and one.pull_secret_from.entry),
        "only the Secret of an entry of credentials is handed over",
        "leave handOver out",
    )
    name: Text = Field(description="Name of the cluster: label cluster-name.")
    generation: Positive = Field(description="Generation of the cluster, from 1 on.")
    region: Region | None = optional("Region of the cluster, for the templates.")
    provider: Text = Field(default=GOOGLE, description="Cloud of the cluster; only gcp gets a pull secret.")
    project: Annotated[
        EntryProject | None, BeforeValidator(as_named, json_schema_input_type=EntryProject | str | None)
    ] = optional("Project of Google Cloud that holds the entry, or just its id.")
    pull_secret_from: CredentialFrom = optional(
        "Name of an entry of credentials, or where it is; stored byte for byte."
    )
    additional_from: tuple[CredentialGiven, ...] = optional("Further pull secrets, behind both.", ())
    hand_over: Flag = optional(
        "Whether its Secret stays when the entry goes, for a reference to take.", False
    )
    secret_id: Text | None = optional("Id of the entry; absent: hyperfleet-{id}-pull-secret.")
    adapters: Mapping[Name, Availability] = optional(
        "Adapter → True, False or Unknown, in quotes; before adaptersFrom.", {}
    )
    phase: Phase | None = optional("Ready waits for no adapter; Deleting gets no pull secret any more.")
    reader: EntryUser | None = optional("Instead of pullSecrets.reader.")
    adapter: EntryUser | None = optional("Instead of pullSecrets.adapter.")


class HyperFleetApi(ConfigModel):
    """The HyperFleet that is told how pull secrets stand."""

    api_url: Url = Field(description="URL in front of /api/hyperfleet; the token is in HYPERFLEET_API_TOKEN.")
    contract: Contract = Field(
        default=Contract.V2, description="v1 for an API up to 1.0.12, which takes reports by POST."
    )


class PullSecretsSection(Section):
    """The pull secrets of clusters."""

    KEY: ClassVar = "pullSecrets"
    _deletes_what_it_may = refused_if(
        lambda one: one.deletion_protection and not one.keeps_entries,
        "onDelete: destroy deletes entries, and deletionProtection refuses that",
        "keep one of the two",
    )
    _names_each_region_once = refused_if(
        lambda one: len({*one.locations}) != len(one.locations),
        "locations names a region twice",
        "remove one of them",
    )
    namespace_template: Text = Field(
        default=names.NAMESPACE.template,
        description="Namespace of a cluster's Secret, of {id} and {region}; with {id} the stack declares it.",
    )
    secret_name_template: Text = Field(
        default=names.CLUSTER_SECRET.template, description="Name of that Secret, of {id} and {region}."
    )
    on_replace: Retention = Field(default=Retention.KEEP, description="State of a replaced version.")
    on_delete: Retention = Field(
        default=Retention.DISABLE,
        description="State of versions when a cluster leaves. destroy: the entry is deleted too.",
    )
    strict: Flag = optional("Whether doubts about a pull secret are errors.", False)
    locations: tuple[Location, ...] = optional(
        "Regions entries are kept in, settled when one is made; empty: automatic.", ()
    )
    kms_keys: Mapping[Text, KmsKey] = optional(
        "Region → key of Cloud KMS; global, if replication is automatic.", {}
    )
    labels: Mapping[Text, str] = optional("Further labels of entries.", {})
    deletion_protection: Flag = optional("Whether Google's provider refuses to delete entries.", False)
    reader: EntryUser | None = optional("Who may read pull secrets in Secret Manager.")
    adapter: EntryUser | None = optional("Who may look at entries, add versions and read them.")
    adapters_from: FilePath | None = optional("File that credfleet pull-secret observe writes.")
    hyperfleet: HyperFleetApi | None = optional("HyperFleet API that gets reports.")
    pull_secret_from: CredentialFrom = optional("Pull secret of all clusters, behind their own.")
    clusters: Mapping[Text, ClusterEntry] = optional("Id of a cluster → cluster.", {})

    @property
    def namespaces(self) -> names.Name:
        """Namespaces of clusters' Secrets."""
        return replace(names.NAMESPACE, template=self.namespace_template)

    @property
    def cluster_secrets(self) -> names.Name:
        """Names of clusters' Secrets."""
        return replace(names.CLUSTER_SECRET, template=self.secret_name_template)

    @property
    def replicas(self) -> Mapping[str, str | None]:
        """Location of an entry → its encryption key; AUTOMATIC: Google chooses the location."""
        return {location: self.kms_keys.get(location) for location in self.locations or (AUTOMATIC,)}

    @property
    def keeps_entries(self) -> bool:
        """Whether entries are kept when their clusters leave."""
        return self.on_delete is not Retention.DESTROY

    @property
    def reports_deletions(self) -> bool:
        """Whether the deletion of a cluster's pull secret is reported to HyperFleet."""
        return self.hyperfleet is not None and self.hyperfleet.contract is Contract.V2

    def place_of(self, id_: str) -> tuple[str, str]:
        """Return namespace and name of a cluster's Secret."""
        region = self.clusters[id_].region or ""
        return self.namespaces.of(id_, region), self.cluster_secrets.of(id_, region)

    def observed(self, root: Path) -> Mapping[str, Observed]:
        """Return HyperFleet's observations of clusters. Raises OSError or ValueError for an invalid file."""
        file = self.adapters_from
        return {} if file is None else read_observed((root / file).read_text("utf-8"))

    def cluster(self, id_: str, observed: Mapping[str, Observed]) -> Cluster:
        """Return a cluster; the configuration takes precedence over observations."""
        given, seen = self.clusters[id_], observed.get(id_, Observed())
        return Cluster(
            id=id_,
            name=given.name,
            region=given.region or "",
            generation=given.generation,
            provider=given.provider,
            project=given.project and (given.project.name or given.project.account),
            pull_secret=", ".join(each.named for each in self.pull_secrets(id_).values()) or None,
            explicit_secret_id=given.secret_id,
            adapters={**seen.adapters, **given.adapters},
            phase=given.phase or seen.phase,
            deleted_time=seen.deleted_time,
            known=seen.known,
        )

    def pull_secrets(self, id_: str) -> Mapping[str, CredentialSource]:
        """Return the parts of a cluster's pull secret by place: the first with a registry wins."""
        given = self.clusters[id_]
        found = {
            self.place("clusters", id_, "pullSecretFrom"): given.pull_secret_from,
            self.place("pullSecretFrom"): self.pull_secret_from,
            **{
                self.place("clusters", id_, "additionalFrom", number): each
                for number, each in enumerate(given.additional_from)
            },
        }
        return {place: each for place, each in found.items() if each is not None}

    def verdict(self, source: CredentialSource, credentials: Credentials) -> PayloadVerdict | None:
        """Return the validation of a pull secret; None if it is external or unreadable."""
        name = source.entry
        return None if name is None else credentials.judged(name, partial(judge, strict=self.strict))

    def entries(self, id_: str) -> Sequence[str]:
        """Return the entries of credentials among a cluster's pull secrets."""
        return [each.entry for each in self.pull_secrets(id_).values() if each.entry is not None]

    def elsewhere(self, id_: str) -> Sequence[Source]:
        """Return the external sources of a cluster's pull secrets."""
        return [each.source(place) for place, each in self.pull_secrets(id_).items() if each.entry is None]

    def grants(self, id_: str) -> Sequence[Grant]:
        """Return the rights on a cluster's entry."""
        given = self.clusters[id_]
        return [*list_grants(reader=given.reader or self.reader, adapter=given.adapter or self.adapter)]

    def written(self) -> Iterator[Written]:
        """Yield the Secret of each cluster."""
        for id_ in self.clusters:
            yield *self.place_of(id_), self.place("clusters", id_)

    def sources(self) -> Iterator[tuple[str, CredentialSource]]:
        """Yield the sources of the pull secrets."""
        yield from dict(chain.from_iterable(self.pull_secrets(id_).items() for id_ in self.clusters)).items()

    def warnings(self, credentials: Credentials) -> Problems:
        """Yield what registries or readers other than kubelet might reject in the pull secrets."""
        for place, source in self.sources():
            if verdict := self.verdict(source, credentials):
                for warning in verdict.warnings:
                    yield warning.within(f"{place} ({source.entry}: {warning.place})")

    def review(self, context: ReviewContext) -> Problems:
        """Check names and their limits, namespaces, references, and contents of pull secrets."""
        unfit_templates = [
            problem
            for name, key in self._templates
            for problem in names.template_problems(name, self.place(key))
        ]
        yield from unfit_templates
        yield from self._review_observations(context.root)
        for id_, given in self.clusters.items():
            place = self.place("clusters", id_)
            yield from self._review_names(place, id_)
            if not unfit_templates:
                yield from self._review_namespace(id_, context)
            yield from _review_slip(f"{place}.provider", given.provider, [GOOGLE])
            for adapter in given.adapters:
                unsaid = [each for each in ADAPTERS if each not in given.adapters]
                yield from _review_slip(f"{place}.adapters.{adapter}", adapter, unsaid)
            if self.entries(id_) and self.elsewhere(id_):
                problem = "entries of credentials and references are not merged: no state holds the latter"
                named = ", ".join(self.pull_secrets(id_))
                yield Problem(place, problem, f"name entries alone, or references alone, in {named}")
            if given.project is not None and given.project.account is not None and context.whole("tenants"):
                yield from _review_account(f"{place}.project.account", given.project.account, context)
        yield from self._review_sources(context)
        yield from self._review_entries()
        yield from self._review_keys()
        yield from self._review_labels()

    def _review_sources(self, context: ReviewContext) -> Problems:
        for place, source in self.sources():
            if source.account is not None:
                problem = "the credential of an account is not a pull secret"
                yield Problem(place, problem, "name an entry of credentials, a Secret, or a gcpSecret")
            else:
                yield from context.review_source(place, source, "")
            verdict = self.verdict(source, context.credentials)
            for error in verdict.errors if verdict else ():
                yield error.within(f"{place} ({source.entry}: {error.place})")

    @property
    def _templates(self) -> Sequence[tuple[names.Name, str]]:
        return (self.namespaces, "namespaceTemplate"), (self.cluster_secrets, "secretNameTemplate")

    def _review_observations(self, root: Path) -> Problems:
        try:
            self.observed(root)
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) else str(error)
            yield Problem(
                self.place("adaptersFrom"),
                f"what adapters report is unknown: {self.adapters_from}: {problem}",
                "write it with: credfleet pull-secret observe",
            )

    def _review_names(self, place: str, id_: str) -> Problems:
        given = self.clusters[id_]
        made = [name.in_region(given.region or "") for name, _ in self._templates]
        derived = (*(() if given.secret_id else (names.SECRET,)), names.CLUSTER_LABEL, *made)
        yield from names.cluster_id_problems(id_, place, derived)
        yield from names.secret_id_problems(given.secret_id or "-", f"{place}.secretId")
        for name, key in self._templates:
            if "{region}" in name.template and given.region is None:
                problem = f"{self.place(key)} has {{region}} in it, and the cluster has none"
                yield Problem(f"{place}.region", problem, "give the region of the cluster")

    def _review_namespace(self, id_: str, context: ReviewContext) -> Problems:
        """Check that a cluster's namespace is usable, and does not belong to another tenant."""
        place, namespace = self.place("clusters", id_), self.place_of(id_)[0]
        own = context.confined.get(place)
        others = {*context.confined.values(), *(() if own is None else context.namespaces)}
        if namespace == context.pool or is_of_the_cluster(namespace):
            problem = f"its Secret would be in namespace {namespace}, which is not a cluster's"
            yield Problem(place, problem, "give another id, or another namespaceTemplate")
        elif namespace != own and namespace in others:
            problem = f"its Secret would be in namespace {namespace}, which belongs to another tenant"
            fix = "name the cluster in the file of the tenant that has it, or give it another id"
            yield Problem(place, problem, fix)
        elif not self.namespaces.is_of_one_cluster:
            yield from context.review_namespace(
                self.place("namespaceTemplate"),
                namespace,
                "name a tenant's, list it in cluster.existingNamespaces if it is there already, or use {id}",
            )

    def _review_entries(self) -> Problems:
        """Reject two clusters that share an entry."""
        first: dict[tuple[str, str], str] = {}
        for id_ in self.clusters:
            cluster, place = self.cluster(id_, {}), self.place("clusters", id_)
            owner = first.setdefault((cluster.project or place, cluster.secret_id), place)
            if owner != place:
                problem = f"{cluster.secret_id} is also the entry of {owner}, in the same project"
                yield Problem(f"{place}.secretId", problem, "leave it out, or give another one")

    def _review_keys(self) -> Problems:
        """Check that keys and entries have the same locations, and that all or none have a key."""
        for location in [each for each in self.replicas if self.kms_keys and each not in self.kms_keys]:
            problem = f"{location} has no key, and Google encrypts with yours everywhere or nowhere"
            yield Problem(self.place("kmsKeys"), problem, f"add {location}: its key, or leave kmsKeys out")
        for location, key in self.kms_keys.items():
            if location not in self.replicas or f"/locations/{location}/" not in key:
                place, kept = self.place("kmsKeys", location), ", ".join(self.replicas)
                problem = f"entries are kept in {kept}, and Google takes there a key of the same location"
                yield Problem(place, problem, "correct the key, or locations")

    def _review_labels(self) -> Problems:
        """Check that labels are valid in Google Cloud, and do not replace HyperFleet's."""
        for key, value in self.labels.items():
            place, fix = self.place("labels", key), "correct it, or remove it"
            if key in names.OWN:
                yield Problem(place, "HyperFleet knows its entries by this label", fix)
            elif not _LABEL.fullmatch(key) or names.label_value(value) != value:
                problem = "Google takes up to 63 of a-z, 0-9, - and _; a key begins with a letter"
                yield Problem(place, problem, fix)
        if len(self.labels) > 64 - len(names.OWN) - 1:
            theirs = len(names.OWN)
            problem = f"Google takes 64 labels, of which {theirs} are HyperFleet's and one is Pulumi's"
            yield Problem(self.place("labels"), problem, "remove some")


def _review_slip(place: str, name: str, known: Sequence[str]) -> Problems:
    """Reject a misspelling of a word that decides whether a cluster gets its pull secret."""
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if near and name not in known:
        problem = f"{name} is nearly {near[0]}, and without that the cluster is left without a pull secret"
        yield Problem(place, problem, f"write {near[0]}, or another name")


def _review_account(place: str, account: str, context: ReviewContext) -> Problems:
    known = context.accounts.get(account)
    if known is None:
        problem = f"{account} is not an account of a tenant, so the project is unknown"
        yield Problem(place, problem, nearest(account, context.accounts))
    elif known.type is not None and hyperscaler_of(known.type) != "gcp":
        problem = f"the account is of type {known.type}, and its id is not a project of Google Cloud"
        yield Problem(place, problem, "name an account of type gcp")
