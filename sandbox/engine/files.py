"""Replacing a file so that a reader, or the next run after a crash, finds the old or the new one, whole."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from sandbox.errors import SandboxError


def replace(path: Path, text: str, *, staging: Path | None = None) -> None:
    """Write a file atomically and durably (mode 0644); `staging` is where it is written first.

    Raises:
        SandboxError: `disk-full`; the old file is untouched then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(
        dir=staging or path.parent, prefix=f".{path.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
        _sync(path.parent)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise SandboxError(
                code="disk-full",
                place=str(path),
                cause="there is no space left to write it; what was there before is unharmed",
                mend="free some space and run the command again",
            ) from None
        raise


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
