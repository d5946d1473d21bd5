"""The provider's options: which ones are taken, what they mean, when a change of them replaces all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_sandbox.protocol.values import Properties, Unknown, Value, equal
from pulumi_sandbox.providers.contract import Problem
from pulumi_sandbox.providers.kubernetes.kubeconfig import Kubeconfig
from pulumi_sandbox.providers.options import option_problems, option_value

_TEXTS: Final = frozenset({"cluster", "clusterIdentifier", "context", "kubeconfig", "namespace"})
_ENGINE_OWN: Final = frozenset({"pluginDownloadURL", "version"})
_CLUSTER_KEYS: Final = ("kubeconfig", "context", "cluster")

_EITHER: Final = ((True, False), "it must be true or false")
_CHOICES: Final[dict[str, tuple[tuple[Value, ...], str]]] = {
    "enableConfigMapMutable": _EITHER,
    "enableSecretMutable": _EITHER,
    "suppressDeprecationWarnings": _EITHER,
    "suppressHelmHookWarnings": _EITHER,
    "enableServerSideApply": ((True,), "only server-side apply is served here"),
    "enablePatchForce": (
        (False,),
        "it takes fields from their owners; annotate single objects with patchForce",
    ),
    "upsertExistingObjects": ((False,), "with it a renamed resource deletes the live object; use an alias"),
    "deleteUnreachable": ((False,), "a cluster out of reach is an error here"),
    "skipUpdateUnreachable": ((False,), "a cluster out of reach is an error here"),
    "alwaysRender": ((False,), "manifests are not rendered here"),
    "renderYamlToDirectory": ((), "manifests are not rendered here"),
    "strictMode": ((False,), "it is not served here"),
    "helmReleaseSettings": (({},), "charts are not served here"),
    "kubeClientSettings": (({},), "it is not served here"),
}
"""What each option that is no text may be, and why nothing else."""


@dataclass(frozen=True, slots=True)
class KubernetesOptions:
    """The options of one provider; empty texts mean what the kubeconfig says.

    folder: whence a relative path of the kubeconfig is meant.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    namespace: str = ""
    secrets_mutable: bool = False
    config_maps_mutable: bool = False
    folder: Path = Path()


def problems(config: Properties) -> list[Problem]:
    """List what is wrong with the options, unknown ones passed over.

    An option may come as a value, or as the text of one: the engine hands providers texts, programs give
    values.
    """
    return option_problems(config, _reason, {})


def read(given: Mapping[str, str], folder: Path = Path()) -> KubernetesOptions:
    """Read the options from what Configure is given: texts by the options' names."""
    return KubernetesOptions(
        kubeconfig=given.get("kubeconfig", ""),
        context=given.get("context", ""),
        cluster=given.get("cluster", ""),
        namespace=given.get("namespace", ""),
        secrets_mutable=given.get("enableSecretMutable") == "true",
        config_maps_mutable=given.get("enableConfigMapMutable") == "true",
        folder=folder,
    )


def replacing_keys(
    old: Properties, new: Properties, read_kubeconfig: Callable[[str], Kubeconfig | None]
) -> list[str]:
    """List the changed options that mean another cluster, so that all objects have to be made anew there.

    A cluster has no identity to ask for, so it is another one when the address or the trust of the chosen
    cluster in the kubeconfig differs, or when the option is not known yet. With `clusterIdentifier` set, that
    option alone decides; setting or dropping it replaces nothing.
    """
    old_identity, identity = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if identity is not None and old_identity is not None:
        return [] if equal(identity, old_identity) else ["clusterIdentifier"]
    changed = [key for key in _CLUSTER_KEYS if not equal(old.get(key), new.get(key))]
    unknown = [key for key in changed if isinstance(new.get(key), Unknown)]
    if unknown or not changed:
        return unknown
    before, after = _active(old, read_kubeconfig), _active(new, read_kubeconfig)
    return changed if before is not None and after is not None and before != after else []


def _reason(key: str, value: Value) -> str:
    if key in _ENGINE_OWN:
        return ""
    if key in _TEXTS:
        return "" if isinstance(value, str | dict) else "it must be a text"
    allowed, reason = _CHOICES.get(key, ((), "there is no such option, or it is not served here"))
    return "" if option_value(value) in allowed else reason


def _active(config: Properties, read_kubeconfig: Callable[[str], Kubeconfig | None]) -> Properties | None:
    given = config.get("kubeconfig")
    text = json.dumps(given) if isinstance(given, dict) else given
    loaded = read_kubeconfig(text) if isinstance(text, str) and text else None
    if loaded is None:
        return None
    context, cluster = config.get("context"), config.get("cluster")
    return loaded.cluster(
        context if isinstance(context, str) else "", cluster if isinstance(cluster, str) else ""
    )
