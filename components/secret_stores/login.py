"""The Secret that is drawn for a provider: which keys of it serve which selectors of the provider's spec."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from typing import Any

from components.credentials import is_text
from components.errors import Problem
from components.secret_stores.registry import ProviderKind


def secret_name(provider: str) -> str:
    """Name the Secret of a provider."""
    return f"{provider}-credentials"


def with_login(kind: ProviderKind, spec: Mapping[str, Any], provider: str) -> dict[str, Any] | Problem:
    """Write into a spec the selectors that the provider's own Secret serves."""
    if not kind.credential:
        return Problem(
            kind.name, f"providers of kind {kind.name} log in with no Secret", "leave credentialsFrom out"
        )
    filled: dict[str, Any] = json.loads(json.dumps(spec))
    for key, path in kind.credential.items():
        *steps, last = path.split(".")
        part = filled
        for step in steps:
            part = part.setdefault(step, {})
            if not isinstance(part, dict):
                return _given(path)
        if last in part:
            return _given(path)
        part[last] = {"name": secret_name(provider), "key": key}
    return filled


def login_problem(keys: Collection[str], content: bytes) -> Problem | None:
    """Return why a credential cannot be a Secret of these keys, without its values."""
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
    return (
        Problem("credential", f"{', '.join(unfit)} is empty or no text", "give each as text")
        if unfit
        else None
    )


def login_values(keys: Collection[str], content: bytes) -> Mapping[str, bytes]:
    """Return the Secret's values, by key, of a credential that has no fault: its fields, or all of it."""
    if len(keys) == 1:
        [key] = keys
        return {key: content}
    fields = _fields(content) or {}
    return {key: str(fields[key]).encode() for key in keys}


def login_data(keys: Collection[str], content: bytes) -> Mapping[str, str]:
    """Make the Secret's data, base64, of the same."""
    return {key: base64.b64encode(value).decode() for key, value in login_values(keys, content).items()}


def _given(path: str) -> Problem:
    return Problem(
        f"spec.{path}",
        f"spec.{path} is given, and credentialsFrom is another way to log in",
        "keep one of them",
    )


def _fields(content: bytes) -> Mapping[str, Any] | None:
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
