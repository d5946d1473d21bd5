"""`gcp:secretmanager/secretIamMember:SecretIamMember`: one member's role on one secret."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final, cast

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.paths import Path
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value, equal, text
from pulumi_sandbox.providers.contract import Autonaming, InputDiff, Problem, State
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.gcp import names
from pulumi_sandbox.providers.gcp.options import GoogleOptions
from pulumi_sandbox.providers.inputs import Input, changes, declared, problems
from pulumi_sandbox.providers.rest import Rest, ServiceRefusedError, ask_for, refused

POLICY_VERSION: Final = 3
"""The version of policies that may have conditions."""

_CASELESS: Final = ("user:", "group:", "serviceAccount:", "domain:")


def granted(policy: Properties, role: str, member: str, condition: Value) -> Properties:
    """Return the policy with the member in the binding of this role and condition."""
    bindings = _bindings(policy)
    for index, binding in enumerate(bindings):
        if _is(binding, role, condition):
            members = _members(binding)
            if not any(same_member(each, member) for each in members):
                bindings[index] = {**binding, "members": [*members, member]}
            return _with(policy, bindings)
    fresh: Properties = {"role": role, "members": [member]}
    if condition:
        fresh["condition"] = condition
    return _with(policy, [*bindings, fresh])


def revoked(policy: Properties, role: str, member: str, condition: Value) -> Properties:
    """Return the policy without the member in that binding; a binding of nobody goes."""
    kept: list[Properties] = []
    for binding in _bindings(policy):
        members = _members(binding)
        if _is(binding, role, condition):
            members = [each for each in members if not same_member(each, member)]
        if members:
            kept.append({**binding, "members": [*members]})
    return _with(policy, kept)


def find(policy: Properties, role: str, member: str, condition: Value) -> str | None:
    """Return the member as the policy spells it; None when it has not the role under this condition."""
    for binding in _bindings(policy):
        if _is(binding, role, condition):
            return next((each for each in _members(binding) if same_member(each, member)), None)
    return None


def normal(member: str) -> str:
    """Return a member in the case it is recorded in: accounts and groups have none, principals have."""
    kind, colon, name = member.partition(":")
    return f"{kind}:{name.lower()}" if f"{kind}{colon}" in _CASELESS else member


def same_member(one: str, other: str) -> bool:
    """Compare two members."""
    return normal(one) == normal(other)


def _bindings(policy: Properties) -> list[Properties]:
    bindings = policy.get("bindings")
    listed = bindings if isinstance(bindings, list) else []
    return [each for each in listed if isinstance(each, dict)]


def _members(binding: Properties) -> list[str]:
    members = binding.get("members")
    return [str(each) for each in members] if isinstance(members, list) else []


def _is(binding: Properties, role: str, condition: Value) -> bool:
    return binding.get("role") == role and equal(_bare(binding.get("condition")), _bare(condition))


def _bare(condition: Value) -> Value:
    """Return a condition without empty parts; none at all for an empty one."""
    given = condition if isinstance(condition, dict) else {}
    return {key: value for key, value in given.items() if value}


def _with(policy: Properties, bindings: list[Properties]) -> Properties:
    return {**policy, "version": POLICY_VERSION, "bindings": cast("list[Value]", bindings)}


_CONDITION: Final = {
    "description": Input(),
    "expression": Input(required=True),
    "title": Input(required=True),
}
SCHEMA: Final[Mapping[str, Input]] = {
    "condition": Input("object", replaces=True, fields=_CONDITION),
    "member": Input(required=True, replaces=True),
    "project": Input(replaces=True),
    "role": Input(required=True, replaces=True),
    "secretId": Input(required=True, replaces=True),
}
_MEMBER: Final = re.compile(
    "(?!deleted)(.+:.+|projectOwners|projectReaders|projectWriters|allUsers|allAuthenticatedUsers)"
)
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

    def check(
        self, name: str, old: Properties, new: Properties, *, seed: bytes, autonaming: Autonaming | None
    ) -> tuple[Properties, list[Problem]]:
        """Judge the member and that the secret's project is known."""
        del name, old, seed, autonaming
        inputs = {**declared(new), "__defaults": []}
        found = problems(inputs, SCHEMA)
        member, secret = inputs.get("member"), inputs.get("secretId")
        if isinstance(member, str) and not _MEMBER.match(member):
            found.append(
                Problem("member", "it must be a kind and a name, as serviceAccount:NAME or principal://…")
            )
        if (
            isinstance(secret, str)
            and "/" not in secret
            and not (inputs.get("project") or self._options.project)
        ):
            found.append(Problem("project", "no project is given; set it, or gcp:project in the stack"))
        return inputs, found

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; whatever differs is another grant, made before the old one goes."""
        before = {key: old.outputs.get(key) for key in SCHEMA}
        after = declared(new)
        after.setdefault("project", before["project"])
        if names.same_secret(before["secretId"], after.get("secretId")):
            after["secretId"] = before["secretId"]
        if same_member(text(before["member"]), text(after.get("member"))):
            after["member"] = before["member"]
        return InputDiff(changes(before, after, SCHEMA, ignored), delete_first=False)

    def preview_create(self, new: Properties) -> Properties:
        """Return the inputs, and what only the service knows as unknown."""
        return {"project": UNKNOWN, **declared(new), "etag": UNKNOWN}

    def create(self, urn: str, new: Properties) -> State:
        """Grant the role; to have it already is fine, as with the genuine provider."""
        del urn
        secret, project = self._secret(new)
        role, member, condition = text(new.get("role")), text(new.get("member")), new.get("condition")
        policy = self._modify(secret, lambda policy: granted(policy, role, member, condition))
        if policy is None:
            missing = ServiceRefusedError(404, "NOT_FOUND", "there is no such secret")
            raise refused("write the policy of", secret, missing)
        outputs = _outputs(policy, secret, project, new)
        return State(_id(secret, role, member, condition), outputs, {})

    def update(self, old: State, new: Properties) -> Properties:
        """Record the inputs: no input can change in place."""
        return self.preview_update(old, new)

    def read(self, old: State) -> State | None:
        """Return the grant; without old inputs the id names it: `SECRET ROLE MEMBER`."""
        given = old.inputs or old.outputs
        if not given:
            return self._imported(old.id)
        secret, project = self._secret({**given, **old.outputs})
        policy = self._policy(secret)
        role, condition = text(given.get("role")), given.get("condition")
        if policy is None:
            return None
        member = find(policy, role, text(given.get("member")), condition)
        if member is None:
            return None
        inputs = {**declared(old.inputs or given), "__defaults": []}
        inputs.pop("etag", None)
        return State(old.id, _outputs(policy, secret, project, {**inputs, "member": member}), inputs)

    def delete(self, old: State) -> None:
        """Revoke the role; if the secret is gone, so is the grant."""
        secret, _ = self._secret(old.outputs)
        role, member = text(old.outputs.get("role")), text(old.outputs.get("member"))
        condition = old.outputs.get("condition")
        self._modify(secret, lambda policy: revoked(policy, role, member, condition))

    def _imported(self, id_: str) -> State | None:
        parts = id_.split()
        if len(parts) != 3:
            raise SandboxError(
                code="id-invalid",
                place=id_,
                problem="this names no grant without a condition, and only those are looked up by an id",
                fix="write the secret, the role and the member with blanks between: 'SECRET ROLE MEMBER'",
            )
        secret, project = self._secret({"secretId": parts[0]})
        role, member = parts[1], parts[2]
        policy = self._policy(secret)
        if policy is None or find(policy, role, member, None) is None:
            return None
        inputs: Properties = {"secretId": secret, "role": role, "member": normal(member)}
        return State(
            _id(secret, role, member, None),
            _outputs(policy, secret, project, inputs),
            {**inputs, "__defaults": []},
        )

    def _secret(self, properties: Properties) -> tuple[str, str]:
        """Return the full name of the secret, and its project."""
        project = text(properties.get("project")) or self._options.project
        project, secret = names.secret_parts(text(properties.get("secretId")), project)
        return names.secret_name(project, secret), project

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


def _outputs(policy: Properties, secret: str, project: str, inputs: Properties) -> Properties:
    outputs: Properties = {
        "etag": policy.get("etag"),
        "member": inputs.get("member"),
        "project": project,
        "role": inputs.get("role"),
        "secretId": secret,
    }
    return outputs | ({"condition": inputs["condition"]} if inputs.get("condition") else {})


def _id(secret: str, role: str, member: str, condition: Value) -> str:
    parts = [secret, role, normal(member)]
    if isinstance(condition, dict) and condition:
        parts += [text(condition.get(key)) for key in ("title", "description", "expression")]
    return "/".join(parts)
