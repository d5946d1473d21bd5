"""From which namespace each selector of a store reads, and that nobody is led to one not meant for him."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import Problem, StoreError
from components.secret_stores.admission import Purpose, admit
from components.secret_stores.explain import Ready
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import (
    AnyProvider,
    AnyStore,
    ClusterSecretStore,
    ProviderSpec,
    SecretSelector,
    SecretStore,
)
from components.secret_stores.referent import resolve, selector_objections, store_objections
from components.secret_stores.registry import RefRegister
from tests.support.cases import cases, table
from tests.support.stores import PROVIDERS, cluster_store, provider, ref, selector, store_in, token_spec, told

TOKEN = "auth.SecretRef.accessToken"


def embedded(namespace: str | None) -> dict[str, Any]:
    return {"gitlab": token_spec(namespace)}


def ca_spec(namespace: str | None) -> dict[str, Any]:
    return {**token_spec("a"), "caProvider": selector(namespace, type="Secret", key="ca.crt")}


def wide(spec: dict[str, Any]) -> AnyProvider:
    return provider("GitLab", spec)


def test_a_store_of_another_namespace_is_never_looked_up() -> None:
    answer = told(store_in("a", provider=embedded(None)), "b")
    assert (answer.admitted, answer.ready) == (False, Ready.INVALID)
    assert answer.selectors == {}


@cases(
    "store, caller, read, referent",
    {
        "own-store-no-namespace": (store_in("a", provider=embedded(None)), "a", {TOKEN: "a"}, False),
        "own-store-its-namespace": (store_in("a", provider=embedded("a")), "a", {TOKEN: "a"}, False),
        "cluster-store-no-namespace": (cluster_store(provider=embedded(None)), "a", {TOKEN: "a"}, True),
        "cluster-store-a-namespace": (cluster_store(provider=embedded("b")), "a", {TOKEN: "b"}, False),
        "cluster-store-another-caller": (cluster_store(provider=embedded(None)), "b", {TOKEN: "b"}, True),
        "a-namespace-and-no-caller": (cluster_store(provider=embedded("b")), "", {TOKEN: "b"}, False),
    },
)
def test_an_embedded_selector_is_read_where_the_rule_says(
    store: SecretStore | ClusterSecretStore, caller: str, read: dict[str, str], referent: bool
) -> None:
    answer = told(store, caller)
    assert (answer.ready, answer.selectors, answer.referent) == (Ready.READY, read, referent)
    assert answer.reason is None


@cases("block, read", table(__file__, "test_without_a_caller_a_referent_store_stays_unknown"))
def test_without_a_caller_a_referent_store_stays_unknown(block: dict[str, Any], read: dict[str, str]) -> None:
    answer = told(cluster_store(provider=block), "")
    assert (answer.ready, answer.admitted, answer.referent) == (Ready.UNKNOWN, True, True)
    assert answer.selectors == read


def refused_at_run_time(store: AnyStore, known: AnyProvider | None) -> str:
    """What the direct back end says, before anybody is asked."""
    with pytest.raises(StoreError) as caught:
        admit(store, known, "a", {}, Purpose.READ)
    assert (caught.value.code, caught.value.place) == ("refused", store.title)
    return f"{caught.value.problem} {caught.value.fix}"


@cases(
    "store, path",
    {
        "own-store-another-namespace": (store_in("a", provider=embedded("b")), TOKEN),
        "certificates-without-namespace": (cluster_store(provider={"gitlab": ca_spec(None)}), "caProvider"),
        "certificates-of-another-namespace": (store_in("a", provider={"gitlab": ca_spec("b")}), "caProvider"),
        "map-of-another-namespace": (
            store_in(
                "a",
                provider={
                    "gcpsm": {"auth": {"workloadIdentityFederation": {"credConfig": selector("b", key="c")}}}
                },
            ),
            "auth.workloadIdentityFederation.credConfig",
        ),
    },
)
def test_a_selector_out_of_reach_is_refused_with_its_path(
    store: SecretStore | ClusterSecretStore, path: str
) -> None:
    answer = told(store, "a")
    assert (answer.ready, answer.admitted, answer.selectors) == (Ready.INVALID, False, {})
    assert f"{answer.provider}: {path} " in (answer.reason or "")
    assert f"{answer.provider}: {path} " in refused_at_run_time(store, None)


def strict_kinds() -> RefRegister:
    kinds = RefRegister()

    @kinds.register("Strict", embedded="strict", strict=True)
    class StrictSpec(ProviderSpec):  # pyright: ignore[reportUnusedClass] - the register has it
        login: SecretSelector

    return kinds


@pytest.mark.parametrize("caller", ["", "a"])
def test_a_kind_may_insist_on_a_namespace_in_stores_of_the_whole_cluster(caller: str) -> None:
    loose = cluster_store(provider={"strict": {"login": selector(None)}})
    pinned = cluster_store(provider={"strict": {"login": selector("b")}})
    assert told(loose, caller, kinds=strict_kinds()).ready is Ready.INVALID
    assert told(pinned, caller, kinds=strict_kinds()).selectors == {"login": "b"}


IN_A = provider("GitLab", token_spec(None), "a")
IN_N = provider("GitLab", token_spec(None), "n")
WIDE = wide(token_spec(None))
WIDE_B = wide(token_spec("b"))


@cases(
    "store, known, caller, title, read",
    {
        "own-provider": (store_in("a", providerRef=ref(IN_A)), IN_A, "a", "GitLab/a/it", "a"),
        "named": (store_in("a", providerRef=ref(IN_A, namespace="a")), IN_A, "a", "GitLab/a/it", "a"),
        "own-store-cluster-provider": (store_in("a", providerRef=ref(WIDE)), WIDE, "a", "GitLab/it", "a"),
        "omitted": (cluster_store(providerRef=ref(WIDE)), WIDE, "a", "GitLab/it", "a"),
        "selects-a-namespace": (cluster_store(providerRef=ref(WIDE_B)), WIDE_B, "a", "GitLab/it", "b"),
        "cluster-store-named-provider": (
            cluster_store(providerRef=ref(IN_N, namespace="n")),
            IN_N,
            "a",
            "GitLab/n/it",
            "n",
        ),
        "provider-of-the-caller": (cluster_store(providerRef=ref(IN_A)), IN_A, "a", "GitLab/a/it", "a"),
    },
)
def test_a_referred_provider_is_read_where_the_rule_says(
    store: SecretStore | ClusterSecretStore, known: AnyProvider, caller: str, title: str, read: str
) -> None:
    answer = told(store, caller, known)
    assert (answer.ready, answer.provider, answer.selectors) == (Ready.READY, title, {TOKEN: read})


@cases(
    "store, known, words",
    {
        "provider-of-another-namespace": (
            store_in("a", providerRef=ref(IN_N, namespace="n")),
            IN_N,
            "namespace a only",
        ),
        "own-provider-selects-elsewhere": (
            store_in("a", providerRef=ref(IN_A)),
            provider("GitLab", token_spec("b"), "a"),
            f"{TOKEN} names namespace b",
        ),
        "elsewhere": (store_in("a", providerRef=ref(WIDE)), WIDE_B, f"{TOKEN} names namespace b"),
        "named-provider-selects-elsewhere": (
            cluster_store(providerRef=ref(IN_N, namespace="n")),
            provider("GitLab", token_spec("m"), "n"),
            f"{TOKEN} names namespace m",
        ),
        "referred-and-embedded": (
            store_in("a", provider=embedded(None), providerRef=ref(IN_A)),
            IN_A,
            "both are given",
        ),
        "neither": (store_in("a"), IN_A, "neither is given"),
        "no-key": (store_in("a", provider={}), IN_A, "given: none"),
        "two-keys": (
            store_in("a", provider={"fake": {"data": []}, "gitlab": {}}),
            IN_A,
            "given: fake, gitlab",
        ),
        "unknown-kind": (
            store_in("a", providerRef={"apiVersion": PROVIDERS, "kind": "Gitlab", "name": "it"}),
            IN_A,
            "did you mean GitLab?",
        ),
        "embedded": (store_in("a", provider={"vaults": {}}), IN_A, "fake, kubernetes, gcpsm"),
    },
)
def test_what_the_rule_rejects_is_refused_with_the_reason(
    store: SecretStore | ClusterSecretStore, known: AnyProvider, words: str
) -> None:
    answer = told(store, "a", known)
    assert (answer.ready, answer.admitted) == (Ready.INVALID, False)
    assert words in (answer.reason or "")
    assert words in refused_at_run_time(store, known)


def test_a_provider_of_the_callers_namespace_is_not_judged_before_anybody_calls() -> None:
    answer = told(cluster_store(providerRef=ref(IN_A)), "", IN_A)
    assert (answer.ready, answer.provider, answer.referent) == (Ready.UNKNOWN, None, True)


def test_a_provider_that_is_not_there_is_told_with_the_nearest_one() -> None:
    store = store_in("a", providerRef={**ref(IN_A), "name": "itt"})
    assert "did you mean GitLab/a/it?" in (told(store, "a", IN_A).reason or "")


def test_a_reference_to_a_provider_of_the_whole_cluster_takes_no_namespace() -> None:
    store = cluster_store(providerRef=ref(WIDE, namespace="a"))
    assert told(store, "a", WIDE).ready is Ready.INVALID


def test_a_kind_of_ones_own_may_keep_selectors_in_lists_and_maps() -> None:
    kinds = RefRegister()

    @kinds.register("Many", embedded="many")
    class ManySpec(ProviderSpec):  # pyright: ignore[reportUnusedClass] - the register has it
        logins: tuple[SecretSelector, ...]
        by_region: dict[str, SecretSelector]

    spec = {"logins": [selector(None), selector(None)], "byRegion": {"eu": selector(None)}}
    store = store_in("a", provider={"many": spec})
    answer = told(store, "a", kinds=kinds)
    assert answer.selectors == {"logins[0]": "a", "logins[1]": "a", "byRegion.eu": "a"}


NAMESPACES = st.sampled_from(["a", "b", "n"])
MAYBE = st.none() | NAMESPACES


@given(store_namespace=MAYBE, of=MAYBE, token=MAYBE, ca=MAYBE, caller=NAMESPACES)
def test_admission_and_resolution_refuse_the_same(
    store_namespace: str | None, of: str | None, token: str | None, ca: str | None, caller: str
) -> None:
    spec = {**token_spec(token), "caProvider": selector(ca, type="Secret")}
    known = provider("GitLab", spec, of)
    reference = ref(known, namespace=of)
    store = (
        cluster_store(providerRef=reference)
        if store_namespace is None
        else store_in(store_namespace, providerRef=reference)
    )
    if any(store_objections(store, KINDS)):
        return  # the provider is never reached
    admitted = not any(selector_objections(store, known, KINDS))
    resolved = resolve(store, known, store_namespace or caller, KINDS)
    assert admitted == (not isinstance(resolved, Problem))


@given(store_namespace=MAYBE, of=MAYBE, token=MAYBE, caller=NAMESPACES)
def test_nobody_is_led_to_a_namespace_that_neither_is_his_nor_was_named_by_an_owner(
    store_namespace: str | None, of: str | None, token: str | None, caller: str
) -> None:
    known = provider("GitLab", token_spec(token), of)
    reference = ref(known, namespace=of)
    store = (
        cluster_store(providerRef=reference)
        if store_namespace is None
        else store_in(store_namespace, providerRef=reference)
    )
    answer = told(store, caller, known)
    owners = {caller} if of is None else {of}
    if store_namespace is None and of is None and token is not None:
        owners.add(token)
    assert set(answer.selectors.values()) <= owners
