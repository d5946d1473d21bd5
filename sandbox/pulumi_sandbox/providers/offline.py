"""The local providers as ones that ask nothing: they know what a recorded state says, and nothing else.

`python -m … PACKAGE FILE ENGINE` serves one; FILE has what is recorded, as JSON.

What a server alone could tell of a resource that would be made or changed is left unknown, as in any preview.
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
from pulumi_sandbox.providers.contract import Package, Problem, Provider, State
from pulumi_sandbox.providers.gcp.package import package as gcp
from pulumi_sandbox.providers.gcp.package import shown
from pulumi_sandbox.providers.kubernetes import objects, options
from pulumi_sandbox.providers.kubernetes.connection import Connection
from pulumi_sandbox.providers.kubernetes.objects import KubernetesKind
from pulumi_sandbox.providers.kubernetes.provider import Provider as KubernetesProvider
from pulumi_sandbox.providers.kubernetes.provider import package as kubernetes
from pulumi_sandbox.providers.server import serve

_GET_SECRETS: Final = "gcp:secretmanager/getSecrets:getSecrets"
_GCP_SECRET: Final = "gcp:secretmanager/secret:Secret"  # noqa: S105 - the name of a type
_OF_THE_CLUSTER: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "Namespace",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
"""Kinds of Kubernetes itself that are in no namespace; any other is looked up in what is recorded."""

Recorded = Mapping[str, tuple[str, str, Properties]]
"""URN → type, id and outputs of what a state has."""


def offline(package: str, recorded: Recorded) -> Package:
    """Return a package that answers by what is recorded."""
    match package:
        case "kubernetes":
            return replace(kubernetes(), configure=partial(_kubernetes, recorded), problems=_anything)
        case "gcp":
            return _Silent.over(gcp(), recorded)
        case _:
            return _Silent.over(azure_native(), recorded)


def _anything(_options: Properties) -> list[Problem]:
    """Take options that a local provider could not serve: those of genuine clouds."""
    return []


def _kubernetes(recorded: Recorded, given: Mapping[str, str]) -> Provider:
    chosen = options.read(given)
    return _Kubernetes(chosen, recorded)


class _NoConnection(Connection):
    """No connection: which kinds are in namespaces is told by what is recorded."""

    def __init__(self, chosen: options.KubernetesOptions, recorded: Recorded) -> None:
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
        """Return the namespace that is there in any cluster."""
        return "default"

    def find(self, api_version: str, kind: str) -> KubernetesKind | None:
        """Return how a kind is served; its word in paths is not used."""
        built_in = objects.is_built_in(api_version) and kind in _OF_THE_CLUSTER
        return KubernetesKind(api_version, kind, not (built_in or (api_version, kind) in self._wide))

    def send(self, *_args: Any, **_options: Any) -> NoReturn:
        """Refuse."""
        raise _unasked("the Kubernetes API")


class _Kubernetes(KubernetesProvider):
    """Objects as they are recorded."""

    def __init__(self, chosen: options.KubernetesOptions, recorded: Recorded) -> None:
        super().__init__(chosen, _NoConnection(chosen, recorded))
        self._recorded = recorded

    def check(self, urn: str, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Take what only the local provider does not serve."""
        return _taken(*super().check(urn, old, new))

    def create(self, urn: str, new: Properties, *, preview: bool) -> State:
        """Return the inputs."""
        return State("", new, {}) if preview else super().create(urn, new, preview=False)

    def update(self, urn: str, old: State, new: Properties, *, preview: bool) -> State:
        """Return what is recorded, with the new inputs over it."""
        if not preview:
            return super().update(urn, old, new, preview=False)
        own = {key: value for key, value in objects.live_object(old.outputs).items() if key != "status"}
        return State("", objects.concealed(_over(own, objects.plain(new)), new), {})

    def read(self, urn: str, old: State) -> State:
        """Return what is recorded."""
        return _as_recorded(self._recorded, urn, old)


class _Silent:
    """Another provider, of which only that is asked which needs no answer from outside."""

    def __init__(self, provider: Provider, recorded: Recorded) -> None:
        self._provider = provider
        self._recorded = recorded

    @classmethod
    def over(cls, package: Package, recorded: Recorded) -> Package:
        """Return the package with its providers silenced."""

        def configure(given: Mapping[str, str]) -> Provider:
            return cast("Provider", cls(package.configure(given), recorded))

        return replace(package, configure=configure, problems=_anything)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def check(self, urn: str, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Take what only the local provider does not serve."""
        return _taken(*self._provider.check(urn, old, new))

    def read(self, urn: str, old: State) -> State:
        """Return what is recorded."""
        return _as_recorded(self._recorded, urn, old)

    def invoke(self, token: str, args: Properties) -> Properties:
        """Answer from what is recorded: the entries of a project in Secret Manager."""
        if token != _GET_SECRETS:
            raise _unasked(token)
        project = args.get("project")
        entries = [each for type_, _, each in self._recorded.values() if type_ == _GCP_SECRET]
        found = [
            {**shown(each), "project": project, "secretId": each.get("secretId")}
            for each in entries
            if each.get("project") == project
        ]
        return {
            "filter": args.get("filter"),
            "id": f"projects/{project}/secrets",
            "project": project,
            "secrets": cast("list[Value]", found),
        }


def _taken(inputs: Properties, problems: list[Problem]) -> tuple[Properties, list[Problem]]:
    return inputs, [problem for problem in problems if not problem.unserved]


def _as_recorded(recorded: Recorded, urn: str, old: State) -> State:
    _, id_, outputs = recorded.get(urn, ("", "", {}))
    if id_ != old.id:  # it was not looked at when the state was recorded
        return State(old.id, recorded[UNSEEN][2], old.inputs)
    return State(old.id, outputs, old.inputs)


def _over(below: Properties, above: Properties) -> Properties:
    """Lay objects over each other, as deep as both have them."""
    return {
        **below,
        **{
            key: _over(known, value)
            if isinstance(value, dict) and isinstance(known := below.get(key), dict) and key != "data"
            else value
            for key, value in above.items()
        },
    }


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
