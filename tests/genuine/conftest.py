"""Pulumi's own Kubernetes provider on PATH, before any other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.kubernetes_plugin import ACCEPTED
from tests.genuine import provider
from tests.program.conftest import project

__all__ = ["project"]


@pytest.fixture(autouse=True)
def genuine_provider(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have every command take the provider that was built, and the program go on without what that lacks."""
    folder = provider.folder()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(ACCEPTED, "upsertExistingObjects")
    return folder
