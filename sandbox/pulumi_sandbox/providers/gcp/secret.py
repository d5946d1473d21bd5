"""`gcp:secretmanager/secret:Secret`: the entry that versions hang on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Path,
    Properties,
    Unknown,
    Value,
    contains_unknown,
    equal,
    text,
)
from pulumi_sandbox.providers.contract import InputDiff, Problem, State, already_exists
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.gcp import names
from pulumi_sandbox.providers.gcp.options import GoogleOptions
from pulumi_sandbox.providers.inputs import Input, changes, declared, problems, with_defaults
from pulumi_sandbox.providers.rest import Rest, ServiceRefusedError, ask, ask_for, refused

ATTRIBUTION: Final[Properties] = {"goog-pulumi-provisioned": "true"}


def planned(declared: Value, recorded: Properties | None) -> Properties:
    """Return the outputs `labels`, `pulumiLabels` and `effectiveLabels` as declared labels ask for them.

    `recorded` are the outputs of the secret, None for a new one, which gets the label that names Pulumi.
    """
    if contains_unknown(declared):
        return {"labels": declared, "pulumiLabels": UNKNOWN, "effectiveLabels": UNKNOWN}
    before = _object((recorded or {}).get("effectiveLabels"))
    attributed = recorded is None or ATTRIBUTION.keys() <= before.keys()
    own: Properties = {**(ATTRIBUTION if attributed else {}), **_object(declared)}
    return {
        "labels": _object(declared),
        "pulumiLabels": own,
        "effectiveLabels": {**_others(before, (recorded or {}).get("pulumiLabels")), **own},
    }


def live_part(live: Value, recorded: Value) -> Properties:
    """Return what is live of the keys that are recorded."""
    present = _object(live)
    return {key: present[key] for key in _object(recorded) if key in present}


def _others(present: Properties, own: Value) -> Properties:
    owned = _object(own)
    return {key: value for key, value in present.items() if key not in owned}


def _object(value: Value) -> Properties:
    return value if isinstance(value, dict) else {}


_REPLICAS: Final = Input("objects", required=True, fields={"location": Input(required=True)})
_REPLICATION_KINDS: Final = {
    "auto": Input("object"),
    "userManaged": Input("object", fields={"replicas": _REPLICAS}),
}
_REPLICATION: Final = Input("object", required=True, replaces=True, fields=_REPLICATION_KINDS)


SCHEMA: Final[Mapping[str, Input]] = {
    "deletionPolicy": Input(),
    "deletionProtection": Input("flag"),
    "labels": Input("map"),
    "project": Input(replaces=True),
    "replication": _REPLICATION,
    "secretId": Input(required=True, replaces=True),
}
UNSERVED: Final = frozenset(
    {
        "annotations",
        "expireTime",
        "rotation",
        "secretType",
        "tags",
        "topics",
        "ttl",
        "versionAliases",
        "versionDestroyTtl",
    }
)
POLICIES: Final = ("DELETE", "ABANDON")

_DEFAULTS: Final[Properties] = {"deletionPolicy": "DELETE", "deletionProtection": False}


class Secrets(ResourceKind):
    """The secrets of the projects that the token may reach."""

    def __init__(self, api: Rest, options: GoogleOptions) -> None:
        self._api = api
        self._options = options

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in defaults; judge the replication and the policy."""
        del old
        given = declared(new)
        inputs = with_defaults(given, _DEFAULTS)
        found = problems(inputs, SCHEMA, UNSERVED)
        found += _replication_problems(given.get("replication"))
        if not isinstance(inputs["deletionPolicy"], Unknown) and inputs["deletionPolicy"] not in POLICIES:
            found.append(Problem("deletionPolicy", f"it must be one of {', '.join(POLICIES)}"))
        if not given.get("project") and not self._options.project:
            found.append(Problem("project", "no project is given; set it, or gcp:project in the stack"))
        return inputs, found

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; labels of others are no difference."""
        before = {key: old.outputs.get(key) for key in (*SCHEMA, *_OWNED)}
        after = {**declared(new), **planned(new.get("labels"), old.outputs)}
        after.setdefault("project", before.get("project"))
        found = changes(_bare(before), _bare(after), SCHEMA, ignored)
        same_place = equal(before.get("secretId"), after.get("secretId")) and equal(
            before.get("project"), after["project"]
        )
        return InputDiff(found, delete_first=same_place)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs, and what only the service knows as unknown."""
        return {
            **declared(new),
            **planned(new.get("labels"), None),
            **_NOT_ANNOTATED,
            "project": self._project(new),
            "createTime": UNKNOWN,
            "expireTime": UNKNOWN,
            "name": UNKNOWN,
        }

    def create(self, urn: str, new: Properties) -> State:
        """Create the entry; one that is there already is an error, whoever made it."""
        project, secret_id = text(self._project(new)), text(new.get("secretId"))
        name = names.secret_name(project, secret_id)
        plan = planned(new.get("labels"), None)
        body: Properties = {
            "replication": _replication_to_api(new["replication"]),
            "labels": plan["effectiveLabels"],
        }
        try:
            live = self._api.send(
                "POST", f"projects/{project}/secrets", query={"secretId": secret_id}, body=_bare(body)
            )
        except ServiceRefusedError as refusal:
            if refusal.status == 409:
                raise already_exists(urn, name) from refusal
            raise refused("create", name, refusal) from refusal
        return State(name, self._outputs(live, project, new, plan), {})

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return what is recorded with the new inputs on top."""
        return {**super().preview_update(old, new), **planned(new.get("labels"), old.outputs)}

    def update(self, old: State, new: Properties) -> Properties:
        """Change the labels, if they changed; everything else is the provider's own."""
        plan = planned(new.get("labels"), old.outputs)
        labels = plan["effectiveLabels"]
        if equal(labels, old.outputs.get("effectiveLabels") or {}):
            return {**old.outputs, **declared(new), **plan}
        mask, body = {"updateMask": "labels"}, {"labels": labels}
        live = ask(self._api, "update", old.id, "PATCH", old.id, query=mask, body=body)
        return self._outputs(live, text(old.outputs.get("project")), new, plan)

    def read(self, old: State) -> State | None:
        """Return the live entry; without old inputs (`.get`, import) no label counts as declared."""
        project, secret_id = names.secret_parts(old.id, self._options.project)
        name = names.secret_name(project, secret_id)
        live = ask_for(self._api, "read", name, "GET", name)
        if live is None:
            return None
        inputs = with_defaults(
            {"project": project, "secretId": secret_id} if not old.inputs else dict(old.inputs), _DEFAULTS
        )
        outputs = self._outputs(live, project, inputs, old.outputs)
        return State(name, outputs, _read_inputs(inputs, outputs, imported=not old.inputs))

    def delete(self, old: State) -> None:
        """Delete the entry and all its versions, unless the recorded policy says otherwise."""
        if old.outputs.get("deletionProtection") is True:
            raise SandboxError(
                code="deletion-prevented",
                place=old.id,
                problem="its deletionProtection forbids to delete it",
                fix="set deletionProtection to false, then run up",
            )
        if old.outputs.get("deletionPolicy") != "ABANDON":
            ask_for(self._api, "delete", old.id, "DELETE", old.id)

    def _project(self, new: Properties) -> Value:
        return new.get("project") or self._options.project

    def _outputs(self, live: Properties, project: str, inputs: Properties, owned: Properties) -> Properties:
        """Return the outputs; of labels those in `owned` count as ours."""
        return {
            **_NOT_ANNOTATED,
            "createTime": live.get("createTime"),
            "deletionPolicy": inputs.get("deletionPolicy"),
            "deletionProtection": inputs.get("deletionProtection"),
            "effectiveLabels": live.get("labels") or {},
            "expireTime": live.get("expireTime") or "",
            "labels": live_part(live.get("labels"), owned.get("labels")),
            "name": live.get("name"),
            "project": project,
            "pulumiLabels": live_part(live.get("labels"), owned.get("pulumiLabels")),
            "replication": _replication_from_api(live.get("replication")),
            "secretId": text(live.get("name")).rpartition("/")[2],
        }


