"""What every dynamic provider does alike, in the genuine host, shown on one that keeps notes in a folder.

It does not prove what the project's own providers make of it; their files do.
"""

import importlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from components.dynamic import DynamicProvider
from tests.support.dynamic_host import UNKNOWN, Host, Properties, Provider, dynamic_host, provided
from tests.support.notes import NoteProvider
from tests.support.stacks import ROOT

FROZEN = (ROOT / "tests" / "dynamic" / "frozen_paths.txt").read_text(encoding="utf-8").split()


@pytest.fixture
def host() -> Generator[Host]:
    with dynamic_host({"writer": "ada"}) as host:
        yield host


notes = provided(NoteProvider)


@pytest.fixture
def note(tmp_path: Path) -> Properties:
    return {"folder": str(tmp_path), "fileName": "a", "text": "hello"}


def test_inputs_are_the_fields_of_the_arguments_and_have_their_defaults(
    notes: Provider, note: Properties
) -> None:
    full = {**note, "tags": {}, "remark": "none"}
    assert notes.check({**note, "unheard": "of"}) == full
    assert notes.check({**note, "tags": UNKNOWN, "remark": None}).keys() == full.keys()


def test_the_state_is_inputs_and_outputs_and_the_id_is_made_of_both(
    notes: Provider, note: Properties
) -> None:
    made = notes.create(note)
    assert made.id == "a/5"
    assert made.lasting == {**made.inputs, "length": 5, "writer": "ada"}


def test_only_another_identity_is_another_resource_and_what_is_not_compared_is_no_change(
    notes: Provider, note: Properties
) -> None:
    made = notes.create(note)
    assert not notes.is_changed(made, {**note, "remark": "another"})
    assert list(notes.diff(made, {**note, "text": "hello there"}).replaces) == []
    assert list(notes.diff(made, {**note, "text": "hello there", "fileName": "b"}).replaces) == ["fileName"]


def test_what_is_there_is_asked_only_when_no_input_differs(notes: Provider, note: Properties) -> None:
    made = notes.create(note)
    (Path(note["folder"]) / "a").write_text("by hand")
    assert notes.is_changed(made, note)
    (Path(note["folder"]) / "a").unlink()
    assert notes.is_changed(made, {**note, "text": "another"})


def test_a_refresh_takes_what_is_there_into_inputs_and_outputs_and_a_gone_one_has_no_id(
    notes: Provider, note: Properties
) -> None:
    made = notes.create(note)
    (Path(note["folder"]) / "a").write_text("by hand")
    found = notes.refresh(made)
    assert found.inputs == {**made.inputs, "text": "by hand"}
    assert found.outputs == {**made.outputs, "text": "by hand", "length": 0}
    notes.delete(made)
    assert notes.refresh(made).id == ""


def test_old_and_new_inputs_meet_in_a_preview(notes: Provider, note: Properties) -> None:
    assert notes.refusals({**note, "text": "hi"}, note) == ["a note never becomes shorter"]


def test_update_of_what_a_preview_refuses_fails_alone(notes: Provider, note: Properties) -> None:
    made = notes.create(note)
    shorter = {**note, "text": "hi"}
    assert notes.update_refusals(shorter, made) == "text: a note never becomes shorter"
    assert notes.update_refusals({**shorter, "fileName": "b"}, made) == "text: a note never becomes shorter"
    assert notes.update_refusals({**note, "text": ""}) == "text: a note says something"


@pytest.mark.parametrize("path", FROZEN)
def test_check_of_every_provider_is_that_of_the_shell(path: str) -> None:
    module, _, name = path.partition(":")
    provider = getattr(importlib.import_module(module), name)

    kept = [
        getattr(provider, verb) is getattr(DynamicProvider, verb)
        for verb in ("check", "diff", "create", "update")
    ]

    assert all(kept)


def test_refusal_is_its_own_words_alone(notes: Provider, note: Properties) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        notes.create({**note, "text": "refused"})
    assert refusal.value.details() == (
        "pulumi.errors.RunError: refused: note: it is refused\n→ write another\n"
    )


def test_defect_in_any_method_is_its_type_and_place_without_values(
    notes: Provider, note: Properties, tmp_path: Path
) -> None:
    made = notes.create(note)
    broken = {**made.outputs, "folder": str(tmp_path / "s3ntinel")}
    gone = replace(made, inputs=broken, outputs=broken)
    (tmp_path / "s3ntinel").write_text("no folder")
    for call in (
        lambda: notes.refusals({**note, "text": "a"}, {"text": 1}),
        lambda: notes.diff(gone, broken),
        lambda: notes.create(broken),
        lambda: notes.refresh(replace(gone, outputs={"text": "a"})),
        lambda: notes.update_unchecked(gone, broken),
        lambda: notes.delete(gone),
    ):
        with pytest.raises(grpc.RpcError) as defect:
            call()
        told = str(defect.value.details())
        assert told.startswith("pulumi.errors.RunError: defect: an unexpected "), told
        assert "s3ntinel" not in told
        assert len(told.splitlines()) == 2
