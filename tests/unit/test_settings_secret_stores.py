"""What the configuration of secret stores may say, and what it may not."""

import base64
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from components.errors import Problem
from components.secret_stores.login import login_problem
from tests.support.cases import table, tabled
from tests.support.certificates import certificate_pem, curve_key
from tests.support.stacks import SMALL, as_passed, problems, settings

BUNDLE = "A" * 2_000
CANARY = "canary-5c1d"
READER = {"serviceAccount": {"name": "account-reader"}}
SECTION: dict[str, Any] = table(__file__, "SECTION")
PLACE = "credfleet:secretStores"


def stores(**changes: Any) -> dict[str, str]:
    """Change the section: a path with `__` for the dots, `-` written as `_9`, → a value; None removes it."""
    sections = deepcopy(dict(SMALL))
    sections["credentials"]["gitlab"] = CANARY
    sections["tenants"]["acme"]["accounts"]["aws"]["deliverTo"] = "aws-account"
    sections["tenants"]["globex"] = {"namespace": "tenant-globex"}
    sections["secretStores"] = deepcopy(SECTION)
    for path, value in changes.items():
        *holders, last = path.replace("_9", "-").split("__")
        holder = sections["secretStores"]
        for step in holders:
            holder = holder[step]
        if value is None:
            del holder[last]
        else:
            holder[last] = value
    return as_passed(sections)


def told(**changes: Any) -> Problem:
    (problem,) = problems(stores(**changes))
    assert CANARY not in repr(problem)
    return problem


def test_a_section_with_providers_stores_reads_and_pushes_is_taken() -> None:
    section = settings(stores()).secret_stores
    assert section is not None
    assert section.served_by_eso == {"ci"}
    assert [(namespace, name) for namespace, name, _ in section.written()] == [
        ("tenant-acme", "gitlab-credentials"),
        ("tenant-acme", "account"),
        ("tenant-acme", "ci-token"),
    ]


OWN: dict[str, Any] = {"kind": "Kubernetes", "name": "own", "spec": {"remoteNamespace": "x", "auth": READER}}
WHOSE: dict[str, Any] = table(__file__, "WHOSE")


SOURCES = {"reads__account__dataFrom": [{"extract": {"key": "x"}}]}


def gathers(*sources: Any) -> dict[str, Any]:
    return {"reads__account": {"namespace": "tenant-acme", "store": "shared", "dataFrom": list(sources)}}


def test_a_read_gathers_all_keys_of_an_account_and_secrets_that_it_finds() -> None:
    sources = [
        {"extract": {"account": "acme/aws", "decodingStrategy": "Auto"}},
        {"find": {"tags": {"team": "a"}}},
        {"find": {"name": "^x", "decodingStrategy": "Base64"}},
    ]
    section = settings(stores(**gathers(*sources))).secret_stores
    assert section is not None
    assert section.reads["account"].accounts == [("dataFrom[0].extract", "acme/aws")]
    assert section.document("account", section.reads["account"], lambda account: f"of {account}")[
        "dataFrom"
    ] == [
        {"extract": {"key": "of acme/aws", "decodingStrategy": "Auto"}},
        {"find": {"tags": {"team": "a"}}},
        {"find": {"name": {"regexp": "^x"}, "decodingStrategy": "Base64"}},
    ]


def test_the_policies_that_every_read_has_may_be_written() -> None:
    plain = settings(stores()).secret_stores
    policies = {"reads__account__creationPolicy": "Owner", "reads__account__deletionPolicy": "Retain"}
    written = settings(stores(**policies)).secret_stores
    assert plain is not None
    assert written is not None
    assert plain.document("account", plain.reads["account"], str) == written.document(
        "account", written.reads["account"], str
    )


def test_a_template_may_name_what_only_the_update_knows_and_a_push_its_keys() -> None:
    assert problems(stores(reads__account__template={"x": "{{ .gone }}"}, **SOURCES)) == ()
    pushed = {"pushes__out__data": {"p": {"secret": "account", "key": "x"}, "q": {"secret": "b", "key": "y"}}}
    assert problems(stores(reads__account__template={"x": "{{ .id }} }}"}, **pushed)) == ()


def test_a_read_finds_by_a_path_at_google_and_not_in_a_cluster() -> None:
    find = {"find": {"name": "^x", "path": "p"}}
    google = {"kind": "GCPSM", "namespace": "tenant-acme", "spec": {"projectID": "acme-prod"}}
    store = {"namespace": "tenant-acme", "providerRef": "google"}
    wanted = gathers(find)
    assert "leave path out" in told(**wanted).fix
    wanted["reads__account"]["store"] = "google"
    section = settings(stores(**wanted, providers__google=google, stores__google=store)).secret_stores
    assert section is not None
    (source,) = section.document("account", section.reads["account"], str)["dataFrom"]
    assert source == {"find": {"name": {"regexp": "^x"}, "path": "p"}}


