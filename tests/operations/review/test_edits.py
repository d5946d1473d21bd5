"""Sixty edits of the stack files: what a review without keys finds is what the keyed preview found.

The keyed previews were recorded on an API server (`recording.py`). Here the CLI runs the
program. `make test` draws one edit, `make prove` takes all.
Not proved: what a cluster that changed meanwhile would say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import choice
from typing import Any, Final

import pytest
import yaml
from pulumi_sandbox.protocol import urns

from operations.folders import Folders
from operations.review.preview import preview
from operations.review.record import Record, texts
from operations.review.sealed import ValueStanding, ciphertexts
from operations.stack.at_rest import StackAtRest
from tests.operations.review.edits import EDITS, Edit
from tests.support.proving import PROVES, tried
from tests.support.recorded_stacks import RECORDED, ROOT, document_of, laid_out

MOST_OTHERWISE: Final = 4
_NOT_TOLD: Final = ("same", "create-replacement", "delete-replaced")
"""Steps that the document of a preview leaves out: the halves of a replacement are told as one."""


@dataclass(frozen=True)
class Row:
    """One edit: what only one of the previews has, and what the review names as not told."""

    edit: Edit
    keyed_only: frozenset[tuple[str, str]]
    sealed_only: frozenset[tuple[str, str]]
    untold: tuple[str, ...]
    agree_on_failure: bool
    errors: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        return not (self.keyed_only or self.sealed_only) and self.agree_on_failure

    def __str__(self) -> str:
        verdict = "equal" if self.is_equal else f"may change: {', '.join(self.untold) or 'NOT TOLD'}"
        differing = [f"-{op} {urns.parse(urn).name}" for op, urn in sorted(self.keyed_only)]
        differing += [f"+{op} {urns.parse(urn).name}" for op, urn in sorted(self.sealed_only)]
        differing += () if self.agree_on_failure else (f"errors: {self.errors}",)
        return f"{self.edit.title:70} {verdict}  {' '.join(differing)}"


def reviewed(folder: Path) -> list[Row]:
    """Preview edits without keys, by the CLI."""
    chosen = EDITS if PROVES else [choice(EDITS)]
    stacks = dict.fromkeys(edit.stack for edit in chosen)
    found = [row for stack in stacks for row in _of_stack(stack, chosen, folder)]
    tried("edits of a stack file that are reviewed without keys", len(found))
    for row in found:
        print(row)  # noqa: T201 - the table
    return found


def _of_stack(stack: str, edits: Sequence[Edit], folder: Path) -> Iterator[Row]:
    project = folder / stack
    project.mkdir()
    document = document_of(stack)
    keyed: dict[str, Any] = json.loads((RECORDED / stack / "keyed.json").read_text())
    with pytest.MonkeyPatch.context() as patched:
        record = laid_out(project, stack, patched)
        unedited = Edit(stack, "", "", "nothing", ())
        drifted = _compared(unedited, project, document, record, {"steps": [], "failed": False})
        for edit in (each for each in edits if each.stack == stack):
            yield _compared(edit, project, document, record, keyed[edit.title], drifted=drifted.sealed_only)


def _compared(
    edit: Edit,
    project: Path,
    document: Any,
    record: Record,
    keyed: Any,
    *,
    drifted: frozenset[tuple[str, str]] = frozenset(),
) -> Row:
    """Preview an edit. drifted: what today's program would change of what was recorded, without any edit."""
    edited = edit.applied(document, lambda text: f"v1:{len(text)}:edited")
    (project / f"Pulumi.{edit.stack}.yaml").write_text(yaml.safe_dump(edited, sort_keys=False))
    at_rest = StackAtRest.find(project, edit.stack, backend_dir=project)
    digest = preview(at_rest, record, texts(record.seals, at_rest), Folders(ROOT)).digest
    sealed = {
        (each.op, each.urn)
        for each in digest.steps
        if each.op not in _NOT_TOLD and not urns.is_default_provider(each.urn)
    }
    sealed -= drifted
    known = {(op, urn) for op, urn in keyed["steps"] if not urns.is_default_provider(urn)} - drifted
    if digest.failed and keyed["failed"]:
        sealed &= known  # what a preview that fails has come to before is chance
    untold = [
        name
        for name, each in ciphertexts(at_rest.stack_file.config).items()
        if record.seals.find(name, each).standing is not ValueStanding.SAME
    ]
    return Row(
        edit,
        frozenset(known - sealed),
        frozenset(sealed - known),
        tuple(untold),
        agree_on_failure=keyed["failed"] == digest.failed,
        errors=tuple(each.message for each in digest.diagnostics if each.severity == "error"),
    )


def test_there_are_sixty_edits_of_every_room_and_operation() -> None:
    assert len(EDITS) == 60
    assert {each.operation for each in EDITS} == {
        "add",
        "break",
        "change",
        "move",
        "remove",
        "rename",
        "rotate",
    }
    assert {each.stack for each in EDITS} == {"dev", "staging", "prod"}


@pytest.mark.life
def test_a_review_without_keys_finds_what_the_keyed_preview_does_or_names_what_it_was_not_told(
    tmp_path: Path,
) -> None:
    rows = reviewed(tmp_path)
    otherwise = [str(row) for row in rows if not row.is_equal]
    assert len(otherwise) <= MOST_OTHERWISE, "\n".join(otherwise)
    assert [str(row) for row in rows if not (row.is_equal or row.untold)] == []
    false_same = [
        str(row)
        for row in rows
        if {urn for _, urn in row.keyed_only} - {urn for _, urn in row.sealed_only} and row.agree_on_failure
    ]
    assert false_same == []
