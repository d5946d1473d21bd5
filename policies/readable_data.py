"""Policies for data that anyone can read: ConfigMaps, annotations, environment variables of containers."""

from __future__ import annotations

import base64
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
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bglpat-[\w-]{20,}",
    re.IGNORECASE,
)
_TELLING_KEY: Final = re.compile(
    r"(^|[-_./])((pg)?password|passwd|private[-_]?key|client[-_]?secret|secret[-_]?access[-_]?key|api[-_]?key"
    r"|(access|api|auth|bearer|bot|gh|github|gitlab|npm|refresh|session|slack|vault)[-_]?token|credentials?)$"
    r"|[-_./]pwd$",
    re.IGNORECASE,
)
_NEW_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LOGIN: Final = re.compile(r"://[^/\s:@]+:([^/\s:@]+)@")
_MEMBER: Final = re.compile(
    r'"(?:auth|private_key|client_?secret|secret_?access_?key|password)\\*"\s*:\s*\\*"([^"\\]+)',
    re.IGNORECASE,
)
_LINE: Final = re.compile(
    r"""^(?:export )?([A-Z][A-Z0-9_]*|[a-z][\w-]*(?:\.[\w-]+)+)=(["']?)([^\s"'()\[\]]+)\2\s*$""", re.MULTILINE
)
"""A line of environment variables or properties; lines of code do not match."""

_NO_CREDENTIAL: Final = re.compile(
    r"\$\(.*\)|\$\{\w+\}|\$\w+|\{\{.*\}\}|<[^>]*>"  # placeholders that are replaced later
    r"|(/[\w.@-]+){2,}"  # file paths
    r"|(?i:yes|no|true|false|on|off|none|null|enabled|disabled|required|optional)|",
    re.DOTALL,
)


@resource_rule(
    types=["kubernetes:*"],
    description="A ConfigMap, annotation, or environment variable must not contain a credential.",
    fix="put it into a Secret and refer to it, and rotate it if it was ever deployed",
)
def kubernetes_readable_no_credential(kubernetes_object: Resource) -> Iterator[str]:
    """Reject credentials in data that is open to every reader, and that logs and diffs show."""
    for path, shown in _shown("", kubernetes_object.inputs):
        yield from _telling(path, shown)
    if kubernetes_object.type in _CONFIG_MAPS:
        yield from _telling("data", kubernetes_object.mapping("data"))
        binary = kubernetes_object.mapping("binaryData")
        yield from _telling("binaryData", {key: _decoded(value) for key, value in binary.items()})


def _telling(path: str, values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, str) and (_is_credential(key, value) or _holds_credential(value)):
            yield f"{path}.{key} looks like a credential"


def _is_credential(key: str, value: str) -> bool:
    return bool(_TELLING_KEY.search(_NEW_WORD.sub("_", key))) and not _NO_CREDENTIAL.fullmatch(value.strip())


def _holds_credential(text: str) -> bool:
    said = (*_LOGIN.findall(text), *_MEMBER.findall(text))
    return (
        _TELLING_VALUE.search(text) is not None
        or any(not _NO_CREDENTIAL.fullmatch(one) for one in said)
        or any(_is_credential(key, value) for key, _, value in _LINE.findall(text))
    )


def _decoded(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True).decode(errors="replace")
    except (TypeError, ValueError):
        return value


def _shown(path: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield annotations and containers' variables with their paths, wherever the kind has its pods."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _shown(f"{path}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            if key == "env" and isinstance(item, list):
                yield from ((inner, named) for one in item if (named := _variable(one)))
            elif inner.endswith("metadata.annotations") and isinstance(item, dict):
                yield inner, item
            else:
                yield from _shown(inner, item)


def _variable(value: Any) -> Mapping[str, Any]:
    named = isinstance(value, dict) and isinstance(value.get("name"), str)
    return {value["name"]: value.get("value")} if named else {}
