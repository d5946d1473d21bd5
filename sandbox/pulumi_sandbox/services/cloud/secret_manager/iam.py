"""IAM policies of a secret: who may be named, what a condition demands, how two writers meet."""

import hashlib
import re
import secrets
from typing import Final

from google.iam.v1.policy_pb2 import Binding, Policy

from pulumi_sandbox.services.cloud.secret_manager.callers import ROLES
from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal, invalid

EMPTY_ETAG: Final = b"\0\x10\x01"
"""`ABAB` in base64: the etag of a policy that nobody has set, much like Google's own."""

CONDITIONS_VERSION: Final = 3

_MEMBER: Final = re.compile(
    r"allUsers|allAuthenticatedUsers"
    r"|(?:deleted:)?(?:user|serviceAccount|group):[^\s@]+@[^\s@]+|domain:\S+"
    r"|serviceAccount:[a-z0-9-]+\.svc\.id\.goog\[[^\s/]+/[^\s/]+\]"
    r"|(?:principal|principalSet)://iam\.googleapis\.com/\S+|project(?:Owner|Editor|Viewer):\S+"
)
_OWN_ROLE: Final = re.compile(r"(?:projects|organizations)/[\w-]+/roles/[\w.]+")
_MEMBERS_LIMIT: Final = 1500


def replaced(present: Policy, wanted: Policy) -> Policy:
    """Return what is kept when `wanted` is set over `present`.

    Raises Refusal ABORTED when `wanted` carries an etag that is not the present one; INVALID_ARGUMENT.
    """
    if wanted.etag and wanted.etag != present.etag:
        raise GcpRefusal(
            "ABORTED",
            "There were concurrent policy changes."
            " Please retry the whole read-modify-write with exponential backoff.",
        )
    for binding in wanted.bindings:
        _check(binding, wanted.version)
    if sum(len(binding.members) for binding in wanted.bindings) > _MEMBERS_LIMIT:
        raise invalid(f"The number of members in the policy is larger than the maximum {_MEMBERS_LIMIT}.")
    return Policy(
        version=wanted.version or 1, bindings=_merged(list(wanted.bindings)), etag=secrets.token_bytes(8)
    )


def as_version(policy: Policy, version: int) -> Policy:
    """Return a policy as a reader of a version sees it: below 3, a condition is folded into the role."""
    conditional = any(binding.HasField("condition") for binding in policy.bindings)
    if version >= CONDITIONS_VERSION or not conditional:
        shown = Policy(bindings=policy.bindings, etag=policy.etag)
        shown.version = CONDITIONS_VERSION if conditional else 1
        return shown
    return Policy(
        version=1, bindings=[_without_condition(binding) for binding in policy.bindings], etag=policy.etag
    )


def _check(binding: Binding, version: int) -> None:
    if binding.role not in ROLES and not _OWN_ROLE.fullmatch(binding.role):
        raise invalid(f"Role {binding.role} is not supported for this resource.")
    for member in binding.members:
        if not _MEMBER.fullmatch(member):
            raise invalid(f"The member {member} is of an unknown type.")
    if binding.HasField("condition"):
        if version != CONDITIONS_VERSION:
            raise invalid("A policy with conditions must be set with policy version 3.")
        if not (binding.condition.title and binding.condition.expression):
            raise invalid("A condition needs a title and an expression.")


def _merged(bindings: list[Binding]) -> list[Binding]:
    """Keep one binding for each role and condition, members in order; those without a member go."""
    members: dict[tuple[str, bytes], set[str]] = {}
    first: dict[tuple[str, bytes], Binding] = {}
    for binding in bindings:
        key = binding.role, binding.condition.SerializeToString(deterministic=True)
        first.setdefault(key, binding)
        members.setdefault(key, set()).update(binding.members)
    merged: list[Binding] = []
    for key in sorted(first):
        if members[key]:
            one = Binding()
            one.CopyFrom(first[key])
            del one.members[:]
            one.members.extend(sorted(members[key]))
            merged.append(one)
    return merged


def _without_condition(binding: Binding) -> Binding:
    if not binding.HasField("condition"):
        return binding
    mark = hashlib.sha256(binding.condition.SerializeToString(deterministic=True)).hexdigest()[:20]
    return Binding(role=f"{binding.role}_withcond_{mark}", members=binding.members)
