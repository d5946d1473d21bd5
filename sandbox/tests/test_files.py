"""Modes of files and folders that are written, and that a failed write leaves nothing behind."""

import errno
import os
import tempfile
from pathlib import Path

import pytest
from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.parametrize("wanted", [0o644, files.PRIVATE])
def test_a_file_has_the_mode_asked_for_whatever_the_one_before_had(tmp_path: Path, wanted: int):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    files.replace(path, "new", mode=wanted)
    assert (path.read_text(), mode(path)) == ("new", oct(wanted))


def test_a_new_file_is_its_owners_alone_and_one_that_is_replaced_keeps_its_mode(tmp_path: Path):
    files.replace(tmp_path / "new", "text")
    (tmp_path / "shared").touch(mode=0o640)
    files.replace(tmp_path / "shared", "text")
    modes = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert modes == {"new": "0o600", "shared": "0o640"}


def test_folders_made_on_the_way_are_their_owners_alone_and_others_stay_as_they_are(tmp_path: Path):
    tmp_path.chmod(0o755)
    files.replace(tmp_path / "a" / "b" / "file", "text")
    assert [mode(tmp_path / each) for each in ("", "a", "a/b")] == ["0o755", "0o700", "0o700"]


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        files.replace(tmp_path / "taken", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(("owner", "call"), [(Path, "mkdir"), (tempfile, "mkstemp"), (os, "fsync")])
def test_a_full_disk_is_told_whoever_meets_it_and_what_was_there_is_unharmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, call: str
):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").write_text("old")
    path = tmp_path / "new" / "file" if call == "mkdir" else tmp_path / "file"
    with monkeypatch.context() as patched:
        patched.setattr(owner, call, full)
        with pytest.raises(SandboxError) as told:
            files.replace(path, "text")
    assert (told.value.code, told.value.place) == ("disk-full", str(path))
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"file": "old"}
