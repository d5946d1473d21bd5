"""The ASO resources of a stack: read from their files, and resolved before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from components.aso_credentials import keys
from components.aso_credentials.manifests import (
    Manifest,
    as_json,
    is_resource,
    objects_in,
    resource_of,
)
from components.aso_credentials.nouns import WITHHELD, Operator, Resolution, Resource, SecretName, Secrets
from components.aso_credentials.resolver import resolve
from components.credentials import Credentials
from components.errors import CredfleetError, Problem
from components.naming import config_path
from components.projection.keys import plan_keys
from components.settings.aso_contents import controller, secret_data
from components.settings.aso_credentials import AsoCredentials, Resources
from components.settings.nouns import Delivery, Tenant


@dataclass(frozen=True, slots=True)
class DeclaredResource:
    """A resource of a file: its place, entry and manifest, the Secret named for it, and what ASO sees."""

    place: str
    entry: str
    manifest: Manifest
    credential: str | None
    resource: Resource

    @property
    def name(self) -> str:
        """Name it as nothing else is named: NAMESPACE/KIND.GROUP/NAME."""
        group = str(self.manifest["apiVersion"]).partition("/")[0]
        return f"{self.resource.namespace}/{self.resource.kind}.{group}/{self.resource.name}"


def read_resources(
    section: AsoCredentials, root: Path
) -> tuple[Sequence[DeclaredResource], Sequence[Problem]]:
    """Read the files of all entries; give what is well formed, and what is wrong with the rest."""
    found: list[DeclaredResource] = []
    problems: list[Problem] = []
    for name, entry in section.resources.items():
        for one in _read_file(name, entry, root):
            if isinstance(one, DeclaredResource):
                found.append(one)
            else:
                problems.append(one)
    return found, problems


def resolutions(
    section: AsoCredentials,
    tenants: Mapping[str, Tenant],
    credentials: Credentials,
    resources: Sequence[DeclaredResource],
) -> Sequence[Resolution]:
    """Tell which credential ASO will use for each resource, by the keys that the Secrets will have."""
    operator = Operator(section.operator.namespace, section.operator.multi_env, section.operator.strict)
    secrets = {**_delivered(tenants), **_declared(section, credentials)}
    return resolve([one.resource for one in resources], secrets, operator)


def _read_file(name: str, entry: Resources, root: Path) -> Iterator[DeclaredResource | Problem]:
    place = config_path("asoCredentials", "resources", name, "file")
    try:
        text = (root / entry.file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        yield Problem(
            place,
            f"{entry.file} cannot be read ({reason}), so its resources would be missing",
            "give the path of a file of Kubernetes YAML, relative to Pulumi.yaml",
        )
        return
    try:
        objects = [*objects_in(text, entry.file)]
        if not objects:
            yield Problem(
                place, f"{entry.file} holds no resource", "write its resources, or remove the entry"
            )
        for where, manifest in objects:
            yield _read(name, entry, f"{place} ({where})", manifest)
    except CredfleetError as error:
        yield Problem(f"{place} ({error.place})", error.cause, error.mend)


def _read(name: str, entry: Resources, place: str, manifest: Manifest) -> DeclaredResource | Problem:
    if not is_resource(manifest):
        return Problem(
            place,
            "it is no resource of Azure Service Operator, and nothing else is declared from this file",
            "leave it out; only kinds of *.azure.com belong here",
        )
    try:
        resource = resource_of(manifest, place)
        manifest = as_json(manifest, place)
    except CredfleetError as error:
        return Problem(place, error.cause, error.mend)
    given = resource.annotations.get(keys.CREDENTIAL_FROM)
    if entry.credential is None:
        return DeclaredResource(place, name, manifest, None, resource)
    if given not in (None, entry.credential):
        return Problem(
            place,
            f"its annotation {keys.CREDENTIAL_FROM} and the credential of its entry name two Secrets",
            "keep one of the two",
        )
    annotations = {**resource.annotations, keys.CREDENTIAL_FROM: entry.credential}
    annotated = replace(resource, annotations=annotations)
    return DeclaredResource(place, name, manifest, entry.credential, annotated)


def _declared(section: AsoCredentials, credentials: Credentials) -> Secrets:
    """Give the keys of the Secrets that are declared; with a faulty credential just the three ids."""
    strict = section.operator.strict
    found = {
        entry.secret: secret_data(entry.credential, credentials, strict=strict) for entry in section.entries()
    }
    if section.global_settings is not None:
        own = section.global_settings.credential
        data = controller(section.global_settings, section.operator, None).emit()
        if own is not None:
            data = {**data, **secret_data(own, credentials, strict=False)}
        found[section.global_name] = data
    return found


def _delivered(tenants: Mapping[str, Tenant]) -> Secrets:
    """Give the keys of the copies of claimed accounts, whose values nobody knows before the update."""
    return {
        SecretName(tenant.namespace, account.deliver_to.target): _copied(account.deliver_to)
        for tenant in tenants.values()
        for account in tenant.accounts.values()
        if account.deliver_to is not None
    }


def _copied(delivery: Delivery) -> Mapping[str, bytes]:
    plan = plan_keys(delivery.keys, delivery.aso_credential)
    fixed = {key: text.encode() for key, text in plan.fixed.items()}
    return dict.fromkeys(plan.keys.keys() - plan.optional, WITHHELD) | fixed
