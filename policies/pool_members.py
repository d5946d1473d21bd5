"""Policies for members of an account pool: Secrets with an account's ID, a hyperscaler type or an owner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from pulumi_policy import EnforcementLevel
from rule import SECRETS, Resource, resource_rule, stack_rule
from stack_config import STACK_CONFIG

from components.account_pool.core import keys
from components.account_pool.core.clock import NOTICE
from components.durations import moment, period
from components.labels import (
    ACCOUNT_ID,
    BRING_YOUR_OWN,
    EXPIRES_AT,
    HYPERSCALER_TYPE,
    HYPERSCALERS,
    TENANT_NAME,
    hyperscaler_of,
)
from components.naming import is_label_value

_PATCH_FORCE: Final = "pulumi.com/patchForce"
_MEMBERS: Final = "pulumi-python:dynamic/credfleet:MemberSecret"
_OF_POOLS: Final = (
    "pulumi-python:dynamic/credfleet:AccountClaim",
    "pulumi-python:dynamic/credfleet:PoolRoster",
)
"""Types with the namespace of a pool as an input; the pool can be in another cluster."""

_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
_WORKLOADS: Final = (
    "kubernetes:apps/*",
    "kubernetes:batch/*",
    "kubernetes:extensions/*",
    "kubernetes:core/v1:Pod",
    "kubernetes:core/v1:PodPatch",
    "kubernetes:core/v1:ReplicationController*",
    _RELEASE,
)
_OF_OTHERS: Final = "kubernetes:*.*/*"
"""API groups with a dot, including custom resources: a resource with a pod template is a workload."""

_POD_TEMPLATES: Final = (
    ("spec", "template"),
    ("spec", "jobTemplate", "spec", "template"),
    ("spec", "jobTargetRef", "template"),
)
_PROTOCOL: Final = (
    keys.POOL_STATE,
    keys.CLAIM_TOKEN,
    keys.CLAIM_ORIGIN,
    keys.CLAIM_FORMER,
    keys.CLAIM_POLICY,
    keys.CLEANING_TOKEN,
    keys.STATE_REASON,
    keys.SHARED_CLAIMS,
    keys.TENANT_ID,
    keys.STATE_BEFORE,
    keys.FREED,
    keys.CUT,
)


def pool_section(config: Mapping[str, str]) -> Resource | None:
    """Return the pool section of a stack's configuration, or None without one."""
    try:
        section = json.loads(config["credfleet:accountPool"])
    except (KeyError, ValueError):
        return None
    return Resource("credfleet:accountPool", section) if isinstance(section, dict) else None


def _section() -> Resource | None:
    return pool_section(STACK_CONFIG.values)


def _type_label() -> str:
    return ((section := _section()) and section.text("labels", "type")) or HYPERSCALER_TYPE


def _owner_label() -> str:
    return ((section := _section()) and section.text("labels", "tenant")) or TENANT_NAME


def _is_member(secret: Resource) -> bool:
    labels, annotations = secret.mapping("metadata", "labels"), secret.mapping("metadata", "annotations")
    return _type_label() in labels or _owner_label() in labels or ACCOUNT_ID in annotations


@resource_rule(
    types=SECRETS,
    description="An account of a pool must name its cloud.",
    fix=f"label it {HYPERSCALER_TYPE} with one of {', '.join(HYPERSCALERS)}, _<region> behind it or not",
)
def kubernetes_pool_member_known_type(secret: Resource) -> Iterator[str]:
    """Reject an account of a type that no slot claims: it would never be claimed, nor missed."""
    labels, key = secret.mapping("metadata", "labels"), _type_label()
    path = f"metadata.labels.{key}"
    if not _is_member(secret):
        return
    if key not in labels and secret.is_known("metadata", "labels"):
        # A program without this section may use another label key; only its value is compared.
        if _section() is not None or all(
            isinstance(value, str) and not hyperscaler_of(value) for value in labels.values()
        ):
            yield f"{path} is missing"
        return
    type_ = labels.get(key)
    if isinstance(type_, str) and (
        hyperscaler_of(type_) is None or type_ != type_.lower() or not is_label_value(type_)
    ):
        yield f"{path} is not of a known cloud"


def _is_remembered(secret: Resource, key: str) -> bool:
    """Return whether the program may restore this key on an account whose Secret was lost."""
    is_given = key in (*keys.REMEMBERED_LABELS, *keys.REMEMBERED_ANNOTATIONS)
    path = ("metadata", "annotations", keys.REMEMBERED)
    return is_given and (secret.text(*path) == "true" or not secret.is_known(*path))


