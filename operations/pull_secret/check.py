"""`credfleet pull-secret check`: what is wrong with a pull secret, and what it would be called in GCP."""

from collections.abc import Iterable, Iterator
from typing import Final

from components.errors import Problem
from components.pull_secret import names
from components.pull_secret.labels import secret_labels
from components.pull_secret.payload import judge
from operations.cli.answer import CommandResult, Part, VerdictLine
from operations.cli.inputs import read_bytes
from operations.cli.tables import Column, Table

_CLUSTER_ID: Final = "--cluster-id"


def check(file: str, cluster_id: str | None, *, strict: bool) -> CommandResult:
    """Judge a file, and the id of its cluster where one is given; exit code 1 when it is not valid."""
    verdict = judge(read_bytes(file, "the pull secret"), strict=strict)
    errors, warnings = verdict.errors, verdict.warnings
    secret_id, labels = None, dict[str, str]()
    if cluster_id is not None:
        unfit = (*names.cluster_id_problems(cluster_id, _CLUSTER_ID),)
        errors += unfit
        warnings += (*names.job_problems(cluster_id, 1, _CLUSTER_ID),)
        if not unfit:
            secret_id, labels = names.secret_id(cluster_id), dict(secret_labels(cluster_id))
    facts = {
        "bytes": str(verdict.size),
        "registries": ", ".join(verdict.registries) or "none",
        **({"secret id": secret_id} if secret_id else {}),
        **{f"label {key}": value for key, value in labels.items()},
    }
    parts: list[Part] = []
    if errors or warnings:
        columns = ("", Column("Where", names=True), Column("What", folds=True))
        parts.append(Table("Findings", columns, [*_rows("✗", errors), *_rows("·", warnings)]))
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


def _rows(mark: str, faults: Iterable[Problem]) -> Iterator[tuple[str, str, str]]:
    return ((mark, fault.place, f"{fault.problem}\n→ {fault.fix}") for fault in faults)
