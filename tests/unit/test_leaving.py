"""What a state has and a configuration no more: a rename that nobody declared, and too much at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from components.pull_secret.names import secret_labels
from components.stack_config.leaving import find_losses, read_entries, read_former
from tests.support.cases import table, tabled
from tests.support.stacks import problems, settings, stack

Tenants: TypeAlias = Mapping[str, Mapping[str, str]]
"""Tenant → slot → the name of its copy, empty without one."""

GUID = "00000000-0000-4000-8000-000000000001"
SERVICE = {"namespace": "tenant-acme", "credentialsFrom": "aws-1"}
OTHER = {"previously": ["db"], "secretName": "other"}
FORMER: Tenants = {"acme": {"main": "creds"}, "globex": {"main": "", "backup": ""}}
EIGHT: Tenants = {f"t{n}": {"main": ""} for n in range(8)}


def state(tenants: Tenants) -> dict[str, dict[str, Any]]:
    """A state as the engine tells it, with a claim that was skipped."""
    found: dict[str, dict[str, Any]] = {}
    claim, copy = (f"pulumi-python:dynamic/credfleet:{each}" for each in ("AccountClaim", "SecretProjection"))

    def put(type_: str, name: str, **outputs: Any) -> None:
        urn = f"urn:pulumi:dev::p::credfleet:index:Fleet${type_}::{name}"
        found[urn] = {"type": type_, "outputs": outputs}

    for tenant, slots in tenants.items():
        metadata = {"name": f"tenant-{tenant}", "labels": {"credfleet.io/tenant": tenant}}
        put("kubernetes:core/v1:Namespace", f"{tenant}-namespace", metadata=metadata)
        put(claim, f"{tenant}/skipped", type="aws", secretName=None)
        for slot, target in slots.items():
            put(claim, f"{tenant}/{slot}", type="aws", secretName="s")
            if target:
                put(copy, f"{tenant}/{slot}-copy", targetName=target)
    put("kubernetes:core/v1:Namespace", "account-pool-namespace", metadata={"name": "account-pool"})
    return found


def tenant(namespace: str, *slots: str, previously: Sequence[str] = (), **named: Any) -> dict[str, Any]:
    accounts = {**{slot: {"type": "aws"} for slot in slots}, **named}
    return {"namespace": f"tenant-{namespace}", "accounts": accounts, "previously": [*previously]}


def told(former: Tenants, tenants: Mapping[str, Any], **further: Any) -> list[str]:
    declared = settings(stack(tenants=tenants, **further))
    losses = find_losses(read_former(state(former)), declared, Path())
    return [f"{each.place}: {each.problem} {each.fix}" for each in losses.refused]


@tabled("tenants, place, line")
def test_what_looks_like_a_rename_is_refused_with_the_line_to_paste(
    tenants: Mapping[str, Any], place: str, line: str
) -> None:
    azure = {"type": "azure", "accountId": "00000000-0000-4000-8000-000000000001", "credentialsFrom": "aws-1"}
    (said,) = told(FORMER, tenants, **{"accountPool__members__azure-1": azure})
    assert said.startswith(place)
    assert line in said


@tabled("tenants")
def test_what_is_no_rename_or_said_to_be_one_goes_on(tenants: Mapping[str, Any]) -> None:
    assert told(FORMER, tenants) == []


def test_namespace_that_the_state_has_twice_is_kept() -> None:
    former = read_former(state(FORMER) | state({"new": {}}))
    former["new"].namespace = "tenant-globex"
    tenants = {"acme": tenant("acme", "main"), "new": tenant("globex", previously=["globex"])}
    (problem,) = find_losses(former, settings(stack(tenants=tenants)), Path()).renames
    assert f"pulumi state delete --target-dependents '{former['globex'].urn}'" in problem.fix


def test_tenant_of_a_file_is_told_the_line_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants" / "globexinc.yaml").touch()
    tenants = {"globexinc": tenant("globex", "main", "backup"), "acme": tenant("acme", "main")}
    declared = settings(stack(tenants=tenants)).model_copy(update={"tenants_from": "tenants"})
    (problem,) = find_losses(read_former(state(FORMER)), declared, tmp_path).refused
    assert "write `previously: [globex]` into tenants/globexinc.yaml" in problem.fix


PRINCIPAL = {"subscriptionId": GUID, "tenantId": GUID, "clientId": GUID, "secretFrom": "token"}
FORMER_ENTRIES: dict[str, Any] = table(__file__, "FORMER_ENTRIES")


def entries(end: str = "", home: str = "tenant-acme", *, says_so: bool = False) -> dict[str, Any]:
    """What was declared, under other names or in another namespace."""

    def entry(name: str, **said: Any) -> dict[str, Any]:
        former = {"previously": [name]} if says_so else {}
        return {f"{name}{end}": {"namespace": home, **said, **former}}

    return {
        "credentials__token": "bare",
        "services": {
            "instances": entry("db", credentialsFrom="aws-1", bindings={"bound": {}}),
            "apps": entry("shop", bindings=[f"db{end}/bound"]),
        },
        "asoCredentials": {"named": entry("payments", servicePrincipal=PRINCIPAL)},
        "secretStores": {
            "providers": entry("fake", kind="Fake", spec={"data": [{"key": "A", "value": "x"}]}),
            "stores": entry("ci", providerRef=f"fake{end}"),
            "reads": {**entry("token", store=f"ci{end}", data={"a": {"key": "A"}})},
            "pushes": {**entry("key", store=f"ci{end}", data={"k": {"secret": "s", "key": "a"}})},
        },
    }


def losses_of(declared: Mapping[str, Any]) -> list[str]:
    known = {
        f"urn:pulumi:dev::p::credfleet:index:{of}": {
            "type": f"credfleet:index:{of.partition('::')[0]}",
            "outputs": outputs,
        }
        for of, outputs in FORMER_ENTRIES.items()
    }
    found = find_losses({}, settings(stack(**declared)), Path(), read_entries(known))
    return [each.fix for each in found.refused]


@tabled("id_, name, is_refused")
def test_cluster_of_the_same_name_under_another_id_is_refused_and_told_why(
    id_: str, name: str, *, is_refused: bool
) -> None:
    labels = secret_labels("cls-1", "Prod EU")
    entry = {"type": "gcp:secretmanager/secret:Secret", "outputs": {"labels": labels}}
    others = {**entry, "outputs": {"labels": {"cluster-name": "prod-eu"}}}
    known = {"urn:pulumi:dev::p::x::cls-1-entry": entry, "urn:pulumi:dev::p::x::of-others": others}
    cluster = {"name": name, "generation": 1, "pullSecretFrom": "token", "project": "example-project"}
    declared = stack(
        credentials__token='{"auths": {"quay.io": {"auth": "YTpi"}}}',
        pullSecrets={"clusters": {id_: cluster}},
    )
    refused = find_losses({}, settings(declared), Path(), read_entries(known)).refused
    assert [(each.place, "HyperFleet looks for" in each.fix) for each in refused] == (
        [(f"credfleet:pullSecrets.clusters.{id_}", True)] if is_refused else []
    )


def test_entries_of_sections_that_look_renamed_are_refused_with_the_lines_to_paste() -> None:
    places = ("services.instances.db", "services.apps.shop", "asoCredentials.named.payments")
    kept = {"providers": "fake", "stores": "ci", "reads": "token", "pushes": "key"}
    stores = [f"secretStores.{part}.{name}" for part, name in kept.items()]
    said = losses_of(entries("-2"))
    assert len(said) == len(places) + len(stores)
    for place, fix in zip((*places, *stores), said, strict=True):
        old = place.rpartition(".")[2]
        assert f"`pulumi config set --path 'credfleet:{place}-2.previously[0]' {old}`" in fix


@pytest.mark.parametrize("declared", [entries(), entries("-2", says_so=True)], ids=["same", "renamed"])
def test_entries_that_stay_or_say_their_former_name_go_on(declared: Mapping[str, Any]) -> None:
    assert losses_of(declared) == []


def test_a_push_to_several_stores_is_no_entry_for_each_that_another_could_be_named_after() -> None:
    declared = entries()
    parts = declared["secretStores"]
    parts["stores"]["own"] = {**parts["stores"]["ci"], "providerRef": "own"}
    parts["providers"]["own"] = parts["providers"]["fake"]
    parts["pushes"]["more"] = {**parts["pushes"]["key"], "store": "own"}
    assert losses_of(declared) == []


def test_entry_of_another_namespace_or_of_other_keys_is_no_rename() -> None:
    declared = entries("-2", home="tenant-other")
    declared["tenants__other"] = {"namespace": "tenant-other"}
    declared["services"]["apps"]["shop-2"]["bindings"] = []
    assert losses_of(declared) == []
    declared = entries("-2")
    for part, key in (("reads", "b"), ("pushes", "l")):
        one = declared["secretStores"][part].popitem()[1]
        declared["secretStores"][part] = {"other": {**one, "data": {key: one["data"].popitem()[1]}}}
    assert not any("secretStores.reads" in fix or "secretStores.pushes" in fix for fix in losses_of(declared))


@pytest.mark.parametrize(("left", "is_told"), [(6, False), (5, True)])
def test_more_than_a_quarter_of_the_tenants_goes_only_where_that_is_said(*, left: int, is_told: bool) -> None:
    kept = {name: tenant(name, "main") for name in list(EIGHT)[:left]}
    assert bool(told(EIGHT, kept)) is is_told
    assert told(EIGHT, kept, allowRemovals=True) == []


@pytest.mark.parametrize(("left", "is_told"), [(6, False), (5, True)])
def test_more_than_a_quarter_of_the_accounts_in_use_goes_only_where_that_is_said(
    *, left: int, is_told: bool
) -> None:
    kept = {name: tenant(name, *(["main"] if n < left else [])) for n, name in enumerate(EIGHT)}
    assert ["accounts in use would be removed in one update" in each for each in told(EIGHT, kept)] == [
        True
    ] * is_told
    assert told(EIGHT, kept, allowRemovals=True) == []


@tabled("change, place")
def test_names_are_unique_with_former_ones(change: dict[str, Any], place: str) -> None:
    values = stack(tenants__globex={"namespace": "tenant-globex"}, **change)
    assert [each.place for each in problems(values)] == [place]
