"""Runs of `pool clean` that overlap and are killed, with the real command line on a real API server."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from pulumi_sandbox.services.processes import first_ended

from components.account_pool.core.keys import CLEANING_TOKEN, POOL_STATE
from tests.cluster.test_pool_commands import SECONDS, SETTINGS, Place, made_with, write_cleaner
from tests.support.guarded_pool import MERGE

if TYPE_CHECKING:
    import subprocess
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
