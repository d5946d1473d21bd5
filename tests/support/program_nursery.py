"""Programs that start at once: a process that has imported the SDKs forks one for each connection.

`program_nursery.py serve SOCKET` is the process, `program_nursery.py run SOCKET` stands in for a language
host: it hands its own input and output over, and ends as the program did.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

IMPORTED: Final = (
    "pulumi_azure_native.authorization",
    "pulumi_azure_native.managedidentity",
    "pulumi_azure_native.resources",
    "pulumi_gcp.secretmanager",
    "pulumi_kubernetes.admissionregistration.v1",
    "pulumi_kubernetes.core.v1",
    "pulumi_kubernetes.rbac.v1",
    "components.fleet",
    "components.settings.stack",
    "components.wiring.pull_secrets",
)


def run(address: str) -> int:
    """Hand over and wait."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [os.getcwd().encode()], [0, 1, 2])
        return (connection.recv(1) or b"\x01")[0]


def serve(address: str) -> None:
    """Import once, then fork for whoever comes; ends with the process that started it."""
    from pulumi_sandbox.engine.plugins import language_host

    for module in IMPORTED:
        import_module(module)

    gc.freeze()
    gc.disable()  # what ends with its one program need not be tidied up
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                _attend(connection, language_host.main)
            connection.close()
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _attend(connection: socket.socket, main: Callable[[], int]) -> None:
    folder, descriptors, _, _ = socket.recv_fds(connection, 4096, 3)
    child = os.fork()
    if child == 0:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.chdir(folder)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        code = 1
        try:
            code = main()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.send(bytes([code if code >= 0 else 1]))
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(run(sys.argv[2]))
