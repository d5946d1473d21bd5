"""What a cloud's refusal of a request means to whoever declared the resource."""

from __future__ import annotations

import shlex
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.providers.rest import ServiceRefusedError

_LATER: Final = ("service-busy", "run again later: the request was repeated as often as is sensible")
_ADVICE: Final = {
    400: ("invalid", "correct the value that the message names"),
    401: ("not-authenticated", "mend the provider's token"),
    403: ("not-allowed", "let an administrator grant it, or choose another project or subscription"),
    404: ("not-found", "create what the message names first (depends_on), or run refresh if it is gone"),
    409: ("conflict", "see what the message names: leave it to its owner, or run again if it was busy"),
    412: ("conflict", "run again; somebody else wrote at the same moment"),
}


def refused(operation: str, place: str, refusal: ServiceRefusedError) -> SandboxError:
    """Return the error that a service refused to create, read, update or delete something."""
    code, mend = _ADVICE.get(
        refusal.status, _LATER if refusal.status >= 429 else ("refused", "see the message")
    )
    named = f"{refusal.status} {refusal.code}".strip()
    return SandboxError(
        code=code,
        place=place,
        cause=f"the service refused to {operation} it ({named}): {str(refusal).rstrip('.')}",
        mend=mend,
    )


def already_exists(urn: str, place: str) -> SandboxError:
    """Return the error that something is there that the stack does not know; it is never taken over."""
    parsed = urns.parse(urn)
    command = shlex.join(["pulumi", "import", parsed.type, parsed.name, place])
    return SandboxError(
        code="already-exists",
        place=place,
        cause="it already exists, and this resource did not create it",
        mend=f"take another name if it belongs to others; to adopt it: {command}",
    )
