"""What a push does about what is there, and that nobody else's value is overwritten or removed."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from components.errors import StoreError
from components.projection.model import JsonObject, SecretRef
from components.secret_stores.admission import push_objections
from components.secret_stores.clients.client import Kept
from components.secret_stores.clients.fake import FakeClient
from components.secret_stores.consumers import Place, PushSecret, UpdatePolicy
from components.secret_stores.pushing import Move, Pusher, decide
from components.secret_stores.specs import FakeSpec
from tests.support.cases import cases, table
from tests.support.stores import kind

REPLACE, IF_NOT_EXISTS = UpdatePolicy.REPLACE, UpdatePolicy.IF_NOT_EXISTS
OURS, THEIRS = "ours", "theirs"


@cases(
    "there, policy, move",
    {
        "nothing-Replace": (None, REPLACE, Move.WRITE),
        "nothing-IfNotExists": (None, IF_NOT_EXISTS, Move.WRITE),
        "same-Replace": (Kept(b"new", owned=True), REPLACE, Move.KEEP),
        "same-IfNotExists": (Kept(b"new", owned=True), IF_NOT_EXISTS, Move.KEEP),
        "older-Replace": (Kept(b"old", owned=True), REPLACE, Move.WRITE),
        "older-IfNotExists": (Kept(b"old", owned=True), IF_NOT_EXISTS, Move.KEEP),
        "no-property-IfNotExists": (Kept(None, owned=True), IF_NOT_EXISTS, Move.WRITE),
        "foreign-Replace": (Kept(b"old", owned=False), REPLACE, Move.REFUSE),
        "foreign-and-same-Replace": (Kept(b"new", owned=False), REPLACE, Move.REFUSE),
        "foreign-IfNotExists": (Kept(b"old", owned=False), IF_NOT_EXISTS, Move.KEEP),
        "foreign-object-IfNotExists": (Kept(None, owned=False), IF_NOT_EXISTS, Move.REFUSE),
    },
)
def test_a_push_decides_by_what_is_there(there: Kept | None, policy: UpdatePolicy, move: Move) -> None:
    assert decide(there, b"new", policy) is move


class Memory:
    """Secrets of one namespace."""

    def __init__(self, **secrets: Mapping[str, str]) -> None:
        self.secrets = {name: dict(data) for name, data in secrets.items()}

    def get(self, ref: SecretRef) -> JsonObject | None:
        data = self.secrets.get(ref.name)
        if data is None:
            return None
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        return {"metadata": {"uid": f"uid-{ref.name}", "resourceVersion": "7"}, "data": encoded}


def push(**changes: Any) -> PushSecret:
    entry = {"secret": "db", "key": "password", "remoteKey": "db-password"}
    given = {"namespace": "a", "name": "it", "store": {"name": "s"}, "data": [entry]}
    return PushSecret.model_validate({**given, **changes})


def fake(*entries: Mapping[str, str]) -> FakeClient:
    return FakeClient("Fake/a/s", FakeSpec.model_validate({"data": list(entries)}))


def pusher(client: FakeClient, owner: str = OURS, password: str = "one", **changes: Any) -> Pusher:
    return Pusher(push(**changes), owner, Memory(db={"password": password, "user": "u"}).get, client)


def content(client: FakeClient, key: str = "db-password") -> bytes | None:
    there = client.look(Place(key), OURS)
    return None if there is None else there.content


@cases(
    "entry, there",
    {
        "newest": ({"key": "db-password", "value": "v"}, True),
        "of-a-version": ({"key": "db-password", "value": "v", "version": "1"}, False),
        "with-its-version": ({"key": "db-", "value": "v", "version": "password"}, True),
    },
)
def test_a_fake_has_a_secret_under_key_and_version_as_the_operator_has(
    entry: Mapping[str, str], *, there: bool
) -> None:
    client = fake(entry)
    pusher(client, updatePolicy="IfNotExists").write()
    assert content(client) == (b"v" if there else b"one")


def test_a_place_that_is_pushed_to_no_more_is_cleared_and_anothers_is_not() -> None:
    client = fake()
    pusher(client, deletionPolicy="Delete").write()
    client.write(Place("other"), b"x", THEIRS, None)
    moved = [{"secret": "db", "key": "user", "remoteKey": "db-user"}]
    pusher(client, data=moved, deletionPolicy="Delete").write([Place("db-password"), Place("other")])
    assert [content(client, key) for key in ("db-password", "db-user", "other")] == [None, b"u", b"x"]


def test_all_keys_are_one_json_object_as_the_operator_writes_it() -> None:
    client, whole = fake(), [{"secret": "db", "remoteKey": "db"}]
    pusher(client, password='a"<&>\x01\u2028', data=whole).write()
    assert content(client, "db") == b'{"password":"a\\"<&>\\u0001\\u2028","user":"u"}'


@cases("name, said", table(__file__, "test_all_keys_go_only_where_both_back_ends_write_them_alike"))
def test_all_keys_go_only_where_both_back_ends_write_them_alike(name: str, said: str | None) -> None:
    whole = {"secret": "db", "remoteKey": "k", **({"property": "p"} if name == "Kubernetes" else {})}
    told = [each.problem for each in push_objections(push(data=[whole]), kind(name))]
    assert [said in each for each in told if said] == ([True] if said else [])
    assert len(told) == (said is not None)


class Contended(FakeClient):
    """A store in which the same push, run elsewhere, is always faster."""

    def write(self, place: Place, content: bytes, owner: str, over: Kept | None) -> bool:
        super().write(place, content + b" of elsewhere", owner, super().look(place, owner))
        return super().write(place, content, owner, over)


class Theirs(FakeClient):
    """A store in which an object of somebody else's has nothing under the property."""

    def look(self, place: Place, owner: str) -> Kept | None:
        return Kept(None, owned=place.key == owner)


