"""`pool rotate` killed at each call of its program, on a real API server with the pool's rules in force."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest

from components.account_pool.core.rotation import OTHER_KEY
from tests.cluster.test_pool_commands import SECONDS, SENTINEL, SETTINGS, Place, made_with
from tests.support.guarded_pool import MERGE, refusal
from tests.support.key_program import write_program

if TYPE_CHECKING:
    from pathlib import Path

    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

ROTATE = ("pool", "rotate", "aws-1", "--stack", "dev", "--yes", "--output", "json")


@pytest.fixture
def place(control_plane: ControlPlane, admin: DynamicClient, namespace: str, tmp_path: Path) -> Place:
    """A pool with a free account, and a stack with a program for its keys."""
    made = made_with(SETTINGS, control_plane, admin, namespace, tmp_path)
    made.add("aws-1")
    write_program(tmp_path, SENTINEL)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    (tmp_path / "members.csv").write_text("name,type,accountId\naws-1,aws,1\n")
    pool = {"namespace": namespace, "membersFrom": "members.csv", "keys": {"aws": ["./keys.py"]}}
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


def kill_at(place: Place, calls: int, *words: str) -> bool:
    """Kill a run once its program was called so often; whether it came so far."""
    log = place.folder / "calls"
    log.write_text("")
    run = place.start("admin", *ROTATE, *words)
    while run.poll() is None and len(log.read_text().splitlines()) < calls:
        assert in_use(place) in alive(place)
    is_killed = run.poll() is None
    run.kill()
    run.communicate(timeout=SECONDS)
    return is_killed


def test_run_killed_at_any_call_of_its_program_is_ended_by_the_next(place: Place) -> None:
    assert any([kill_at(place, calls) for calls in (1, 2, 3)])
    while place.run("admin", *ROTATE).code:
        assert in_use(place) in alive(place)
    first, second = alive(place)
    assert (first, second) == (SENTINEL, in_use(place))

    write = {"body": {"data": {"credential": "eA=="}}, "content_type": MERGE}
    told = refusal(lambda: place.api("Secret").patch(name="aws-1", namespace=place.namespace, **write))
    assert told is not None
    assert "account-data" in told

    kill_at(place, 2, "--complete")
    while place.run("admin", *ROTATE, "--complete").code:
        assert in_use(place) in alive(place)
    assert alive(place) == [in_use(place)] == [second]
    names = {each.metadata.name for each in place.api("Secret").get(namespace=place.namespace).items}
    assert f"aws-1{OTHER_KEY}" not in names
