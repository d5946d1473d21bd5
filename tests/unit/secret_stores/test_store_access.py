"""What a namespace can read and write through stores, and through what; not whether anything is there."""

from components.secret_stores.access import Between, StoreAccess, find_access
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.explain import KnownObjects
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import AnyProvider, AnyStore
from tests.support.stores import cluster_store, provider, ref, selector, store_in, token_spec

ACCOUNTS = provider(
    "Kubernetes",
    {
        "remoteNamespace": "pool",
        "server": {
            "caProvider": {"type": "ConfigMap", "name": "ca", "namespace": "kube-system", "key": "ca.crt"}
        },
        "auth": {"serviceAccount": {"name": "reader"}},
    },
)
OWN = provider("GitLab", token_spec(None), "a")
FAKE = {"fake": {"data": [{"key": "k", "value": "s3cr3t"}]}}


def through(
    *stores: AnyStore, by: str = "a", providers: tuple[AnyProvider, ...] = (ACCOUNTS, OWN)
) -> list[StoreAccess]:
    namespaces = {name: {NAME_LABEL: name} for name in ("a", "b")}
    around = KnownObjects(KINDS, {each.key: each for each in providers}, namespaces)
    return [*find_access(by, stores, around)]


def test_each_caller_reaches_a_store_of_the_whole_cluster_by_an_account_of_its_own() -> None:
    store = cluster_store(
        providerRef=ref(ACCOUNTS), conditions=[{"namespaces": ["b"]}, {"namespaceRegexes": ["^."]}]
    )
    (of_a,), (of_b,) = through(store), through(store, by="b")
    assert of_a == StoreAccess(
        "ClusterSecretStore/store",
        "Kubernetes/it",
        reads=True,
        writes=True,
        admitted_by=("conditions[1]",),
        where={"server.url": "kubernetes.default", "remoteNamespace": "pool"},
        between=(
            Between("server.caProvider", "ConfigMap", "kube-system", "ca", "ca.crt"),
            Between("auth.serviceAccount", "ServiceAccount", "a", "reader", None),
        ),
    )
    assert of_b.admitted_by == ("conditions[0]", "conditions[1]")
    assert of_b.between[1] == Between("auth.serviceAccount", "ServiceAccount", "b", "reader", None)


def test_a_store_of_ones_own_leads_through_a_secret_of_its_namespace_and_only_reads() -> None:
    (found,) = through(store_in("a", providerRef=ref(OWN)))
    assert (found.reads, found.writes, found.admitted_by) == (True, False, ())
    assert found.where == {"projectID": "7"}
    assert [str(each) for each in found.between] == ["Secret a/login"]


def test_a_store_that_is_only_written_is_reached_for_pushes_only() -> None:
    spec = {
        "appID": 1,
        "installationID": 2,
        "organization": "o",
        "auth": {"privateKey": selector(None, key="k")},
    }
    (found,) = through(store_in("a", provider={"github": spec}))
    assert (found.reads, found.writes) == (False, True)


def test_a_store_of_the_callers_own_provider_is_reached_by_those_who_have_one() -> None:
    store = cluster_store(providerRef=ref(OWN))
    assert [each.provider for each in through(store)] == ["GitLab/a/it"]
    assert through(store, by="b") == []


def test_stores_of_others_and_what_nobody_can_use_are_passed_over() -> None:
    assert (
        through(
            store_in("b", provider=FAKE),
            cluster_store(provider=FAKE, conditions=[{"namespaces": ["b"]}]),
            store_in(
                "a",
                provider={
                    "gitlab": {"projectID": "7", "auth": {"SecretRef": {"accessToken": selector("b")}}}
                },
            ),
            store_in("a", providerRef={**ref(OWN), "name": "none"}),
        )
        == []
    )


def test_values_that_a_provider_lists_are_no_place() -> None:
    (found,) = through(store_in("a", provider=FAKE))
    assert "s3cr3t" not in repr(found)
