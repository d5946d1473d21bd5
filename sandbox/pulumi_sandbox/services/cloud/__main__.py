"""Serves one stand-in until told to end: `python -m pulumi_sandbox.services.cloud SERVICE --folder=… …`.

What it says before it ends by itself is read from its log and told to the user.
"""

from __future__ import annotations

import argparse
import errno
import sys
from pathlib import Path

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.cloud.front import Service
from pulumi_sandbox.services.cloud.kinds import Cloud
from pulumi_sandbox.services.cloud.serving import listen, server_for
from pulumi_sandbox.services.ports import LOOPBACK


def main() -> None:
    """Serve; exit with 1 when the port is taken or what was kept is unreadable."""
    given = argparse.ArgumentParser()
    given.add_argument("service", type=Cloud, choices=list(Cloud))
    given.add_argument("--folder", type=Path, required=True)
    given.add_argument("--port", type=int, required=True)
    given.add_argument("--certificate", type=Path)
    wanted = given.parse_args()
    try:
        service = _make(wanted.service, wanted.folder)
        listening = listen(wanted.port)
    except SandboxError as error:
        sys.exit(str(error))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            sys.exit(f"listen tcp {LOOPBACK}:{wanted.port}: bind: address already in use")
        raise
    server_for(service, wanted.certificate).run(sockets=[listening])


def _make(cloud: Cloud, folder: Path) -> Service:
    match cloud:
        case Cloud.SECRET_MANAGER:
            from pulumi_sandbox.services.cloud.secret_manager.app import make_app
        case Cloud.RESOURCE_MANAGER:
            from pulumi_sandbox.services.cloud.resource_manager.app import make_app
        case Cloud.HYPERFLEET:
            from pulumi_sandbox.services.cloud.hyperfleet.app import make_app
    return make_app(folder)


if __name__ == "__main__":
    main()
