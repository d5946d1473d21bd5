"""ARCHITECTURE.md names what is there: each file it names exists, and no file of a room is left out.

Whether what it says of a file is so, nobody can test: that is for whoever changes the file.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.stacks import ROOT

PAGE: Final = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOMS: Final = ("components", "policies")
"""Where each file is named."""

FOLDERS: Final = ("operations", "sandbox/pulumi_sandbox")
"""Where each package is named, and each file beside the packages."""

_NAME: Final = re.compile(r"`([\w./-]+(?:\.py|/))`")
_SECTION: Final = re.compile(r"^### `([\w./-]+)/`$", re.MULTILINE)


def named() -> Iterator[Path]:
    """Yield the files and folders that the page names; under a folder's heading, names are the folder's."""
    front, *sections = _SECTION.split(PAGE)
    yield from (ROOT / name for name in _NAME.findall(front))
    for folder, section in zip(sections[::2], sections[1::2], strict=True):
        yield ROOT / folder
        yield from (ROOT / folder / name for name in _NAME.findall(section))


NAMED: Final = frozenset(named())
SECTIONS: Final = frozenset(ROOT / name for name in _SECTION.findall(PAGE))
"""Folders with a table of their files; any other folder that is named stands for all in it."""


def _modules(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*.py") if path.name != "__init__.py")


def test_every_file_and_folder_it_names_is_there() -> None:
    assert len(NAMED) > 100
    assert sorted(str(path) for path in NAMED if not path.exists()) == []


def test_a_claim_comes_to_the_first_call_in_few_files_and_shapes() -> None:
    (walk,) = re.findall(r"^\| Step \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    shapes = re.findall(r"`([A-Z]\w+)`", walk)
    assert (len(shapes), len(_NAME.findall(walk))) == (5, 6)


@pytest.mark.parametrize("folder", ROOMS)
def test_every_file_of_the_rooms_and_of_the_pack_is_named(folder: str) -> None:
    covered = {path for path in NAMED if path.is_dir() and path != ROOT / folder and path not in SECTIONS}
    left_out = {path for path in _modules(ROOT / folder) if path not in NAMED and path.parent not in covered}
    assert sorted(map(str, left_out)) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_package_of_commands_and_sandbox_is_named(folder: str) -> None:
    top = ROOT / folder
    packages = {path.parent for path in _modules(top)} - {top}
    assert sorted(str(path) for path in packages if path not in NAMED) == []
    assert sorted(str(path) for path in _modules(top) if path.parent == top and path not in NAMED) == []
