"""One operation on a stack, in a process that SIGKILL ends at a write of its state, where that is wanted.

Argument: the stack's folder. `moment` there says what is done, and `ended` afterwards how it ended;
`retained` has the ids of all that was ever to be retained.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pulumi_sandbox import engine
from pulumi_sandbox.engine import Result, Snapshot
from pulumi_sandbox.engine.model.events import Operation
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.store import Store

from tests.fire.engine.lives import PASSPHRASE, Ended, Kill, Moment, Watched, workspace_in

_OPERATIONS: Final[dict[Operation, Callable[..., Result]]] = {
    "preview": engine.preview,
    "update": engine.up,
    "refresh": engine.refresh,
    "destroy": engine.destroy,
}


class _DeadlyStore(Store):
    """A store that ends this process at a write, before it or after it. Every state is large to it."""

    large = 0
    kill: Kill | None = None
    retained: Path
    _writes = 0

    def save(self, snapshot: Snapshot) -> None:
        with self.retained.open("a", encoding="utf-8") as to:
            to.writelines(f"{each.id}\n" for each in snapshot.resources if each.retain_on_delete)
        self._writes += 1
        now = self.kill if self.kill and self.kill.write == self._writes else None
        if now is None or now.is_written:
            super().save(snapshot)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path) -> None:
    """Do what the moment says, and write down how it ended."""
    moment: Moment = pickle.loads((folder / "moment").read_bytes())
    stack_file = (folder / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    crypter = PassphraseCrypter.open(stack_file.split()[1], PASSPHRASE)
    store = _DeadlyStore(folder / "backend", "test", "dev", crypter)
    store.kill, store.retained = moment.kill, folder / "retained"
    (folder / "world" / "engine").write_text(str(os.getpid()), encoding="utf-8")
    watched = Watched()
    result = _OPERATIONS[moment.operation](workspace_in(folder, crypter, store), moment.options(), watched)
    ended = Ended(result.exit_code, dict(result.summary.changes), *watched.told())
    (folder / "ended").write_bytes(pickle.dumps(ended))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
