"""How Secret Manager's things are called: `projects/P/secrets/S`, `projects/N/secrets/S/versions/V`."""

import hashlib
import re
import secrets
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Value
from pulumi_sandbox.providers.contract import Autonaming

_SECRET: Final = re.compile(r"projects/(?P<project>[^/]+)/secrets/(?P<secret>[^/]+)")
_VERSION: Final = re.compile(r"(?P<secret>projects/[^/]+/secrets/[^/]+)/versions/(?P<version>[^/]+)")
_SUFFIX_DIGITS: Final = 7
_LONGEST: Final = 255


def secret_name(project: str, secret: str) -> str:
    """Return the id of a secret."""
    return f"projects/{project}/secrets/{secret}"


def secret_parts(name: str, project: str) -> tuple[str, str]:
    """Return project and id of a secret, of its name as it is, as `project/secret`, or without the project.

    Raises SandboxError `id-invalid`.
    """
    found = _SECRET.fullmatch(name)
    if found:
        return found["project"], found["secret"]
    parts = name.split("/")
    if len(parts) > 2 or not all(parts):
        raise _invalid(name, "projects/PROJECT/secrets/SECRET")
    return (parts[0], parts[1]) if len(parts) == 2 else (project, parts[0])


def is_secret_name(name: Value) -> bool:
    """Whether this is the full name of a secret."""
    return isinstance(name, str) and _SECRET.fullmatch(name) is not None


def version_parts(name: str) -> tuple[str, str]:
    """Return the name of the secret and the version's own.

    Raises SandboxError `id-invalid`.
    """
    found = _VERSION.fullmatch(name)
    if found is None:
        raise _invalid(name, "projects/PROJECT/secrets/SECRET/versions/VERSION")
    return found["secret"], found["version"]


def same_secret(recorded: Value, given: Value) -> bool:
    """Compare the name of a secret with one that may leave out the project, as the genuine provider does."""
    if not isinstance(recorded, str) or not isinstance(given, str):
        return False
    return recorded == given or ("/" not in given and recorded.endswith(f"/{given}"))


def made_up(logical_name: str, seed: bytes, autonaming: Autonaming | None) -> str | None:
    """Make up the id of a secret: the engine's proposal, else `<logical name>-<7 hex digits>`.

    None when the stack's configuration switches making up names off.
    """
    if autonaming is not None and autonaming.disabled:
        return None
    if autonaming is not None and autonaming.proposed:
        return autonaming.proposed
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(_SUFFIX_DIGITS)
    return f"{logical_name[: _LONGEST - _SUFFIX_DIGITS - 1]}-{digits[:_SUFFIX_DIGITS]}"


def _invalid(name: str, form: str) -> SandboxError:
    return SandboxError(
        code="id-invalid",
        place=name,
        problem="this names nothing in Secret Manager",
        fix=f"write {form}",
    )
