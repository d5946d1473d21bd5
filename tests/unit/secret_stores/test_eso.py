"""Stores, reads and pushes as ESO's objects: golden manifests, and that ESO reads where our rule says."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.errors import EsoError, Problem, StoreError
from components.secret_stores.admission import Purpose, admit
from components.secret_stores.consumers import ExternalSecret, PushSecret
from components.secret_stores.convert import convert
from components.secret_stores.eso import Manifest, compile_push, compile_read, compile_store
from components.secret_stores.explain import Ready
from components.secret_stores.gathering import read_objections
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    ProviderSpec,
    SecretSelector,
    SecretStore,
)
from components.secret_stores.referent import selectors
from components.secret_stores.registry import RefRegister
from tests.support.cases import cases, table
from tests.support.stores import cluster_store, provider, ref, selector, store_in, token_spec, told

GOLDEN = Path(__file__).with_name("golden")


def golden(name: str) -> list[Manifest]:
    return list(yaml.safe_load_all((GOLDEN / f"{name}.yaml").read_text()))


def named(name: str, store: AnyStore) -> AnyStore:
    return store.model_copy(update={"name": name})


def called(name: str, of: AnyProvider) -> AnyProvider:
    return of.model_copy(update={"name": name})


def stored(store: AnyStore, of: AnyProvider | None = None, kinds: RefRegister = KINDS) -> Manifest:
    """What a store comes to: with the provider it refers to, or its embedded one."""
    meant = of or convert(store, store.spec.provider or {}, kinds)
    assert not isinstance(meant, Problem)
    return compile_store(store, meant, kinds)


# Golden manifests.


def test_a_store_on_a_provider_of_its_namespace_holds_that_provider() -> None:
    spec = {
        "url": "https://gitlab.example.com",
        "projectID": "7",
        "auth": {"SecretRef": {"accessToken": {"name": "gitlab-token", "key": "token"}}},
        "caProvider": {"type": "ConfigMap", "name": "gitlab-ca", "key": "ca.crt"},
    }
    of = called("variables", provider("GitLab", spec, "tenant-acme"))
    store = named("ci", store_in("tenant-acme", providerRef=ref(of)))
    assert [stored(store, of)] == golden("own-provider")


CLUSTER_API = called(
    "cluster-api",
    provider(
        "Kubernetes",
        {"server": {}, "remoteNamespace": "account-pool", "auth": {"serviceAccount": {"name": "reader"}}},
    ),
)


def test_stores_share_the_address_of_a_provider_and_bring_their_own_credential() -> None:
    stores = [
        named("accounts", store_in(namespace, providerRef=ref(CLUSTER_API)))
        for namespace in ("tenant-acme", "tenant-globex")
    ]
    assert [stored(store, CLUSTER_API) for store in stores] == golden("shared-endpoint")


def test_a_referent_store_keeps_its_selectors_open_and_says_all_it_says() -> None:
    spec = {
        "server": {
            "url": "https://pool.example.com",
            "caProvider": {"type": "ConfigMap", "name": "pool-ca", "key": "ca.crt", "namespace": "platform"},
        },
        "remoteNamespace": "account-pool",
        "auth": {"serviceAccount": {"name": "reader", "audiences": ["pool"]}},
    }
    of = called("cluster-api", provider("Kubernetes", spec))
    conditions: list[dict[str, Any]] = [
        {"namespaces": ["tenant-acme", "tenant-globex"]},
        {
            "namespaceRegexes": ["^team-"],
            "namespaceSelector": {
                "matchLabels": {"tier": "gold"},
                "matchExpressions": [
                    {"key": "region", "operator": "In", "values": ["eu", "us"]},
                    {"key": "legacy", "operator": "DoesNotExist"},
                ],
            },
        },
        {"namespaceSelector": {}},
    ]
    store = cluster_store(
        providerRef=ref(of),
        controller="tenants",
        retrySettings={"maxRetries": 5, "retryInterval": "10s"},
        refreshInterval=3600,
        conditions=conditions,
    )
    assert [stored(named("shared", store), of)] == golden("referent")


@cases(
    "server, written",
    table(__file__, "test_eso_is_told_where_the_clusters_own_server_is_and_what_it_is_known_by"),
)
def test_eso_is_told_where_the_clusters_own_server_is_and_what_it_is_known_by(
    server: dict[str, Any] | None, written: dict[str, Any]
) -> None:
    spec = {"auth": {"serviceAccount": {"name": "r"}}, **({} if server is None else {"server": server})}
    of = provider("Kubernetes", spec)
    for store in (cluster_store(providerRef=ref(of)), store_in("a", providerRef=ref(of))):
        own = isinstance(store, SecretStore)
        told_eso = stored(store, of)["spec"]["provider"]["kubernetes"]["server"]
        expected = {**written}
        if ca := expected.get("caProvider"):
            namespace = None if own else ca.get("namespace", "default")
            bare = {key: value for key, value in ca.items() if key != "namespace"}
            expected["caProvider"] = {**bare, **({} if namespace is None else {"namespace": namespace})}
        assert told_eso == expected


@cases(
    "name, spec, path, words",
    table(__file__, "test_what_no_back_end_serves_is_refused_by_both_and_explained"),
)
def test_what_no_back_end_serves_is_refused_by_both_and_explained(
    name: str, spec: dict[str, Any], path: str, words: str
) -> None:
    of = provider(name, spec, "a")
    store = store_in("a", providerRef=ref(of))
    (fault,) = KINDS.kind_of(of).faults(of.spec)
    assert (fault.place, words in fault.problem) == (path, True)
    with pytest.raises(EsoError) as refused:
        compile_store(store, of, KINDS)
    with pytest.raises(StoreError) as denied:
        admit(store, of, "a", {}, Purpose.READ)
    found = told(store, "a", of)
    assert found.ready is Ready.INVALID
    for said in (refused.value.problem, denied.value.problem, str(found.reason)):
        assert f"{of.key.title}: {fault.problem}" in said


def test_a_store_on_a_provider_of_one_namespace_reads_the_credential_there() -> None:
    spec = {
        "vaultUrl": "https://acme.vault.azure.net",
        "tenantId": "11111111-2222-3333-4444-555555555555",
        "authSecretRef": {
            "clientId": {"name": "vault", "key": "id"},
            "clientSecret": {"name": "vault", "key": "secret", "namespace": "platform"},
        },
    }
    of = called("vault", provider("AzureKV", spec, "platform"))
    store = cluster_store(providerRef=ref(of, namespace="platform"))
    assert [stored(named("vault", store), of)] == golden("provider-namespace")


def test_embedded_providers_get_esos_defaults() -> None:
    federation = {
        "audience": "//iam.googleapis.com/projects/7/locations/global/workloadIdentityPools/p/providers/p",
        "awsSecurityCredentials": {"region": "eu-west-1", "awsCredentialsSecretRef": {"name": "aws"}},
    }
    own = {"projectID": "acme-secrets", "auth": {"workloadIdentityFederation": federation}}
    identity = {
        "clusterName": "fleet",
        "clusterLocation": "europe-west1",
        "clusterProjectID": "fleet",
        "serviceAccountRef": {"name": "reader"},
    }
    shared = {"projectID": "shared-secrets", "auth": {"workloadIdentity": identity}}
    entries = [{"key": "greeting", "value": "hello", "version": "v1"}]
    assert [
        stored(named("google", store_in("tenant-acme", provider={"gcpsm": own}))),
        stored(named("google", cluster_store(provider={"gcpsm": shared}))),
        stored(named("example", cluster_store(provider={"fake": {"data": entries}}, conditions=[{}]))),
    ] == golden("embedded")


GOOGLE = provider("GCPSM", {"projectID": "acme-secrets"}, "tenant-acme")


def read(store: str, **given: Any) -> ExternalSecret:
    kind, _, name = store.partition("/")
    made = {"store": {"kind": kind, "name": name}, "target": given["name"], **given}
    return ExternalSecret.model_validate(made)


def push(store: str, /, **given: Any) -> PushSecret:
    kind, _, name = store.partition("/")
    made = {"namespace": "tenant-acme", "store": {"kind": kind, "name": name}, **given}
    return PushSecret.model_validate(made)


def test_reads_and_pushes_name_their_store_and_say_their_policies() -> None:
    account = read(
        "ClusterSecretStore/shared",
        namespace="tenant-globex",
        name="globex-account",
        data={"account": {"key": "azure-1", "property": "clientID"}, "all": {"key": "azure-1"}},
        template={"login": "{{ .account }}"},
    )
    password = read(
        "SecretStore/google",
        namespace="tenant-acme",
        name="password",
        target="database",
        type="acme.com/key",
        labels={"team": "a"},
        annotations={"a.b/c": "d"},
        refreshInterval="90s",
        data={"password": {"key": "database", "property": "password", "version": "3"}},
    )
    token = push(
        "SecretStore/accounts",
        name="token",
        updatePolicy="IfNotExists",
        deletionPolicy="Delete",
        data=[{"secret": "orders-db", "key": "credentials", "remoteKey": "orders", "property": "token"}],
    )
    backup = push(
        "SecretStore/google",
        name="backup",
        data=[
            {"secret": "orders-db", "key": "credentials", "remoteKey": "orders-credentials"},
            {"secret": "orders-db", "key": "uri", "remoteKey": "orders"},
        ],
    )
    assert [
        compile_read(account, CLUSTER_API, KINDS),
        compile_read(password, GOOGLE, KINDS),
        compile_push(token, CLUSTER_API, KINDS),
        compile_push(backup, GOOGLE, KINDS),
    ] == golden("consumers")


# Rows of the tables whose answer is a namespace.

IDENTITY = "auth.workloadIdentity.serviceAccountRef"


def identity(namespace: str | None) -> dict[str, Any]:
    return {"auth": {"workloadIdentity": {"serviceAccountRef": selector(namespace)}}}


def emitted(manifest: Manifest) -> dict[str, str | None]:
    """The namespaces that a manifest's selectors name."""
    [(key, spec)] = manifest["spec"]["provider"].items()
    of = KINDS.embedded(key)
    assert not isinstance(of, Problem)
    return {path: each.namespace for path, each in selectors(of.provider(None, "it", spec).spec)}


