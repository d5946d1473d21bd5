"""What a whole stack registers."""

import base64
import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.fleet import Fleet
from components.projection.model import digests
from components.skipped_lines import skipped_in
from tests.support.cases import table, tabled
from tests.support.recorder import Recorder, Registration, Unknown, decode, record
from tests.support.stacks import SECRET_KEYS, settings, stack

CLAIM = "pulumi-python:dynamic/credfleet:AccountClaim"
CLAIMED = {CLAIM: {"secretName": "aws-1", "accountId": "111"}}


def declared(
    values: Mapping[str, str], *, preview: bool = False, claimed: Mapping[str, Any] | None = None
) -> Recorder:
    def program() -> None:
        fleet = Fleet("fleet", settings(values))
        pulumi.export("accountPool", fleet.account_pool)
        pulumi.export("tenants", fleet.tenants)
        pulumi.export("services", fleet.services)
        pulumi.export("skipped", fleet.skipped)

    outputs = {} if preview else CLAIMED
    if claimed is not None:
        outputs = {CLAIM: claimed}
    return record(program, preview=preview, config=values, secret_keys=SECRET_KEYS, outputs=outputs)


def ancestors_and_what_they_wait_for(recorder: Recorder, resource: Registration) -> set[str]:
    """Every URN that must be there before the resource, and stays until it is gone."""
    by_urn = {one.urn: one for one in recorder.registrations}
    seen: set[str] = set()
    open_ = [resource.urn]
    while open_:
        urn = open_.pop()
        one = by_urn.get(urn)
        if one is None or urn in seen:
            continue
        seen.add(urn)
        open_ += [*one.dependencies, one.parent]
    return seen


@tabled("file, is_refused")
def test_a_program_whose_stack_file_was_cut_off_declares_nothing_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None, *, is_refused: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if file is not None:
        (tmp_path / "Pulumi.dev.yaml").write_text(file)
    defaults = {"credfleet:cluster": '{"context": "mine"}', "credfleet:tenants": "{}"}
    with pytest.raises(pulumi.RunError, match="would delete all") if is_refused else nullcontext():
        assert not declared(defaults).of_type(CLAIM)


def test_a_small_stack_is_a_pool_a_tenant_and_its_claim() -> None:
    recorder = declared(stack())

    assert sorted((one.type, one.name) for one in recorder.registrations) == [
        ("credfleet:index:AccountPool", "account-pool"),
        ("credfleet:index:Fleet", "fleet"),
        ("credfleet:index:TenantAccounts", "acme"),
        ("kubernetes:core/v1:ConfigMap", "account-pool-settings"),
        ("kubernetes:core/v1:Namespace", "account-pool-namespace"),
        ("kubernetes:core/v1:Namespace", "acme-namespace"),
        ("kubernetes:core/v1:Secret", "account-pool-aws-1"),
        ("kubernetes:core/v1:ServiceAccount", "acme-account-reader"),
        ("kubernetes:rbac.authorization.k8s.io/v1:Role", "acme/aws-reader"),
        ("kubernetes:rbac.authorization.k8s.io/v1:RoleBinding", "acme/aws-reader-binding"),
        (CLAIM, "acme/aws"),
        ("pulumi-python:dynamic/credfleet:PoolRoster", "account-pool-roster"),
        ("pulumi-python:dynamic/credfleet:PoolSeal", "account-pool-seal"),
        ("pulumi:providers:kubernetes", "kubernetes"),
    ]


REASON = {"code": "exhausted", "place": "pool p", "cause": "none is free", "mend": "add some"}


TWO_READS: Any = table(__file__, "TWO_READS")


TWO_TENANTS = {
    name: {
        "namespace": f"tenant-{name}",
        "accounts": {"aws": {"type": "aws", "deliverTo": "aws-account"}},
    }
    for name in ("acme", "globex")
}
OF_AN_ACCOUNT = {"namespace": "tenant-acme", "credentialsFrom": {"account": "acme/aws"}, "bindings": {}}
UNREADY = {"name": "east", "generation": 1, "project": "fleet-project", "pullSecretFrom": "quay"}


def two_tenants_that_read() -> dict[str, str]:
    return stack(tenants=TWO_TENANTS, secretStores=TWO_READS)


def exported(values: Mapping[str, str], outputs: Mapping[str, Any]) -> Recorder:
    def program() -> None:
        Fleet("fleet", settings(values)).export()

    return record(program, config=values, secret_keys=SECRET_KEYS, outputs=outputs)


