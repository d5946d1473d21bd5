"""What anybody with a look at the cluster can read: ConfigMaps, annotations, environments of containers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

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
    types=["kubernetes:*"],
    description="No ConfigMap, annotation or environment variable holds what looks like a credential.",
    mend="put it into a Secret and refer to it, and rotate it if it was ever deployed",
)
def kubernetes_readable_no_credential(kubernetes_object: Resource) -> Iterator[str]:
    """Refuse credentials where no reader is kept from them, and where logs and diffs show them."""
    yield from _telling("metadata.annotations", kubernetes_object.mapping("metadata", "annotations"))
    for path, variable in _environment("", kubernetes_object.inputs):
        if isinstance(variable.get("name"), str):
            yield from _telling(path, {variable["name"]: variable.get("value")})
    if kubernetes_object.type in _CONFIG_MAPS:
        yield from _telling("data", kubernetes_object.mapping("data"))
        yield from _telling("binaryData", kubernetes_object.mapping("binaryData"))


def _telling(path: str, values: Any) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, str) and value and (_TELLING_VALUE.search(value) or _TELLING_KEY.search(key)):
            yield f"{path}.{key} looks like a credential"


def _environment(path: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Find the variables of all containers, however deep the kind keeps its pods."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _environment(f"{path}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            if key == "env" and isinstance(item, list):
                yield from ((inner, variable) for variable in item if isinstance(variable, dict))
            else:
                yield from _environment(inner, item)
