"""The example programs for keys: what they do to a cloud's keys, by hand and by `credfleet pool rotate`."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components.account_pool.core.calls import Found, Kind
from components.labels import ACCOUNT_ID
from tests.support import clouds_of_keys
from tests.support.cases import tabled
from tests.support.clouds_of_keys import PROJECT, Cloud
from tests.support.memory_cluster import NAMESPACE, answer, memory_cluster
from tests.support.stacks import ROOT

EXAMPLES = ROOT / "examples" / "key-programs"
EMULATOR = ROOT / "tests" / "support" / "iam_emulator.py"


@dataclass(frozen=True)
class Example:
    """A program, and the cloud that it meets. credential: of a first key. alive: tells the ids of keys."""

    command: Sequence[str]
    account_id: str
    credential: Mapping[str, str]
    alive: Callable[[], list[str]]

    def ask(self, verb: str, credential: Mapping[str, str], **said: str) -> tuple[int, Any]:
        asked = json.dumps({"account": "a", "type": "t", "credential": credential, **said})
        command = [*self.command, "a", verb]
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
        assert not [secret for secret in credential.values() if len(secret) > 20 and secret in done.stderr]
        return done.returncode, json.loads(done.stdout or "null")


def in_a_file(cloud: Cloud, program: str, account_id: str, credential: Mapping[str, str]) -> Example:
    cloud.keep()
    command = [sys.executable, clouds_of_keys.__file__, str(cloud.file), str(EXAMPLES / program)]
    return Example(command, account_id, credential, lambda: [*Cloud(cloud.file).keys])


def entra(state: Path, _: ExitStack) -> Example:
    cloud = Cloud(state)
    made = cloud.answer("add password", {})[1]
    named = {"tenantID": "tenant", "clientID": "app", "subscriptionID": "s-1"}
    return in_a_file(cloud, "service_principal.py", "s-1", {**named, "clientSecret": made["secretText"]})


def google(state: Path, _: ExitStack, field: str = "") -> Example:
    cloud = Cloud(state)
    cloud.answer("create key", {})
    (text,) = cloud.keys.values()
    return in_a_file(cloud, "service_account.py", PROJECT, {field: text} if field else json.loads(text))


def aws(state: Path, opened: ExitStack) -> Example:
    uv = [Path(sys.executable).with_name("uv"), "run", "-q", "--no-project", "--script", EMULATOR]
    log, pipe = opened.enter_context(state.open("w")), subprocess.PIPE
    emulator = opened.enter_context(
        subprocess.Popen(uv, stdin=pipe, stdout=pipe, stderr=log, text=True),
    )
    said = emulator.stdout
    assert said
    python, url, account_id, key_id, secret = json.loads(said.readline())
    command = ["/usr/bin/env", f"AWS_ENDPOINT_URL={url}", python, str(EXAMPLES / "iam_user.py")]

    def alive() -> list[str]:
        print(file=emulator.stdin, flush=True)
        return json.loads(said.readline())

    return Example(command, account_id, {"accessKeyID": key_id, "secretAccessKey": secret}, alive)


FILES = (entra, google, partial(google, field="serviceaccount.json"))
ALL = (*FILES, pytest.param(aws, marks=pytest.mark.built))


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Example]:
    with ExitStack() as opened:
        yield request.param(tmp_path / "cloud", opened)


@pytest.mark.parametrize("example", ALL, indirect=True)
def test_keys_are_those_that_the_contract_says_however_often_it_is_asked(example: Example) -> None:
    first, (keep,) = example.credential, example.alive()
    assert example.ask("identify", first) == (0, {"accountId": example.account_id, "keyId": keep})

    _, lost = example.ask("create", first, keyId=keep)
    _, made = example.ask("create", first, keyId=keep)
    assert len({keep, lost["keyId"], made["keyId"]}) == 3
    assert sorted(example.alive()) == sorted([keep, made["keyId"]])
    second = made["credential"]
    assert second.keys() == first.keys()
    named = {"accountId": example.account_id, "keyId": made["keyId"]}
    assert example.ask("identify", second) == (0, named)
    assert [example.ask("test", each)[0] for each in (first, second)] == [0, 0]

    for said in ({"keyId": "another"}, {}):
        assert {example.ask(verb, first, **said)[0] for verb in ("create", "revoke")} == {1}
    assert len(example.alive()) == 2
    for _ in range(2):
        assert example.ask("revoke", second, keyId=made["keyId"])[0] == 0
        assert example.alive() == [made["keyId"]]
    assert [example.ask("test", each)[0] for each in (second, first)] == [0, 10]


@tabled("state, code")
@pytest.mark.parametrize("example", FILES, indirect=True)
def test_key_is_rejected_only_where_the_cloud_does_not_know_it_for_a_while(
    example: Example, state: Mapping[str, Any], code: int, tmp_path: Path
) -> None:
    cloud = Cloud(tmp_path / "cloud")
    cloud.state |= state
    cloud.keep()
    assert example.ask("test", example.credential)[0] == code


@pytest.mark.parametrize("example", ALL, indirect=True)
def test_account_gets_a_second_key_by_the_program_and_the_first_is_dead_at_the_end(
    example: Example, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    (project / "members.csv").write_text(f"name,type,accountId\nm0,ovh,{example.account_id}\n")
    pool = {"namespace": NAMESPACE, "membersFrom": "members.csv", "keys": {"ovh": example.command}}
    stack = {"config": {"credfleet:cluster": {"context": "here"}, "credfleet:accountPool": pool}}
    (project / "Pulumi.dev.yaml").write_text(json.dumps(stack))
    data = {name: b64encode(value.encode()).decode() for name, value in example.credential.items()}
    with memory_cluster(monkeypatch) as server:
        server.add_member("m0", {"hyperscaler-type": "ovh"}, {ACCOUNT_ID: example.account_id})
        server.patch(Kind.MEMBER, "m0", {"metadata": {}, "data": {"credential": None, **data}})

        (told,) = answer("rotate", "m0", "--stack", "dev", "--yes")["keys"]
        assert (told["phase"], len(example.alive())) == ("delivered", 2)
        (told,) = answer("rotate", "m0", "--stack", "dev", "--yes", "--complete")["keys"]

        assert (told["phase"], example.alive()) == ("rotated", [told["keyId"]])
        found = server.get(Kind.CREDENTIAL, "m0")
        assert isinstance(found, Found)
        assert found.body["data"].keys() == data.keys()
        assert found.body["data"] != data
    assert example.ask("test", example.credential)[0] == 10
