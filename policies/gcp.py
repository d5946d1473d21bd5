"""Policies for Google Cloud: pull secrets of clusters in Secret Manager, and IAM grants."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pulumi_policy import EnforcementLevel, Secret
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE
from rule import UNKNOWN, Resource, resource_rule

from components.pull_secret.names import SAME_FOR_ALL

_SECRETS: Final = ("gcp:secretmanager/secret:Secret", "gcp:secretmanager/regionalSecret:RegionalSecret")
_VERSIONS: Final = (
    "gcp:secretmanager/secretVersion:SecretVersion",
    "gcp:secretmanager/regionalSecretVersion:RegionalSecretVersion",
)
_GRANTS: Final = (
    "gcp:*I[Aa][Mm]Member",
    "gcp:*I[Aa][Mm]Binding",
    "gcp:*I[Aa][Mm]Policy",
)
_LISTS: Final = (
    "gcp:bigquery/dataset:Dataset",
    "gcp:bigquery/datasetAccess:DatasetAccess",
    "gcp:storage/*ACL:*",
    "gcp:storage/*AccessControl:*",
)
"""Types that grant access outside of IAM."""

_PULL_SECRET: Final = re.compile(r"hyperfleet-([a-z0-9_-]{1,63})-pull-secret")
_CLUSTER_ID: Final = "cluster-id"
_EVERYBODY: Final = ("allUsers", "allAuthenticatedUsers")
_PUBLIC_LISTS: Final = ("publicRead", "publicReadWrite", "authenticatedRead")
_WAYS: Final = ("auto", "userManaged")
_PRIMITIVE: Final = ("roles/owner", "roles/editor", "roles/viewer")
_WORKLOAD: Final = ("serviceAccount:", "principal:", "principalSet:")


def _is_pull_secret(secret: Resource) -> bool:
    by_name = _PULL_SECRET.fullmatch(secret.text("secretId") or "")
    return by_name is not None or secret.text("labels", "resource-type") == "pull-secret"


@resource_rule(
    types=_SECRETS,
    description="A pull secret must not have the name of another cluster's.",
    fix="name it hyperfleet-ID-pull-secret, with the id that label cluster-id has",
)
def gcp_pull_secret_name(secret: Resource) -> Iterator[str]:
    """Reject a name under which HyperFleet looks for another cluster's pull secret."""
    cluster, found = secret.text("labels", _CLUSTER_ID), _PULL_SECRET.fullmatch(secret.text("secretId") or "")
    if found is not None and cluster is not None and found[1] != cluster:
        yield f"secretId is that of another cluster than labels.{_CLUSTER_ID}"


@resource_rule(
    types=_SECRETS,
    description="A pull secret must have the five labels of HyperFleet.",
    fix=f"set {', '.join(f'{key}={value}' for key, value in SAME_FOR_ALL.items())} and {_CLUSTER_ID}",
)
def gcp_pull_secret_labels(secret: Resource) -> Iterator[str]:
    """Reject a pull secret without the labels that identify its owner."""
    if not _is_pull_secret(secret) or secret.inputs.get("labels") is UNKNOWN:
        return
    labels = secret.mapping("labels")
    for key, wanted in SAME_FOR_ALL.items():
        if labels.get(key) is not UNKNOWN and labels.get(key) != wanted:
            yield f"labels.{key} is not {wanted}"
    if labels.get(_CLUSTER_ID) in ("", None):
        yield f"labels.{_CLUSTER_ID} is missing"


@resource_rule(
    types=_SECRETS[:1],
    description="A secret must declare one replication, and that of the environment if its file names one.",
    fix="set replication.auto, or replication.userManaged with each location once",
    config={"policy": {"type": "string", "enum": ["automatic", "user-managed"]}},
)
def gcp_secret_replication(secret: Resource) -> Iterator[str]:
    """Reject a wrong replication policy, which cannot be changed after the secret is created."""
    if not all(secret.is_known("replication", way) for way in _WAYS):
        return
    ways = [way for way in _WAYS if secret.mapping("replication").get(way) is not None]
    wanted = {"automatic": "auto", "user-managed": "userManaged"}.get(secret.config.get("policy", ""))
    if len(ways) != 1:
        yield "replication is not declared in one way"
    elif wanted and ways != [wanted]:
        yield "replication is not the one of this environment"
    elif ways == ["userManaged"] and secret.is_known("replication", "userManaged", "replicas"):
        replicas = secret.items("replication", "userManaged", "replicas")
        places = [one.get("location") if isinstance(one, dict) else one for one in replicas]
        known = [place for place in places if isinstance(place, str)]
        if not places or None in places or len(set(known)) != len(known):
            yield "replication.userManaged.replicas does not name each location once"


