"""`make docs`: pastes every command of docs/tutorial.md into a shell, and compares what is printed.

A line behind `$` is typed, with those behind `>` after it and the lines of a here-document; what follows is
printed, each line by its words. Told `how-to`, it takes the pages of docs/how-to, in their order,
on a copy of stack dev, and merges their YAML into its file. Whether the pages read well is for people.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
HOW_TO = ROOT / "docs" / "how-to"
_LINKED = ("Pulumi.yaml", "__main__.py", "components", "policies")
_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([\w-]+\.md)\)")
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


@dataclass(frozen=True)
class Typed:
    """One command, and the lines that the page shows of its output."""

    command: str
    printed: tuple[str, ...]


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks of a page that are typed or merged: their language, and their text."""
    yield from _BLOCK.findall(page)


def how_to_pages() -> list[Path]:
    """Return the pages of the tasks in the order in which they are listed."""
    return [HOW_TO / name for name in _LINK.findall((HOW_TO / "README.md").read_text(encoding="utf-8"))]


def typed(block: str) -> Iterator[Typed]:
    """Yield the commands of a block in order."""
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


def merged(document: Any, further: Any) -> Any:
    """Return a document with another laid over it, map by map."""
    if not isinstance(document, dict) or not isinstance(further, dict):
        return further
    return {**document, **{key: merged(document.get(key), value) for key, value in further.items()}}


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
    text = _OVERWRITTEN.sub("", text)
    if status:
        raise SystemExit(f"✗ {each.command}\n  ended with {status}:\n{text}")
    return text


def follow(page: Path, session: Path, file: Path) -> None:
    """Do what a page says; raise SystemExit at the first line that is not so."""
    for language, block in blocks(page.read_text(encoding="utf-8")):
        if language == "yaml":
            whole = merged(yaml.safe_load(file.read_text(encoding="utf-8")), yaml.safe_load(block))
            file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
            continue
        for each in typed(block):
            sys.stdout.write(f"$ {each.command.splitlines()[0]}\n")
            sys.stdout.flush()
            lines = [line.split() for line in run(each, session).splitlines()]
            for wanted in each.printed:
                words = wanted.split()
                if not any(line[: len(words)] == words for line in lines):
                    told = "\n".join(" ".join(line) for line in lines)
                    raise SystemExit(f"✗ {page.name}: not printed: {wanted}\n  but:\n{told}")


def main() -> None:
    """Do what the pages say in a folder of its own; end with exit code 1 at the first line that is not so."""
    tasks = sys.argv[1:] == ["how-to"]
    with tempfile.TemporaryDirectory(prefix="tutorial-") as name:
        folder = Path(name)
        for each in (*_LINKED, *(("docs",) if tasks else ())):
            (folder / each).symlink_to(ROOT / each)
        (folder / ".venv").symlink_to(Path(sys.prefix))
        file = folder / "Pulumi.dev.yaml"
        if tasks:
            shutil.copy(ROOT / file.name, file)
            shutil.copytree(ROOT / "stacks", folder / "stacks")
        os.chdir(folder)
        os.environ.update(
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", COLUMNS="80", LINES="40"
        )
        os.environ.pop("KUBECONFIG", None)
        session = folder / "session"
        try:
            if tasks:
                run(Typed("credfleet sandbox up --stack dev", ()), session)
                run(Typed('eval "$(credfleet sandbox env)"', ()), session)
            for page in how_to_pages() if tasks else (PAGE,):
                follow(page, session, file)
        finally:
            run(Typed("credfleet sandbox down", ()), session)
    sys.stdout.write("✓ every line of the pages is so\n")


if __name__ == "__main__":
    main()
