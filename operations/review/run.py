"""A review: a branch's program, confined, is previewed without any keys and judged by our policies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import contains_secret

import operations
from components.documents import read_json
from components.errors import Problem
from operations.folders import Folders
from operations.preview_report.review import Review, review
from operations.review.confinement import Confinement, start
from operations.review.preview import Previewed, import_path, own_code, preview
from operations.review.record import Record, code_of, texts
from operations.review.sealed import Sealed, ValueStanding, ciphertexts, is_credential
from operations.stack.at_rest import StackAtRest

_HIDDEN: Final = (".git", ".sandbox", ".venv")


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a review.

    problems: of the configuration, found by the base's own rules. sealed: all values that could not be read.
    may_change: unchanged resources that might still change, and why. printed: by the program.
    """

    review: Review
    record: Record
    problems: tuple[Problem, ...]
    sealed: tuple[Sealed, ...]
    may_change: Mapping[str, str]
    printed: tuple[str, ...]
    other_code: bool

    @property
    def age_hours(self) -> int:
        """The age of the record in hours."""
        return int((datetime.now(UTC) - self.record.at).total_seconds() // 3600)


def review_branch(folders: Folders, checkout: Path, record: Record) -> Found:
    """Preview a checkout of the program, confined, against a record.

    folders: of the base, whose policies and providers are used. Raises CredfleetError: `not-shut-in` if the
    kernel does not allow it; and for project files.
    """
    nowhere = checkout / ".sandbox" / "none"
    at_rest = StackAtRest.find(checkout, record.stack, backend_dir=nowhere, shut_in=True)
    shut = confinement(
        checkout, compiled=() if checkout == folders.project else checkout.rglob("__pycache__")
    )
    with _checking(checkout, record.stack, shut) as checking:
        stand_ins = texts(record.seals, at_rest)
        found = preview(at_rest, record, stand_ins, folders, shut, policies=True)
        problems = _problems(checking, record.stack)
    other_code = record.code not in ("", code_of(checkout, at_rest.stack_file.config))
    return Found(
        review=review(found.digest),
        record=record,
        problems=problems,
        sealed=tuple(record.seals.find(*each) for each in ciphertexts(at_rest.stack_file.config).items()),
        may_change=dict(_may_change(found)) if other_code else {},
        printed=tuple(
            line for each in found.digest.diagnostics for line in each.message.splitlines() if line
        ),
        other_code=other_code,
    )


def confinement(checkout: Path, compiled: Iterable[Path]) -> Confinement:
    """Return the confinement for a checkout's program, which sees itself, Python and the packages.

    compiled: folders with files that Python would run instead of those in the digest of the code.
    """
    packages = Path(sys.prefix)
    return Confinement(
        readable=(checkout, Path(sys.base_prefix), packages),
        hidden=(*(checkout / each for each in _HIDDEN if checkout / each != packages), *compiled),
        environment={"PYTHONPATH": str(checkout / "sandbox"), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def _checking(checkout: Path, stack: str, shut: Confinement) -> subprocess.Popen[bytes]:
    """Start checking the configuration with our code, confined: it names files to read."""
    shut = replace(
        shut,
        readable=(*shut.readable, *own_code()),
        environment={**shut.environment, "PYTHONPATH": import_path()},
    )
    check = f"from {operations.__name__}.main import main; main()"
    given = ("config", "check", "--stack", stack, "--output", "json")
    return start(shut, checkout, [sys.executable, "-P", "-c", check, *given])


def _problems(checking: subprocess.Popen[bytes], stack: str) -> tuple[Problem, ...]:
    written, _ = checking.communicate()
    try:
        error: dict[str, Any] = read_json(written).get("error") or {}
    except (ValueError, AttributeError):
        error = {"message": f"the configuration could not be checked (exit code {checking.returncode})"}
    told = error.get("problems") or ([{"place": stack, "problem": error["message"]}] if error else [])
    return tuple(
        Problem(str(each["place"]), str(each["problem"]), str(each.get("fix") or "read the log"))
        for each in told
    )


def _may_change(found: Previewed) -> Iterator[tuple[str, str]]:
    """Yield unchanged resources that might change: those that another program makes from sealed values."""
    for step in found.digest.steps:
        named = urns.parse(step.urn)
        inputs = found.declared.get(step.urn, {})
        is_secret = any(contains_secret(value) for key, value in inputs.items() if not key.startswith("__"))
        if step.op == "same" and not named.type.startswith(urns.PROVIDER_TYPE_PREFIX) and is_secret:
            yield named.name, "another program makes it of a sealed value"


def unmade_checks(found: Found) -> list[str]:
    """Return the credentials whose content was not checked: of unknown shape, or not as deployed."""
    return [
        each.name
        for each in found.sealed
        if is_credential(each.name) and (each.shape is None or each.standing is not ValueStanding.SAME)
    ]
