"""File locks between processes, which the kernel releases when their holder dies."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from pulumi_sandbox.files import make_folder


@contextmanager
def exclusive(path: Path, on_wait: Callable[[], None] = lambda: None) -> Generator[None]:
    """Hold the lock file `path` (created if missing, never removed); call `on_wait` once if it is taken."""
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
