"""Run with `python -m pulumi_sandbox.providers.azure_native ENGINE`; the first printed line is the port."""

from pulumi_sandbox.providers.azure_native.package import package
from pulumi_sandbox.providers.server import serve

if __name__ == "__main__":
    serve(package())
