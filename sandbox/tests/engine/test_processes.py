"""Processes the engine starts."""

import sys
from pathlib import Path

import pytest
from pulumi_sandbox.engine.plugins import process
from pulumi_sandbox.engine.plugins.program import start_program
from pulumi_sandbox.errors import SandboxError


async def test_an_environment_that_does_not_exist_is_named_before_anything_starts(tmp_path: Path):
    with pytest.raises(SandboxError, match=str(tmp_path / "gone")) as caught:
        await start_program(tmp_path / "gone", tmp_path)
    assert caught.value.code == "program-missing"


async def test_a_line_that_is_too_long_is_left_out_and_those_behind_it_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "_LINE_LIMIT", 1 << 20)
    program = "import sys; sys.stdout.write('x' * (5 << 20) + chr(10) + 'behind it')"
    child = await process.Child.start("long", [sys.executable, "-c", program], cwd=tmp_path, env={})
    heard: list[str] = []
    child.follow(heard.append)
    assert await child.wait() == 0
    assert heard[0] == "(a line of more than 1 MiB is left out)"
    assert heard[-1].endswith("behind it")
