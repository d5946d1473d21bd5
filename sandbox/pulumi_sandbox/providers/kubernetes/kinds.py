"""Kinds: how a resource's type names one, where the API serves it, and which types are not served here."""

from dataclasses import dataclass
from typing import Final

_PACKAGE: Final = "kubernetes"
_NOT_KINDS: Final = ("helm.sh/", "yaml", "kustomize")


@dataclass(frozen=True, slots=True)
class KubernetesKind:
    """A kind as the API serves it: `plural` is its word in paths."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of one object, or of the collection when no name is given."""
        place = f"/namespaces/{namespace or 'default'}" if self.namespaced else ""
        return f"{group_path(self.api_version)}{place}/{self.plural}" + (f"/{name}" if name else "")


def group_path(api_version: str) -> str:
    """Return the path under which a group and version is served."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def split(api_version: str) -> tuple[str, str]:
    """Return group (empty for the core) and version."""
    group, _, version = api_version.rpartition("/")
    return group, version


def of_type(type_token: str) -> tuple[str, str]:
    """Return the apiVersion and kind that `kubernetes:GROUP/VERSION:KIND` names."""
    _, module, kind = type_token.split(":")
    return module.removeprefix("core/"), kind


def refusal(type_token: str) -> str:
    """Say why a type is not served here; empty when it is."""
    package, _, rest = type_token.partition(":")
    module, _, kind = rest.partition(":")
    if package != _PACKAGE or "/" not in module or module.startswith(_NOT_KINDS):
        return f"{type_token} is not a kind of the Kubernetes API; declare the objects themselves"
    if is_built_in(module.removeprefix("core/")):
        if kind.endswith("List"):
            return f"{type_token} is a list, which cannot be created; declare its items"
        if kind.endswith("Patch"):
            return f"{type_token} patches the object of another owner, which is not served here"
    return ""


def is_built_in(api_version: str) -> bool:
    """Whether Kubernetes itself defines the kinds of this group and version."""
    group, _ = split(api_version)
    return "." not in group or group.endswith(".k8s.io")
