"""What the page of an update says, and that no text of a stack becomes markup or code on it."""

import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from components.account_pool.core.status import AccountUse
from components.errors import how_many
from operations.sandbox.report import Claimed, Declared, Report, Share, Skipped, Violation, render, write
from tests.support.cases import tabled

SECRET = "kubernetes:core/v1:Secret"
REPORT = Report(
    project="credfleet",
    stack="dev",
    ok=True,
    headline="Nothing changed: 2 resources declared, 2 accounts claimed",
    finished=datetime(2026, 11, 21, 10, 0, tzinfo=UTC),
    seconds=3.14,
    server="https://127.0.0.1:6443",
    namespaces={"initech": "tenant-initech", "acme": "tenant-acme"},
    declared=(
        Declared("urn:a", "credfleet:index:Fleet", "fleet", "", "unchanged", 0, "Fleet"),
        Declared("urn:b", SECRET, "pool-aws-1", "account-pool/aws-1", "updated", 2, "AccountPool"),
        Declared("urn:c", SECRET, "pool-aws-2", "account-pool/aws-2", "unchanged", 2, "AccountPool"),
        Declared("urn:d", SECRET, "acme-copy", "tenant-acme/aws-key", "unchanged", 2, "Fleet", "tenant-acme"),
    ),
    claimed=(
        Claimed("initech", "aws", "aws", "aws-2", "account-pool", "Bound", reused=False, is_new=True),
        Claimed(
            "acme",
            "aws",
            "aws",
            "aws-1",
            "account-pool",
            "Bound",
            reused=True,
            is_new=False,
            since="2026-11-20",
        ),
    ),
    skipped=(
        Skipped("pullSecrets.clusters.north", "adapter dns is not ready"),
        Skipped("claim acme/gcp", "no account is free"),
    ),
    shares=(Share("aws", "eu-access=true", (("free", 3), ("claimed", 1), ("dirty", 0))),),
    violations=(Violation("secret-owner", "advisory", "no owner", "pool-aws-9"),),
    outputs=(("accounts", "{}"),),
    services=(("etcd", "pid 1"),),
    next=(("credfleet pool status", "who has which account"),),
)


def fleet_of(tenants: int) -> Report:
    """Return the report of a fleet in which every third tenant has no account."""
    names = [f"tenant-{number:03}" for number in range(tenants)]
    without = names[::3]
    none_free = "pool account-pool: no free aws account is left for it → add accounts, and run again"
    return replace(
        REPORT,
        headline=f"{tenants - len(without)} created: {len(without)} skipped",
        namespaces={name: f"ns-{name}" for name in names},
        claimed=tuple(
            Claimed(name, "aws", "aws", f"aws-{name}", "account-pool", "Bound", reused=False, is_new=False)
            for name in names
            if name not in without
        ),
        skipped=(
            *(Skipped(f"claim {name}/aws", none_free) for name in without),
            *(Skipped(f"service ns-{name}/orders", f"waits for claim {name}/aws") for name in without),
            Skipped("pull secret cls-2", "adapter dns is not ready"),
        ),
    )


