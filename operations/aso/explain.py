"""`credfleet aso explain`: which credential each ASO resource will use, and what keeps it from working."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from components.aso_credentials.nouns import Operator, Resolution
from components.aso_credentials.resolver import resolve
from operations.aso.manifests import read_manifests
from operations.cli.answer import Answer, Part
from operations.cli.tables import Column, Table
from operations.pool.access import Where


def explained(files: Sequence[Path], operator: Operator, live: Where | None) -> Answer:
    """Return what ASO makes of each resource; exit code 1 when it refuses one.

    live: the cluster whose Secrets count instead of those in the files. Raises as `read_manifests`,
    `live_secrets`, `resolve` and `connect`.
    """
    manifests = read_manifests(files)
    secrets = manifests.secrets
    if live is not None:
        from components.connection import connect
        from operations.aso.live_secrets import live_secrets

        secrets = live_secrets(connect(live.target()), manifests.resources, operator.namespace)
    resolutions = resolve(manifests.resources, secrets, operator)
    refused = any(each.fault for each in resolutions)
    return Answer([*map(_as_document, resolutions)], _parts(resolutions), int(refused))


def _as_document(resolution: Resolution) -> dict[str, Any]:
    fault = resolution.fault
    return {
        "resource": str(resolution.resource),
        "secret": str(resolution.secret) if resolution.secret else None,
        "scope": resolution.scope,
        "method": resolution.method,
        "subject": resolution.subject,
        "severity": fault.severity if fault else None,
        "reason": fault.reason if fault else None,
        "message": resolution.message,
    }


def _parts(resolutions: Sequence[Resolution]) -> Iterator[Part]:
    if not resolutions:
        yield "There is no ASO resource in what was given."
        return
    rows = [
        (
            "✗" if each.fault else "✓",
            str(each.resource),
            str(each.secret or "-"),
            each.scope or "-",
            each.method or "-",
        )
        for each in resolutions
    ]
    columns = (
        "",
        Column("Resource", names=True),
        "Secret",
        Column("Scope", leaves=2),
        Column("Method", leaves=1),
    )
    yield Table("Credentials ASO will use", columns, rows)
    for each in resolutions:
        if each.subject:
            yield f"→ {each.resource}: its identity must trust\n  {each.subject}"
    for each in resolutions:
        if each.message:
            title = f"{each.fault.severity}, {each.fault.reason}" if each.fault else "Note"
            yield f"{'✗' if each.fault else '→'} {each.resource}: {title}\n  {each.message}"
