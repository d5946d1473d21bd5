"""Errors of the API server, converted to the provider's uniform errors without credentials."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Properties, mapping, mappings, text
from pulumi_sandbox.providers.kubernetes import objects

_ADVICE: Final = {
    401: ("not-authenticated", "fix the user's token or certificate in the kubeconfig"),
    403: ("not-allowed", "let an administrator bind a role that allows it, or choose another context"),
    404: ("not-found", "create what the message names first (depends_on), or run refresh if it is gone"),
    409: ("conflict", "run again; another writer wrote at the same moment"),
    422: ("invalid", "correct the field the message names; if it cannot change, use replace_on_changes"),
}


NO_KIND: Final = "NoKind"
"""Reason if the server does not serve the kind of an object, so that the object was not requested."""


class ApiRefusedError(Exception):
    """An error response of the API server; `explained` adds what was requested."""

    def __init__(self, status: int, answer: Properties) -> None:
        super().__init__(text(answer.get("message")) or f"HTTP status {status}")
        self.status = status
        self.reason = str(answer.get("reason", ""))
        self.causes = mappings(mapping(answer.get("details")).get("causes"))


@contextmanager
def explained(operation: str, obj: Properties, *, manager: str = "") -> Generator[None]:
    """Convert an API error on creating, updating, reading or deleting an object to SandboxError."""
    try:
        yield
    except ApiRefusedError as refusal:
        code, fix = _advice(refusal, manager)
        raise SandboxError(
            code=code,
            place=described(obj),
            problem=f"the Kubernetes API refused to {operation} it: {str(refusal).rstrip('.')}",
            fix=fix,
        ) from refusal


def described(obj: Properties) -> str:
    """Return the name of an object for people: its kind and ID."""
    return f"{obj.get('kind')} {objects.object_id(obj)}"


def _advice(refused: ApiRefusedError, manager: str) -> tuple[str, str]:
    """Return the code and the fix for an error."""
    if refused.reason == NO_KIND:
        fix = "create its CustomResourceDefinition first (depends_on), or correct apiVersion and kind"
        return "kind-unknown", fix
    if all(problem.get("reason") != "FieldManagerConflict" for problem in refused.causes):
        return _ADVICE.get(refused.status, ("refused", "see the message, and the API server's log"))
    others = sorted({str(problem.get("message", "")).partition(" using")[0] for problem in refused.causes})
    return (
        "apply-conflict",
        f"leave the field to its owner, or let the owner give it up ({', '.join(others)}; this resource is "
        f"{manager!r})",
    )