_OWNED: Final = ("pulumiLabels", "effectiveLabels")
_NOT_ANNOTATED: Final[Properties] = {"annotations": {}, "effectiveAnnotations": {}}


def _read_inputs(inputs: Properties, outputs: Properties, *, imported: bool) -> Properties:
    """Return the inputs with what is live of them; an import leaves an automatic replication out, empty."""
    live = {key: outputs[key] for key in SCHEMA if key in outputs and key in inputs}
    kept = outputs["replication"]
    if imported and isinstance(kept, dict) and "auto" in kept:
        kept = {}
    return {**inputs, "replication": kept, **live}


def _bare(properties: Properties) -> Properties:
    """Return the properties without empty objects: none and no label are the same."""
    return {key: value for key, value in properties.items() if value not in (None, {})}


def _replication_problems(given: Value) -> list[Problem]:
    chosen = [kind for kind in _REPLICATION_KINDS if isinstance(given, dict) and given.get(kind) is not None]
    if isinstance(given, dict) and len(chosen) != 1:
        return [Problem("replication", "it must have exactly one of auto and userManaged")]
    return []


def _replication_to_api(given: Value) -> Properties:
    """Return an input as the service takes it."""
    chosen = cast("Properties", given)
    return {"automatic": {}} if chosen.get("auto") is not None else {"userManaged": chosen.get("userManaged")}


def _replication_from_api(live: Value) -> Properties:
    """Return what the service tells as an input."""
    told = live if isinstance(live, dict) else {}
    managed = told.get("userManaged")
    if not isinstance(managed, dict):
        return {"auto": {}}
    replicas = managed.get("replicas")
    locations = [
        {"location": each.get("location")}
        for each in (replicas if isinstance(replicas, list) else [])
        if isinstance(each, dict)
    ]
    return {"userManaged": {"replicas": cast("list[Value]", locations)}}
