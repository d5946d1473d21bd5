"""Login Secret of a provider: which of its keys serves which selector of the provider's spec."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from components.credentials import is_text
from components.documents import json_within
from components.errors import Problem
from components.projection.model import encode
from components.secret_stores.registry import ProviderKind


def secret_name(provider: str) -> str:
    """Return the name of a provider's Secret."""
    return f"{provider}-credentials"


def login_of(kind: ProviderKind, spec: Mapping[str, Any]) -> Mapping[str, str]:
    """Map the keys of a provider's Secret to selectors: of the possible logins, the one that the spec starts.

    A selector whose value is set directly in the spec needs no key.
    """
    usual, *others = kind.facts.get("logins") or [kind.credential]
    begun = (way for way in others if any(_holder(spec, path) is not None for path in way.values()))
    way = next(begun, usual)
    return {key: path for key, path in way.items() if "value" not in (_holder(spec, path) or ())}


def _holder(spec: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """Return the part of a spec that has, or would have, a selector."""
    part: Any = spec
    for step in path.split(".")[:-1]:
        part = part.get(step) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else None


def with_login(kind: ProviderKind, spec: Mapping[str, Any], provider: str) -> dict[str, Any] | Problem:
    """Add the selectors for the provider's own Secret to a spec."""
    filled: dict[str, Any] = json.loads(json.dumps(spec))
    login = login_of(kind, filled)
    if not login:
        return Problem(
            kind.name, f"providers of kind {kind.name} log in with no Secret", "leave credentialsFrom out"
        )
    for key, path in login.items():
        *steps, last = path.split(".")
        part: Any = filled
        for step in steps:
            part = _enter(part, step)
            if not isinstance(part, dict):
                return _given(path)
        if last in part:
            return _given(path)
        part[last] = {"name": secret_name(provider), "key": key}
    return filled


def _enter(part: dict[str, Any], step: str) -> Any:
    """Return the value at a step, created if missing; `list[name]` appends an item with that name."""
    step, _, name = step.removesuffix("]").partition("[")
    if not name:
        return part.setdefault(step, {})
    items = part.setdefault(step, [])
    if not isinstance(items, list) or any(
        isinstance(each, dict) and each.get("name") == name for each in items
    ):
        return None
    items.append({"name": name})
    return items[-1]


def login_problem(keys: Collection[str], content: bytes) -> Problem | None:
    """Return why a credential cannot become a Secret with these keys, without its values."""
    if not content:
        return Problem(
            "credential", "the credential is empty, and an empty one opens nothing", "give its text"
        )
    if len(keys) <= 1:
        return None
    fields = _fields(content)
    if fields is None or set(fields) != set(keys):
        names = ", ".join(keys)
        return Problem(
            "credential",
            f"it is not a JSON object with exactly {names}",
            f"give it as JSON text with {names}",
        )
    unfit = [name for name, value in fields.items() if not value or not is_text(value)]
    if not unfit:
        return None
    return Problem("credential", f"{', '.join(unfit)} is empty or not a string", "give each as text")


def login_values(keys: Collection[str], content: bytes) -> Mapping[str, bytes]:
    """Return the Secret's values of a valid credential: its fields by key, or all of it."""
    if len(keys) == 1:
        [key] = keys
        return {key: content}
    fields = _fields(content) or {}
    return {key: str(fields[key]).encode() for key in keys}


def login_data(keys: Collection[str], content: bytes) -> Mapping[str, str]:
    """Return the same as Secret data, base64-encoded."""
    return encode(login_values(keys, content))


def _given(path: str) -> Problem:
    return Problem(
        f"spec.{path}",
        f"spec.{path} is given, and credentialsFrom is another way to log in",
        "keep one of them",
    )


def _fields(content: bytes) -> Mapping[str, Any] | None:
    found = json_within(content)
    return found if isinstance(found, dict) else None
