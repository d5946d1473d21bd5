"""Builds a small Go program of this project, once per version of its source and per compiler."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.locks import exclusive
from pulumi_sandbox.services.build import cache_folder
from pulumi_sandbox.services.progress import Progress, silent
from pulumi_sandbox.services.toolchain import Go, installed, toolchain_for


def built(
    source: Path,
    name: str,
    progress: Progress = silent,
    *,
    offline: bool = False,
    package: str = ".",
    tags: str = "",
) -> Path:
    """Return the path of the built program, building it first when no build of this source is kept.

    source: its folder, with go.mod. name: of the folder in the cache. offline: neither a compiler nor modules
    are fetched. package: which one, where it is another module's; tags: of its build. Raises SandboxError
    `go-missing` or `program-broken`.
    """
    go = toolchain_for((source / "go.mod").read_text())
    cache = cache_folder("credfleet").with_name(name)
    kept = cache / _key(source, go)
    with exclusive(cache / "lock"):
        if not kept.exists():
            unfinished = cache / "unfinished"
            what = ("-tags", tags, "-o", str(unfinished), package)
            _build(_compiler(go, progress, offline=offline), source, what, offline=offline)
            unfinished.rename(kept)
    return kept


def _compiler(go: Go, progress: Progress, *, offline: bool) -> Path:
    if offline and go.path is None:
        raise SandboxError(
            code="go-missing",
            place=go.name,
            problem="no Go on PATH is new enough",
            fix="install Go from https://go.dev/dl",
        )
    return installed(go, cache_folder("credfleet"), progress)


def _key(source: Path, go: Go) -> str:
    """Name a build: equal sources and compilers, equal programs."""
    digest = hashlib.sha256(go.name.encode())
    for path in sorted([*source.glob("go.*"), *source.glob("*.go")]):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def _build(go: Path, source: Path, what: Sequence[str], *, offline: bool) -> None:
    own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    answer = subprocess.run(
        [str(go), "build", "-trimpath", "-buildvcs=false", *what],
        cwd=source,
        env={**os.environ, **own, **({"GOPROXY": "off"} if offline else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise SandboxError(
            code="program-broken",
            place=str(source),
            problem=f"it could not be built: {answer.stderr.strip()}",
            fix="fix the Go source it names, or name a module proxy with GOPROXY",
        )
