"""Names and their limits: pure functions, each for the rule of one service."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import uuid
from collections.abc import Callable
from typing import Final

NAMESPACE_LIMIT: Final = 63
"""Maximum length of a Kubernetes namespace: a DNS label, RFC 1123."""

OBJECT_NAME_LIMIT: Final = 253
"""Maximum length of the name of a Secret or ConfigMap: a DNS subdomain, RFC 1123."""

LABEL_VALUE_LIMIT: Final = 63
"""Maximum length of a label value, and of a label key after its prefix."""

GUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
"""Pattern of a GUID in upper or lower case."""

_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")
_ENCODED: Final = "enc-"

STACK_HOLDER: Final = "pulumi"
"""Prefix of the ID of a holder that is a stack."""
_STACK: Final = re.compile(rf"({STACK_HOLDER}/[^/]+/[^/]+)/([^/]+)/(.+)")
"""ID of a holder; the second group is its stack."""
HELD_AS: Final = "heldAs"
"""Configuration key with the stack name that is used in holder IDs instead of the current stack's."""

TENANT_NAMESPACE: Final = "kubernetes:core/v1:Namespace"
TENANT_NAMESPACE_END: Final = "-namespace"
"""Type of a tenant's namespace resource, and the suffix of its logical name after the tenant's name."""


def matching(form: str, most: int = sys.maxsize) -> Callable[[str], bool]:
    """Return a test for whether a string matches a pattern fully, with a maximum length."""
    pattern = re.compile(form)
    return lambda text: len(text) <= most and pattern.fullmatch(text) is not None


is_guid: Final = matching(GUID)
"""Whether the whole string is a GUID."""
is_gcp_project: Final = matching("([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]")
"""Whether the string is a valid Google Cloud project ID, also within a domain (`example.com:project`)."""
is_gcp_region: Final = matching(
    r"(africa|asia|australia|europe|me|northamerica|southamerica|us)"
    r"-(north|south|east|west|central|(north|south)(east|west))[1-9][0-9]?"
)
"""Whether the string can be a region of Google Cloud, not a zone, multi-region, or another cloud's region."""
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
is_namespace: Final = matching(_DNS_LABEL, NAMESPACE_LIMIT)
"""Whether the string is a valid name of a namespace."""
is_object_name: Final = matching(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*", OBJECT_NAME_LIMIT)
"""Whether the string is a valid name of a Secret or ConfigMap."""
is_label_value: Final = matching("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", LABEL_VALUE_LIMIT)
"""Whether the string is a valid label value; unlike in Kubernetes, it must not be empty."""
is_data_key: Final = matching(r"(?!\.$|\.\.)[-._a-zA-Z0-9]+", OBJECT_NAME_LIMIT)
"""Whether the string is a valid key of a Secret's `data`."""


def is_label_key(text: str) -> bool:
    """Return whether a string is a label key in Kubernetes: a name, optionally after `<DNS subdomain>/`."""
    prefix, slash, word = text.rpartition("/")
    return is_label_value(word) and (not slash or is_object_name(prefix))


def tenant_label(tenant: str) -> str:
    """Return the label value of a tenant, as in docs/design/claim-protocol.md.

    A tenant that is a valid label value is unchanged, so labels from before credfleet stay valid; any other
    becomes `enc-` and 52 characters of its SHA-256. No two tenants share a value. Raises ValueError for a
    tenant that is empty or has surrounding whitespace.
    """
    if not tenant or tenant != tenant.strip():
        raise ValueError("a tenant's name is not empty and has no blanks at its ends")
    if is_label_value(tenant) and not tenant.startswith(_ENCODED):
        return tenant
    digest = base64.b32encode(hashlib.sha256(tenant.encode()).digest()).decode()
    return _ENCODED + digest.rstrip("=").lower()


def stack_holder(organization: str, project: str, stack: str, tenant: str, slot: str) -> str:
    """Return the holder id of a stack, the same in every run."""
    return f"{STACK_HOLDER}/{organization}/{project}/{stack}/{tenant}/{slot}"


def stack_of(holder: str) -> str:
    """Return the stack of a holder id; empty if the holder is not a stack."""
    match holder.split("/"):
        case [kind, _, _, stack, *_] if kind == STACK_HOLDER:
            return stack
        case _:
            return ""


def former_stack(before: object, now: object) -> str | None:
    """Return the stack of a former holder id that differs from the present one only in the stack."""
    was, now_ = _STACK.fullmatch(str(before)), _STACK.fullmatch(str(now))
    if was is None or now_ is None or was.group(1, 3) != now_.group(1, 3):
        return None
    return was[2] if was[2] != now_[2] else None


def guid_of(holder: str) -> str:
    """Return a GUID for a holder id, the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"credfleet:{holder}"))


def config_path(key: str, *segments: str | int) -> str:
    """Return a configuration path in the syntax of `pulumi config set --path`."""
    path = f"credfleet:{key}"
    for segment in segments:
        if isinstance(segment, int):
            path += f"[{segment}]"
        elif _PLAIN_SEGMENT.fullmatch(segment):
            path += f".{segment}"
        else:
            path += f"[{json.dumps(segment, ensure_ascii=not segment.isprintable())}]"
    return path
