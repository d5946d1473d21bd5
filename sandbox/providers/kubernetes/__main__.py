"""Run the provider: `python -m sandbox.providers.kubernetes ENGINE`; the first line printed is its port."""

from __future__ import annotations

from sandbox.providers.kubernetes.connection import import_client
from sandbox.providers.kubernetes.package import KUBERNETES
from sandbox.providers.server import serve

if __name__ == "__main__":
    serve(KUBERNETES, meanwhile=import_client)
