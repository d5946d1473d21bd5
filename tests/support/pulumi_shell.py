"""The genuine Pulumi CLI in a project's folder, as in the shell of `credfleet sandbox env`; and its death."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import psutil
import yaml
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.pulumi_cli import PulumiCli
from pulumi_sandbox.services.progress import silent

from operations.folders import Folders
from operations.sandbox.control_plane import OWNER
from operations.sandbox.processes import exports

_LOOK_AGAIN: Final = 0.001
"""Seconds between two looks at the state of an update that is to be killed at a write of it."""


@cache
def _cli() -> PulumiCli:
    return pulumi_cli.find(OWNER, silent)


def shell(folder: Path, stack: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return a shell's variables after `credfleet sandbox env`; its cluster and its trust stay."""
    folders = Folders(folder.resolve())
    pulumi_cli.furnish(folders.pulumi_home)
    kept = {name: environment[name] for name in ("KUBECONFIG", "SSL_CERT_FILE") if name in environment}
    return {**environment, **exports(folders, stack, environment, _cli()), **kept}


def command(stack: str, *words: str) -> list[str]:
    """Return the command line of the CLI on a stack."""
    return [str(_cli().program), *words, "--stack", stack, "--non-interactive", "--color", "never"]


def state_of(folder: Path, stack: str) -> Path:
    """Return the file of a stack's state."""
    project = yaml.safe_load((folder / "Pulumi.yaml").read_text(encoding="utf-8"))["name"]
    return Folders(folder).backend / ".pulumi" / "stacks" / project / f"{stack}.json"


def bring_stack(folder: Path, stack: str) -> None:
    """Have a stack without resources, as `pulumi stack init` makes it, unless it is there."""
    state = state_of(folder, stack)
    if not state.exists():
        state.parent.mkdir(parents=True)
        empty = {"version": 3, "checkpoint": {"stack": f"organization/{state.parent.name}/{stack}"}}
        state.write_text(json.dumps(empty), encoding="utf-8")
        (Folders(folder).backend / ".pulumi" / "meta.yaml").write_text("version: 1\n", encoding="utf-8")


def kill_at(process: subprocess.Popen[bytes], state: Path, writes: int, seconds: float) -> int:
    """Kill a command at its n-th write of the state, or after a time; return its exit code."""
    until, seen = time.monotonic() + seconds, _written(state)
    while process.poll() is None:
        if (now := _written(state)) != seen:
            seen, writes = now, writes - 1
        if writes == 0 or time.monotonic() > until:
            kill(process)
            break
        time.sleep(_LOOK_AGAIN)
    return process.wait()


def _written(state: Path) -> tuple[int, int]:
    with suppress(FileNotFoundError):
        found = os.stat(state)
        return found.st_mtime_ns, found.st_ino
    return 0, 0


def kill(process: subprocess.Popen[Any]) -> None:
    """Kill a command of the CLI, then all that it started, as a machine does that goes down."""
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for each in below:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(below)
