"""The updates of a stack, one file each, as the CLI's file backend keeps them.

`pulumi stack history` reads them. See sandbox/docs/engine-facts.md, history.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox import files
from pulumi_sandbox.engine.model.events import Summary
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.engine.project.stack_file import StackFile

_KINDS: Final = {"update": "update", "refresh": "refresh", "destroy": "destroy", "import": "resource-import"}
_ENVIRONMENT: Final = {"exec.kind": "cli", "exec.agent": "pulumi-sandbox"}


@dataclass(frozen=True, slots=True)
class History:
    """The updates of one stack: folder holds theirs, state is the file that each leaves."""

    folder: Path
    state: Path

    def add(self, update: Mapping[str, Any]) -> None:
        """Keep an update that has ended, with a copy of the state that it left; raises as `files.replace`."""
        name = self.folder / f"{self.state.stem}-{time.time_ns()}"
        files.replace(Path(f"{name}.history.json"), json.dumps(update, separators=(",", ":"), default=str))
        with suppress(FileNotFoundError):  # nothing was ever written, for there was nothing to write
            files.replace(Path(f"{name}.checkpoint.json"), self.state.read_text(encoding="utf-8"))


def update(summary: Summary, began: float, project: Project, stack_file: StackFile) -> dict[str, Any]:
    """Describe an update as the CLI does; what is secret in its configuration stays encrypted.

    began: when, in seconds since 1970.
    """
    defaults = {each.key: each.default for each in project.declarations if each.has_default}
    return {
        "kind": _KINDS[summary.operation],
        "startTime": int(began),
        "message": "",
        "environment": _ENVIRONMENT,
        "config": {**defaults, **stack_file.config},
        "version": 0,
        "result": "succeeded" if summary.outcome == "succeeded" else "failed",
        "endTime": int(time.time()),
        "resourceChanges": {op: count for op, count in summary.changes.items() if count},
    }
