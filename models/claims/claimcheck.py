"""Builds the model checker of the claim protocol, once per version of its source, and runs it.

`python -m models.claims.claimcheck -small` explores the small scope; see README.md beside this file.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.build import cache_folder
from pulumi_sandbox.services.locks import exclusive
from pulumi_sandbox.services.progress import Progress, silent
from pulumi_sandbox.services.toolchain import Go, installed, toolchain_for

SOURCE = Path(__file__).parent


def program(progress: Progress = silent) -> Path:
    """Return the path of the built checker, building it first when no build of this source is kept.

    Raises:
        SandboxError: `go-missing` or `model-broken`.
    """
    go = toolchain_for((SOURCE / "go.mod").read_text())
    cache = cache_folder("credfleet").with_name("claimcheck")
    kept = cache / _key(go)
    with exclusive(cache / "lock"):
        if not kept.exists():
            unfinished = cache / "unfinished"
            _build(installed(go, cache_folder("credfleet"), progress), unfinished)
            unfinished.rename(kept)
    return kept


def _key(go: Go) -> str:
    """Name a build: equal sources and compilers, equal programs."""
    digest = hashlib.sha256(go.name.encode())
    for path in [SOURCE / "go.mod", *sorted(SOURCE.glob("*.go"))]:
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:20]


def _build(go: Path, to: Path) -> None:
    own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    answer = subprocess.run(
        [str(go), "build", "-trimpath", "-buildvcs=false", "-o", str(to), "."],
        cwd=SOURCE,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise SandboxError(
            code="model-broken",
            place=str(SOURCE),
            cause=f"the model checker could not be built: {answer.stderr.strip()}",
            mend="mend the Go source it names; `git diff models/claims` shows what changed",
        )


def main() -> int:
    """Run the checker with the arguments of this command."""
    return subprocess.run([str(program()), *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
