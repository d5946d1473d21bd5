"""How a program that nobody trusts is shut in, by `confined.py`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a program that is shut in has; no network but a loopback of its own.

    readable: what it sees of the file system, read-only; writable: what else it sees; hidden: folders of that
    which are empty to it. environment: all of it. seconds, size: of wall clock and processor each, and bytes
    of memory of a process. nests: whether it may shut others in.
    """

    readable: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: int = 180
    size: int = 6 << 30
    nests: bool = False

    @classmethod
    def of(cls, specification: Mapping[str, Any]) -> Self:
        """Return what `specification` wrote."""
        paths: dict[str, Any] = {
            name: tuple(map(Path, specification[name])) for name in ("readable", "writable", "hidden")
        }
        return cls(**{**specification, **paths})

    @property
    def specification(self) -> dict[str, Any]:
        """What JSON takes."""
        paths = {name: [*map(str, getattr(self, name))] for name in ("readable", "writable", "hidden")}
        others = {name: getattr(self, name) for name in ("seconds", "size", "nests")}
        return {**paths, **others, "environment": dict(self.environment)}

    def start(self, folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a command in a folder, shut in; what it says is to be read from its output."""
        script = Path(__file__).with_name("confined.py")
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), *command],
            env={"TMPDIR": tempfile.gettempdir()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        given, process.stdin = process.stdin, None
        if given is not None:
            with given:
                given.write(json.dumps({**self.specification, "folder": str(folder)}).encode())
        return process
