"""Names of projects, secrets and versions, and the number that stands for a project in every answer."""

import hashlib
import re

from pulumi_sandbox.services.cloud.secret_manager.refusals import Refusal, invalid

_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")


def project_number(project: str) -> str:
    """Derive twelve digits from a project's id: the same each time, so that answers stay comparable."""
    return str(10**11 + int(hashlib.sha256(project.encode()).hexdigest(), 16) % (9 * 10**11))


def secret_name(project: str, secret: str) -> str:
    """Return the full name of a secret, with its project's number as Google answers it."""
    return f"projects/{project_number(project)}/secrets/{secret}"


def checked_project(project: str) -> str:
    """Return a project's id back when it can be one."""
    if not _PROJECT.fullmatch(project):
        raise Refusal("PERMISSION_DENIED", f"Permission denied on resource project {project}.")
    return project


def checked_secret(secret: str) -> str:
    """Return a secret's id back when it can be one."""
    if not _SECRET.fullmatch(secret):
        raise invalid(
            f"The provided Secret ID [{secret}] does not match the expected format [[a-zA-Z_0-9-]{{1,255}}]"
        )
    return secret
