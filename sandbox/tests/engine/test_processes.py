"""Processes the engine starts."""

from pathlib import Path

import pytest
from pulumi_sandbox.engine.plugins.program import start_program
from pulumi_sandbox.errors import SandboxError


async def test_an_environment_that_does_not_exist_is_named_before_anything_starts(tmp_path: Path):
    with pytest.raises(SandboxError, match=str(tmp_path / "gone")) as caught:
        await start_program(tmp_path / "gone", tmp_path)
    assert caught.value.code == "program-missing"
