"""What a stack's configuration may say as a whole, and how all that is wrong with it is told at once."""

import json
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import ValidationError

from components.account_pool.core.model import Policy
from components.errors import ConfigurationError
from components.projection.settings import CredentialSource
from components.stack_config.cloud_keys import LOGINS, plain_logins
from components.stack_config.review import review_far_accounts
from components.stack_config.stack import Settings
from tests.support.cases import cases, table, tabled
from tests.support.stacks import ROOT, SECRET_KEYS, as_passed, problems, settings, stack

CANARY = "canary-7f3a"


def places(values: dict[str, str]) -> list[str]:
    return [problem.place for problem in problems(values)]


def test_the_small_stack_is_read_as_it_stands() -> None:
    read = settings(stack())

    assert read.cluster.context == "credfleet-test"
    assert read.tenants["acme"].accounts["aws"].type == "aws"
    assert read.account_pool is not None
    assert read.account_pool.release_policy is Policy.CLEAN
    assert read.account_pool.members["aws-1"].account_id == "111111111111"


def test_a_stack_that_declares_nothing_needs_nothing() -> None:
    sections = {field.alias for field in Settings.model_fields.values()} - {
        "tenantsFrom",
        "heldAs",
        "allowRemovals",
    }
    empty = dict.fromkeys((f"credfleet:{each}" for each in sections), "{}")

    assert problems(empty) == problems({}) == ()
    assert settings(empty).account_pool is None


@pytest.mark.parametrize("given", ["null", "[]", '""', "", "0", "false"])
@pytest.mark.parametrize("key", ["accountPool", "asoCredentials", "pullSecrets", "services", "secretStores"])
def test_a_section_that_is_empty_without_being_a_map_is_a_slip_and_not_absent(key: str, given: str) -> None:
    values = {f"credfleet:{key}": given}

    (problem,) = problems(values)

    assert problem.place == f"credfleet:{key}"
    assert "would delete all that it declared" in problem.problem
    assert "{}" in problem.fix


def test_settings_never_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        settings(stack()).tenants = {}  # pyright: ignore[reportAttributeAccessIssue] - the point of the test


@tabled("change, key, meant")
def test_an_unknown_key_suggests_the_nearest_known_one(change: dict[str, Any], key: str, meant: str) -> None:
    (problem,) = problems(stack(**change))

    assert (problem.place, problem.fix) == (f"credfleet:{key}", f"did you mean {meant}?")


def test_an_unknown_key_like_no_other_names_those_that_are_known() -> None:
    (problem,) = problems(stack(cluster__xyzzy="x"))

    assert problem.fix == "known here: context, existingNamespaces, kubeconfig, uid"


def test_a_context_is_not_asked_for_in_a_pod_which_means_its_own_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    given = stack(cluster__context=None)
    assert [each.place for each in problems(given)] == ["credfleet:cluster.context"]
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert problems(given) == ()


def test_a_kubernetes_key_that_no_provider_would_read_is_refused() -> None:
    (problem,) = problems({**stack(), "kubernetes:context": "elsewhere"})

    assert problem.place == "kubernetes:context"
    assert "credfleet:cluster" in problem.fix


def test_credentials_that_are_not_secret_are_refused() -> None:
    (problem,) = problems(stack(), secret=False)

    assert problem.place == "credfleet:credentials"


def test_a_configuration_too_big_for_the_environment_is_refused_with_the_reason() -> None:
    big = stack(credentials__big="x" * 100 * 1024)

    (problem,) = problems(big)

    assert problem.place == "configuration"
    assert "environment" in problem.problem
    assert "membersFrom" in problem.fix


def test_the_size_counts_bytes_and_every_namespace() -> None:
    assert problems({**stack(), "acme:note": "ä" * 52_000}) != ()
    assert problems({**stack(), "acme:note": "a" * 52_000}) == ()


