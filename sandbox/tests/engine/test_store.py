"""Where the state lives: the genuine CLI's file backend."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.errors import SandboxError

_URN = "urn:pulumi:dev::shop::shop:index:Shelf::a"
_SNAPSHOT = Snapshot((Resource(_URN, "shop:index:Shelf", custom=False),))


@pytest.fixture
def store(tmp_path: Path, crypter: PassphraseCrypter) -> Store:
    return Store(tmp_path, "shop", "dev", crypter)


def _file(store: Store) -> dict[str, Any]:
    return json.loads(store.path.read_text())


def test_a_stack_without_a_state_is_empty_and_stays_unwritten(store: Store, tmp_path: Path):
    assert store.load() == Snapshot()
    assert list(tmp_path.iterdir()) == []


def test_what_was_saved_is_loaded_again(store: Store, tmp_path: Path, crypter: PassphraseCrypter):
    store.save(_SNAPSHOT)
    assert Store(tmp_path, "shop", "dev", crypter).load() == _SNAPSHOT


def test_a_state_is_decoded_once_and_anew_when_anybody_wrote_another(
    store: Store, tmp_path: Path, crypter: PassphraseCrypter
):
    store.save(_SNAPSHOT)
    loaded = store.load()
    assert store.load() is loaded
    Store(tmp_path, "shop", "dev", crypter).save(Snapshot())
    assert store.load() == Snapshot()


def test_files_lie_where_the_genuine_cli_looks_for_them(store: Store, tmp_path: Path):
    store.save(_SNAPSHOT)
    assert (tmp_path / ".pulumi/meta.yaml").read_text() == "version: 1\n"
    assert store.path == tmp_path / ".pulumi/stacks/shop/dev.json"
    assert store.path.stat().st_mode & 0o777 == 0o600
    file = _file(store)
    assert [*file] == ["version", "checkpoint"]
    assert file["version"] == 3
    assert file["checkpoint"]["stack"] == "organization/shop/dev"
    assert [*file["checkpoint"]["latest"]] == ["manifest", "secrets_providers", "resources", "metadata"]


def test_an_export_is_the_same_deployment_in_the_wrapper_of_stack_export(store: Store):
    store.save(_SNAPSHOT)
    exported = json.loads(store.export(_SNAPSHOT))
    assert [*exported] == ["version", "deployment"]
    assert exported["deployment"]["resources"] == _file(store)["checkpoint"]["latest"]["resources"]


def test_the_backup_is_what_was_there_before_the_run(
    store: Store, tmp_path: Path, crypter: PassphraseCrypter
):
    store.save(_SNAPSHOT)
    before = store.path.read_text()
    second = Store(tmp_path, "shop", "dev", crypter)
    second.save(Snapshot())
    second.save(_SNAPSHOT)
    assert second.path.with_name("dev.json.bak").read_text() == before


def test_what_the_cli_noted_about_a_files_former_content_goes_with_it(store: Store):
    store.save(_SNAPSHOT)
    notes = store.path.with_name("dev.json.attrs")
    notes.write_text("{}")
    store.save(_SNAPSHOT)
    assert not notes.exists()


def test_options_old_readers_would_lose_raise_the_version_and_are_named(store: Store):
    hooked = replace(_SNAPSHOT.resources[0], resource_hooks={"beforeCreate": ("h",)}, taint=True)
    store.save(Snapshot((hooked,)))
    assert _file(store)["version"] == 4
    assert _file(store)["features"] == ["hooks", "taint"]
    assert store.load() == Snapshot((hooked,))


@pytest.mark.parametrize(
    ("change", "named"),
    [({"version": 4, "features": ["hooks", "views"]}, "views"), ({"version": 5}, "version 5")],
)
def test_a_state_that_needs_more_than_this_engine_is_refused_by_name(
    store: Store, change: dict[str, Any], named: str
):
    store.save(_SNAPSHOT)
    store.path.write_text(json.dumps(_file(store) | change))
    with pytest.raises(SandboxError, match=f"has not: {named}") as caught:
        store.load()
    assert caught.value.code == "state-unsupported"


def test_a_stack_the_genuine_cli_just_made_is_empty(store: Store):
    store.path.parent.mkdir(parents=True)
    store.path.write_text('{"version":0,"checkpoint":{"stack":"organization/shop/dev"}}')
    assert store.load() == Snapshot()


def test_a_compressed_state_is_not_taken_for_none(store: Store):
    store.path.parent.mkdir(parents=True)
    store.path.with_name("dev.json.gz").write_bytes(b"")
    with pytest.raises(SandboxError, match="uncompressed"):
        store.load()


def test_a_backend_of_the_old_layout_is_refused(store: Store, tmp_path: Path):
    (tmp_path / ".pulumi").mkdir()
    (tmp_path / ".pulumi/meta.yaml").write_text("version: 0\n")
    with pytest.raises(SandboxError, match="another layout"):
        store.load()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"checkpoint": []}'])
def test_a_damaged_state_is_told_with_its_file_and_its_backup(store: Store, text: str):
    store.path.parent.mkdir(parents=True)
    store.path.write_text(text)
    with pytest.raises(SandboxError, match=r"dev\.json\.bak") as caught:
        store.load()
    assert caught.value.code == "state-unreadable"


def test_an_invalid_snapshot_is_written_all_the_same_and_then_told(store: Store):
    twice = Snapshot(_SNAPSHOT.resources * 2)
    with pytest.raises(SandboxError) as caught:
        store.save(twice)
    assert caught.value.code == "state-invalid"
    assert len(_file(store)["checkpoint"]["latest"]["resources"]) == 2


def test_a_full_disk_loses_nothing_and_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    store.save(_SNAPSHOT)
    before = store.path.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SandboxError) as caught:
        store.save(Snapshot())
    assert caught.value.code == "disk-full"
    assert store.path.read_text() == before
    assert sorted(path.name for path in store.path.parent.iterdir()) == ["dev.json"]


def test_a_crash_while_writing_leaves_the_old_state(store: Store, monkeypatch: pytest.MonkeyPatch):
    store.save(_SNAPSHOT)
    store.save(_SNAPSHOT)
    before = store.path.read_text()

    def killed(_source: str, _target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        store.save(Snapshot())
    assert store.path.read_text() == before
