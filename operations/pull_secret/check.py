"""`credfleet pull-secret check`: what is wrong with a pull secret, and what it would be called in GCP."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from components.errors import Problem
from components.pull_secret import names
from components.pull_secret.labels import secret_labels
from components.pull_secret.payload import judge
from operations.cli.answer import CommandResult, Part, VerdictLine
from operations.cli.inputs import read_bytes
from operations.cli.tables import Column, Table

_CLUSTER_ID: Final = "--cluster-id"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out. secret_id, labels: in Secret Manager, as far as the id of a cluster tells them."""

    size: int
    registries: tuple[str, ...]
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    secret_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong that would be refused."""
        return not self.errors


def check(file: str, cluster_id: str | None, *, strict: bool) -> CommandResult:
    """Judge a file and tell what was found; exit code 1 when it is not valid."""
    finding = examine(read_bytes(file, "the pull secret"), cluster_id, strict=strict)
    verdict = VerdictLine(finding.valid, "valid" if finding.valid else "not valid")
    parts: list[Part] = [Table("Pull secret", ("", Column("", folds=True)), _facts(finding)), "", verdict]
    if finding.errors or finding.warnings:
        parts.insert(
            0,
            Table("Findings", ("", Column("Where", names=True), Column("What", folds=True)), _rows(finding)),
        )
    document = {
        "valid": finding.valid,
        "errors": [str(fault) for fault in finding.errors],
        "warnings": [str(fault) for fault in finding.warnings],
        "secretId": finding.secret_id,
        "labels": dict(finding.labels),
        "bytes": finding.size,
        "registries": list(finding.registries),
    }
    return CommandResult(document, parts, int(not finding.valid))


def examine(payload: bytes, cluster_id: str | None, *, strict: bool) -> Finding:
    """Judge a payload, and the id of the cluster it is for where one is given."""
    verdict = judge(payload, strict=strict)
    if cluster_id is None:
        return Finding(verdict.size, verdict.registries, verdict.errors, verdict.warnings)
    unfit = (*names.cluster_id_problems(cluster_id, _CLUSTER_ID),)
    doubtful = (*names.job_problems(cluster_id, 1, _CLUSTER_ID),)
    return Finding(
        verdict.size,
        verdict.registries,
        (*verdict.errors, *unfit),
        (*verdict.warnings, *doubtful),
        None if unfit else names.secret_id(cluster_id),
        {} if unfit else secret_labels(cluster_id),
    )


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    yield "bytes", str(finding.size)
    yield "registries", ", ".join(finding.registries) or "none"
    if finding.secret_id:
        yield "secret id", finding.secret_id
    yield from ((f"label {key}", value) for key, value in finding.labels.items())


def _rows(finding: Finding) -> Iterator[tuple[str, str, str]]:
    for mark, faults in (("✗", finding.errors), ("·", finding.warnings)):
        for fault in faults:
            yield mark, fault.place, f"{fault.problem}\n→ {fault.fix}"