def test_everything_wrong_is_told_at_once_each_with_its_place() -> None:
    wrong = table(__file__, "WRONG")
    found = places({**stack(**wrong["changes"]), "credfleet:tenant": "{}"})

    assert sorted(found) == sorted(wrong["places"])


def test_the_error_reads_as_place_problem_and_fix_in_two_lines_each() -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings(stack(cluster__contxt="x", accountPool__releasePolicy="keep"))

    assert str(raised.value) == (
        "credfleet:cluster.contxt: unknown key contxt, which would be ignored\n"
        "→ did you mean context?\n"
        "credfleet:accountPool.releasePolicy: unknown value\n"
        "→ use 'retain', 'release', 'clean' or 'quarantine'\n"
        "2 problems found, nothing was written"
    )


def test_a_misspelt_section_is_one_problem_and_what_refers_to_it_is_none() -> None:
    given = stack()
    given["credfleet:tenats"] = given["credfleet:tenants"]
    given["credfleet:tenants"] = "{}"  # as Pulumi.yaml has it by default
    with pytest.raises(ConfigurationError) as raised:
        settings(given)

    assert str(raised.value) == (
        "credfleet:tenats: unknown key tenats, which would be ignored\n"
        "→ did you mean tenants?\n"
        "1 problem found, nothing was written"
    )


@tabled("change")
def test_no_problem_ever_shows_the_value_it_is_about(change: dict[str, Any]) -> None:
    found = problems(stack(**change))

    assert found != ()
    assert CANARY not in repr(found)


@pytest.mark.parametrize("section", ["cluster", "tenants", "accountPool"])
@pytest.mark.parametrize("text", ['"text"', "plain text", "[1]", "5"])
def test_a_section_that_is_no_map_is_one_problem_at_its_place(section: str, text: str) -> None:
    found = places({**as_passed({"credentials": {}}), f"credfleet:{section}": text})

    assert found == [f"credfleet:{section}"]


def test_a_part_with_a_fault_hides_no_fault_of_its_neighbours() -> None:
    found = places(
        stack(
            tenants__globex={},
            tenants__initech={"namespace": "tenant-initech", "accounts": {"a": {"type": "gcp"}}},
        )
    )

    assert found == ["credfleet:tenants.globex.namespace", "credfleet:tenants.initech.accounts.a"]


def test_a_reference_to_an_entry_with_a_fault_is_no_fault_of_its_own() -> None:
    values = stack(
        tenants__globex={"namespace": "Bad"},
        credentials__broken=5,
        accountPool__partitionKeys=["eu-access", "tenant-name"],
        accountPool__members__licence={
            "type": "azure",
            "accountId": "00000000-0000-4000-8000-000000000002",
            "tenant": "globex",
            "credentialsFrom": "broken",
            "partition": {"eu-access": "true"},
        },
    )

    assert places(values) == [
        "credfleet:credentials.broken",
        "credfleet:tenants.globex.namespace",
        "credfleet:accountPool.partitionKeys[1]",
    ]


MEMBER: Final = "accountPool__members__aws-1"
UNFIT: Final[Mapping[str, tuple[dict[str, Any], str, str]]] = table(__file__, "UNFIT")
"""Change → place, words of the fix. A place that is empty or a suffix is that of the change."""


@cases("change, place, words", UNFIT)
def test_a_value_that_cannot_stand_is_told_with_its_fix(
    change: dict[str, Any], place: str, words: str
) -> None:
    (problem,) = problems(stack(**change))

    changed = next(iter(change)).replace("__", ".") if place.startswith((".", "[")) or not place else ""
    assert problem.place == f"credfleet:{changed}{place}"
    assert words in problem.fix


def test_an_account_in_another_cluster_is_read_as_its_copy_alone() -> None:
    sources = [("a", CredentialSource(account="acme/aws")), ("b", CredentialSource(secret="x/y"))]
    (problem,) = review_far_accounts(sources)
    assert (problem.place, problem.fix) == ("a", "give the account deliverTo, and name that copy here")


