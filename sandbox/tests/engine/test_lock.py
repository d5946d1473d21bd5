"""One writer per stack, by the genuine CLI's lock (sandbox/docs/engine-facts.md, steps)."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pulumi_sandbox.engine.state.lock import locked
from pulumi_sandbox.errors import SandboxError

_OTHER = "11111111-2222-4333-8444-555555555555.json"
_OURS = f"sandbox-{_OTHER}"


def _directory(backend: Path) -> Path:
    return backend / ".pulumi" / "locks" / "organization" / "shop" / "dev"


def _hold(backend: Path, *, pid: int, hostname: str, name: str = _OTHER) -> Path:
    """Write a lock as the genuine CLI does, or as a run of this engine whose process is no more."""
    path = _directory(backend) / name
    path.parent.mkdir(parents=True)
    owner = {"pid": pid, "username": "someone", "hostname": hostname, "timestamp": "2026-11-21T09:57:27.9Z"}
    path.write_text(json.dumps(owner, separators=(",", ":")))
    return path


@pytest.fixture
def dead_pid() -> int:
    """Return the id of a process that ended and was waited for."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_lock_stands_where_the_genuine_cli_looks_and_says_who_holds_it(tmp_path: Path):
    with locked(tmp_path, "shop", "dev"):
        (path,) = _directory(tmp_path).iterdir()
        assert re.fullmatch(
            r"sandbox-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json", path.name
        )
        owner = json.loads(path.read_text())
    assert [*owner] == ["pid", "username", "hostname", "timestamp"]
    assert (owner["pid"], owner["hostname"]) == (os.getpid(), socket.gethostname())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", owner["timestamp"])


def test_a_lock_is_released_also_when_the_run_fails(tmp_path: Path):
    with pytest.raises(RuntimeError), locked(tmp_path, "shop", "dev"):
        raise RuntimeError
    assert list(_directory(tmp_path).iterdir()) == []


def test_of_two_runs_the_second_is_refused_and_told_who_runs(tmp_path: Path):
    with locked(tmp_path, "shop", "dev"):
        with pytest.raises(SandboxError, match=rf"pid {os.getpid()}\) holds it since") as caught:
            locked(tmp_path, "shop", "dev").__enter__()
        assert caught.value.code == "stack-locked"
        assert len(list(_directory(tmp_path).iterdir())) == 1


def test_stacks_do_not_lock_each_other(tmp_path: Path):
    with locked(tmp_path, "shop", "dev"), locked(tmp_path, "shop", "prod"), locked(tmp_path, "other", "dev"):
        pass


@pytest.mark.parametrize(
    ("name", "hostname"),
    [(_OTHER, "elsewhere"), (_OTHER, socket.gethostname()), (_OURS, "elsewhere")],
    ids=["the CLI, elsewhere", "the CLI, here", "this engine, elsewhere"],
)
def test_a_lock_of_which_nobody_knows_whether_its_process_runs_is_respected_however_old(
    tmp_path: Path, dead_pid: int, name: str, hostname: str
):
    path = _hold(tmp_path, pid=dead_pid, hostname=hostname, name=name)
    with pytest.raises(SandboxError) as caught:
        locked(tmp_path, "shop", "dev").__enter__()
    assert caught.value.place == str(path)
    assert list(_directory(tmp_path).iterdir()) == [path]


def test_a_run_that_lives_keeps_its_lock_though_its_process_has_another_id_here(
    tmp_path: Path, dead_pid: int
):
    """Two containers share the folder and their name: what runs in one is nobody's process in the other."""
    with locked(tmp_path, "shop", "dev"):
        (path,) = _directory(tmp_path).iterdir()
        path.write_text(json.dumps(json.loads(path.read_text()) | {"pid": dead_pid}))
        with pytest.raises(SandboxError, match=rf"pid {dead_pid}\) holds it since"):
            locked(tmp_path, "shop", "dev").__enter__()
        assert list(_directory(tmp_path).iterdir()) == [path]


def test_a_run_that_was_killed_is_taken_over_and_named_though_its_id_is_another_process_now(tmp_path: Path):
    _hold(tmp_path, pid=os.getpid(), hostname=socket.gethostname(), name=_OURS)
    with locked(tmp_path, "shop", "dev") as gone:
        assert [(owner.pid, owner.username) for owner in gone] == [(os.getpid(), "someone")]
        assert _OURS not in [path.name for path in _directory(tmp_path).iterdir()]


def test_a_run_that_has_not_said_who_it_is_yet_is_respected(tmp_path: Path):
    with locked(tmp_path, "shop", "dev"):
        (path,) = _directory(tmp_path).iterdir()
        path.unlink()
        with pytest.raises(SandboxError, match="begins or ends just now"):
            locked(tmp_path, "shop", "dev").__enter__()


def test_what_the_cli_notes_beside_a_lock_is_no_lock(tmp_path: Path):
    _directory(tmp_path).mkdir(parents=True)
    (_directory(tmp_path) / f"{_OTHER}.attrs").write_text("{}")
    with locked(tmp_path, "shop", "dev") as gone:
        assert gone == ()


@pytest.mark.parametrize("damage", ["{", "[" * 5_000])
def test_a_file_nobody_can_read_still_counts_as_a_lock(tmp_path: Path, damage: str):
    _hold(tmp_path, pid=1, hostname="x").write_text(damage)
    with pytest.raises(SandboxError, match="nobody can be read from it"):
        locked(tmp_path, "shop", "dev").__enter__()


def test_two_that_start_together_never_both_hold_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The other's lock appears between our first look and our second."""
    from pulumi_sandbox import files

    genuine = files.replace

    def together(path: Path, text: str, *, staging: Path | None = None) -> None:
        genuine(path, text, staging=staging)
        genuine(path.with_name(_OTHER), json.dumps(json.loads(text) | {"hostname": "elsewhere"}))

    monkeypatch.setattr(files, "replace", together)
    with pytest.raises(SandboxError):
        locked(tmp_path, "shop", "dev").__enter__()
    assert [path.name for path in _directory(tmp_path).iterdir()] == [_OTHER]
