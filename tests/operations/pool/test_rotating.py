"""`credfleet pool rotate` with a program of the user's: what it is given, what becomes of the account."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from components.account_pool.core.calls import Found, Kind
from components.account_pool.core.config_map import CONFIG_MAP, PoolConfigMap
from components.account_pool.core.keys import CLAIM_ORIGIN, KEY_ID, KEY_PHASE, KEY_REASON, POOL_STATE
from components.labels import ACCOUNT_ID, TENANT_NAME
from operations.pool.launching import name_of
from tests.support.cases import tabled
from tests.support.key_program import write_program
from tests.support.memory_cluster import NAMESPACE, credfleet
from tests.support.memory_pool import MemoryServer


@pytest.fixture
def server(server: MemoryServer, project: Path) -> MemoryServer:
    """A pool with a free account, and a stack with a program for its keys."""
    write_program(project, "secret")
    (project / "members.csv").write_text("name,type,accountId\nm0,aws,111111111111\n")
    pool = {"namespace": NAMESPACE, "membersFrom": "members.csv", "keys": {"aws": ["./keys.py"]}}
    stack = {"config": {"credfleet:cluster": {"context": "here"}, "credfleet:accountPool": pool}}
    (project / "Pulumi.dev.yaml").write_text(json.dumps(stack))
    server.add_member("m0", {}, {ACCOUNT_ID: "111111111111"})
    return server


def require_new_keys(server: MemoryServer, project: Path) -> None:
    """Let the account be dirty, and say in pool and stack that it is free only with a new key."""
    server.by_hand("m0", {POOL_STATE: "dirty", TENANT_NAME: "acme"}, {CLAIM_ORIGIN: "pool"})
    data = PoolConfigMap(new_keys=("aws",)).render()
    server.patch(Kind.RECORD, CONFIG_MAP, {"metadata": {}, "data": data})
    stack = json.loads((project / "Pulumi.dev.yaml").read_text())
    pool = {"newKeys": ["aws"], "cleaning": {"aws": ["true"]}, "admissionPolicy": True}
    stack["config"]["credfleet:accountPool"] |= pool
    (project / "Pulumi.dev.yaml").write_text(json.dumps(stack))


def clean(*words: str, code: int = 0) -> Any:
    done = credfleet("pool", "clean", *words, "-n", NAMESPACE, "--yes", "--output", "json")
    assert done.exit_code == code, done.output
    assert "sentinel" not in done.output
    return json.loads(done.stdout) if code in (0, 1) else done.output


def test_account_that_was_cleaned_has_a_new_key_and_the_former_one_is_dead(
    server: MemoryServer, project: Path
) -> None:
    require_new_keys(server, project)

    (told,) = clean("--stack", "dev")["cleaned"]

    assert (told["outcome"], told["reason"]) == ("cleaned", None)
    assert (project / "alive").read_text() == key_of(server) != "secret"
    member = server.member("m0")
    assert (member.tenant, member.state, member.key_phase) == (None, None, None)
    verbs = [each.split()[0] for each in (project / "calls").read_text().splitlines()]
    assert verbs.index("create") < verbs.index("revoke") < len(verbs) - 1 - verbs[::-1].index("test")


def test_account_with_two_keys_is_not_wiped_and_what_ends_its_rotation_names_the_pool(
    server: MemoryServer, project: Path
) -> None:
    assert credfleet("pool", "rotate", "m0", "--stack", "dev", "--yes").exit_code == 0
    server.by_hand("m0", {POOL_STATE: "dirty"})
    (told,) = clean("--stack", "dev", "--command", "aws=true", code=1)["cleaned"]
    assert f"`credfleet pool rotate m0 --complete -n {NAMESPACE} --stack dev`" in told["reason"]


def test_account_whose_former_key_may_work_is_quarantined_and_the_next_cleaning_ends_it(
    server: MemoryServer, project: Path
) -> None:
    require_new_keys(server, project)
    text = (project / "keys.py").read_text()
    (project / "keys.py").write_text(
        text.replace('if verb in ("create"', 'if verb == "revoke": sys.exit(3)\nif verb in ("create"')
    )

    (told,) = clean("--stack", "dev", code=1)["cleaned"]

    assert told["outcome"] == server.member("m0").state == "quarantined"
    assert "the other key may still work: keys.py revoke ended with exit code 3" in told["reason"]
    (project / "keys.py").write_text(text)
    assert credfleet("pool", "unquarantine", "m0", "-n", NAMESPACE, "--yes").exit_code == 0
    clean("--stack", "dev")
    assert (project / "alive").read_text() == key_of(server)


def test_account_is_not_touched_without_a_program_that_makes_its_new_key(
    server: MemoryServer, project: Path
) -> None:
    require_new_keys(server, project)

    told = clean("--command", "aws=true", code=4)

    assert "no program makes one for type aws" in told
    assert server.member("m0").state == "dirty"


def rotate(*words: str, code: int = 0) -> Any:
    done = credfleet("pool", "rotate", *words, "-n", NAMESPACE, "--yes", "--output", "json")
    assert done.exit_code == code, done.output
    assert "sentinel" not in done.output
    return json.loads(done.stdout)


def key_of(server: MemoryServer) -> str:
    found = server.get(Kind.CREDENTIAL, "m0")
    assert isinstance(found, Found)
    (value,) = found.body["data"].values()
    return b64decode(value).decode()


def name(key: str) -> str:
    return f"id-{key.rpartition('-')[2]}"


def test_key_is_rotated_and_the_former_one_revoked_when_told_so(server: MemoryServer, project: Path) -> None:
    (told,) = rotate("m0", "--stack", "dev")["keys"]
    delivered = key_of(server)
    assert (told["phase"], told["keyId"]) == ("delivered", name(delivered))
    assert (project / "alive").read_text().split() == ["secret", delivered]
    assert credfleet("pool", "status", "-n", NAMESPACE).output.count("delivered") == 1

    (told,) = rotate("m0", "--complete", "--stack", "dev")["keys"]

    assert told["phase"] == "rotated"
    assert (project / "alive").read_text() == key_of(server) == delivered
    assert server.member("m0").labels.get(KEY_PHASE) is None
    calls = (project / "calls").read_text().splitlines()
    assert [each.split()[0] for each in calls].count("create") == 1
    assert all(each.split()[1:4] == ["m0", "aws", "111111111111"] and each.endswith("[]") for each in calls)


def test_program_that_fails_leaves_the_key_in_use_and_the_reason(server: MemoryServer, project: Path) -> None:
    text = (project / "keys.py").read_text()
    (project / "keys.py").write_text(
        text.replace('if verb == "create":', 'if verb == "create": sys.exit(3)\nif 0:', 1)
    )

    (told,) = rotate("m0", "--stack", "dev", code=1)["keys"]

    assert told["phase"] == "preparing"
    assert "keys.py create ended with exit code 3" in told["reason"]
    assert "keys.py create" in server.member("m0").annotations[KEY_REASON]
    (project / "keys.py").write_text(text)
    assert rotate("m0", "--stack", "dev")["keys"][0]["phase"] == "delivered"


@tabled("command, name")
def test_program_is_called_by_its_file_where_an_interpreter_runs_it(command: list[str], name: str) -> None:
    assert name_of(command) == name


@pytest.mark.parametrize("is_named", [True, False], ids=["with a program", "without"])
def test_key_made_by_hand_is_put_into_use(server: MemoryServer, project: Path, is_named: bool) -> None:
    (project / "alive").write_text("secret made-by-hand")
    stack = ("--stack", "dev") if is_named else ()
    (project / "key.json").write_text('{"credential": "made-by-hand"}')
    rotate("m0", "--values", "key.json", *stack)

    assert key_of(server) == "made-by-hand"
    named = server.member("m0").annotations[KEY_ID]
    assert (named == "id-hand") == is_named
    rotate("m0", "--complete", *stack)
    assert (project / "alive").read_text() == ("made-by-hand" if is_named else "secret made-by-hand")


@pytest.mark.parametrize("option", ["--complete", "--abort"])
def test_key_of_a_program_that_is_not_named_leaves_its_rotation_as_it_is(
    server: MemoryServer, project: Path, option: str
) -> None:
    rotate("m0", "--stack", "dev")

    (told,) = rotate("m0", option, code=1)["keys"]

    assert (told["phase"], "name by --stack whose program" in told["reason"]) == ("delivered", True)
    rotate("m0", "--roll-back", "--stack", "dev")
    assert key_of(server) == "secret"


def test_account_that_is_held_keeps_its_former_key_until_its_holders_have_the_new_one(
    server: MemoryServer, project: Path
) -> None:
    claimed = credfleet("pool", "claim", "-n", NAMESPACE, "-t", "aws", "--tenant", "acme", "--yes")
    assert claimed.exit_code == 0, claimed.output
    rotate("m0", "--stack", "dev")

    (told,) = rotate("m0", "--complete", "--stack", "dev", code=1)["keys"]

    assert "cli (tenant acme, slot main)" in told["reason"]
    (lagging,) = rotate("m0", "--who")["lagging"]
    assert (lagging["holder"], lagging["keyId"]) == ("cli", name(key_of(server)))
    assert "secret" in (project / "alive").read_text().split()
    rotate("m0", "--roll-back", "--stack", "dev")
    assert key_of(server) == "secret"


def test_second_key_that_is_given_is_refused_while_the_former_one_is_valid(
    server: MemoryServer, project: Path
) -> None:
    (project / "key.json").write_text('{"credential": "made-by-hand"}')
    rotate("m0", "--stack", "dev")
    delivered = key_of(server)

    (told,) = rotate("m0", "--stack", "dev", "--values", "key.json", code=1)["keys"]

    assert (
        "is not complete, so no other key was taken → run `credfleet pool rotate m0 --compl" in told["reason"]
    )
    assert key_of(server) == delivered


def test_rotation_run_again_once_its_key_is_in_use_makes_no_third_one(
    server: MemoryServer, project: Path
) -> None:
    rotate("m0", "--stack", "dev")
    delivered, living = key_of(server), (project / "alive").read_text()

    (told,) = rotate("m0", "--stack", "dev")["keys"]

    assert (told["phase"], told["reason"]) == ("delivered", None)
    assert (key_of(server), (project / "alive").read_text()) == (delivered, living)


def test_key_that_lacks_a_field_of_the_one_in_use_is_not_taken(server: MemoryServer, project: Path) -> None:
    (project / "key.json").write_text('{"Credential": "made-by-hand"}')

    (told,) = rotate("m0", "--values", "key.json", code=1)["keys"]

    assert "the new credential has no credential, which the one in use has" in told["reason"]
    assert key_of(server) == "secret"
