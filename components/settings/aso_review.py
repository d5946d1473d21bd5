"""What no part of `credfleet:asoCredentials` can know alone: references, contents, what ASO makes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from components.aso_credentials import keys
from components.aso_credentials.federation import federation_faults
from components.aso_credentials.nouns import Operator, Resolution
from components.aso_credentials.roles import assignment_name
from components.aso_credentials.scoped import invalid
from components.credentials import Credentials
from components.errors import Problem
from components.naming import config_path
from components.settings.aso_contents import faults_of, federations, own_federations, secret_data, sources
from components.settings.aso_credentials import AsoCredentials, Entry, Identity
from components.settings.aso_resources import DeclaredResource, read_resources, resolutions
from components.settings.document import nearest
from components.settings.nouns import Cluster, Tenant
from components.settings.review import (
    unknown_credential,
    unusable_namespace,
    usable_namespaces,
)

_Problems = Iterator[Problem]
_KEY = "asoCredentials"

_ORIGINS: Final[Mapping[str, tuple[str, str]]] = {
    keys.CLIENT_SECRET: (
        "servicePrincipal.secretFrom",
        "store the bare secret, or JSON with a field clientSecret, in that entry of credentials",
    ),
    keys.CERTIFICATE: (
        "servicePrincipal.certificateFrom",
        "store PEM with its RSA key, or PKCS12 with its password as passwordFrom",
    ),
    keys.CERTIFICATE_PASSWORD: ("servicePrincipal.passwordFrom", "leave it out"),
    keys.SERVICE_ACCOUNT: (
        "workloadIdentity.serviceAccount",
        "leave it out; only namespaces and named look at it, with operator.workloadIdentityMode: strict",
    ),
    keys.ADDITIONAL_TENANTS: ("additionalTenants", "leave it out"),
    **dict(
        zip(
            keys.CLOUD,
            (
                (f"cloud.{key}", "write it with https://")
                for key in ("authorityHost", "resourceManagerEndpoint", "resourceManagerAudience")
            ),
            strict=True,
        )
    ),
}
"""Where in a credential of the configuration a key of its Secret comes from, and how to mend it there."""


def review_aso_credentials(
    section: AsoCredentials,
    tenants: Mapping[str, Tenant],
    cluster: Cluster,
    credentials: Credentials,
    root: Path,
    *,
    whole: bool,
) -> _Problems:
    """Check namespaces, references, what credentials hold, identities, and every resource.

    root: directory of Pulumi.yaml. whole: no part of the section or of the tenants was left out for a fault;
    else nobody could say what serves a resource.
    """
    namespaces = usable_namespaces(tenants, cluster)
    if section.global_settings is not None and section.operator.namespace not in namespaces:
        yield unusable_namespace(config_path(_KEY, "operator", "namespace"), section.operator.namespace)
    for entry in section.entries():
        if entry.secret.namespace not in namespaces:
            yield unusable_namespace(_namespace_place(entry), entry.secret.namespace)
        yield from _review_credential(entry, section, credentials, strict=section.operator.strict)
    if (own := section.global_entry()) is not None:
        yield from _review_credential(own, section, credentials, strict=False)
    for name in keys.RESERVED:
        if name in section.named:
            place = config_path(_KEY, "named", name)
            yield Problem(place, f"{name} is a name that ASO reads by itself", "rename it, such as billing")
    yield from _review_identities(section)
    resources, problems = read_resources(section, root)
    yield from problems
    yield from _review_resources(resources, section, namespaces)
    if whole:
        yield from _review_resolutions(resources, resolutions(section, tenants, credentials, resources))


def _namespace_place(entry: Entry) -> str:
    return entry.place if entry.secret.name == keys.NAMESPACE_SECRET else f"{entry.place}.namespace"


def _review_credential(
    entry: Entry, section: AsoCredentials, credentials: Credentials, *, strict: bool
) -> _Problems:
    """Check references of a credential, what it is made of, and whether the operator would take it."""
    for key, name in sources(entry.credential).items():
        if name not in credentials.names:
            yield unknown_credential(f"{entry.place}.servicePrincipal.{key}", name, credentials)
    yield from _review_identity_of(entry, section)
    faults = faults_of(entry.credential, credentials, strict=strict)
    for fault in faults:
        key, mend = _ORIGINS[fault.split(maxsplit=1)[0].removesuffix(":")]
        yield Problem(f"{entry.place}.{key}", fault, mend)
    operator = Operator(section.operator.namespace, section.operator.multi_env, strict)
    refusal = invalid(secret_data(entry.credential, credentials, strict=strict), operator)
    if refusal is not None and not faults and entry.secret != section.global_name:
        yield Problem(
            f"{entry.place}.cloud",
            f"ASO would refuse it: {refusal}",
            "set operator.multiEnv: true if it runs so, or leave it out",
        )


def _review_identity_of(entry: Entry, section: AsoCredentials) -> _Problems:
    given = entry.credential.workload_identity
    if given is None or given.identity is None:
        return
    place = f"{entry.place}.workloadIdentity.identity"
    if given.identity not in section.identities:
        cause = f"{given.identity} is no entry of identities"
        yield Problem(place, cause, nearest(given.identity, section.identities))
    elif section.operator.issuer is None:
        yield Problem(
            place,
            "nobody says who issues the cluster's tokens, so Azure could not be told whom to trust",
            f"give the cluster's OIDC issuer URL as {config_path(_KEY, 'operator', 'issuer')}",
        )


def _review_identities(section: AsoCredentials) -> _Problems:
    """Check each identity, and that Azure, which does not look at the case of names, takes no two for one."""
    seen: dict[tuple[str, str], str] = {}
    for name, identity in section.identities.items():
        first = seen.setdefault((identity.resource_group.lower(), name.lower()), name)
        if first != name:
            yield _same_to_azure(config_path(_KEY, "identities", name), first)
        yield from _review_identity(name, identity, section)
    groups: dict[str, str] = {}
    for name in section.resource_groups:
        first = groups.setdefault(name.lower(), name)
        if first != name:
            yield _same_to_azure(config_path(_KEY, "resourceGroups", name), first)


def _same_to_azure(place: str, first: str) -> Problem:
    cause = f"to Azure it is the same as {first}: the case of a name does not count there"
    return Problem(place, cause, "rename one of the two, or remove it")


def _review_identity(name: str, identity: Identity, section: AsoCredentials) -> _Problems:
    place = config_path(_KEY, "identities", name)
    if identity.location is None and identity.resource_group not in section.resource_groups:
        yield Problem(
            f"{place}.location",
            f"resource group {identity.resource_group} is not declared here, so its location is not known",
            f"add the location, or {identity.resource_group} to resourceGroups",
        )
    for key in sorted(identity.federations.keys() & own_federations(section, name).keys()):
        cause = "the stack itself makes a federated credential of this name, for this cluster"
        yield Problem(f"{place}.federations.{key}", cause, "rename it, such as blue-cluster")
    for fault in federation_faults(federations(section, name)):
        yield Problem(place, fault, "use another identity for some of its ServiceAccounts")
    assigned: dict[str, str] = {}
    for key, role in identity.roles.items():
        first = assigned.setdefault(assignment_name(role.scope, role.role, name), key)
        if first != key:
            cause = f"it is the same role in the same scope as {first}, and Azure takes an assignment once"
            yield Problem(f"{place}.roles.{key}", cause, "remove one of the two")


def _review_resources(
    resources: Sequence[DeclaredResource], section: AsoCredentials, namespaces: Collection[str]
) -> _Problems:
    """Check where resources are, that no two are one, and the credentials their entries name."""
    for name, entry in section.resources.items():
        if entry.credential is not None and entry.credential not in section.named:
            yield Problem(
                config_path(_KEY, "resources", name, "credential"),
                f"{entry.credential} is no entry of named",
                nearest(entry.credential, section.named),
            )
    seen: dict[str, str] = {}
    for one in resources:
        if not one.manifest["metadata"].get("namespace"):
            cause = "it says no namespace, and nothing is declared in default"
            yield Problem(one.place, cause, "add metadata.namespace")
        elif one.resource.namespace not in namespaces:
            yield unusable_namespace(one.place, one.resource.namespace)
        first = seen.setdefault(one.name, one.place)
        if first != one.place:
            yield Problem(one.place, f"{one.resource} is also declared at {first}", "keep one of the two")


def _review_resolutions(
    resources: Sequence[DeclaredResource], resolutions: Sequence[Resolution]
) -> _Problems:
    """Refuse a resource that ASO would not serve, in its words."""
    for one, resolution in zip(resources, resolutions, strict=True):
        fault = resolution.fault
        if fault is None:
            continue
        mend = "mend it where it says, in the manifest or in asoCredentials"
        if resolution.secret is None and resolution.scope is None:
            mend = f"add {one.resource.namespace} to asoCredentials.namespaces, or credential to its entry"
        yield Problem(
            f"{one.place} {one.resource}", f"{fault.severity}, {fault.reason}: {fault.message}", mend
        )
