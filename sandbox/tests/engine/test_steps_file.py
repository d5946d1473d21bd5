"""What a run does to a large state stands beside it until it is folded in, by it or by the next run.

Not proved here: what the engine makes of what is left (tests of interruptions, and random lives).
"""

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi_sandbox.engine.model.resource import PendingOperation, Resource, Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import Secret

_CRYPTER = PassphraseCrypter(passphrase="", key=bytes(32), salt="v1:")


class LargeStore(Store):
    """A store to which every state is large."""

    large = 0


def shelf(name: str, size: int = 1) -> Resource:
    urn = f"urn:pulumi:dev::shop::shop:index:Shelf::{name}"
    return Resource(urn, "shop:index:Shelf", custom=True, id=name, inputs={"key": Secret("k"), "size": size})


A, B, C = shelf("a"), shelf("b"), shelf("c")
MANY = Snapshot(tuple(shelf(f"shelf-{number}") for number in range(50)))
RECORDS = (*map(shelf, "abcdef"), *(shelf(name, 2) for name in "abc"))

orders = st.lists(st.sampled_from(RECORDS), unique_by=lambda each: each.urn).map(tuple)
calls = st.lists(
    st.builds(PendingOperation, st.sampled_from(RECORDS), st.sampled_from(("creating", "deleting")))
)
snapshots = st.builds(Snapshot, orders, calls.map(tuple))


def opened(folder: Path) -> LargeStore:
    return LargeStore(folder, "shop", "dev", _CRYPTER)


def steps_of(store: Store) -> Path:
    return store.path.with_name("dev.json.steps")


@pytest.fixture
def store(tmp_path: Path) -> LargeStore:
    """A store with a state of fifty, and a step that added another behind them."""
    made = opened(tmp_path)
    made.save(MANY)
    made.save(Snapshot((*MANY.resources, A)))
    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(snapshots, min_size=1, max_size=8), st.booleans())
def test_whatever_is_saved_is_what_a_later_run_finds_whole_or_beside(said: Sequence[Snapshot], is_long: bool):
    with TemporaryDirectory() as folder:
        store = opened(Path(folder))
        if is_long:
            store.save(MANY)
        for snapshot in said:
            store.save(snapshot)
            assert opened(Path(folder)).load() == snapshot
        store.fold()
        assert not steps_of(store).exists()
        assert opened(Path(folder)).load() == said[-1]


def test_a_step_leaves_a_large_state_as_it_is_and_a_small_one_is_written_whole(store: LargeStore):
    before = store.path.read_text()
    store.save(Snapshot((*MANY.resources, A, B)))
    assert store.path.read_text() == before
    assert steps_of(store).stat().st_mode & 0o777 == 0o600
    small = Store(store.path.parents[3], "shop", "dev", _CRYPTER)
    for snapshot in (MANY, Snapshot((A,))):
        small.save(snapshot)
        assert small.load() == snapshot
        assert not steps_of(store).exists()


def test_steps_as_long_as_the_state_itself_are_folded_into_it(store: LargeStore):
    before = store.path.read_text()
    last = MANY
    while steps_of(store).exists():
        last = Snapshot(tuple(replace(each) for each in last.resources))
        store.save(last)
    assert store.path.read_text() != before
    assert opened(store.path.parents[3]).load() == last


def test_a_line_that_was_cut_off_anywhere_was_never_said(store: LargeStore):
    whole = steps_of(store).read_bytes()
    store.save(Snapshot((*MANY.resources, A, B)))
    longer = steps_of(store).read_bytes()
    for end in range(len(whole), len(longer), 7):
        steps_of(store).write_bytes(longer[:end])
        assert opened(store.path.parents[3]).load().resources[-1] == A
    again = opened(store.path.parents[3])
    again.fold()
    assert again.load().resources[-1] == A


@pytest.mark.parametrize("moment", ["the note", "the state", "the removal"])
def test_a_run_killed_while_it_folds_loses_nothing(
    store: LargeStore, monkeypatch: pytest.MonkeyPatch, moment: str
):
    def killed(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    where, name = {"the note": (os, "fsync"), "the state": (os, "replace"), "the removal": (Path, "unlink")}[
        moment
    ]
    monkeypatch.setattr(where, name, killed)
    with pytest.raises(KeyboardInterrupt):
        store.fold()
    monkeypatch.undo()
    next_run = opened(store.path.parents[3])
    assert next_run.load().resources == (*MANY.resources, A)
    next_run.fold()
    assert next_run.load().resources == (*MANY.resources, A)
    assert not steps_of(store).exists()


def test_steps_of_a_state_that_another_tool_has_changed_since_are_refused(store: LargeStore):
    store.path.write_text(store.path.read_text().replace('"size":1', '"size":2'))
    later = opened(store.path.parents[3])
    with pytest.raises(SandboxError) as refused:
        later.fold()
    assert refused.value.code == "state-invalid"
    assert refused.value.place == str(steps_of(store))


@pytest.mark.parametrize("text", ["{}\n", "[]\n", '{"follows":1}\n{"new":1}\n', "1\n"])
def test_what_is_no_file_of_steps_is_refused(store: LargeStore, text: str):
    steps_of(store).write_text(text)
    with pytest.raises(SandboxError) as refused:
        opened(store.path.parents[3]).load()
    assert refused.value.code in ("state-unreadable", "state-invalid")


def test_a_disk_that_was_full_for_a_step_loses_only_that(store: LargeStore, monkeypatch: pytest.MonkeyPatch):
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SandboxError) as refused:
        store.save(Snapshot((*MANY.resources, A, B)))
    monkeypatch.undo()
    assert refused.value.code == "disk-full"
    assert opened(store.path.parents[3]).load().resources[-1] == A
    store.save(Snapshot((*MANY.resources, A, C)))
    assert opened(store.path.parents[3]).load().resources[-1] == C
