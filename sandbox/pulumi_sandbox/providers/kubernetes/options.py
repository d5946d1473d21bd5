"""The provider's options: which ones are taken, and what they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Unknown, Value
from pulumi_sandbox.providers.contract import Problem

_TEXTS: Final = frozenset({"clusterIdentifier", "context", "kubeconfig", "namespace"})
_ENGINE_OWN: Final = frozenset({"pluginDownloadURL", "version"})

_EITHER: Final = ((True, False), "it must be true or false")
_CHOICES: Final[dict[str, tuple[tuple[Value, ...], str]]] = {
    "enableConfigMapMutable": _EITHER,
    "enableSecretMutable": _EITHER,
    "suppressDeprecationWarnings": _EITHER,
    "suppressHelmHookWarnings": _EITHER,
    "enableServerSideApply": ((True,), "only server-side apply is served here"),
    "enablePatchForce": ((False,), "it takes fields from their owners"),
    "upsertExistingObjects": ((False,), "with it a renamed resource deletes the live object; use an alias"),
    "deleteUnreachable": ((False,), "a cluster out of reach is an error here"),
    "skipUpdateUnreachable": ((False,), "a cluster out of reach is an error here"),
    "alwaysRender": ((False,), "manifests are not rendered here"),
    "renderYamlToDirectory": ((), "manifests are not rendered here"),
    "strictMode": ((False,), "it is not served here"),
    "helmReleaseSettings": (({},), "charts are not served here"),
    "kubeClientSettings": (({},), "it is not served here"),
}
"""What each option that is not a string may be, and why nothing else."""


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """The options of one provider; empty texts mean what the kubeconfig says."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    secrets_mutable: bool = False
    config_maps_mutable: bool = False


def problems(config: Properties) -> list[Problem]:
    """List what is wrong with the options, unknown ones passed over.

    An option may come as a value, or as the text of one: the engine hands providers texts, programs give
    values.
    """
    return [
        Problem(key, said)
        for key, value in sorted(config.items())
        if value not in (None, "") and not isinstance(value, Unknown) and (said := _reason(key, value))
    ]


def read(given: Mapping[str, str]) -> KubernetesOptions:
    """Read the options from what Configure is given: texts by the options' names."""
    return KubernetesOptions(
        kubeconfig=given.get("kubeconfig", ""),
        context=given.get("context", ""),
        namespace=given.get("namespace", ""),
        secrets_mutable=given.get("enableSecretMutable") == "true",
        config_maps_mutable=given.get("enableConfigMapMutable") == "true",
    )


def _reason(key: str, value: Value) -> str:
    if key in _ENGINE_OWN:
        return ""
    if key in _TEXTS:
        return "" if isinstance(value, str | dict) else "it must be a text"
    allowed, reason = _CHOICES.get(key, ((), "there is no such option, or it is not served here"))
    return "" if _read(value) in allowed else reason


def _read(given: Value) -> Value:
    """Return the value a text stands for."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return given
