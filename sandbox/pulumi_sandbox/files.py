"""Files and folders of the sandbox: files are replaced atomically, folders are private to their owner."""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from pulumi_sandbox.errors import SandboxError

PRIVATE = 0o600
"""Mode of files with tokens, keys, or program output."""


def replace(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a file atomically and durably.

    mode: None keeps that of the replaced file; a new file is private to its owner. A reader, or the next run
    after a crash, finds either the old or the new file, complete. Raises SandboxError `disk-full`; the old
    file is unchanged then.
    """
    temporary = ""
    try:
        make_folder(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE
            os.fchmod(file.fileno(), mode or kept)
        os.replace(temporary, path)
        _sync(path.parent)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        _tell_full(path, error)
        raise


def names_full_disk(words: str) -> bool:
    """Return whether a program's output says that the disk is full."""
    return re.search("no space left on device|disk quota exceeded", words, re.IGNORECASE) is not None


def _tell_full(path: Path, error: BaseException) -> None:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise SandboxError(
            code="disk-full",
            place=str(path),
            problem="there is no space left to write it; what was there before is unharmed",
            fix="free some space and run the command again",
        ) from None


@contextmanager
def readable(path: Path, faulty: str, fix: str) -> Generator[None]:
    """Convert errors of reading a stored file to SandboxError, except for FileNotFoundError.

    faulty: the problem. Raises SandboxError `state-unreadable`.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        problem = f"{faulty} ({type(error).__name__})"
        raise SandboxError(code="state-unreadable", place=str(path), problem=problem, fix=fix) from None


def make_folder(path: Path) -> Path:
    """Create a folder and its missing parents, private to their owner; existing ones are unchanged."""
    missing = [*takewhile(lambda each: not each.exists(), (path, *path.parents))]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    return path


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
