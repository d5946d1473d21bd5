"""The provider itself, in plain values: the engine's calls for one resource."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, cast

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import (
    Kind,
    Path,
    Properties,
    Unknown,
    Value,
    contains_unknown,
    covers,
    get,
    text,
)
from pulumi_sandbox.providers.contract import (
    InputDiff,
    Package,
    Patience,
    Problem,
    Provider,
    ResourceKind,
    State,
    list_changes,
)
from pulumi_sandbox.providers.kubernetes import apply, objects
from pulumi_sandbox.providers.kubernetes.connection import Connection, KubernetesOptions, Pause
from pulumi_sandbox.providers.kubernetes.errors import explained
from pulumi_sandbox.providers.kubernetes.objects import declared_part, in_live_form

_IDENTITY: Final[tuple[Path, ...]] = (("metadata", "name"), ("metadata", "namespace"))


_BINDINGS: Final = {("rbac.authorization.k8s.io/v1", kind) for kind in ("ClusterRoleBinding", "RoleBinding")}


def _fixed(inputs: Properties, chosen: KubernetesOptions) -> tuple[Path, ...]:
    """Return the paths in these inputs whose changes require a replacement.

    Provider options decide whether the data of Secrets and ConfigMaps are mutable, unless the object itself
    is `immutable: true`.
    """
    kind = (text(inputs.get("apiVersion")), text(inputs.get("kind")))
    sealed = inputs.get("immutable") is True
    if kind == ("v1", "Secret"):
        data: tuple[Path, ...] = (("stringData",), ("data",)) if sealed or not chosen.secrets_mutable else ()
        return (*_IDENTITY, ("type",), *data)
    if kind == ("v1", "ConfigMap") and (sealed or not chosen.config_maps_mutable):
        return (*_IDENTITY, ("binaryData",), ("data",))
    role: tuple[Path, ...] = (("roleRef",),) if kind in _BINDINGS else ()
    return (*_IDENTITY, *role)


_TEXTS: Final = frozenset(
    {"clusterIdentifier", "context", "kubeconfig", "namespace", "pluginDownloadURL", "version"}
)
_SERVED: Final[dict[str, tuple[Value, ...]]] = {
    "enableConfigMapMutable": (True, False),
    "enablePatchForce": (False,),
    "enableSecretMutable": (True, False),
    "enableServerSideApply": (True,),
    "upsertExistingObjects": (False,),
}
"""Option that is not a string → its allowed values."""


def problems(config: Properties) -> list[Problem]:
    """Return the problems of the options, ignoring unknown ones.

    An option can be a value, or its text: the engine passes texts, programs pass values.
    """
    return [
        Problem(key, "it is not served here, or not with this value; leave it out")
        for key, value in sorted(config.items())
        if value not in (None, "") and not isinstance(value, Unknown) and not _is_served(key, value)
    ]


def _is_served(key: str, value: Value) -> bool:
    if key in _TEXTS:
        return isinstance(value, str | dict)
    with suppress(TypeError, ValueError):
        value = json.loads(cast("str", value))
    return value in _SERVED.get(key, ())


def read_options(given: Mapping[str, str]) -> KubernetesOptions:
    """Parse the options of Configure: texts by option name."""
    return KubernetesOptions(
        kubeconfig=given.get("kubeconfig", ""),
        context=given.get("context", ""),
        namespace=given.get("namespace", ""),
        secrets_mutable=given.get("enableSecretMutable") == "true",
        config_maps_mutable=given.get("enableConfigMapMutable") == "true",
    )


class KubernetesObject(ResourceKind):
    """One object of a cluster as a resource."""

    def __init__(self, urn: str, chosen: KubernetesOptions, api: Connection, pause: Pause) -> None:
        self._urn = urn
        self._options = chosen
        self._api = api
        self._pause = pause
        self._api_version, self._kind = objects.of_type(urns.parse(urn).type)

    def check(self, _old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Return the inputs, normalized and with a namespace, and their problems.

        Raises SandboxError if the cluster, which knows which kinds are namespaced, is unreachable.
        """
        inputs = objects.folded({"apiVersion": self._api_version, "kind": self._kind, **new})
        with explained("read the kind of", inputs):
            return objects.concealed(self._placed(inputs)), _problems(inputs)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare the new inputs with the recorded live values of the old ones, without a request.

        A replaced object is deleted before its successor with the same name and namespace is created.
        """
        inputs, live = objects.folded(new), objects.live_object(old.outputs)
        before = in_live_form(declared_part(live, objects.declared(old.outputs, old.inputs)), live)
        fixed = _fixed(inputs, self._options)

        def replaces(path: Path, kind: Kind) -> bool:
            return (kind == "delete" and path == ("metadata",)) or any(
                covers(field, path) or (covers(path, field) and get(inputs, field)[0]) for field in fixed
            )

        found = list_changes(before, in_live_form(inputs, live), ignored, replaces)
        return InputDiff(found, delete_first=objects.object_id(inputs) == objects.object_id(live))

    def preview_create(self, new: Properties) -> Properties:
        """Return the server's dry run; the inputs if the server cannot tell."""
        inputs = objects.folded(new)
        with explained("create", inputs):
            live = None if contains_unknown(new) else apply.preview_create(self._api, inputs)
        return new if live is None else objects.outputs(live, inputs, recorded={}, urn=self._urn)

    def create(self, urn: str, new: Properties) -> State:
        """Create the object."""
        inputs, manager = objects.folded(new), objects.manager_of(urn)
        with explained("create", inputs, manager=manager):
            live = apply.create(self._api, urn, inputs, manager=manager, pause=self._pause)
        return State(objects.object_id(live), objects.outputs(live, inputs, recorded={}, urn=urn), {})

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the server's dry run; the inputs if the server cannot tell."""
        return new if contains_unknown(new) else self._changed(old, new, apply.preview_update)

    def update(self, old: State, new: Properties) -> Properties:
        """Update the object to the new inputs."""
        return self._changed(old, new, apply.update)

    def _changed(self, old: State, new: Properties, change: Callable[..., Properties | None]) -> Properties:
        inputs, manager = objects.folded(new), objects.field_manager(old.outputs, self._urn)
        with explained("update", inputs, manager=manager):
            live = change(self._api, objects.live_object(old.outputs), inputs, manager=manager)
        return new if live is None else objects.outputs(live, inputs, recorded=old.outputs, urn=self._urn)

    def read(self, old: State) -> State | None:
        """Return the live object, and the live values of its inputs.

        Without old inputs (`.get`, import), everything that the server did not add itself counts as declared.
        """
        old_inputs = objects.folded(old.inputs)
        namespace, name = objects.parse_id(old.id)
        known: Properties = {"apiVersion": self._api_version, "kind": self._kind, **old.outputs, **old_inputs}
        identity = objects.with_metadata(known, namespace=namespace, name=name)
        with explained("read", identity):
            live = apply.read(self._api, identity)
        if live is None:
            return None
        own = objects.without_status(live)
        inputs = declared_part(live, old_inputs) if old_inputs else objects.folded(own)
        outputs = objects.outputs(live, inputs, recorded=old.outputs, urn=self._urn)
        return State(old.id, outputs, objects.concealed(inputs))

    def delete(self, old: State, seconds: float) -> None:
        """Delete the object and wait until it is gone."""
        live = objects.live_object(old.outputs)
        with explained("delete", live):
            apply.delete(self._api, live, seconds=seconds, pause=self._pause)

    def _placed(self, inputs: Properties) -> Properties:
        if not isinstance(inputs.get("metadata"), dict):
            return inputs
        found = self._api.find(text(inputs.get("apiVersion")), text(inputs.get("kind")))
        if found is not None and not found.namespaced:
            return objects.with_metadata(inputs, namespace=None)
        # A kind that the server does not know is assumed to be namespaced.
        given = objects.metadata(inputs).get("namespace")
        return objects.with_metadata(inputs, namespace=given or self._api.default_namespace)


def _problems(inputs: Properties) -> list[Problem]:
    if objects.metadata(inputs).get("name") or isinstance(inputs.get("metadata"), Unknown):
        return []
    return [Problem("metadata.name", "no name is made up here; give the object one", unserved=True)]


def package() -> Package:
    """Return the package `kubernetes`, before a cluster is chosen."""
    return Package(
        title="Kubernetes",
        version="4.34.2",
        served="objects: no charts, definitions, lists or patches",
        problems=problems,
        configure=of_cluster,
    )


def of_cluster(
    given: Mapping[str, str],
    connect: Callable[[KubernetesOptions], Connection] = Connection,
    kind: type[KubernetesObject] = KubernetesObject,
) -> Provider:
    """Return the provider of a cluster, without a request. kind: handles each object."""
    chosen = read_options(given)
    api = connect(chosen)
    patience = Patience(lambda: api.place)

    def serve(urn: str) -> KubernetesObject | None:
        served = objects.is_served(urns.parse(urn).type)
        return kind(urn, chosen, api, patience.wait) if served else None

    return Provider(serve, patience.cancel)
