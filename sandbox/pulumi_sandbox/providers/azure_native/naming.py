"""What a resource is called that was given no name."""

from __future__ import annotations

import hashlib
import secrets
import uuid

from pulumi_sandbox.providers.azure_native.resources import Autoname
from pulumi_sandbox.providers.contract import Autonaming

MADE_UP = "__createBeforeDelete"
"""The genuine provider's note among the inputs that their name is a made-up one."""


def made_up(form: Autoname, logical_name: str, seed: bytes, autonaming: Autonaming | None) -> str | None:
    """Make up a name: the engine's proposal, else `<logical name><8 hex digits>`, or a GUID.

    A GUID gives way only to a proposal that is enforced. None when the stack's configuration switches making
    up names off.
    """
    if autonaming is not None and autonaming.disabled:
        return None
    if autonaming is not None and autonaming.proposed and (form == "random" or autonaming.enforced):
        return autonaming.proposed
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(16)
    return f"{logical_name}{digits[:8]}" if form == "random" else str(uuid.UUID(digits[:32]))
