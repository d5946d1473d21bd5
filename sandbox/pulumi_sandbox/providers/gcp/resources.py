"""Secrets, their versions and the members of their policies, as resources of Secret Manager."""

from __future__ import annotations

import base64
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import (
    UNKNOWN,
    Path,
    Properties,
    Value,
    contains_unknown,
    equal,
    mapping,
    mappings,
    text,
)
from pulumi_sandbox.providers.contract import (
    Input,
    InputDiff,
    Problem,
    ResourceKind,
    State,
    already_exists,
    changes,
    declared,
    problems,
    with_defaults,
)
from pulumi_sandbox.providers.rest import Rest, ServiceRefusedError

_SECRET: Final = re.compile(r"projects/([^/]+)/secrets/([^/]+)")
_VERSION: Final = re.compile(r"(projects/[^/]+/secrets/[^/]+)/versions/([^/]+)")


def parts(form: re.Pattern[str], name: str) -> tuple[str, str]:
    """Return project and ID of a secret; or the name of a secret, and the ID of its version.

    Raises SandboxError `id-invalid`.
    """
    found = form.fullmatch(name)
    if found is None:
        version = "/versions/VERSION" if form is _VERSION else ""
        raise SandboxError(
            code="id-invalid",
            place=name,
            problem="this names nothing in Secret Manager",
            fix=f"write projects/PROJECT/secrets/SECRET{version}",
        )
    return found[1], found[2]


ATTRIBUTION: Final[Properties] = {"goog-pulumi-provisioned": "true"}


def planned(declared: Value, recorded: Properties | None) -> Properties:
    """Return the outputs `labels`, `pulumiLabels` and `effectiveLabels` for declared labels.

    `recorded` are the outputs of the secret, None for a new one, which gets the label that names Pulumi.
    """
    if contains_unknown(declared):
        return {"labels": declared, "pulumiLabels": UNKNOWN, "effectiveLabels": UNKNOWN}
    before = mapping((recorded or {}).get("effectiveLabels"))
    former = mapping((recorded or {}).get("pulumiLabels"))
    attributed = recorded is None or ATTRIBUTION.keys() <= before.keys()
    own: Properties = {**(ATTRIBUTION if attributed else {}), **mapping(declared)}
    return {
        "labels": mapping(declared),
        "pulumiLabels": own,
        "effectiveLabels": {**{key: before[key] for key in before if key not in former}, **own},
    }


def live_part(live: Value, recorded: Value) -> Properties:
    """Return the live values of the recorded keys."""
    present = mapping(live)
    return {key: present[key] for key in mapping(recorded) if key in present}


SCHEMA: Final[Mapping[str, Input]] = {
    "deletionPolicy": Input(),
    "deletionProtection": Input(),
    "labels": Input(),
    "project": Input(replaces=True),
    "replication": Input(required=True, replaces=True),
    "secretId": Input(required=True, replaces=True),
}
_DEFAULTS: Final[Properties] = {"deletionPolicy": "DELETE", "deletionProtection": False}


