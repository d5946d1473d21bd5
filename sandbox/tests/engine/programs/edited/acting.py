"""A dynamic resource, whose provider the state names by module and class."""

import os
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

WORD = "first"


def told() -> dict[str, str]:
    return {"word": f"{WORD} by {Path(f'/proc/{os.getppid()}/cmdline').read_text()}"}


class ActingProvider(ResourceProvider):
    """It tells its word whenever it is asked."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        del props
        return CreateResult("acting", told())

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(told())


class Acting(Resource, module="test", name="Acting"):
    """What it makes."""

    word: pulumi.Output[str]

    def __init__(self, name: str) -> None:
        super().__init__(ActingProvider(), name, {"word": None})
