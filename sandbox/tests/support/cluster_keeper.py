"""Holds the control plane of one test run, for as long as that run lives.

Started as a script with FOLDER, READY and PID. Makes the file READY once the control plane in FOLDER is
ready. The control plane dies with this process, and this process ends when process PID does, however that
ends; pytest-xdist's workers come and go in between.
"""

import shutil
import sys
from pathlib import Path

import psutil
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.build import binaries
from pulumi_sandbox.services.control_plane import ControlPlane
from pulumi_sandbox.services.parts import User

USERS = (User("provisioner"), User("janitor"), User("team"))
"""Two who may what a test lets RBAC grant them."""


def main(folder: Path, ready: Path, run: int) -> None:
    tests = psutil.Process(run)
    try:
        plane = ControlPlane.start(folder, binaries=binaries(), users=USERS, die_with_parent=True)
    except SandboxError as error:
        sys.exit(str(error))
    ready.touch()
    tests.wait()
    plane.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
