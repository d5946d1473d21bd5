"""Policies for Azure Service Operator: the credential Secrets that it reads, and resources that name one.

ASO validates none of this at deployment, uses values untrimmed, and never falls back from a broken Secret to
another one (docs/compatibility.md).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from rule import SECRETS, UNKNOWN, Resource, resource_rule, stack_rule

from components.aso_credentials import keys
from components.naming import is_object_name

_MODES: Final = ("", keys.WORKLOAD_IDENTITY, keys.POD_IDENTITY)
_GLOBAL_KEY: Final = re.compile(
    r"USE_(WORKLOAD|POD)_IDENTITY_AUTH|AZURE_WORKLOAD_IDENTITY_AUTH_MODE|ALLOW_MULTI_ENV_MANAGEMENT"
    r"|AZURE_TARGET_NAMESPACES|AZURE_OPERATOR_MODE|AZURE_SYNC_PERIOD|DEFAULT_RECONCILE_POLICY"
    r"|MAX_CONCURRENT_RECONCILES|RATE_LIMIT_\w+|AZURE_USER_AGENT_SUFFIX"
)
_RESOURCES: Final = ("kubernetes:azure.com/*:*", "kubernetes:*.azure.com/*:*")
_NAMED: Final = (("metadata", "namespace"), ("metadata", "name"))
_DELIVERIES: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    **dict.fromkeys(SECRETS, _NAMED),
    "pulumi-python:dynamic/credfleet:SecretProjection": (("targetNamespace",), ("targetName",)),
    "pulumi-python:dynamic/credfleet:AsoProjection": (("namespace",), ("targetName",)),
    "pulumi-python:dynamic/credfleet:SecretRead": (("namespace",), ("target",)),
    "kubernetes:bitnami.com/*:SealedSecret": _NAMED,
    "kubernetes:external-secrets.io/*:ExternalSecret": (
        ("metadata", "namespace"),
        ("spec", "target", "name"),
        ("metadata", "name"),
    ),
    "kubernetes:external-secrets.io/*:ClusterExternalSecret": (
        (),
        ("spec", "externalSecretSpec", "target", "name"),
        ("spec", "externalSecretName"),
        ("metadata", "name"),
    ),
}
"""Type that creates a Secret → path of its namespace, empty if it has many, then paths of its name."""


def _keys(secret: Resource) -> Mapping[str, Any]:
    return {**secret.mapping("data"), **secret.mapping("stringData")}


def _all_keys_known(secret: Resource) -> bool:
    return secret.is_known("data") and secret.is_known("stringData")


def _is_scoped(secret: Resource) -> bool:
    """Return whether ASO would treat the Secret as a credential; those for workloads lack a subscription."""
    name, held = secret.text("metadata", "name"), _keys(secret)
    return name != keys.GLOBAL_SETTINGS and (
        name == keys.NAMESPACE_SECRET
        or (keys.SUBSCRIPTION in held and (keys.CLIENT in held or keys.TENANT in held))
    )


@resource_rule(
    types=SECRETS,
    description="The two Secrets that ASO reads by name must contain what it reads there.",
    fix="name the Secret otherwise; a credential ASO takes by itself has the three AZURE_… ids",
    config={"operatorNamespace": {"type": "string", "default": keys.OPERATOR_NAMESPACE}},
)
def aso_secret_reserved_name(secret: Resource) -> Iterator[str]:
    """Reject global settings that ASO never reads, and Secrets whose name captures a whole namespace."""
    name, namespace = secret.text("metadata", "name"), secret.text("metadata", "namespace")
    operator = secret.config.get("operatorNamespace", keys.OPERATOR_NAMESPACE)
    if name == keys.GLOBAL_SETTINGS and namespace is not None and namespace != operator:
        yield f"metadata.name is {keys.GLOBAL_SETTINGS}, outside the operator's namespace"
    if (
        name == keys.NAMESPACE_SECRET
        and _all_keys_known(secret)
        and not any(key.startswith("AZURE_") for key in _keys(secret))
    ):
        yield f"metadata.name is {keys.NAMESPACE_SECRET}, but no key is one of ASO's"


@resource_rule(
    types=SECRETS,
    description="A credential for ASO must have every key of its method.",
    fix="add the key; ASO takes no other credential instead of a broken one",
)
def aso_secret_required_keys(secret: Resource) -> Iterator[str]:
    """Reject a credential without the keys that ASO requires at every reconcile."""
    held = _keys(secret)
    if not _is_scoped(secret) or not held or not _all_keys_known(secret):
        return
    for key in keys.REQUIRED:
        if key not in held:
            yield f"data.{key} is missing"
    if keys.CERTIFICATE_PASSWORD in held and keys.CERTIFICATE not in held:
        yield f"data.{keys.CERTIFICATE_PASSWORD} stands without {keys.CERTIFICATE}"
    if any(key in held for key in keys.CLOUD):
        yield from (
            f"data.{key} is missing beside the others of its cloud" for key in keys.CLOUD if key not in held
        )


@resource_rule(
    types=SECRETS,
    description="A credential for ASO must have one method.",
    fix="keep the keys of one method: the secret, the certificate, or AUTH_MODE",
)
def aso_secret_one_method(secret: Resource) -> Iterator[str]:
    """Reject a second authentication method: ASO silently uses the first in its own order."""
    held = _keys(secret)
    if not _is_scoped(secret):
        return
    methods = [key for key in (keys.CLIENT_SECRET, keys.CERTIFICATE, keys.AUTH_MODE) if key in held]
    for key in methods[1:]:
        yield f"data.{key} is ignored, as {methods[0]} is there"
    if methods == [keys.AUTH_MODE] and _text(secret, keys.AUTH_MODE) not in (None, *_MODES):
        yield "data.AUTH_MODE is neither workloadidentity nor podidentity"


@resource_rule(
    types=SECRETS,
    description="A credential for ASO must not have an empty key.",
    fix="leave the key out, or give it its value",
)
def aso_secret_no_empty_key(secret: Resource) -> Iterator[str]:
    """Reject empty values: the mere presence of a key already selects the method."""
    if _is_scoped(secret):
        yield from (f"data.{key} is empty" for key, value in _keys(secret).items() if value in ("", None))


@resource_rule(
    types=SECRETS,
    description=f"Settings of the operator must be in {keys.GLOBAL_SETTINGS} only.",
    fix=f"move the key into {keys.GLOBAL_SETTINGS}",
)
def aso_secret_no_global_key(secret: Resource) -> Iterator[str]:
    """Reject settings that ASO reads only at startup: in a credential they have no effect."""
    if _is_scoped(secret):
        yield from (f"data.{key} has no effect here" for key in _keys(secret) if _GLOBAL_KEY.fullmatch(key))


def _text(secret: Resource, key: str) -> str | None:
    literal, encoded = secret.text("stringData", key), secret.text("data", key)
    if literal is not None or encoded is None:
        return literal
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return encoded


@resource_rule(
    types=_RESOURCES,
    description="A resource of ASO must name its credential in the annotation that ASO reads.",
    fix=f"write metadata.annotations and {keys.CREDENTIAL_FROM}",
)
def aso_annotation_spelled(resource: Resource) -> Iterator[str]:
    """Reject misspelled keys: ASO would silently use the namespace's or the global credential."""
    if "annotation" in resource.mapping("metadata"):
        yield "metadata.annotation is not a field of Kubernetes"
    for field in ("annotations", "labels"):
        for key in resource.mapping("metadata", field):
            written = re.sub(r"[-_.]", "", key.rpartition("/")[2]).lower()
            is_right = key == keys.CREDENTIAL_FROM and field == "annotations"
            if written in ("credentialfrom", "credentialsfrom") and not is_right:
                yield f"metadata.{field}.{key} is not what ASO reads"


