"""What External Secrets Operator demands of a store is told by explain, the configuration and the program."""

from __future__ import annotations

from typing import Any

import pytest

from components.errors import EsoError, Problem
from components.secret_stores.convert import convert
from components.secret_stores.eso import compile_store
from components.secret_stores.explain import KnownObjects, Ready, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import AnyStore
from tests.support.cases import cases, table
from tests.support.stores import store_in
from tests.unit.test_settings_secret_stores import problems, stores

IN_FILES = KnownObjects(KINDS, {}, {}, as_they_stand=True)
IN_THE_STACK = KnownObjects(KINDS, {}, {}, by_eso=True)


def compiled(store: AnyStore) -> None:
    provider = convert(store, store.spec.provider or {}, KINDS)
    assert not isinstance(provider, Problem)
    compile_store(store, provider, KINDS)


@cases("key, spec, words", table(__file__, "test_what_the_operator_demands_is_told_before_it_refuses"))
def test_what_the_operator_demands_is_told_before_it_refuses(key: str, spec: Any, words: str) -> None:
    store = store_in("a", provider={key: spec})
    for around in (IN_FILES, IN_THE_STACK):
        found = explain(store, "a", around)
        assert (found.ready, words in str(found.reason)) == (Ready.INVALID, True), found.reason
    with pytest.raises(EsoError) as caught:
        compiled(store)
    assert words in str(caught.value)
    read = {"namespace": "tenant-acme", "store": "it", "backend": "eso", "data": {"k": {"key": "x"}}}
    embedded = stores(stores__it={"namespace": "tenant-acme", "provider": {key: spec}}, reads__it=read)
    own = {"kind": store_kind(key), "namespace": "tenant-acme", "spec": spec}
    apart = stores(
        providers__its=own, stores__it={"namespace": "tenant-acme", "providerRef": "its"}, reads__it=read
    )
    for section in (embedded, apart):
        assert any(words in str(each) for each in problems(section))


def store_kind(key: str) -> str:
    kind = KINDS.embedded(key)
    assert not isinstance(kind, Problem)
    return kind.name


@cases("key, spec", table(__file__, "test_certificates_of_a_store_of_a_namespace_are_in_none"))
def test_certificates_of_a_store_of_a_namespace_are_in_none(key: str, spec: Any) -> None:
    store = store_in("a", provider={key: spec})
    found = explain(store, "a", IN_FILES)
    assert (found.ready, "leave the namespace out" in str(found.reason)) == (Ready.INVALID, True)
    assert explain(store, "a", IN_THE_STACK).ready is Ready.READY
    compiled(store)


@pytest.mark.parametrize("block", [{"vault": {"server": "https://v"}}, {"gcpsm": {}}])
def test_what_only_the_cluster_knows_is_neither_ready_nor_invalid(block: dict[str, Any]) -> None:
    for around in (IN_FILES, IN_THE_STACK):
        found = explain(store_in("a", provider=block), "a", around)
        assert (found.ready, found.undecided) == (Ready.UNKNOWN, True)
    compiled(store_in("a", provider=block))
