"""`credfleet pull-secret observe`: ask HyperFleet how a stack's clusters are, and keep it for the stack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox import files

from components.errors import CredfleetError
from components.naming import config_path
from components.open_ports import HYPERFLEET, settle
from components.pull_secret.hyperfleet import Contract, HyperFleet, Observed
from components.pull_secret.observations import render
from components.pull_secret.preconditions import ADAPTERS
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.folders import Folders
from operations.stack.yaml_file import load_yaml

_KEY: Final = "pullSecrets"


def observe(stack: str, url: str | None) -> CommandResult:
    """Ask about every cluster and write the file; when one cannot be asked about, it stays as it was.

    Raises CredfleetError for a stack that names no HyperFleet or no file, and when HyperFleet does not
    answer.
    """
    hyperfleet, clusters, file = _asked(Folders.find(Path.cwd()), stack, url)
    answers = {cluster: hyperfleet.observe(cluster) for cluster in clusters}
    text = render(answers, datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))
    files.replace(file, text)
    columns = (Column("Cluster", names=True), Column("Phase", folds=True), *ADAPTERS)
    table = Table("Clusters", columns, _rows(answers))
    return CommandResult(json.loads(text), [table, f"\n✓ written to {file}"])


def _asked(folders: Folders, stack: str, url: str | None) -> tuple[HyperFleet, tuple[str, ...], Path]:
    """Return who is asked of which clusters, and the file for the answers; no credential is decrypted."""
    path = folders.project / f"Pulumi.{stack}.yaml"
    if not path.exists():
        raise CredfleetError(
            code="no-stack",
            place=str(path),
            problem="file not found, so the clusters are unknown",
            fix="name another stack with --stack",
        )
    section: dict[str, Any] = (load_yaml(path).get("config") or {}).get(f"credfleet:{_KEY}") or {}
    file = section.get("adaptersFrom")
    if not file:
        raise _unfit(
            "adaptersFrom",
            "it is left out, so no stack would read what is observed",
            "add the name of a file",
        )
    given: dict[str, Any] = section.get("hyperfleet") or {}
    known = url or settle(HYPERFLEET, str(given.get("apiUrl") or ""))
    if not known:
        raise _unfit(
            "hyperfleet",
            "it is left out, so it is unknown which API to ask",
            "add apiUrl there, or give --api-url",
        )
    contract = given.get("contract", Contract.V2)
    if contract not in set(Contract):
        words = ", ".join(Contract)
        raise _unfit("hyperfleet.contract", f"there is none of the name {contract}", f"use one of {words}")
    hyperfleet = HyperFleet(str(known), Contract(contract))
    return hyperfleet, tuple(section.get("clusters") or {}), folders.project / str(file)


def _unfit(key: str, problem: str, fix: str) -> CredfleetError:
    return CredfleetError(
        code="not-configured", place=config_path(_KEY, *key.split(".")), problem=problem, fix=fix
    )


def _rows(observed: Mapping[str, Observed]) -> Iterator[tuple[str, ...]]:
    for cluster, one in observed.items():
        if not one.known:
            yield cluster, "HyperFleet knows no such cluster", *("" for _ in ADAPTERS)
        else:
            phase = f"deleted {one.deleted_time}" if one.deleted_time else one.phase or ""
            yield cluster, phase, *(one.adapters.get(name, "") for name in ADAPTERS)