def test_a_store_means_the_provider_of_each_caller() -> None:
    section = settings(stores(**WHOSE, providers__globex={**OWN, "namespace": "tenant-globex"})).secret_stores
    assert section is not None
    for tenant in ("tenant-acme", "tenant-globex"):
        assert getattr(section.provider_of("whose", tenant), "namespace", None) == tenant
    assert section.served_by_eso == {"ci"}


@tabled("changes, place, said")
def test_a_mistake_is_told_at_its_place_with_the_fix(changes: dict[str, Any], place: str, said: str) -> None:
    problem = told(**changes)
    assert problem.place == f"{PLACE}.{place}"
    assert said in f"{problem.problem} {problem.fix}"


def gitlab(token: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"projectID": "7", "auth": {"SecretRef": {"accessToken": token}}, **more}


def test_labels_that_only_the_cluster_knows_refuse_no_read_of_eso() -> None:
    spec = gitlab({"name": "x", "key": "y", "namespace": "tenant-acme"})
    wanted = {
        "providers__wide": {"kind": "GitLab", "spec": spec},
        "stores__wide": {
            "cluster": True,
            "providerRef": "wide",
            "conditions": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}],
        },
        "reads__ci_9token__store": "wide",
    }
    assert [*problems(stores(**wanted))] == []


def own(**said: Any) -> dict[str, Any]:
    return {"stores__x": {"namespace": "tenant-acme", **said}}


@tabled("changes, place, said")
def test_what_the_tables_reject_is_no_configuration(changes: dict[str, Any], place: str, said: str) -> None:
    problem = told(**changes)
    assert problem.place == f"{PLACE}.{place}"
    assert said in f"{problem.problem} {problem.fix}"


def test_a_credential_that_is_no_fit_is_told_without_its_value() -> None:
    vault = {
        "kind": "AzureKV",
        "namespace": "tenant-acme",
        "credentialsFrom": "gitlab",
        "spec": {"vaultUrl": "https://x.vault.azure.net"},
    }
    problem = told(providers__vault=vault)
    assert problem.place == f"{PLACE}.providers.vault.credentialsFrom (gitlab)"
    assert "exactly clientId, clientSecret" in problem.problem


def test_a_login_of_which_a_part_is_half_a_character_is_refused() -> None:
    problem = login_problem(("clientId", "clientSecret"), rb'{"clientId": "i", "clientSecret": "\ud800"}')
    assert problem is not None
    assert problem.problem == "clientSecret is empty or not a string"


def test_conditions_know_the_labels_that_the_stack_gives_and_leave_others_to_the_update() -> None:
    labelled = [{"namespaceSelector": {"matchLabels": {"credfleet.io/tenant": "acme"}}}]
    unknown = [{"namespaceSelector": {"matchLabels": {"team": "x"}}}]
    assert problems(stores(stores__shared__conditions=labelled)) == ()
    assert problems(stores(stores__shared__conditions=unknown)) == ()


def test_what_eso_cannot_express_is_told_at_the_store() -> None:
    spec = {"auth": {"SecretRef": {"accessToken": {"name": "x", "key": "y"}}}, "projectID": "7"}
    problem = told(
        providers__wide={"kind": "GitLab", "spec": spec},
        stores__wide={"cluster": True, "providerRef": "wide"},
    )
    assert problem.place == f"{PLACE}.stores.wide"
    assert "accessToken" in problem.problem


def test_one_secret_is_never_made_by_both_back_ends() -> None:
    problem = told(reads__ci_9token__target="account")
    assert problem.place == f"{PLACE}.reads.ci-token"
    assert f"tenant-acme/account is also that of {PLACE}.reads.account" in problem.problem


def test_two_pushes_never_go_to_one_key_of_a_provider() -> None:
    again = deepcopy(SECTION["pushes"]["out"])
    problem = told(pushes__again=again)
    assert (problem.place, "writes pushed of provider Fake/fake" in problem.problem) == (
        f"{PLACE}.pushes.again",
        True,
    )


def test_a_push_goes_to_several_stores_of_different_providers() -> None:
    other = {"namespace": "tenant-acme", "provider": {"fake": {"data": []}}}
    for backend in ("direct", "eso"):
        changes = {"pushes__out__backend": backend, "stores__other": other}
        assert problems(stores(pushes__out__stores=["other"], **changes)) == ()
        changes |= {"pushes__out__store": None, "pushes__out__stores": ["own", "other"]}
        assert problems(stores(**changes)) == ()


