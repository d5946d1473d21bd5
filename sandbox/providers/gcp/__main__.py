"""Run the provider: `python -m sandbox.providers.gcp ENGINE`; the first line printed is its port."""

from __future__ import annotations

from sandbox.providers.gcp.package import package
from sandbox.providers.server import serve

if __name__ == "__main__":
    serve(package())
