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
    Unknown,
    Value,
    contains_unknown,
    equal,
    mapping,
    mappings,
    text,
)
from pulumi_sandbox.providers.contract import InputDiff, Problem, State, already_exists
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.gcp.options import GoogleOptions
from pulumi_sandbox.providers.inputs import Input, changes, declared, problems, with_defaults
from pulumi_sandbox.providers.rest import Rest, ServiceRefusedError, ask, ask_for, refused

_SECRET: Final = re.compile(r"projects/(?P<project>[^/]+)/secrets/(?P<secret>[^/]+)")
_VERSION: Final = re.compile(r"(?P<secret>projects/[^/]+/secrets/[^/]+)/versions/(?P<version>[^/]+)")


def secret_name(project: str, secret: str) -> str:
    """Return the id of a secret."""
    return f"projects/{project}/secrets/{secret}"


def secret_parts(name: str, project: str) -> tuple[str, str]:
    """Return project and id of a secret, of its whole name or of its id alone.

    Raises SandboxError `id-invalid`.
    """
    found = _SECRET.fullmatch(name)
    if found:
        return found["project"], found["secret"]
    if not name or "/" in name:
        raise _invalid(name, "projects/PROJECT/secrets/SECRET")
    return project, name


def version_parts(name: str) -> tuple[str, str]:
    """Return the name of the secret and the version's own.

    Raises SandboxError `id-invalid`.
    """
    found = _VERSION.fullmatch(name)
    if found is None:
        raise _invalid(name, "projects/PROJECT/secrets/SECRET/versions/VERSION")
    return found["secret"], found["version"]


def same_secret(recorded: Value, given: Value) -> bool:
    """Compare the name of a secret with one that may leave out the project, as the genuine provider does."""
    if not isinstance(recorded, str) or not isinstance(given, str):
        return False
    return recorded == given or ("/" not in given and recorded.endswith(f"/{given}"))


def _invalid(name: str, form: str) -> SandboxError:
    return SandboxError(
        code="id-invalid",
        place=name,
        problem="this names nothing in Secret Manager",
        fix=f"write {form}",
    )


ATTRIBUTION: Final[Properties] = {"goog-pulumi-provisioned": "true"}


