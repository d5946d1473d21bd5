"""An API server that may be killed."""

from collections.abc import Generator
from pathlib import Path

import pytest
from pulumi_sandbox.services.build import binaries
from pulumi_sandbox.services.control_plane import ControlPlane

from tests.support.proving import PROVES


@pytest.fixture
def plane(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[ControlPlane]:
    """Return the API server of all tests; where a run proves, one of our own, to be killed."""
    if not PROVES:
        yield request.getfixturevalue("control_plane")
        return
    own = ControlPlane.start(tmp_path / "plane", binaries=binaries(), die_with_parent=True)
    try:
        yield own
    finally:
        own.stop()


def restarted(plane: ControlPlane) -> None:
    """Start again what was killed; it ends with the calling thread."""
    again = ControlPlane.start(plane.folder, binaries=plane.binaries, die_with_parent=True)
    assert again.ports == plane.ports, "another process took its ports"
