"""`credfleet pull-secret`: checks a pull secret, and reads the state of the clusters that get one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pulumi_sandbox import files

from components.durations import now
from components.errors import CredfleetError, Problem
from components.naming import config_path
from components.open_ports import HYPERFLEET, settle
from components.pull_secret import names
from components.pull_secret.hyperfleet import Contract, HyperFleet, render_observed
from components.pull_secret.model import Observed
from components.pull_secret.names import secret_labels
from components.pull_secret.payload import judge
from components.pull_secret.preconditions import ADAPTERS
from operations.cli.answer import CommandResult, Part, VerdictLine
from operations.cli.command import command, group
from operations.cli.inputs import read_bytes
from operations.cli.options import StackOption
from operations.cli.tables import Column, Table
from operations.folders import Folders
from operations.stack.yaml_file import load_yaml

_KEY: Final = "pullSecrets"

app = group(
    "Judge pull secrets, the credentials a cluster pulls images with, and ask about clusters.",
    "credfleet pull-secret check pull-secret.json",
    "credfleet pull-secret check pull-secret.json --cluster-id cls-0123456789ab --strict",
    "credfleet pull-secret observe --stack prod",
)


@command(
    app,
    "credfleet pull-secret check pull-secret.json",
    "credfleet pull-secret check pull-secret.json --cluster-id cls-0123456789ab --strict",
    "pass show quay-pull | credfleet pull-secret check - --output json",
)
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File of the pull secret. - is standard input.")
    ],
    *,
    cluster_id: Annotated[
        str | None, typer.Option(help="Also check this cluster id, and show the name of the entry.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Treat warnings as errors."),
    ] = False,
) -> CommandResult:
    """Find all problems of a pull secret.

    Only the names of its registries are shown.

    Exit code 1: it is invalid.
    """
    verdict = judge(read_bytes(file, "the pull secret"), strict=strict)
    errors, warnings = verdict.errors, verdict.warnings
    secret_id, labels = None, dict[str, str]()
    if cluster_id is not None:
        unfit = (*names.cluster_id_problems(cluster_id, "--cluster-id"),)
        errors += unfit
        warnings += (*names.job_problems(cluster_id, 1, "--cluster-id"),)
        if not unfit:
            secret_id, labels = names.SECRET.of(cluster_id), dict(secret_labels(cluster_id))
    facts = {
        "bytes": str(verdict.size),
        "registries": ", ".join(verdict.registries) or "none",
        **({"secret id": secret_id} if secret_id else {}),
        **{f"label {key}": value for key, value in labels.items()},
    }
    parts: list[Part] = []
    if errors or warnings:
        columns = ("", Column("Where", names=True), Column("What", folds=True))
        parts.append(Table("Findings", columns, [*_findings("✗", errors), *_findings("·", warnings)]))
    parts += [Table("Pull secret", ("", Column("", folds=True)), facts.items()), ""]
    document = {
        "valid": not errors,
        "errors": [*map(str, errors)],
        "warnings": [*map(str, warnings)],
        "secretId": secret_id,
        "labels": labels,
        "bytes": verdict.size,
        "registries": [*verdict.registries],
    }
    line = VerdictLine(not errors, "not valid" if errors else "valid")
    return CommandResult(document, [*parts, line], int(bool(errors)))


def _findings(mark: str, faults: Iterable[Problem]) -> Iterator[tuple[str, str, str]]:
    return ((mark, fault.place, f"{fault.problem}\n→ {fault.fix}") for fault in faults)


@command(
    app,
    "credfleet pull-secret observe",
    "credfleet pull-secret observe --stack prod --api-url https://hyperfleet.example",
)
def observe(
    *,
    stack: StackOption = "dev",
    api_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Instead of pullSecrets.hyperfleet.apiUrl.")
    ] = None,
) -> CommandResult:
    """Write the state of a stack's clusters in HyperFleet to the file of pullSecrets.adaptersFrom.

    The next update reads it there. HYPERFLEET_API_TOKEN is the token. If HyperFleet does not answer, the file
    is unchanged.
    """
    hyperfleet, clusters, file = _asked(Folders.find(Path.cwd()), stack, api_url)
    answers = {cluster: hyperfleet.observe(cluster) for cluster in clusters}
    text = render_observed(answers, now())
    files.replace(file, text)
    columns = (Column("Cluster", names=True), Column("Phase", folds=True), *ADAPTERS)
    table = Table("Clusters", columns, _clusters(answers))
    return CommandResult(json.loads(text), [table, f"\n✓ written to {file}"])


def _asked(folders: Folders, stack: str, url: str | None) -> tuple[HyperFleet, tuple[str, ...], Path]:
    """Return the HyperFleet API, the clusters to query, and the output file, without decrypting.

    Raises Unreadable as `load_yaml`; CredfleetError `not-configured`.
    """
    document = load_yaml(folders.project / f"Pulumi.{stack}.yaml")
    section: dict[str, Any] = (document.get("config") or {}).get(f"credfleet:{_KEY}") or {}
    file, given = section.get("adaptersFrom"), section.get("hyperfleet") or {}
    known = url or settle(HYPERFLEET, str(given.get("apiUrl") or ""))
    contract = given.get("contract", Contract.V2)
    unread = "it is left out, so no stack would read what is observed"
    unknown = "it is left out, so it is unknown which API to ask"
    for is_fit, key, problem, fix in (
        (file, ("adaptersFrom",), unread, "add the name of a file"),
        (known, ("hyperfleet",), unknown, "add apiUrl there, or give --api-url"),
        (
            contract in set(Contract),
            ("hyperfleet", "contract"),
            f"there is none of the name {contract}",
            f"use one of {', '.join(Contract)}",
        ),
    ):
        if not is_fit:
            place = config_path(_KEY, *key)
            raise CredfleetError(code="not-configured", place=place, problem=problem, fix=fix)
    hyperfleet = HyperFleet(str(known), Contract(contract))
    return hyperfleet, tuple(section.get("clusters") or {}), folders.project / str(file)


def _clusters(observed: Mapping[str, Observed]) -> Iterator[tuple[str, ...]]:
    for cluster, one in observed.items():
        if not one.known:
            yield cluster, "HyperFleet knows no such cluster", *("" for _ in ADAPTERS)
        else:
            phase = f"deleted {one.deleted_time}" if one.deleted_time else one.phase or ""
            yield cluster, phase, *(one.adapters.get(name, "") for name in ADAPTERS)
