"""The commands that set up the identities of a stack, as a script for who administers its clouds."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from components.errors import CredfleetError
from components.stack_config.stack import Settings
from operations.bootstrap.manifests import Subject, as_text, manifests
from operations.bootstrap.rights import Identity, rights_of
from operations.cli.templates import templates_in
from operations.config.settings import read_settings
from operations.folders import Folders
from operations.stack.at_rest import StackAtRest

_KEY_CLOUDS: Final = {"awskms": "aws", "azurekeyvault": "azure", "gcpkms": "gcp"}
_BACKENDS: Final = {"aws": "s3", "azure": "azblob", "gcp": "gs"}
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
_GKE: Final = re.compile(r"gke_(?P<project>[^_]+)_(?P<location>[^_]+)_(?P<name>.+)")
_EKS: Final = re.compile(r"arn:(?P<partition>aws[\w-]*):eks:(?P<location>[^:]+):\d+:cluster/(?P<name>.+)")
_LONGEST_NAME: Final = 30
"""Of a service account of Google Cloud."""


@dataclass(frozen=True, slots=True)
class Worker:
    """An identity of a stack: its GitHub environment, and its name in clouds and cluster."""

    role: Identity
    environment: str
    name: str

    @classmethod
    def of(cls, stack: str, role: Identity) -> Worker:
        """Return who does this work on a stack."""
        name = f"credfleet-{stack}-{role}".lower().replace("_", "-").replace(".", "-")
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        environment = stack if role is Identity.DEPLOY else f"{role}-{stack}"
        return cls(role, environment, name)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.role is Identity.DEPLOY


@dataclass(frozen=True, slots=True)
class Key:
    """Who encrypts a stack: the cloud, none for a passphrase, the key as its cloud's tool takes it."""

    cloud: str
    key: str = ""
    vault: str = ""
    region: str = ""

    @classmethod
    def parse(cls, provider: str) -> Key:
        """Read the URL of a secrets provider."""
        parts = urlsplit(provider)
        cloud, path = _KEY_CLOUDS.get(parts.scheme, ""), parts.path.strip("/")
        match cloud:
            case "aws":
                key = "/".join(filter(None, (parts.netloc, path)))
                return cls(cloud, key, region=parse_qs(parts.query).get("region", [""])[0])
            case "azure":
                key = path.removeprefix("keys/").partition("/")[0]
                return cls(cloud, key, vault=parts.netloc.partition(".")[0])
            case _:
                return cls(cloud, "/".join(filter(None, (parts.netloc, path))))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A context, and of its cluster the name, and where it is as far as the context says so.

    partition: of AWS, whose resource names begin with it.
    """

    context: str
    name: str
    location: str = ""
    project: str = ""
    partition: str = "aws"

    @classmethod
    def parse(cls, context: str) -> Cluster:
        """Read a context of GKE (`gke_PROJECT_LOCATION_NAME`) or EKS (an ARN); any other is a name."""
        found = _GKE.fullmatch(context) or _EKS.fullmatch(context)
        return cls(context, **found.groupdict()) if found else cls(context, context)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A stack whose identities are to be set up. backend: the URL of its state; None: not known here."""

    at_rest: StackAtRest
    settings: Settings
    repository: str | None
    backend: str | None

    @property
    def workers(self) -> Sequence[Worker]:
        """The identities of the stack."""
        return [Worker.of(self.at_rest.stack, role) for role in Identity]

    @property
    def key(self) -> Key:
        """Who encrypts the stack."""
        return Key.parse(self.at_rest.stack_file.provider)

    @property
    def project(self) -> str:
        """The project of Google Cloud that has the identities: that of the key, else the provider's own."""
        own = self.at_rest.stack_file.config.get("gcp:project")
        of_key = self.key.key.split("/")[1] if self.key.cloud == "gcp" else None
        return str(of_key or own or "PROJECT")

    @property
    def cluster(self) -> Cluster:
        """The cluster, as its context names it."""
        return Cluster.parse(self.settings.cluster.context or "CLUSTER")

    @property
    def clouds(self) -> Sequence[str]:
        """The clouds that an update signs in to."""
        return [*_clouds(self.at_rest, self.settings, self.key.cloud)]

    @property
    def of_google(self) -> Mapping[str, Any]:
        """Which projects have secrets that the stack reads or writes."""
        return _of_google(self.settings, self.project)

    def service_account(self, worker: Worker) -> str:
        """Return an identity as Google Cloud names it."""
        return f"{worker.name}@{self.project}.iam.gserviceaccount.com"

    @property
    def subjects(self) -> Mapping[Identity, Subject]:
        """Return who each is to the cluster; of Azure's a script asks the ids first."""
        match self.key.cloud:
            case "gcp":
                return {one.role: Subject("User", self.service_account(one)) for one in self.workers}
            case "azure":
                return {one.role: Subject("User", f"${one.role}") for one in self.workers}
            case _:
                return {one.role: Subject("Group", one.name) for one in self.workers}

    def refuse_unknown_subjects(self) -> None:
        """Raise CredfleetError `ids-unknown` where only a cloud knows who an identity is to the cluster."""
        if self.key.cloud == "azure":
            raise CredfleetError(
                code="ids-unknown",
                place=f"stack {self.at_rest.stack}",
                problem="its cluster knows identities by ids that only Azure has",
                fix="take the Roles from the commands that --repo OWNER/REPO prints, which ask for them",
            )

    def _roles(self) -> Iterator[dict[str, Any]]:
        rights = {role: rights_of(role, self.settings, self.at_rest.project.directory) for role in Identity}
        return manifests({one.role: one.name for one in self.workers}, self.subjects, rights)

    def manifests(self) -> str:
        """Return the Roles of the cluster as YAML."""
        return as_text(self._roles())

    def unasked(self, *, google: bool = True) -> Iterator[str]:
        """Yield who else decides what the identities may do, with a command that asks them."""
        names, project = [one.name for one in self.workers], shlex.quote(self.project)
        yield "GitHub: gh api 'repos/{owner}/{repo}/environments'"
        for cloud in self.clouds:
            match cloud:
                case "aws":
                    asked = "aws iam get-role-policy --policy-name credfleet --role-name"
                    yield from (f"AWS: {asked} {name}" for name in names)
                case "gcp" if google:
                    flags = "--flatten='bindings[].members' --filter=bindings.members:credfleet-"
                    yield f"Google Cloud: gcloud projects get-iam-policy {project} {flags}"
                    if self.key.cloud == "gcp":
                        key = shlex.quote(self.key.key)
                        yield f"Google Cloud: gcloud kms keys get-iam-policy {key} {flags}"
                case "gcp" if self.of_google["of_accounts"]:
                    yield "Google Cloud: gcloud projects get-iam-policy PROJECT, of each claimed account"
                case "gcp":
                    pass
                case _:
                    own = f"[?contains(`{json.dumps(names)}`, name)].principalId"
                    listed = f"az identity list --query '{own}' --output tsv"
                    yield f"Azure: {listed} | xargs -n1 az role assignment list --all --assignee"

    def script(self, template: str) -> str:
        """Return all commands, or what Terraform makes of them.

        Raises CredfleetError `usage` for what is not a repository of GitHub.
        """
        if not _REPOSITORY.fullmatch(self.repository or ""):
            raise CredfleetError(
                code="usage",
                place="--repo",
                problem="it is not a repository of GitHub" if self.repository else "it is missing",
                fix="name it as OWNER/REPOSITORY",
            )
        key = self.key
        backend = urlsplit(self.backend or "")
        account = parse_qs(backend.query).get("storage_account", [""])[0]
        region = shlex.quote(key.region) if key.region else '"${AWS_REGION:?of the key and the cluster}"'
        return (
            templates_in(Path(__file__).parent)
            .get_template(template)
            .render(
                stack=self.at_rest.stack,
                repo=self.repository,
                backend=self.backend,
                hcl=_as_hcl,
                roles=[_with_ids(_as_hcl(each)) for each in self._roles()],
                scheme=backend.scheme or _BACKENDS.get(key.cloud, ""),
                clouds=self.clouds,
                cluster=self.cluster,
                identities=self.workers,
                kms=key,
                manifests=self.manifests(),
                project=self.project,
                quote=shlex.quote,
                region=region,
                storage_account=account,
                pool=self.settings.account_pool,
                **self.of_google,
                **_of_azure(self.settings),
            )
        )


