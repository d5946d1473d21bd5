"""The cache of clients: what is shared, what never is, and when a client goes."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from pulumi.dynamic import Config, ConfigureRequest

from components.secret_stores.admission import Purpose, StoreUse, admit
from components.secret_stores.client_manager import ClientKey, ClientManager
from components.secret_stores.clients.client import Kept, Place, SecretsClient, Validity, Value
from components.secret_stores.consumers import RemoteRef
from components.secret_stores.direct import CLIENTS, StackTarget, lent_client
from components.secret_stores.model import AnyStore, ProviderSpec, SecretSelector
from components.secret_stores.provider import SecretPushProvider
from components.secret_stores.registry import RefRegister
from tests.support.stores import cluster_store, kind, provider, ref, selector, store_in


class StubClient:
    """Counts how often it is closed."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.closed = 0
        self._fault = fault

    def validate(self) -> Validity:
        return Validity.READY

    def read(self, ref: RemoteRef) -> Value | None:
        raise NotImplementedError

    def look(self, place: Place, owner: str) -> Kept | None:
        raise NotImplementedError

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        raise NotImplementedError

    def remove(self, place: Place, seen: Kept) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1
        if self._fault is not None:
            raise self._fault


class Clock:
    """A clock that is set by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


SPEC: dict[str, Any] = {"login": selector(None)}


def kinds(*, by_caller: bool = False) -> RefRegister:
    """A register with one kind that has one selector, and counts nothing."""
    known = RefRegister()

    @known.register("Counted", embedded="counted", client=lambda _: StubClient(), by_caller=by_caller)
    class CountedSpec(ProviderSpec):  # pyright: ignore[reportUnusedClass] - the register has it
        login: SecretSelector
        url: str = ""

    return known


def lent(
    manager: ClientManager, store: AnyStore, caller: str, known: RefRegister, spec: dict[str, Any] = SPEC
) -> SecretsClient:
    """Lend a client for a moment, and give it to be compared."""
    of = provider("Counted", spec, kinds=known)
    given = None if store.spec.provider else of
    use = admit(StoreUse(store, given, caller, {}, Purpose.PUSH), known)
    with lent_client(use, StackTarget(), Purpose.PUSH, manager) as client:
        return client


def shared(known: RefRegister, name: str = "store") -> AnyStore:
    of = provider("Counted", SPEC, kinds=known)
    return cluster_store(providerRef=ref(of)).model_copy(update={"name": name})


def test_two_stores_of_one_provider_and_one_namespace_share_a_client() -> None:
    known, manager = kinds(), ClientManager()
    own = store_in("a", providerRef=ref(provider("Counted", SPEC, kinds=known)))
    first = lent(manager, shared(known, "one"), "a", known)
    assert lent(manager, shared(known, "two"), "a", known) is first
    assert lent(manager, own, "a", known) is first
    assert len(manager) == 1


def test_two_callers_of_a_referent_store_never_share_a_client() -> None:
    known, manager = kinds(), ClientManager()
    first = lent(manager, shared(known), "a", known)
    second = lent(manager, shared(known), "b", known)
    assert first is not second
    assert lent(manager, shared(known), "a", known) is first


@pytest.mark.parametrize(("by_caller", "clients"), [(False, 1), (True, 2)])
def test_callers_share_a_client_that_reads_the_same_unless_its_kind_uses_the_caller_itself(
    *, by_caller: bool, clients: int
) -> None:
    known, manager = kinds(by_caller=by_caller), ClientManager()
    pinned = {"login": selector("c")}
    for caller in ("a", "b"):
        lent(manager, shared(known), caller, known, pinned)
    assert len(manager) == clients


def test_an_edited_provider_gets_a_new_client_and_the_old_ones_of_all_callers_are_closed() -> None:
    known, manager = kinds(), ClientManager()
    old = [lent(manager, shared(known), caller, known) for caller in ("a", "b")]
    new = lent(manager, shared(known), "a", known, {**SPEC, "url": "https://elsewhere"})
    assert new not in old
    assert [closed(each) for each in old] == [1, 1]
    assert len(manager) == 1


def closed(client: SecretsClient) -> int:
    assert isinstance(client, StubClient)
    return client.closed


KEY = ClientKey("here", provider("Fake", {"data": []}).key, "digest")


def test_eight_threads_that_ask_at_once_get_the_one_client_that_was_made() -> None:
    manager, start, made = ClientManager(), Barrier(8), list[StubClient]()

    def make() -> SecretsClient:
        made.append(StubClient())
        return made[-1]

    def ask(_: int) -> SecretsClient:
        start.wait()
        with manager.lend(KEY, "1", make) as client:
            return client

    with ThreadPoolExecutor(8) as pool:
        got = [*pool.map(ask, range(8))]
    assert got == [made[0]] * 8
    assert len(made) == 1


def test_threads_with_different_keys_do_not_wait_for_each_other() -> None:
    manager, both = ClientManager(), Barrier(2, timeout=20)

    def make() -> SecretsClient:
        both.wait()  # passes only while the other key's client is being made, too
        return StubClient()

    def ask(caller: str) -> SecretsClient:
        with manager.lend(ClientKey("here", KEY.provider, caller), "1", make) as client:
            return client

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(ask, ["a", "b"])
    assert one is not other


def test_a_client_that_could_not_be_made_is_not_kept_and_the_next_call_tries_again() -> None:
    manager = ClientManager()

    def fail() -> SecretsClient:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), manager.lend(KEY, "1", fail):
        pytest.fail("there is no client")
    assert len(manager) == 0
    with manager.lend(KEY, "1", StubClient) as client:
        assert closed(client) == 0


def test_who_waited_for_a_client_that_could_not_be_made_makes_it() -> None:
    manager, began, waiting = ClientManager(), Event(), Barrier(2, timeout=20)
    outcomes = iter([ValueError("no"), None])

    def make() -> SecretsClient:
        fault = next(outcomes)
        if fault is not None:
            began.set()
            waiting.wait()
            raise fault
        return StubClient()

    def first() -> str:
        try:
            with manager.lend(KEY, "1", make):
                return "made"
        except ValueError:
            return "failed"

    def second() -> str:
        began.wait()
        waiting.wait()
        with manager.lend(KEY, "1", make):
            return "made"

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(first), pool.submit(second)]
    assert [each.result() for each in running] == ["failed", "made"]


def test_closing_closes_each_once_tells_every_fault_and_leaves_nothing() -> None:
    manager = ClientManager()
    clients = [StubClient(OSError("one")), StubClient(), StubClient(OSError("three"))]
    for number, client in enumerate(clients):
        with manager.lend(ClientKey("here", KEY.provider, str(number)), "1", as_is(client)):
            pass
    with pytest.raises(ExceptionGroup) as caught:
        manager.close()
    assert [str(each) for each in caught.value.exceptions] == ["one", "three"]
    manager.close()
    assert ([each.closed for each in clients], len(manager)) == ([1, 1, 1], 0)


def as_is(client: StubClient) -> Callable[[], SecretsClient]:
    return lambda: client


def test_leaving_the_block_closes_and_a_closed_manager_lends_nothing() -> None:
    client = StubClient()
    with ClientManager() as manager, manager.lend(KEY, "1", as_is(client)):
        pass
    assert client.closed == 1
    with pytest.raises(RuntimeError), manager.lend(KEY, "1", StubClient):
        pytest.fail("nothing is lent")


def test_a_client_grows_old_so_that_a_rotated_credential_is_read_again() -> None:
    clock = Clock()
    manager = ClientManager(max_age=300, clock=clock)
    with manager.lend(KEY, "1", StubClient) as first:
        pass
    clock.now = 299.0
    with manager.lend(KEY, "1", StubClient) as second:
        assert second is first
    clock.now = 300.0
    with manager.lend(KEY, "1", StubClient) as third:
        assert third is not first
    assert (closed(first), closed(third)) == (1, 0)


def test_a_client_in_use_is_closed_only_when_its_last_user_has_left() -> None:
    manager = ClientManager()
    with manager.lend(KEY, "1", StubClient) as old:
        with manager.lend(KEY, "1", StubClient) as same:
            with manager.lend(KEY, "2", StubClient) as new:
                assert new is not old
            assert closed(old) == 0
        assert (same, closed(old)) == (old, 0)
    assert closed(old) == 1


def test_an_entry_of_the_register_is_the_same_before_and_after_a_client_was_made() -> None:
    known, manager = kinds(), ClientManager()
    before = kind("Counted", kinds=known)
    lent(manager, shared(known), "a", known)
    assert kind("Counted", kinds=known) is before
    with pytest.raises(FrozenInstanceError):
        setattr(before, "client", StubClient())  # noqa: B010 - pyright would not let it be written plainly


def test_a_dynamic_provider_that_has_lent_a_client_holds_none(tmp_path: Path) -> None:
    pushes = SecretPushProvider()
    config = Config({"credfleet:cluster": json.dumps({"kubeconfig": str(tmp_path / "none")})}, "credfleet")
    pushes.configure(ConfigureRequest(config))
    entry = {"secret": "db", "key": "k", "remoteKey": "r"}
    store = {"namespace": "a", "name": "lent", "spec": {"provider": {"fake": {"data": []}}}}
    push = {"name": "it", "store": {"name": "lent"}, "data": [entry]}
    lent_before = len(CLIENTS)
    found = pushes.check(
        {}, {"namespace": "a", "owner": "o", "push": push, "store": store, "provider": None, "labels": {}}
    )
    assert found.failures == []
    assert (len(CLIENTS), vars(pushes)) == (lent_before + 1, {"_config": config})


def test_two_specs_are_told_apart_by_every_namespace() -> None:
    digests = {provider("Kubernetes", {"authRef": selector(each)}).spec.digest for each in ("a", "b")}
    assert len(digests) == 2
