"""What anybody with a look at the cluster can read: data of ConfigMaps, annotations of everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pulumi_policy import EnforcementLevel
from rule import Resource, resource_rule

_CONFIG_MAPS: Final = ("kubernetes:core/v1:ConfigMap", "kubernetes:core/v1:ConfigMapPatch")
_TELLING_VALUE: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\b(AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAccountKey=[A-Za-z0-9+/]{20,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bglpat-[\w-]{20,}"
    r"|://[^/\s:@]+:[^/\s:@]+@"
    r'|"(auth|private_key|client_?secret|secret_?access_?key|password)"\s*:\s*"[^"]',
    re.IGNORECASE,
)
_TELLING_KEY: Final = re.compile(
    r"(^|[-_./])(password|passwd|private[-_]?key|client[-_]?secret|secret[-_]?access[-_]?key|api[-_]?key"
    r"|access[-_]?token|credentials?)$",
    re.IGNORECASE,
)


@resource_rule(
    "kubernetes-readable-no-credential",
    types=["kubernetes:"],
    level=EnforcementLevel.MANDATORY,
    description="No ConfigMap and no annotation holds what looks like a credential.",
    mend="put it into a Secret, and rotate it if it was ever deployed",
)
def holds_no_credential(kubernetes_object: Resource) -> Iterator[str]:
    """Refuse credentials where no reader is kept from them, and where logs and diffs show them."""
    yield from _telling("metadata.annotations", kubernetes_object.mapping("metadata", "annotations"))
    if kubernetes_object.type in _CONFIG_MAPS:
        yield from _telling("data", kubernetes_object.mapping("data"))
        yield from _telling("binaryData", kubernetes_object.mapping("binaryData"))


def _telling(path: str, values: Any) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, str) and value and (_TELLING_VALUE.search(value) or _TELLING_KEY.search(key)):
            yield f"{path}.{key} looks like a credential"
