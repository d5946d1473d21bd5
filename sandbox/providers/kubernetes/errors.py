"""What the provider says when a request fails: one shape for people, without a credential in it."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator
from typing import Final

from sandbox.engine import urns
from sandbox.engine.values import MASK, Properties, Secret, Value, reveal
from sandbox.errors import SandboxError
from sandbox.providers.kubernetes import objects
from sandbox.providers.kubernetes.api import RefusedError

_SHORTEST_SECRET: Final = 4
"""Shorter texts are not looked for in messages: masking each `a` would leave nothing to read."""

_ADVICE: Final = {
    401: ("not-authenticated", "mend the user's token or certificate in the kubeconfig"),
    403: ("not-allowed", "let an administrator bind a role that allows it, or choose another context"),
    404: ("not-found", "create what the message names first (depends_on), or run refresh if it is gone"),
    409: ("conflict", "run again; somebody else wrote at the same moment"),
    422: ("invalid", "correct the field the message names; if it cannot change, use replace_on_changes"),
}


class NotReadyError(Exception):
    """An object was written, but did not become what its annotations wait for; `live` is its last state."""

    def __init__(self, live: Properties, reason: str) -> None:
        """Keep the object for the state, and the reason for the user."""
        super().__init__(reason)
        self.live = live
        self.reason = reason


def refused(operation: str, inputs: Properties, refusal: RefusedError, *, manager: str = "") -> SandboxError:
    """Tell that the API server refused to create, update, read or delete an object, and what can be done."""
    code, mend = _advice(refusal, manager)
    return SandboxError(
        code=code,
        place=described(inputs),
        cause=f"the Kubernetes API refused to {operation} it: {str(refusal).rstrip('.')}",
        mend=mend,
    )


def unknown_kind(inputs: Properties) -> SandboxError:
    """Tell that the API server serves no such kind."""
    return SandboxError(
        code="kind-unknown",
        place=described(inputs),
        cause=f"the Kubernetes API serves no kind {inputs.get('kind')} in {inputs.get('apiVersion')}",
        mend="create its CustomResourceDefinition first (depends_on), or correct apiVersion and kind",
    )


def already_exists(inputs: Properties, urn: str) -> SandboxError:
    """Tell that an object is there that the stack does not know (decisions 8 and 10)."""
    parsed = urns.parse(urn)
    command = shlex.join(["pulumi", "import", parsed.type, parsed.name, objects.object_id(inputs)])
    return SandboxError(
        code="already-exists",
        place=described(inputs),
        cause="the object already exists, and this resource did not create it",
        mend="a renamed resource: give it an alias of the old name; an object of others: take another name; "
        f"to adopt it: {command}",
    )


def described(obj: Properties) -> str:
    """Name an object for people: its kind and id."""
    return f"{obj.get('kind')} {objects.object_id(obj)}"


def without_secrets(text: str, properties: Properties) -> str:
    """Take every secret of the properties out of a text, encoded ones too."""
    forms = {form for leaf in _secret_texts(properties, hidden=False) for form in _forms(leaf)}
    for form in sorted(forms, key=len, reverse=True):
        if len(form) >= _SHORTEST_SECRET:
            text = text.replace(form, MASK)
    return text


def _advice(refused: RefusedError, manager: str) -> tuple[str, str]:
    """Return a code and a mend."""
    if not refused.is_field_conflict:
        return _ADVICE.get(refused.status, ("refused", "see the message; the API server's log tells more"))
    others = sorted({str(cause.get("message", "")).partition(" using")[0] for cause in refused.causes})
    return (
        "apply-conflict",
        f"leave the field to its owner, or let the owner give it up ({', '.join(others)}; this resource is "
        f'{manager!r}); annotation {objects.PATCH_FORCE}: "true" takes it away',
    )


def _secret_texts(value: Value, *, hidden: bool) -> Iterator[str]:
    match value:
        case Secret():
            yield from _secret_texts(reveal(value), hidden=True)
        case dict():
            for item in value.values():
                yield from _secret_texts(item, hidden=hidden)
        case list():
            for item in value:
                yield from _secret_texts(item, hidden=hidden)
        case str() if hidden:
            yield value
        case _:
            return


def _forms(secret: str) -> tuple[str, ...]:
    encoded = base64.b64encode(secret.encode()).decode()
    try:
        return secret, encoded, base64.b64decode(secret, validate=True).decode()
    except ValueError:
        return secret, encoded