IN_A = provider("GCPSM", identity(None), "a")
IN_N = provider("GCPSM", identity(None), "n")
WIDE = provider("GCPSM", identity(None))
WIDE_B = provider("GCPSM", identity("b"))


@pytest.mark.parametrize(
    ("store", "of", "namespace"),
    [
        pytest.param(
            store_in("a", provider={"gcpsm": identity(None)}), None, "a", id="own-store-no-namespace"
        ),
        pytest.param(
            store_in("a", provider={"gcpsm": identity("a")}), None, "a", id="own-store-its-namespace"
        ),
        pytest.param(
            cluster_store(provider={"gcpsm": identity(None)}), None, None, id="cluster-store-no-namespace"
        ),
        pytest.param(
            cluster_store(provider={"gcpsm": identity("b")}), None, "b", id="a-namespace-and-no-caller"
        ),
        pytest.param(store_in("a", providerRef=ref(IN_A)), IN_A, "a", id="own-provider"),
        pytest.param(store_in("a", providerRef=ref(IN_A, namespace="a")), IN_A, "a", id="named"),
        pytest.param(store_in("a", providerRef=ref(WIDE)), WIDE, "a", id="own-store-cluster-provider"),
        pytest.param(cluster_store(providerRef=ref(WIDE)), WIDE, None, id="omitted"),
        pytest.param(cluster_store(providerRef=ref(WIDE_B)), WIDE_B, "b", id="named"),
        pytest.param(
            cluster_store(providerRef=ref(IN_N, namespace="n")), IN_N, "n", id="cluster-store-named-provider"
        ),
    ],
)
def test_a_selector_is_pinned_where_it_is_read_or_left_to_the_caller(
    store: AnyStore, of: AnyProvider | None, namespace: str | None
) -> None:
    assert emitted(stored(store, of)) == {IDENTITY: namespace}


