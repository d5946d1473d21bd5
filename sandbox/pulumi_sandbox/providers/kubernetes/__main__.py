"""Run it: `python -m pulumi_sandbox.providers.kubernetes ENGINE`; the first line it prints is its port."""

from pulumi_sandbox.providers.kubernetes.connection import import_client
from pulumi_sandbox.providers.kubernetes.provider import package
from pulumi_sandbox.providers.server import serve

if __name__ == "__main__":
    serve(package(), meanwhile=import_client)