@pytest.mark.parametrize("policy", UpdatePolicy)
def test_who_meets_somebody_elses_is_advised_of_what_is_not_set_yet(policy: UpdatePolicy) -> None:
    (refused,) = pusher(Theirs("Fake/a/s", FakeSpec(data=())), updatePolicy=policy).conflicts()
    assert ("IfNotExists" in refused.fix) == (policy is UpdatePolicy.REPLACE)


def test_a_push_that_always_comes_second_gives_up_and_says_so() -> None:
    with pytest.raises(StoreError, match="others changed db-password 5 times") as caught:
        pusher(Contended("Fake/a/s", FakeSpec(data=())), password="one").write()
    assert caught.value.code == "contended"


def test_a_write_over_what_has_changed_since_is_not_done() -> None:
    client, place = fake(), Place("k")
    client.write(place, b"1", OURS, None)
    seen = client.look(place, OURS)
    assert client.write(place, b"2", OURS, seen)
    assert seen is not None
    assert not client.write(place, b"3", OURS, seen)
    assert not client.remove(place, seen)
    assert not client.write(place, b"3", OURS, None)
    assert content(client, "k") == b"2"


@cases("entry, said", table(__file__, "test_what_is_not_there_to_push_is_told"))
def test_what_is_not_there_to_push_is_told(entry: Mapping[str, str], said: str) -> None:
    with pytest.raises(StoreError, match=said):
        pusher(fake(), data=[entry]).write()


@pytest.mark.parametrize(
    ("name", "part", "fix"), [("Kubernetes", None, "add property"), ("Fake", "field", "leave property out")]
)
def test_a_push_goes_to_a_place_as_the_kind_has_them(name: str, part: str | None, fix: str) -> None:
    entry = {"secret": "db", "key": "user", "remoteKey": "k", **({"property": part} if part else {})}
    (objection,) = push_objections(push(data=[entry]), kind(name))
    assert objection.fix == fix


@cases(
    "name, store, words",
    table(__file__, "test_a_push_goes_to_another_namespace_through_a_store_of_the_whole_cluster"),
)
def test_a_push_goes_to_another_namespace_through_a_store_of_the_whole_cluster(
    name: str, store: str, words: str | None
) -> None:
    entry = {"secret": "db", "key": "user", "remoteKey": "k", "remoteNamespace": "b"}
    entry |= {"property": "p"} if name == "Kubernetes" else {}
    wanted = push(store={"kind": store, "name": "s"}, data=[entry], deletionPolicy="Delete")
    told = [each.problem for each in push_objections(wanted, kind(name))]
    assert [words in each for each in told if words] == ([True] if words else [])
    assert len(told) == (words is not None)