@resource_rule(
    types=_SECRETS,
    description="A secret must be protected from deletion if the environment requires it.",
    fix="set deletionProtection to true",
    config={"required": {"type": "boolean", "default": False}},
)
def gcp_secret_deletion_protection(secret: Resource) -> Iterator[str]:
    """Reject a secret that can be deleted by mistake with all its versions."""
    given = secret.inputs.get("deletionProtection")
    if secret.config.get("required") and given is not UNKNOWN and given is not True:
        yield "deletionProtection is not true"


def _marked(version: Resource) -> Mapping[str, Any] | None:
    """Return the inputs with the payload marked as secret; None if it already is."""
    payloads = {key: Secret(version.inputs[key]) for key in _payloads_in_plain(version)}
    return {**version.inputs, **payloads} if payloads else None


def _payloads_in_plain(version: Resource) -> list[str]:
    payloads = ((key, version.inputs.get(key)) for key in ("secretData", "secretDataWo"))
    return [key for key, text in payloads if isinstance(text, str) and text != UNKNOWN_STRING_VALUE]


@resource_rule(
    types=_VERSIONS,
    level=EnforcementLevel.REMEDIATE,
    description="The payload of a version must be marked as secret, so that the state encrypts it.",
    fix="wrap secretData or secretDataWo in Output.secret; at level remediate it is done for you",
    remedy=_marked,
    marks=True,
)
def gcp_secret_version_marked(version: Resource) -> Iterator[str]:
    """Reject a payload that would appear in state, diff and logs."""
    yield from (f"{key} is not marked as secret" for key in _payloads_in_plain(version))


@resource_rule(
    types=[*_GRANTS, *_LISTS],
    description="A role must not be granted to all users, or to all authenticated users.",
    fix="name the people or service accounts that do the work",
)
def gcp_iam_not_public(grant: Resource) -> Iterator[str]:
    """Reject a public grant: access that was used cannot be taken back."""
    yield from (f"{path} is everybody" for path, _, member in _grants(grant) if member in _EVERYBODY)
    for place, one in (
        ("", grant),
        *((f"accesses[{index}].", one) for index, one in grant.objects("accesses")),
    ):
        for key in ("entity", "specialGroup", "iamMember"):
            if one.text(key) in _EVERYBODY:
                yield f"{place}{key} is everybody"
    for index, entity in enumerate(grant.items("roleEntities")):
        if isinstance(entity, str) and entity.partition(":")[2] in _EVERYBODY:
            yield f"roleEntities[{index}] is everybody"
    for key in ("predefinedAcl", "defaultAcl"):
        if grant.text(key) in _PUBLIC_LISTS:
            yield f"{key} is everybody"


@resource_rule(
    types=_GRANTS,
    description="A workload must not have a primitive role or an admin role.",
    fix="give it the narrowest role of what it works with, such as roles/secretmanager.secretAccessor",
)
def gcp_iam_no_broad_role(grant: Resource) -> Iterator[str]:
    """Reject roles that cover unrelated services, or let a workload grant roles itself."""
    told: set[str] = set()
    for path, role, member in _grants(grant):
        if member.startswith(_WORKLOAD) and _is_broad(role) and path not in told:
            told.add(path)
            yield f"{path} is a workload with a primitive or admin role"


def _is_broad(role: str) -> bool:
    return role in _PRIMITIVE or (role.startswith("roles/") and "admin" in role.lower())


def _grants(grant: Resource) -> Iterator[tuple[str, str, str]]:
    """Yield path, role and member of each grant; grants that are unknown during a preview are omitted."""
    for path, binding in _bindings(grant):
        members = [("member", binding.inputs.get("member"))]
        if "members" in binding.inputs:
            members = [(f"members[{index}]", one) for index, one in enumerate(binding.items("members"))]
        for place, member in members:
            if isinstance(member, str):
                yield f"{path}{place}", binding.text("role") or "", member


def _bindings(grant: Resource) -> Iterator[tuple[str, Resource]]:
    policy = grant.text("policyData")
    if policy is None:
        yield "", grant
        return
    try:
        document = json.loads(policy, object_pairs_hook=_in_lower_case)
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict):
        for index, binding in Resource(grant.type, document).objects("bindings"):
            yield f"policyData.bindings[{index}].", binding


def _in_lower_case(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with keys in lower case: the provider, written in Go, ignores their case."""
    return {key.casefold(): value for key, value in members}