# Rows whose answer is a refusal, by the rule or by ESO.


def kubernetes(**auth: Any) -> dict[str, Any]:
    return {"kubernetes": {"auth": auth}}


SECRET = selector(None, key="k")
PAIR = {"clientCert": SECRET, "clientKey": SECRET}
FEDERATION = {"auth": {"workloadIdentityFederation": {"credConfig": SECRET}}}
MIXED = {
    "vaultUrl": "https://a.vault.azure.net",
    "authSecretRef": {"clientId": selector("b", key="k"), "clientCertificate": SECRET},
}
ONLY_WITH = "ESO refuses it so in a ClusterSecretStore"
NEVER_READY = "ESO looks for it before anybody calls|it is not known here that ESO follows it"


def ca_spec(namespace: str | None) -> dict[str, Any]:
    return {**token_spec("a"), "caProvider": selector(namespace, type="Secret", key="ca.crt")}


@cases(
    "store, of, words",
    {
        "own-store-another-namespace": (
            store_in("a", provider={"gcpsm": identity("b")}),
            None,
            f"{IDENTITY} names",
        ),
        "GitLab": (cluster_store(provider={"gitlab": token_spec(None)}), None, ONLY_WITH),
        "cert": (cluster_store(provider=kubernetes(cert=PAIR)), None, ONLY_WITH),
        "token": (cluster_store(provider=kubernetes(token={"bearerToken": SECRET})), None, ONLY_WITH),
        "certificates-without-namespace": (
            cluster_store(provider={"gitlab": ca_spec(None)}),
            None,
            "caProvider has no namespace",
        ),
        "certificates-of-another-namespace": (
            store_in("a", provider={"gitlab": ca_spec("b")}),
            None,
            "caProvider names namespace b",
        ),
        "federation": (cluster_store(provider={"gcpsm": FEDERATION}), None, NEVER_READY),
        "authRef": (cluster_store(provider={"kubernetes": {"authRef": SECRET}}), None, NEVER_READY),
        "one-of-two-namespaces": (cluster_store(provider={"azurekv": MIXED}), None, NEVER_READY),
        "map-of-another-namespace": (
            store_in(
                "a",
                provider={
                    "gcpsm": {"auth": {"workloadIdentityFederation": {"credConfig": selector("b", key="k")}}}
                },
            ),
            None,
            "credConfig names namespace b",
        ),
        "provider-of-another-namespace": (
            store_in("a", providerRef=ref(IN_N, namespace="n")),
            IN_N,
            "namespace a only",
        ),
        "own-provider-selects-elsewhere": (
            store_in("a", providerRef=ref(IN_A)),
            provider("GCPSM", identity("b"), "a"),
            f"{IDENTITY} names namespace b",
        ),
        "named-provider-selects-elsewhere": (
            cluster_store(providerRef=ref(IN_N, namespace="n")),
            provider("GCPSM", identity("m"), "n"),
            f"{IDENTITY} names namespace m",
        ),
        "provider-of-each-caller": (cluster_store(providerRef=ref(IN_A)), IN_A, "another provider for each"),
        "referred-and-embedded": (
            store_in("a", provider={"gcpsm": {}}, providerRef=ref(IN_A)),
            IN_A,
            "both are given",
        ),
        "neither": (store_in("a"), IN_A, "neither is given"),
        "unknown-kind": (store_in("a", providerRef={**ref(IN_A), "kind": "Vaults"}), IN_A, "known are Fake"),
    },
)
def test_what_eso_would_read_elsewhere_or_not_at_all_is_refused(
    store: AnyStore, of: AnyProvider | None, words: str
) -> None:
    with pytest.raises(EsoError, match=words) as caught:
        stored(store, of)
    assert (caught.value.place, caught.value.code) == (store.title, "not-for-eso")
    assert caught.value.fix