def test_the_stack_exports_a_digest_that_tenants_and_accounts_do_not_lengthen() -> None:
    claims = {"aws": {"type": "aws"}, "aws-2": {"type": "aws"}}
    few, many = (
        {f"t{number}": {"namespace": f"tenant-{number}", "accounts": claims} for number in range(count)}
        for count in (1, 40)
    )
    small, large = (exported(stack(tenants=tenants), CLAIMED).stack_outputs for tenants in (few, many))

    assert len(json.dumps(large, indent=1).splitlines()) == len(json.dumps(small, indent=1).splitlines())
    assert large == {
        "accountPool": {"namespace": "account-pool", "members": 1},
        "tenants": 40,
        "claims": {"bound": 80, "skipped": 0},
        "skipped": {},
    }


def test_what_is_skipped_is_counted_by_the_stack_and_told_by_the_fleet() -> None:
    recorder = exported(two_tenants_that_read(), {CLAIM: {"skipped": REASON}})

    told = decode(next(outputs for urn, outputs in recorder.put_out.items() if urn.endswith("::fleet")))
    assert recorder.stack_outputs["claims"] == {"bound": 0, "skipped": 2}
    assert recorder.stack_outputs["skipped"] == {"claim": 2, "copy": 2, "read": 2}
    assert told["skipped"]["read acme"] == "waits for claim acme/aws"
    assert told["skipped"].keys() >= {"claim globex/aws", "copy globex/aws"}


@pytest.mark.parametrize("preview", [True, False], ids=["preview", "update"])
def test_all_that_is_skipped_beside_claims_is_said_once(
    monkeypatch: pytest.MonkeyPatch, *, preview: bool
) -> None:
    said: list[str] = []

    def info(message: str, *_: object) -> None:
        said.extend(message.splitlines())

    monkeypatch.setattr(pulumi.log, "info", info)

    declared(
        stack(
            credentials__quay='{"auths": {"quay.io": {"auth": "YTpi"}}}',
            tenants=TWO_TENANTS,
            secretStores=TWO_READS,
            services={"instances": {"orders": OF_AN_ACCOUNT}},
            pullSecrets={"clusters": {"cls-1": UNREADY}},
        ),
        preview=preview,
        claimed={"skipped": REASON},
    )

    assert sorted(skipped_in(said)) == [
        "pull secret cls-1",
        "read acme",
        "read globex",
        "service orders",
    ]
    assert len(said) == len({*said})


def test_a_read_waits_for_the_account_it_reads_and_the_right_to_and_for_no_other() -> None:
    recorder = declared(two_tenants_that_read())
    read = recorder.named("pulumi-python:dynamic/credfleet:SecretRead", "stores/acme-read")

    needed = ancestors_and_what_they_wait_for(recorder, read)

    names = {urn.rpartition("::")[2] for urn in needed}
    assert {"acme/aws", "acme/aws-reader", "acme/aws-reader-binding"} <= names
    assert not {name for name in names if name.startswith("globex")}


def test_a_preview_tells_copies_and_reads_by_digest_what_the_stack_will_write_and_an_update_does_not() -> (
    None
):
    claimed = {"secretName": "aws-1", "accountId": "111"}
    following = ("SecretProjection", "acme/aws-copy"), ("SecretRead", "stores/acme-read")
    told: dict[bool, list[Any]] = {
        preview: [
            declared(two_tenants_that_read(), preview=preview, claimed=claimed)
            .named(f"pulumi-python:dynamic/credfleet:{noun}", name)
            .own_inputs.get("foreseen")
            for noun, name in following
        ]
        for preview in (True, False)
    }
    value = digests({"accessKeyID": base64.b64encode(b"id").decode()})["accessKeyID"]
    copied, read = told[True]
    assert copied.value["accessKeyID"] == value
    assert read.value == {"acme": {"id": value}}
    assert told[False] == [None, None]


def test_everything_in_the_cluster_is_made_by_the_one_explicit_provider() -> None:
    recorder = declared(stack())
    (provider,) = recorder.of_type("pulumi:providers:kubernetes").values()

    made = {one.provider for one in recorder.registrations if one.type.startswith("kubernetes:")}

    assert made == {f"{provider.urn}::kubernetes-id"}


def test_a_claim_begins_after_every_member_and_depends_on_none() -> None:
    recorder = declared(stack())

    registered = [one.name for one in recorder.registrations]
    accounts = recorder.named("credfleet:index:TenantAccounts", "acme")
    pool = recorder.named("credfleet:index:AccountPool", "account-pool")
    settings = recorder.named("kubernetes:core/v1:ConfigMap", "account-pool-settings")
    assert accounts.dependencies == {pool.urn, settings.urn}
    claim = registered.index("acme/aws")
    assert all(registered.index(f"account-pool-{what}") < claim for what in ("aws-1", "seal"))


