"""Every command that the product prints as advice is run: in the situation that prints it, as it is printed.

Here are those about a pool, in memory; `--yes` is what a person at a terminal says. What the API server's own
refusals advise is in tests/cluster/test_fixes.py. Whatever is advised and stands in no table fails.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from components.account_pool.core.calls import Found, Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.declared import Declaration, DeclaredMember, refusals
from components.account_pool.core.keys import (
    CLAIM_TOKEN,
    CLEANING_TOKEN,
    CREATED_AGAIN,
    POOL_RECORD,
    POOL_STATE,
    SHARED_CAPACITY,
    SHARED_CLAIMS,
)
from components.account_pool.core.pool import Pool
from components.account_pool.core.status import status_of
from components.connection import ClusterTarget, Reply
from components.labels import BRING_YOUR_OWN, SHARED, TENANT_NAME
from operations.pool.health import accounts, claims, settings_of_pool
from tests.cluster.test_fixes import ADVISED as BY_THE_API_SERVER
from tests.support.advice import ROOT, advised
from tests.support.cases import table
from tests.support.memory_cluster import NAMESPACE, answer, credfleet, memory_cluster
from tests.support.memory_pool import MemoryServer

DECLARED: Final = DeclaredMember("aws", "1")
TENANT: Final = "Acme & Söhne"
"""Not to be typed without quotes."""


@dataclass(frozen=True)
class World:
    """A pool of two free accounts in memory, and what the product says of it."""

    server: MemoryServer

    def claim(self, *more: str) -> str:
        return str(answer("claim", "--type", "aws", "--tenant", TENANT, *more)["secretName"])

    def release(self) -> None:
        answer("release", "--type", "aws", "--tenant", TENANT)

    def doctor(self) -> str:
        """Return what doctor advises of accounts and claims."""
        snapshot = Pool.snapshot(ClusterTarget(), NAMESPACE)
        settings = Pool.open(ClusterTarget(), NAMESPACE).settings
        found = [*accounts(status_of(snapshot, settings), NAMESPACE, datetime.now(UTC))]
        found += claims(snapshot, Pool.survey(ClusterTarget(), NAMESPACE, PoolConfigMap()), NAMESPACE)
        return "\n".join(each.fix for each in found)

    def refused(self, *arguments: str) -> str:
        result = credfleet("pool", *arguments, "-n", NAMESPACE)
        assert result.exit_code != 0
        return result.output

    def previewed(self, was: DeclaredMember = DECLARED, becomes: DeclaredMember | None = None) -> str:
        """Return why a preview does not remove account m0, or make of it what it becomes."""
        then = {} if becomes is None else {"m0": becomes}
        before, after = (Declaration(NAMESPACE, members) for members in ({"m0": was}, then))
        snapshot = Pool.snapshot(ClusterTarget(), NAMESPACE)
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
        return not Pool.survey(ClusterTarget(), NAMESPACE, PoolConfigMap()).findings


Printed = Callable[[World], str]
Fixed = Callable[[World], bool]


def dirty(world: World) -> None:
    world.server.by_hand("m0", {POOL_STATE: "dirty"})


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


def restored_claim_asked_for(world: World) -> str:
    world.claim()
    world.restore()
    return world.refused("claim", "--type", "aws", "--tenant", TENANT, "--holder", "ci")


def restored_pool(world: World) -> str:
    found = world.server.get(Kind.RECORD, CONFIG_MAP)
    assert isinstance(found, Found)
    data = {**found.body["data"], "poolUid": "before"}
    world.server.replace(Kind.RECORD, {**found.body, "data": data})
    return world.refused("status")


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


def left_by_a_cleaner(world: World) -> str:
    world.server.by_hand("m0", {POOL_STATE: "cleaning"}, {CLEANING_TOKEN: "gone/1"})
    return world.doctor()


def quarantined(world: World) -> str:
    answer("quarantine", "m0", "--reason", "odd bills")
    return world.doctor()


def given_up(world: World) -> str:
    answer("decommission", "m0", "--yes")
    return world.doctor()


def given_up_and_let_back(world: World) -> str:
    answer("decommission", "m0", "--yes")
    return world.refused("unquarantine", "m0", "--yes")


def given_up_and_marked(world: World) -> str:
    answer("decommission", "m0", "--yes")
    return world.refused("mark-dirty", "m0", "--reason", "x")


def retained(world: World) -> str:
    world.server.by_hand("m0", {TENANT_NAME: "acme"}, {"credfleet.io/claim-origin": "retained"})
    return world.doctor()


def owned(world: World) -> str:
    world.server.by_hand("m0", {TENANT_NAME: "acme"})
    return world.doctor()


def dirty_to_the_doctor(world: World) -> str:
    dirty(world)
    return world.doctor()


def dirty_to_a_preview(world: World) -> str:
    dirty(world)
    return world.previewed()


def created_again(world: World) -> str:
    world.server.by_hand("m0", {POOL_STATE: "dirty"}, {CREATED_AGAIN: "true"})
    return world.refused("clean", "--command", "aws=true")


def brought_along(world: World) -> str:
    world.server.by_hand("m0", {TENANT_NAME: "acme"}, {BRING_YOUR_OWN: "true"})
    return world.previewed(DeclaredMember("aws", "1", "acme"), DeclaredMember("aws", "1"))


def hold(world: World) -> Found:
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    world.server.create(Kind.RECORD, {"metadata": metadata, "data": PoolConfigMap().render()})
    answer("hold", "--type", "aws", "--reason", "accounts are moved")
    found = world.server.get(Kind.RECORD, CONFIG_MAP)
    assert isinstance(found, Found)
    return found


def held(world: World) -> str:
    return settings_of_pool(Reply(200, hold(world).body), NAMESPACE)[1].fix


def held_and_asked_for(world: World) -> str:
    hold(world)
    return world.refused("claim", "--type", "aws", "--tenant", TENANT)


def held_and_looked_at(world: World) -> str:
    hold(world)
    return credfleet("pool", "status", "-n", NAMESPACE).output


def is_untouched(world: World) -> bool:
    return world.state() is None


def has_no_claim(world: World) -> bool:
    return not any(member.tokens for member in world.server.members) and not list(world.server.records)


CASES: Final[Mapping[str, tuple[str, Printed, Fixed]]] = {
    "a dead claim": ("credfleet pool sweep -n {}", dead_claim, has_no_claim),
    "a release nobody ended": ("credfleet pool sweep -n {}", half_released, has_no_claim),
    "a record nobody can read": ("credfleet pool sweep -n {}", unreadable_record, has_no_claim),
    "a record under another name": ("credfleet pool sweep -n {}", second_record_of_a_slot, World.is_well),
    "a token on a second account": ("credfleet pool sweep -n {}", second_account_of_a_slot, World.is_well),
    "a restored claim": ("credfleet pool recover --namespace {}", restored_claim, World.is_well),
    "a restored claim that is asked for": (
        "credfleet pool recover --namespace {}",
        restored_claim_asked_for,
        World.is_well,
    ),
    "a restored pool": (
        "credfleet pool recover --namespace {}",
        restored_pool,
        lambda world: world.claim() in ("m0", "m1"),
    ),
    "an account relabelled by hand": (
        "credfleet pool release -n {} {} --yes",
        lost_account,
        lambda world: world.is_well() and not list(world.server.records),
    ),
    "a place on a shared account taken by hand": (
        "credfleet pool release -n {} {} --yes",
        lost_place,
        lambda world: world.is_well() and not list(world.server.records),
    ),
    "a cleaner that is gone": (
        "credfleet pool clean --take-over {} -n {}",
        left_by_a_cleaner,
        lambda world: world.is_well() and is_untouched(world),
    ),
    "a dirty account": ("credfleet pool clean -n {}", dirty_to_the_doctor, is_untouched),
    "an account that was created again": (
        "credfleet pool mark-dirty {} --reason 'not in use' -n {}",
        created_again,
        lambda world: not world.server.member("m0").is_created_again,
    ),
    "a dirty account that would be removed": (
        "credfleet pool clean -n {}",
        dirty_to_a_preview,
        lambda world: not world.previewed(),
    ),
    "a dirty account that would be removed uncleaned": (
        "credfleet pool decommission {} -n {}",
        dirty_to_a_preview,
        lambda world: not world.previewed(),
    ),
    "an account that its tenant would lose uncleaned": (
        "credfleet pool mark-dirty {} --reason 'taken from its tenant' -n {}",
        brought_along,
        lambda world: not brought_along(world),
    ),
    "a quarantined account": ("credfleet pool unquarantine {}{} -n {}", quarantined, is_untouched),
    "an account given up": (
        "credfleet pool unquarantine {}{} -n {}",
        given_up,
        lambda world: world.state() == "dirty",
    ),
    "an account given up that is let back": (
        "credfleet pool unquarantine {} --decommissioned -n {}",
        given_up_and_let_back,
        lambda world: world.state() == "dirty",
    ),
    "an account given up that is to be cleaned": (
        "credfleet pool unquarantine {} --decommissioned -n {}",
        given_up_and_marked,
        lambda world: world.state() == "dirty",
    ),
    **{
        f"a held pool, {where}": (
            "credfleet pool resume{} -n {}",
            situation,
            lambda world: world.claim() in ("m0", "m1"),
        )
        for where, situation in (
            ("to the doctor", held),
            ("asked for an account", held_and_asked_for),
            ("looked at", held_and_looked_at),
        )
    },
    "a retained account": (
        "credfleet pool return {} -n {}",
        retained,
        lambda world: (world.state(), world.server.member("m0").origin) == ("dirty", "pool"),
    ),
    "an owner without a claim": ("credfleet pool adopt -n {}", owned, lambda _world: True),
    "an account nobody knows": (
        "credfleet pool status -n {}",
        lambda world: world.refused("quarantine", "m7", "--reason", "x"),
        lambda _world: True,
    ),
    "an account that is not quarantined": (
        "credfleet pool status -n {}",
        lambda world: world.refused("unquarantine", "m0", "--yes"),
        lambda _world: True,
    ),
    "an account that nobody could leave": (
        "credfleet pool quarantine {} --reason leaving -n {}",
        lambda world: world.refused("evacuate", "m0", "--reason", "x", "--yes"),
        lambda world: world.state() == "quarantined",
    ),
    "an account nobody owns": (
        "credfleet pool status -n {}",
        lambda world: world.refused("return", "m0", "--yes"),
        lambda _world: True,
    ),
}
"""Situation → the advice as the source has it, what leads to it and prints it, and what is so afterwards."""

ELSEWHERE: Final[Mapping[str, str]] = table(__file__, "ELSEWHERE")
"""Advice → the test of another subject that runs the command."""

OF_OTHER_PROGRAMS: Final = frozenset({"kubectl", "pulumi"})
"""Neither is here; the words of Kubernetes and Pulumi are theirs to keep."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, project: Path) -> Generator[World]:
    (project / "members.csv").write_text("name,type,accountId\nm0,aws,111111111111\n")
    (project / "Pulumi.dev.yaml").write_text(
        "config:\n"
        "  credfleet:cluster: {context: here}\n"
        "  credfleet:accountPool: {membersFrom: members.csv, cleaning: {aws: ['true']}}\n"
    )
    with memory_cluster(monkeypatch) as server:
        for name in ("m0", "m1"):
            server.add_member(name)
        yield World(server)


