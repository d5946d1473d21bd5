"""What granting and revoking one role does to an IAM policy."""

from typing import Final, cast

from pulumi_sandbox.protocol.values import Properties, Value, equal

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
