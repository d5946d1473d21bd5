"""Builds the wheel, in which all code lies below one name: no folder of a project that uses it hides any.

In a checkout the same code has the names that states of stacks hold. Only its imports differ
(docs/adr/0006-one-name-in-the-wheel.md); the wheel itself is made by uv_build.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

import uv_build
from uv_build import (
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

NAME: Final = "credfleet"
PACKAGES: Final = ("components", "operations")
SANDBOX: Final = "pulumi_sandbox"
"""In a checkout it is in a folder of its own, with its tests."""
PACK: Final = "policies"
"""The host of policies starts it as a folder, so its modules import each other without a package's name."""
DATA: Final = (".github", "docs", "stacks/dev/crds")
"""What the code finds at the same place from itself."""
_METADATA: Final = ("pyproject.toml", "README.md", "LICENSE")


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel of the project in the working directory, as PEP 517 has it."""
    with TemporaryDirectory() as folder:
        stage(Path.cwd(), Path(folder))
        with chdir(folder):
            return str(uv_build.build_wheel(os.fspath(wheel_directory), config_settings, metadata_directory))


def build_editable(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Let the checkout and the sandbox's folder be imported from, as PEP 660 has it: uv_build adds one."""
    name = str(uv_build.build_editable(wheel_directory, config_settings, metadata_directory))
    with ZipFile(Path(wheel_directory, name), "a") as wheel:
        wheel.writestr(f"{SANDBOX}.pth", f"{Path.cwd() / 'sandbox'}\n")
    return name


def stage(checkout: Path, folder: Path) -> None:
    """Lay out what the wheel holds; raises ImportError where a project's own folder could be imported."""
    for name in _METADATA:
        shutil.copy2(checkout / name, folder / name)
    project = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    both = f'module-root = ""\nmodule-name = ["{NAME}", "{SANDBOX}"]\n'
    (folder / "pyproject.toml").write_text(project.replace('module-root = ""\n', both), encoding="utf-8")
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(checkout / NAME, folder / NAME, ignore=compiled)
    shutil.copytree(checkout / "sandbox" / SANDBOX, folder / SANDBOX, ignore=compiled)
    for name in (*PACKAGES, *DATA):
        shutil.copytree(checkout / name, folder / NAME / name, ignore=compiled)
    (folder / NAME / PACK).mkdir()
    for path in (checkout / PACK).glob("*.py"):
        shutil.copy2(path, folder / NAME / PACK)
    pack = {path.stem for path in (checkout / PACK).glob("*.py")}
    for path in (folder / NAME).rglob("*.py"):
        own = pack if path.parent.name == PACK else frozenset[str]()
        text = _renamed(_renamed(path.read_text(encoding="utf-8"), PACKAGES, NAME), own, f"{NAME}.{PACK}")
        path.write_text(text, encoding="utf-8")
        for hidden in _imported(text) & {*PACKAGES, PACK, *own}:
            raise ImportError(f"{path.relative_to(folder)} imports {hidden}, which is not below {NAME}")


def _renamed(text: str, names: Any, parent: str) -> str:
    """Let a module import these names from below a parent."""
    for name in names:
        text = re.sub(rf"^(\s*)from {name}(?=[. ])", rf"\1from {parent}.{name}", text, flags=re.MULTILINE)
        text = re.sub(rf"^(\s*)import {name}$", rf"\1from {parent} import {name}", text, flags=re.MULTILINE)
    return text


def _imported(text: str) -> set[str]:
    return {module.partition(".")[0] for module in _modules(ast.parse(text))}


def _modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names)
            case ast.ImportFrom(str(module), _, 0):
                yield module
            case _:
                pass
