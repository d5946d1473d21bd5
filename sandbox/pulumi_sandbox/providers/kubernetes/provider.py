"""The provider itself, in plain values: what each call of the engine means for one resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns, values
from pulumi_sandbox.protocol.values import (
    Kind,
    Path,
    Properties,
    Unknown,
    Value,
    contains_unknown,
    differences,
    text,
)
from pulumi_sandbox.providers.contract import Change, InputDiff, Package, Problem, State
from pulumi_sandbox.providers.dispatch import Patience
from pulumi_sandbox.providers.kubernetes import apply, objects, options
from pulumi_sandbox.providers.kubernetes.connection import Connection
from pulumi_sandbox.providers.kubernetes.objects import declared_part, in_live_form
from pulumi_sandbox.providers.kubernetes.options import KubernetesOptions

_IDENTITY: Final[tuple[Path, ...]] = (("metadata", "name"), ("metadata", "namespace"))


_BINDINGS: Final = {("rbac.authorization.k8s.io/v1", kind) for kind in ("ClusterRoleBinding", "RoleBinding")}


def fields(inputs: Properties, chosen: KubernetesOptions) -> tuple[Path, ...]:
    """Return the paths that a change of these inputs must not touch.

    Whether the data of Secrets and ConfigMaps may change is the provider's options to say, unless the
    object itself is `immutable: true`.
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


def touched(path: Path, value: Value, pattern: Path) -> bool:
    """Whether a change at `path` to `value` reaches the field, something in it, or around it."""
    for depth, wanted in enumerate(pattern):
        if depth < len(path):
            if wanted != path[depth]:
                return False
        elif isinstance(value, dict) and isinstance(wanted, str) and wanted in value:
            value = value[wanted]
        else:
            return False
    return True