def test_everything_in_the_way_is_told_at_once() -> None:
    spec = {
        "auth": {"SecretRef": {"accessToken": {"name": "t"}}},
        "projectID": "7",
        "caProvider": {"type": "Secret", "name": "c", "key": "k"},
    }
    with pytest.raises(EsoError) as caught:
        stored(cluster_store(provider={"gitlab": spec}, conditions=[{"namespaceRegexes": ["("]}]))
    for part in (
        "namespaceRegexes[0]",
        "caProvider has no",
        "accessToken has no",
        "accessToken names no key",
    ):
        assert part in caught.value.problem


def test_a_kind_of_ones_own_is_compiled_but_never_left_to_whoever_calls() -> None:
    kinds = RefRegister()

    @kinds.register("Many", embedded="many")
    class ManySpec(ProviderSpec):  # pyright: ignore[reportUnusedClass] - the register has it
        logins: tuple[SecretSelector, ...]
        by_region: dict[str, SecretSelector]

    spec = {"logins": [SECRET, SECRET], "byRegion": {"eu.west": SECRET}}
    own = stored(store_in("a", provider={"many": spec}), kinds=kinds)
    there = {**SECRET, "namespace": "a"}
    assert own["spec"]["provider"] == {"many": {"logins": [there, there], "byRegion": {"eu.west": there}}}
    with pytest.raises(EsoError, match=NEVER_READY):
        stored(cluster_store(provider={"many": spec}), kinds=kinds)