class Parts(HTMLParser):
    """Collects whatever a page would load or run, and what stands in each of its details."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts = ""
        self.tenants: dict[str, str] = {}
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"link", "img", "iframe", "object", "embed"}:
            self.found.append(tag)
        self.found += [
            name
            for name, value in attrs
            if (name in {"src", "href", "srcset"} and not (value or "").startswith("#"))
            or name.startswith("on")
        ]
        if tag in {"script", "details"}:
            self._inside.append(dict(attrs).get("data-name") or tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "details"}:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if "script" in self._inside:
            self.scripts += data
        elif self._inside:
            self.tenants[self._inside[-1]] = self.tenants.get(self._inside[-1], "") + data


def parts(page: str) -> Parts:
    found = Parts()
    found.feed(page)
    return found


def test_the_page_loads_nothing_and_may_run_nothing_but_its_own_search() -> None:
    page = render(REPORT)
    found = parts(page)
    assert found.found == []
    assert "url(" not in page
    assert "@import" not in page
    seal = b64encode(sha256(found.scripts.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{seal}'"


def test_the_page_has_colours_that_any_viewer_knows() -> None:
    assert "var(" not in render(REPORT)


def test_text_of_the_stack_cannot_become_markup() -> None:
    page = render(replace(REPORT, headline="<script>alert(1)</script>", outputs=(('<b a="', "<i>"),)))
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<i>" not in page.replace("<i class", "")


def test_each_tenant_is_told_what_it_has_from_where_since_when_and_what_is_not_there() -> None:
    ahead = Declared("urn:e", SECRET, "acme-new", "", "to create", 0, "Fleet", "tenant-acme")
    tenants = parts(render(replace(REPORT, pending=(ahead,)))).tenants
    assert [name for name in tenants if name != "details"] == ["acme", "initech"]
    for told in ("aws-1", "2026-11-20", "aws-key", "no account is free", "to create", "acme-new"):
        assert told in tenants["acme"], told
        assert told not in tenants["initech"]
    assert "aws-2" in tenants["initech"]
    assert "adapter dns" not in tenants["acme"] + tenants["initech"], "it is not a tenant's own"


@pytest.mark.parametrize("tenants", [2, 200])
def test_the_page_begins_with_who_is_without_what_linked_to_the_tenant(tenants: int) -> None:
    report = fleet_of(tenants)
    page = render(report)
    without = [name for name in report.namespaces if f"claim {name}/aws" in {s.what for s in report.skipped}]
    first, _, rest = page.partition('<section class="tiles"')
    assert (
        f'<span class="badge pending">{how_many(len(without), "tenant")} without an account</span>' in first
    )
    assert "up to date" not in page
    assert re.findall(r'href="#tenant-(.*?)">\1/aws<', first) == without
    assert "no free aws account is left for it" in first
    assert "cls-2" in first
    assert "adapter dns is not ready" in first
    assert re.findall(r'id="tenant-(.*?)"', rest)[: len(without)] == without
    assert rest.count('<span class="badge pending">without aws</span>') == len(without)


@tabled("skipped, badge")
def test_a_badge_is_green_only_where_nothing_is_lacking(skipped: list[str], badge: str) -> None:
    lacking = tuple(Skipped(what, "its reason") for what in skipped)
    page = render(replace(REPORT, skipped=lacking))
    assert re.findall(r'<span class="badge (\w+)">(.*?)</span>', page)[0] == tuple(badge.split(": "))


@tabled("what, tenant")
def test_what_is_skipped_is_shown_at_the_tenant_whose_it_is(what: str, tenant: str) -> None:
    named = {"push": "ns-push", "acme": "tenant-acme", "tenant-acme": "ns-other"}
    report = replace(REPORT, namespaces=named, skipped=(Skipped(what, "its reason"),))
    assert [each.name for each in report.tenants() if each.skipped] == [tenant][: bool(tenant)]


def test_the_page_tells_what_was_declared_claimed_skipped_and_remarked() -> None:
    page = render(REPORT)
    for told in ("pool-aws-1", "aws-2", "adapter dns is not ready", "secret-owner", "3 free", "1 claimed"):
        assert told in page
    assert "0 dirty" not in page


def test_resources_are_told_part_by_part_with_what_was_done_to_each_part() -> None:
    assert re.findall(r"<summary>(\w+) <span class=\"soft\">(.*?)</span>", render(REPORT)) == [
        ("AccountPool", "1 unchanged, 1 updated"),
        ("Fleet", "2 unchanged"),
    ]


def test_a_value_of_several_lines_is_folded_and_another_is_not() -> None:
    page = render(replace(REPORT, outputs=(("many", "{\n  7\n}"), ("one", "8"))))
    assert "<summary>3 lines</summary>" in page
    assert page.count('<details class="value">') == 1


def test_an_empty_stack_has_a_page_without_empty_sections() -> None:
    empty = replace(
        REPORT,
        namespaces={},
        declared=(),
        claimed=(),
        skipped=(),
        shares=(),
        violations=(),
        outputs=(),
        services=(),
        next=(),
    )
    assert re.findall(r"<h2>(\w+)", render(empty)) == ["Declared"]


def test_writing_again_replaces_the_page_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write(REPORT, tmp_path / "new" / "report.html")
    path = write(replace(REPORT, headline="Second run"), tmp_path / "new" / "report.html")
    assert "Second run" in path.read_text()
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]


def test_every_standing_of_an_account_has_its_colour() -> None:
    page = render(REPORT)
    assert [each for each in AccountUse if f".c-{each}" not in page] == []
