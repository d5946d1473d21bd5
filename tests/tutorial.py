"""`make tutorial`: pastes every command of docs/tutorial.md into a shell, and compares what is printed.

A line behind `$` is typed, with those behind `>` after it and the lines of a here-document; what follows is
printed, each line by its words. Whether the pages read well is for people.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
_LINKED = ("Pulumi.yaml", "__main__.py", "components", "policies")
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


@dataclass(frozen=True)
class Typed:
    """One command, and the lines that the page shows of its output."""

    command: str
    printed: tuple[str, ...]


def typed(page: str) -> Iterator[Typed]:
    """Yield the commands of a page in order."""
    for block in _BLOCK.findall(page):
        command, printed, until = "", list[str](), ""
        for line in block.splitlines():
            if until:
                command += f"\n{line}"
                until = "" if line == until else until
            elif line.startswith("$ "):
                if command:
                    yield Typed(command, tuple(printed))
                command, printed = line.removeprefix("$ "), []
                here = re.search(r"<<'(\w+)'", line)
                until = here[1] if here else ""
            elif line.startswith("> "):
                command += f"\n{line.removeprefix('> ')}"
            else:
                printed.append(line)
        yield Typed(command, tuple(printed))


def run(each: Typed, session: Path) -> str:
    """Type a command in the shell whose variables the session file keeps; return what a terminal shows."""
    script = f"set -e -o pipefail; [ ! -f {session} ] || . {session}\n{each.command}\nexport -p > {session}\n"
    master, slave = pty.openpty()
    process = subprocess.Popen(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
    os.close(slave)
    shown: list[bytes] = []
    with contextlib.suppress(OSError):  # the terminal's end, when the last of the command's processes is gone
        while data := os.read(master, 65536):
            shown.append(data)
    os.close(master)
    status, text = process.wait(), _STEERING.sub("", b"".join(shown).decode(errors="replace"))
    if status:
        raise SystemExit(f"✗ {each.command}\n  ended with {status}:\n{text}")
    return text


def main() -> None:
    """Run the page in a folder of its own; end with exit code 1 at the first line that is not so."""
    with tempfile.TemporaryDirectory(prefix="tutorial-") as name:
        folder = Path(name)
        for each in _LINKED:
            (folder / each).symlink_to(ROOT / each)
        (folder / ".venv").symlink_to(Path(sys.prefix))
        os.chdir(folder)
        os.environ.update(
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", COLUMNS="80", LINES="40"
        )
        os.environ.pop("KUBECONFIG", None)
        try:
            for each in typed(PAGE.read_text(encoding="utf-8")):
                sys.stdout.write(f"$ {each.command.splitlines()[0]}\n")
                sys.stdout.flush()
                lines = [line.split() for line in run(each, folder / "session").splitlines()]
                for wanted in each.printed:
                    words = wanted.split()
                    if not any(line[: len(words)] == words for line in lines):
                        told = "\n".join(" ".join(line) for line in lines)
                        raise SystemExit(f"✗ not printed: {wanted}\n  but:\n{told}")
        finally:
            run(Typed("credfleet sandbox down", ()), folder / "session")
    sys.stdout.write("✓ every line of docs/tutorial.md is so\n")


if __name__ == "__main__":
    main()