def _as_hcl(value: object) -> str:
    """Write a value for Terraform, which reads JSON as its own but for what opens an expression."""
    return json.dumps(value).replace("${", "$${").replace("%{", "%%{")


def _with_ids(role: str) -> str:
    """Name identities that only Azure knows as Terraform does, not as a shell."""
    return re.sub(rf'"\$({"|".join(Identity)})"', r"local.id.\1", role)


def _clouds(at_rest: StackAtRest, settings: Settings, of_key: str) -> Iterator[str]:
    """Yield the clouds that an update signs in to."""
    aso, stores = settings.aso_credentials, settings.secret_stores
    keys = {key.partition(":")[0] for key in at_rest.stack_file.config}
    sources = [source for section in settings.sections for _, source in section.sources()]
    sources += [source for _, source in settings.account_pool.sources()] if settings.account_pool else []
    kinds = {each.kind for each in stores.providers.values()} if stores else set[str]()
    if of_key == "aws":
        yield of_key
    if of_key == "azure" or "azure-native" in keys or (aso is not None and aso.is_in_azure):
        yield "azure"
    secrets = settings.pull_secrets or "GCPSM" in kinds or any(each.gcp_secret for each in sources)
    if of_key == "gcp" or "gcp" in keys or secrets:
        yield "gcp"


def _of_google(settings: Settings, own: str) -> Mapping[str, Any]:
    """Return which projects have secrets that the stack reads or writes."""
    pull_secrets, stores = settings.pull_secrets, settings.secret_stores
    given = [each.project for each in pull_secrets.clusters.values()] if pull_secrets else []
    specs = [dict(each.spec) for each in stores.providers.values() if each.kind == "GCPSM"] if stores else []
    named = [each.name for each in given if each and each.name] + [each.get("projectID") for each in specs]
    return {
        "of_accounts": any(each and each.account for each in given),
        "secret_projects": sorted({str(each or own) for each in named}),
        "writes_secrets": pull_secrets is not None or bool(stores and stores.pushes),
    }


def _of_azure(settings: Settings) -> Mapping[str, Any]:
    """Return the scopes in which the stack has identities, and those in which it assigns roles."""
    section = settings.aso_credentials
    if section is None or not section.is_in_azure:
        return {"azure_scopes": [], "role_scopes": []}
    groups = {each.resource_group for each in section.identities.values()}
    scope = "/subscriptions/$subscription"
    own = (
        [scope] if section.resource_groups else [f"{scope}/resourceGroups/{name}" for name in sorted(groups)]
    )
    roles = {role.scope for each in section.identities.values() for role in each.roles.values()}
    return {"azure_scopes": own, "role_scopes": sorted(roles)}


def open_bootstrap(here: Path, stack: str, repository: str | None) -> Bootstrap:
    """Read a stack of the project here; no key is needed. Raises as `read_settings`."""
    folders = Folders.find(here)
    at_rest = StackAtRest.find(folders.project, stack, backend_dir=folders.backend)
    return Bootstrap(at_rest, read_settings(at_rest), repository, os.environ.get("PULUMI_BACKEND_URL"))
