"""The Pulumi CLI that runs a sandbox's stacks, and a home for it with every provider."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.providers import MODULES
from pulumi_sandbox.services.build import PULUMI_CLI, binaries, cache_folder
from pulumi_sandbox.services.progress import Progress

OLDEST: Final = (3, 260, 0)
"""Oldest supported CLI, because of its automation interface and hooks."""

LOCAL: Final = "local provider of the sandbox"
_NAMED: Final = "PULUMI"
"""Variable with the path of a CLI to use instead of the one on PATH."""


@dataclass(frozen=True, slots=True)
class PulumiCli:
    """A CLI: its program (an absolute path) and its version, `v3.274.1`."""

    program: Path
    version: str

    @property
    def is_supported(self) -> bool:
        """Whether its major version is 3, and it is recent enough."""
        found = re.match(r"v(\d+)\.(\d+)\.(\d+)", self.version)
        release = tuple(map(int, found.groups())) if found else ()
        return OLDEST <= release < (OLDEST[0] + 1,)


def is_installed() -> bool:
    """Return whether a supported CLI is named or on PATH, so that none must be built."""
    found = _asked(os.environ.get(_NAMED) or shutil.which("pulumi"))
    return bool(os.environ.get(_NAMED)) or (found is not None and found.is_supported)


def find(owner: str, progress: Progress) -> PulumiCli:
    """Return the CLI that PULUMI names, otherwise a supported one on PATH, otherwise one built once.

    owner: whose cache stores the build. Raises SandboxError `cli-unsupported` if PULUMI does not name a
    supported one; and as `binaries`.
    """
    named = os.environ.get(_NAMED)
    found = _asked(named or shutil.which("pulumi"))
    if found and found.is_supported:
        return found
    if named:
        raise SandboxError(
            code="cli-unsupported",
            place=f"{_NAMED}={named}",
            problem=f"it is Pulumi {found.version}" if found else "it cannot be run",
            fix=f"name a Pulumi CLI from {'.'.join(map(str, OLDEST))} on, before 4; or unset {_NAMED}",
        )
    folder = binaries(progress, cache_folder(owner).with_name(PULUMI_CLI.folder.name), PULUMI_CLI)
    built = _asked(str(folder / "pulumi"))
    if built is None:
        raise SandboxError(
            code="build-failed",
            place=str(folder),
            problem="the Pulumi CLI that was built cannot be run",
            fix=f"remove {folder}, and run the command again",
        )
    return built


@cache
def _asked(program: str | None) -> PulumiCli | None:
    if program is None:
        return None
    quiet = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        done = subprocess.run([program, "version"], env=quiet, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return PulumiCli(Path(program).absolute(), done.stdout.strip())


def furnish(home: Path) -> dict[str, str]:
    """Create a home of the CLI (PULUMI_HOME) with the provider of each package.

    A genuine provider is linked if installed: on PATH, or in the user's plugin cache. For other packages the
    sandbox's local provider is added. Returns package → location of its provider, LOCAL for local ones.
    """
    return {package: _provide(home, package, module) for package, module in MODULES.items()}


def _provide(home: Path, package: str, module: str) -> str:
    program = f"pulumi-resource-{package}"
    if (on_path := shutil.which(program)) is not None:
        return on_path
    try:
        version = metadata.version(f"pulumi-{package}")
    except metadata.PackageNotFoundError:
        return "not installed"
    plugin = Path("plugins", f"resource-{package}-v{version}", program)
    own, cache = home / plugin, Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    installed = cache / plugin
    if cache == home and own.is_symlink():  # in a shell with the variables of `sandbox env`: the earlier link
        installed = own.readlink()
    if installed != own and installed.is_file():
        staged = files.make_folder(own.parent) / f".{os.getpid()}"
        staged.symlink_to(installed)  # only the program: the CLI ignores plugin folders that are links
        staged.replace(own)
        return str(installed)
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -u -P -m {module} "$@"\n'
    if own.is_symlink() or not own.is_file() or own.read_text(encoding="utf-8") != script:
        files.replace(own, script, mode=0o700)
    return LOCAL