class Provider:
    """The Kubernetes objects of one cluster as resources. Safe for concurrent calls."""

    def __init__(self, chosen: KubernetesOptions, api: Connection) -> None:
        self._options = chosen
        self._api = api
        self._patience = Patience(lambda: api.place, what="an object")

    def cancel(self) -> None:
        """End every wait with an error; requests in flight finish."""
        self._patience.cancel()

    def check(self, urn: str, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Complete the inputs: folded, placed in a namespace; and tell what is wrong with them.

        Raises SandboxError when the cluster, which knows which kinds are namespaced, is out of reach.
        """
        del old
        type_ = urns.parse(urn).type
        if reason := objects.refusal(type_):
            return new, [Problem("", reason)]
        api_version, kind = objects.of_type(type_)
        inputs = objects.plain({"apiVersion": api_version, "kind": kind, **new})
        return objects.concealed(self._placed(inputs), new), _problems(inputs)

    def diff(self, _urn: str, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare the new inputs with the recorded live object; asks no server."""
        inputs = objects.plain(new)
        return judge(
            objects.live_object(old.outputs),
            objects.declared(old.outputs, old.inputs),
            inputs,
            unchangeable=fields(inputs, self._options),
            ignored=ignored,
        )

    def create(self, urn: str, new: Properties, *, preview: bool) -> State:
        """Create the object; in a preview ask the server what it would become, as far as that can tell."""
        inputs, manager = objects.plain(new), objects.manager_of(urn)
        if not preview:
            live = apply.create(self._api, urn, inputs, manager=manager, pause=self._patience.wait)
        elif contains_unknown(inputs) or (live := apply.preview_create(self._api, inputs)) is None:
            return State("", new, {})
        return _made(live, inputs, new, {}, urn, preview=preview)

    def update(self, urn: str, old: State, new: Properties, *, preview: bool) -> State:
        """Bring the object to the new inputs; in a preview as `create`."""
        inputs, recorded = objects.plain(new), objects.live_object(old.outputs)
        manager = objects.field_manager(old.outputs, urn)
        if not preview:
            live = apply.update(self._api, recorded, inputs, manager=manager)
        elif (
            contains_unknown(inputs)
            or (live := apply.preview_update(self._api, recorded, inputs, manager=manager)) is None
        ):
            return State("", new, {})
        return _made(live, inputs, new, old.outputs, urn, preview=preview)

    def read(self, urn: str, old: State) -> State:
        """Return the live object, and of the inputs what is live of them; an empty id tells that it is gone.

        Without old inputs (`.get`, import) everything the server did not add itself counts as declared.

        Raises SandboxError when the object may not be read.
        """
        live_before = objects.live_object(old.outputs)
        api_version, kind = objects.of_type(urns.parse(urn).type)
        old_inputs = objects.plain(old.inputs) if old.inputs else {}
        identity: Properties = {"apiVersion": api_version, "kind": kind, **live_before, **old_inputs}
        live = apply.read(self._api, identity, *objects.parse_id(old.id))
        if live is None:
            return State("", {}, {})
        own = {key: value for key, value in live.items() if key != "status"}
        inputs = objects.declared_part(live, old_inputs) if old_inputs else objects.folded(own)
        outputs = objects.outputs(live, inputs, model=old.inputs, recorded=old.outputs, urn=urn)
        return State(old.id, outputs, objects.concealed(inputs, old.inputs))

    def delete(self, _urn: str, old: State, seconds: float) -> None:
        """Delete the object and wait until it is gone.

        Raises SandboxError when the server refuses, or the object is still there when the time is over.
        """
        live = objects.live_object(old.outputs)
        apply.delete(self._api, live, seconds=seconds, pause=self._patience.wait)

    def invoke(self, token: str, _args: Properties) -> Properties:
        """Refuse: the functions of this package turn charts and manifests into objects."""
        raise SandboxError(
            code="not-served",
            place=token,
            problem="the sandbox's Kubernetes provider has no functions",
            fix="declare the objects themselves",
        )

    def _placed(self, inputs: Properties) -> Properties:
        if not isinstance(inputs.get("metadata"), dict):
            return inputs
        if not self._is_namespaced(inputs):
            return objects.with_metadata(inputs, namespace=None)
        if objects.metadata(inputs).get("namespace"):
            return inputs
        return objects.with_metadata(inputs, namespace=self._api.default_namespace)

    def _is_namespaced(self, inputs: Properties) -> bool:
        """Ask the server; a kind that it does not know is taken for namespaced."""
        found = self._api.find(text(inputs.get("apiVersion")), text(inputs.get("kind")))
        return found is None or found.namespaced


def _problems(inputs: Properties) -> list[Problem]:
    if objects.metadata(inputs).get("name") or isinstance(inputs.get("metadata"), Unknown):
        return []
    return [Problem("metadata.name", "no name is made up here; give the object one", unserved=True)]


def _made(
    live: Properties, inputs: Properties, new: Properties, recorded: Properties, urn: str, *, preview: bool
) -> State:
    shown = {key: value for key, value in live.items() if not (preview and key == "status")}
    outputs = objects.outputs(shown, inputs, model=new, recorded=recorded, urn=urn)
    return State("" if preview else objects.object_id(live), outputs, {})


def judge(
    live: Properties,
    old_inputs: Properties,
    inputs: Properties,
    *,
    unchangeable: tuple[Path, ...],
    ignored: tuple[Path, ...],
) -> InputDiff:
    """Compare the new inputs with what is live of the old ones; both sides folded, without secrets.

    An object has to go before its successor of the same name and namespace can come.
    """
    before = in_live_form(declared_part(live, old_inputs), live)
    found = tuple(
        Change(
            difference.path,
            difference.kind,
            _replaces(difference.path, difference.kind, inputs, unchangeable),
        )
        for difference in differences(before, in_live_form(inputs, live))
        if not any(values.covers(pattern, difference.path) for pattern in ignored)
    )
    return InputDiff(found, delete_first=objects.object_id(inputs) == objects.object_id(live))


def _replaces(path: Path, kind: Kind, inputs: Properties, unchangeable: tuple[Path, ...]) -> bool:
    if kind == "delete" and path == ("metadata",):
        return True
    _, value = values.get(inputs, path)
    return any(touched(path, value, pattern) for pattern in unchangeable)


def package() -> Package:
    """Return the package `kubernetes` as the engine meets it, before a cluster is chosen."""
    return Package(
        title="Kubernetes",
        version="4.34.2",
        problems=options.problems,
        configure=_configure,
    )


def _configure(given: Mapping[str, str]) -> Provider:
    """Take the options; the cluster is not asked for anything yet."""
    chosen = options.read(given)
    return Provider(chosen, Connection(chosen))
