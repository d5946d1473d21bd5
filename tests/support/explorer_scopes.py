"""The worlds of `explorer.yaml`, and the mistakes that are put into the product's code in them."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import yaml

from components.account_pool.core.calls import Kind
from components.account_pool.core.config_map import CONFIG_MAP, POOL_UID, PoolConfigMap
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.keys import CLAIM_ORIGIN, CREATED_AGAIN, POOL_STATE, SHARED_CAPACITY
from components.account_pool.core.model import Phase, Policy
from components.account_pool.core.quotas import quota_data, quota_labels, quota_name
from components.labels import ACCOUNT_ID, SHARED, TENANT_NAME
from tests.support.explorer import Fault, Ghost, World
from tests.support.memory_pool import (
    POOL,
    ByHand,
    Claims,
    Cleans,
    Copies,
    Decides,
    MemoryServer,
    Moves,
    Op,
    Reads,
    Releases,
    Rotates,
    Sweeps,
    Updates,
    Ups,
)

ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = ROOT / "tests/unit/account_pool/explorer.yaml"
_ALIKE: Final = ("m0", "m13", "m23")
"""Accounts that all claims of the page try in this order."""
_CORE: Final = "components.account_pool.core"


def _members(server: MemoryServer) -> list[str]:
    return [member.name for member in server.members]


def _bound(server: MemoryServer) -> list[str]:
    return [record.name for record in server.records if record.phase is Phase.BOUND]


def _take_token_off(server: MemoryServer, name: str) -> None:
    if server.member(name).origin == "pool" and server.member(name).state is None:
        server.by_hand(name, {POOL_STATE: "dirty"}, {"credfleet.io/claim-token": None})


def _strip_all(server: MemoryServer, name: str) -> None:
    notes = {key: None for key in server.member(name).annotations if key != ACCOUNT_ID}
    server.by_hand(name, {TENANT_NAME: None}, notes)


def _restore(server: MemoryServer, name: str) -> None:
    record = server.record(name)
    assert record is not None
    server.remove(Kind.RECORD, name)
    server.create(Kind.RECORD, record.render(POOL))


def _delete_namespace(server: MemoryServer, _name: str) -> None:
    for kind, name in [*server.objects]:
        server.remove(kind, name)


def _declare_anew(server: MemoryServer, name: str) -> None:
    _delete_namespace(server, name)
    server.add_member("m0")


def _lose_settings(server: MemoryServer, _name: str) -> None:
    server.remove(Kind.RECORD, CONFIG_MAP)


def _of(change: Mapping[str, str | None]) -> Callable[[MemoryServer, str], None]:
    return lambda server, name: server.by_hand(name, change)


HANDS: Final = {
    hand.what: hand
    for hand in (
        ByHand("delete", MemoryServer.remove_member, _members),
        ByHand("strip", _of({TENANT_NAME: None}), _members),
        ByHand("relabel", lambda server, name: server.relabel(name, "a", "b"), _members),
        ByHand("state quarantined", _of({POOL_STATE: "quarantined"}), _members),
        ByHand("state dirty", _of({POOL_STATE: "dirty"}), _members),
        ByHand("take token off", _take_token_off, _members),
        ByHand("strip all", _strip_all, _members, destroys_evidence=True),
        ByHand(
            "delete record",
            lambda server, name: server.remove(Kind.RECORD, name),
            lambda server: [record.name for record in server.records],
            destroys_evidence=True,
        ),
        ByHand("restore", _restore, _bound),
        ByHand("add double", lambda server, _: server.add_member("m9", {}, {ACCOUNT_ID: "1"})),
        ByHand("lose settings in use", _lose_settings, _bound),
        ByHand("lose settings", _lose_settings),
        # The API server refuses it while the pool has anything to lose (`namespace_manifests`).
        ByHand("delete namespace", _delete_namespace, lambda s: () if [*s.records] else ("",)),
        ByHand("delete namespace in use", _delete_namespace),
        ByHand("delete namespace in use and declare", _declare_anew),
    )
}


def _given(words: Iterable[str]) -> Mapping[str, str]:
    return {key: text for key, _, text in (each.partition("=") for each in words) if text}


def _op(text: str, usual: Mapping[str, Any], ups: Ups) -> Op:
    """Read an operation, such as `claim a h1 slot=1`. ups: the update that creates lost Secrets again."""
    word, *words = text.split()
    names, given = [each for each in words if "=" not in each], _given(words)
    simple: Mapping[str, Callable[[], Op]] = {
        "hand": lambda: HANDS[" ".join(words)],
        "sweep": Sweeps,
        "up": lambda: ups,
        **{
            verb: lambda: Rotates(word.replace("-", "_"), names[0])
            for verb in ("rotate", "complete", "abort", "roll-back")
        },
        "clean": lambda: Cleans(names[0], given.get("host", "host"), take_over="takeover" in names),
    }
    if word in simple:
        return simple[word]()
    if word not in ("claim", "read", "release", "update", "move", "copy"):
        return Decides(word.replace("-", "_"), names[0])
    own: dict[str, Any] = {
        **usual,
        **{key: text for key, text in given.items() if key in Claims.__annotations__},
    }
    own |= dict.fromkeys({"shared", "spill", "opened"} & {*names}, True)
    own["policy"] = Policy(own.get("policy", "release"))
    claim = Claims(names[0], names[1], **own)
    about: Mapping[str, Callable[[], Op]] = {
        "claim": lambda: claim,
        "read": lambda: Reads(claim),
        "copy": lambda: Copies(claim),
        "move": lambda: Moves(claim, given["from"]),
        "release": lambda: Releases(claim, fenced="fenced" in names, shows=int(given.get("shows", 0))),
        "update": lambda: Updates(claim, Policy(given.get("to", "clean")), given.get("as", claim.holder)),
    }
    return about[word]()


@dataclass(frozen=True)
class Scope:
    """One world of the page, as it stands there.

    large: `make prove` alone explores it. ends: what claims end with, in the one way or the other; with which
    account, where `stays`. right: the scope in which nobody makes the mistake that this one has.
    """

    name: str
    members: Any = 1
    run: tuple[str, ...] = ()
    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    faults: int = 0
    may: tuple[str, ...] = ("CRASH", "LOST", "FAILED")
    large: bool = False
    ends: tuple[str, ...] = ()
    quota: int = 0
    keys: tuple[str, ...] | None = None
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: tuple[str, ...] = ()
    rules: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def world(self) -> World:
        """Begin in it."""
        server, declared, keys = MemoryServer(), dict[str, DeclaredMember](), dict[str, str]()
        members = _ALIKE[: self.members] if isinstance(self.members, int) else self.members
        for text in members:
            name, *words = text.split()
            given = _given(words)
            _add(server, name, given)
            declared[name] = DeclaredMember("aws", given.get("account", name))
            keys |= {name: given["key"]} if "key" in given else {}
        consumers: tuple[Consumer, ...] = ()
        if self.quota:
            consumers = (
                Consumer("one", ("h1", "h3"), quotas={"aws": self.quota}),
                Consumer("other", ("h2",)),
            )
            name, data = quota_name("one", "aws"), quota_data("one", "aws", self.quota)
            metadata = {"name": name, "namespace": POOL, "labels": quota_labels("aws")}
            server.create(Kind.RECORD, {"metadata": metadata, "data": data})
        if self.keys is not None:
            data = PoolConfigMap(self.keys).render()
            made = {"metadata": {"name": CONFIG_MAP, "namespace": POOL}, "data": data}
            server.put(Kind.RECORD, {**made, "data": {**data, POOL_UID: "u"}}, "u")
        usual = {**self.claims, "consumers": consumers}
        scripts = [
            tuple(_op(each, usual, Ups(declared, self.owners, keys)) for each in script.split("; "))
            for script in self.run
        ]
        may = frozenset(Fault[each] for each in self.may)
        ghost = Ghost(kept=frozenset(self.kept))
        return World.of(
            server, *scripts, faults=self.faults, ghost=ghost, may=may, consumers=consumers, **self.rules
        )


def _add(server: MemoryServer, name: str, given: Mapping[str, str]) -> None:
    labels = {"state": POOL_STATE, "tenant": TENANT_NAME}
    notes = {"origin": CLAIM_ORIGIN, "again": CREATED_AGAIN, "account": ACCOUNT_ID}
    server.add_member(
        name,
        {
            **{labels[key]: text for key, text in given.items() if key in labels},
            **({SHARED: "true"} if "shared" in given else {}),
        },
        {
            **{notes[key]: text for key, text in given.items() if key in notes},
            **({SHARED_CAPACITY: given["shared"]} if "shared" in given else {}),
        },
    )
    if "key" in given:
        body = server.objects[Kind.MEMBER, name]
        body["metadata"]["needsNewKey"], body["data"] = "renew" in given, {"key": given["key"]}


@dataclass(frozen=True)
class Mistake:
    """Edits of the code, or a scope in which somebody makes a mistake. found: which invariant fails."""

    name: str
    scope: Scope
    found: str
    edits: tuple[Mapping[str, str], ...]


def _page() -> Mapping[str, Any]:
    return yaml.safe_load(_PAGE.read_text(encoding="utf-8"))


def list_scopes() -> Mapping[str, Scope]:
    """Read the worlds in which every invariant holds."""
    return {name: _scope(name, said) for name, said in _page()["scopes"].items()}


def _scope(name: str, said: Mapping[str, Any]) -> Scope:
    return Scope(name, **_tupled(said))


def _tupled(said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(cast("list[Any]", each)) if isinstance(each, list) else each for key, each in said.items()
    }


def list_mistakes() -> Iterator[Mistake]:
    """Read the mistakes."""
    scopes = list_scopes()
    for name, said in _page()["mistakes"].items():
        scope = replace(scopes[said["scope"]], **_tupled(said.get("with", {})))
        edits = said.get("edits") or ([said] if "text" in said else [])
        yield Mistake(name, scope, said["found"], tuple({**said, **edit} for edit in edits))


@contextmanager
def planted(mistake: Mistake) -> Generator[None]:
    """Have the functions of the product run as if its text said this."""
    sources = dict[str, str]()
    for edit in mistake.edits:
        path = ROOT / f"{_CORE}.{edit['file']}".replace(".", "/")
        source = sources.setdefault(edit["file"], path.with_suffix(".py").read_text(encoding="utf-8"))
        assert source.count(edit["text"]) == 1, f"not once in {edit['file']}: {edit['text']}"
        sources[edit["file"]] = source.replace(edit["text"], edit["becomes"])
    kept: list[tuple[types.FunctionType, types.CodeType]] = []
    try:
        for name, source in sources.items():
            module = import_module(f"{_CORE}.{name}")
            for qualified, code in _codes(compile(source, str(module.__file__), "exec")):
                function = _function(module, qualified)
                if function is not None and function.__code__ != code:
                    kept.append((function, function.__code__))
                    function.__code__ = code
        yield
    finally:
        for function, code in kept:
            function.__code__ = code


def _codes(code: types.CodeType) -> Iterator[tuple[str, types.CodeType]]:
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield one.co_qualname, one
            if not one.co_flags & 0x2:  # the body of a class
                yield from _codes(one)


def _function(module: types.ModuleType, qualified: str) -> types.FunctionType | None:
    owner, _, name = qualified.rpartition(".")
    found = vars(getattr(module, owner) if owner else module).get(name)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    found = getattr(found, "__wrapped__", found)
    return found if isinstance(found, types.FunctionType) else None
