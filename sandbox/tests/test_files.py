"""Modes of files and folders that are written, and that a failed write leaves nothing behind."""

from pathlib import Path

import pytest
from pulumi_sandbox import files


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
    with files.opened_to_append(tmp_path / "log") as log:
        log.write(b"text")
    (tmp_path / "shared").touch(mode=0o640)
    files.replace(tmp_path / "shared", "text")
    modes = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert modes == {"new": "0o600", "log": "0o600", "shared": "0o640"}


def test_folders_made_on_the_way_are_their_owners_alone_and_others_stay_as_they_are(tmp_path: Path):
    tmp_path.chmod(0o755)
    files.replace(tmp_path / "a" / "b" / "file", "text")
    assert [mode(tmp_path / each) for each in ("", "a", "a/b")] == ["0o755", "0o700", "0o700"]


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        files.replace(tmp_path / "taken", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]
