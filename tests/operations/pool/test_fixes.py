"""Every command that the product prints as advice is run: in the situation that prints it, as it is printed.

Here are those about a pool, in memory; `--yes` is what a person at a terminal says. What the API server's own
refusals advise is in tests/cluster/test_fixes.py. Whatever is advised and stands in no table fails.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from components.account_pool.core.calls import Found, Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.declared import Declaration, DeclaredMember, refusals
from components.account_pool.core.keys import (
    CLAIM_TOKEN,
    POOL_RECORD,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
)
from components.account_pool.core.pool_operator import PoolOperator
from components.connection import ClusterTarget
from components.labels import BRING_YOUR_OWN, SHARED, TENANT_NAME
from operations.pool.health import accounts, claims, held
from tests.cluster.test_fixes import ADVISED as BY_THE_API_SERVER
from tests.support.advice import ROOT, advised
from tests.support.cases import cases, table
from tests.support.memory_cluster import NAMESPACE, answer, credfleet
from tests.support.memory_pool import MemoryServer
from tests.support.pool import fill

DECLARED: Final = DeclaredMember("aws", "1")
TENANT: Final = "Acme & Söhne"
"""Not to be typed without quotes."""


@dataclass(frozen=True)
class World:
    """A pool of two free accounts in memory, and what the product says of it."""

    server: MemoryServer

    def claim(self, *more: str) -> str:
        return str(answer("claim", "--type", "aws", "--tenant", TENANT, *more)["secretName"])

    def doctor(self) -> str:
        """Return what doctor advises of accounts and claims."""
        snapshot = PoolOperator.snapshot(ClusterTarget(), NAMESPACE)
        settings = PoolOperator.open(ClusterTarget(), NAMESPACE).settings
        found = [*accounts(snapshot, settings, NAMESPACE, datetime.now(UTC))]
        found += claims(snapshot, PoolOperator.survey(ClusterTarget(), NAMESPACE, PoolConfigMap()), NAMESPACE)
        return "\n".join(each.fix for each in found)

    def told(self, *arguments: str) -> str:
        return credfleet("pool", *arguments, "-n", NAMESPACE).output

    def previewed(self, was: DeclaredMember = DECLARED, becomes: DeclaredMember | None = None) -> str:
        """Return why a preview does not remove account m0, or make of it what it becomes."""
        then = {} if becomes is None else {"m0": becomes}
        before, after = (Declaration(NAMESPACE, members) for members in ({"m0": was}, then))
        snapshot = PoolOperator.snapshot(ClusterTarget(), NAMESPACE)
        return "\n".join(map(str, refusals(before, after, snapshot)))

    def restore(self) -> None:
        """Bring the record of the one claim back as a backup has it."""
        (record,) = self.server.records
        found = self.server.get(Kind.RECORD, record.name)
        assert isinstance(found, Found)
        self.server.remove(Kind.RECORD, record.name)
        self.server.create(Kind.RECORD, found.body)

    def state(self, name: str = "m0") -> str | None:
        return self.server.member(name).state

    def is_well(self) -> bool:
        return not PoolOperator.survey(ClusterTarget(), NAMESPACE, PoolConfigMap()).findings


def dead_claim(world: World) -> str:
    world.claim()
    (record,) = world.server.records
    world.server.remove(Kind.RECORD, record.name)
    return world.doctor()


def half_released(world: World) -> str:
    world.claim()
    (record,) = world.server.records
    found = world.server.get(Kind.RECORD, record.name)
    assert isinstance(found, Found)
    data = {**found.body["data"], "phase": "Releasing", "holders": "{}"}
    world.server.replace(Kind.RECORD, {**found.body, "data": data})
    return world.doctor()


def unreadable_record(world: World) -> str:
    world.claim()
    (record,) = world.server.records
    junk = {"metadata": {"name": record.name, "namespace": NAMESPACE, "labels": {POOL_RECORD: "true"}}}
    world.server.remove(Kind.RECORD, record.name)
    world.server.create(Kind.RECORD, {**junk, "data": {}})
    printed = world.doctor()
    world.server.remove(Kind.RECORD, record.name)
    return printed


def second_record_of_a_slot(world: World) -> str:
    world.claim()
    (record,) = world.server.records
    body = replace(record, name=f"claim-{'0' * 40}", uid="", member="m1").render(NAMESPACE)
    world.server.create(Kind.RECORD, body)
    printed = world.doctor()
    (typed,) = re.findall(r"`(kubectl patch configmap [^`]*)`", printed)
    *_, name, _, _, _, _, _, patch = shlex.split(typed)
    found = world.server.get(Kind.RECORD, name)
    assert isinstance(found, Found)
    data = {**found.body["data"], **json.loads(patch)["data"]}
    world.server.replace(Kind.RECORD, {**found.body, "data": data})
    return printed


def second_account_of_a_slot(world: World) -> str:
    name = world.claim()
    (record,) = world.server.records
    other = "m1" if name == "m0" else "m0"
    world.server.by_hand(other, {TENANT_NAME: record.tenant_label}, {CLAIM_TOKEN: str(record.token)})
    return world.doctor()


def restored_claim(world: World) -> str:
    world.claim()
    world.restore()
    return world.doctor()


def restored_pool(world: World) -> str:
    found = world.server.get(Kind.RECORD, CONFIG_MAP)
    assert isinstance(found, Found)
    data = {**found.body["data"], "poolUid": "before"}
    world.server.replace(Kind.RECORD, {**found.body, "data": data})
    return world.told("status")


def lost_account(world: World) -> str:
    for holder in ("ci", "o'brien's"):
        name = world.claim("--holder", holder)
    world.server.by_hand(name, {TENANT_NAME: "globex"})
    return world.doctor()


def lost_place(world: World) -> str:
    world.server.add_member("s0", {SHARED: "true"}, {SHARED_CAPACITY: "2"})
    world.claim("--shared", "--slot", "web")
    world.server.by_hand("s0", {}, {SHARED_CLAIMS: "{}"})
    printed = world.doctor()
    assert TENANT_NAME not in printed
    return printed


def brought_along(world: World) -> str:
    world.server.by_hand("m0", {TENANT_NAME: "acme"}, {BRING_YOUR_OWN: "true"})
    return world.previewed(DeclaredMember("aws", "1", "acme"), DeclaredMember("aws", "1"))


def hold(world: World) -> None:
    answer("hold", "--type", "aws", "--reason", "accounts are moved")


def held_and_examined(world: World) -> str:
    hold(world)
    (found,) = held(PoolOperator.snapshot(ClusterTarget(), NAMESPACE).holds, NAMESPACE)
    return found.fix


SITUATIONS: Final[Mapping[str, Callable[[World], object]]] = {
    "a claim without its record": dead_claim,
    "a release half-way": half_released,
    "a record that cannot be read": unreadable_record,
    "a second record of a slot": second_record_of_a_slot,
    "a second account of a slot": second_account_of_a_slot,
    "a claim from a backup": restored_claim,
    "a pool from a backup": restored_pool,
    "an account relabelled by hand": lost_account,
    "a place taken by hand": lost_place,
    "an account that its tenant brought": brought_along,
    "a hold": hold,
    "a hold, told by the doctor": held_and_examined,
}
FIXED: Final[Mapping[str, Callable[[World], bool]]] = {
    "anything": lambda _world: True,
    "no finding": World.is_well,
    "no claim": lambda world: (
        not [each for each in world.server.members if each.tokens] + [*world.server.records]
    ),
    "no finding and no claim": lambda world: world.is_well() and not list(world.server.records),
    "no finding and no state": lambda world: world.is_well() and world.state() is None,
    "dirty and of the pool": lambda world: (
        (world.state(), world.server.member("m0").origin) == ("dirty", "pool")
    ),
    "claimed": lambda world: world.claim() in ("m0", "m1"),
    "in use as before": lambda world: not world.server.member("m0").is_created_again,
    "removed in a preview": lambda world: not world.previewed(),
    "taken in a preview": lambda world: not brought_along(world),
}
CASES: Final[Mapping[str, Mapping[str, Any]]] = table(__file__, "CASES")
"""Situation → the advice as the source has it, what leads to it and prints it, and what is so afterwards."""

ELSEWHERE: Final[Mapping[str, str]] = table(__file__, "ELSEWHERE")
"""Advice → the test of another subject that runs the command."""

OF_OTHER_PROGRAMS: Final = frozenset({"kubectl", "pulumi"})
"""Neither is here; the words of Kubernetes and Pulumi are theirs to keep."""


@pytest.fixture
def world(server: MemoryServer, project: Path) -> World:
    (project / "members.csv").write_text("name,type,accountId\nm0,aws,111111111111\n")
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n"
        "  credfleet:cluster: {context: here}\n"
        "  credfleet:accountPool:\n"
        f"    {{namespace: {NAMESPACE}, membersFrom: members.csv, cleaning: {{aws: ['true']}}}}\n"
    )
    return World(fill(server, "m0", "m1"))


def commands(printed: str, advice: str) -> Iterator[list[str]]:
    """Read the commands of one kind out of what was printed."""
    pattern = re.compile(re.escape(advice).replace(r"\{\}", ".*"))
    for quoted in re.findall(r"`([^`]+)`", " ".join(printed.split())):
        if pattern.fullmatch(quoted):
            yield shlex.split(quoted)[1:]


def printed(world: World, case: Mapping[str, Any]) -> str:
    """Bring a situation about, and return what is printed in it: by itself, by doctor, preview or command."""
    world.server.by_hand("m0", case.get("labels", {}), case.get("notes", {}))
    if "begun" in case:
        answer(*shlex.split(case["begun"]))
    said = SITUATIONS[case["is"]](world) if "is" in case else None
    match case.get("told"):
        case None:
            return str(said)
        case "doctor":
            return world.doctor()
        case "preview":
            return world.previewed()
        case words:
            return world.told(*shlex.split(words))


@cases("case", CASES)
def test_command_that_is_advised_runs_as_it_is_printed_and_fixes(
    world: World, case: Mapping[str, Any]
) -> None:
    advices = list(commands(printed(world, case), case["advice"]))
    assert advices
    for typed in advices:
        result = credfleet(*typed)
        if "--yes" in result.output and result.exit_code == 1:
            result = credfleet(*typed, "--yes")
        assert result.exit_code == 0, result.output
    fixed = case["then"]
    assert FIXED[fixed](world) if fixed in FIXED else world.state() == fixed


def test_every_command_that_is_advised_is_run_by_a_test() -> None:
    run_here = {case["advice"] for case in CASES.values()}
    known = run_here | set(ELSEWHERE) | set(BY_THE_API_SERVER)
    found = {advice: by for advice, by in advised().items() if advice.split()[0] not in OF_OTHER_PROGRAMS}
    assert {advice: by for advice, by in found.items() if advice not in known} == {}, "no test runs it"
    assert known - set(found) == set(), "nobody advises it any more"
    times = Counter([*(case["advice"] for case in CASES.values()), *ELSEWHERE])
    by_us = {
        advice: [place for place in by if not place.startswith("components/account_pool/admission/")]
        for advice, by in found.items()
    }
    assert {
        advice: by for advice, by in by_us.items() if advice in run_here and times[advice] < len(by)
    } == {}


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_the_tests_that_run_advice_elsewhere_are_there(place: str) -> None:
    file, _, name = place.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")
