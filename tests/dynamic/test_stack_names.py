"""Whatever is held in a stack's name is refused under another one, after `pulumi stack rename`."""

from __future__ import annotations

import importlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from components.dynamic import DynamicProvider

FROZEN = Path(__file__).with_name("frozen_paths.txt").read_text(encoding="utf-8").split()


def held() -> dict[str, tuple[type[DynamicProvider], str]]:
    """Every provider whose inputs say in whose name it holds something, and the input that does."""
    found: dict[str, tuple[type[DynamicProvider], str]] = {}
    for path in FROZEN:
        module, name = path.split(":")
        kind: Any = getattr(importlib.import_module(module), name)
        for each in fields(kind.args) if issubclass(kind, DynamicProvider) else ():
            if each.name in ("holder", "owner"):
                found[path] = kind, each.name
    return found


HELD = held()


def holder(stack: str, project: str = "p", entry: str = "acme/main") -> str:
    return f"pulumi/o/{project}/{stack}/{entry}"


@pytest.mark.parametrize(("kind", "key"), HELD.values(), ids=HELD)
def test_check_under_another_stacks_name_refuses_with_the_line_to_add(
    kind: type[DynamicProvider], key: str
) -> None:
    (failure,) = list(kind().check({key: holder("old")}, {key: holder("new")}).failures or ())
    assert failure.reason.startswith("credfleet:heldAs: this stack holds accounts and Secrets as old")
    assert failure.reason.endswith("→ pulumi config set credfleet:heldAs old --stack new")


def test_claims_copies_rosters_and_services_are_held() -> None:
    names = {path.partition(":")[2] for path in HELD}
    assert names >= {"AccountClaimProvider", "PoolRosterProvider", "SecretProjectionProvider"}
    assert len(names) > 6
