"""A dynamic resource, in a module of its own beside the program."""

from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)


class ThingProvider(ResourceProvider):
    """Keeps nothing; `trouble` makes a call fail."""

    region: str

    def configure(self, req: ConfigureRequest) -> None:
        self.region = req.config.get("region") or ""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        failures = [CheckFailure("trouble", "not here")] if news.get("trouble") == "check" else []
        return CheckResult(news, failures)

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=olds.get("size") != news.get("size"))

    def create(self, props: dict[str, Any]) -> CreateResult:
        if props.get("trouble") == "create":
            raise RuntimeError("out of stock")
        return CreateResult(
            "thing-1", {**props, "made": f"in {self.region}", "kind": type(props["size"]).__name__}
        )

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({**news, "made": "again", "kind": type(news["size"]).__name__})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, {**props, "made": "seen"})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        return None


class Thing(Resource, module="test", name="Thing"):
    """A thing."""

    made: pulumi.Output[str]
    kind: pulumi.Output[str]
    word: pulumi.Output[str]

    def __init__(self, name: str, props: dict[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(ThingProvider(), name, {"made": None, "kind": None, "word": None, **props}, opts)
