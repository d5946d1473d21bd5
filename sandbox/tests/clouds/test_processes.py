"""The stand-ins as processes: found again, never in another's way, gone when they are told to go."""

import os
import shutil
import socket
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services import processes
from pulumi_sandbox.services.cloud.registry import RESOURCE_MANAGER, CloudService
from pulumi_sandbox.services.clouds import Clouds
from pulumi_sandbox.services.ports import LOOPBACK, PortTakenError, free_ports
from pulumi_sandbox.services.progress import Step

PROJECTS = CloudService("projects-own", RESOURCE_MANAGER.module, ("own:address",), usual=1)
SERVICES = (RESOURCE_MANAGER, PROJECTS)


@pytest.fixture
def clouds(tmp_path: Path) -> Generator[Clouds]:
    found = Clouds(tmp_path / "clouds", SERVICES, die_with_parent=True)
    yield found
    found.stop()


@pytest.fixture
def ports() -> dict[CloudService, int]:
    return dict(zip(SERVICES, free_ports(2), strict=True))


def pids(clouds: Clouds) -> list[int | None]:
    return [each.pid for each in clouds.started()]


def test_all_serve_once_start_returns_and_another_start_starts_only_what_was_killed(
    clouds: Clouds, ports: dict[CloudService, int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "sentinel")
    clouds.start(ports)
    first, second = clouds.started()
    for each in (first, second):
        answer = requests.get(
            f"{each.address}/sandbox/service", verify=str(clouds.certificate.authority), timeout=10
        )
        assert answer.json() == {"service": each.service.name}
        assert b"sentinel" not in Path(f"/proc/{each.pid}/environ").read_bytes()
    clouds.start(ports)
    assert clouds.started() == [first, second]
    assert first.pid is not None
    processes.end([first.pid], lambda _: True, patience=0)
    clouds.start(ports)
    again, same = clouds.started()
    assert again.pid not in (None, first.pid)
    assert same == second


def test_those_that_run_are_ended_though_their_folder_was_removed_and_what_they_kept_stays_otherwise(
    clouds: Clouds, ports: dict[CloudService, int]
):
    port = {PROJECTS: ports[PROJECTS]}
    url = f"http://{LOOPBACK}:{port[PROJECTS]}/subscriptions/{uuid4()}/resourceGroups/rg"
    asked: Any = {"params": {"api-version": "2024-03-01"}, "headers": {"Authorization": "Bearer x"}}
    clouds.start(port)
    made = requests.put(url, json={"location": "westeurope"}, timeout=10, **asked).json()
    assert clouds.stop()
    assert pids(clouds) == [None]
    assert not clouds.stop()
    clouds.start(port)
    assert requests.get(url, timeout=10, **asked).json() == made
    (running,) = pids(clouds)
    shutil.rmtree(clouds.folder)
    assert clouds.stop()
    assert not processes.command_line(running or 0)
    assert not clouds.stop()


def test_another_port_moves_it_there(clouds: Clouds):
    former, new = free_ports(2)
    clouds.start({PROJECTS: former})
    clouds.start({PROJECTS: new})
    (moved,) = clouds.started()
    assert moved.port == new
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://{LOOPBACK}:{former}/sandbox/service", timeout=10)


def test_a_port_left_open_is_the_usual_one_where_it_is_free_and_the_same_ever_after(tmp_path: Path):
    service = replace(PROJECTS, usual=free_ports(1)[0])
    here, there = (Clouds(tmp_path / name, [service], die_with_parent=True) for name in ("here", "there"))
    try:
        assert here.start({service: 0}) == {service: service.usual}
        (chosen,) = there.start({service: 0}).values()
        assert chosen != service.usual
        (first,) = here.started()
        here.stop()
        assert there.start({service: 0}) == {service: chosen}
        there.stop()
        assert there.start({service: 0}) == {service: chosen}
        with socket.create_server((LOOPBACK, service.usual)):
            (moved,) = here.start({service: 0}).values()
        assert moved not in (first.port, chosen)
        with pytest.raises(PortTakenError, match="write port 0 in own:address"):
            here.start({service: chosen})
    finally:
        here.stop()
        there.stop()


def test_a_taken_port_is_told_with_its_owner_and_nothing_is_left_running(
    clouds: Clouds, ports: dict[CloudService, int]
):
    with (
        socket.create_server((LOOPBACK, ports[PROJECTS])),
        pytest.raises(PortTakenError) as told,
    ):
        clouds.start(ports)
    assert f"(pid {os.getpid()}) listens on it" in told.value.problem
    assert str(ports[PROJECTS]) in told.value.place
    assert PROJECTS.name in told.value.problem
    assert clouds.started() == []


def test_one_that_cannot_read_what_it_kept_says_which_file(clouds: Clouds, ports: dict[CloudService, int]):
    file = clouds.folder / PROJECTS.name / "data" / "resources.json"
    file.parent.mkdir(parents=True)
    file.write_text("nonsense")
    with pytest.raises(SandboxError) as told:
        clouds.start({PROJECTS: ports[PROJECTS]})
    assert told.value.code == "cloud-died"
    assert str(file) in told.value.problem


def test_an_interrupted_start_leaves_nothing_running(clouds: Clouds, ports: dict[CloudService, int]):
    def interrupt(_: Step) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clouds.start(ports, progress=interrupt)
    assert set(pids(clouds)) == {None}


def test_two_that_start_at_once_share_what_they_start(clouds: Clouds, ports: dict[CloudService, int]):
    untied = Clouds(clouds.folder, SERVICES)  # from a thread that ends
    with ThreadPoolExecutor(2) as pool:
        for started in [pool.submit(untied.start, ports) for _ in range(2)]:
            started.result()
    marks = [f"--folder={clouds.folder / service.name / 'data'}" for service in SERVICES]
    found = [processes.find(service.name, mark) for service, mark in zip(SERVICES, marks, strict=True)]
    assert [len(each) for each in found] == [1, 1]


@pytest.mark.parametrize("damage", ["{}", "[" * 5_000, '{"port": 1e999}', '{"port": 99999}'])
def test_a_record_that_is_none_is_named(clouds: Clouds, damage: str):
    record = clouds.folder / PROJECTS.name / "service.json"
    record.parent.mkdir(parents=True)
    record.write_text(damage)
    with pytest.raises(SandboxError) as told:
        clouds.started()
    assert (told.value.code, told.value.place) == ("state-unreadable", str(record))
