"""What a person sees of the dev stack at 80 and 120 columns, as it was read and approved.

A frame is what stays on the screen, tests/operations/frames holds them. Whether real updates tell the display
the same is for tests/program.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pulumi.automation.events import EngineEvent
from pulumi_sandbox.protocol import urns

from components.account_pool.core.status import Account, AccountUse, PoolStatus
from operations.cli.answer import Part, write_parts
from operations.pool.status import Seen, render_counts, render_list
from operations.sandbox import display, results
from operations.sandbox.deployment import Step
from operations.sandbox.display import Display
from operations.sandbox.report import Claimed, Report, Skipped
from operations.sandbox.summary import as_parts, skipped_table
from operations.stack.state import Resource

FRAMES = Path(__file__).with_name("frames")
ESO = "install External Secrets Operator, then update again"
SKIPPED = (
    Skipped(
        "ExternalSecret deploy-token",
        f"the cluster does not serve external-secrets.io/v1/ExternalSecret: {ESO}",
    ),
    Skipped("SecretStore ci", f"the cluster does not serve external-secrets.io/v1/SecretStore: {ESO}"),
    Skipped("pull secret cls-000000000003", "adapter dns reports False"),
)
MISSING = tuple(
    Skipped(
        f"account {name}",
        "members.csv lists it, and namespace account-pool has no such account:"
        " make its Secret; pool import does",
    )
    for name in ("aws-legacy-1", "aws-legacy-eu-1", "azure-legacy-1")
)
FORECAST = (
    "acme/aws: expected to get any of 3 free aws accounts",
    "free accounts expected to be left: aws 1 of 3; azure 0 of 1; gcp_cf-sa30 0 of 1;"
    " aws with eu-access=true 0 of 1",
)
ACCOUNTS = (
    ("aws-1", "aws", "acme", "aws"),
    ("aws-3", "aws", "initech", "aws"),
    ("aws-eu-1", "aws", "initech", "aws-eu"),
    ("azure-1", "azure", "acme", "azure"),
    ("gcp-sa30-1", "gcp_cf-sa30", "acme", "gcp"),
    ("globex-azure", "azure", "globex", "azure"),
)
NEXT = (
    (".venv/bin/credfleet pool claim --stack dev -t aws --tenant acme --slot by-hand", "claim one manually"),
    (".venv/bin/credfleet pool status", "who has which account, and what is free"),
    ('eval "$(.venv/bin/credfleet sandbox env)"', "this stack for kubectl and pulumi, in this shell"),
    ("pulumi preview --stack dev", "what the next update would change"),
    ("pulumi destroy --stack dev", "delete what was declared"),
    ("make down", "stop what runs; data and state are kept"),
)


def dev_stack() -> list[Resource]:
    resources: list[Resource] = []
    with (FRAMES / "dev_stack.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            above = resources[int(row["parent"])].urn if row["parent"] else ""
            chain = urns.parse(above).qualified_type if above else urns.ROOT_STACK_TYPE
            type_ = row["type"] if chain == urns.ROOT_STACK_TYPE else f"{chain}${row['type']}"
            urn = f"urn:pulumi:dev::credfleet::{type_}::{row['name']}"
            resources.append(Resource(urn, row["type"], custom=True, parent=above))
    return resources


def event(name: str, told: Mapping[str, Any]) -> EngineEvent:
    return EngineEvent.from_json({"sequence": 0, "timestamp": 0, name: told})


def deployed(title: str, ops: Mapping[str, str], *, usual: str, before: Iterable[str] = ()) -> str:
    """Return what is shown of a deployment; ops: of the resources named, usual: of all others."""
    stream = io.StringIO()
    shown = Display(f"{title} credfleet/dev", hidden=("skipped: ",), stream=stream)
    for text in before:
        shown.show(event("diagnosticEvent", {"message": text, "color": "never", "severity": "info"}))
    counts: dict[str, int] = {}
    for each in dev_stack():
        op = ops.get(urns.parse(each.urn).name, usual)
        counts[op] = counts.get(op, 0) + 1
        step = {"op": op, "urn": each.urn, "type": each.type, "old": None, "new": None, "provider": ""}
        planning = title == "Previewing"
        shown.show(event("resourcePreEvent", {"metadata": step, "planning": planning}))
        shown.show(event("resOutputsEvent", {"metadata": step, "planning": planning}))
    summary = {"maybeCorrupt": False, "durationSeconds": 8, "resourceChanges": counts, "PolicyPacks": {}}
    shown.show(event("summaryEvent", summary))
    shown.close()
    return stream.getvalue()


def report(operation: str) -> Report:
    resources = dev_stack()
    steps = [Step(operation, each.urn, each.type, each.id, each.inputs, done=True) for each in resources]
    declared = results.list_declared(resources, steps)
    claimed = tuple(
        Claimed(
            tenant, slot, type_, name, "account-pool", "Bound", reused=False, is_new=operation == "create"
        )
        for name, type_, tenant, slot in ACCOUNTS
    )
    return Report(
        project="credfleet",
        stack="dev",
        ok=True,
        headline=results.headline(declared, 0, len(claimed), 6, "succeeded"),
        finished=datetime(2026, 11, 22, tzinfo=UTC),
        seconds=7.7,
        server="https://127.0.0.1:6443",
        namespaces={},
        declared=declared,
        claimed=claimed,
        skipped=(*SKIPPED, *MISSING),
        shares=(),
        violations=(),
        outputs=(),
        services=(),
        next=NEXT,
    )


def status() -> PoolStatus:
    since, holder = "2026-11-22T10:48:05Z", "pulumi/organization/credfleet/dev"
    used = (
        Account(
            name,
            type_,
            "eu-access=true" if "-eu-" in name else "!eu-access",
            AccountUse.CLAIMED,
            tenant,
            slot,
            (f"{holder}/{tenant}/{slot}",),
            since,
        )
        for name, type_, tenant, slot in ACCOUNTS
    )
    accounts = (*used, Account("aws-2", "aws", "!eu-access", AccountUse.FREE))
    keys = sorted({(each.type, each.partition) for each in accounts})
    return PoolStatus(
        accounts,
        {
            key: {
                s: sum((a.type, a.partition, a.standing) == (*key, s) for a in accounts) for s in AccountUse
            }
            for key in keys
        },
    )


def frame(name: str) -> tuple[str, Iterable[Part]]:
    """Return what is shown in a frame meanwhile, and what is answered."""
    page = Path.cwd() / ".sandbox" / "report.html"
    match name:
        case "first-up":
            ahead = deployed("Previewing", {}, usual="create", before=FORECAST)
            return ahead + deployed("Updating", {}, usual="create"), as_parts(report("create"), page)
        case "second-up":
            return deployed("Previewing", {}, usual="same"), as_parts(report("same"), page)
        case "rotation":
            ops = {
                "account-pool-aws-1": "update",
                "acme/aws-delivery": "update",
                "search/catalogue-env": "delete",
            }
            return deployed("Updating", ops, usual="same"), skipped_table(SKIPPED)
        case _:
            seen = [Seen("account-pool", status())]
            return "", [render_counts(seen), render_list(seen, datetime(2026, 11, 22, tzinfo=UTC))]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["first-up", "second-up", "rotation", "pool-status"])
def test_what_a_person_sees_is_what_was_approved(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setattr(display, "time", SimpleNamespace(monotonic=lambda: 0.0))
    meanwhile, parts = frame(name)
    write_parts(parts, width)
    text = meanwhile + re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert text == (FRAMES / f"{name}-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("frame", sorted(FRAMES.glob("*.txt")), ids=lambda path: path.stem)
def test_an_approved_frame_fits_its_screen(frame: Path) -> None:
    lines = frame.read_text(encoding="utf-8").splitlines()
    totals = [at for at, line in enumerate(lines) if line.startswith("Resources: ")]
    answered = lines[totals[-1] + 1 if totals else 0 :]  # what comes before is folded by the terminal
    assert max(map(len, answered)) <= int(frame.stem.rpartition("-")[2])
    if frame.stem.startswith("second-up"):
        assert len(lines) < 40, "the line that make itself prints comes before"