@resource_rule(
    types=_RESOURCES,
    description="A resource of ASO must name its credential by the bare name of a Secret.",
    fix="give the name of a Secret in the resource's own namespace",
)
def aso_annotation_value(resource: Resource) -> Iterator[str]:
    """Reject names that ASO cannot resolve, especially those in another namespace."""
    name = resource.text("metadata", "annotations", keys.CREDENTIAL_FROM)
    if name is None:
        return
    path = f"metadata.annotations.{keys.CREDENTIAL_FROM}"
    if not name:
        yield f"{path} is empty"
    elif "/" in name:
        yield f"{path} has a slash, and ASO reads no other namespace"
    elif not is_object_name(name):
        yield f"{path} is not a name a Secret can have"


@stack_rule(
    types=[*_DELIVERIES, *_RESOURCES],
    description="The credential that a resource of ASO names must be declared in its namespace.",
    fix="declare the Secret in the resource's namespace, with the three AZURE_… ids",
)
def aso_annotation_target(resources: Sequence[Resource]) -> Iterator[tuple[str, str]]:
    """Reject a reference to a Secret that does not exist: ASO then uses no other credential."""
    made = [(place, one) for one in resources for place in _places(one)]
    declared = {place: one for place, one in made if one.type in SECRETS}
    delivered = {place for place, one in made if one.type not in SECRETS}
    path = f"metadata.annotations.{keys.CREDENTIAL_FROM}"
    for one in resources:
        name = one.text("metadata", "annotations", keys.CREDENTIAL_FROM)
        namespace = one.text("metadata", "namespace")
        if not one.is_a(*_RESOURCES) or not name or namespace is None:
            continue
        place = (namespace, name)
        if place in delivered or any(_may_be(place, other) for other in (*declared, *delivered)):
            continue
        if place not in declared:
            yield one.urn, f"{path} names a Secret that is not declared in the namespace"
        elif not _may_have(declared[place], keys.REQUIRED):
            yield one.urn, f"{path} names a Secret that is not a credential of ASO"


def _places(resource: Resource) -> Iterator[tuple[Any, Any]]:
    """Yield namespace and name of the Secrets that a resource creates; UNKNOWN during a preview."""
    for type_, (namespace, *names) in _DELIVERIES.items():
        if resource.is_a(type_):
            said = (_said(resource, path) for path in names)
            yield (
                _said(resource, namespace) if namespace else UNKNOWN,
                next((one for one in said if one is not None), None),
            )


def _said(resource: Resource, path: Sequence[str]) -> Any:
    return resource.text(*path) if resource.is_known(*path) else UNKNOWN


def _may_have(secret: Resource, wanted: Collection[str]) -> bool:
    held = _keys(secret)
    return not held or not _all_keys_known(secret) or all(key in held for key in wanted)


def _may_be(place: tuple[str, str], other: tuple[Any, Any]) -> bool:
    """Return whether a Secret that a preview knows only in part could be the one at this place."""
    return UNKNOWN in other and all(
        theirs in (UNKNOWN, ours) for ours, theirs in zip(place, other, strict=True)
    )