def test_a_refusal_shows_no_value_of_a_fake() -> None:
    of = provider("Fake", {"data": [{"key": "k", "value": "s3cr3t"}]}, "n")
    with pytest.raises(EsoError) as caught:
        stored(store_in("a", providerRef=ref(of, namespace="n")), of)
    assert "s3cr3t" not in str(caught.value)


# What ESO would ignore of reads and pushes.


@pytest.mark.parametrize("name", ["Kubernetes", "GitLab"])
def test_a_version_that_eso_would_not_look_at_is_refused(name: str) -> None:
    spec = {} if name == "Kubernetes" else token_spec(None)
    versioned = read(
        "SecretStore/s", namespace="a", name="r", data={"k": {"key": "x"}, "l": {"key": "x", "version": "2"}}
    )
    with pytest.raises(EsoError, match=r"data\.l asks for version 2 of x") as caught:
        compile_read(versioned, provider(name, spec, "a"), KINDS)
    assert caught.value.place == "ExternalSecret/a/r"


@cases("name, spec, written", table(__file__, "test_a_property_is_one_field_and_no_path"))
def test_a_property_is_one_field_and_no_path(name: str, spec: dict[str, Any], written: str) -> None:
    dotted = read("SecretStore/s", namespace="a", name="r", data={"k": {"key": "x", "property": "a.b*"}})
    manifest = compile_read(dotted, provider(name, spec, "a"), KINDS)
    assert manifest["spec"]["data"][0]["remoteRef"]["property"] == written


@cases("kind, value, words", table(__file__, "test_what_no_secret_is_called_is_refused_in_both_back_ends"))
def test_what_no_secret_is_called_is_refused_in_both_back_ends(
    kind: str, value: dict[str, str], words: str
) -> None:
    of = provider(kind, {}, "a")
    unfit = read("SecretStore/s", namespace="a", name="r", data={"k": value})
    with pytest.raises(EsoError) as caught:
        compile_read(unfit, of, KINDS)
    assert words in caught.value.problem
    assert [each.problem for each in read_objections(unfit, KINDS.kind_of(of))] == [words]


ONE = {"secret": "s", "key": "k", "remoteKey": "x"}
WITH = {**ONE, "property": "p"}
AWAY = {**WITH, "remoteNamespace": "b"}


@cases("given, elsewhere", {"provider's": (WITH, {}), "elsewhere": (AWAY, {"remoteNamespace": "b"})})
def test_the_operator_pushes_the_value_alone_to_a_secret_of_the_namespace_that_is_said(
    given: dict[str, Any], elsewhere: dict[str, str]
) -> None:
    wanted, of = push("ClusterSecretStore/s", name="p", data=[given]), provider("Kubernetes", {})
    spec = compile_push(wanted, of, KINDS, "its owner")["spec"]
    assert spec["template"]["type"] == "Opaque"
    assert spec["data"][0]["metadata"] == {
        "apiVersion": "kubernetes.external-secrets.io/v1alpha1",
        "kind": "PushSecretMetadata",
        "spec": {
            "sourceMergePolicy": "Replace",
            "annotations": {"credfleet.io/pushed-by": "its owner"},
            **elsewhere,
        },
    }


def test_the_operator_pushes_all_keys_where_no_key_is_said() -> None:
    wanted = push("SecretStore/s", name="p", data=[{"secret": "s", "remoteKey": "x"}])
    [entry] = compile_push(wanted, GOOGLE, KINDS)["spec"]["data"]
    assert entry == {"conversionStrategy": "None", "match": {"remoteRef": {"remoteKey": "x"}}}


@cases(
    "name, spec, given, words", table(__file__, "test_a_push_that_eso_would_carry_out_otherwise_is_refused")
)
def test_a_push_that_eso_would_carry_out_otherwise_is_refused(
    name: str, spec: dict[str, Any], given: dict[str, Any], words: str
) -> None:
    with pytest.raises(EsoError, match=words) as caught:
        compile_push(push("SecretStore/s", name="p", **given), provider(name, spec, "a"), KINDS)
    assert caught.value.place == "PushSecret/tenant-acme/p"


# ESO reads where our rule says, whatever the store, the provider and the caller.
