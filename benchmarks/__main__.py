"""Run every benchmark on one API server of its own and print the tables."""

import tempfile
from pathlib import Path

from benchmarks import engine
from benchmarks.stopwatch import table
from sandbox.services import build
from sandbox.services.control_plane import ControlPlane


def main() -> None:
    """Start an API server, measure, print, stop it."""
    with tempfile.TemporaryDirectory(prefix="credfleet-bench-") as name:
        folder = Path(name)
        plane = ControlPlane.start(folder / "control-plane", binaries=build.binaries(), die_with_parent=True)
        try:
            print(table("The embedded engine", engine.measure(plane, folder)))
        finally:
            plane.stop()


if __name__ == "__main__":
    main()
