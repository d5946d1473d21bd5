"""`gcp:secretmanager/secretIamMember:SecretIamMember`: one member's role on one secret."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final, cast

from pulumi_sandbox.protocol.values import UNKNOWN, Path, Properties, Value, text
from pulumi_sandbox.providers.contract import InputDiff, Problem, State
from pulumi_sandbox.providers.dispatch import ResourceKind
from pulumi_sandbox.providers.gcp import names
from pulumi_sandbox.providers.gcp.options import GoogleOptions
from pulumi_sandbox.providers.inputs import Input, changes, declared, problems
from pulumi_sandbox.providers.rest import Rest, ServiceRefusedError, ask_for, refused

POLICY_VERSION: Final = 3
"""The version of policies that may have conditions, which are those of others here."""


def granted(policy: Properties, role: str, member: str) -> Properties:
    """Return the policy with the member in the binding of this role."""
    return _with(policy, [*_bindings(revoked(policy, role, member)), {"role": role, "members": [member]}])


def revoked(policy: Properties, role: str, member: str) -> Properties:
    """Return the policy without the member in bindings of this role."""
    kept: list[Properties] = []
    for binding in _bindings(policy):
        members = [each for each in _members(binding) if each != member or not _is_of(binding, role)]
        if members:
            kept.append({**binding, "members": [*members]})
    return _with(policy, kept)


def has(policy: Properties, role: str, member: str) -> bool:
    """Whether the member has the role."""
    return any(_is_of(binding, role) and member in _members(binding) for binding in _bindings(policy))


def _bindings(policy: Properties) -> list[Properties]:
    bindings = policy.get("bindings")
    return [each for each in bindings if isinstance(each, dict)] if isinstance(bindings, list) else []


def _members(binding: Properties) -> list[str]:
    members = binding.get("members")
    return [str(each) for each in members] if isinstance(members, list) else []


def _is_of(binding: Properties, role: str) -> bool:
    return binding.get("role") == role and not binding.get("condition")


def _with(policy: Properties, bindings: list[Properties]) -> Properties:
    return {**policy, "version": POLICY_VERSION, "bindings": cast("list[Value]", bindings)}


SCHEMA: Final[Mapping[str, Input]] = {
    "member": Input(required=True, replaces=True),
    "project": Input(replaces=True),
    "role": Input(required=True, replaces=True),
    "secretId": Input(required=True, replaces=True),
}
UNSERVED: Final = frozenset({"condition"})
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
        return inputs, problems(inputs, SCHEMA, UNSERVED)

    def diff(self, old: State, new: Properties, ignored: tuple[Path, ...]) -> InputDiff:
        """Compare with what is recorded; whatever differs is another grant, made before the old one goes."""
        before = {key: old.outputs.get(key) for key in SCHEMA}
        after = declared(new)
        after.setdefault("project", before["project"])
        if names.same_secret(before["secretId"], after.get("secretId")):
            after["secretId"] = before["secretId"]
        return InputDiff(changes(before, after, SCHEMA, ignored), delete_first=False)

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
        project, secret = names.secret_parts(text(properties.get("secretId")), project)
        return names.secret_name(project, secret), project

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
