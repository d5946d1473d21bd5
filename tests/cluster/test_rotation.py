"""`pool rotate` killed at each call of its program, on a real API server with the pool's rules in force."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from components.account_pool.core import changes
from components.account_pool.core.model import Member, Policy
from components.account_pool.core.other_key import OTHER_KEY
from tests.cluster.test_pool_commands import SECONDS, SENTINEL, SETTINGS, Place, made_with
from tests.support.guarded_pool import MERGE, refusal
from tests.support.key_program import write_program

if TYPE_CHECKING:
    from pathlib import Path

    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

ROTATE = ("pool", "rotate", "aws-1", "--stack", "dev", "--yes", "--output", "json")


CLEAN = ("pool", "clean", "--cleaner", "nightly", "--stack", "dev", "--yes", "--output", "json")


@pytest.fixture
def place(control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path) -> Place:
    """A pool with a free account that gets new keys, and a stack with a program for them."""
    settings = replace(SETTINGS, new_keys=("aws",), policy=Policy.RELEASE)
    made = made_with(settings, control_plane, admin, namespace, tmp_path)
    made.add("aws-1")
    write_program(tmp_path, SENTINEL)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    (tmp_path / "members.csv").write_text("name,type,accountId\naws-1,aws,111111111111\n")
    pool = {"namespace": namespace, "membersFrom": "members.csv", "keys": {"aws": ["./keys.py"]}}
    pool |= {"newKeys": ["aws"], "cleaning": {"aws": ["true"]}, "admissionPolicy": True}
    cluster = {"context": "pulumi-sandbox"}
    stack = {"config": {"credfleet:cluster": cluster, "credfleet:accountPool": pool}}
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps(stack))
    return made


def in_use(place: Place) -> str:
    data = place.api("Secret").get(name="aws-1", namespace=place.namespace).data.to_dict()
    (value,) = data.values()
    return b64decode(value).decode()


def alive(place: Place) -> list[str]:
    return (place.folder / "alive").read_text().split()


def kill_at(place: Place, calls: int, *words: str, user: str = "admin") -> bool:
    """Kill a run once its program was called so often; whether it came so far."""
    log = place.folder / "calls"
    calls += len(log.read_text().splitlines()) if log.exists() else 0
    run = place.start(user, *words)
    while run.poll() is None and len(log.read_text().splitlines() if log.exists() else ()) < calls:
        assert in_use(place) in alive(place)
    is_killed = run.poll() is None
    run.kill()
    run.communicate(timeout=SECONDS)
    return is_killed


def test_run_killed_at_any_call_of_its_program_is_ended_by_the_next(place: Place) -> None:
    assert any([kill_at(place, calls, *ROTATE) for calls in (1, 2, 3)])
    while place.run("admin", *ROTATE).code:
        assert in_use(place) in alive(place)
    first, second = alive(place)
    assert (first, second) == (SENTINEL, in_use(place))

    write = {"body": {"data": {"credential": "eA=="}}, "content_type": MERGE}
    told = refusal(lambda: place.api("Secret").patch(name="aws-1", namespace=place.namespace, **write))
    assert told is not None
    assert "account-data" in told

    kill_at(place, 2, *ROTATE, "--complete")
    while place.run("admin", *ROTATE, "--complete").code:
        assert in_use(place) in alive(place)
    assert alive(place) == [in_use(place)] == [second]
    names = {each.metadata.name for each in place.api("Secret").get(namespace=place.namespace).items}
    assert f"aws-1{OTHER_KEY}" not in names


def test_account_whose_cleaning_is_killed_at_any_call_is_free_with_a_new_key_only(place: Place) -> None:
    place.ask("provisioner", "pool", "claim", "--type", "aws", "--tenant", "acme")
    place.ask("provisioner", "pool", "release", "--type", "aws", "--tenant", "acme")
    assert place.standings() == {"aws-1": "dirty"}

    assert kill_at(place, 1, *CLEAN, user="janitor")
    where = {"name": "aws-1", "namespace": place.namespace, "content_type": MERGE}
    member = Member.parse(place.api("Secret").get(name="aws-1", namespace=place.namespace).to_dict())
    told = refusal(lambda: place.api("Secret").patch(**where, body=changes.finish_cleaning(member).body))
    assert told is not None
    assert "account-" in told

    assert any([kill_at(place, calls, *CLEAN, user="janitor") for calls in range(2, 9)])
    ends = (
        place.run("janitor", *CLEAN).code for _ in range(10)
    )  # a killed run's command may not be gone yet
    assert 0 in ends
    assert place.standings() == {"aws-1": "free"}
    assert alive(place) == [in_use(place)] != [SENTINEL]
    names = {each.metadata.name for each in place.api("Secret").get(namespace=place.namespace).items}
    assert f"aws-1{OTHER_KEY}" not in names
