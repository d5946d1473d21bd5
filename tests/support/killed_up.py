"""Run `up` in a process that is killed, by SIGKILL, right after it wrote its state for the n-th time.

Arguments: the project's folder, the stack, the backend's folder, n (0: never), and after how many seconds it
is killed wherever it is (without: never). Exit 0 when `up` was through before that. What the update says is
printed, a line for each word of it.
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from threading import Timer

from pulumi_sandbox import engine
from pulumi_sandbox.engine import Diagnostic, Event, Options, Snapshot, StepFinished, Workspace
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.providers import STAND_INS


class _DeadlyStore(Store):
    """A store after whose n-th write nothing more happens in this process."""

    writes_left = 0

    def save(self, snapshot: Snapshot) -> None:
        super().save(snapshot)
        self.writes_left -= 1
        if self.writes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class _Plain:
    def handle(self, event: Event) -> None:
        match event:
            case Diagnostic(_, text) | StepFinished(_, _, str(text)):
                sys.stdout.write(f"{text}\n")
            case _:
                pass


def main(folder: Path, stack: str, backend: Path, writes: int) -> int:
    """Deploy until killed."""
    workspace = Workspace.open(
        folder, stack, backend_dir=backend, public_passphrase=folder / "stacks" / "dev" / "passphrase"
    )
    store = _DeadlyStore(backend, workspace.project.name, stack, workspace.crypter)
    store.writes_left = writes
    return engine.up(replace(workspace, store=store), Options(providers=STAND_INS), _Plain()).exit_code


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if seconds := sys.argv[5:]:
        deadly = Timer(float(seconds[0]), _kill)
        deadly.daemon = True
        deadly.start()
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
