"""Run with `python -m pulumi_sandbox.providers.kubernetes ENGINE`; the first printed line is the port."""

from pulumi_sandbox.providers.kubernetes.connection import import_client
from pulumi_sandbox.providers.kubernetes.provider import package
from pulumi_sandbox.providers.server import serve

if __name__ == "__main__":
    serve(package(), meanwhile=import_client)
