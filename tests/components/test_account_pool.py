"""What the account pool registers, to the letter."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence

import pulumi
import pytest

from components.account_pool.admission.policies import admission_manifests, namespace_manifests
from components.account_pool.component import (
    AccountPool,
    AccountPoolArgs,
    Grantee,
    TenantAccounts,
    TenantAccountsArgs,
)
from components.account_pool.core.clock import Clock
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool import Pool
from components.account_pool.core.snapshot import PoolSnapshot
from components.connection import ClusterTarget
from components.projection.sources import Source
from components.providers import kubernetes_provider
from tests.support.cases import table
from tests.support.memory_pool import KEB
from tests.support.recorder import Recorder, Registration, Secret, Unknown, record

CANARY = base64.b64encode(b"canary-7f3a").decode()
CLAIM = "pulumi-python:dynamic/credfleet:AccountClaim"
CLAIMED = {CLAIM: {"secretName": "aws-1", "accountId": "111"}}
POOL = "credfleet:index:AccountPool"
ROSTER = "pulumi-python:dynamic/credfleet:PoolRoster"
SEAL = "pulumi-python:dynamic/credfleet:PoolSeal"
ADMISSION = "kubernetes:admissionregistration.k8s.io/v1"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1"


def pool(
    *,
    tenant: str | None = None,
    shared_capacity: int | None = None,
    internal: bool = False,
    admission_policy: bool = False,
    allow_destroy: bool = True,
    claimers: Sequence[Grantee] = (),
    cleaners: Sequence[Grantee] = (),
    bringers: Mapping[str, Sequence[Grantee]] | None = None,
    scheme: LabelScheme | None = None,
    elsewhere: Source | None = None,
) -> Callable[[], AccountPool]:
    """A pool of one member; made inside the program, since outputs live in its event loop."""

    def declare() -> AccountPool:
        member = DeclaredMember.of(
            "aws",
            "111111111111",
            tenant=tenant,
            partition={"eu-access": "true"},
            shared_capacity=shared_capacity,
            internal=internal,
        )
        return AccountPool(
            "pool",
            AccountPoolArgs(
                namespace="account-pool",
                settings=PoolConfigMap(("eu-access",), Policy.CLEAN, {"default": 3}, scheme or LabelScheme()),
                members={"aws-1": member},
                data={} if elsewhere else {"aws-1": pulumi.Output.secret({"clientSecret": CANARY})},
                elsewhere={"aws-1": elsewhere} if elsewhere else {},
                claimers=claimers,
                cleaners=cleaners,
                bringers=bringers or {},
                allow_destroy=allow_destroy,
                admission_policy=admission_policy,
            ),
        )

    return declare


def recorded(declare: Callable[[], object], *, preview: bool = False) -> Recorder:
    def program() -> None:
        declare()

    return record(program, preview=preview, outputs={} if preview else CLAIMED)


def the(recorder: Recorder, type_: str) -> Registration:
    (found,) = recorder.of_type(type_).values()
    return found


def test_a_pool_is_its_namespace_its_settings_and_its_members_and_nothing_else() -> None:
    recorder = recorded(pool())

    assert sorted((one.type, one.name) for one in recorder.registrations) == [
        (POOL, "pool"),
        ("kubernetes:core/v1:ConfigMap", "pool-settings"),
        ("kubernetes:core/v1:Namespace", "pool-namespace"),
        ("kubernetes:core/v1:Secret", "pool-aws-1"),
        (ROSTER, "pool-roster"),
        (SEAL, "pool-seal"),
    ]


def test_a_member_whose_credential_is_elsewhere_is_written_with_its_labels_by_what_reads_that() -> None:
    version = "projects/p/secrets/s/versions/latest"
    recorder = recorded(pool(scheme=KEB, elsewhere=Source(place="there", version=version)))
    assert not recorder.of_type("kubernetes:core/v1:Secret")
    made = the(recorder, "pulumi-python:dynamic/credfleet:MemberSecret")
    assert made.name == "pool-aws-1-elsewhere"
    assert made.inputs["labels"] == {"hyperscalerType": "aws", "euAccess": "true"}
    assert made.inputs["annotations"] == {"credfleet.io/account-id": "111111111111"}
    assert [{**each, "labels": None} for each in made.inputs["sources"]] == [
        {"place": "there", "declared": False, "version": version, "labels": None}
    ]
    seal = the(recorder, SEAL)
    assert made.urn in seal.dependencies


def test_a_member_of_a_pool_with_the_labels_of_kyma_bears_those_and_the_rules_name_them() -> None:
    recorder = recorded(pool(admission_policy=True, tenant="acme", internal=True, scheme=KEB))
    secret = the(recorder, "kubernetes:core/v1:Secret").inputs["metadata"]
    assert secret["labels"] == {
        "hyperscalerType": "aws",
        "tenantName": "acme",
        "euAccess": "true",
        "internal": "true",
    }
    (settings,) = recorder.of_type("kubernetes:core/v1:ConfigMap").values()
    assert json.loads(settings.inputs["data"]["labels"]) == dict(KEB.names)
    policies = recorder.of_type("kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy")
    assert "'hyperscalerType'" in str(policies["pool-members-policy"].inputs)


def test_a_member_is_labelled_for_the_protocol_and_carries_its_accounts_id() -> None:
    secret = the(recorded(pool()), "kubernetes:core/v1:Secret")

    assert secret.inputs == {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": "aws-1",
            "namespace": "account-pool",
            "labels": {"hyperscaler-type": "aws", "eu-access": "true"},
            "annotations": {"credfleet.io/account-id": "111111111111"},
        },
        "data": Secret({"clientSecret": CANARY}),
    }


def test_only_an_account_that_came_with_a_tenant_is_declared_with_an_owner() -> None:
    secret = the(recorded(pool(tenant="Müller & Söhne")), "kubernetes:core/v1:Secret")

    metadata = secret.inputs["metadata"]
    assert metadata["labels"]["tenant-name"] == "enc-nwnctplxg524q6cmucbceaaemccp4bw7hs7qtt2g6ateywrfpn3q"
    assert metadata["annotations"]["credfleet.io/bring-your-own"] == "true"


def test_the_roster_knows_every_member_and_nothing_of_its_data() -> None:
    roster = the(recorded(pool(tenant="globex")), ROSTER)

    assert roster.own_inputs == table(__file__, "ROSTER")


def test_the_roster_is_asked_before_anything_of_the_pool_changes() -> None:
    recorder = recorded(pool())

    assert the(recorder, ROSTER).dependencies == frozenset()
    assert the(recorder, ROSTER).urn in the(recorder, "kubernetes:core/v1:Namespace").dependencies


def test_the_seal_depends_on_everything_a_destroy_would_take() -> None:
    people = [Grantee(kind="User", name="x")]
    recorder = recorded(pool(claimers=people, cleaners=people))
    seal = the(recorder, SEAL)

    everything = {one.urn for one in recorder.registrations if one.type.startswith("kubernetes:")}
    assert everything <= seal.dependencies
    assert seal.inputs["allowDestroy"] is True


@pytest.mark.parametrize("option", ["ignoreChanges", "replaceOnChanges", "protect", "retainOnDelete"])
def test_no_option_keeps_the_program_from_owning_what_it_declares(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(_target: ClusterTarget, _namespace: str, _clock: Clock) -> PoolSnapshot:
        return PoolSnapshot((), ())

    monkeypatch.setattr(Pool, "snapshot", empty)
    secret = the(recorded(pool()), "kubernetes:core/v1:Secret")

    assert not getattr(secret.request, option)


def test_the_pool_says_what_partitions_it_for_all_who_claim() -> None:
    settings = the(recorded(pool()), "kubernetes:core/v1:ConfigMap")

    assert settings.inputs["metadata"] == {"name": "credfleet-pool", "namespace": "account-pool"}
    assert settings.inputs["data"] == table(__file__, "SETTINGS")


SOMEBODY = [Grantee(kind="User", name="x")]


@pytest.mark.parametrize(
    ("role", "given"),
    [
        ("credfleet-bringer:acme", pool(bringers={"acme": SOMEBODY})),
        ("credfleet-claimer", pool(claimers=SOMEBODY)),
        ("credfleet-cleaner", pool(cleaners=SOMEBODY)),
    ],
)
def test_a_role_in_the_pool_has_the_rights_of_its_work_and_no_more(
    role: str, given: Callable[[], AccountPool]
) -> None:
    declared = the(recorded(given), f"{RBAC}:Role").inputs

    assert declared["metadata"] == {"name": role, "namespace": "account-pool"}
    assert declared["rules"] == table(__file__, "RIGHTS")[role]


def test_a_role_is_bound_to_people_and_service_accounts_alike() -> None:
    recorder = recorded(
        pool(
            claimers=[
                Grantee(kind="Group", name="platform"),
                Grantee(kind="ServiceAccount", name="ci", namespace="ci"),
            ]
        )
    )

    binding = the(recorder, f"{RBAC}:RoleBinding")
    assert binding.inputs["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "credfleet-claimer",
    }
    assert binding.inputs["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "platform"},
        {"kind": "ServiceAccount", "name": "ci", "namespace": "ci"},
    ]


@pytest.mark.parametrize("allow_destroy", [False, True])
def test_the_api_server_is_told_the_rules_of_claims_before_anybody_claims(allow_destroy: bool) -> None:
    recorder = recorded(pool(admission_policy=True, allow_destroy=allow_destroy))
    policies = recorder.of_type(f"{ADMISSION}:ValidatingAdmissionPolicy")
    bindings = recorder.of_type(f"{ADMISSION}:ValidatingAdmissionPolicyBinding")
    rules = ["events", "members", *([] if allow_destroy else ["namespace"]), "records", "settings"]

    assert sorted(bindings) == [f"pool-{rule}-policy-binding" for rule in rules]
    settings = PoolConfigMap(("eu-access",), Policy.CLEAN, {"default": 3})
    manifests = [*admission_manifests("account-pool", settings, allow_destroy=allow_destroy)]
    manifests += [] if allow_destroy else namespace_manifests("account-pool")
    assert {
        one.inputs["metadata"]["name"]: one.inputs for one in (*policies.values(), *bindings.values())
    } == {each["metadata"]["name"]: each for each in manifests}
    for name, binding in bindings.items():
        assert policies[name.removesuffix("-binding")].urn in binding.dependencies
        assert binding.urn in the(recorder, SEAL).dependencies


def test_a_claimed_account_is_read_by_its_tenants_reader_and_nothing_else_is() -> None:
    recorder = recorded(accounts)
    role = recorder.named(f"{RBAC}:Role", "acme/aws-reader")
    binding = recorder.named(f"{RBAC}:RoleBinding", "acme/aws-reader-binding")

    metadata = {"name": "credfleet-reader:acme:aws", "namespace": "account-pool"}
    assert role.inputs["metadata"] == binding.inputs["metadata"] == metadata
    assert role.inputs["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["aws-1"], "verbs": ["get"]}
    ]
    assert binding.inputs["subjects"] == [
        {"kind": "ServiceAccount", "name": "account-reader", "namespace": "tenant-acme"}
    ]
    assert recorder.named(CLAIM, "acme/aws").urn in role.dependencies


def accounts(settings: PoolConfigMap | None = None) -> TenantAccounts:
    claims = [
        ClaimRequest(tenant="acme", type="aws", slot="aws", holder="pulumi/o/p/s/acme/aws"),
        ClaimRequest(
            tenant="acme",
            type="aws",
            slot="eu",
            partition={"eu-access": "true"},
            holder="pulumi/o/p/s/acme/eu",
            policy=Policy.RETAIN,
            limit=2,
        ),
    ]
    reader = Grantee(kind="ServiceAccount", name="account-reader", namespace="tenant-acme")
    return TenantAccounts(
        "acme",
        TenantAccountsArgs(
            pool_namespace="account-pool", tenant="acme", claims=claims, reader=reader, settings=settings
        ),
    )


def test_a_claim_is_told_what_the_pool_of_the_same_program_says() -> None:
    settings = PoolConfigMap(policy=Policy.RETAIN, limits={"aws": 3})

    claim = recorded(lambda: accounts(settings)).named(CLAIM, "acme/aws")

    assert (claim.inputs["poolPolicy"], claim.inputs["poolLimit"]) == ("retain", 3)


@pytest.mark.parametrize(
    ("preview", "expected"), [(False, "aws-1"), (True, Unknown())], ids=["update", "preview"]
)
def test_which_account_it_is_is_known_only_after_the_claim(*, preview: bool, expected: object) -> None:
    def program() -> None:
        pulumi.export("accounts", accounts().accounts)

    recorder = record(program, preview=preview, outputs={} if preview else CLAIMED)

    assert recorder.stack_outputs["accounts"]["aws"]["secretName"] == expected
    assert recorder.stack_outputs["accounts"]["aws"]["namespace"] == "account-pool"


@pytest.mark.parametrize(("provider", "warnings"), [(None, 1), (kubernetes_provider, 0)])
def test_a_pool_that_would_replace_its_accounts_says_so(
    provider: Callable[[], pulumi.ProviderResource] | None, warnings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def warn(message: str, _: pulumi.Resource) -> None:
        said.append(message)

    monkeypatch.setattr(pulumi.log, "warn", warn)
    args = AccountPoolArgs(namespace="accounts", settings=PoolConfigMap(), members={})

    def declare() -> AccountPool:
        return AccountPool("pool", args, pulumi.ResourceOptions(providers=[provider()] if provider else []))

    recorded(declare)
    assert len(said) == warnings
