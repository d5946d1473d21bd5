"""How Secret Manager's things are called: `projects/P/secrets/S`, `projects/N/secrets/S/versions/V`."""

import re
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Value

_SECRET: Final = re.compile(r"projects/(?P<project>[^/]+)/secrets/(?P<secret>[^/]+)")
_VERSION: Final = re.compile(r"(?P<secret>projects/[^/]+/secrets/[^/]+)/versions/(?P<version>[^/]+)")


def secret_name(project: str, secret: str) -> str:
    """Return the id of a secret."""
    return f"projects/{project}/secrets/{secret}"


def secret_parts(name: str, project: str) -> tuple[str, str]:
    """Return project and id of a secret, of its whole name or of its id alone.

    Raises SandboxError `id-invalid`.
    """
    found = _SECRET.fullmatch(name)
    if found:
        return found["project"], found["secret"]
    if not name or "/" in name:
        raise _invalid(name, "projects/PROJECT/secrets/SECRET")
    return project, name


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


def _invalid(name: str, form: str) -> SandboxError:
    return SandboxError(
        code="id-invalid",
        place=name,
        problem="this names nothing in Secret Manager",
        fix=f"write {form}",
    )
