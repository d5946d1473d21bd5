"""The provider of the package `shop`, which has one function."""

from typing import Any, cast

from pulumi_sandbox.protocol.values import Properties
from pulumi_sandbox.providers.contract import Package, Provider
from pulumi_sandbox.providers.server import serve

WORD = "first"


class Shop:
    """It tells its word."""

    def invoke(self, _token: str, _args: Properties) -> Properties:
        return {"word": f"{WORD} by itself"}

    def cancel(self) -> None:
        """It never waits."""


def configured(_options: Any) -> Provider:
    return cast("Provider", Shop())


if __name__ == "__main__":
    serve(Package("Shop", "1.0.0", lambda _options: [], configured))
