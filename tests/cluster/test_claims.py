"""Claims on a real API server: many at once from several processes, killed at any call, refused by RBAC."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_sandbox.services.parts import ADMIN

from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID, PoolConfigMap
from components.account_pool.core.keys import CLAIM_TOKEN, POOL_STATE, SHARED_CAPACITY
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest, Policy
from components.account_pool.core.pool import CLAIMS
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed, Fence
from components.connection import ClusterTarget, Connection, Reply, connect
from components.errors import NotAllowed, PoolError, Restored
from components.labels import ACCOUNT_ID, HYPERSCALER_TYPE, SHARED, TENANT_NAME
from tests.support.claim_process import REQUEST, claim_all
from tests.support.memory_pool import is_free
from tests.support.people import grant

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane

SENTINEL = "sentinel-credential-that-must-never-travel"


@pytest.fixture
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.kubeconfig(ADMIN.name)


@pytest.fixture
def target(kubeconfig: Path) -> ClusterTarget:
    return ClusterTarget(kubeconfig=str(kubeconfig))


@pytest.fixture
def pool(target: ClusterTarget, namespace: str) -> PoolOperator:
    return PoolOperator.open(target, namespace)


@pytest.fixture
def add(admin: DynamicClient, namespace: str) -> Callable[..., None]:
    secrets = admin.resources.get(api_version="v1", kind="Secret")

    def add(
        name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
    ) -> None:
        metadata = {
            "name": name,
            "labels": {HYPERSCALER_TYPE: "aws", **(labels or {})},
            "annotations": annotations or {},
        }
        secrets.create(namespace=namespace, body={"metadata": metadata, "stringData": {"key": SENTINEL}})

    return add


@pytest.fixture
def free(add: Callable[..., None]) -> Callable[[int], None]:
    def free(number: int) -> None:
        for index in range(number):
            add(f"aws-{index:02}")

    return free


def expect_consistent(pool: PoolOperator) -> None:
    """Every claim has the account that carries it, and no account is taken without a claim."""
    taken = {member.name: member for member in pool.members() if not is_free(member)}
    records = pool.records()
    assert sorted(record.member for record in records) == sorted(taken)
    assert all(record.is_carried_by(taken[record.member]) for record in records)


def test_fifty_tenants_on_thirty_accounts_are_thirty_owners_and_twenty_honest_refusals(
    kubeconfig: Path, namespace: str, pool: PoolOperator, free: Callable[[int], None]
) -> None:
    free(30)
    shares = [[ClaimRequest(f"t{n}", "aws") for n in range(start, 50, 2)] for start in (0, 1)]
    answers = claim_all(kubeconfig, namespace, shares)
    claims = [answer for answer in answers if isinstance(answer, Claimed)]
    assert Counter(answer[0] for answer in answers if isinstance(answer, tuple)) == {"exhausted": 20}
    assert len({claimed.secret_name for claimed in claims}) == len(claims) == 30
    expect_consistent(pool)


def test_one_tenant_with_fifty_parallel_first_requests_gets_exactly_one_account(
    kubeconfig: Path, namespace: str, pool: PoolOperator, free: Callable[[int], None]
) -> None:
    free(10)
    shares = [
        [ClaimRequest("acme", "aws", holder=f"p{process}-{n}") for n in range(17)] for process in range(3)
    ]
    claims = claim_all(kubeconfig, namespace, shares)
    assert {type(claimed) for claimed in claims} == {Claimed}
    assert len({claimed.secret_name for claimed in claims if isinstance(claimed, Claimed)}) == 1
    assert len([member for member in pool.members() if not is_free(member)]) == 1
    expect_consistent(pool)


def test_a_shared_account_takes_exactly_as_many_as_it_has_room_for(
    kubeconfig: Path, namespace: str, pool: PoolOperator, add: Callable[..., None]
) -> None:
    add("shared", {SHARED: "true"}, {SHARED_CAPACITY: "7"})
    shares = [
        [ClaimRequest(f"t{process}-{n}", "aws", slot="s", shared=True) for n in range(8)]
        for process in range(2)
    ]
    answers = claim_all(kubeconfig, namespace, shares)
    assert Counter(type(answer) for answer in answers) == {Claimed: 7, tuple: 9}
    (member,) = pool.members()
    assert len(member.shared_claims) == 7


def test_a_second_cleaner_that_comes_late_changes_nothing(
    pool: PoolOperator, add: Callable[..., None]
) -> None:
    add("dirty", {POOL_STATE: "dirty"})

    def overtaken(_member: object) -> None:
        """While the first wipes, an operator takes the account away from it, and it is claimed."""
        assert [
            done.outcome
            for done in pool.clean(
                "second", lambda _m: None, take_over=frozenset({"dirty"}), look=lambda _: None
            )
        ] == ["cleaned"]
        pool.claim(REQUEST)

    (done,) = pool.clean("first", overtaken)
    assert done.outcome == "overtaken"
    member = pool.member("dirty")
    assert member is not None
    assert (member.tenant, member.state) == ("acme", None)


class Seen(Connection):
    """A connection that remembers every answer."""

    def __init__(self, real: Connection) -> None:
        self._real = real
        self.answers: list[str] = []

    def call(self, method: str, path: str, **rest: Any) -> Reply:
        reply = self._real.call(method, path, **rest)
        self.answers.append(json.dumps(reply.body))
        return reply


def test_no_call_of_a_claims_life_downloads_a_byte_of_a_credential(
    target: ClusterTarget, namespace: str, free: Callable[[int], None]
) -> None:
    import base64

    free(2)
    seen = Seen(connect(target))
    pool = PoolOperator(KubernetesApi(seen, namespace, CLAIMS), namespace, PoolConfigMap(policy=Policy.CLEAN))
    claimed = pool.claim(REQUEST)
    pool.claim(REQUEST)
    pool.read(claimed.record, claimed.holder, member=claimed.secret_name)
    pool.status()
    pool.release(claimed.record, claimed.holder)
    pool.clean("cleaner", lambda _member: None)
    pool.sweep(settle_seconds=0)
    pool.flush()
    everything = "".join(seen.answers)
    assert len(seen.answers) > 15
    assert SENTINEL not in everything
    assert base64.b64encode(SENTINEL.encode()).decode() not in everything


def test_whoever_may_not_patch_secrets_is_told_so_and_leaves_nothing_behind(
    admin: DynamicClient,
    control_plane: ControlPlane,
    namespace: str,
    pool: PoolOperator,
    free: Callable[[int], None],
) -> None:
    free(1)
    every = ["get", "list", "create", "update", "delete"]
    rules = (
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": every},
    )
    grant(admin, namespace, "provisioner", rules)
    weak = PoolOperator.open(
        ClusterTarget(kubeconfig=str(control_plane.kubeconfig("provisioner"))), namespace
    )
    with pytest.raises(NotAllowed, match="cannot patch resource"):
        weak.claim(REQUEST)
    assert pool.records() == ()
    assert all(is_free(member) for member in pool.members())


def test_whoever_has_no_rights_at_all_is_told_which_one_is_missing(
    control_plane: ControlPlane, namespace: str
) -> None:
    nobody = ClusterTarget(kubeconfig=str(control_plane.kubeconfig("janitor")))
    with pytest.raises(NotAllowed, match="janitor"):
        PoolOperator.open(nobody, namespace)


def test_every_claim_release_and_refusal_leaves_an_event(
    admin: DynamicClient, namespace: str, pool: PoolOperator, free: Callable[[int], None]
) -> None:
    free(1)
    claimed = pool.claim(REQUEST)
    with pytest.raises(PoolError):
        pool.claim(ClaimRequest("other", "aws"))
    pool.release(claimed.record, "h")
    assert pool.flush(10)
    events = admin.resources.get(api_version="v1", kind="Event").get(namespace=namespace).to_dict()["items"]
    told = {(event["involvedObject"]["name"], event["reason"]) for event in events}
    assert told == {
        ("aws-00", "Claimed"),
        (CONFIG_MAP, "ClaimRefused"),
        ("aws-00", "Released"),
    }


def test_a_restored_pool_is_refused_until_recovery_binds_its_claims_again(
    admin: DynamicClient, target: ClusterTarget, namespace: str, free: Callable[[int], None]
) -> None:
    config_maps = admin.resources.get(api_version="v1", kind="ConfigMap")
    settings = {"metadata": {"name": CONFIG_MAP}, "data": PoolConfigMap().render()}
    config_maps.create(namespace=namespace, body=settings)
    free(2)
    pool = PoolOperator.open(target, namespace)
    claimed = pool.claim(REQUEST)
    assert POOL_UID in config_maps.get(name=CONFIG_MAP, namespace=namespace).to_dict()["data"]

    for name in (CONFIG_MAP, claimed.record):
        _restore(config_maps, name, namespace)
    with pytest.raises(Restored):
        PoolOperator.open(target, namespace, manager="another-process")
    assert PoolOperator.recover(target, namespace, dry_run=True).rebound == (claimed.record,)
    assert PoolOperator.recover(target, namespace).rebound == (claimed.record,)

    after = PoolOperator.open(target, namespace, manager="another-process")
    read = after.read(claimed.record, "h")
    assert read is not None
    assert (read.secret_name, read.record_uid != claimed.record_uid) == (claimed.secret_name, True)
    assert after.release(claimed.record, "h", fence=Fence(claimed.record_uid, claimed.sequence)).last


def _restore(config_maps: Any, name: str, namespace: str) -> None:
    """Delete an object and write it again from its backup: same text, new uid."""
    body = config_maps.get(name=name, namespace=namespace).to_dict()
    config_maps.delete(name=name, namespace=namespace)
    kept = {"name": name, "labels": body["metadata"].get("labels")}
    config_maps.create(namespace=namespace, body={"metadata": kept, "data": body["data"]})


def test_a_claim_carries_the_account_id_and_the_label_of_the_tenant(
    pool: PoolOperator, add: Callable[..., None]
) -> None:
    add("aws-x", annotations={ACCOUNT_ID: "111111111111"})
    claimed = pool.claim(ClaimRequest("a tenant, with=odd/characters", "aws"))
    member = pool.member("aws-x")
    assert member is not None
    assert claimed.account_id == "111111111111"
    assert (member.labels[TENANT_NAME].startswith("enc-"), CLAIM_TOKEN in member.annotations) == (True, True)
