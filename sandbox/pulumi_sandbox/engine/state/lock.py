"""One run at a time per stack: the genuine CLI's lock, and one that the kernel drops when its holder dies.

The CLI refuses a stack while any file stands in its folder of locks, and so does this engine. Who wrote such
a file may be dead, and a process id does not tell: in another container it means another process. So a run of
this engine holds a second lock beside it, by `flock`.
"""

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
from pulumi_sandbox.documents import read_json
from pulumi_sandbox.engine.model.resource import now
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.locks import exclusive

_OURS: Final = "sandbox-"
"""How the names of this engine's files begin among those of the CLI."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lock, since when (RFC 3339)."""

    pid: int
    username: str
    hostname: str
    timestamp: str


@contextmanager
def locked(backend: Path, project: str, stack: str) -> Generator[tuple[Owner, ...]]:
    """Hold a stack's lock; yields the dead owners whose locks were taken over, for the user to be told.

    Raises SandboxError `stack-locked`, naming who holds it; nothing was written then.
    """
    locks = backend / ".pulumi" / "locks"
    directory = locks / "organization" / project / stack
    own = directory / f"{_OURS}{uuid.uuid4()}.json"
    owner = Owner(os.getpid(), pwd.getpwuid(os.getuid()).pw_name, socket.gethostname(), now())
    with exclusive(locks / "sandbox" / project / stack, on_wait=lambda: _refuse(directory)):
        gone = _clear(directory)
        files.replace(own, json.dumps(asdict(owner), separators=(",", ":")), staging=backend / ".pulumi")
        try:
            for path, other in _holders(directory):  # a CLI that started together with this run
                if path != own:
                    raise _held(path, other)
            yield gone
        finally:
            own.unlink(missing_ok=True)


def _clear(directory: Path) -> tuple[Owner, ...]:
    """Remove what runs of this engine on this host left, which are dead, else they held the kernel's lock."""
    gone: list[Owner] = []
    for path, owner in _holders(directory):
        if not path.name.startswith(_OURS) or owner.hostname != socket.gethostname():
            raise _held(path, owner)
        path.unlink(missing_ok=True)
        gone.append(owner)
    return tuple(gone)


def _refuse(directory: Path) -> None:
    """Say who holds the kernel's lock; a run that begins or ends just now has said nothing of itself."""
    for path, owner in _holders(directory):
        raise _held(path, owner)
    raise SandboxError(
        code="stack-locked",
        place=str(directory),
        cause="another run of this stack begins or ends just now",
        mend="run the command again",
    )


def _holders(directory: Path) -> Generator[tuple[Path, Owner]]:
    """Yield each lock that stands there, and whose it is, but for what is released meanwhile."""
    for path in sorted(directory.rglob("*")):
        if path.is_dir() or path.suffix == ".attrs":
            continue
        try:
            yield path, Owner(**read_json(path.read_bytes()))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError):
            raise SandboxError(
                code="stack-locked",
                place=str(path),
                cause="it stands where locks stand, but nobody can be read from it",
                mend="make sure nothing runs on this stack, then delete this file",
            ) from None


def _held(path: Path, owner: Owner) -> SandboxError:
    return SandboxError(
        code="stack-locked",
        place=str(path),
        cause=f"{owner.username}@{owner.hostname} (pid {owner.pid}) holds it since {owner.timestamp}",
        mend="wait until that run ends; if it runs no more, delete this file or use `pulumi cancel`",
    )
