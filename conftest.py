"""What every test is given: the choice of one room, fixtures of the API server.

The API server is what `credfleet sandbox build` built.
"""

import gc
import os
import re
import signal
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from pulumi_sandbox.services.build import CACHE_VARIABLE, cache_folder

from tests.support.proving import PROVES, TRIED

pytest_plugins = ["sandbox.tests.support.cluster"]

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell's background jobs ignore it, and so do their children
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault(CACHE_VARIABLE, str(cache_folder("credfleet")))
settings.register_profile("untimed", deadline=None)
settings.register_profile("prove", max_examples=10_000, deadline=None)
settings.load_profile("prove" if PROVES else "untimed")

ROOT: Final = Path(__file__).parent
ROOMS: Final = sorted(component.parent.name for component in ROOT.glob("components/*/component.py"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a room."""
    parser.addoption("--room", choices=ROOMS, help="only the tests of one room, whichever folder they are in")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over the files of other rooms than the one asked for."""
    room = config.getoption("--room")
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if room and is_test and not _is_of_room(collection_path, room) else None


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at what is imported."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was tried by tests that count it, where a run proves."""
    for what, count in TRIED.items() if PROVES else ():
        terminalreporter.write_line(f"tried {count} {what}")


def _is_of_room(test: Path, room: str) -> bool:
    """Whether a test lies in a folder of the room, names its modules, or is of a command that does."""
    if room in test.relative_to(ROOT).as_posix():
        return True
    subject = ROOT / "operations" / test.parent.name
    sources = [test, *(subject.glob("*.py") if test.parent.parent.name == "operations" else ())]
    named = re.compile(rf"components[./]{room}\b")
    return any(named.search(source.read_text(encoding="utf-8")) for source in sources)
