"""Components without an engine and without a cluster."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no component look at the cluster of the person who runs the tests."""
    monkeypatch.setenv("KUBECONFIG", os.devnull)