def test_a_claim_is_held_by_the_stack_the_tenant_and_the_slot() -> None:
    brought = stack(**{"accountPool__members__aws-1__tenant": "acme"})
    claim = declared(brought).named(CLAIM, "acme/aws")

    assert claim.inputs["holder"] == "pulumi/organization/credfleet/dev/acme/aws"


def test_an_account_is_delivered_from_its_claim_to_its_tenant_as_long_as_it_is_the_tenants() -> None:
    recorder = declared(stack(tenants__acme__accounts__aws__deliverTo="aws-account"))
    copy = recorder.named("pulumi-python:dynamic/credfleet:SecretProjection", "acme/aws-copy")

    assert copy.own_inputs == table(__file__, "COPY")
    needed = ancestors_and_what_they_wait_for(recorder, copy)
    assert recorder.named(CLAIM, "acme/aws").urn in needed
    assert recorder.named("kubernetes:core/v1:Namespace", "acme-namespace").urn in needed


def test_two_tenants_whose_names_and_slots_run_together_have_claims_of_their_own() -> None:
    recorder = declared(
        stack(
            **{
                "tenants__a-b": {"namespace": "tenant-1", "accounts": {"c": {"type": "aws"}}},
                "tenants__a": {"namespace": "tenant-2", "accounts": {"b-c": {"type": "aws"}}},
            }
        )
    )

    assert sorted(recorder.of_type(CLAIM)) == ["a-b/c", "a/b-c", "acme/aws"]


def test_a_logical_name_comes_from_a_key_so_order_and_neighbours_do_not_change_it() -> None:
    before = declared(stack())
    after = declared(
        stack(
            tenants={
                "aaa": {"namespace": "tenant-aaa"},
                "acme": {"namespace": "tenant-acme", "accounts": {"aws": {"type": "aws"}}},
            },
            **{
                "accountPool__members__aaa": {
                    "type": "gcp",
                    "accountId": "acme-2",
                    "credentialsFrom": "aws-1",
                }
            },
        )
    )

    assert {one.urn for one in before.registrations} < {one.urn for one in after.registrations}


def test_a_stack_without_anything_declares_only_the_means() -> None:
    recorder = declared({})

    assert {one.type for one in recorder.registrations} == {
        "credfleet:index:Fleet",
        "pulumi:providers:kubernetes",
    }
    assert recorder.stack_outputs == {"accountPool": {}, "tenants": {}, "services": {}, "skipped": {}}


@pytest.mark.parametrize(
    ("preview", "secret_name", "account_id"), [(False, "aws-1", "111"), (True, Unknown(), Unknown())]
)
def test_the_stack_exports_where_each_account_is(
    *, preview: bool, secret_name: object, account_id: object
) -> None:
    assert declared(stack(), preview=preview).stack_outputs == {
        "accountPool": {"namespace": "account-pool", "members": ["aws-1"]},
        "tenants": {
            "acme": {
                "namespace": "tenant-acme",
                "accounts": {
                    "aws": {
                        "namespace": "account-pool",
                        "secretName": secret_name,
                        "accountId": account_id,
                    }
                },
                "deliveries": {},
            }
        },
        "services": {},
        "skipped": {},
    }


def with_services(**instance: object) -> Mapping[str, str]:
    service = {"namespace": "tenant-acme", "bindings": {"orders-api": {}}, **instance}
    return stack(
        credentials__db='{"type": "database", "DB_URL": "canary-41"}',
        services={"instances": {"orders-db": service}},
    )


def test_stores_come_after_services_and_depend_on_none_of_them() -> None:
    services = {"orders-db": {"namespace": "tenant-acme", "credentialsFrom": "db", "bindings": {"api": {}}}}
    recorder = declared(
        stack(
            credentials__db='{"type": "database", "DB_URL": "canary-41"}',
            services={"instances": services},
            tenants=TWO_TENANTS,
            secretStores=TWO_READS,
        )
    )

    (stores,) = recorder.of_type("credfleet:index:SecretStores").values()
    (fleet,) = recorder.of_type("credfleet:index:Fleet").values()
    registered = [one.name for one in recorder.registrations]
    assert stores.dependencies == {fleet.urn}
    assert registered.index("orders-db-source") < registered.index(stores.name)


def test_what_only_breaks_the_specification_is_a_warning_that_names_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    def warn(text: str, _resource: pulumi.Resource) -> None:
        told.append(text)

    monkeypatch.setattr(pulumi.log, "warn", warn)

    declared(with_services(credentialsFrom="db"))

    (warning,) = told
    assert warning.startswith("db: DB_URL: ")
    assert "canary-41" not in warning