class Secrets(ResourceKind):
    """The secrets of the projects accessible with the token."""

    def __init__(self, api: Rest, project: str) -> None:
        self._api = api
        self._default = project

    def check(self, _old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Return the inputs with defaults, and problems with their names."""
        given = declared(new)
        inputs = with_defaults(given, _DEFAULTS)
        found = problems(inputs, SCHEMA)
        if not given.get("project") and not self._default:
            found.append(Problem("project", "no project is given; set it, or gcp:project in the stack"))
        return inputs, found

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with the recorded resource; labels set by others are no difference."""
        before = {key: old.outputs.get(key) for key in (*SCHEMA, *_OWNED)}
        after = {**declared(new), **planned(new.get("labels"), old.outputs)}
        after.setdefault("project", before.get("project"))
        found = changes(_bare(before), _bare(after), SCHEMA, ignored)
        same_place = equal(before.get("secretId"), after.get("secretId")) and equal(
            before.get("project"), after["project"]
        )
        return InputDiff(found, delete_first=same_place)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs; values known only to the service are unknown."""
        return {
            **declared(new),
            **planned(new.get("labels"), None),
            **_NOT_ANNOTATED,
            "project": self._project(new),
            **dict.fromkeys(("createTime", "expireTime", "name"), UNKNOWN),
        }

    def create(self, urn: str, new: Properties) -> State:
        """Create the secret; an existing one is an error."""
        project, secret_id = text(self._project(new)), text(new.get("secretId"))
        parent = f"projects/{project}/secrets"
        name = f"{parent}/{secret_id}"
        plan = planned(new.get("labels"), None)
        kind = mapping(new["replication"])
        is_auto = kind.get("auto") is not None
        body: Properties = {
            "replication": {"automatic": {}} if is_auto else {"userManaged": kind.get("userManaged")},
            "labels": plan["effectiveLabels"],
        }
        try:
            query = {"secretId": secret_id}
            live = self._api.ask("create", name, "POST", parent, query=query, body=_bare(body))
        except ServiceRefusedError as refusal:
            if refusal.status == 409:
                raise already_exists(urn, name) from refusal
            raise
        return State(name, self._outputs(live, project, new, plan), {})

    def preview_update(self, old: State, new: Properties) -> Properties:
        """Return the recorded outputs, overridden by the new inputs."""
        return {**super().preview_update(old, new), **planned(new.get("labels"), old.outputs)}

    def update(self, old: State, new: Properties) -> Properties:
        """Write the labels; all other inputs are only used by the provider."""
        plan = planned(new.get("labels"), old.outputs)
        mask, body = {"updateMask": "labels"}, {"labels": plan["effectiveLabels"]}
        live = self._api.ask("update", old.id, "PATCH", query=mask, body=body)
        return self._outputs(live, text(old.outputs.get("project")), new, plan)

    def read(self, old: State) -> State | None:
        """Return the live secret.

        Without old inputs (`.get`, import), labels and automatic replication do not count as declared.
        """
        project, secret_id = parts(_SECRET, old.id)
        live = self._api.ask_for("read", old.id, "GET")
        if live is None:
            return None
        inputs = with_defaults(
            {"project": project, "secretId": secret_id} if not old.inputs else dict(old.inputs), _DEFAULTS
        )
        outputs = self._outputs(live, project, inputs, old.outputs)
        live_inputs = {key: outputs[key] for key in SCHEMA if key in outputs and key in inputs}
        replication = mapping(outputs["replication"])
        if not old.inputs and "auto" in replication:
            replication = {}
        return State(old.id, outputs, {**inputs, "replication": replication, **live_inputs})

    def delete(self, old: State, _seconds: float) -> None:
        """Delete the secret and all its versions, unless the recorded policy forbids it."""
        if old.outputs.get("deletionProtection") is True:
            raise SandboxError(
                code="deletion-prevented",
                place=old.id,
                problem="its deletionProtection forbids to delete it",
                fix="set deletionProtection to false, then run up",
            )
        if old.outputs.get("deletionPolicy") != "ABANDON":
            self._api.ask_for("delete", old.id, "DELETE")

    def _project(self, new: Properties) -> Value:
        return new.get("project") or self._default

    def _outputs(self, live: Properties, project: str, inputs: Properties, owned: Properties) -> Properties:
        """Return the outputs; owned: the outputs for labels."""
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


def _bare(properties: Properties) -> Properties:
    """Return the properties without empty objects: no labels equal an empty object."""
    return {key: value for key, value in properties.items() if value not in (None, {})}


def _replication_from_api(live: Value) -> Properties:
    """Return the replication in a response as an input."""
    managed = mapping(live).get("userManaged")
    if not isinstance(managed, dict):
        return {"auto": {}}
    locations = [{"location": each.get("location")} for each in mappings(managed.get("replicas"))]
    return {"userManaged": {"replicas": cast("list[Value]", locations)}}


VERSION_SCHEMA: Final[Mapping[str, Input]] = {
    "deletionPolicy": Input(),
    "secret": Input(required=True, replaces=True),
    "secretData": Input(required=True, replaces=True),
}
_AS_ADDED: Final[Properties] = {
    "deletionPolicy": "DELETE",
    "enabled": True,
    "isSecretDataBase64": False,
}


class Versions(ResourceKind):
    """The versions of secrets."""

    secrets: ClassVar = frozenset({"secretData"})

    def __init__(self, api: Rest) -> None:
        self._api = api

    def check(self, _old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Return the inputs with defaults, and problems with their names."""
        given = declared(new)
        return with_defaults(given, _AS_ADDED), problems(given, VERSION_SCHEMA)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with the recorded version; another payload needs a new version, created before deletion."""
        compared = {**VERSION_SCHEMA, "enabled": Input()}
        before = {key: old.outputs.get(key) for key in compared}
        after = {key: value for key, value in declared(new).items() if key in compared}
        return InputDiff(changes(before, after, compared, ignored), delete_first=False)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs; values known only to the service are unknown."""
        told = ("createTime", "destroyTime", "name", "version")
        return {**declared(new), **dict.fromkeys(told, UNKNOWN)}

    def create(self, _urn: str, new: Properties) -> State:
        """Add the version; it is recorded from the first response on."""
        secret = text(new.get("secret"))
        data = base64.b64encode(text(new.get("secretData")).encode()).decode()
        body: Properties = {"payload": {"data": data}}
        added = self._api.ask("add a version to", secret, "POST", f"{secret}:addVersion", body=body)
        return State(text(added.get("name")), self._outputs(added, new), {})

    def update(self, old: State, new: Properties) -> Properties:
        """Enable the version again, if others disabled it; the policy is only recorded."""
        if old.outputs.get("enabled") is True:
            return self.preview_update(old, new)
        live = self._api.ask("enable", old.id, "POST", f"{old.id}:enable", body={})
        return self._outputs(live, new)

    def read(self, old: State) -> State | None:
        """Return the live version; a destroyed one is gone, a disabled one keeps the recorded payload."""
        secret, _ = parts(_VERSION, old.id)
        live = self._api.ask_for("read", old.id, "GET")
        if live is None or live.get("state") == "DESTROYED":
            return None
        given = old.inputs or {"secret": secret}
        inputs = with_defaults(
            {**given, "secretData": old.outputs.get("secretData") or given.get("secretData")},
            _AS_ADDED,
        )
        if live.get("state") == "ENABLED":
            accessed = self._api.ask_for("read", old.id, "GET", f"{old.id}:access")
            if accessed is None:
                return None
            data = text(mapping(accessed.get("payload")).get("data"))
            inputs["secretData"] = base64.b64decode(data).decode(errors="replace")
        outputs = self._outputs(live, inputs)
        return State(old.id, outputs, {**inputs, "enabled": outputs["enabled"]})

    def delete(self, old: State, _seconds: float) -> None:
        """Destroy or abandon the version, according to the recorded policy."""
        if old.outputs.get("deletionPolicy") != "ABANDON":
            self._api.ask_for("destroy", old.id, "POST", f"{old.id}:destroy")

    def _outputs(self, live: Properties, inputs: Properties) -> Properties:
        name = text(live.get("name"))
        return {
            "createTime": live.get("createTime"),
            "deletionPolicy": inputs.get("deletionPolicy"),
            "destroyTime": live.get("destroyTime") or "",
            "enabled": live.get("state") == "ENABLED",
            "isSecretDataBase64": inputs.get("isSecretDataBase64"),
            "name": name,
            "secret": inputs.get("secret"),
            "secretData": inputs.get("secretData"),
            "version": parts(_VERSION, name)[1],
        }


POLICY_VERSION: Final = 3
"""Version that policies with conditions require; here only other owners' bindings have conditions."""


def granted(policy: Properties, role: str, member: str) -> Properties:
    """Return the policy with the member in a binding of this role."""
    others = mappings(revoked(policy, role, member)["bindings"])
    return _with(policy, [*others, {"role": role, "members": [member]}])


def revoked(policy: Properties, role: str, member: str) -> Properties:
    """Return the policy without the member in bindings of this role."""
    kept: list[Value] = []
    for binding in mappings(policy.get("bindings")):
        leaving = member if _is_of(binding, role) else None
        if members := [each for each in _members(binding) if each != leaving]:
            kept.append({**binding, "members": members})
    return _with(policy, kept)


def has(policy: Properties, role: str, member: str) -> bool:
    """Return whether the member has the role."""
    bindings = mappings(policy.get("bindings"))
    return any(_is_of(binding, role) and member in _members(binding) for binding in bindings)


def _members(binding: Properties) -> list[Value]:
    members = binding.get("members")
    return members if isinstance(members, list) else []


def _is_of(binding: Properties, role: str) -> bool:
    return binding.get("role") == role and not binding.get("condition")


def _with(policy: Properties, bindings: list[Value]) -> Properties:
    return {**policy, "version": POLICY_VERSION, "bindings": bindings}


MEMBER_SCHEMA: Final[Mapping[str, Input]] = {
    "member": Input(required=True, replaces=True),
    "project": Input(replaces=True),
    "role": Input(required=True, replaces=True),
    "secretId": Input(required=True, replaces=True),
}
_WRITE_POLICY: Final = "write the policy of"
_CONFLICTS: Final = frozenset({409, 412})
_CONFLICT_DELAYS: Final = (1, 2, 4, 8, 16)


class Members(ResourceKind):
    """Roles on secrets: each is an entry in the policy of its secret, which others can write too."""

    def __init__(self, api: Rest, project: str, pause: Callable[[float], None]) -> None:
        """Store the service; `pause` waits after a conflict."""
        self._api = api
        self._default = project
        self._pause = pause
        self._writing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def check(self, _old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Return the inputs and their problems; the service checks whether the member is valid."""
        inputs = {**declared(new), "__defaults": []}
        return inputs, problems(inputs, MEMBER_SCHEMA)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with the recorded grant; any difference needs a new grant, created before deletion."""
        before = {key: old.outputs.get(key) for key in MEMBER_SCHEMA}
        after = declared(new)
        after.setdefault("project", before["project"])
        if isinstance(after.get("secretId"), str):
            after["secretId"], _ = self._secret(after)
        return InputDiff(changes(before, after, MEMBER_SCHEMA, ignored), delete_first=False)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs; values known only to the service are unknown."""
        return {"project": UNKNOWN, **declared(new), "etag": UNKNOWN}

    def create(self, _urn: str, new: Properties) -> State:
        """Grant the role; an existing grant is fine, as with the genuine provider."""
        secret, _ = self._secret(new)
        role, member = text(new.get("role")), text(new.get("member"))
        policy = self._modify(secret, lambda policy: granted(policy, role, member))
        if policy is None:
            raise ServiceRefusedError(_WRITE_POLICY, secret, 404, "NOT_FOUND", "there is no such secret")
        return State(f"{secret}/{role}/{member}", self._outputs(policy, new), {})

    def update(self, old: State, new: Properties) -> Properties:
        """Record the inputs: no input can change in place."""
        return self.preview_update(old, new)

    def read(self, old: State) -> State | None:
        """Return the grant named in the state, if it exists."""
        given = {**old.inputs, **old.outputs}
        policy = self._policy(self._secret(given)[0])
        if policy is None or not has(policy, text(given.get("role")), text(given.get("member"))):
            return None
        return State(old.id, self._outputs(policy, given), {**declared(old.inputs), "__defaults": []})

    def delete(self, old: State, _seconds: float) -> None:
        """Revoke the role; if the secret does not exist, neither does the grant."""
        role, member = text(old.outputs.get("role")), text(old.outputs.get("member"))
        self._modify(self._secret(old.outputs)[0], lambda policy: revoked(policy, role, member))

    def _secret(self, properties: Properties) -> tuple[str, str]:
        """Return the full name of the secret, and its project."""
        secret = text(properties.get("secretId"))
        if "/" not in secret:
            secret = f"projects/{properties.get('project') or self._default}/secrets/{secret}"
        return secret, parts(_SECRET, secret)[0]

    def _outputs(self, policy: Properties, inputs: Properties) -> Properties:
        secret, project = self._secret(inputs)
        own = {"etag": policy.get("etag"), "project": project, "secretId": secret}
        return {**own, "member": inputs.get("member"), "role": inputs.get("role")}

    def _policy(self, secret: str) -> Properties | None:
        version = {"options.requestedPolicyVersion": str(POLICY_VERSION)}
        path = f"{secret}:getIamPolicy"
        return self._api.ask_for("read the policy of", secret, "GET", path, query=version)

    def _modify(self, secret: str, change: Callable[[Properties], Properties]) -> Properties | None:
        """Read, change and write the policy, with retries while others write it concurrently.

        Returns the written policy; None if the secret does not exist.
        """
        with self._writing[secret]:
            for delay in (*_CONFLICT_DELAYS, None):
                policy = self._policy(secret)
                if policy is None:
                    return None
                try:
                    body: Properties = {"policy": change(policy)}
                    return self._api.ask(_WRITE_POLICY, secret, "POST", f"{secret}:setIamPolicy", body=body)
                except ServiceRefusedError as refusal:
                    if refusal.status not in _CONFLICTS or delay is None:
                        raise
                    self._pause(delay)
        raise AssertionError("the last attempt returns or raises")
