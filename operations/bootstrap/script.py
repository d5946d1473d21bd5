"""The commands that set up a stack's identities, as a script for the administrator of its clouds."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from components.errors import CredfleetError
from components.stack_config.stack import Settings
from operations.bootstrap.grants import Grant, grants_of
from operations.bootstrap.rights import CLUSTER, Identity, Subject, as_text, manifests, rights_of
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
"""Maximum length of the name of a Google Cloud service account."""


@dataclass(frozen=True, slots=True)
class Worker:
    """An identity of a stack: its GitHub environment, and its name in clouds and cluster."""

    role: Identity
    environment: str
    name: str

    @classmethod
    def of(cls, stack: str, role: Identity) -> Worker:
        """Return the identity of a stack in this role."""
        name = f"credfleet-{stack}-{role}".lower().replace("_", "-").replace(".", "-")
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        environment = stack if role is Identity.DEPLOY else f"{role}-{stack}"
        return cls(role, environment, name)

    @property
    def writes(self) -> bool:
        """Whether it can make changes."""
        return self.role is Identity.DEPLOY


@dataclass(frozen=True, slots=True)
class Key:
    """A stack's encryption key, in the form of the cloud's CLI; without a cloud, it is a passphrase."""

    cloud: str
    key: str = ""
    vault: str = ""
    region: str = ""

    @classmethod
    def parse(cls, provider: str) -> Key:
        """Parse the URL of a secrets provider."""
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
    """A context and its cluster: name, and location if the context contains it.

    partition: the AWS partition, with which ARNs begin.
    """

    context: str
    name: str
    location: str = ""
    project: str = ""
    partition: str = "aws"

    @classmethod
    def parse(cls, context: str) -> Cluster:
        """Parse a context of GKE (`gke_PROJECT_LOCATION_NAME`) or EKS (an ARN); others are just a name."""
        found = _GKE.fullmatch(context) or _EKS.fullmatch(context)
        return cls(context, **found.groupdict()) if found else cls(context, context)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A stack whose identities are set up. backend: the URL of its state; None if unknown here."""

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
        """The key that encrypts the stack."""
        return Key.parse(self.at_rest.stack_file.provider)

    @property
    def project(self) -> str:
        """The Google Cloud project of the identities: that of the key, otherwise the provider's."""
        own = self.at_rest.stack_file.config.get("gcp:project")
        of_key = self.key.key.split("/")[1] if self.key.cloud == "gcp" else None
        return str(of_key or own or "PROJECT")

    @property
    def cluster(self) -> Cluster:
        """The cluster according to its context."""
        return Cluster.parse(self.settings.cluster.context or "CLUSTER")

    @property
    def clouds(self) -> Sequence[str]:
        """The clouds to which an update authenticates."""
        settings, aso, stores = self.settings, self.settings.aso_credentials, self.settings.secret_stores
        keys = {key.partition(":")[0] for key in self.at_rest.stack_file.config}
        sources = [source for section in settings.sections for _, source in section.sources()]
        sources += [source for _, source in settings.account_pool.sources()] if settings.account_pool else []
        kinds = {each.kind for each in stores.providers.values()} if stores else set[str]()
        secrets = settings.pull_secrets or "GCPSM" in kinds or any(each.gcp_secret for each in sources)
        needed = {
            "aws": False,
            "azure": "azure-native" in keys or (aso is not None and aso.is_in_azure),
            "gcp": "gcp" in keys or secrets,
        }
        return [cloud for cloud, is_needed in needed.items() if is_needed or self.key.cloud == cloud]

    @property
    def grants(self) -> Sequence[Grant]:
        """The permissions that the identities need in the clouds."""
        backend = urlsplit(self.backend or "").scheme or _BACKENDS.get(self.key.cloud, "")
        found = grants_of(self.settings, self.key.cloud, backend, self.project)
        return [each for each in found if each.cloud in self.clouds]

    @property
    def writes_to_accounts(self) -> bool:
        """Whether secrets are written to projects that are known only after they are claimed."""
        clusters = self.settings.pull_secrets and self.settings.pull_secrets.clusters
        return any(each.project and each.project.account for each in (clusters or {}).values())

    def service_account(self, worker: Worker) -> str:
        """Return the email of an identity's service account in Google Cloud."""
        return f"{worker.name}@{self.project}.iam.gserviceaccount.com"

    @property
    def subjects(self) -> Mapping[Identity, Subject]:
        """The identities as subjects in the cluster; those of Azure are IDs that the script looks up."""
        match self.key.cloud:
            case "gcp":
                return {one.role: Subject("User", self.service_account(one)) for one in self.workers}
            case "azure":
                return {one.role: Subject("User", f"${one.role}") for one in self.workers}
            case _:
                return {one.role: Subject("Group", one.name) for one in self.workers}

    def refuse_unknown_subjects(self) -> None:
        """Raise CredfleetError `ids-unknown` if only the cloud knows the identities' IDs."""
        if self.key.cloud == "azure":
            raise CredfleetError(
                code="ids-unknown",
                place=f"stack {self.at_rest.stack}",
                problem="its cluster knows identities by ids that only Azure has",
                fix="take the Roles from the commands that --repo OWNER/REPO prints, which ask for them",
            )

    @property
    def roles(self) -> Sequence[dict[str, Any]]:
        """The Roles for the cluster, each with its binding."""
        rights = {role: rights_of(role, self.settings, self.at_rest.project.directory) for role in Identity}
        return [*manifests({one.role: one.name for one in self.workers}, self.subjects, rights)]

    def unasked(self, *, google: bool = True) -> Iterator[str]:
        """Yield the other systems that grant the identities permissions, with commands that show them."""
        yield "GitHub: gh api 'repos/{owner}/{repo}/environments'"
        for cloud, ask in (("AWS", self._asking_aws), ("Azure", self._asking_azure)):
            grants = [each for each in self.grants if each.cloud == cloud.lower()]
            for worker in self.workers if grants else ():
                allowed = chain.from_iterable(each.given(writes=worker.writes) for each in grants)
                have = ", ".join(dict.fromkeys(allowed))
                yield f"{cloud}, where {worker.role} is to have {have} alone: {ask(worker, grants)}"
        if google and "gcp" in self.clouds:
            flags = "--flatten='bindings[].members' --filter=bindings.members:credfleet-"
            yield f"Google Cloud: gcloud projects get-iam-policy {shlex.quote(self.project)} {flags}"
            if self.key.cloud == "gcp":
                yield f"Google Cloud: gcloud kms keys get-iam-policy {shlex.quote(self.key.key)} {flags}"
        elif self.writes_to_accounts:
            yield "Google Cloud: gcloud projects get-iam-policy PROJECT, of each claimed account"

    def _asking_aws(self, worker: Worker, grants: Sequence[Grant]) -> str:
        """Return a command that lists which of all granted actions an identity can do on which resources."""
        text = "--output text" + (f" --region {shlex.quote(self.key.region)}" if self.key.region else "")
        key, cluster = shlex.quote(self.key.key), shlex.quote(self.cluster.name)
        bucket = f"arn:{self.cluster.partition}:s3:::{urlsplit(self.backend or '').netloc or 'BUCKET'}"
        resources = {
            "key": f"$(aws kms describe-key --key-id {key} --query KeyMetadata.Arn {text})",
            "bucket": bucket,
            "objects": f"{bucket}/*",
            "cluster": f"$(aws eks describe-cluster --name {cluster} --query cluster.arn {text})",
        }
        actions = " ".join(chain.from_iterable(each.writes for each in grants))
        places = " ".join(f'"{resources[each.at]}"' for each in grants)
        role = f"$(aws iam get-role --role-name {worker.name} --query Role.Arn --output text)"
        shown = "EvaluationResults[?EvalDecision=='allowed'].[EvalActionName,EvalResourceName]"
        asked = f'aws iam simulate-principal-policy --policy-source-arn "{role}" --action-names {actions}'
        return f'{asked} --resource-arns {places} --query "{shown}" --output text'

    def _asking_azure(self, worker: Worker, _grants: Sequence[Grant]) -> str:
        listed = f"az identity list --query \"[?name=='{worker.name}'].principalId\" --output tsv"
        asked = f'az role assignment list --all --include-groups --assignee "$({listed})"'
        return f"{asked} --query '[].[roleDefinitionName,scope]' --output tsv"

    def script(self, template: str) -> str:
        """Return all commands, as a shell script or for Terraform.

        Raises CredfleetError `usage` for an invalid GitHub repository.
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
                roles=[_with_ids(_as_hcl(each)) for each in self.roles],
                scheme=backend.scheme or _BACKENDS.get(key.cloud, ""),
                clouds=self.clouds,
                cluster=self.cluster,
                identities=self.workers,
                grants=self.grants,
                kms=key,
                manifests=_by_place(self.roles),
                of_accounts=self.writes_to_accounts,
                project=self.project,
                quote=shlex.quote,
                region=region,
                storage_account=account,
                pool=self.settings.account_pool,
            )
        )


def _by_place(roles: Iterable[dict[str, Any]]) -> Mapping[str, str]:
    """Return the Roles by namespace as YAML, first those for the whole cluster."""
    places: dict[str, list[dict[str, Any]]] = {CLUSTER: []}
    for each in roles:
        places.setdefault(each["metadata"].get("namespace", CLUSTER), []).append(each)
    return {place: as_text(those) for place, those in places.items()}


def _as_hcl(value: object) -> str:
    """Return a value as HCL, which is JSON except for the sequences that start an expression."""
    return json.dumps(value).replace("${", "$${").replace("%{", "%%{")


def _with_ids(role: str) -> str:
    """Replace shell variables for Azure IDs by references in Terraform."""
    return re.sub(rf'"\$({"|".join(Identity)})"', r"local.id.\1", role)


def open_bootstrap(here: Path, stack: str, repository: str | None) -> Bootstrap:
    """Read a stack of the project here, without its key. Raises as `read_settings`."""
    folders = Folders.find(here)
    at_rest = StackAtRest.find(folders.project, stack, backend_dir=folders.backend)
    return Bootstrap(at_rest, read_settings(at_rest), repository, os.environ.get("PULUMI_BACKEND_URL"))
