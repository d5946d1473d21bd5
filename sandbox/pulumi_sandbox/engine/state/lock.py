"""One writer per stack, by the lock of the genuine CLI's file backend: the two exclude each other.

A lock is a JSON file named by a fresh UUID under `.pulumi/locks/organization/PROJECT/STACK/`; any other file
there is somebody else's lock. It never expires. This engine alone looks whether its owner is still alive.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pulumi_sandbox import files
from pulumi_sandbox.engine.model.resource import now
from pulumi_sandbox.errors import SandboxError

_DIRECTORY: Final = Path(".pulumi", "locks", "organization")


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lock, since when (RFC 3339)."""

    pid: int
    username: str
    hostname: str
    timestamp: str

    @property
    def is_gone(self) -> bool:
        """Whether it ran on this host and runs no more; nothing is known of other hosts."""
        if self.hostname != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


@contextmanager
def locked(backend: Path, project: str, stack: str) -> Generator[tuple[Owner, ...]]:
    """Hold a stack's lock; yields the dead owners whose locks were taken over, for the user to be told.

    Raises SandboxError `stack-locked`, naming who holds it; nothing was written then.
    """
    directory = backend / _DIRECTORY / project / stack
    own = directory / f"{uuid.uuid4()}.json"
    gone = _clear(directory, own)
    owner = Owner(os.getpid(), pwd.getpwuid(os.getuid()).pw_name, socket.gethostname(), now())
    files.replace(own, json.dumps(asdict(owner), separators=(",", ":")), staging=backend / ".pulumi")
    try:
        _clear(directory, own)  # two that started together both see the other, and both give way
        yield gone
    finally:
        own.unlink(missing_ok=True)


def _clear(directory: Path, own: Path) -> tuple[Owner, ...]:
    """Remove locks of the dead; refuse when one of the living is there."""
    gone: list[Owner] = []
    for path in sorted(directory.rglob("*")):
        if path == own or path.is_dir() or path.suffix == ".attrs":
            continue
        owner = _read(path)
        if owner is None:
            continue
        if not owner.is_gone:
            raise SandboxError(
                code="stack-locked",
                place=str(path),
                cause=f"{owner.username}@{owner.hostname} (pid {owner.pid}) holds it since {owner.timestamp}",
                mend="wait until that run ends; if it runs no more, delete this file or use `pulumi cancel`",
            )
        path.unlink(missing_ok=True)
        gone.append(owner)
    return tuple(gone)


def _read(path: Path) -> Owner | None:
    """Return who holds the lock, None when it was released meanwhile."""
    try:
        return Owner(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise SandboxError(
            code="stack-locked",
            place=str(path),
            cause="it stands where locks stand, but nobody can be read from it",
            mend="make sure nothing runs on this stack, then delete this file",
        ) from None
