"""A pool watched from outside, by a process of its own, from one moment on to another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.fire.storm import watcher
from tests.support.fleet_project import FleetProject
from tests.support.members import Members

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient

LAST: Final = "the-watch-is-over"


@contextmanager
def watched(
    pool: FleetProject, folder: Path, members: Members, admin: DynamicClient, namespace: str | None = None
) -> Generator[None]:
    """Have all that happens to the pool written down by another process. namespace: "" for all of them."""
    seen = pool.pool if namespace is None else namespace
    command = [sys.executable, watcher.__file__, str(pool.kubeconfig), seen, str(folder), LAST]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        try:
            yield
            members.add(LAST)
            body = {"metadata": {"name": LAST}}
            admin.resources.get(api_version="v1", kind="ConfigMap").create(namespace=pool.pool, body=body)
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 0
