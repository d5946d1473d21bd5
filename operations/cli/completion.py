"""What a shell is offered for an option: what the files of the stacks here name; no key or cluster is asked.

Whatever cannot be read offers nothing: a shell has no place for an error. Imports next to nothing, since a
person waits for it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

_STACK = "stack"


def stacks(incomplete: str) -> list[str]:
    """Return the stacks of the project around here."""
    files = _project().glob("Pulumi.*.yaml")
    return _fitting((file.name.split(".", 1)[1].removesuffix(".yaml") for file in files), incomplete)


def tenants(context: typer.Context, incomplete: str) -> list[str]:
    """Return the tenants of the stacks that are meant."""
    return _fitting((tenant for tenant, _ in _tenants(context)), incomplete)


def slots(context: typer.Context, incomplete: str) -> list[str]:
    """Return the slots of the tenant that is named, or of all."""
    named = context.params.get("tenant")
    wanted = (accounts for tenant, accounts in _tenants(context) if named in (None, "", tenant))
    return _fitting((slot for accounts in wanted for slot in accounts), incomplete)


def accounts(context: typer.Context, incomplete: str) -> list[str]:
    """Return the accounts that the stacks declare or list."""
    return _fitting((name for name, _ in _members(context)), incomplete)


def types(context: typer.Context, incomplete: str) -> list[str]:
    """Return the types of those accounts."""
    return _fitting((kind for _, kind in _members(context)), incomplete)


def rooms(incomplete: str) -> list[str]:
    """Return what a list of rooms may go on with."""
    from operations.project.words import ROOMS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{each}" for each in _fitting(ROOMS, last) if each not in before.split(",")]


def _fitting(found: Iterable[str], incomplete: str) -> list[str]:
    return sorted({each for each in found if each.startswith(incomplete)})


def _project() -> Path:
    here = Path.cwd()
    return next((each for each in (here, *here.parents) if (each / "Pulumi.yaml").is_file()), here)


def _configs(context: typer.Context) -> Iterator[Mapping[str, Any]]:
    """Yield the configuration of the stack that is named, or of every one."""
    named = context.params.get(_STACK)
    for file in sorted(_project().glob(f"Pulumi.{named or '*'}.yaml")):
        yield _mapping(_read(file).get("config"))


def _read(file: Path) -> Mapping[str, Any]:
    import yaml

    try:
        with file.open(encoding="utf-8") as stream:
            document = yaml.load(stream, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return _mapping(document)


def _mapping(value: object) -> Mapping[str, Any]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _tenants(context: typer.Context) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for config in _configs(context):
        for name, tenant in _tenants_of(config):
            yield name, _mapping(tenant.get("accounts"))


def _tenants_of(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the tenants of a stack's file, and those in files of their own."""
    for name, tenant in _mapping(config.get("credfleet:tenants")).items():
        yield name, _mapping(tenant)
    if folder := config.get("credfleet:tenantsFrom"):
        for file in sorted((_project() / str(folder)).glob("[!_]*.yaml")):
            yield file.stem, _read(file)


def _members(context: typer.Context) -> Iterator[tuple[str, str]]:
    for config in _configs(context):
        pool = _mapping(config.get("credfleet:accountPool"))
        for name, member in _mapping(pool.get("members")).items():
            yield name, str(_mapping(member).get("type", ""))
        path = _project() / str(pool.get("membersFrom") or "none")
        for each in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
            try:
                with each.open(encoding="utf-8-sig") as file:
                    yield from ((row["name"], row["type"]) for row in csv.DictReader(file))
            except (OSError, ValueError, KeyError, csv.Error):
                continue
