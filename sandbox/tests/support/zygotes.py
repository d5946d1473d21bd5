"""A zygote of a test: it listens while the test runs, and is gone with it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.services import processes, start_zygote
from pulumi_sandbox.zygotes.address import FOLDER, SERVER


@contextmanager
def zygote_in(folder: Path, **given: Any) -> Generator[None]:
    """Have a zygote for this interpreter and environment. given: as to `start_zygote`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(FOLDER, str(folder))
        pid, address = start_zygote(folder, die_with_parent=True, **given)
        try:
            while not address.exists():
                assert processes.first_ended([pid], 0.02) is None, (folder / "log").read_text()
            yield
        finally:
            processes.end_all(SERVER.name, str(address), patience=0.0)
