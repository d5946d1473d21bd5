"""Names of projects, places, secrets and versions, and the number that stands for a project in every answer.

What a secret lies in, its parent, is a project, or a project and a place: `acme-prod/locations/europe-west1`.
"""

import hashlib
import re

from pulumi_sandbox.services.cloud.secret_manager.refusals import GcpRefusal, invalid

_LOCATION = re.compile(r"[a-z]+-[a-z]+[1-9][0-9]?")
_PROJECT = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,255}")
_PLACE = "/locations/"


def project_number(project: str) -> str:
    """Derive twelve digits from a project's id: the same each time, so that answers stay comparable."""
    return str(10**11 + int(hashlib.sha256(project.encode()).hexdigest(), 16) % (9 * 10**11))


def secret_name(parent: str, secret: str) -> str:
    """Return the full name of a secret, with its project's number as Google answers it."""
    project, place, location = parent.partition(_PLACE)
    return f"projects/{project_number(project)}{place}{location}/secrets/{secret}"


def parent_of(project: str, location: str | None) -> str:
    """Return what secrets of a project and place lie in; raises Refusal for what can be neither."""
    if not _PROJECT.fullmatch(project):
        raise GcpRefusal("PERMISSION_DENIED", f"Permission denied on resource project {project}.")
    if location is None:
        return project
    return f"{project}{_PLACE}{checked_location(location)}"


def is_regional(parent: str) -> bool:
    """Whether what lies in it is kept in one place only."""
    return _PLACE in parent


def checked_location(location: str) -> str:
    """Return a place back when it has the form of one."""
    if not _LOCATION.fullmatch(location):
        raise invalid(f"The location [{location}] is not valid.")
    return location


def checked_secret(secret: str) -> str:
    """Return a secret's id back when it can be one."""
    if not _SECRET.fullmatch(secret):
        raise invalid(
            f"The provided Secret ID [{secret}] does not match the expected format [[a-zA-Z_0-9-]{{1,255}}]"
        )
    return secret
