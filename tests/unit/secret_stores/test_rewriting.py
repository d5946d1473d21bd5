"""Stores with their providers embedded or apart: there and back is no change, and what has no other form."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from components.errors import Problem
from components.secret_stores.kinds import KINDS
from components.secret_stores.rewriting import ESO, with_blocks, with_references
from tests.support.cases import cases, table
from tests.support.stores import CLUSTER_PROVIDERS, PROVIDERS, token_spec

Documents = list[dict[str, Any]]

NAMES = st.sampled_from(["vault", "ci", "x.y"])
NAMESPACES = st.sampled_from(["a", "b", None])
SPECS = st.sampled_from(
    [
        {"gitlab": token_spec(None)},
        {"gitlab": token_spec("b")},
        {"kubernetes": {"remoteNamespace": "pool", "auth": {"serviceAccount": {"name": "reader"}}}},
        {"gcpsm": {}},
        {"fake": {"data": [{"key": "k", "value": "v", "version": "1"}]}},
        {
            "azurekv": {
                "vaultUrl": "https://a.vault.azure.net",
                "authSecretRef": {"clientId": {"name": "login"}},
            }
        },
    ]
)
MORE = st.fixed_dictionaries(
    {},
    optional={
        "refreshInterval": st.just(3600),
        "controller": st.just("x"),
        "retrySettings": st.just({"maxRetries": 2}),
    },
)


@st.composite
def stores(draw: st.DrawFn) -> dict[str, Any]:
    """One store as ESO has it, its provider between whatever else its spec says."""
    namespace = draw(NAMESPACES)
    before, after = draw(MORE), draw(MORE)
    conditions = {} if namespace else draw(st.sampled_from([{}, {"conditions": [{"namespaces": ["a"]}]}]))
    metadata = {"name": draw(NAMES), **({"namespace": namespace} if namespace else {})}
    labels = draw(st.sampled_from([{}, {"labels": {"team": "t"}}]))
    return {
        "apiVersion": ESO,
        "kind": "SecretStore" if namespace else "ClusterSecretStore",
        "metadata": {**metadata, **labels},
        "spec": {**before, "provider": draw(SPECS), **after, **conditions},
        **draw(st.sampled_from([{}, {"status": {"capabilities": "ReadOnly"}}])),
    }


def named(document: dict[str, Any]) -> tuple[Any, ...]:
    return (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"])


OTHER = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"tier": "gold"}}}
CORPUS = st.lists(stores(), max_size=5, unique_by=named).map(lambda found: [OTHER, *found])


@given(CORPUS)
def test_there_and_back_again_is_no_change(documents: Documents) -> None:
    apart = [*with_references(documents, KINDS)]
    assert not any(isinstance(each, Problem) or "provider" in each.get("spec", {}) for each in apart)
    assert len(apart) == 2 * len(documents) - 1
    back = [*with_blocks(sound(apart), KINDS)]
    assert back == documents
    assert [[*each.get("spec", {})] for each in sound(back)] == [
        [*each.get("spec", {})] for each in documents
    ]
    assert [*with_references(sound(back), KINDS)] == apart


def sound(told: list[Any]) -> Documents:
    assert not any(isinstance(each, Problem) for each in told)
    return told


def store(namespace: str | None, reference: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "s", **({"namespace": namespace} if namespace else {})}
    kind = "SecretStore" if namespace else "ClusterSecretStore"
    return {"apiVersion": ESO, "kind": kind, "metadata": metadata, "spec": {"providerRef": reference}}


def provider(namespace: str | None, **metadata: Any) -> dict[str, Any]:
    where = {"name": "p", **({"namespace": namespace} if namespace else {}), **metadata}
    version = PROVIDERS if namespace else CLUSTER_PROVIDERS
    return {"apiVersion": version, "kind": "GitLab", "metadata": where, "spec": token_spec(None)}


OWN = {"apiVersion": PROVIDERS, "kind": "GitLab", "name": "p"}
WIDE = {**OWN, "apiVersion": CLUSTER_PROVIDERS}


@cases("one, its, embedded", table(__file__, "test_a_provider_is_written_into_the_store_as_it_is"))
def test_a_provider_is_written_into_the_store_as_it_is(
    one: dict[str, Any], its: dict[str, Any], embedded: dict[str, Any]
) -> None:
    (found,) = sound([*with_blocks([one, its], KINDS)])
    assert found["spec"] == {"provider": {"gitlab": embedded}}


def test_selectors_of_a_namespaces_provider_name_it_in_a_store_of_the_whole_cluster() -> None:
    (found,) = sound([*with_blocks([store(None, {**OWN, "namespace": "a"}), provider("a")], KINDS)])
    login = found["spec"]["provider"]["gitlab"]["auth"]["SecretRef"]["accessToken"]
    assert login == {"name": "login", "namespace": "a", "key": "token"}


def test_a_provider_stays_that_no_store_refers_to_or_that_says_more_than_a_store_does() -> None:
    documents = [provider("b"), provider("a", labels={"team": "t"}), store("a", OWN)]
    assert sound([*with_blocks(documents, KINDS)])[:2] == documents[:2]


@cases("documents, problem", table(__file__, "test_what_cannot_be_embedded_is_told"))
def test_what_cannot_be_embedded_is_told(documents: Documents, problem: str) -> None:
    (told,) = [each for each in with_blocks(documents, KINDS) if isinstance(each, Problem)]
    assert problem in told.problem


@cases("block, problem", table(__file__, "test_what_cannot_be_apart_is_told"))
def test_what_cannot_be_apart_is_told(block: dict[str, Any], problem: str) -> None:
    document = {**store("a", {}), "spec": {"provider": block}}
    (told,) = with_references([document], KINDS)
    assert isinstance(told, Problem)
    assert problem in told.problem


def test_a_provider_of_the_name_is_never_taken_for_the_stores() -> None:
    document = {**store("a", {}), "spec": {"provider": {"gitlab": token_spec(None)}}}
    taken = {**provider("a"), "metadata": {"name": "s", "namespace": "a"}}
    (told,) = [each for each in with_references([document, taken], KINDS) if isinstance(each, Problem)]
    assert "GitLab/a/s already" in told.problem
