"""Files and folders of the sandbox: files replaced whole or not at all, folders for their owner alone."""

import errno
import os
import stat
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from pulumi_sandbox.errors import SandboxError

PRIVATE = 0o600
"""The mode of files that hold tokens, keys, or what a program said."""


def replace(path: Path, text: str, *, mode: int | None = None, staging: Path | None = None) -> None:
    """Write a file atomically and durably; `staging` is where it is written first.

    mode: None keeps that of the file that is replaced; a new one is its owner's alone.

    A reader, or the next run after a crash, finds the old file or the new one, whole.

    Raises SandboxError `disk-full`; the old file is untouched then.
    """
    make_folder(path.parent)
    descriptor, temporary = tempfile.mkstemp(
        dir=staging or path.parent, prefix=f".{path.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode or _mode_of(path))
        os.replace(temporary, path)
        _sync(path.parent)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        _tell_full(path, error)
        raise


def append(path: Path, text: str) -> None:
    """Write at the end of a file, durably; what is not written whole is cut off again.

    Raises SandboxError `disk-full`.
    """
    is_new = not path.exists()
    with opened_to_append(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        except BaseException as error:
            os.ftruncate(file.fileno(), size)
            _tell_full(path, error)
            raise
    if is_new:
        _sync(path.parent)


def _tell_full(path: Path, error: BaseException) -> None:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise SandboxError(
            code="disk-full",
            place=str(path),
            cause="there is no space left to write it; what was there before is unharmed",
            mend="free some space and run the command again",
        ) from None


def opened_to_append(path: Path) -> BinaryIO:
    """Open a file to write at its end; one that is made is its owner's alone."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE), "ab")


def make_folder(path: Path) -> Path:
    """Make a folder and all that is missing above it, for their owner alone; those that exist stay as is."""
    missing = [*takewhile(lambda each: not each.exists(), (path, *path.parents))]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    return path


def _mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
