"""Run the provider: `python -m sandbox.providers.azure_native ENGINE`; the first line printed is its port."""

from __future__ import annotations

from sandbox.providers.azure_native.package import package
from sandbox.providers.server import serve

if __name__ == "__main__":
    serve(package())