def test_load_ends_the_program_with_the_problems_and_no_traceback() -> None:
    import pulumi

    from tests.support.recorder import record

    def program() -> None:
        Settings.load()

    with pytest.raises(pulumi.RunError, match=r"credfleet:cluster\.contxt: .*\n→ did you mean context\?"):
        record(program, config=stack(cluster__contxt="x"), secret_keys=SECRET_KEYS)


@pytest.mark.parametrize(
    "key", ["gcp:secretManagerCustomEndpoint", "azure-native:metadataHost", "credfleet:pullSecrets"]
)
def test_load_refuses_a_port_that_the_sandbox_was_to_choose_and_parse_takes_it(key: str) -> None:
    import pulumi

    from tests.support.recorder import record

    values = {
        "gcp:secretManagerCustomEndpoint": "http://127.0.0.1:0/v1/",
        "azure-native:metadataHost": "localhost:0",
        "credfleet:pullSecrets": '{"hyperfleet": {"apiUrl": "http://127.0.0.1:0"}, "clusters": {}}',
    }
    config = {**stack(), key: values[key]}
    assert problems(config) == ()

    def program() -> None:
        Settings.load()

    with pytest.raises(pulumi.RunError, match=rf"{key}: it leaves a port open.*\n→ .*credfleet sandbox env"):
        record(program, config=config, secret_keys=SECRET_KEYS)


def secret_by_schema(namespace: str) -> set[str]:
    """Ask the wheel of a provider which of its keys it takes for secret."""
    source = Path(str(find_spec(f"pulumi_{namespace}").origin)).with_name("provider.py")  # pyright: ignore[reportOptionalMemberAccess]
    marked = re.findall(r'__dict__\["(\w+)"\] = .*Output\.secret', source.read_text(encoding="utf-8"))
    return {re.sub(r"_(.)", lambda found: found[1].upper(), name) for name in marked}


@pytest.mark.parametrize("namespace", ["azure-native", "gcp", "kubernetes"])
def test_every_key_that_a_provider_calls_secret_is_refused_in_plain(namespace: str) -> None:
    ids = {"clientId"}
    assert secret_by_schema(namespace.replace("-", "_")) - ids <= {*LOGINS[namespace]}


@pytest.mark.parametrize("key", [f"{room}:{name}" for room, names in LOGINS.items() for name in names])
def test_login_to_a_cloud_in_plain_is_refused_and_one_that_is_secret_is_not(key: str) -> None:
    import pulumi

    from tests.support.recorder import record

    given = {**stack(), "gcp:secretManagerCustomEndpoint": "http://127.0.0.1:80/v1/", key: '{"a": "b"}'}

    def program() -> None:
        Settings.load()

    with pytest.raises(pulumi.RunError, match=f"{key}: it is in plaintext in the stack file"):
        record(program, config=given, secret_keys=SECRET_KEYS)
    assert [*plain_logins(given, {key})] == []


def test_load_reads_what_parse_reads() -> None:

    from tests.support.recorder import record

    loaded: list[Settings] = []

    def program() -> None:
        loaded.append(Settings.load())

    record(program, config=stack(), secret_keys=SECRET_KEYS)

    assert loaded[0].tenants == settings(stack()).tenants
    assert loaded[0].account_pool == settings(stack()).account_pool


def test_the_published_schema_is_what_the_settings_say() -> None:
    from components.stack_config.schema import stack_file_schema

    published = json.loads((ROOT / "docs" / "schema" / "stack.json").read_text(encoding="utf-8"))

    assert published == stack_file_schema(), "write it again from stack_file_schema()"


def test_a_program_that_the_cli_interrupts_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.support.recorder import record

    told: list[str] = []

    def program() -> None:
        Settings.load()
        for error in (KeyboardInterrupt(), ValueError("a defect")):
            sys.excepthook(type(error), error, None)
            told.append(capsys.readouterr().err)

    record(program, config=stack(), secret_keys=SECRET_KEYS)
    interrupted, failed = told
    assert interrupted == ""
    assert "a defect" in failed
