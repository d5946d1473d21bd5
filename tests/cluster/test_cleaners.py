"""Runs of `pool clean` that overlap and are killed, with the real command line on a real API server."""

from __future__ import annotations

import json
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from threading import Event
from typing import TYPE_CHECKING

import pytest
from pulumi_sandbox.services.processes import first_ended

from components.account_pool.core.keys import CLEANING_TOKEN, POOL_STATE
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool import Pool
from components.connection import ClusterTarget
from components.errors import Exhausted
from tests.cluster.test_pool_commands import SECONDS, SETTINGS, Place, made_with, write_cleaner
from tests.support.guarded_pool import MERGE
from tests.support.proving import counted, tried

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Generator
    from pathlib import Path

    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

CLEAN = ("pool", "clean", "--cleaner", "nightly", "--yes", "--output", "json")
ENDLESS = """echo $$ >> wiping
setsid sh -c 'echo $$ >> wiping; while :; do sleep 0.1; done' &
until [ -e done ]; do sleep 0.1; done"""


@pytest.fixture
def place(control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path) -> Place:
    return made_with(SETTINGS, control_plane, admin, namespace, tmp_path)


def begin_wiping(place: Place) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a run whose command never ends, and return it with both processes that wipe."""
    place.add("aws-1", **{POOL_STATE: "dirty"})
    run = place.start("janitor", *CLEAN, "--command", write_cleaner(place, ENDLESS))
    wiping = place.folder / "wiping"
    while not wiping.exists() or len(wiping.read_text().split()) < 2:
        assert run.poll() is None
    return run, [int(pid) for pid in wiping.read_text().split()]


def test_a_second_run_leaves_an_account_to_the_one_that_wipes_it_and_says_so(place: Place) -> None:
    run, _ = begin_wiping(place)
    second = place.run("admin", *CLEAN, "--command", "aws=true", "--take-over", "aws-1")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=SECONDS)
    (told,) = second.json["cleaned"]
    assert (second.code, told["outcome"]) == (1, "running")
    assert told["reason"].startswith("still running on ")
    assert place.standings() == {"aws-1": "cleaning"}


def test_an_account_quarantined_and_let_back_during_its_wipe_is_not_wiped_twice_at_once(place: Place) -> None:
    run, _ = begin_wiping(place)
    place.ask("admin", "pool", "quarantine", "aws-1", "--reason", "odd bills")
    assert place.ask("admin", "pool", "unquarantine", "aws-1", "--yes")["state"] == "dirty"
    second = place.run("janitor", *CLEAN, "--command", "aws=true")
    assert (second.code, second.json["cleaned"][0]["outcome"]) == (1, "running")
    (place.folder / "done").touch()
    run.communicate(timeout=SECONDS)
    assert run.returncode == 1
    member = place.api("Secret").get(name="aws-1", namespace=place.namespace)
    assert CLEANING_TOKEN not in (member.metadata.annotations or {})
    assert place.run("janitor", *CLEAN, "--command", "aws=true").code == 0


def test_a_run_that_was_overtaken_fails_and_leaves_an_event(place: Place) -> None:
    run, _ = begin_wiping(place)
    secrets, where = place.api("Secret"), {"name": "aws-1", "namespace": place.namespace}
    token = secrets.get(**where).metadata.annotations[CLEANING_TOKEN]
    elsewhere = {"metadata": {"annotations": {CLEANING_TOKEN: token.replace("boot=", "boot=of-another-")}}}
    secrets.patch(**where, body=elsewhere, content_type=MERGE)
    unseen = place.run("janitor", *CLEAN, "--command", "aws=true")
    assert (unseen.code, unseen.json["cleaned"][0]["outcome"]) == (1, "unseen")
    assert place.run("janitor", *CLEAN, "--command", "aws=true", "--take-over", "aws-1").code == 0
    (place.folder / "done").touch()
    answer, _ = run.communicate(timeout=SECONDS)
    assert (run.returncode, json.loads(answer)["cleaned"][0]["outcome"]) == (1, "overtaken")
    events = place.api("Event").get(namespace=place.namespace).to_dict()["items"]
    assert any(each["type"] == "Warning" and each["message"].startswith("overtaken") for each in events)


@pytest.fixture(autouse=True)
def heeded() -> Generator[None]:
    """SIGHUP, which is ignored below `nohup`, by what the tests start as well."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_an_account_is_free_only_when_nothing_wipes_it_however_its_run_ended(
    place: Place, number: signal.Signals
) -> None:
    run, wiping = begin_wiping(place)
    run.send_signal(number)
    run.communicate(timeout=SECONDS)
    while place.run("janitor", *CLEAN, "--command", "aws=true").code:
        assert place.standings() == {"aws-1": "cleaning"}
    assert all(first_ended([pid], 0) for pid in wiping)
    assert place.standings() == {"aws-1": "free"}
    assert run.returncode == (8 if number is not signal.SIGKILL else -number)