def commands(printed: str, advice: str) -> Iterator[list[str]]:
    """Read the commands of one kind out of what was printed."""
    pattern = re.compile(re.escape(advice).replace(r"\{\}", ".*"))
    for quoted in re.findall(r"`([^`]+)`", " ".join(printed.split())):
        if pattern.fullmatch(quoted):
            yield shlex.split(quoted)[1:]


@pytest.mark.parametrize(("advice", "situation", "is_fixed"), CASES.values(), ids=CASES.keys())
def test_a_command_that_is_advised_runs_as_it_is_printed_and_fixes(
    world: World, advice: str, situation: Printed, is_fixed: Fixed
) -> None:
    advices = list(commands(situation(world), advice))
    assert advices
    for typed in advices:
        result = credfleet(*typed)
        if "--yes" in result.output and result.exit_code == 1:
            result = credfleet(*typed, "--yes")
        assert result.exit_code == 0, result.output
    assert is_fixed(world)


def test_every_command_that_is_advised_is_run_by_a_test() -> None:
    run_here = {advice for advice, _, _ in CASES.values()}
    known = run_here | set(ELSEWHERE) | set(BY_THE_API_SERVER)
    found = {advice: by for advice, by in advised().items() if advice.split()[0] not in OF_OTHER_PROGRAMS}
    assert {advice: by for advice, by in found.items() if advice not in known} == {}, "no test runs it"
    assert known - set(found) == set(), "nobody advises it any more"
    cases = Counter(advice for advice, _, _ in CASES.values())
    by_us = {
        advice: [place for place in by if not place.startswith("components/account_pool/admission/")]
        for advice, by in found.items()
    }
    assert {advice: by for advice, by in by_us.items() if 0 < cases[advice] < len(by)} == {}, "in each place"


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_the_tests_that_run_advice_elsewhere_are_there(place: str) -> None:
    file, _, name = place.partition("::")
    assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8")
