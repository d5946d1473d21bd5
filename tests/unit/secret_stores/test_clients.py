"""The clients of a process: who shares one, who never does, and when another is made."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pulumi.dynamic import Config, ConfigureRequest

from components.secret_stores.admission import Purpose, admit
from components.secret_stores.clients.client import SecretsClient
from components.secret_stores.clients.fake import FakeClient
from components.secret_stores.direct import CLIENTS, ClientKey, Clients, StackTarget, client_of
from components.secret_stores.model import AnyStore, ProviderSpec, SecretSelector
from components.secret_stores.provider import SecretPushProvider
from components.secret_stores.registry import RefRegister
from components.secret_stores.specs import FakeSpec
from tests.support.stores import cluster_store, provider, ref, selector, store_in

SPEC: dict[str, Any] = {"login": selector(None)}


def new_client() -> SecretsClient:
    return FakeClient("it", FakeSpec(data=()))


def kinds(*, by_caller: bool = False) -> RefRegister:
    """A register with one kind that has one selector."""
    known = RefRegister()

    @known.register("Counted", embedded="counted", client=lambda _: new_client(), by_caller=by_caller)
    class CountedSpec(ProviderSpec):  # pyright: ignore[reportUnusedClass] - the register has it
        login: SecretSelector
        url: str = ""

    return known


def found(
    clients: Clients, store: AnyStore, caller: str, known: RefRegister, spec: dict[str, Any] = SPEC
) -> SecretsClient:
    of = provider("Counted", spec, kinds=known)
    use = admit(store, None if store.spec.provider else of, caller, {}, Purpose.PUSH, kinds=known)
    return client_of(use, StackTarget(), Purpose.PUSH, clients)


def shared(known: RefRegister, name: str = "store") -> AnyStore:
    of = provider("Counted", SPEC, kinds=known)
    return cluster_store(providerRef=ref(of)).model_copy(update={"name": name})


def test_two_stores_of_one_provider_and_one_namespace_share_a_client() -> None:
    known, clients = kinds(), Clients()
    own = store_in("a", providerRef=ref(provider("Counted", SPEC, kinds=known)))
    first = found(clients, shared(known, "one"), "a", known)
    assert found(clients, shared(known, "two"), "a", known) is first
    assert found(clients, own, "a", known) is first


def test_two_callers_of_a_referent_store_never_share_a_client() -> None:
    known, clients = kinds(), Clients()
    first = found(clients, shared(known), "a", known)
    assert found(clients, shared(known), "b", known) is not first
    assert found(clients, shared(known), "a", known) is first


@pytest.mark.parametrize(("by_caller", "count"), [(False, 1), (True, 2)])
def test_callers_share_a_client_that_reads_the_same_unless_its_kind_uses_the_caller_itself(
    *, by_caller: bool, count: int
) -> None:
    known, clients = kinds(by_caller=by_caller), Clients()
    for caller in ("a", "b"):
        found(clients, shared(known), caller, known, {"login": selector("c")})
    assert len(clients) == count


def test_an_edited_provider_gets_a_new_client_and_those_of_all_callers_are_let_go() -> None:
    known, clients = kinds(), Clients()
    old = [found(clients, shared(known), caller, known) for caller in ("a", "b")]
    assert found(clients, shared(known), "a", known, {**SPEC, "url": "https://elsewhere"}) not in old
    assert len(clients) == 1


KEY = ClientKey("here", provider("Fake", {"data": []}).key, "digest")


def test_threads_that_ask_at_once_get_one_client_of_a_key_and_keys_do_not_wait_for_each_other() -> None:
    clients, made, both = Clients(), list[SecretsClient](), Barrier(2, timeout=20)

    def make() -> SecretsClient:
        both.wait()  # passes only while the other key's client is being made, too
        made.append(new_client())
        return made[-1]

    keys = [KEY, ClientKey("here", KEY.provider, "another")] * 4
    with ThreadPoolExecutor(8) as pool:
        got = [*pool.map(partial(clients.get, edition="1", make=make), keys)]
    assert len(made) == 2
    assert (got[::2], got[1::2]) == ([got[0]] * 4, [got[1]] * 4)


def test_a_client_that_could_not_be_made_is_not_kept_and_the_next_call_tries_again() -> None:
    clients = Clients()

    def fail() -> SecretsClient:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        clients.get(KEY, "1", fail)
    assert len(clients) == 0
    assert isinstance(clients.get(KEY, "1", new_client), FakeClient)


def test_a_client_grows_old_so_that_a_rotated_credential_is_read_again() -> None:
    now = [0.0]
    clients = Clients(clock=lambda: now[0])
    first = clients.get(KEY, "1", new_client)
    now[0] = 299.0
    assert clients.get(KEY, "1", new_client) is first
    now[0] = 300.0
    assert clients.get(KEY, "1", new_client) is not first


def test_a_dynamic_provider_that_has_used_a_client_holds_none(tmp_path: Path) -> None:
    pushes = SecretPushProvider()
    config = Config({"credfleet:cluster": json.dumps({"kubeconfig": str(tmp_path / "none")})}, "credfleet")
    pushes.configure(ConfigureRequest(config))
    entry = {"secret": "db", "key": "k", "remoteKey": "r"}
    store = {"namespace": "a", "name": "lent", "spec": {"provider": {"fake": {"data": []}}}}
    push = {"name": "it", "store": {"name": "lent"}, "data": [entry]}
    before = len(CLIENTS)
    told = pushes.check(
        {}, {"namespace": "a", "owner": "o", "push": push, "store": store, "provider": None, "labels": {}}
    )
    assert told.failures == []
    assert (len(CLIENTS), vars(pushes)) == (before + 1, {"_config": config})