def test_pushes_to_one_name_in_two_namespaces_do_not_meet() -> None:
    value = {"account": "acme/aws", "key": "accessKeyID", "remoteKey": "copy", "property": "id"}
    here = {"namespace": "tenant-acme", "store": "shared", "data": {"a": value}}
    there = {**here, "data": {"a": {**value, "remoteNamespace": "elsewhere"}}}
    assert problems(stores(pushes__here=here, pushes__there=there)) == ()
    again = {**here, "data": {"a": {**value, "remoteNamespace": "account-pool"}}}
    problem = told(pushes__again=again)
    assert problem.place == f"{PLACE}.pushes.again.data.a.remoteNamespace"


def test_a_push_of_an_account_is_of_its_copy() -> None:
    values = stores()
    tenants = json.loads(values["credfleet:tenants"])
    del tenants["acme"]["accounts"]["aws"]["deliverTo"]
    (problem,) = problems({**values, "credfleet:tenants": json.dumps(tenants)})
    assert (problem.place, problem.fix) == (
        f"{PLACE}.pushes.out.data.pushed.account",
        "add deliverTo to the account",
    )
    tenants["acme"]["accounts"]["aws"]["deliverTo"] = {"name": "copy", "keys": {"id": "accessKeyID"}}
    (problem,) = problems({**values, "credfleet:tenants": json.dumps(tenants)})
    assert problem.problem == "the copy of acme/aws has no key accessKeyID"


def test_a_read_of_nothing_is_told_in_our_words() -> None:
    section = deepcopy(SECTION)
    section["reads"]["account"]["data"] = {}
    told = problems(as_passed({**SMALL, "secretStores": section}))

    assert [(one.place, one.fix) for one in told if "empty" in one.problem] == [
        (f"{PLACE}.reads.account.data", "add an entry, or leave out what holds it")
    ]


def with_certificates(bundle: Any, count: int) -> dict[str, str]:
    """A stack with so many stores, each with its own provider, and these certificates in each."""
    server = {"url": "https://api.example", "caBundle": bundle}
    many = {
        f"s{n}": {"namespace": "tenant-acme", "provider": {"kubernetes": {"server": server, "auth": READER}}}
        for n in range(count)
    }
    return stores(stores={**deepcopy(SECTION["stores"]), **many})


def test_certificates_that_make_a_configuration_too_large_have_another_place() -> None:
    pad = {"fake": {"kind": "Fake", "spec": {"data": [{"key": "k", "value": "v" * 110_000}]}}}
    other = stores(providers=pad, stores={}, reads={}, pushes={})
    for said, changed in ((True, with_certificates(BUNDLE, 58)), (False, other)):
        (size,) = [each for each in problems(changed) if each.place == "configuration"]
        assert ("caBundle: {file: …}" in size.fix) == said


def test_two_hundred_stores_share_the_certificates_of_one_file(tmp_path: Path) -> None:
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "ca.pem").write_bytes(certificate_pem(curve_key()))
    found = settings(with_certificates({"file": "certs/ca.pem"}, 200), tmp_path).secret_stores
    assert found is not None
    for name in ("s0", "s199"):
        provider = found.provider_of(name)
        assert not isinstance(provider, Problem)
        held = provider.spec.model_dump(mode="json", by_alias=True)["server"]["caBundle"]
        assert base64.b64decode(held) == certificate_pem(curve_key())


@tabled("given, problem")
def test_certificates_that_cannot_be_read_are_told_once_where_they_are_named(
    given: Any, problem: str, tmp_path: Path
) -> None:
    (found,) = problems(with_certificates(given, 1), root=tmp_path)
    assert found.place == f"{PLACE}.stores.s0.provider.kubernetes.server.caBundle"
    assert problem in found.problem


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    (problem,) = problems(with_certificates({"file": "ca.pem"}, 1), root=tmp_path)
    assert "holds no certificates in PEM" in problem.problem


@pytest.mark.parametrize("backend", ["direct", "eso"])
def test_reads_that_take_each_others_secrets_are_refused_and_one_that_takes_another_is_not(
    backend: str,
) -> None:
    provider = {"kind": "Kubernetes", "spec": {"remoteNamespace": "tenant-acme", "auth": READER}}

    def found(**patterns: str) -> list[Problem]:
        reads = {
            f"reads__{name}": {
                **{"namespace": "tenant-acme", "store": "mine", "backend": backend},
                "dataFrom": [{"find": {"name": pattern}}],
            }
            for name, pattern in patterns.items()
        }
        mine = {"namespace": "tenant-acme", "providerRef": "mine"}
        return [*problems(stores(providers__mine=provider, stores__mine=mine, **reads))]

    assert found(one="^other$", two="^one$", three="^two$") == []
    circle = found(one="^two$", two="^three$", three="^one$")
    assert [each.place for each in circle] == [f"{PLACE}.reads.{name}" for name in ("one", "two", "three")]
    assert all("keep growing" in each.problem for each in circle)