LOGGING = """case $1 in
  deaf) trap '' TERM HUP INT ;;
  away) [ "${AWAY-}" ] || { AWAY=1 setsid "$0" away & wait; exit; } ;;
  left) [ "${AWAY-}" ] || { AWAY=1 setsid "$0" left & sleep 0.3; exit; } ;;
esac
for i in $(seq "$(shuf -n 1 -i 1-40)"); do
  echo "$1 $(date +%s%N)" >> wipes
  sleep 0.05
done"""
"""A wipe of up to two seconds; some hear no signal, leave their session, or outlive their command."""


def claim_until(place: Place, done: Event, tenant: str) -> list[tuple[str, int, int]]:
    """Claim and release in turns, and return which account this tenant had, from when to when."""
    pool = Pool.open(ClusterTarget(kubeconfig=str(place.plane.kubeconfig("provisioner"))), place.namespace)
    had: list[tuple[str, int, int]] = []
    for number in count():
        if done.is_set():
            return had
        with suppress(Exhausted):
            claimed = pool.claim(ClaimRequest(tenant, "aws", f"slot-{number}"))
            began = time.time_ns()
            done.wait(0.5)
            had.append((claimed.secret_name, began, time.time_ns()))
            pool.release(claimed.record, claimed.holder)
        done.wait(0.05)
    raise AssertionError


def kill_one(place: Place, chance: random.Random) -> bool:
    """Start a run, and signal most at a random instant, of start or wipes; whether one was that still ran."""
    number = chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
    command = f"aws={place.folder / 'clean.sh'}"
    run = place.start("janitor", *CLEAN, "--at-once", str(chance.choice([1, 4])), "--command", command)
    if chance.random() < 0.7:
        assert run.stderr is not None
        run.stderr.readline()
    if chance.random() < 0.2:
        run.communicate(timeout=SECONDS)
    time.sleep(chance.uniform(0, 2) if run.poll() is None else 0)
    is_running = run.poll() is None
    run.send_signal(number)
    run.communicate(timeout=SECONDS)
    return is_running


@pytest.mark.life
def test_no_line_of_a_wipe_is_written_after_its_account_was_handed_out(place: Place) -> None:
    write_cleaner(place, LOGGING)
    for name in ("plain", "deaf", "away", "left"):
        place.add(name, **{POOL_STATE: "dirty"})
    kills, done = counted(20, 200), Event()
    tried("runs of `pool clean` that were killed", kills)

    def kill_many(seed: int) -> None:
        chance = random.Random(seed)
        killed = 0
        while killed < kills // 2:
            killed += kill_one(place, chance)

    with ThreadPoolExecutor() as hands:
        claimers = [hands.submit(claim_until, place, done, tenant) for tenant in ("acme", "globex")]
        try:
            list(hands.map(kill_many, range(2)))
        finally:
            done.set()
        had = [each for claimer in claimers for each in claimer.result()]
    wipes = [line.split() for line in (place.folder / "wipes").read_text().splitlines()]
    lines = [(name, int(instant)) for name, instant in wipes]
    assert {name for name, _ in lines} == {"plain", "deaf", "away", "left"}
    assert len(had) >= kills // 20
    late = [
        (name, instant - began)
        for name, began, ended in had
        for wiped, instant in lines
        if wiped == name and began < instant < ended
    ]
    assert not late