@resource_rule(
    types=SECRETS,
    description="Only the claim protocol can write state and token of a claim.",
    fix="leave the key out of the program; `credfleet pool` changes it safely",
)
def kubernetes_pool_member_protocol_keys(secret: Resource) -> Iterator[str]:
    """Reject a declared state or token: every update would overwrite a live claim with it."""
    for field in ("labels", "annotations"):
        for key in secret.mapping("metadata", field):
            if key in _PROTOCOL and not _is_remembered(secret, key):
                yield f"metadata.{field}.{key} is declared"


@resource_rule(
    types=SECRETS,
    description="Only an account that its tenant brought can be declared with an owner.",
    fix=f"leave {TENANT_NAME} out and claim the account, or set `tenant` in accountPool.members",
)
def kubernetes_pool_member_declared_owner(secret: Resource) -> Iterator[str]:
    """Reject a declared owner: it is not a claim, so nothing records the holder or releases the account."""
    labels, annotations = secret.mapping("metadata", "labels"), secret.mapping("metadata", "annotations")
    key, brought = _owner_label(), annotations.get(BRING_YOUR_OWN)
    path = f"metadata.labels.{key}"
    if key not in labels:
        return
    if BRING_YOUR_OWN not in annotations and not _is_remembered(secret, TENANT_NAME):
        yield f"{path} is declared on an account that was not brought"
    elif isinstance(brought, str) and brought != "true":
        yield f"metadata.annotations.{BRING_YOUR_OWN} is not true"
    if isinstance(labels[key], str) and not is_label_value(labels[key]):
        yield f"{path} is not a label value, so no tenant would ever match it"


@resource_rule(
    types=SECRETS,
    description="An update of an account must not override the owner that a claim wrote.",
    fix=f"remove the annotation {_PATCH_FORCE}; a conflict on a member is a claim that wants to stay",
)
def kubernetes_pool_member_never_forced(secret: Resource) -> Iterator[str]:
    """Reject forced server-side apply: the last writer would win instead of the first."""
    if _is_member(secret) and _PATCH_FORCE in secret.mapping("metadata", "annotations"):
        yield f"metadata.annotations.{_PATCH_FORCE} is set"


@resource_rule(
    types=[*SECRETS, _MEMBERS],
    description="The credential of an account must not end soon.",
    fix="replace it, and set expiresAt to when the new one ends",
    level=EnforcementLevel.ADVISORY,
)
def kubernetes_pool_member_key_lives(secret: Resource) -> Iterator[str]:
    """Report a credential that no new holder gets, or that its tenant is about to lose."""
    path = ("annotations",) if secret.type == _MEMBERS else ("metadata", "annotations")
    ends, section = secret.mapping(*path).get(EXPIRES_AT), _section()
    notice = period((section and section.text("keyNotice")) or NOTICE)
    with suppress(ValueError):
        if isinstance(ends, str) and datetime.now(UTC) >= moment(ends) - notice:
            yield f"{'.'.join(path)}.{EXPIRES_AT} is near or over"


@stack_rule(
    types=[*SECRETS, _MEMBERS, *_OF_POOLS, *_WORKLOADS, _OF_OTHERS],
    description="Workloads must not run in an account pool namespace.",
    fix="move the workload to its own namespace, and copy its account there with `deliverTo`",
)
def kubernetes_pool_namespace_no_workloads(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject pods in the namespace of the accounts: they could mount every credential."""
    section = _section()
    claims_elsewhere = section is not None and section.mapping("from").get("cluster")
    theirs = () if claims_elsewhere else _OF_POOLS
    pools = {_pool(one, theirs) for one in resources} - {None}
    for one in resources:
        path = ("namespace",) if one.type == _RELEASE else ("metadata", "namespace")
        if _is_workload(one) and one.text(*path) in pools:
            yield one.urn, f"{'.'.join(path)} is an account pool namespace"


def _pool(resource: Resource, theirs: Sequence[str]) -> str | None:
    """Return the namespace of a resource's pool. theirs: further types that name their pool."""
    if resource.type in (_MEMBERS, *theirs):
        return resource.text("namespace")
    is_member = resource.type in SECRETS and _is_member(resource)
    return resource.text("metadata", "namespace") if is_member else None


def _is_workload(resource: Resource) -> bool:
    return resource.is_a(*_WORKLOADS) or any(
        resource.mapping(*path, "spec").get("containers") for path in _POD_TEMPLATES
    )
