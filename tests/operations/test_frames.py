"""What a person sees of the dev stack at 80 and 120 columns, as it was read and approved.

A frame is what stays on the screen, tests/operations/frames holds them. Whether real updates tell the display
the same is for tests/program.
"""

import csv
import io
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    Op,
    Operation,
    PolicyPackLoaded,
    StackStarted,
    Step,
    StepFinished,
    StepPlanned,
    Summary,
)
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.show.live_tree import LiveTree
from pulumi_sandbox.protocol import urns

from components.account_pool.status import Account, PoolStatus, Standing
from operations.cli.answer import Part, write_parts
from operations.pool.status import Seen, counted, listed
from operations.sandbox import results
from operations.sandbox.report import Claimed, Report, Skipped
from operations.sandbox.summary import as_parts, skipped_table

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
    (".venv/bin/credfleet pool claim --stack dev -t aws --tenant umbrella", "claim one by hand"),
    (".venv/bin/credfleet pool status", "who has which account, and what is free"),
    (".venv/bin/credfleet sandbox preview", "what the next update would change"),
    ('eval "$(.venv/bin/credfleet sandbox env)"', "for kubectl and the Pulumi CLI"),
    (".venv/bin/credfleet sandbox destroy", "delete what was declared"),
    ("make down", "stop what runs; data and state are kept"),
)


def dev_stack() -> list[Resource]:
    resources: list[Resource] = []
    with (FRAMES / "dev_stack.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            above = resources[int(row["parent"])].urn if row["parent"] else ""
            urn = urns.make("dev", "credfleet", above, row["type"], row["name"])
            resources.append(Resource(urn, row["type"], custom=True, parent=above))
    return resources


def deployed(operation: Operation, ops: dict[str, Op], *, usual: Op) -> list[Event]:
    """Return the events of a deployment; ops: of the resources named, usual: of all others."""
    steps: list[tuple[Op, Named]] = [(ops.get(each.name, usual), each) for each in map(Named, dev_stack())]
    told: list[Event] = [StackStarted("dev", "credfleet", operation), PolicyPackLoaded("credfleet", "0.1.0")]
    for op, each in steps:
        old = {"create": None, "same": each.new}.get(op, each.old)
        step = Step.of(op, old, None if op == "delete" else each.new)
        told.append(StepPlanned(step) if operation == "preview" and op != "same" else StepFinished(step, 0.3))
    counts = {op: sum(each == op for each, _ in steps) for op, _ in steps}
    return [*told, Summary(operation, counts, 7.7)]


class Named:
    """A resource before and after: its credential is rotated."""

    def __init__(self, resource: Resource) -> None:
        self.name = urns.parse(resource.urn).name
        self.old, self.new = (
            Resource(
                resource.urn,
                resource.type,
                custom=True,
                parent=resource.parent,
                inputs={"note": value},
            )
            for value in ("key of May", "key of June")
        )


def report(operation: Op) -> Report:
    resources = dev_stack()
    steps = [StepFinished(Step.of(operation, each, each), 0.1) for each in resources]
    declared = results.declared(resources, steps)
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
            Standing.CLAIMED,
            tenant,
            slot,
            (f"{holder}/{tenant}/{slot}",),
            since,
        )
        for name, type_, tenant, slot in ACCOUNTS
    )
    accounts = (*used, Account("aws-2", "aws", "!eu-access", Standing.FREE))
    keys = sorted({(each.type, each.partition) for each in accounts})
    return PoolStatus(
        accounts,
        {
            key: {s: sum((a.type, a.partition, a.standing) == (*key, s) for a in accounts) for s in Standing}
            for key in keys
        },
    )


def shown(
    width: int,
    events: Iterable[Event],
    parts: Iterable[Part],
    capture: pytest.CaptureFixture[str],
    *,
    ahead: bool,
) -> str:
    """Return what stays on a screen that is so wide."""
    stream = io.StringIO()
    tree = LiveTree(stream, ahead=ahead)
    for event in events:
        tree.handle(event)
    tree.close()
    write_parts(parts, width)
    return stream.getvalue() + re.sub(r"\x1b\[[0-9;]*m", "", capture.readouterr().out)


FORETOLD = [Diagnostic("info", text) for text in FORECAST]


def frame(name: str) -> tuple[list[Event], Iterable[Part]]:
    """Return what happens in a frame: the events of the display, and what is answered."""
    page = Path.cwd() / ".sandbox" / "report.html"
    match name:
        case "first-up":
            ahead = deployed("preview", {}, usual="create")
            return [*ahead[:2], *FORETOLD, *ahead[2:], *deployed("update", {}, usual="create")], as_parts(
                report("create"), page
            )
        case "second-up":
            return deployed("preview", {}, usual="same"), as_parts(report("same"), page)
        case "rotation" | "preview":
            ops: dict[str, Op] = {
                "account-pool-aws-1": "update",
                "acme/aws-delivery": "update",
                "search/catalogue-env": "delete",
            }
            operation = "preview" if name == "preview" else "update"
            return deployed(operation, ops, usual="same"), skipped_table(SKIPPED)
        case _:
            seen = [Seen("account-pool", status())]
            return [], [counted(seen), listed(seen, datetime(2026, 11, 22, tzinfo=UTC))]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["first-up", "second-up", "preview", "rotation", "pool-status"])
def test_what_a_person_sees_is_what_was_approved(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "40")
    text = shown(width, *frame(name), capsys, ahead=name != "preview")
    assert text == (FRAMES / f"{name}-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("frame", sorted(FRAMES.glob("*.txt")), ids=lambda path: path.stem)
def test_an_approved_frame_fits_its_screen(frame: Path) -> None:
    lines = frame.read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= int(frame.stem.rpartition("-")[2])
    if frame.stem.startswith("second-up"):
        assert len(lines) < 40, "the line that make itself prints comes before"
