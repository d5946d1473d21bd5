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

_SERVED: Final[dict[str, tuple[Value, ...]]] = {
    **dict.fromkeys(("enableConfigMapMutable", "enableSecretMutable"), (True, False)),
    **dict.fromkeys(("suppressDeprecationWarnings", "suppressHelmHookWarnings"), (True, False)),
    "enableServerSideApply": (True,),
    **dict.fromkeys(("enablePatchForce", "upsertExistingObjects"), (False,)),
    **dict.fromkeys(("deleteUnreachable", "skipUpdateUnreachable"), (False,)),
    **dict.fromkeys(("alwaysRender", "strictMode"), (False,)),
    **dict.fromkeys(("helmReleaseSettings", "kubeClientSettings"), ({},)),
}
"""What each option that is not a string may be."""


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
    if key not in _SERVED:
        return "there is no such option, or it is not served here"
    return "" if _read(value) in _SERVED[key] else "it is not served here with this value"


def _read(given: Value) -> Value:
    """Return the value a text stands for."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return given
