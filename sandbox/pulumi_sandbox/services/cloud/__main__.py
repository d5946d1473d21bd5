"""Serves one emulator until it is ended: `python -m pulumi_sandbox.services.cloud NAME MODULE --folder=… …`.

If it ends by itself, its last output is read from the log and shown to the user.
"""

import argparse
import errno
import socket
import sys
from importlib import import_module
from pathlib import Path

from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.cloud.front import Service, server_for
from pulumi_sandbox.services.ports import LOOPBACK


def main() -> None:
    """Serve; exit with 1 if the port is taken or the stored data is unreadable."""
    given = argparse.ArgumentParser()
    given.add_argument("name")
    given.add_argument("module")
    given.add_argument("--folder", type=Path, required=True)
    given.add_argument("--port", type=int, required=True)
    given.add_argument("--certificate", type=Path)
    wanted = given.parse_args()
    try:
        service: Service = import_module(wanted.module).make_app(wanted.folder)
        service.name = wanted.name
        listening = socket.create_server((LOOPBACK, wanted.port))
    except SandboxError as error:
        sys.exit(str(error))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            sys.exit(f"listen tcp {LOOPBACK}:{wanted.port}: bind: address already in use")
        raise
    server_for(service, wanted.certificate).run(sockets=[listening])


if __name__ == "__main__":
    main()
