"""Mistakes made in a copy of the dev stack, and what is said of each; run as a module, it prints them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from components.documents import Unreadable, read_file
from components.errors import ConfigurationError, Problem
from operations.config.settings import read_settings
from operations.stack.at_rest import StackAtRest
from operations.stack.passphrase import PassphraseCrypter

ROOT: Final = Path(__file__).parents[2]
ROWS: Final[dict[str, list[dict[str, Any]]]] = read_file(
    ROOT / "tests" / "operations" / "config" / "misconfigurations.yaml"
).data
STACK_FILE: Final = "Pulumi.dev.yaml"


@contextmanager
def copied_stack() -> Generator[None]:
    """Work in a folder that holds nothing of the project but its dev stack."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("Pulumi.yaml", STACK_FILE):
            shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "stacks", Path(folder) / "stacks")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


@contextmanager
def made(row: dict[str, Any]) -> Generator[range]:
    """Make a mistake here for a while; return the lines it is in."""
    file = Path(row.get("file", STACK_FILE))
    good = file.read_text()
    before, found, after = good.partition(row["was"])
    assert found, f"{file} has no {row['was']!r}"
    text = (before + row["now"] + after).replace("\n", row.get("newline", "\n"))
    file.write_bytes(text.encode(row.get("encoding", "utf-8"), "replace"))
    first = before.count("\n") + 1
    try:
        yield range(max(1, first - 1), first + row["now"].count("\n") + 2)
    finally:
        file.write_text(good)


def told() -> tuple[Problem, ...]:
    """Return what is said of the stack here; its key is at hand."""
    try:
        stack = StackAtRest.find(Path.cwd(), "dev", backend_dir=Path.cwd())
        read_settings(stack, _crypter().decrypt)
    except ConfigurationError as error:
        return error.problems
    except Unreadable as error:
        return (Problem(STACK_FILE, error.problem, error.fix, error.at),)
    return ()


@cache
def _crypter() -> PassphraseCrypter:
    salt = read_file(ROOT / STACK_FILE).data["encryptionsalt"]
    return PassphraseCrypter.open(salt, (ROOT / "stacks" / "dev" / "passphrase").read_text().strip())


def main() -> None:
    """Print each mistake with what is said of it, and the counts."""
    count = told_count = 0
    with copied_stack():
        for room, rows in ROWS.items():
            for row in rows:
                with made(row):
                    problems = told()
                count, told_count = count + 1, told_count + len(problems)
                sys.stdout.write(f"{room}: {row['was']!r} → {row['now']!r}\n")
                sys.stdout.writelines(f"    {problem}\n" for problem in problems)
    sys.stdout.write(f"{count} mistakes, {told_count / count:.2f} problems each\n")


if __name__ == "__main__":
    main()