def planned(declared: Value, recorded: Properties | None) -> Properties:
    """Return the outputs `labels`, `pulumiLabels` and `effectiveLabels` as declared labels ask for them.

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
    """Return what is live of the keys that are recorded."""
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
        found += _policy_problems(inputs["deletionPolicy"])
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
            **dict.fromkeys(("createTime", "expireTime", "name"), UNKNOWN),
        }

    def create(self, urn: str, new: Properties) -> State:
        """Create the entry; one that exists already is an error."""
        project, secret_id = text(self._project(new)), text(new.get("secretId"))
        name = secret_name(project, secret_id)
        plan = planned(new.get("labels"), None)
        kind = mapping(new["replication"])
        is_auto = kind.get("auto") is not None
        body: Properties = {
            "replication": {"automatic": {}} if is_auto else {"userManaged": kind.get("userManaged")},
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
        project, secret_id = secret_parts(old.id, self._options.project)
        name = secret_name(project, secret_id)
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


def _policy_problems(given: Value) -> list[Problem]:
    if isinstance(given, Unknown) or given in POLICIES:
        return []
    return [Problem("deletionPolicy", f"it must be one of {', '.join(POLICIES)}")]


def _replication_problems(given: Value) -> list[Problem]:
    chosen = [kind for kind, each in mapping(given).items() if each is not None]
    if isinstance(given, dict) and chosen not in (["auto"], ["userManaged"]):
        return [Problem("replication", "it must have exactly one of auto and userManaged")]
    return []


def _replication_from_api(live: Value) -> Properties:
    """Return what the service tells as an input."""
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
VERSION_UNSERVED: Final = frozenset(
    {"enabled", "isSecretDataBase64", "project", "secretDataWo", "secretDataWoVersion"}
)

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

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Fill in defaults; judge the policy and the secret's name."""
        del old
        given = declared(new)
        found = problems(given, VERSION_SCHEMA, VERSION_UNSERVED)
        inputs = with_defaults(given, _AS_ADDED)
        found += _policy_problems(inputs["deletionPolicy"])
        secret = inputs.get("secret")
        if isinstance(secret, str) and not _SECRET.fullmatch(secret):
            found.append(Problem("secret", "it must be the id of a secret: projects/PROJECT/secrets/SECRET"))
        return inputs, found

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; another payload is another version, made before the old one goes."""
        compared = {**VERSION_SCHEMA, "enabled": Input()}
        before = {key: old.outputs.get(key) for key in compared}
        after = {key: value for key, value in declared(new).items() if key in compared}
        if same_secret(before.get("secret"), after.get("secret")):
            after["secret"] = before["secret"]
        return InputDiff(changes(before, after, compared, ignored), delete_first=False)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs, and what only the service knows as unknown."""
        told = ("createTime", "destroyTime", "name", "version")
        return {**declared(new), **dict.fromkeys(told, UNKNOWN)}

    def create(self, urn: str, new: Properties) -> State:
        """Add the version; from the first answer on it is recorded."""
        del urn
        secret = text(new.get("secret"))
        data = base64.b64encode(text(new.get("secretData")).encode()).decode()
        body: Properties = {"payload": {"data": data}}
        added = ask(self._api, "add a version to", secret, "POST", f"{secret}:addVersion", body=body)
        return State(text(added.get("name")), self._outputs(added, new), {})

    def update(self, old: State, new: Properties) -> Properties:
        """Enable the version again, if others disabled it; the policy is only recorded."""
        if old.outputs.get("enabled") is True:
            return self.preview_update(old, new)
        live = ask(self._api, "enable", old.id, "POST", f"{old.id}:enable", body={})
        return self._outputs(live, new)

    def read(self, old: State) -> State | None:
        """Return the live version; a destroyed one is gone, a disabled one keeps the recorded payload."""
        secret, _ = version_parts(old.id)
        live = ask_for(self._api, "read", old.id, "GET", old.id)
        if live is None or live.get("state") == "DESTROYED":
            return None
        given = old.inputs or {"secret": secret}
        inputs = with_defaults(
            {**given, "secretData": old.outputs.get("secretData") or given.get("secretData")},
            _AS_ADDED,
        )
        if live.get("state") == "ENABLED":
            accessed = ask_for(self._api, "read", old.id, "GET", f"{old.id}:access")
            if accessed is None:
                return None
            inputs["secretData"] = _decoded(accessed)
        outputs = self._outputs(live, inputs)
        return State(old.id, outputs, {**inputs, "enabled": outputs["enabled"]})

    def delete(self, old: State) -> None:
        """Destroy the version, or abandon it, as the recorded policy says."""
        if old.outputs.get("deletionPolicy") != "ABANDON":
            ask_for(self._api, "destroy", old.id, "POST", f"{old.id}:destroy")

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
            "version": version_parts(name)[1],
        }


def _decoded(accessed: Properties) -> str:
    data = text(mapping(accessed.get("payload")).get("data"))
    return base64.b64decode(data).decode(errors="replace")


POLICY_VERSION: Final = 3
"""The version of policies that may have conditions, which are those of others here."""


def granted(policy: Properties, role: str, member: str) -> Properties:
    """Return the policy with the member in the binding of this role."""
    without = revoked(policy, role, member)
    return _with(policy, [*mappings(without.get("bindings")), {"role": role, "members": [member]}])


def revoked(policy: Properties, role: str, member: str) -> Properties:
    """Return the policy without the member in bindings of this role."""
    kept: list[Properties] = []
    for binding in mappings(policy.get("bindings")):
        members = [each for each in _members(binding) if each != member or not _is_of(binding, role)]
        if members:
            kept.append({**binding, "members": [*members]})
    return _with(policy, kept)


def has(policy: Properties, role: str, member: str) -> bool:
    """Whether the member has the role."""
    return any(
        _is_of(binding, role) and member in _members(binding) for binding in mappings(policy.get("bindings"))
    )


def _members(binding: Properties) -> list[str]:
    members = binding.get("members")
    return [str(each) for each in members] if isinstance(members, list) else []


def _is_of(binding: Properties, role: str) -> bool:
    return binding.get("role") == role and not binding.get("condition")


def _with(policy: Properties, bindings: list[Properties]) -> Properties:
    return {**policy, "version": POLICY_VERSION, "bindings": cast("list[Value]", bindings)}


