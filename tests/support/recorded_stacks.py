"""Stacks as they were recorded when they were deployed: `tests/operations/review/recording.py`."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from operations.review.record import Record
from operations.stack.yaml_file import load_yaml

ROOT: Final = Path(__file__).parents[2]
RECORDED: Final = ROOT / "tests/operations/review/recorded"


def exported_of(stack: str) -> bytes:
    """Return the record that was exported of a stack, as JSON; under `deployment` is its state."""
    return gzip.decompress((RECORDED / stack / "record.json.gz").read_bytes())


def document_of(stack: str) -> dict[str, Any]:
    """Return the file of a stack."""
    return load_yaml(RECORDED / stack / f"Pulumi.{stack}.yaml")


def laid_out(project: Path, stack: str, patched: pytest.MonkeyPatch) -> Record:
    """Make a project of a recorded stack, but for its file, and set the environment it was deployed in."""
    for name in ("Pulumi.yaml", "__main__.py", "components", "stacks"):
        (project / name).symlink_to(ROOT / name)
    (project / ".venv").symlink_to(sys.prefix)
    exported = project / "record.json"
    exported.write_bytes(exported_of(stack))
    record = Record.read(exported, stack)
    for name, value in {**record.environment, "PYTHONPATH": str(ROOT)}.items():
        patched.setenv(name, value)
    return record
