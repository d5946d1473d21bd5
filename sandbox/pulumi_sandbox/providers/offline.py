"""Variants of the local providers without any requests: they only know a recorded state.

`python -m … PACKAGE FILE ENGINE` serves one; FILE contains the record as JSON. Values that only a server
could tell are unknown, as in any preview.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, Value
from pulumi_sandbox.providers import UNSEEN
from pulumi_sandbox.providers.azure_native.package import package as azure_native
from pulumi_sandbox.providers.contract import Function, Package, Problem, Provider, ResourceKind, State
from pulumi_sandbox.providers.gcp.package import GET_SECRETS, SECRET, shown
from pulumi_sandbox.providers.gcp.package import package as gcp
from pulumi_sandbox.providers.kubernetes import objects
from pulumi_sandbox.providers.kubernetes.connection import Connection, KubernetesOptions
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind
from pulumi_sandbox.providers.kubernetes.provider import KubernetesObject, of_cluster
from pulumi_sandbox.providers.kubernetes.provider import package as kubernetes
from pulumi_sandbox.providers.server import serve

_OF_THE_CLUSTER: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "Namespace",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
"""Cluster-scoped built-in kinds; others are looked up in the recorded values."""

Recorded = Mapping[str, tuple[str, str, Properties]]
"""URN → type, ID and outputs from a state."""


_PACKAGES: Final = {"azure-native": azure_native, "gcp": gcp, "kubernetes": kubernetes}


def offline(name: str, recorded: Recorded) -> Package:
    """Return a package that answers from the record.

    It accepts options and inputs that a local provider cannot serve: those of genuine clouds.
    """
    package = _PACKAGES[name]()

    def configure(given: Mapping[str, str]) -> Provider:
        if name == "kubernetes":
            provider = of_cluster(given, lambda chosen: _NoConnection(chosen, recorded), _Object)
        else:
            provider = package.configure(given)

        def kind(urn: str) -> ResourceKind | None:
            found = provider.kind(urn)
            return found and cast("ResourceKind", _Silent(found, urn, recorded))

        return replace(provider, kind=kind, function=partial(_function, recorded))

    return replace(package, configure=configure, problems=_no_problems)


def _no_problems(_options: Properties) -> list[Problem]:
    return []


class _NoConnection(Connection):
    """No connection: the record tells which kinds are namespaced."""

    def __init__(self, chosen: KubernetesOptions, recorded: Recorded) -> None:
        super().__init__(chosen)
        self._wide = {
            objects.of_type(type_)
            for type_, _, outputs in recorded.values()
            if type_.startswith("kubernetes:")
            and isinstance(metadata := outputs.get("metadata"), dict)
            and not metadata.get("namespace")
        }

    @property
    def default_namespace(self) -> str:
        """Return the namespace that exists in any cluster."""
        return "default"

    def find(self, api_version: str, kind: str) -> KubernetesKind | None:
        """Return how a kind is served; its name in paths is not used."""
        built_in = objects.is_built_in(api_version) and kind in _OF_THE_CLUSTER
        return KubernetesKind(api_version, kind, not (built_in or (api_version, kind) in self._wide))

    def send(self, *_args: Any, **_options: Any) -> NoReturn:
        """Raise an error."""
        raise _unasked("the Kubernetes API")


class _Object(KubernetesObject):
    """An object that is previewed without a server."""

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs."""
        return new

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the recorded object, overridden by the new inputs."""
        own = objects.without_status(objects.live_object(old.outputs))
        return objects.concealed(objects.merged(own, objects.folded(new)))


class _Silent:
    """Another kind, limited to the calls that need no request."""

    def __init__(self, kind: ResourceKind, urn: str, recorded: Recorded) -> None:
        self._kind = kind
        self._urn = urn
        self._recorded = recorded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Accept inputs that only the local provider does not serve."""
        inputs, problems = self._kind.check(old, new)
        return inputs, [problem for problem in problems if not problem.unserved]

    def read(self, old: State) -> State:
        """Return the recorded resource."""
        _, id_, outputs = self._recorded.get(self._urn, ("", "", {}))
        if id_ != old.id:  # it was not read when the state was recorded
            outputs = self._recorded[UNSEEN][2]
        return State(old.id, outputs, old.inputs)


def _function(recorded: Recorded, token: str) -> Function:
    """Return a function that answers from the record: the secrets of a project in Secret Manager."""
    if token != GET_SECRETS:
        raise _unasked(token)

    def get_secrets(args: Properties) -> Properties:
        project = args.get("project")
        found: list[Value] = [
            {**shown(each), "project": project, "secretId": each.get("secretId")}
            for type_, _, each in recorded.values()
            if type_ == SECRET and each.get("project") == project
        ]
        name = f"projects/{project}/secrets"
        return {"filter": args.get("filter"), "id": name, "project": project, "secrets": found}

    return get_secrets


def _unasked(place: str) -> SandboxError:
    return SandboxError(
        code="not-recorded",
        place=place,
        problem="no cluster is asked here, and the record does not say",
        fix="preview with the cluster, or deploy and record the state again",
    )


if __name__ == "__main__":
    named, file = sys.argv[1:3]
    serve(offline(named, json.loads(Path(file).read_bytes())))