MEMBER_SCHEMA: Final[Mapping[str, Input]] = {
    "member": Input(required=True, replaces=True),
    "project": Input(replaces=True),
    "role": Input(required=True, replaces=True),
    "secretId": Input(required=True, replaces=True),
}
MEMBER_UNSERVED: Final = frozenset({"condition"})
_CONFLICTS: Final = frozenset({409, 412})
_CONFLICT_DELAYS: Final = (1, 2, 4, 8, 16)


class Members(ResourceKind):
    """Roles on secrets: each one an entry in the policy of its secret, which others write too."""

    def __init__(self, api: Rest, options: GoogleOptions, pause: Callable[[float], None]) -> None:
        """Take the service; `pause` waits after a conflict."""
        self._api = api
        self._options = options
        self._pause = pause
        self._writing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def check(self, old: Properties, new: Properties) -> tuple[Properties, list[Problem]]:
        """Judge the inputs; what a member may be, the service judges."""
        del old
        inputs = {**declared(new), "__defaults": []}
        return inputs, problems(inputs, MEMBER_SCHEMA, MEMBER_UNSERVED)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; whatever differs is another grant, made before the old one goes."""
        before = {key: old.outputs.get(key) for key in MEMBER_SCHEMA}
        after = declared(new)
        after.setdefault("project", before["project"])
        if same_secret(before["secretId"], after.get("secretId")):
            after["secretId"] = before["secretId"]
        return InputDiff(changes(before, after, MEMBER_SCHEMA, ignored), delete_first=False)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs, and what only the service knows as unknown."""
        return {"project": UNKNOWN, **declared(new), "etag": UNKNOWN}

    def create(self, urn: str, new: Properties) -> State:
        """Grant the role; to have it already is fine, as with the genuine provider."""
        del urn
        secret, _ = self._secret(new)
        role, member = text(new.get("role")), text(new.get("member"))
        policy = self._modify(secret, lambda policy: granted(policy, role, member))
        if policy is None:
            missing = ServiceRefusedError(404, "NOT_FOUND", "there is no such secret")
            raise refused("write the policy of", secret, missing)
        return State(f"{secret}/{role}/{member}", self._outputs(policy, new), {})

    def update(self, old: State, new: Properties) -> Properties:
        """Record the inputs: no input can change in place."""
        return self.preview_update(old, new)

    def read(self, old: State) -> State | None:
        """Return the grant, as the state names it."""
        given = {**old.inputs, **old.outputs}
        policy = self._policy(self._secret(given)[0])
        if policy is None or not has(policy, text(given.get("role")), text(given.get("member"))):
            return None
        return State(old.id, self._outputs(policy, given), {**declared(old.inputs), "__defaults": []})

    def delete(self, old: State) -> None:
        """Revoke the role; if the secret is gone, so is the grant."""
        role, member = text(old.outputs.get("role")), text(old.outputs.get("member"))
        self._modify(self._secret(old.outputs)[0], lambda policy: revoked(policy, role, member))

    def _secret(self, properties: Properties) -> tuple[str, str]:
        """Return the full name of the secret, and its project."""
        project = text(properties.get("project")) or self._options.project
        project, secret = secret_parts(text(properties.get("secretId")), project)
        return secret_name(project, secret), project

    def _outputs(self, policy: Properties, inputs: Properties) -> Properties:
        secret, project = self._secret(inputs)
        own = {"etag": policy.get("etag"), "project": project, "secretId": secret}
        return {**own, "member": inputs.get("member"), "role": inputs.get("role")}

    def _policy(self, secret: str) -> Properties | None:
        version = {"options.requestedPolicyVersion": str(POLICY_VERSION)}
        path = f"{secret}:getIamPolicy"
        return ask_for(self._api, "read the policy of", secret, "GET", path, query=version)

    def _modify(self, secret: str, change: Callable[[Properties], Properties]) -> Properties | None:
        """Read, change and write the policy, again and again while others write it at the same moment.

        Returns the policy as it was written; None when there is no such secret.
        """
        with self._writing[secret]:
            for delay in (*_CONFLICT_DELAYS, None):
                policy = self._policy(secret)
                if policy is None:
                    return None
                try:
                    return self._api.send("POST", f"{secret}:setIamPolicy", body={"policy": change(policy)})
                except ServiceRefusedError as refusal:
                    if refusal.status not in _CONFLICTS or delay is None:
                        raise refused("write the policy of", secret, refusal) from refusal
                    self._pause(delay)
        raise AssertionError("the last attempt returns or raises")
