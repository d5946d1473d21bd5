"""Check that the added version has the expected content, is readable, and is the latest.

HyperFleet's own job accepts any answer of `latest` as success. Here exactly the added version is read back
and compared by digest.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components.errors import PullSecretError
from components.labels import PREFIX
from components.secret_manager import LATEST, SecretManager, Version, VersionState, secret_name, version_name

KEY: Final = ".dockerconfigjson"
"""Data key of the cluster's Secret."""

TYPE: Final = "kubernetes.io/dockerconfigjson"

_ADDED: Final = "the update then adds the pull secret again"

STORED_AS: Final = f"{PREFIX}secret-manager-version"
"""Annotation of the cluster's Secret: the Secret Manager version that it was created from."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Added version, and the digest of its expected content (`digest_of`)."""

    project: str
    secret_id: str
    version: int
    owner: str
    digest: str

    @property
    def secret(self) -> str:
        """Name of its secret."""
        return secret_name(self.project, self.secret_id)

    @property
    def name(self) -> str:
        """Its name."""
        return version_name(self.secret, self.version)

    def is_met_by(self, content: bytes) -> bool:
        """Return whether this is the expected content."""
        return hmac.compare_digest(digest_of(self.owner, content), self.digest)


@dataclass(frozen=True, slots=True)
class VersionStanding:
    """State of a version.

    `digest`: of its content; empty if unreadable. `latest`: number of the version that the alias returns;
    Google might take minutes to update it. `overtaken`: message about that version if it is newer; otherwise
    empty.
    """

    state: VersionState
    digest: str
    latest: int
    overtaken: str


def digest_of(owner: str, content: bytes) -> str:
    """Return a digest that does not reveal the pull secret: an HMAC keyed with its owner.

    The key is not secret: it keeps equal pull secrets of two clusters from having one digest. The digest is
    therefore marked as secret, like the pull secret itself.
    """
    return hmac.new(owner.encode(), content, hashlib.sha256).hexdigest()


def add_version(versions: SecretManager, secret: str, content: bytes) -> int:
    """Return the number of the newest version, after adding one unless it already has this content."""
    newest = next(iter(versions.versions(secret)), None)
    if newest is None or newest.state is not VersionState.ENABLED:
        return versions.add(secret, content).number
    same = hmac.compare_digest(versions.access(version_name(secret, newest.number)).content, content)
    return newest.number if same else versions.add(secret, content).number


def verify(versions: SecretManager, expected: Expected, before: int) -> tuple[VersionStanding, Sequence[int]]:
    """Read back the added version, and disable versions left behind by lost answers.

    `before`: number of the last verified version, 0 if none. Versions in between with the same content were
    added by calls whose answer was lost: their numbers are unknown, so nothing uses them. Returns the state
    of the version, and the numbers of the disabled ones. Raises PullSecretError if the content differs or is
    unreadable.
    """
    standing = stand(versions, expected)
    if standing is None:
        raise _unusable(expected, "missing", "it is not there, although it was added", "refresh the stack")
    if standing.state is not VersionState.ENABLED:
        raise _unusable(
            expected,
            standing.state.lower(),
            f"it is {standing.state.lower()}, so it cannot be read",
            f"refresh the stack: {_ADDED}",
        )
    if not hmac.compare_digest(standing.digest, expected.digest):
        raise _unusable(
            expected,
            "content-differs",
            "what is read back is not what was given; the cluster keeps what it has",
            "find the other writer of this secret, then replace the version: pulumi up --replace URN",
        )
    strays = [*_strays(versions, expected, before)]
    return standing, [versions.disable(stray).number for stray in strays]


def stand(versions: SecretManager, expected: Expected) -> VersionStanding | None:
    """Return the state of a version; None if not found."""
    found = versions.version(expected.name)
    if found is None:
        return None
    if found.state is not VersionState.ENABLED:
        return VersionStanding(found.state, "", 0, "")
    digest = digest_of(expected.owner, versions.access(expected.name).content)
    latest = versions.version(version_name(expected.secret, LATEST)) or found
    overtaken = _overtaking(versions, expected, latest) if latest.number > found.number else ""
    return VersionStanding(found.state, digest, latest.number, overtaken)


def enable_again(versions: SecretManager, expected: Expected) -> bool:
    """Enable a disabled version; return whether it was disabled."""
    found = versions.version(expected.name)
    if found is None or found.state is not VersionState.DISABLED:
        return False
    versions.enable(found)
    return True


def lost_version(versions: SecretManager, secret: str, delivered: str) -> str:
    """Return the cluster's version if it can never be read again; otherwise empty.

    `delivered`: version that the cluster's Secret was made from (`STORED_AS`); if that is not a version of
    this secret, the newest one is used.
    """
    newest = next(iter(versions.versions(secret)), None)
    if newest is None:
        return ""
    number = delivered.removeprefix(f"{secret}/versions/")
    name = version_name(secret, int(number) if number.isdecimal() else newest.number)
    found = versions.version(name)
    return "" if found and found.state is not VersionState.DESTROYED else name


def differences(versions: SecretManager, expected: Expected, overtaken: str) -> Iterator[str]:
    """Yield what changed since a version was verified; `overtaken`: from its state at that time."""
    standing = stand(versions, expected)
    if standing is None:
        yield f"it is gone; refresh the stack: {_ADDED}"
    elif standing.state is VersionState.DISABLED:
        yield "it is disabled; the update enables it"
    elif standing.state is VersionState.DESTROYED:
        yield f"it is destroyed; refresh the stack: {_ADDED}"
    elif standing.overtaken != overtaken:
        yield standing.overtaken or "it is the latest again"


def is_delivered(data: Mapping[str, str], expected: Expected) -> bool:
    """Return whether the base64 data of the cluster's Secret is as expected."""
    try:
        return expected.is_met_by(base64.b64decode(data[KEY], validate=True))
    except (KeyError, ValueError):
        return False


def _overtaking(versions: SecretManager, expected: Expected, latest: Version) -> str:
    who = f"version {latest.number}, which another writer added at {latest.created}, is the latest"
    if latest.state is not VersionState.ENABLED:
        return f"{who} and is {latest.state.lower()}, so a reader of the latest gets nothing"
    if expected.is_met_by(versions.access(version_name(expected.secret, latest.number)).content):
        return f"{who}; it holds the same"
    return f"{who}; it holds another value, which a reader of the latest gets"


def _strays(versions: SecretManager, expected: Expected, before: int) -> Iterator[Version]:
    for each in versions.versions(expected.secret):
        if before < each.number < expected.version and each.state is VersionState.ENABLED:
            content = versions.access(version_name(expected.secret, each.number)).content
            if expected.is_met_by(content):
                yield each
            elif not before:
                return  # versions below might have been in use, and were kept


def _unusable(expected: Expected, code: str, problem: str, fix: str) -> PullSecretError:
    return PullSecretError(code=f"version-{code}", place=expected.name, problem=problem, fix=fix)
